//! Faults that change invocation records.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

/// ARN that [`UnlistedFunction`](crate::Fault::UnlistedFunction) writes into invocation records; a policy must not
/// allow it.
pub const UNLISTED_ARN: &str = "arn:aws:lambda:eu-west-1:123456789012:function:payroll";

/// Reason why an event cannot be retried after a fault has changed its invocation record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A required member of the record is missing.
    Unreadable,
    /// The record's function is not in `TARGET_FUNCTIONS`, the list of functions that the handler may invoke.
    Unlisted,
}

const FUNCTION_ARN: &str = r#""functionArn":""#;
/// Beginning of the last member of an invocation record.
pub(crate) const RESPONSE_PAYLOAD: &str = r#","responsePayload":"#;

/// Members of an invocation record that a fault can remove. Each tuple contains the text at the start of the member,
/// the text after it, and true if a retry needs the member.
const MEMBERS: [(&str, &str, bool); 7] = [
    (r#""timestamp":"#, r#""requestContext":"#, false),
    (r#""requestId":"#, r#""functionArn":"#, false),
    (r#""functionArn":"#, r#""condition":"#, true),
    (r#""condition":"#, r#""approximateInvokeCount":"#, false),
    (r#""requestPayload":"#, r#""responseContext":"#, true),
    (r#""responseContext":"#, r#""responsePayload":"#, false),
    (RESPONSE_PAYLOAD, "}", false),
];

pub(crate) fn without_a_member(record: &mut String, rng: &mut Xoshiro256PlusPlus) -> Option<Flaw> {
    let (start, next, is_required) = MEMBERS[rng.random_range(0..MEMBERS.len())];
    let ends = record.find(start).zip(record.rfind(next));
    let (start, end) = ends.expect("BUG: Lambda writes all of these members, and no payload has them");
    record.replace_range(start..end, "");
    is_required.then_some(Flaw::Unreadable)
}

pub(crate) fn name_unlisted_function(record: &mut String) -> Flaw {
    let start = record.find(FUNCTION_ARN).map(|start| start + FUNCTION_ARN.len());
    let range = start.and_then(|start| Some(start..start + record[start..].find(":$LATEST")?));
    record.replace_range(range.expect("BUG: Lambda writes the function's ARN"), UNLISTED_ARN);
    Flaw::Unlisted
}

/// Hostile `RetryAfter` messages, each with the wait that it requests.
const HOSTILE: [(&str, Option<Duration>); 12] = [
    // Bare numbers above 14 days are ambiguous, so they request no wait.
    ("9999999999", None),
    ("18446744073709551615; for ever", None),
    ("999999999999d", Some(Duration::from_secs(999_999_999_999 * 86_400))),
    ("PT0.5S", Some(Duration::from_millis(500))),
    ("9999-12-31T23:59:59Z", Some(Duration::from_secs(u64::MAX))),
    ("14d", Some(Duration::from_secs(14 * 86_400))),
    ("1; and again", Some(Duration::from_secs(1))),
    ("0", None),
    ("-900", None),
    ("1970-01-01T00:00:00Z", None),
    ("Thu, 01 Jan 1970 00:00:00 GMT; 900", None),
    ("900 🕐", None),
];
/// Lengths, in digits, of the very long numbers in hostile messages.
const MANY_DIGITS: [usize; 2] = [401, 900_000];
/// Maximum size of a record, in bytes; Lambda would drop a much larger one.
const LARGEST_RECORD: usize = 1_000_000;

/// Replaces a record's error with a hostile `RetryAfter`, and returns the wait that it requests.
pub(crate) fn write_hostile_message(record: &mut String, rng: &mut Xoshiro256PlusPlus) -> Option<Duration> {
    let start = record.rfind(RESPONSE_PAYLOAD).expect("BUG: Lambda writes what the function answered");
    record.truncate(start);
    record.push_str(RESPONSE_PAYLOAD);
    record.push_str(r#"{"errorType":"RetryAfter","errorMessage":""#);
    let asked = match HOSTILE.get(rng.random_range(0..HOSTILE.len() + MANY_DIGITS.len())) {
        Some((message, asked)) => {
            record.push_str(message);
            *asked
        }
        None => {
            let digits = MANY_DIGITS[rng.random_range(0..MANY_DIGITS.len())];
            record.extend(std::iter::repeat_n('9', digits.min(LARGEST_RECORD.saturating_sub(record.len()))));
            None
        }
    };
    record.push_str(r#""}}"#);
    asked
}

#[cfg(test)]
mod tests {
    use comeback_engine::InvocationRecord;
    use rand::SeedableRng;

    use super::*;
    use crate::aws::agenda::START;
    use crate::aws::draw_id;
    use crate::aws::target::{DOWN, FailedInvocation, FailureRecords, TARGET_ARN};

    fn written(rng: &mut Xoshiro256PlusPlus, payload: &str) -> String {
        let failed = FailedInvocation { request_id: draw_id(rng), payload, error: DOWN };
        FailureRecords::of(TARGET_ARN).write(START, failed, String::new())
    }

    #[test]
    fn only_two_members_of_a_record_are_required() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let whole = written(&mut rng, r#"{"n":"}"}"#);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let mut record = whole.clone();
            let flaw = without_a_member(&mut record, &mut rng);
            assert!(serde_json::from_str::<serde_json::Value>(&record).is_ok(), "{record}");
            assert_eq!(InvocationRecord::read(&record).is_err(), flaw == Some(Flaw::Unreadable), "{record}");
            seen.insert(record);
        }
        assert_eq!(seen.len(), MEMBERS.len());
    }

    #[test]
    fn hostile_messages_request_the_listed_wait() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let whole = written(&mut rng, "null");
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mut record = whole.clone();
            let asked = write_hostile_message(&mut record, &mut rng);
            let value: serde_json::Value = serde_json::from_str(&record).expect("it is JSON");
            assert_eq!(value["responsePayload"]["errorType"], "RetryAfter");
            let message = value["responsePayload"]["errorMessage"].as_str().expect("text").to_owned();
            let known = HOSTILE.iter().find(|(text, _)| *text == message);
            assert_eq!(known.and_then(|(_, asked)| *asked), asked, "{message:.40}");
            seen.insert(message);
        }
        assert_eq!(seen.len(), HOSTILE.len() + MANY_DIGITS.len());
    }

    #[test]
    fn unlisted_function_is_named_in_full() {
        let mut record = written(&mut Xoshiro256PlusPlus::seed_from_u64(1), "null");
        assert_eq!(name_unlisted_function(&mut record), Flaw::Unlisted);
        assert_eq!(InvocationRecord::read(&record).unwrap().function_arn, format!("{UNLISTED_ARN}:$LATEST"));
    }
}
