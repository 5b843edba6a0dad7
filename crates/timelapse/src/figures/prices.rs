//! What AWS charges at list price: US dollars, us-east-1, first tier, without the free tier.
//! Sources: aws.amazon.com/sqs/pricing (standard queues), aws.amazon.com/lambda/pricing (arm64) and
//! aws.amazon.com/cloudwatch/pricing (standard log class).

use std::time::Duration;

use super::calls::ApiCall;

/// A million SQS requests.
const SQS_REQUESTS: f64 = 0.40;
/// A million Lambda requests.
const LAMBDA_REQUESTS: f64 = 0.20;
/// A GB-second of Lambda on arm64.
const LAMBDA_GB_SECOND: f64 = 0.000_013_333_4;
/// A GB that CloudWatch Logs takes in.
const LOGS_GB: f64 = 0.50;

/// The handler's line about a message: its ids, the target's ARN, the decision, its times and the error.
const DECISION_LINE: u64 = 430;
/// Lambda's START, END and REPORT lines of an invocation: 70, 52 and 150 bytes.
const INVOCATION_LINES: u64 = 272;

/// Memory of the retry handler in `template.yaml`, in GB.
pub const HANDLER_MEMORY_GB: f64 = 0.25;
/// Memory of the example target in `template.yaml`, in GB. Your own target's may be another.
pub const TARGET_MEMORY_GB: f64 = 0.125;

/// The price of so many requests of a call, in US dollars.
pub fn requests(call: ApiCall, requests: u64) -> f64 {
    let a_million = match call {
        ApiCall::InvokeHandler | ApiCall::InvokeTarget => LAMBDA_REQUESTS,
        ApiCall::SendMessage
        | ApiCall::ReceiveMessage
        | ApiCall::ChangeMessageVisibilityBatch
        | ApiCall::DeleteMessageBatch
        | ApiCall::SendMessageBatch
        | ApiCall::SendAgain
        | ApiCall::Look => SQS_REQUESTS,
        // Standard parameters at the standard throughput are free: aws.amazon.com/systems-manager/pricing.
        ApiCall::ReadPauses => 0.0,
    };
    requests as f64 / 1e6 * a_million
}

/// GB-seconds of so many invocations. Lambda bills each in whole milliseconds.
pub fn gb_seconds(invocations: u64, run_time: Duration, memory_gb: f64) -> f64 {
    invocations as f64 * run_time.as_millis() as f64 / 1e3 * memory_gb
}

/// The price of so many GB-seconds, in US dollars.
pub fn compute(gb_seconds: f64) -> f64 {
    gb_seconds * LAMBDA_GB_SECOND
}

/// Bytes that the handler's decisions and the invocations, of the handler and of the target, write to
/// the log.
pub(crate) fn log_bytes(decisions: u64, invocations: u64) -> u64 {
    decisions * DECISION_LINE + invocations * INVOCATION_LINES
}

/// The price of so many bytes in the log, in US dollars.
pub fn logs(bytes: u64) -> f64 {
    bytes as f64 / 1e9 * LOGS_GB
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_of_each() {
        assert!((requests(ApiCall::ReceiveMessage, 1_000_000) - 0.40).abs() < 1e-12);
        assert!((requests(ApiCall::InvokeTarget, 1_000_000) - 0.20).abs() < 1e-12);
        let gb_seconds = gb_seconds(1_000_000, Duration::from_millis(100), HANDLER_MEMORY_GB);
        assert!((gb_seconds - 25_000.0).abs() < 1e-6);
        assert!((compute(gb_seconds) - 0.333_335).abs() < 1e-9);
    }

    /// Two decisions a retry, a tenth of two batches, and the retry's own invocation.
    #[test]
    fn a_million_retries_in_full_batches_log_for_six_tenths_of_a_dollar() {
        let usd = logs(log_bytes(2_000_000, 200_000 + 1_000_000));
        assert!((usd - 0.593_2).abs() < 1e-9, "{usd}");
    }
}
