//! The state of a deployment on one screen.

use aws_sdk_sqs::types::QueueAttributeName;
use serde::Serialize;

use crate::{Account, Deployment, Failure};

/// The state of a deployment. Every count of SQS's is approximate, and right only a minute after the last change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// The handler's name.
    pub handler: String,
    /// The handler's stack.
    pub stack: Option<String>,
    /// Messages of the retry queue that are hidden, or in a handler's hands.
    pub in_flight: u64,
    /// Messages of the retry queue that were sent again with a delay.
    pub delayed: u64,
    /// Messages of the retry queue that the handler could receive now.
    pub due: u64,
    /// Messages of the dead-letter queue, those included that somebody reads at the moment.
    pub dead_letters: u64,
}

impl Status {
    /// Reads the state of a deployment.
    ///
    /// # Errors
    ///
    /// A call that did not work.
    pub async fn read(account: &Account, deployment: &Deployment) -> Result<Self, Failure> {
        let [due, in_flight, delayed] = depth(account, &deployment.retry_queue.url).await?;
        let dead_letters = depth(account, &deployment.dead_letter_queue.url).await?.iter().sum();
        Ok(Self {
            handler: deployment.handler.clone(),
            stack: deployment.stack.clone(),
            in_flight,
            delayed,
            due,
            dead_letters,
        })
    }
}

/// How many messages of a queue are visible, in flight and delayed.
pub(crate) async fn depth(account: &Account, url: &str) -> Result<[u64; 3], Failure> {
    let names = [
        QueueAttributeName::ApproximateNumberOfMessages,
        QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        QueueAttributeName::ApproximateNumberOfMessagesDelayed,
    ];
    let call = account.sqs.get_queue_attributes().queue_url(url).set_attribute_names(Some(names.to_vec()));
    let answer =
        call.send().await.map_err(|error| Failure::of_call("sqs:GetQueueAttributes", url, &error))?;
    let count = |name: &QueueAttributeName| {
        let text = answer.attributes().and_then(|attributes| attributes.get(name));
        text.and_then(|text| text.parse().ok())
            .ok_or_else(|| Failure::CouldNot(format!("SQS gave no {name} of {url}")))
    };
    Ok([count(&names[0])?, count(&names[1])?, count(&names[2])?])
}
