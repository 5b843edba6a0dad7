use proptest::prelude::*;

use super::{DeadLetter, SQS_MESSAGE_BYTES, batches, is_reason};
use crate::ReasonCode;

fn letter(bytes: usize) -> DeadLetter {
    DeadLetter { body: "x".repeat(bytes), attributes: Vec::new() }
}

fn sizes(batches: &[&[DeadLetter]]) -> Vec<Vec<usize>> {
    batches.iter().map(|batch| batch.iter().map(DeadLetter::size).collect()).collect()
}

#[test]
fn nothing_is_no_batch() {
    assert!(batches(&[], 10).is_empty());
}

#[test]
fn a_batch_is_full_at_the_limit_and_not_before() {
    let half = SQS_MESSAGE_BYTES / 2;
    let letters = [half, half, half, half + 1, half].map(letter);
    assert_eq!(sizes(&batches(&letters, 10)), [vec![half, half], vec![half], vec![half + 1], vec![half]]);
}

#[test]
fn what_is_too_large_goes_alone() {
    let letters = [1, SQS_MESSAGE_BYTES + 1, 2].map(letter);
    assert_eq!(sizes(&batches(&letters, 10)), [vec![1], vec![SQS_MESSAGE_BYTES + 1], vec![2]]);
}

#[test]
fn reasons_are_known_by_name() {
    assert!(ReasonCode::ALL.iter().all(|code| is_reason(code.name())));
    assert!(!is_reason("") && !is_reason("MAX_AGE"));
}

proptest! {
    #[test]
    fn batches_keep_order_and_limits_and_are_packed_greedily(
        bytes in prop::collection::vec(prop_oneof![1..2_000usize, 100_000..=SQS_MESSAGE_BYTES], 0..40),
        entries in 1..12usize,
    ) {
        let letters: Vec<DeadLetter> = bytes.iter().map(|&bytes| letter(bytes)).collect();
        let batches = sizes(&batches(&letters, entries));
        prop_assert_eq!(batches.concat(), bytes);
        for batch in &batches {
            prop_assert!((1..=entries).contains(&batch.len()));
            prop_assert!(batch.iter().sum::<usize>() <= SQS_MESSAGE_BYTES);
        }
        for pair in batches.windows(2) {
            let with_one_more = pair[0].iter().sum::<usize>() + pair[1][0];
            prop_assert!(pair[0].len() == entries || with_one_more > SQS_MESSAGE_BYTES);
        }
    }
}
