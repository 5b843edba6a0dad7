//! The invocation record that Lambda writes to an asynchronous function's failure destination.
//! Source: "Retaining records of asynchronous invocations", AWS Lambda Developer Guide; members and
//! their order as there.

use std::fmt::Write as _;
use std::time::Duration;

use comeback_engine::Timestamp;

use super::id::Id;

/// The error that a run of the target failed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetError {
    /// `errorType`.
    pub error_type: &'static str,
    /// `errorMessage`.
    pub error_message: &'static str,
    /// What a `RetryAfter` asks for, in whole seconds. It stands before the message.
    pub retry_after: Option<Duration>,
}

/// Writes the records of one function. To format a date for each of a million records would take
/// longer than to handle them, so the text of the current minute is cached.
#[derive(Debug)]
pub(crate) struct FailureRecords {
    function_arn: &'static str,
    minute: Option<u64>,
    /// `2026-09-14T15:46:`
    minute_text: String,
}

impl FailureRecords {
    pub(crate) fn of(function_arn: &'static str) -> Self {
        Self { function_arn, minute: None, minute_text: String::new() }
    }

    /// The record of a run that ended now, in the buffer of `text`. It has `payload` byte for byte.
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
        text.push_str(self.function_arn);
        // Lambda's own retries of the target are off (MaximumRetryAttempts 0), so there is one invoke.
        text.push_str(
            r#":$LATEST","condition":"RetriesExhausted","approximateInvokeCount":1},"requestPayload":"#,
        );
        text.push_str(payload);
        text.push_str(r#","responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"responsePayload":{"errorType":""#);
        text.push_str(error.error_type);
        text.push_str(r#"","errorMessage":""#);
        if let Some(wait) = error.retry_after {
            write!(text, "{}; ", wait.as_secs()).expect("BUG: writing to a String");
        }
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
        for (index, digit) in digits.into_iter().enumerate() {
            if index == 2 {
                text.push('.');
            }
            text.push(char::from(b'0' + (digit % 10) as u8));
        }
        text.push('Z');
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::InvocationRecord;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::*;

    const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
    const DOWN: TargetError =
        TargetError { error_type: "TargetDown", error_message: "the target is down", retry_after: None };

    #[test]
    fn a_record_is_written_as_lambda_writes_it() {
        let request_id = Id::draw(&mut Xoshiro256PlusPlus::seed_from_u64(1));
        let now = Timestamp::from_millis(1_789_400_814_145);
        let another = "another record".to_owned();
        let record = FailureRecords::of(ORDERS).write(now, request_id, r#"{"n": 1.0}"#, DOWN, another);
        let expected = r#"{"version":"1.0","timestamp":"2026-09-14T15:46:54.145Z","requestContext":{"requestId":"ID","functionArn":"arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST","condition":"RetriesExhausted","approximateInvokeCount":1},"requestPayload":{"n": 1.0},"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"responsePayload":{"errorType":"TargetDown","errorMessage":"the target is down"}}"#;
        assert_eq!(record, expected.replace("ID", &request_id.to_string()));
        assert_eq!(InvocationRecord::read(&record).unwrap().timestamp, Some(now));
    }

    #[test]
    fn a_wait_that_is_asked_for_stands_before_the_message() {
        let request_id = Id::draw(&mut Xoshiro256PlusPlus::seed_from_u64(1));
        let error =
            TargetError { error_type: "RetryAfter", retry_after: Some(Duration::from_secs(900)), ..DOWN };
        let record =
            FailureRecords::of(ORDERS).write(Timestamp::from_secs(1), request_id, "7", error, String::new());
        let asked = r#"{"errorType":"RetryAfter","errorMessage":"900; the target is down"}}"#;
        assert!(record.ends_with(asked), "{record}");
    }

    #[test]
    fn times_are_written_as_timestamps_display_them() {
        let mut records = FailureRecords::of(ORDERS);
        for millis in (1_789_400_814_145..).step_by(7_919).take(500) {
            let now = Timestamp::from_millis(millis);
            let mut text = String::new();
            records.write_time(now, &mut text);
            assert_eq!(text, now.to_string());
        }
    }
}
