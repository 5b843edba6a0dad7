//! The `comeback` command, as a library, so that tests can call its parts.
//!
//! Each subcommand has a file that parses its arguments and runs it. [`comeback_rehearsal`] contains the code that
//! simulations and plans share with the console.
//!
//! | file | holds |
//! |---|---|
//! | `simulate` | `comeback simulate`: simulates a day of failures and retries |
//! | `replay` | `comeback replay FILE…`: runs the retry handler on recorded events |
//! | `schedule` | `comeback schedule`: shows when a policy retries an event |
//! | `plan` | `comeback plan`: finds the cheapest policy for a goal |
//! | `contention` | `comeback contention`: compares backoff strategies on one contended row |
//! | `operate` | the subcommands that work on a deployment, behind the feature `operate` |
//! | `ui` | `comeback ui`: starts the console, behind the feature `console` |
//! | `terminal` | prints the results of commands and carries out changes, behind the feature `operate` |
//! | `signals` | listens for Ctrl-C and SIGTERM, behind the feature `console` |
//! | `flags` | parses times in flags, and warns about policies that match no function |
//! | `input` | reads the files given to a command |
//! | `output` | writes results as JSON and as files |
//! | `tables` | tables and progress bars for a terminal |
//! | `clock` | the only file that reads the clock |
//! | `failure` | failures of the command, and their exit codes |

mod clock;
mod contention;
mod failure;
mod flags;
mod input;
#[cfg(feature = "operate")]
mod operate;
mod output;
mod plan;
mod replay;
mod schedule;
#[cfg(feature = "console")]
mod signals;
mod simulate;
mod tables;
#[cfg(feature = "operate")]
mod terminal;
#[cfg(feature = "console")]
mod ui;

use std::ffi::OsStr;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Arg, CommandFactory, Parser, Subcommand};

use comeback_rehearsal::flags::naming;
use comeback_rehearsal::plan::PlanArguments;
use comeback_rehearsal::simulate::SimulateArguments;

use contention::ContentionArguments;
use replay::ReplayArguments;
use schedule::ScheduleArguments;

pub use replay::{FileReport, Handled, MessageDecision, Recorded, SAMPLE_TARGET, last_due, shifted};

/// Rehearse Comeback's retries on this machine, and operate them in an AWS account.
#[derive(Debug, Parser)]
#[command(name = "comeback", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Simulate a day of failures and retries on a virtual clock
    ///
    /// Runs the retry handler's own code. Times are written as 200ms, 90s, 3h or plain seconds; --seed makes a run
    /// repeatable.
    #[command(
        after_help = simulate::EXAMPLES,
        mut_args(simulate::in_its_part),
        mut_arg("non-retryable-errors", naming("The simulated errors are TargetDown (in the outage), \
                                                TargetFlaky (after it) and RetryAfter"))
    )]
    Simulate(Box<SimulateArguments>),
    /// Show what the retry handler does with recorded messages
    ///
    /// Prints the handler's decision about each message and the calls that it would make. No call leaves this machine;
    /// each counts as accepted.
    #[command(after_help = replay::EXAMPLES)]
    Replay(ReplayArguments),
    /// Print when and how often a policy retries an event
    ///
    /// Runs the retry handler's own code on events that always fail, until they are dead-lettered. The figures for a
    /// retry cover only the events that reach it.
    #[command(
        after_help = schedule::EXAMPLES,
        mut_arg("non-retryable-errors", naming("The simulated error is TargetDown"))
    )]
    Schedule(ScheduleArguments),
    /// Find the cheapest policy that recovers from an outage in a given time
    ///
    /// Simulates every policy in a grid of values for MAX_BACKOFF, JITTER and BASE_BACKOFF, each with the same 1,000
    /// events, and shows the policies that no other policy beats on recovery time, retries and price.
    #[command(after_help = plan::EXAMPLES)]
    Plan(PlanArguments),
    /// Compare backoff strategies for clients that compete for one database row
    ///
    /// Repeats the experiment in "Exponential Backoff And Jitter" (AWS Architecture Blog): each client reads a row's
    /// version and writes it back; if another write came first, the client backs off (5 ms · 2ⁿ, at most 2 s, jittered)
    /// and reads again. Every network message takes |Normal(10 ms, 2 ms)|.
    #[command(after_help = contention::EXAMPLES)]
    Contention(ContentionArguments),
    #[cfg(feature = "operate")]
    #[command(flatten)]
    Operate(Box<operate::OperateCommand>),
    /// Open a console in the browser: see waiting events and dead-letters, and act on them
    ///
    /// Serves the console on this machine only, with your credentials, until you press Ctrl-C. With --demo, the console
    /// needs no account.
    #[cfg(feature = "console")]
    #[command(after_help = ui::EXAMPLES)]
    Ui(ui::UiArguments),
}

/// Runs the command with this process's arguments.
///
/// Exit codes: 0 success; 1 a file could not be read or written, or a call to AWS failed; 2 refused arguments; 3 a
/// broken invariant, a plan's goal that no policy meets, or something broken or left undone in the account; 4 not
/// confirmed; 130 interrupted.
pub fn main() -> ExitCode {
    let (result, is_json) = match parse().command {
        Command::Simulate(arguments) => (simulate::run(&arguments), arguments.json),
        Command::Replay(arguments) => (replay::run(&arguments), arguments.json),
        Command::Schedule(arguments) => (schedule::run(&arguments), arguments.json),
        Command::Plan(arguments) => (plan::run(&arguments), arguments.json),
        Command::Contention(arguments) => (contention::run(&arguments), arguments.json),
        #[cfg(feature = "operate")]
        // The session prints the command's JSON object, even after a failure, so `is_json` is false here.
        Command::Operate(command) => (command.run(), false),
        #[cfg(feature = "console")]
        Command::Ui(arguments) => (ui::run(&arguments), false),
    };
    let Err(failure) = result else { return ExitCode::SUCCESS };
    if is_json {
        // If printing the JSON object fails too, the failure is still reported on standard error.
        let _ = output::print_failure(&failure);
    }
    failure.report()
}

/// The `clap` definition of the command line, from which `examples/manual.rs` generates completions and manual pages.
#[must_use]
pub fn command_line() -> clap::Command {
    Arguments::command()
}

fn parse() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|error| {
        let given = std::env::args_os().nth(1);
        explained(error, &Arguments::command(), given.as_deref()).exit()
    })
}

/// Adds tips to `clap`'s error about the subcommand `given`.
fn explained(mut error: Error, command: &clap::Command, given: Option<&OsStr>) -> Error {
    let tips = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(argument))) => {
            takers(command, given, argument)
        }
        // In earlier versions, `replay` without a file ran a simulation.
        (ErrorKind::MissingRequiredArgument, _) if given.is_some_and(|given| given == "replay") => {
            command.find_subcommand("simulate").map(|simulate| tip(simulate, "no file")).into_iter().collect()
        }
        _ => Vec::new(),
    };
    if !tips.is_empty() {
        // The refused argument belongs to another subcommand, so clap's suggestion of a similar flag would be wrong.
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// Returns tips for an argument that the subcommand `given` refuses. They name the subcommands that accept it, or the
/// operands that `given` accepts.
fn takers(command: &clap::Command, given: Option<&OsStr>, argument: &str) -> Vec<StyledStr> {
    let Some(flag) = argument.strip_prefix("--") else {
        let given = given.and_then(|given| command.find_subcommand(given));
        if let Some(taken) = given.and_then(|given| Some(format!("only {}", words(given)?))) {
            return given.map(|given| tip(given, &taken)).into_iter().collect();
        }
        let may_be_file = argument.contains(['.', '/']) && !argument.starts_with('-');
        let takes = |it: &&clap::Command| may_be_file && it.get_positionals().any(is_file);
        return command.get_subcommands().filter(takes).map(|taker| tip(taker, "a file")).collect();
    };
    let takes = |it: &&clap::Command| it.get_opts().any(|known| known.get_long() == Some(flag));
    command.get_subcommands().filter(takes).map(|taker| tip(taker, argument)).collect()
}

/// Names of a command's operands, such as `FILE`, or `None` if it has none.
fn words(command: &clap::Command) -> Option<String> {
    let names = command.get_positionals().filter_map(Arg::get_value_names).flatten();
    let names: Vec<&str> = names.map(|name| name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

fn is_file(positional: &Arg) -> bool {
    positional.get_value_names().is_some_and(|names| names.iter().any(|name| name == "FILE"))
}

/// Returns a tip such as `'comeback replay' takes a file: Show what the retry handler does with recorded messages`.
fn tip(subcommand: &clap::Command, what: &str) -> StyledStr {
    let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
    format!("'comeback {}' takes {what}: {about}", subcommand.get_name()).into()
}
