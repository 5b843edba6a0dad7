//! What the adapters share.
//!
//! An adapter sends through the caller's own client, and switches the SDK's retries off call by call: a
//! client made anew, with retries off, would open connections of its own.

use std::time::Duration;

#[cfg(any(feature = "eventbridge", feature = "firehose", feature = "kinesis"))]
use crate::{Answer, ServiceError, classify::entry_error};

/// How the adapters' senders wait.
pub type TokioSleep = fn(Duration) -> tokio::time::Sleep;

/// The answer for an entry with this result. The service's counts of failures are ignored; the entry's
/// own result decides: an error code is a failure, an id is a success, and neither is no answer.
#[cfg(any(feature = "eventbridge", feature = "firehose", feature = "kinesis"))]
pub(crate) fn answer<R>(receipt: Option<R>, code: Option<&str>, message: Option<&str>) -> Answer<R> {
    match (code, receipt) {
        (Some(code), _) => Err(entry_error(code, message)),
        (None, Some(receipt)) => Ok(receipt),
        (None, None) => Err(ServiceError::no_answer()),
    }
}
