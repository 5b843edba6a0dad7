//! Names the subcommand that takes a flag or a file which the one given does not take.

use std::ffi::OsStr;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Arg, Command};

/// Adds tips to an error of the subcommand `given`: which ones take the refused argument, or which one
/// needs no file.
pub(crate) fn explained(mut error: Error, command: &Command, given: Option<&OsStr>) -> Error {
    let tips = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(argument))) => takers(command, argument),
        // What `replay` without a file did in earlier versions.
        (ErrorKind::MissingRequiredArgument, _) if given.is_some_and(|given| given == "replay") => {
            command.find_subcommand("simulate").map(|simulate| tip(simulate, "no file")).into_iter().collect()
        }
        _ => Vec::new(),
    };
    if !tips.is_empty() {
        // A flag of another subcommand is no misspelt flag of this one.
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

fn takers(command: &Command, argument: &str) -> Vec<StyledStr> {
    let flag = argument.strip_prefix("--");
    let takes = |subcommand: &&Command| match flag {
        Some(flag) => subcommand.get_opts().any(|known| known.get_long() == Some(flag)),
        None => !argument.starts_with('-') && subcommand.get_positionals().any(is_file),
    };
    let what = if flag.is_some() { argument } else { "a file" };
    command.get_subcommands().filter(takes).map(|taker| tip(taker, what)).collect()
}

fn is_file(positional: &Arg) -> bool {
    positional.get_value_names().is_some_and(|names| names.iter().any(|name| name == "FILE"))
}

/// `'comeback replay' takes a file: Run the retry handler on recorded SQS events`
fn tip(subcommand: &Command, what: &str) -> StyledStr {
    let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
    format!("'comeback {}' takes {what}: {about}", subcommand.get_name()).into()
}
