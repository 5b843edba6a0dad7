//! `comeback dead`: lists, shows, redrives, discards and imports dead-letters.

pub(crate) mod filter;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use comeback_operate::Failure;
use comeback_operate::dead::pace::Pace;
use comeback_operate::dead::rules::NewPayload;
use comeback_operate::dead::{Chosen, Discard, Import, Redrive, list, show};
use tempfile::TempDir;

use crate::failure::CommandFailure;
use crate::input::text_of;
use crate::operate::dead::filter::FilterFlags;
use crate::operate::session::{OnDeployment, Session, without_change_flags};
use crate::terminal;

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
    #[command(after_help = LIST_EXAMPLES, mut_args(without_change_flags))]
    List(Box<OnDeployment<ListArguments>>),
    /// Show one dead-letter in full, with its payload
    #[command(after_help = SHOW_EXAMPLES, mut_args(without_change_flags))]
    Show(OnDeployment<ShowArguments>),
    /// Send dead-letters back to the retry queue, where their events start over
    ///
    /// Deletes each dead-letter only once SQS has accepted its copy. If the command is killed, a few dead-letters may
    /// exist in both queues, with the same key. Run it again to continue.
    #[command(after_help = REDRIVE_EXAMPLES)]
    Redrive(Box<OnDeployment<RedriveArguments>>),
    /// Write dead-letters to a file and delete them
    ///
    /// Deletes each dead-letter only once it is in the file on disk. `comeback dead import` restores the dead-letters
    /// from the file.
    #[command(after_help = DISCARD_EXAMPLES)]
    Discard(Box<OnDeployment<DiscardArguments>>),
    /// Restore dead-letters from a file that `dead discard` wrote
    ///
    /// Puts them back into the dead-letter queue; redrive them from there. FILE.done records what was imported, so
    /// running the command again imports only the rest.
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(OnDeployment<ImportArguments>),
}

pub(crate) fn run(arguments: DeadArguments) -> Result<(), CommandFailure> {
    match arguments.command {
        DeadCommand::List(it) => it.run(ListArguments::run),
        DeadCommand::Show(it) => it.run(ShowArguments::run),
        DeadCommand::Redrive(it) => it.run(RedriveArguments::run),
        DeadCommand::Discard(it) => it.run(DiscardArguments::run),
        DeadCommand::Import(it) => it.run(ImportArguments::run),
    }
}

const LIST_EXAMPLES: &str = "\
Examples:
  comeback dead list
  comeback dead list --each --limit 20
  comeback dead list --target orders --older 1h --json";

#[derive(Debug, Args)]
struct ListArguments {
    /// Also list each dead-letter; implied by any filter
    #[arg(long)]
    each: bool,
    /// Maximum number of dead-letters to list
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    filter: FilterFlags,
}

impl ListArguments {
    async fn run(self, session: Session) -> Result<(), CommandFailure> {
        let filter = self.filter.filter();
        let one_by_one = self.each || !filter.takes_everything();
        let most = if one_by_one { self.limit as usize } else { 0 };
        terminal::answer(&list(&session.operator(), filter, most).await?, &session)
    }
}

const SHOW_EXAMPLES: &str = "\
Examples:
  comeback dead show 9d1c0a3e-6f52-4f0a-9d0b-0c8f8d5a7e11
  comeback dead show 9d1c0a3e-6f52-4f0a-9d0b-0c8f8d5a7e11 --json";

#[derive(Debug, Args)]
struct ShowArguments {
    /// The event's key, or the id of the SQS message
    #[arg(value_name = "KEY")]
    key: String,
}

impl ShowArguments {
    async fn run(self, session: Session) -> Result<(), CommandFailure> {
        terminal::answer(&show(&session.operator(), &self.key).await?, &session)
    }
}

const REDRIVE_EXAMPLES: &str = "\
Examples:
  comeback dead redrive --error 'Timeout*' --dry-run
  comeback dead redrive --target orders --rate 10/s --limit 100
  comeback dead redrive --key 9d1c0a3e-6f52-4f0a-9d0b-0c8f8d5a7e11 --payload-file fixed.json
  comeback dead redrive --target orders --retarget arn:aws:lambda:eu-west-1:123456789012:function:orders-v2";

#[derive(Debug, Args)]
pub(super) struct RedriveArguments {
    /// All dead-letters
    #[arg(long, conflicts_with = "FilterFlags")]
    all: bool,
    /// Maximum number of dead-letters to redrive per second
    #[arg(long, value_name = "RATE", default_value_t = Pace::REDRIVE, value_parser = Pace::read)]
    rate: Pace,
    /// Maximum number of dead-letters to redrive
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Invoke this function instead of the original one; TARGET_FUNCTIONS must allow it
    #[arg(long, value_name = "ARN")]
    retarget: Option<String>,
    /// Replace the dead-letter's payload with the JSON in this file, but keep the dead-letter's key
    // `requires` alone would not refuse it beside `--all`, which rules out `--key`.
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "all")]
    payload_file: Option<PathBuf>,
    #[command(flatten)]
    filter: FilterFlags,
}

impl RedriveArguments {
    pub(super) async fn run(self, session: Session) -> Result<(), CommandFailure> {
        let chosen = Chosen::matching(self.filter.chosen(self.all)?);
        let payload = self.payload_file.as_deref().map(new_payload).transpose()?;
        let (retarget, pace) = (self.retarget, self.rate);
        let redrive = Redrive { chosen, retarget, payload, pace, limit: self.limit };
        terminal::change(redrive, &session).await
    }
}

fn new_payload(file: &Path) -> Result<NewPayload, Failure> {
    let refused = |problem| Failure::refused(format!("--payload-file {}: {problem}", file.display()));
    NewPayload::read(&text_of(file)?).map_err(refused)
}

const DISCARD_EXAMPLES: &str = "\
Examples:
  comeback dead discard --older 7d --export old.jsonl --dry-run
  comeback dead discard --reason malformed_record --export malformed.jsonl
  comeback dead discard --all --export all.jsonl";

#[derive(Debug, Args)]
pub(super) struct DiscardArguments {
    /// New file to write the dead-letters to before deleting them
    #[arg(long, value_name = "FILE")]
    export: PathBuf,
    /// All dead-letters, and messages that are not Comeback's
    #[arg(long, conflicts_with = "FilterFlags")]
    all: bool,
    /// Maximum number of dead-letters to discard per second
    #[arg(long, value_name = "RATE", default_value_t = Pace::FILE, value_parser = Pace::read)]
    rate: Pace,
    /// Maximum number of dead-letters to discard
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    filter: FilterFlags,
}

impl DiscardArguments {
    pub(super) async fn run(self, session: Session) -> Result<(), CommandFailure> {
        let chosen = Chosen::matching(self.filter.chosen(self.all)?);
        let discard = Discard { chosen, export: self.export, pace: self.rate, limit: self.limit };
        terminal::change(discard, &session).await
    }
}

const IMPORT_EXAMPLES: &str = "\
Examples:
  comeback dead import old.jsonl
  gzip -dc old.jsonl.gz | comeback dead import - --yes";

#[derive(Debug, Args)]
pub(super) struct ImportArguments {
    /// File that `comeback dead discard --export` wrote, or - for standard input; an import from standard input cannot
    /// be resumed if it stops early
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Maximum number of dead-letters to import per second
    #[arg(long, value_name = "RATE", default_value_t = Pace::FILE, value_parser = Pace::read)]
    rate: Pace,
}

impl ImportArguments {
    pub(super) async fn run(self, session: Session) -> Result<(), CommandFailure> {
        let copied = if self.file == Path::new("-") { Some(standard_input()?) } else { None };
        let file = copied.as_ref().map_or(self.file, |folder| folder.path().join(INPUT));
        let import = Import { file, pace: self.rate };
        terminal::change(import, &session).await
    }
}

/// An import reads its file twice, so standard input is copied to this file.
const INPUT: &str = "standard-input";

fn standard_input() -> Result<TempDir, Failure> {
    let copied = tempfile::tempdir().and_then(|folder| {
        io::copy(&mut io::stdin().lock(), &mut File::create(folder.path().join(INPUT))?)?;
        Ok(folder)
    });
    copied.map_err(|error| Failure::could_not(format!("standard input: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_file_is_for_one_key_and_has_json() {
        let read = |arguments: &[&str]| {
            let all = ["redrive", "--payload-file", "fixed.json"].iter().chain(arguments);
            RedriveArguments::augment_args(clap::Command::new("redrive")).try_get_matches_from(all).map(drop)
        };
        assert!(read(&["--key", "k-1"]).is_ok());
        assert!(read(&["--target", "orders"]).is_err_and(|error| error.to_string().contains("--key")));
        assert!(read(&["--all"]).is_err_and(|error| error.to_string().contains("cannot be used with")));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fixed.json");
        let missing = new_payload(&file).unwrap_err();
        assert!(matches!(missing, Failure::CouldNot(_)), "{missing}");
        std::fs::write(&file, "{\n  \"n\": 01\n}").unwrap();
        let refused = new_payload(&file).unwrap_err();
        let problem = refused.to_string();
        assert!(problem.ends_with("fixed.json: not JSON: invalid number at line 2 column 9"), "{problem}");
        assert_eq!(refused.exit_code(), 2);
        std::fs::write(&file, "{ \"n\": 1E400 }\n").unwrap();
        assert_eq!(new_payload(&file).unwrap().json(), r#"{"n":1E400}"#);
        std::fs::write(&file, "\u{feff}7").unwrap();
        assert_eq!(
            new_payload(&file).unwrap().json(),
            "7",
            "an editor's byte-order mark is not the payload's"
        );
        std::fs::write(&file, b"\xff\xfe7\0").unwrap();
        let utf16 = new_payload(&file).unwrap_err();
        assert!(utf16.to_string().contains("save it as UTF-8") && utf16.exit_code() == 2, "{utf16}");
    }
}
