use clap::Args;
use comeback_engine::{Policy, SettingError};

/// The retry handler's policy variables as flags. They pass as text through the handler's own
/// reader, so they mean the same and are refused with the same words.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Policy (the retry handler's variables)")]
pub(crate) struct PolicyFlags {
    /// MAX_AGE: no retry later than this after the first failure; 60s to 14d [default: 24h]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    max_age: Option<String>,
    /// MAX_RETRIES: re-invocations of one event at most; 0 to 10000 [default: 185]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_retries: Option<String>,
    /// BASE_BACKOFF: ceiling of the first backoff; 1s to MAX_BACKOFF [default: 1s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    base_backoff: Option<String>,
    /// MAX_BACKOFF: cap of every backoff; 1s to 43170s [default: 43170s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    max_backoff: Option<String>,
    /// JITTER: full, equal, decorrelated or none [default: full]
    #[arg(long, value_name = "NAME")]
    jitter: Option<String>,
    /// ENVELOPE: wrap or inline [default: wrap]
    #[arg(long, value_name = "STYLE")]
    envelope: Option<String>,
    /// NON_RETRYABLE_ERRORS: errorType globs that are dead-lettered at once, comma-separated. The
    /// simulated target fails with TargetDown in the outage and with TargetFlaky after it
    #[arg(long, value_name = "GLOBS")]
    non_retryable_errors: Option<String>,
}

impl PolicyFlags {
    /// The policy, with these target functions.
    ///
    /// # Errors
    ///
    /// Every value that was refused, in the handler's words.
    pub(crate) fn policy(&self, target_functions: &str) -> Result<Policy, Vec<SettingError>> {
        Policy::from_variables(|name| match name {
            "MAX_AGE" => self.max_age.clone(),
            "MAX_RETRIES" => self.max_retries.clone(),
            "BASE_BACKOFF" => self.base_backoff.clone(),
            "MAX_BACKOFF" => self.max_backoff.clone(),
            "JITTER" => self.jitter.clone(),
            "ENVELOPE" => self.envelope.clone(),
            "NON_RETRYABLE_ERRORS" => self.non_retryable_errors.clone(),
            "TARGET_FUNCTIONS" => Some(target_functions.to_owned()),
            _ => None,
        })
    }
}
