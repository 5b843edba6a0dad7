//! `comeback retry` and `comeback cancel`: retry waiting events now, or dead-letter them.

use std::time::Duration;

use clap::{ArgGroup, Args};
use comeback_engine::RequestKind;
use comeback_operate::function::FunctionName;
use comeback_operate::pauses::read_text;
use comeback_operate::request::withdraw::WithdrawRequests;
use comeback_operate::request::{DEFAULT_WITHIN, RequestEvents, read_error, read_key, read_within};

use crate::failure::CommandFailure;
use crate::operate::session::Session;
use crate::terminal::{self, coloured};

pub(crate) const RETRY_EXAMPLES: &str = "\
Examples:
  comeback retry orders --dry-run
  comeback retry orders --within 5m --why 'deploy 4712 fixes it' --watch
  comeback retry orders --error 'Timeout*' --yes
  comeback retry --all --within 2h --yes
  comeback retry --key 4f3b0c2e-54d8-4f6e-9a1e-6a3f2f4f7c11 --within 0s --yes
  comeback retry orders --withdraw";

/// Flags that choose waiting events, for `comeback retry` and `comeback cancel`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).multiple(true).args(["function", "all", "key"])))]
struct Events {
    /// Function as NAME, NAME:ALIAS, NAME:VERSION or ARN
    #[arg(value_name = "FUNCTION", conflicts_with = "all")]
    function: Option<FunctionName>,
    /// Every function
    #[arg(long)]
    all: bool,
    /// Only events whose error matches this glob, by its type (com.acme.BusyError), class name (BusyError) or simple
    /// name (Busy)
    #[arg(long, value_name = "GLOB", value_parser = read_error)]
    error: Option<String>,
    /// Only the event with this key; may be repeated up to 20 times
    #[arg(long, value_name = "KEY", value_parser = read_key)]
    key: Vec<String>,
}

impl Events {
    fn request(self, kind: RequestKind, within: Duration, why: Option<String>) -> RequestEvents {
        let Self { function, error, key, .. } = self;
        RequestEvents { kind, within, function, error, keys: key, why }
    }

    async fn withdraw(self, kind: RequestKind, session: &Session) -> Result<(), CommandFailure> {
        terminal::change(WithdrawRequests { function: self.function, kind }, session).await
    }
}

#[derive(Debug, Args)]
pub(crate) struct RetryArguments {
    #[command(flatten)]
    events: Events,
    /// Spread the retries over this time, at most 11h [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = read_within)]
    within: Option<Duration>,
    /// Follow the retries until all are made; Ctrl-C ends the watch but not the retries
    #[arg(long, conflicts_with_all = ["dry_run", "json"])]
    watch: bool,
    /// Reason, stored with the request
    #[arg(long, value_name = "TEXT", value_parser = read_text)]
    why: Option<String>,
    /// Withdraw this function's requests; with --all, withdraw the requests made with --all, and those made with --key
    /// but no function
    #[arg(long, conflicts_with_all = ["within", "error", "key", "watch", "why"])]
    withdraw: bool,
}

pub(crate) async fn retry(arguments: RetryArguments, session: Session) -> Result<(), CommandFailure> {
    let RetryArguments { events, within, watch, why, withdraw } = arguments;
    if withdraw {
        return events.withdraw(RequestKind::Retry, &session).await;
    }
    let within = within.unwrap_or(DEFAULT_WITHIN);
    let retries = events.request(RequestKind::Retry, within, why);
    let requested = terminal::changed(retries, &session).await?;
    let Some(requested) = requested.filter(|_| watch) else { return Ok(()) };
    if !requested.can_be_followed() {
        return session.say("Nothing to watch: the handler's log does not say which events wait.\n");
    }
    requested.follow(&session.operator(), |line| session.say(&(coloured(&line) + "\n"))).await
}

pub(crate) const CANCEL_EXAMPLES: &str = "\
Examples:
  comeback cancel orders --dry-run
  comeback cancel orders --error SchemaTooOld --why 'import 12 was faulty' --yes
  comeback cancel --key 4f3b0c2e-54d8-4f6e-9a1e-6a3f2f4f7c11
  comeback cancel orders --withdraw";

#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    #[command(flatten)]
    events: Events,
    /// Reason, stored with the request and in each dead-letter
    #[arg(long, value_name = "TEXT", value_parser = read_text)]
    why: Option<String>,
    /// Withdraw requests to cancel this function's events; with --all, withdraw the requests made with --all, and those
    /// made with --key but no function
    #[arg(long, conflicts_with_all = ["error", "key", "why"])]
    withdraw: bool,
}

pub(crate) async fn cancel(arguments: CancelArguments, session: Session) -> Result<(), CommandFailure> {
    let CancelArguments { events, why, withdraw } = arguments;
    if withdraw {
        return events.withdraw(RequestKind::Cancel, &session).await;
    }
    let cancel = events.request(RequestKind::Cancel, Duration::ZERO, why);
    terminal::change(cancel, &session).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::session::OnDeployment;

    #[test]
    fn the_help_names_the_default() {
        let help = OnDeployment::<RetryArguments>::augment_args(clap::Command::new("retry"))
            .render_help()
            .to_string();
        let default = comeback_operate::durations::text(DEFAULT_WITHIN);
        assert!(help.contains(&format!("at most 11h [default: {default}]")), "{help}");
    }

    #[test]
    fn flags_that_make_no_sense_are_refused() {
        let read = |arguments: &[&str]| {
            let all = ["retry", "orders"].iter().chain(arguments);
            let command = OnDeployment::<RetryArguments>::augment_args(clap::Command::new("retry"));
            command.try_get_matches_from(all).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(read(&["--within", "11h", "--error", "T*"]), Ok(()));
        assert_eq!(read(&["--withdraw"]), Ok(()));
        for (refused, why) in [
            (&["--within", "39601s"][..], "must be at most 11h, so that"),
            (&["--error", ""], "must be an error type such as Timeout*"),
            (&["--error", " "], "must be an error type such as Timeout*"),
            (&["--error", "{{T*}}"], "must not contain {{"),
            (&["--why", "{{x}}"], "must not contain {{"),
            (&["--key", ""], "must be an event's key"),
            (&["--key", "{{x}}"], "must not contain {{"),
            (&["--withdraw", "--error", "T*"], "cannot be used with"),
            (&["--withdraw", "--within", "5m"], "cannot be used with"),
        ] {
            assert!(read(refused).is_err_and(|error| error.contains(why)), "{refused:?}");
        }
    }

    #[test]
    fn cancel_flags_that_make_no_sense_are_refused() {
        let read = |arguments: &[&str]| {
            let all = ["cancel"].iter().chain(arguments);
            let command = CancelArguments::augment_args(clap::Command::new("cancel"));
            command.try_get_matches_from(all).map(drop).map_err(|error| error.to_string())
        };
        for accepted in
            [&["orders"][..], &["--all"], &["--key", "k-1", "--key", "k-2"], &["orders", "--key", "k"]]
        {
            assert_eq!(read(accepted), Ok(()), "{accepted:?}");
        }
        for (refused, why) in [
            (&[][..], "required"),
            (&["orders", "--all"], "cannot be used with"),
            (&["orders", "--error", ""], "must be an error type such as Timeout*"),
            (&["--key", ""], "must be an event's key"),
            (&["orders", "--withdraw", "--error", "T*"], "cannot be used with"),
        ] {
            assert!(read(refused).is_err_and(|error| error.contains(why)), "{refused:?}");
        }
    }
}
