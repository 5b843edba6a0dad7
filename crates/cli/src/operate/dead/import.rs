//! `comeback dead import`: bring back what `dead discard` wrote. What was imported is recorded beside the file, so that a
//! repeated import goes on where it was.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::HumanCount;
use serde_json::json;

use crate::failure;
use crate::operate::account::Failure;
use crate::operate::dead::discard::Line;
use crate::operate::dead::plan::{Bar, DeadLetters};
use crate::operate::dead::queue::{CallFailure, Destination, LetterQueue};
use crate::operate::dead::scan::{Progress, Reader};
use crate::operate::dead::work::Pace;
use crate::operate::session::{Common, Session, confirm};
use crate::text::numbers::{counted, read_rate};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback dead import old.jsonl";

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// What `comeback dead discard --export` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Letters a second at most
    #[arg(long, value_name = "RATE", default_value = "500/s", value_parser = read_rate)]
    rate: f64,
    /// Show what would be imported and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &ImportArguments, session: Session) -> Result<(), failure::Failure> {
    let importing = Importing::read(&arguments.file)?;
    let letters = DeadLetters::find(&session).await?;
    let Importing { letters: count, before, cut_off, .. } = importing;
    let queue = letters.deployment.dead_letter_queue.name();
    let mut out = anstream::stdout();
    let is_json = session.common.json;
    if !is_json {
        writeln!(out, "to import: {} to {queue}", counted(count, "letter", "letters"))?;
        if before > 0 {
            let (before, path) = (HumanCount(before), importing.done_path.display());
            writeln!(out, "left: {before}, which were imported before ({path})")?;
        }
        if cut_off {
            writeln!(out, "left: the last line, which is cut off; its letter was never deleted")?;
        }
    }
    let report = |done: u64, left: &BTreeMap<String, u64>| {
        json!({
            "letters": count, "imported": done, "before": before, "cut_off": cut_off,
            "dry_run": arguments.dry_run, "left": left,
        })
    };
    if arguments.dry_run || count == 0 {
        if is_json {
            writeln!(out, "{}", report(0, &BTreeMap::new()))?;
        }
        return Ok(());
    }
    confirm(&format!("send {} to {queue}?", counted(count, "letter", "letters")), &session).await?;
    let bar = Bar::new(count);
    let progress = |progress| bar.show(progress);
    let pace = Pace::per_second(arguments.rate);
    let imported = importing.run(&letters.reader(&session, &progress), pace).await?;
    drop(bar);
    let left = imported.left.iter().map(|(why, count)| format!("; left {}: {why}", HumanCount(*count)));
    let summary =
        format!("imported {}{}", counted(imported.letters, "letter", "letters"), left.collect::<String>());
    if is_json {
        writeln!(out, "{}", report(imported.letters, &imported.left))?;
    } else {
        writeln!(out, "{summary}")?;
    }
    if imported.interrupted {
        return Err(Failure::Interrupted(summary).into());
    }
    if !imported.left.is_empty() {
        return Err(Failure::Undone(format!("{summary}; repeat the command for what was left")).into());
    }
    Ok(())
}

/// An export that was read, and what is still to be imported of it.
#[derive(Debug)]
pub(crate) struct Importing {
    path: PathBuf,
    /// Where imported messages are recorded, by id.
    done_path: PathBuf,
    done: HashSet<String>,
    /// Lines to import.
    letters: u64,
    /// Lines imported before.
    before: u64,
    /// The last line is cut off: `discard` was killed while writing it, and never deleted its letter.
    cut_off: bool,
}

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Imported {
    pub(crate) letters: u64,
    /// Letters that could not be sent, by problem.
    pub(crate) left: BTreeMap<String, u64>,
    interrupted: bool,
}

impl Importing {
    /// Reads the file, and the record of what was imported: the same path, and `.done`. Any other line is refused.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let mut done_path = path.as_os_str().to_owned();
        done_path.push(".done");
        let done_path = PathBuf::from(done_path);
        let done = match std::fs::read_to_string(&done_path) {
            Ok(ids) => ids.lines().map(ToOwned::to_owned).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => HashSet::new(),
            Err(error) => return Err(unreadable(&done_path, &error)),
        };
        let mut importing =
            Self { path: path.to_owned(), done_path, done, letters: 0, before: 0, cut_off: false };
        let mut ids = HashSet::new();
        let mut lines = Lines::of(path)?;
        while let Some(line) = lines.next()? {
            line.clone().message().map_err(|problem| lines.bad(&problem))?;
            if importing.done.contains(&line.message_id) {
                importing.before += 1;
            } else {
                importing.letters += 1;
            }
            if let Some(twice) = ids.replace(line.message_id) {
                return Err(lines.bad(&format!("message {twice:?} is there twice")));
            }
        }
        importing.cut_off = lines.cut_off;
        Ok(importing)
    }

    pub(crate) async fn run<Q: LetterQueue>(
        self,
        reader: &Reader<'_, Q>,
        pace: Pace,
    ) -> Result<Imported, Failure> {
        let mut imported = Imported::default();
        let unrecorded = |error: io::Error| unreadable(&self.done_path, &error);
        let done = OpenOptions::new().append(true).create(true).open(&self.done_path);
        let mut done = done.map_err(unrecorded)?;
        let mut lines = Lines::of(&self.path)?;
        loop {
            let at_once = if imported.letters == 0 { 1 } else { pace.at_once() };
            let some = self.some(&mut lines, at_once)?;
            if some.is_empty() {
                return Ok(imported);
            }
            let turn = tokio::time::sleep(pace.time_for(some.len() as u64));
            let ids: Vec<String> = some.iter().map(|line| line.message_id.clone()).collect();
            let messages = some.into_iter().map(|line| line.message().map_err(|problem| lines.bad(&problem)));
            let messages = messages.collect::<Result<_, _>>()?;
            let answers = reader.queue.send(Destination::DeadLetterQueue, messages).await;
            let mut for_all = None;
            for (id, answer) in ids.iter().zip(answers) {
                match answer {
                    Ok(()) => {
                        // The line's end comes first, so that an id that was cut off stays alone.
                        write!(done, "\n{id}").map_err(unrecorded)?;
                        imported.letters += 1;
                    }
                    Err(cause) => {
                        let failure = CallFailure::of("sqs:SendMessage", &cause);
                        for_all = failure.for_all.then(|| Failure::CouldNot(failure.why.clone())).or(for_all);
                        *imported.left.entry(failure.why).or_default() += 1;
                    }
                }
            }
            done.sync_data().map_err(unrecorded)?;
            (reader.progress)(Progress::Done(imported.letters));
            if let Some(failure) = for_all {
                return if imported.letters == 0 { Err(failure) } else { Ok(imported) };
            }
            tokio::select! {
                () = turn => {}
                () = reader.interrupt.raised() => return Ok(Imported { interrupted: true, ..imported }),
            }
        }
    }

    /// The next lines that were not imported before.
    fn some(&self, lines: &mut Lines, most: usize) -> Result<Vec<Line>, Failure> {
        let mut some = Vec::new();
        while some.len() < most {
            let Some(line) = lines.next()? else { break };
            if !self.done.contains(&line.message_id) {
                some.push(line);
            }
        }
        Ok(some)
    }
}

/// The letters of a file, one after another.
struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    number: u64,
    cut_off: bool,
}

impl Lines {
    fn of(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        Ok(Self { path: path.to_owned(), file: BufReader::new(file), number: 0, cut_off: false })
    }

    fn next(&mut self) -> Result<Option<Line>, Failure> {
        let mut text = String::new();
        let read = self.file.read_line(&mut text).map_err(|error| unreadable(&self.path, &error))?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let Some(text) = text.strip_suffix('\n') else {
            self.cut_off = true;
            return Ok(None);
        };
        serde_json::from_str(text).map(Some).map_err(|error| self.bad(&error.to_string()))
    }

    fn bad(&self, problem: &str) -> Failure {
        let (path, line) = (self.path.display(), self.number);
        Failure::CouldNot(format!("{path}: line {line} is not a letter that `dead discard` wrote: {problem}"))
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::CouldNot(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"message_id":"m-1","sent_timestamp":1,"attributes":{"Reason":{"type":"String","value":"max_age"}},"body":"{}"}"#;

    /// What reading a file with this text gives.
    fn reading(text: &str) -> Result<Importing, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letters.jsonl");
        std::fs::write(&path, text).unwrap();
        let folder = folder.path().display().to_string();
        Importing::read(&path).map_err(|failure| failure.to_string().replace(&folder, ""))
    }

    #[test]
    fn a_line_of_the_wire_is_read() {
        let importing = reading(&format!("{LINE}\n")).unwrap();
        assert_eq!((importing.letters, importing.before, importing.cut_off), (1, 0, false));
    }

    #[test]
    fn a_last_line_that_is_cut_off_is_left() {
        for end in 1..LINE.len() {
            let importing = reading(&format!("{LINE}\n{}", &LINE.replace("m-1", "m-2")[..end])).unwrap();
            assert_eq!((importing.letters, importing.cut_off), (1, true));
        }
    }

    #[test]
    fn any_other_line_is_refused_with_its_number() {
        let binary = LINE.replace("String", "Binary").replace("max_age", "?");
        for (text, line, problem) in [
            (format!("{LINE}\n\n"), 2, "EOF while parsing a value"),
            (format!("{LINE}\n{LINE}\n"), 2, "message \"m-1\" is there twice"),
            ("{}\n".into(), 1, "missing field `message_id`"),
            (format!("{binary}\n"), 1, "attribute \"Reason\": its value is not Base64"),
            (LINE.replace("\"body\"", "\"Body\"") + "\n", 1, "unknown field `Body`"),
        ] {
            let refused = reading(&text).unwrap_err();
            let expected =
                format!("/letters.jsonl: line {line} is not a letter that `dead discard` wrote: {problem}");
            assert!(refused.starts_with(&expected), "{refused}");
        }
    }
}
