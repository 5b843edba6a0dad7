//! Runs each entry point for a limited time on stable Rust, with every sample, mutated samples and random bytes.

use std::ops::Range;

use comeback_engine::{Action, Jitter, Policies, Policy, Record, Settings, Style, Timestamp};
use comeback_fuzz::{
    Question, Seed, batch_event, decide, envelope, invocation_record, message, retry_after, seeds,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Time of the samples' failures, in epoch milliseconds.
const T0: u64 = 1_789_400_814_145;

fn seeds_for(target: &str) -> Vec<Vec<u8>> {
    seeds().into_iter().filter(|seed| seed.target == target).map(|seed| seed.data).collect()
}

/// Mutates samples: repeats, removes or replaces short pieces, or replaces a number with an extreme one.
fn mutated(samples: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let pieces = ["", "\"", "{", "}", "null", "1E400", "\\ud800", ",", "404", "-1"];
    let piece = prop_oneof![
        8 => select(pieces.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => any::<String>().prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..4),
    ];
    let limit = select(vec!["0", "18446744073709551615", "18446744073709551616"]);
    let mutation = (any::<Index>(), 0..12usize, any::<bool>(), piece, option::weighted(0.2, limit));
    (select(samples), vec(mutation, 0..3)).prop_map(|(mut sample, mutations)| {
        for (at, bytes, repeat, piece, limit) in mutations {
            let start = at.index(sample.len() + 1);
            let range = start..(start + bytes).min(sample.len());
            let numbers = if limit.is_some() { numbers(&sample) } else { Vec::new() };
            let (range, piece) = match limit {
                Some(limit) if !numbers.is_empty() => {
                    (numbers[at.index(numbers.len())].clone(), limit.as_bytes().to_vec())
                }
                _ if repeat => (range.clone(), sample[range].repeat(3)),
                _ => (range, piece),
            };
            sample.splice(range, piece);
        }
        sample
    })
}

fn numbers(sample: &[u8]) -> Vec<Range<usize>> {
    let mut numbers: Vec<Range<usize>> = Vec::new();
    for place in (0..sample.len()).filter(|place| sample[*place].is_ascii_digit()) {
        match numbers.last_mut() {
            Some(number) if number.end == place => number.end += 1,
            _ => numbers.push(place..place + 1),
        }
    }
    numbers
}

fn any_data(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    prop_oneof![1 => vec(any::<u8>(), 0..200), 9 => mutated(seeds_for(target))]
}

fn moment() -> impl Strategy<Value = Timestamp> {
    let millis = prop_oneof![
        8 => (0..100_000_000u64).prop_map(|millis| T0 + millis),
        1 => any::<u64>(),
        1 => select(vec![0, 1, u64::MAX]),
    ];
    millis.prop_map(Timestamp::from_millis)
}

fn settings() -> impl Strategy<Value = Settings> {
    let (jitter, style) = (select(Jitter::ALL.to_vec()), select(Style::ALL.to_vec()));
    (60..=1_209_600u64, 0..=10_000u64, 1..=43_170u64, 1..=43_170u64, jitter, style).prop_map(
        |(max_age, max_retries, one, other, jitter, envelope)| Settings {
            max_age,
            max_retries,
            base_backoff: one.min(other),
            max_backoff: one.max(other),
            jitter,
            envelope,
            ..Settings::default()
        },
    )
}

/// Generates a pause around [`T0`].
fn pause() -> impl Strategy<Value = Option<(u64, u64, u64)>> {
    let pause = (0..100_000u64, option::of(1..100_000u64), 0..=10_000u64);
    option::of(pause.prop_map(|(after, length, spread)| {
        let from = T0 / 1_000 - 20_000 + after;
        (from, length.map_or(0, |length| from + length), spread)
    }))
}

fn question() -> impl Strategy<Value = Question> {
    let body = any_data("invocation_record").prop_map(|body| String::from_utf8_lossy(&body).into_owned());
    let receive_count = prop_oneof![0..5u32, any::<u32>()];
    (settings(), pause(), any::<u32>(), body, receive_count, [moment(), moment(), moment()]).prop_map(
        |(settings, pause, id, body, receive_count, [sent, first_receive, now])| {
            let message_id = id.to_string();
            let record = Record { message_id, receive_count, sent, first_receive, ..message(body) };
            Question { settings, pause, record, now }
        },
    )
}

#[test]
fn every_sample_holds() {
    let seeds = seeds();
    for Seed { target, name, data } in &seeds {
        println!("{target} {name}");
        match *target {
            "batch_event" => batch_event(data),
            "invocation_record" => invocation_record(data),
            "envelope" => envelope(data),
            "decide" => decide(data),
            "retry_after" => retry_after(data),
            other => panic!("no such target: {other}"),
        }
    }
    assert!(seeds.len() > 280, "only {} samples", seeds.len());
}

/// The samples for `decide` must lead to every action; otherwise, some actions would never be checked.
#[test]
fn samples_reach_every_action() {
    let mut seen = [0; 4];
    for data in seeds_for("decide") {
        let question = Question::from_bytes(&data);
        assert_eq!(question.to_bytes(), data, "what is read is what was written");
        let paused = Question { pause: Some((1, 0, 0)), ..question.clone() };
        assert_eq!(Question::from_bytes(&paused.to_bytes()).pause, paused.pause);
        let policies = Policies::from(Policy::new(question.settings.clone()).unwrap());
        for asked in [&question, &paused] {
            match comeback_engine::decide(&asked.record, &policies, &asked.pauses(), asked.now) {
                Action::Defer { .. } => seen[0] += 1,
                Action::Reinvoke { .. } => seen[1] += 1,
                Action::DeadLetter { .. } => seen[2] += 1,
                Action::Hold { .. } => seen[3] += 1,
            }
        }
    }
    assert!(seen.iter().all(|count| *count >= 5), "deferred, re-invoked, dead-lettered, held: {seen:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(5_000) })]

    #[test]
    fn batch_keeps_every_message_id(data in any_data("batch_event")) {
        batch_event(&data);
    }

    #[test]
    fn body_is_read_unchanged_or_refused(data in any_data("invocation_record")) {
        invocation_record(&data);
    }

    #[test]
    fn event_opens_unchanged_or_is_refused(data in any_data("envelope")) {
        envelope(&data);
    }

    #[test]
    fn decide_stays_within_its_bounds(question in question()) {
        decide(&question.to_bytes());
    }

    #[test]
    fn text_is_the_same_wait_everywhere(data in any_data("retry_after")) {
        retry_after(&data);
    }

    #[test]
    fn any_bytes_make_a_question(data in any_data("decide")) {
        decide(&data);
    }
}
