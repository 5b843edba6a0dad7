//! The invocation record that Lambda writes to an asynchronous function's failure destination.
//! Source: "Retaining records of asynchronous invocations", AWS Lambda Developer Guide; members and
//! their order as there.

use comeback_engine::Timestamp;

use crate::TARGET_ARN;
use crate::id::Id;

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
    /// The record of a run that ended now; `payload` stands in it byte for byte.
    pub(crate) fn write(
        &mut self,
        now: Timestamp,
        request_id: Id,
        payload: &str,
        error: TargetError,
    ) -> String {
        let mut text = String::with_capacity(payload.len() + 640);
        text.push_str(r#"{"version":"1.0","timestamp":""#);
        self.write_time(now, &mut text);
        text.push_str(r#"","requestContext":{"requestId":""#);
        request_id.write(&mut text);
        text.push_str(r#"","functionArn":""#);
        text.push_str(TARGET_ARN);
        // The target's own retries are off (DESIGN: MaximumRetryAttempts 0), so one invoke is all.
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

#[cfg(test)]
mod tests {
    use comeback_engine::InvocationRecord;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    use super::*;

    const DOWN: TargetError = TargetError { error_type: "TargetDown", error_message: "the target is down" };

    #[test]
    fn is_what_lambda_writes() {
        let request_id = Id::draw(&mut Xoshiro256PlusPlus::seed_from_u64(1));
        let now = Timestamp::from_millis(1_789_400_814_145);
        let record = FailureRecords::default().write(now, request_id, r#"{"n": 1.0}"#, DOWN);
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
}
