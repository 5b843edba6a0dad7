//! AWS's list prices in US dollars for us-east-1: the first pricing tier, without the free tier. Sources:
//! aws.amazon.com/sqs/pricing (standard queues), aws.amazon.com/lambda/pricing (arm64) and
//! aws.amazon.com/cloudwatch/pricing (standard log class).

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::scenario::Scenario;

/// Price per million SQS requests, in US dollars.
const SQS_REQUESTS: f64 = 0.40;
/// Payload size that SQS bills as one request, in bytes.
const SQS_CHUNK: usize = 64 * 1_024;
/// Price per million Lambda requests, in US dollars.
const LAMBDA_REQUESTS: f64 = 0.20;
/// Lambda's price per GB-second on arm64, in US dollars.
const LAMBDA_GB_SECOND: f64 = 0.000_013_333_4;
/// Price per GB of log data ingested into CloudWatch Logs, in US dollars.
const LOGS_GB: f64 = 0.50;

/// The length, in bytes, of the line that the handler logs for a message.
const DECISION_LINE: u64 = 430;
/// Total bytes of Lambda's START, END and REPORT log lines for an invocation: 70, 52 and 150.
const INVOCATION_LINES: u64 = 272;

/// Memory of the retry handler in `template.yaml`, in GB.
pub const HANDLER_MEMORY_GB: f64 = 0.25;
/// Memory of the example target in `template.yaml`, in GB.
pub const TARGET_MEMORY_GB: f64 = 0.125;

/// Number of batches over which a price is averaged.
const BATCHES: u64 = 100_000;

texts! {
    /// A kind of API call that Comeback causes and AWS bills.
    pub enum ApiCall;
    /// Name of the call as `service:Operation`, with a note in parentheses if two calls share an operation.
    pub fn name;

    /// Lambda sends an invocation record to the retry queue.
    SendMessage = "sqs:SendMessage",
    /// The event source mapping polls the retry queue; empty polls are included.
    ReceiveMessage = "sqs:ReceiveMessage",
    /// The handler hides messages.
    ChangeMessageVisibilityBatch = "sqs:ChangeMessageVisibilityBatch",
    /// The event source mapping deletes a batch's messages, except those that the handler reported as failed.
    DeleteMessageBatch = "sqs:DeleteMessageBatch",
    /// The handler sends dead-letters.
    SendMessageBatch = "sqs:SendMessageBatch",
    /// The handler moves messages: it sends them to the retry queue again.
    SendAgain = "sqs:SendMessageBatch (retry queue)",
    /// The handler counts the messages in flight.
    GetQueueAttributes = "sqs:GetQueueAttributes",
    /// The handler reads the pauses parameter.
    ReadPauses = "ssm:GetParameter",
    /// The event source mapping invokes the retry handler.
    InvokeHandler = "lambda:Invoke (retry handler)",
    /// The handler invokes the target.
    InvokeTarget = "lambda:Invoke (target)",
}

/// Number of calls to each API, and number of requests that AWS bills for these calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    calls: [u64; ApiCall::ALL.len()],
    requests: [u64; ApiCall::ALL.len()],
}

impl CallCounts {
    /// Number of calls of this kind.
    pub const fn of(&self, call: ApiCall) -> u64 {
        self.calls[call as usize]
    }

    /// Number of requests billed for these calls; a call with a large payload counts as several.
    pub const fn requests(&self, call: ApiCall) -> u64 {
        self.requests[call as usize]
    }

    pub(crate) const fn add(&mut self, call: ApiCall, calls: u64) {
        self.calls[call as usize] += calls;
        self.requests[call as usize] += calls;
    }

    /// Counts one call that carries this many bytes.
    pub(crate) fn add_carrying(&mut self, call: ApiCall, bytes: usize) {
        self.calls[call as usize] += 1;
        self.requests[call as usize] += chunks(bytes);
    }
}

fn chunks(bytes: usize) -> u64 {
    bytes.div_ceil(SQS_CHUNK).max(1) as u64
}

/// Serializes as an object that maps each call's name to its count. Leaves out the call that reads the pauses if its
/// count is 0.
impl Serialize for CallCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_shown = |call: &ApiCall| *call != ApiCall::ReadPauses || self.of(*call) > 0;
        let shown = ApiCall::ALL.into_iter().filter(is_shown);
        serializer.collect_map(shown.map(|call| (call.name(), self.of(call))))
    }
}

/// Price of this many billed requests to an API, in US dollars.
pub fn requests(call: ApiCall, requests: u64) -> f64 {
    let a_million = match call {
        ApiCall::InvokeHandler | ApiCall::InvokeTarget => LAMBDA_REQUESTS,
        // Standard parameters at the standard throughput are free: aws.amazon.com/systems-manager/pricing.
        ApiCall::ReadPauses => 0.0,
        _ => SQS_REQUESTS,
    };
    requests as f64 / 1e6 * a_million
}

/// Compute used by this many invocations, in GB-seconds.
pub fn gb_seconds(invocations: u64, run_time: Duration, memory_gb: f64) -> f64 {
    invocations as f64 * run_time.as_millis() as f64 / 1e3 * memory_gb
}

/// Price for this many GB-seconds of compute, in US dollars.
pub fn compute(gb_seconds: f64) -> f64 {
    gb_seconds * LAMBDA_GB_SECOND
}

/// Estimates how many bytes the functions log for the given numbers of decisions and invocations.
pub(crate) fn log_bytes(decisions: u64, invocations: u64) -> u64 {
    decisions * DECISION_LINE + invocations * INVOCATION_LINES
}

/// Price of writing this many bytes to CloudWatch Logs, in US dollars.
pub fn logs(bytes: u64) -> f64 {
    bytes as f64 / 1e9 * LOGS_GB
}

/// Price of one retry in a full batch of small messages, in US dollars.
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

/// Price of one move in a full batch of small messages, in US dollars.
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
        // A million retries need two million decisions, 200,000 invocations of the handler, and a million invocations
        // of the target.
        assert!((logs(log_bytes(2_000_000, 200_000 + 1_000_000)) - 0.593_2).abs() < 1e-9);
    }

    /// Ten million moves in batches of ten cost 1.6 (SQS) + 0.2 (invocations) + 0.333335 (compute) + 0.351 (logs) USD.
    #[test]
    fn a_million_moves_cost_a_quarter_of_a_dollar() {
        assert!((usd_a_move() * 1e6 - 0.248_433_5).abs() < 1e-9, "{}", usd_a_move());
    }
}
