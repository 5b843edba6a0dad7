//! SQS: `SendMessageBatch`, `ChangeMessageVisibilityBatch`, `DeleteMessageBatch`.
//!
//! On a FIFO queue (its name ends in `.fifo`) the messages of one group go out one at a time, in the
//! order of input, and when one is left, so are those behind it. A message with a deduplication id
//! arrives once, even if it is sent again because its answer was lost. On a standard queue there is no
//! order, and a message that is sent again may arrive twice.

mod delete;
mod send;
mod visibility;

pub use delete::{DeleteMessages, Deleter};
pub use send::{Message, Receipt, SendMessages, Sender};
pub use visibility::{ChangeVisibility, Visibility, VisibilityChanger};

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::Builder;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::types::BatchResultErrorEntry;

use crate::classify::kind_of_code;
use crate::{Answer, ErrorKind, ServiceError};

/// One queue, and the caller's client.
#[derive(Clone, Debug)]
struct Queue {
    client: Client,
    url: String,
}

/// The settings of each call that differ from the client's.
fn once() -> Builder {
    Builder::new().retry_config(RetryConfig::disabled())
}

/// As SQS counts time. A part of a second counts as a whole one, so that nothing comes early; what is too
/// long SQS refuses itself.
fn whole_seconds(time: Duration) -> i32 {
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

/// The answer for each entry. An entry's id in the request is its position in it.
fn by_entry<'a, R>(
    entries: usize,
    done: impl Iterator<Item = (&'a str, R)>,
    failed: &'a [BatchResultErrorEntry],
) -> Vec<Answer<R>> {
    let mut answers: Vec<Answer<R>> = (0..entries).map(|_| Err(ServiceError::no_answer())).collect();
    let failed = failed.iter().map(|entry| (entry.id(), Err(error_of(entry))));
    for (id, answer) in done.map(|(id, receipt)| (id, Ok(receipt))).chain(failed) {
        if let Some(slot) = id.parse().ok().and_then(|index: usize| answers.get_mut(index)) {
            *slot = answer;
        }
    }
    answers
}

/// SQS itself says whether the sender is to blame, except that a throttle is always retried.
fn error_of(entry: &BatchResultErrorEntry) -> ServiceError {
    let kind = match (kind_of_code(entry.code()), entry.sender_fault()) {
        (Some(ErrorKind::Throttled), _) => ErrorKind::Throttled,
        (Some(kind), sender_fault) if kind.is_retriable() != sender_fault => kind,
        (_, true) => ErrorKind::Refused,
        (_, false) => ErrorKind::Transient,
    };
    ServiceError::new(kind, entry.code(), entry.message().unwrap_or_default())
}

#[cfg(test)]
mod tests;
