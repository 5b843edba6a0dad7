use aws_sdk_sqs::types::QueueAttributeName;
use serde::Serialize;

use crate::{Account, Failure, Queue};

/// How many messages a queue has, approximately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Depth {
    /// Those that could be received now.
    pub visible: u64,
    /// Those that are hidden, or in somebody's hands.
    pub in_flight: u64,
    /// Those that were sent with a delay.
    pub delayed: u64,
}

impl Depth {
    /// Asks SQS.
    ///
    /// # Errors
    ///
    /// The call did not work, or lacks a count.
    pub async fn read(account: &Account, queue: &Queue) -> Result<Self, Failure> {
        let names = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
            QueueAttributeName::ApproximateNumberOfMessagesDelayed,
        ];
        let call = account.sqs.get_queue_attributes().queue_url(&queue.url);
        let answer = call.set_attribute_names(Some(names.to_vec())).send().await;
        let answer =
            answer.map_err(|error| Failure::of_call("sqs:GetQueueAttributes", queue.name(), &error))?;
        let count = |name: &QueueAttributeName| {
            let text = answer.attributes().and_then(|attributes| attributes.get(name));
            text.and_then(|text| text.parse().ok())
                .ok_or_else(|| Failure::CouldNot(format!("SQS gave no {name} of {}", queue.name())))
        };
        Ok(Self { visible: count(&names[0])?, in_flight: count(&names[1])?, delayed: count(&names[2])? })
    }

    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.visible + self.in_flight + self.delayed
    }
}
