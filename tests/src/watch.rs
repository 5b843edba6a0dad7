use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_sqs::types::Message;
use serde_json::Value;

use crate::{MiniStack, eventually};

/// Every line of JSON in a log group, in order; none while the group does not exist.
pub async fn log_lines(ministack: &MiniStack, group: &str) -> Vec<Value> {
    let mut pages = ministack.logs.filter_log_events().log_group_name(group).into_paginator().send();
    let mut lines = Vec::new();
    while let Some(Ok(page)) = pages.next().await {
        let messages = page.events().iter().filter_map(|event| event.message());
        lines.extend(messages.filter_map(|message| serde_json::from_str::<Value>(message).ok()));
    }
    lines
}

/// A message of a dead-letter queue.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// As it stands.
    pub body: String,
    /// The string values of its message attributes.
    pub attributes: BTreeMap<String, String>,
}

/// Waits for a message of a dead-letter queue. Leaves all of them there, and visible; a queue of more than ten is not
/// seen whole.
///
/// # Panics
///
/// If it does not come within a minute.
pub async fn dead_letter(
    ministack: &MiniStack,
    queue_url: &str,
    what: &str,
    is_it: impl Fn(&DeadLetter) -> bool,
) -> DeadLetter {
    eventually(&format!("{what} in the dead-letter queue"), Duration::from_secs(60), async || {
        let received = ministack
            .sqs
            .receive_message()
            .queue_url(queue_url)
            .max_number_of_messages(10)
            .visibility_timeout(0)
            .message_attribute_names("All")
            .send()
            .await
            .expect("SQS answers");
        received.messages().iter().map(DeadLetter::of).find(&is_it)
    })
    .await
}

impl DeadLetter {
    fn of(message: &Message) -> Self {
        let attributes = message.message_attributes().into_iter().flatten();
        Self {
            body: message.body().unwrap_or_default().to_owned(),
            attributes: attributes
                .map(|(name, value)| (name.clone(), value.string_value().unwrap_or_default().to_owned()))
                .collect(),
        }
    }
}
