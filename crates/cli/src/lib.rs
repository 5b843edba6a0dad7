//! The `comeback` command, as a library so that its parts can be tested.
//!
//! | file | holds |
//! |---|---|
//! | `arguments` | every flag, and which go together |
//! | `policy_flags` | the policy's flags, read in the retry handler's own words |
//! | `duration`, `rate` | durations and rates as text, both ways |
//! | `fault_flags` | what goes wrong in a simulation |
//! | `simulate` | `comeback replay`: a day in fast motion |
//! | `seeds` | `comeback replay --seeds N`: many of them |
//! | `repeat` | the command that makes a run again |
//! | `summary_table`, `histogram`, `minutes_csv` | its figures, for people and for programs |
//! | `event_file` | [`EventFile`]: what a JSON file is, and when its last message is due |
//! | `replay_files` | `comeback replay FILE…`: the handler on recorded events |
//! | `file_report` | [`FileReport`]: its decisions and calls |
//! | `shift` | `comeback event FILE`: a copy whose moment is now |
//! | `contention` | `comeback simulate`: backoff strategies compared on one contended row |
//! | `schedule` | `comeback schedule`: what a policy means, as a table and two pictures |
//! | `svg`, `count_axis`, `time_axis` | what plots share |
//! | `report` | a page about a run |
//! | `clock` | the one file that asks what time it is |
//! | `failure` | how the command ends when it does not work |

mod arguments;
mod clock;
mod contention;
mod count_axis;
mod duration;
mod event_file;
mod failure;
mod fault_flags;
mod file_report;
mod histogram;
mod minutes_csv;
mod policy_flags;
mod rate;
mod repeat;
mod replay_files;
mod report;
mod schedule;
mod seeds;
mod shift;
mod simulate;
mod summary_table;
mod svg;
mod time_axis;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

pub use event_file::{BadFile, EventFile, Messages};
pub use file_report::{Decision, FileReport, Handled, Hidden, Letter, MadeCall};
pub use shift::shifted;

/// What `--target-functions` allows in `comeback replay FILE…` by default: the function of the
/// samples in `events/`.
pub const SAMPLE_TARGET: &str = "arn:aws:lambda:eu-west-1:123456789012:function:flaky-target";

/// Runs the command. Exit codes: 0 it worked, 1 a file could not be read or written, 2 the
/// arguments were refused, 3 a replay broke an invariant.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Replay(replay) => match replay.checked() {
            Err(error) => error.exit(),
            Ok(()) if replay.files.is_empty() => simulate::simulate(&replay),
            Ok(()) => replay_files::replay_files(&replay),
        },
        Command::Event(event) => shift::print_shifted(&event),
        Command::Simulate(simulate) => contention::simulate(&simulate),
        Command::Schedule(arguments) => schedule::schedule(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
