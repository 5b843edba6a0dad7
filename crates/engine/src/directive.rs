//! What a function says of its own retries, by the error that it fails with: the type says what, and the message of a
//! `RetryAfter` says when.
//!
//! | file | holds |
//! |---|---|
//! | `simple_name` | [`simple_name()`](simple_name::simple_name): an error's type without what a runtime puts around it |
//! | `moment` | the moment that a message names |

pub(crate) mod moment;
pub(crate) mod simple_name;

use serde_json::value::RawValue;

use crate::Timestamp;
use crate::message::json::string;
use moment::moment;
use simple_name::simple_name;

/// What a function says of its own retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    /// `RetryAfter`: the next retry is not to be made before this moment, which is after the failure.
    RetryAfter(Timestamp),
    /// `RetryAfter`, whose message names no such moment: what is wrong with it. It is as if nothing was said.
    Unreadable(&'static str),
    /// `NonRetryable`, `NonRetriable` or `NeverRetry`: there is to be no retry.
    NonRetryable,
}

impl Directive {
    /// What an error of this type says. Its message is only read if the type is `RetryAfter`. Durations count from
    /// `failed_at`.
    pub(crate) fn of(error_type: &str, message: Option<&RawValue>, failed_at: Timestamp) -> Option<Self> {
        match simple_name(error_type) {
            "RetryAfter" => Some(match message.and_then(string) {
                Some(message) => moment(&message, failed_at).map_or_else(Self::Unreadable, Self::RetryAfter),
                None => Self::Unreadable("its message is no text"),
            }),
            "NonRetryable" | "NonRetriable" | "NeverRetry" => Some(Self::NonRetryable),
            _ => None,
        }
    }
}
