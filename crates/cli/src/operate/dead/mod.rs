//! `comeback dead`: the letters of the dead-letter queue.
//!
//! | file | holds |
//! |---|---|
//! | `filter` | the flags that say which letters |
//! | `list`, `show` | reading letters |
//! | `redrive`, `discard` | acting on letters, after a plan |
//! | `import` | bringing an export back |
//! | `plan` | a survey, and what was done, in words and in JSON |
//! | `reading` | what is said before letters are read, and the bar meanwhile |
//! | `pretty` | JSON over several lines |

mod discard;
mod filter;
mod import;
mod list;
mod plan;
mod pretty;
mod reading;
mod redrive;
mod show;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::operate::session::run_in_session;

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
    #[command(after_help = list::EXAMPLES)]
    List(Box<list::ListArguments>),
    /// Show one letter whole, with its payload
    #[command(after_help = show::EXAMPLES)]
    Show(show::ShowArguments),
    /// Send letters back to the retry queue, where their events start anew
    ///
    /// Each letter is sent, seen accepted, and deleted. If this command is killed at any moment, the most that there
    /// can be is a second copy of the letters at hand, with the same keys. Repeating it goes on where it was.
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

pub(crate) fn run(arguments: &DeadArguments) -> Result<(), Failure> {
    match &arguments.command {
        DeadCommand::List(arguments) => {
            run_in_session(&arguments.common, |session| list::run(arguments, session))
        }
        DeadCommand::Show(arguments) => {
            run_in_session(&arguments.common, |session| show::run(arguments, session))
        }
        DeadCommand::Redrive(arguments) => {
            run_in_session(&arguments.common, |session| redrive::run(arguments, session))
        }
        DeadCommand::Discard(arguments) => {
            run_in_session(&arguments.common, |session| discard::run(arguments, session))
        }
        DeadCommand::Import(arguments) => {
            run_in_session(&arguments.common, |session| import::run(arguments, session))
        }
    }
}
