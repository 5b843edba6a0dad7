//! AWS's list prices in US dollars: us-east-1, first tier, no free tier. Sources: aws.amazon.com/sqs/pricing (standard
//! queues), aws.amazon.com/lambda/pricing (arm64) and aws.amazon.com/cloudwatch/pricing (standard log class).

use std::time::Duration;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::scenario::Scenario;

/// Price of a million SQS requests.
const SQS_REQUESTS: f64 = 0.40;
/// Payload size that SQS bills as one request, in bytes.
const SQS_CHUNK: usize = 64 * 1_024;
/// Price of a million Lambda requests.
const LAMBDA_REQUESTS: f64 = 0.20;
/// Price of a GB-second of Lambda on arm64.
const LAMBDA_GB_SECOND: f64 = 0.000_013_333_4;
/// Price of a GB ingested by CloudWatch Logs.
const LOGS_GB: f64 = 0.50;

/// Bytes in the handler's line about a message: its ids, the target's ARN, the decision, its times and the error.
const DECISION_LINE: u64 = 430;
/// Bytes in Lambda's START, END and REPORT lines of an invocation: 70, 52 and 150.
const INVOCATION_LINES: u64 = 272;

/// Memory of the retry handler in `template.yaml`, in GB.
pub const HANDLER_MEMORY_GB: f64 = 0.25;
/// Memory of the example target in `template.yaml`, in GB. Your own target's may differ.
pub const TARGET_MEMORY_GB: f64 = 0.125;

/// Enough batches that no part of a cent is lost.
const BATCHES: u64 = 100_000;

texts! {
    /// An API call that Comeback causes and AWS bills. The target's first invocations are not among them.
    pub enum ApiCall;
    /// `service:Operation`. The two kinds of `Invoke` add the function.
    pub fn name;

    /// Lambda writes an invocation record to the retry queue.
    SendMessage = "sqs:SendMessage",
    /// The event source mapping polls, empty polls included.
    ReceiveMessage = "sqs:ReceiveMessage",
    /// The handler hides messages.
    ChangeMessageVisibilityBatch = "sqs:ChangeMessageVisibilityBatch",
    /// The mapping deletes the settled messages of a batch.
    DeleteMessageBatch = "sqs:DeleteMessageBatch",
    /// The handler dead-letters.
    SendMessageBatch = "sqs:SendMessageBatch",
    /// The handler moves messages: it sends them to the retry queue again.
    SendAgain = "sqs:SendMessageBatch (retry queue)",
    /// The handler asks how many messages are in flight.
    GetQueueAttributes = "sqs:GetQueueAttributes",
    /// The handler reads the pauses.
    ReadPauses = "ssm:GetParameter",
    /// The mapping invokes the retry handler.
    InvokeHandler = "lambda:Invoke (retry handler)",
    /// The handler invokes the target.
    InvokeTarget = "lambda:Invoke (target)",
}

/// Number of calls to each API, and of the requests that AWS bills for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    calls: [u64; ApiCall::ALL.len()],
    requests: [u64; ApiCall::ALL.len()],
}

impl CallCounts {
    /// Number of these calls.
    pub const fn of(&self, call: ApiCall) -> u64 {
        self.calls[call as usize]
    }

    /// Number of requests billed for these calls: more than one for a call with a large payload.
    pub const fn requests(&self, call: ApiCall) -> u64 {
        self.requests[call as usize]
    }

    /// Adds calls that are billed as one request each.
    pub(crate) const fn add(&mut self, call: ApiCall, calls: u64) {
        self.calls[call as usize] += calls;
        self.requests[call as usize] += calls;
    }

    /// Adds a call with this many bytes of payload.
    pub(crate) fn add_carrying(&mut self, call: ApiCall, bytes: usize) {
        self.calls[call as usize] += 1;
        self.requests[call as usize] += chunks(bytes);
    }
}

/// Requests that SQS bills for a call with this many bytes of payload.
fn chunks(bytes: usize) -> u64 {
    bytes.div_ceil(SQS_CHUNK).max(1) as u64
}

/// An object from a call's name to its count. Without pauses, it omits their reads.
impl Serialize for CallCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let is_shown = |call: &ApiCall| *call != ApiCall::ReadPauses || self.of(*call) > 0;
        for call in ApiCall::ALL.into_iter().filter(is_shown) {
            map.serialize_entry(call.name(), &self.of(call))?;
        }
        map.end()
    }
}

/// Price of requests, in US dollars.
pub fn requests(call: ApiCall, requests: u64) -> f64 {
    let a_million = match call {
        ApiCall::InvokeHandler | ApiCall::InvokeTarget => LAMBDA_REQUESTS,
        // Standard parameters at the standard throughput are free: aws.amazon.com/systems-manager/pricing.
        ApiCall::ReadPauses => 0.0,
        _ => SQS_REQUESTS,
    };
    requests as f64 / 1e6 * a_million
}

/// GB-seconds of invocations. Lambda bills each in whole milliseconds.
pub fn gb_seconds(invocations: u64, run_time: Duration, memory_gb: f64) -> f64 {
    invocations as f64 * run_time.as_millis() as f64 / 1e3 * memory_gb
}

/// Price of GB-seconds, in US dollars.
pub fn compute(gb_seconds: f64) -> f64 {
    gb_seconds * LAMBDA_GB_SECOND
}

/// Bytes in the log: the handler's decisions, and Lambda's lines about invocations of the handler and the target.
pub(crate) fn log_bytes(decisions: u64, invocations: u64) -> u64 {
    decisions * DECISION_LINE + invocations * INVOCATION_LINES
}

/// Price of bytes in the log, in US dollars.
pub fn logs(bytes: u64) -> f64 {
    bytes as f64 / 1e9 * LOGS_GB
}

/// Price of a retry in a full batch of small messages. Its record is sent, and received twice: once to be hidden, and
/// once to be hidden, re-invoked and deleted.
pub fn usd_a_retry() -> f64 {
    let Scenario { handler_run_time, run_time, batch_size, .. } = Scenario::default();
    let retries = BATCHES * batch_size as u64;
    let calls = [
        (ApiCall::SendMessage, retries),
        (ApiCall::InvokeTarget, retries),
        (ApiCall::ReceiveMessage, 2 * BATCHES),
        (ApiCall::InvokeHandler, 2 * BATCHES),
        (ApiCall::ChangeMessageVisibilityBatch, 2 * BATCHES),
        (ApiCall::DeleteMessageBatch, BATCHES),
    ];
    let gb_seconds = gb_seconds(2 * BATCHES, handler_run_time, HANDLER_MEMORY_GB)
        + gb_seconds(retries, run_time, TARGET_MEMORY_GB);
    usd(&calls, gb_seconds, log_bytes(2 * retries, 2 * BATCHES + retries)) / retries as f64
}

/// Price of a move in a full batch of small messages, whose moves share a log line.
pub(crate) fn usd_a_move() -> f64 {
    let Scenario { handler_run_time, batch_size, .. } = Scenario::default();
    let calls = [
        ApiCall::ChangeMessageVisibilityBatch,
        ApiCall::SendAgain,
        ApiCall::ReceiveMessage,
        ApiCall::InvokeHandler,
        ApiCall::DeleteMessageBatch,
    ]
    .map(|call| (call, BATCHES));
    let gb_seconds = gb_seconds(BATCHES, handler_run_time, HANDLER_MEMORY_GB);
    usd(&calls, gb_seconds, log_bytes(BATCHES, BATCHES)) / (BATCHES * batch_size as u64) as f64
}

pub(super) fn usd(calls: &[(ApiCall, u64)], gb_seconds: f64, log_bytes: u64) -> f64 {
    let requests: f64 = calls.iter().map(|&(call, made)| requests(call, made)).sum();
    requests + compute(gb_seconds) + logs(log_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_64_kib_are_billed_as_a_request() {
        assert_eq!([0, 1, 65_536, 65_537, 1_048_576].map(chunks), [1, 1, 1, 2, 16]);
    }

    #[test]
    fn a_million_of_each() {
        assert!((requests(ApiCall::ReceiveMessage, 1_000_000) - 0.40).abs() < 1e-12);
        assert!((requests(ApiCall::InvokeTarget, 1_000_000) - 0.20).abs() < 1e-12);
        let gb_seconds = gb_seconds(1_000_000, Duration::from_millis(100), HANDLER_MEMORY_GB);
        assert!((compute(gb_seconds) - 0.333_335).abs() < 1e-9);
        // Two decisions a retry, a tenth of two batches, and the retry's own invocation.
        assert!((logs(log_bytes(2_000_000, 200_000 + 1_000_000)) - 0.593_2).abs() < 1e-9);
    }

    /// A tenth of four SQS requests, 0.16 USD a million; of an invocation, 0.02; of 0.1 s of 0.25 GB,
    /// 0.033,333,5; and of 702 bytes of log, 0.0351.
    #[test]
    fn a_million_moves_cost_a_quarter_of_a_dollar() {
        assert!((usd_a_move() * 1e6 - 0.248_433_5).abs() < 1e-9, "{}", usd_a_move());
    }
}
