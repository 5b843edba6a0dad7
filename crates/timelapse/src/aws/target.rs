//! Asynchronous invocations of the target functions, and Lambda's records of failed invocations.

use std::fmt::Write as _;
use std::time::Duration;

use comeback_engine::Timestamp;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use slab::Slab;
use uuid::Uuid;

use super::agenda::START;
use super::{draw_id, write_id};
use crate::scenario::Scenario;
use crate::targets::SimulatedTarget;

/// ARN of the target function in a run whose scenario names none; the run's allow-list must include it.
pub const TARGET_ARN: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";

pub(crate) const DOWN: TargetError = TargetError::new("TargetDown", "a dependency is not reachable");
const TIMED_OUT: TargetError = TargetError::new("Sandbox.Timedout", "Task timed out");
const OVERLOADED: TargetError = TargetError::new("TargetOverloaded", "it has no capacity left");
pub(crate) const FLAKY: TargetError = TargetError::new("TargetFlaky", "it failed by chance");

#[derive(Debug)]
struct Invocation<T> {
    carried: T,
    request_id: Uuid,
    payload: String,
    error: Option<TargetError>,
    function: usize,
}

#[derive(Debug)]
struct Function {
    outage_end: Timestamp,
    /// Number of invocations that the function can handle in a minute, on average, or `None` if unlimited.
    capacity: Option<f64>,
    /// The minute of the last invocation while the function was up, and the number of such invocations in that minute.
    taken: (u64, u32),
    records: FailureRecords,
}

/// All target functions, and their running invocations. Each invocation keeps its caller's data (`T`).
#[derive(Debug)]
pub(crate) struct Targets<T> {
    invocations: Slab<Invocation<T>>,
    functions: Vec<Function>,
    scenario: Scenario,
    ids: Xoshiro256PlusPlus,
    spare: Vec<String>,
}

impl<T> Targets<T> {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Self {
        let function = |(position, target): (usize, &SimulatedTarget)| Function {
            outage_end: scenario.outage_end(position),
            capacity: scenario.capacity_of(position),
            taken: (0, 0),
            records: FailureRecords::of(&target.arn()),
        };
        Self {
            invocations: Slab::new(),
            functions: scenario.targets.iter().enumerate().map(function).collect(),
            scenario: scenario.clone(),
            ids: Xoshiro256PlusPlus::seed_from_u64(seed),
            spare: Vec::new(),
        }
    }

    /// Starts an invocation that Lambda has accepted, and returns its index and run time. If `is_flaky`, the invocation
    /// fails even while its function is up.
    pub(crate) fn start(
        &mut self,
        now: Timestamp,
        carried: T,
        payload: String,
        function: usize,
        is_flaky: bool,
    ) -> (usize, Duration) {
        let Scenario { hang, retry_after, run_time, .. } = self.scenario;
        let is_down = self.is_down(now, function);
        let hang = hang.filter(|_| is_down);
        let mut error = if is_down {
            Some(if hang.is_some() { TIMED_OUT } else { DOWN })
        } else if !self.functions[function].takes_one_more(now) {
            Some(OVERLOADED)
        } else {
            is_flaky.then_some(FLAKY)
        };
        if let (Some(error), Some(_)) = (&mut error, retry_after) {
            (error.error_type, error.retry_after) = ("RetryAfter", retry_after);
        }
        let request_id = draw_id(&mut self.ids);
        let key = self.invocations.insert(Invocation { carried, request_id, payload, error, function });
        (key, hang.unwrap_or(run_time))
    }

    fn is_down(&self, now: Timestamp, function: usize) -> bool {
        let is_up = |turn: Duration| now.since(START).as_millis() / turn.as_millis().max(1) % 2 == 1;
        now < self.functions[function].outage_end && !self.scenario.flapping.is_some_and(is_up)
    }

    pub(crate) fn request_id(&self, key: usize) -> String {
        self.invocations[key].request_id.to_string()
    }

    /// Ends an invocation, and returns the data that it carried. If it failed, also returns the error and Lambda's
    /// invocation record.
    pub(crate) fn end(&mut self, now: Timestamp, key: usize) -> (T, Option<(TargetError, String)>) {
        let Invocation { carried, request_id, payload, error, function } = self.invocations.remove(key);
        let failure = error.map(|error| {
            let spare = self.spare.pop().unwrap_or_default();
            let failed = FailedInvocation { request_id, payload: &payload, error };
            (error, self.functions[function].records.write(now, failed, spare))
        });
        (carried, failure)
    }

    pub(crate) fn copy(&mut self, record: &str) -> String {
        let mut copy = self.spare.pop().unwrap_or_default();
        record.clone_into(&mut copy);
        copy
    }

    /// Keeps a record's buffer for reuse, which cuts the time to simulate a retry by 5 %.
    pub(crate) fn reuse(&mut self, record: String) {
        self.spare.push(record);
    }
}

impl Function {
    fn takes_one_more(&mut self, now: Timestamp) -> bool {
        let minute = now.as_secs() / 60;
        if self.taken.0 != minute {
            self.taken = (minute, 0);
        }
        self.taken.1 += 1;
        // The capacity up to the end of each minute is rounded down, so that the limits of all minutes add up to it.
        let until = |minutes: u64, capacity: f64| (minutes as f64 * capacity).floor();
        self.capacity.is_none_or(|it| f64::from(self.taken.1) <= until(minute + 1, it) - until(minute, it))
    }
}

/// The error of a failed invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetError {
    /// `errorType` in the invocation record.
    pub error_type: &'static str,
    /// `errorMessage` in the invocation record.
    pub error_message: &'static str,
    /// The wait that the target requests with `RetryAfter`, in whole seconds, or `None` if the target requests no wait.
    pub retry_after: Option<Duration>,
}

impl TargetError {
    /// Creates an error that requests no wait.
    pub const fn new(error_type: &'static str, error_message: &'static str) -> Self {
        Self { error_type, error_message, retry_after: None }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FailedInvocation<'p> {
    pub(crate) request_id: Uuid,
    pub(crate) payload: &'p str,
    pub(crate) error: TargetError,
}

/// Writes the records of failed invocations. Source of the format: "Retaining records of asynchronous invocations", AWS
/// Lambda Developer Guide.
#[derive(Debug)]
pub(crate) struct FailureRecords {
    function_arn: String,
    minute: Option<u64>,
    /// The cached start of a timestamp, up to the minute, such as `2026-09-14T15:46:`.
    minute_text: String,
}

impl FailureRecords {
    pub(crate) fn of(function_arn: &str) -> Self {
        Self { function_arn: function_arn.into(), minute: None, minute_text: String::new() }
    }

    /// Returns the record of an invocation that failed at `now`, with the payload unchanged. Reuses `text`'s buffer.
    pub(crate) fn write(&mut self, now: Timestamp, failed: FailedInvocation<'_>, mut text: String) -> String {
        let FailedInvocation { request_id, payload, error } = failed;
        text.clear();
        text.reserve_exact(payload.len() + 640);
        text.push_str(r#"{"version":"1.0","timestamp":""#);
        self.write_time(now, &mut text);
        text.push_str(r#"","requestContext":{"requestId":""#);
        write_id(request_id, &mut text);
        for part in [
            r#"","functionArn":""#,
            &self.function_arn,
            // Lambda's own retries of the target are off (MaximumRetryAttempts 0), so the invoke count is one.
            r#":$LATEST","condition":"RetriesExhausted","approximateInvokeCount":1},"requestPayload":"#,
            payload,
            r#","responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"responsePayload":{"errorType":""#,
            error.error_type,
            r#"","errorMessage":""#,
        ] {
            text.push_str(part);
        }
        if let Some(wait) = error.retry_after {
            write!(text, "{}; ", wait.as_secs()).expect("BUG: writing to a String");
        }
        text.push_str(error.error_message);
        text.push_str(r#""}}"#);
        text
    }

    /// Writes the invocation record of an event that reached its maximum age before Lambda could run the function.
    pub(crate) fn write_aged(&mut self, now: Timestamp, request_id: Uuid, payload: &str) -> String {
        let mut time = String::new();
        self.write_time(now, &mut time);
        let arn = &self.function_arn;
        format!(
            r#"{{"version":"1.0","timestamp":"{time}","requestContext":{{"requestId":"{request_id}","functionArn":"{arn}:$LATEST","condition":"EventAgeExceeded","approximateInvokeCount":0}},"requestPayload":{payload}}}"#
        )
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
        write!(text, "{:02}.{:03}Z", millis / 1_000, millis % 1_000).expect("BUG: writing to a String");
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::InvocationRecord;

    use super::*;

    const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
    const DOWN: TargetError = TargetError::new("TargetDown", "the target is down");

    #[test]
    fn a_record_is_written_as_lambda_writes_it() {
        let request_id = draw_id(&mut Xoshiro256PlusPlus::seed_from_u64(1));
        let now = Timestamp::from_millis(1_789_400_814_145);
        let another = "another record".to_owned();
        let failed = FailedInvocation { request_id, payload: r#"{"n": 1.0}"#, error: DOWN };
        let record = FailureRecords::of(ORDERS).write(now, failed, another);
        let expected = r#"{"version":"1.0","timestamp":"2026-09-14T15:46:54.145Z","requestContext":{"requestId":"ID","functionArn":"arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST","condition":"RetriesExhausted","approximateInvokeCount":1},"requestPayload":{"n": 1.0},"responseContext":{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"},"responsePayload":{"errorType":"TargetDown","errorMessage":"the target is down"}}"#;
        assert_eq!(record, expected.replace("ID", &request_id.to_string()));
        assert_eq!(InvocationRecord::read(&record).unwrap().timestamp, Some(now));
    }

    #[test]
    fn a_record_of_an_event_that_did_not_run_has_no_answer() {
        let request_id = draw_id(&mut Xoshiro256PlusPlus::seed_from_u64(1));
        let record = FailureRecords::of(ORDERS).write_aged(Timestamp::from_secs(1), request_id, "7");
        let read = InvocationRecord::read(&record).unwrap();
        assert_eq!(read.timestamp, Some(Timestamp::from_secs(1)));
        assert!(
            record.contains(r#""condition":"EventAgeExceeded""#) && !record.contains("response"),
            "{record}"
        );
    }

    #[test]
    fn requested_wait_precedes_the_message() {
        let request_id = draw_id(&mut Xoshiro256PlusPlus::seed_from_u64(1));
        let error =
            TargetError { error_type: "RetryAfter", retry_after: Some(Duration::from_secs(900)), ..DOWN };
        let failed = FailedInvocation { request_id, payload: "7", error };
        let record = FailureRecords::of(ORDERS).write(Timestamp::from_secs(1), failed, String::new());
        let asked = r#"{"errorType":"RetryAfter","errorMessage":"900; the target is down"}}"#;
        assert!(record.ends_with(asked), "{record}");
    }

    #[test]
    fn fractional_capacity_holds_over_many_minutes() {
        for (capacity, in_an_hour) in [(2.5, 150), (0.2, 12), (20.0, 600)] {
            let mut function = Function {
                outage_end: Timestamp::from_secs(0),
                capacity: Some(capacity),
                taken: (0, 0),
                records: FailureRecords::of(ORDERS),
            };
            let minutes = (0..600).map(|invocation| Timestamp::from_secs(invocation / 10 * 60));
            let taken = minutes.filter(|now| function.takes_one_more(*now)).count();
            assert_eq!(taken, in_an_hour, "{capacity} a minute");
        }
    }
}
