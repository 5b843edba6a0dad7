//! The invocation record that Lambda writes to an asynchronous function's failure destination.
//! Source: "Retaining records of asynchronous invocations", AWS Lambda Developer Guide; members and
//! their order as there.

use comeback_engine::Timestamp;

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

use crate::id::Id;
use crate::queue::Flaw;
use crate::scenario::{TARGET_ARN, UNLISTED_ARN};

/// What a run of the target failed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetError {
    /// `errorType`.
    pub error_type: &'static str,
    /// `errorMessage`.
    pub error_message: &'static str,
}

/// Writes records. Formatting a date anew for each of a million records would take longer than
/// handling it, so the text of the current minute is kept.
#[derive(Debug, Default)]
pub(crate) struct FailureRecords {
    minute: Option<u64>,
    /// `2026-09-14T15:46:`
    minute_text: String,
}

impl FailureRecords {
    /// The record of a run that ended now, in the buffer of `text`; `payload` stands in it byte for byte.
    pub(crate) fn write(
        &mut self,
        now: Timestamp,
        request_id: Id,
        payload: &str,
        error: TargetError,
        mut text: String,
    ) -> String {
        text.clear();
        text.reserve_exact(payload.len() + 640);
        text.push_str(r#"{"version":"1.0","timestamp":""#);
        self.write_time(now, &mut text);
        text.push_str(r#"","requestContext":{"requestId":""#);
        request_id.write(&mut text);
        text.push_str(r#"","functionArn":""#);
        text.push_str(TARGET_ARN);
        // The target's own retries are off (MaximumRetryAttempts 0), so one invoke is all.
        text.push_str(
            r#":$LATEST","condition":"RetriesExhausted","approximateInvokeCount":1},"requestPayload":"#,
        );
        text.push_str(payload);
        text.push_str(r#","responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"responsePayload":{"errorType":""#);
        text.push_str(error.error_type);
        text.push_str(r#"","errorMessage":""#);
        text.push_str(error.error_message);
        text.push_str(r#""}}"#);
        text
    }

    fn write_time(&mut self, now: Timestamp, text: &mut String) {
        const MINUTE: u64 = 60_000;
        let (minute, millis) = (now.as_millis() / MINUTE, now.as_millis() % MINUTE);
        if self.minute != Some(minute) {
            self.minute = Some(minute);
            self.minute_text = now.to_string();
            self.minute_text.truncate("2026-09-14T15:46:".len());
        }
        text.push_str(&self.minute_text);
        let digits = [millis / 10_000, millis / 1_000, millis / 100, millis / 10, millis];
        for (place, digit) in digits.into_iter().enumerate() {
            if place == 2 {
                text.push('.');
            }
            text.push(char::from(b'0' + (digit % 10) as u8));
        }
        text.push('Z');
    }
}

/// A member of the record: where it starts, and where what follows it does.
struct Member {
    start: &'static str,
    next: &'static str,
    /// It stands behind the payload, which may hold anything.
    behind_payload: bool,
    /// Without it there is nothing to retry.
    required: bool,
}

const fn member(start: &'static str, next: &'static str) -> Member {
    Member { start, next, behind_payload: false, required: false }
}

const MEMBERS: [Member; 7] = [
    member(r#""timestamp":"#, r#""requestContext":"#),
    member(r#""requestId":"#, r#""functionArn":"#),
    Member { required: true, ..member(r#""functionArn":"#, r#""condition":"#) },
    member(r#""condition":"#, r#""approximateInvokeCount":"#),
    Member { required: true, ..member(r#""requestPayload":"#, r#""responseContext":"#) },
    Member { behind_payload: true, ..member(r#""responseContext":"#, r#""responsePayload":"#) },
    Member { behind_payload: true, ..member(r#","responsePayload":"#, "}") },
];

/// A fault: one member is missing.
pub(crate) fn without_a_member(record: &mut String, rng: &mut Xoshiro256PlusPlus) -> Option<Flaw> {
    let member = &MEMBERS[rng.random_range(0..MEMBERS.len())];
    let place = if member.behind_payload { record.rfind(member.start) } else { record.find(member.start) };
    let (start, end) = place.zip(record.rfind(member.next)).expect("BUG: these members are all written");
    record.replace_range(start..end, "");
    member.required.then_some(Flaw::Unreadable)
}

/// A fault: it names a function that is not on the list.
pub(crate) fn of_another_function(record: &mut String) -> Flaw {
    let start = record.find(TARGET_ARN).expect("BUG: the function is written");
    record.replace_range(start..start + TARGET_ARN.len(), UNLISTED_ARN);
    Flaw::Unlisted
}

#[cfg(test)]
mod tests {
    use comeback_engine::InvocationRecord;
    use rand::SeedableRng;

    use super::*;

    const DOWN: TargetError = TargetError { error_type: "TargetDown", error_message: "the target is down" };

    fn written(now: Timestamp, request_id: Id, payload: &str) -> String {
        FailureRecords::default().write(now, request_id, payload, DOWN, "another record".to_owned())
    }

    #[test]
    fn is_what_lambda_writes() {
        let request_id = Id::draw(&mut Xoshiro256PlusPlus::seed_from_u64(1));
        let now = Timestamp::from_millis(1_789_400_814_145);
        let record = written(now, request_id, r#"{"n": 1.0}"#);
        let expected = r#"{"version":"1.0","timestamp":"2026-09-14T15:46:54.145Z","requestContext":{"requestId":"ID","functionArn":"arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST","condition":"RetriesExhausted","approximateInvokeCount":1},"requestPayload":{"n": 1.0},"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"responsePayload":{"errorType":"TargetDown","errorMessage":"the target is down"}}"#;
        assert_eq!(record, expected.replace("ID", &request_id.to_string()));
        assert_eq!(InvocationRecord::read(&record).unwrap().timestamp, Some(now));
    }

    #[test]
    fn writes_every_time_as_timestamps_display() {
        let mut records = FailureRecords::default();
        for millis in (1_789_400_814_145..).step_by(7_919).take(500) {
            let now = Timestamp::from_millis(millis);
            let mut text = String::new();
            records.write_time(now, &mut text);
            assert_eq!(text, now.to_string());
        }
    }

    #[test]
    fn each_member_can_be_missing_and_only_two_are_missed() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let whole = written(crate::START, Id::draw(&mut rng), r#"{"n":"}"}"#);
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
    fn another_function_is_named_in_full() {
        let id = Id::draw(&mut Xoshiro256PlusPlus::seed_from_u64(1));
        let mut record = written(crate::START, id, "null");
        assert_eq!(of_another_function(&mut record), Flaw::Unlisted);
        assert_eq!(InvocationRecord::read(&record).unwrap().function_arn, format!("{UNLISTED_ARN}:$LATEST"));
    }
}
