use comeback_engine::{Action, Jitter, Policy, Record, Style, Timestamp, decide};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::support::*;

fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        8 => (0..100_000_000u64).prop_map(|millis| after(T0, millis)),
        1 => any::<u64>().prop_map(Timestamp::from_millis),
        1 => select(vec![0, 1, u64::MAX]).prop_map(Timestamp::from_millis),
    ]
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let styles = select(Style::ALL.to_vec());
    let jitters = select(Jitter::ALL.to_vec());
    (60..=1_209_600u64, 0..=10_000u64, 1..=43_170u64, 1..=43_170u64, jitters, styles).prop_map(
        |(max_age, max_retries, one, other, jitter, envelope)| {
            policy(|settings| {
                (settings.max_age, settings.max_retries, settings.jitter) = (max_age, max_retries, jitter);
                (settings.base_backoff, settings.max_backoff) = (one.min(other), one.max(other));
                settings.envelope = envelope;
                settings.non_retryable_errors = vec!["*Fatal*".into()];
            })
        },
    )
}

fn whole_bodies() -> Vec<String> {
    let inline = r#"{"_retry_metadata":{"attempt":1,"initial_timestamp":0,"style":"inline"},"a":1}"#;
    let letter = format!(
        r#"{{"reason":"max_age","detail":"","function_arn":"{TARGET}","retries_made":3,"initial_timestamp":1,"dead_lettered_at":2,"origin_request_id":"r-0","error":null,"payload":{{}}}}"#
    );
    vec![body("{}"), body("null"), body(&enveloped(3, "[1, 2]")), body(inline), letter]
}

/// A valid body with short pieces of it repeated, taken out, or replaced.
fn mutated_body() -> impl Strategy<Value = String> {
    let pieces = ["", "\"", "{", "}", "null", "1E400", "\\ud800", ",", "404", "-1", "18446744073709551616"];
    let piece = prop_oneof![8 => select(pieces.to_vec()).prop_map(String::from), 1 => any::<String>()];
    let mutation = (any::<Index>(), 0..12usize, any::<bool>(), piece);
    (select(whole_bodies()), proptest::collection::vec(mutation, 0..3)).prop_map(|(mut body, mutations)| {
        for (at, bytes, repeat, piece) in mutations {
            let start = at.index(body.len() + 1);
            let range = body.floor_char_boundary(start)..body.ceil_char_boundary(start + bytes);
            let piece = if repeat { body[range.clone()].repeat(3) } else { piece };
            body.replace_range(range, &piece);
        }
        body
    })
}

fn any_body() -> impl Strategy<Value = String> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        1 => any::<String>(),
        1 => bytes.prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        6 => mutated_body(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_message_makes_decide_panic_or_leave_its_bounds(
        policy in any_policy(),
        message_id in "\\PC{1,20}",
        body in any_body(),
        receive_count in prop_oneof![0..5u32, any::<u32>()],
        sent in moment(),
        first_receive in moment(),
        now in moment(),
    ) {
        let record =
            Record { message_id, receipt_handle: "h".into(), body, receive_count, sent, first_receive };
        let decision = decide(&record, &policy, now);
        match &decision.action {
            Action::Defer { visibility_timeout } => {
                prop_assert_eq!(visibility_timeout.subsec_nanos(), 0);
                prop_assert!((1..=43_170).contains(&visibility_timeout.as_secs()));
            }
            Action::Reinvoke(envelope) => {
                let event = decision.event.as_ref().unwrap();
                prop_assert!(receive_count > 1 && policy.allows(&event.function_arn));
                prop_assert!(Timestamp::from_secs(envelope.metadata.initial_timestamp) <= sent);
                // What is sent opens to what it was made of, so that its failure can be read.
                for style in Style::ALL {
                    let sealed = envelope.seal(style);
                    let opened = comeback_envelope::open(serde_json::from_str(&sealed).unwrap()).unwrap();
                    prop_assert_eq!(opened.payload.get(), envelope.original_payload.get());
                    prop_assert_eq!(opened.metadata.as_ref(), Some(&envelope.metadata));
                }
            }
            Action::DeadLetter(_) => prop_assert_eq!(decision.due, None),
        }
    }
}
