//! What AWS charges at list price: US dollars, us-east-1, first tier, without the free tier.
//! Sources: aws.amazon.com/sqs/pricing (standard queues) and aws.amazon.com/lambda/pricing (arm64).

use std::time::Duration;

use super::calls::ApiCall;

/// A million SQS requests. A request is a call with up to 64 KB; the simulated batches are smaller.
const SQS_REQUESTS: f64 = 0.40;
/// A million Lambda requests.
const LAMBDA_REQUESTS: f64 = 0.20;
/// A GB-second of Lambda on arm64.
const LAMBDA_GB_SECOND: f64 = 0.000_013_333_4;

/// Memory of the retry handler in `template.yaml`, in GB.
pub const HANDLER_MEMORY_GB: f64 = 0.25;
/// Memory of the example target in `template.yaml`, in GB. Your own target's may be another.
pub const TARGET_MEMORY_GB: f64 = 0.125;

/// The price of so many calls, in US dollars.
pub fn requests(call: ApiCall, calls: u64) -> f64 {
    let a_million = match call {
        ApiCall::InvokeHandler | ApiCall::InvokeTarget => LAMBDA_REQUESTS,
        ApiCall::SendMessage
        | ApiCall::ReceiveMessage
        | ApiCall::ChangeMessageVisibilityBatch
        | ApiCall::DeleteMessageBatch
        | ApiCall::SendMessageBatch => SQS_REQUESTS,
    };
    calls as f64 / 1e6 * a_million
}

/// GB-seconds of so many invocations. Lambda bills each in whole milliseconds.
pub fn gb_seconds(invocations: u64, run_time: Duration, memory_gb: f64) -> f64 {
    invocations as f64 * run_time.as_millis() as f64 / 1e3 * memory_gb
}

/// The price of so many GB-seconds, in US dollars.
pub fn compute(gb_seconds: f64) -> f64 {
    gb_seconds * LAMBDA_GB_SECOND
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
}
