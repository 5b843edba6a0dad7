//! The flags that choose dead-letters, such as `--reason` and `--older`.

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::Args;
use comeback_operate::Failure;
use comeback_operate::dead::Filter;
use comeback_operate::dead::filter::{PayloadTest, read_reason, read_retries};
use comeback_operate::durations;
use comeback_operate::function::FunctionName;

/// Command-line flags that describe a [`Filter`].
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters (a dead-letter must match all of them)")]
pub(crate) struct FilterFlags {
    /// Reason for dead-lettering, such as max_age; it is max_receive_count if SQS itself dead-lettered the event
    #[arg(long, value_name = "REASON", value_parser = read_reason)]
    reason: Option<&'static str>,
    /// Function; without a qualifier, any of its versions and aliases
    #[arg(long, value_name = "FUNCTION")]
    target: Option<FunctionName>,
    /// Glob that the error must match, by its type (com.acme.BusyError), class name (BusyError) or simple name (Busy)
    #[arg(long, value_name = "GLOB")]
    error: Option<String>,
    /// Dead-lettered more than this long ago
    #[arg(long, value_name = "DURATION", value_parser = durations::read)]
    older: Option<Duration>,
    /// Dead-lettered less than this long ago
    #[arg(long, value_name = "DURATION", value_parser = durations::read)]
    newer: Option<Duration>,
    /// Number of retries: '>5', '>=5', '<5', '<=5' or '5'
    #[arg(long, value_name = "TEST", value_parser = read_retries)]
    retries: Option<RangeInclusive<u64>>,
    /// Only dead-letters of the event with this key, as `comeback dead list --each` shows it
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Value in the payload, such as '/customer/id=42'; repeatable
    #[arg(long, value_name = "POINTER=VALUE", value_parser = PayloadTest::read)]
    payload: Vec<PayloadTest>,
}

impl FilterFlags {
    /// Returns the names of the filter's flags, with their dashes, such as `--reason`.
    pub(crate) fn names() -> Vec<String> {
        let command = Self::augment_args(clap::Command::new("filter"));
        command.get_opts().filter_map(|flag| Some(format!("--{}", flag.get_long()?))).collect()
    }

    pub(crate) fn filter(self) -> Filter {
        let Self { reason, target, error, older, newer, retries, key, payload } = self;
        Filter { reason, target, error, older, newer, retries, key, payload }
    }

    /// Returns the filter that the flags describe. Fails unless a filter flag or `--all` is given.
    pub(crate) fn chosen(self, all: bool) -> Result<Filter, Failure> {
        let filter = self.filter();
        if !all && filter.takes_everything() {
            let flags = Self::names().join(", ");
            return Err(Failure::refused(format!(
                "which dead-letters? Choose with {flags}, or all with --all"
            )));
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    fn read(words: &[&str]) -> Result<FilterFlags, clap::Error> {
        let command = FilterFlags::augment_args(clap::Command::new("filter").no_binary_name(true));
        FilterFlags::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    #[test]
    fn a_filters_flags_are_read_back() {
        let words = [
            "--reason=max_age",
            "--target=orders:live",
            "--error=--all",
            "--older=1h",
            "--newer=7d",
            "--retries=>=6",
            "--key=k 1",
            "--payload=/id=a=b",
            "--payload=/n=1",
        ];
        assert_eq!(read(&words).unwrap().filter().flags(), words);
        let refused = read(&["--retries=many"]).unwrap_err().to_string();
        assert!(refused.contains("invalid value 'many' for '--retries <TEST>'"), "{refused}");
    }

    #[test]
    fn all_dead_letters_need_a_flag() {
        let chosen = |words: &[&str], all| read(words).unwrap().chosen(all);
        assert_eq!(chosen(&[], true), Ok(Filter::default()));
        let refused = chosen(&[], false).unwrap_err();
        assert!(refused.to_string().starts_with("which dead-letters? Choose with --reason, "), "{refused}");
        assert!(chosen(&["--error=x"], false).is_ok());
    }
}
