//! `comeback dead`: the dead-letters of the dead-letter queue, read, sent back to the retry queue, and discarded.
//!
//! SQS cannot list a queue: a dead-letter must be received, which hides it from everybody. So each command receives
//! every dead-letter once, hides it for [`HIDDEN_FOR`](queue::HIDDEN_FOR), and in the end gives back what it did not
//! delete. It deletes a dead-letter only once the dead-letter is accepted elsewhere. A command killed at any moment
//! loses nothing: hidden dead-letters become visible again, and at most the dead-letters at hand get a second
//! copy, with the same keys.

pub(crate) mod dead_letters;
pub(crate) mod discard;
pub(crate) mod filter;
pub(crate) mod import;
#[cfg(test)]
mod kills;
pub(crate) mod plan;
mod queue;
pub(crate) mod reading;
pub(crate) mod redrive;
mod scan;
#[cfg(test)]
pub(crate) mod simulated;
pub(crate) mod snapshot;
pub(crate) mod survey;
pub(crate) mod work;

use clap::{Args, Subcommand};

use crate::failure::CommandFailure;
use crate::operate::session::{Common, Session, without_yes};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback dead list
  comeback dead show 9d1c0a3e-6f52-4f0a-9d0b-0c8f8d5a7e11
  comeback dead redrive --error 'Timeout*' --dry-run
  comeback dead discard --older 7d --export old.jsonl";

#[derive(Debug, Args)]
pub(crate) struct DeadArguments {
    #[command(subcommand)]
    command: DeadCommand,
}

#[derive(Debug, Subcommand)]
enum DeadCommand {
    /// Count dead-letters by reason, function and error, or list them
    #[command(after_help = reading::LIST_EXAMPLES, mut_args(without_yes))]
    List(Box<reading::ListArguments>),
    /// Show one dead-letter in full, with its payload
    #[command(after_help = reading::SHOW_EXAMPLES, mut_args(without_yes))]
    Show(reading::ShowArguments),
    /// Send dead-letters back to the retry queue, where their events start over
    ///
    /// Deletes each dead-letter only once SQS has accepted its copy. If the command is killed, a few dead-letters may
    /// exist in both queues, with the same key. Run it again to continue.
    #[command(after_help = redrive::EXAMPLES)]
    Redrive(Box<redrive::RedriveArguments>),
    /// Write dead-letters to a file and delete them
    ///
    /// Deletes each dead-letter only once it is in the file on disk. `comeback dead import` restores the file.
    #[command(after_help = discard::EXAMPLES)]
    Discard(Box<discard::DiscardArguments>),
    /// Restore dead-letters from a file that `dead discard` wrote
    ///
    /// Puts them back into the dead-letter queue; redrive them from there. FILE.done records what was imported, so
    /// running the command again imports only the rest.
    #[command(after_help = import::EXAMPLES)]
    Import(import::ImportArguments),
}

impl DeadArguments {
    pub(crate) fn common(&self) -> &Common {
        match &self.command {
            DeadCommand::List(it) => &it.common,
            DeadCommand::Show(it) => &it.common,
            DeadCommand::Redrive(it) => &it.common,
            DeadCommand::Discard(it) => &it.common,
            DeadCommand::Import(it) => &it.common,
        }
    }
}

pub(crate) async fn run(arguments: &DeadArguments, session: Session) -> Result<(), CommandFailure> {
    match &arguments.command {
        DeadCommand::List(it) => reading::list(it, session).await,
        DeadCommand::Show(it) => reading::show(it, session).await,
        DeadCommand::Redrive(it) => redrive::run(it, session).await,
        DeadCommand::Discard(it) => discard::run(it, session).await,
        DeadCommand::Import(it) => import::run(it, session).await,
    }
}
