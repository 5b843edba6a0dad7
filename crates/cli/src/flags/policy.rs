use clap::{Arg, Args};
use comeback_engine::{Policy, SettingError};

/// The retry handler's policy variables as flags. The handler's own reader reads them as text, so they
/// mean the same and are refused in the same words.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Policy (the retry handler's variables)")]
pub(crate) struct PolicyFlags {
    /// MAX_AGE: no retry later than this after the first failure; 60s to 14d [default: 24h]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    max_age: Option<String>,
    /// MAX_RETRIES: retries of one chain at most; 0 to 10000 [default: 185]
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
    /// DIRECTIVES: on or off, whether the target's own RetryAfter and NonRetryable are obeyed [default: on]
    #[arg(long, value_name = "ON|OFF")]
    directives: Option<String>,
    /// HIDE_UP_TO: messages hidden at once before waits are performed by sending again; 0 to 55000, or
    /// always [default: 50000]
    #[arg(long, value_name = "N")]
    hide_up_to: Option<String>,
    /// MAXIMUM_CONCURRENCY: batches under way at once, which are the pollers; 2 to 1000 [default: 10]
    #[arg(long, value_name = "N")]
    maximum_concurrency: Option<String>,
    /// NON_RETRYABLE_ERRORS: globs of the errorTypes, or of their simple names, that are dead-lettered at once, comma-separated
    #[arg(long, value_name = "GLOBS")]
    non_retryable_errors: Option<String>,
}

/// Adds to the help of `--non-retryable-errors` which errors there are where a target is simulated.
pub(crate) fn naming(errors: &'static str) -> impl Fn(Arg) -> Arg {
    move |arg| {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        arg.help(format!("{help}. {errors}"))
    }
}

impl PolicyFlags {
    /// The policy, with these target functions.
    ///
    /// # Errors
    ///
    /// Every value that was refused, in the handler's words.
    pub(crate) fn policy(&self, target_functions: &str) -> Result<Policy, Vec<SettingError>> {
        let given = self.given();
        Policy::from_variables(|name| match name {
            "TARGET_FUNCTIONS" => Some(target_functions.to_owned()),
            _ => given.iter().find(|(flag, _)| variable(flag) == name).map(|(_, value)| value.clone()),
        })
    }

    /// The flags that were given, without their dashes, and their values.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        self.clone().slots().into_iter().filter_map(|(flag, value)| Some((flag, value.take()?))).collect()
    }

    /// The same with other values for some of the flags.
    pub(crate) fn with<'a>(&self, changes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut changed = self.clone();
        for (name, value) in changes {
            let slot = changed.slots().into_iter().find(|(flag, _)| *flag == name);
            *slot.expect("BUG: a flag that there is not").1 = Some(value.to_owned());
        }
        changed
    }

    /// Every flag, without its dashes.
    pub(crate) fn names() -> [&'static str; 10] {
        Self::default().slots().map(|(flag, _)| flag)
    }

    fn slots(&mut self) -> [(&'static str, &mut Option<String>); 10] {
        [
            ("max-age", &mut self.max_age),
            ("max-retries", &mut self.max_retries),
            ("base-backoff", &mut self.base_backoff),
            ("max-backoff", &mut self.max_backoff),
            ("jitter", &mut self.jitter),
            ("envelope", &mut self.envelope),
            ("directives", &mut self.directives),
            ("hide-up-to", &mut self.hide_up_to),
            ("maximum-concurrency", &mut self.maximum_concurrency),
            ("non-retryable-errors", &mut self.non_retryable_errors),
        ]
    }
}

/// The handler's variable for a flag: `MAX_AGE` for `max-age`.
pub(crate) fn variable(flag: &str) -> String {
    flag.to_uppercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_has_its_flag() {
        let flags = PolicyFlags::default().with([("max-retries", "7"), ("jitter", "none")]);
        let policy = flags.policy(comeback_timelapse::TARGET_ARN).unwrap();
        assert_eq!((policy.max_retries(), policy.backoff().jitter.name()), (7, "none"));
    }
}
