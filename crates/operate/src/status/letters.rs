use std::collections::BTreeSet;

use aws_sdk_sqs::types::MessageSystemAttributeName;
use comeback_engine::Timestamp;
use serde::Serialize;

use crate::status::Depth;
use crate::trace::story::text;
use crate::{Account, Deployment, Failure};

/// Each receives ten letters at most.
const RECEIVES: usize = 10;

/// The oldest dead-letter among those that were looked at. CloudWatch's own age forgets letters that were received three
/// times, so it is taken from the letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OldestLetter {
    /// When it was sent to the queue. SQS deletes it 14 days later.
    #[serde(serialize_with = "text")]
    pub sent: Timestamp,
    /// How long ago that is.
    pub age_seconds: u64,
    /// Whether every letter was looked at; if not, there may be an older one.
    pub is_exact: bool,
}

impl OldestLetter {
    /// Looks at up to a hundred letters, and hides none of them.
    pub(super) async fn find(
        account: &Account,
        deployment: &Deployment,
        depth: &Depth,
        now: Timestamp,
    ) -> Result<Option<Self>, Failure> {
        let mut seen = BTreeSet::new();
        let mut oldest: Option<Timestamp> = None;
        for _ in 0..RECEIVES {
            if seen.len() as u64 >= depth.total() {
                break;
            }
            let call = account
                .sqs
                .receive_message()
                .queue_url(&deployment.dead_letter_queue.url)
                .max_number_of_messages(10)
                .visibility_timeout(0)
                .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
            let answer = call.send().await.map_err(|error| {
                Failure::of_call("sqs:ReceiveMessage", deployment.dead_letter_queue.name(), &error)
            })?;
            for message in answer.messages() {
                let attributes = message.attributes();
                let sent = attributes
                    .and_then(|it| it.get(&MessageSystemAttributeName::SentTimestamp)?.parse().ok());
                let sent = sent.map(Timestamp::from_millis);
                oldest = oldest.into_iter().chain(sent).min();
                seen.insert(message.message_id().unwrap_or_default().to_owned());
            }
        }
        let is_exact = seen.len() as u64 >= depth.total();
        Ok(oldest.map(|sent| Self { sent, age_seconds: 0, is_exact }.aged(now)))
    }

    pub(super) fn aged(self, now: Timestamp) -> Self {
        Self { age_seconds: now.since(self.sent).as_secs(), ..self }
    }
}
