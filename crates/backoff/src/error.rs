//! The error of a refused setting.

use alloc::string::{String, ToString};
use core::fmt;

/// A setting was refused. The message names it, its value and what it must be; nothing is clamped or rounded instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackoffError(String);

impl BackoffError {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

impl fmt::Display for BackoffError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for BackoffError {}
