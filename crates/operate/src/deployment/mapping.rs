//! The state of the event source mapping that feeds a handler from its retry queue.

use crate::aws::Mapping;

impl Mapping {
    /// Returns true if the mapping passes messages to the handler, or is about to do so.
    pub fn feeds(&self) -> bool {
        matches!(&*self.state, "Enabled" | "Enabling" | "Creating" | "Updating")
    }
}

#[cfg(test)]
impl Mapping {
    pub(crate) fn sample() -> Self {
        Self {
            uuid: "6ec5b0c5-0b8f-4a36-b1a4-6b1a2e2f9d10".into(),
            function_arn: "arn:aws:lambda:eu-west-1:123456789012:function:retry-handler".into(),
            queue_arn: "arn:aws:sqs:eu-west-1:123456789012:retries".into(),
            state: "Enabled".into(),
            batch_size: 10,
            window: std::time::Duration::ZERO,
            reports_failures: true,
            maximum_concurrency: Some(10),
            maximum_pollers: None,
        }
    }
}
