//! What the adapters share.

use std::time::Duration;

/// How the adapters' senders wait.
pub type TokioSleep = fn(Duration) -> tokio::time::Sleep;
