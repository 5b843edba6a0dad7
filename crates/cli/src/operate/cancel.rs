//! `comeback cancel`: dead-letters waiting events, or withdraws earlier requests to cancel them.

use clap::Args;
use comeback_operate::pauses::read_text;
use comeback_operate::request::withdraw::WithdrawRequests;
use comeback_operate::request::{Ask, Kind, RequestEvents};

use crate::failure::CommandFailure;
use crate::operate::retry::Events;
use crate::operate::session::{Common, Session};
use crate::terminal;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback cancel orders --dry-run
  comeback cancel orders --error SchemaTooOld --why 'import 12 was faulty' --yes
  comeback cancel --key 4f3b0c2e-54d8-4f6e-9a1e-6a3f2f4f7c11
  comeback cancel orders --withdraw";

#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    #[command(flatten)]
    events: Events,
    /// Show what would be cancelled and by when, without requesting it
    #[arg(long)]
    dry_run: bool,
    /// Reason, stored with the request and in each dead-letter
    #[arg(long, value_name = "TEXT", value_parser = read_text)]
    why: Option<String>,
    /// Withdraw the requests to cancel this function's events; with --all, those made with --all, or with --key and no
    /// function
    #[arg(long, conflicts_with_all = ["error", "key", "dry_run", "why"])]
    withdraw: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &CancelArguments, session: Session) -> Result<(), CommandFailure> {
    let CancelArguments { events, dry_run, why, withdraw, .. } = arguments;
    let (operator, function) = (session.operator(), events.function.clone());
    if *withdraw {
        let withdraw = WithdrawRequests { operator, function, kind: Kind::Cancel };
        return terminal::change(withdraw, None, &session).await;
    }
    let cancel = RequestEvents {
        operator,
        ask: Ask::Cancel,
        function,
        error: events.error.clone(),
        keys: events.key.clone(),
        why: why.clone(),
    };
    terminal::change(cancel, Some(*dry_run), &session).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_make_no_sense_are_refused() {
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
