use std::time::Duration;

use clap::Args;
use comeback_operate::FunctionName;
use comeback_operate::dead::{Filter, PayloadTest, ReasonName, RetriesTest};

use crate::text::durations;

/// Which letters. Messages that are none of Comeback's are taken only without any of these.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which letters (all that is given must hold)")]
pub(crate) struct FilterFlags {
    /// Given up for this reason, such as max_age; max_receive_count is what SQS's own redrive took
    #[arg(long, value_name = "REASON")]
    reason: Option<ReasonName>,
    /// Of this function; without a qualifier, of any of its versions and aliases
    #[arg(long, value_name = "FUNCTION")]
    target: Option<FunctionName>,
    /// With an error type like this: * stands for any text, ? for one character
    #[arg(long, value_name = "GLOB")]
    error: Option<String>,
    /// Given up longer ago than this
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    older: Option<Duration>,
    /// Given up more recently than this
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    newer: Option<Duration>,
    /// After so many retries: '>5', '>=5', '<5', '<=5' or '5'
    #[arg(long, value_name = "TEST")]
    retries: Option<RetriesTest>,
    /// Of this event
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// With this value in the payload, as in '/customer/id=42'. May be repeated
    #[arg(long, value_name = "POINTER=VALUE")]
    payload: Vec<PayloadTest>,
}

impl FilterFlags {
    pub(crate) fn filter(&self) -> Filter {
        let Self { reason, target, error, older, newer, retries, key, payload } = self.clone();
        Filter { reason, target, error, older, newer, retries, key, payload }
    }
}
