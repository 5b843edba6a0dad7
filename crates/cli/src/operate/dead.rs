//! `comeback dead`: the letters of the dead-letter queue, read, sent back to the retry queue, and discarded.
//!
//! SQS cannot list a queue: a letter must be received, which hides it from everybody. So each command receives every
//! letter once, hides it for [`HIDDEN_FOR`](queue::HIDDEN_FOR), and in the end gives back what it did not delete. It
//! deletes a letter only once the letter is accepted elsewhere. A command killed at any moment loses nothing: hidden
//! letters become visible by themselves, and at most the letters at hand get a second copy, with the same keys.

mod discard;
mod filter;
mod import;
#[cfg(test)]
mod kills;
mod plan;
mod queue;
mod reading;
mod redrive;
mod scan;
#[cfg(test)]
mod simulated;
mod survey;
mod work;

pub(crate) use queue::HIDDEN_FOR;

use clap::{Args, Subcommand};

use crate::failure::CommandFailure;
use crate::operate::session::{Common, Session};

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
    /// Count the letters by reason, function and error, or list them one by one
    #[command(after_help = reading::LIST_EXAMPLES)]
    List(Box<reading::ListArguments>),
    /// Show one letter whole, with its payload
    #[command(after_help = reading::SHOW_EXAMPLES)]
    Show(reading::ShowArguments),
    /// Send letters back to the retry queue, where their events start over
    ///
    /// Each letter is sent, seen accepted, and deleted. If this command is killed at any moment, at most the letters at
    /// hand get a second copy, with the same keys. Repeating it goes on where it was.
    #[command(after_help = redrive::EXAMPLES)]
    Redrive(Box<redrive::RedriveArguments>),
    /// Write letters to a file and delete them
    ///
    /// A letter is deleted only when the file is on disk with it. `comeback dead import` brings the file back.
    #[command(after_help = discard::EXAMPLES)]
    Discard(Box<discard::DiscardArguments>),
    /// Bring the letters of a file back that `dead discard` wrote
    ///
    /// They are letters of the dead-letter queue again; redrive them from there. What was imported is recorded in
    /// FILE.done, so that repeating the command imports only what is missing.
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
