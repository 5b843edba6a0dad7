//! `comeback dead discard` and `comeback dead import`: write letters to a file and delete them, and bring them back. What was
//! imported is recorded beside the file, so that a repeated import goes on where it was.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::MessageAttributeValue;
use aws_smithy_types::base64;
use clap::Args;
use comeback_delivery::sqs::Message;
use comeback_engine::Reason;
use indicatif::HumanCount;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::clock;
use crate::failure;
use crate::operate::account::Failure;
use crate::operate::dead::filter::Filter;
use crate::operate::dead::plan::{DeadLetters, Plan, left_over};
use crate::operate::dead::queue::{CallFailure, Destination, LetterQueue, Received};
use crate::operate::dead::scan::Reader;
use crate::operate::dead::work::{Done, LetterAction, Pace, Work};
use crate::operate::session::{Common, Session, confirm};
use crate::text::numbers::{counted, read_rate};

pub(crate) const DISCARD_EXAMPLES: &str = "\
Examples:
  comeback dead discard --older 7d --export old.jsonl --dry-run
  comeback dead discard --reason malformed_record --export malformed.jsonl
  comeback dead discard --all --export all.jsonl";

#[derive(Debug, Args)]
pub(crate) struct DiscardArguments {
    /// A new file that the letters are written to before they are deleted
    #[arg(long, value_name = "FILE")]
    export: PathBuf,
    #[command(flatten)]
    filter: Filter,
    /// Every letter, and every message that is not one of Comeback's
    #[arg(long, conflicts_with = "Filter", required_unless_present = "Filter")]
    all: bool,
    /// Letters a second at most
    #[arg(long, value_name = "RATE", default_value = "500/s", value_parser = read_rate)]
    rate: f64,
    /// Letters at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Show the plan and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn discard(arguments: &DiscardArguments, session: Session) -> Result<(), failure::Failure> {
    let export = arguments.export.display();
    if arguments.export.exists() {
        return Err(Failure::Refused(format!(
            "--export {export}: the file is there already, and is not overwritten; name another"
        ))
        .into());
    }
    let letters = DeadLetters::find(session).await?;
    let &DiscardArguments { ref filter, rate, limit, dry_run, .. } = arguments;
    let now = clock::now();
    let work = Work { filter: filter.clone(), now, until: now, pace: Pace(rate), limit };
    let plan = Plan::make("discard", work, |_| Ok(()), &letters).await?;
    let mut out = anstream::stdout();
    let is_json = letters.session.common.json;
    if dry_run || plan.letters() == 0 {
        if is_json {
            writeln!(out, "{}", json!({"plan": plan.json(), "dry_run": dry_run, "discarded": 0}))?;
        }
        return Ok(plan.read.result("nothing was changed")?);
    }
    let count = counted(plan.letters(), "letter", "letters");
    confirm(&format!("write {count} to {export}, and delete them?"), &letters.session).await?;
    let file = Export::create(&arguments.export)?;
    let (done, read) = plan.carry_out(&file).await?;
    let summary = done.summary("discarded");
    if is_json {
        let report = json!({
            "plan": plan.json(), "dry_run": false, "discarded": done.letters, "export": arguments.export,
            "outcome": done.json(&read),
        });
        writeln!(out, "{report}")?;
    } else {
        writeln!(out, "{summary}; `comeback dead import {export}` brings back what the file holds")?;
    }
    Ok(plan.result(&done, &read, &summary)?)
}

/// A letter as a line of an export: what SQS stores of it and takes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    pub(crate) message_id: String,
    /// Milliseconds since the epoch, for people: a message that is sent again gets a new time.
    sent_timestamp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace_header: Option<String>,
    attributes: BTreeMap<String, Attribute>,
    /// As it was received, to the byte.
    pub(crate) body: String,
}

/// A message attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Attribute {
    /// `String`, `Number` or `Binary`, and perhaps a label: `Number.int`.
    r#type: String,
    /// Text; in Base64 for a `Binary`.
    value: String,
}

impl Line {
    fn of(received: &Received) -> Self {
        let attribute = |(name, value): &(String, MessageAttributeValue)| {
            let text = match value.binary_value() {
                Some(bytes) => base64::encode(bytes),
                None => value.string_value().unwrap_or_default().to_owned(),
            };
            (name.clone(), Attribute { r#type: value.data_type().to_owned(), value: text })
        };
        let record = &received.record;
        Self {
            message_id: record.message_id.clone(),
            sent_timestamp: record.sent.as_millis(),
            trace_header: record.trace_header.clone(),
            attributes: received.attributes.iter().map(attribute).collect(),
            body: record.body.clone(),
        }
    }

    /// The message to send.
    pub(crate) fn message(self) -> Result<Message, String> {
        let mut message = Message { trace_header: self.trace_header, ..Message::new(self.body) };
        for (name, attribute) in self.attributes {
            let value = attribute.value().map_err(|problem| format!("attribute {name:?}: {problem}"))?;
            message.attributes.push((name, value));
        }
        Ok(message)
    }
}

impl Attribute {
    fn value(self) -> Result<MessageAttributeValue, String> {
        let is_binary = self.r#type.split('.').next() == Some("Binary");
        let value = MessageAttributeValue::builder().data_type(self.r#type);
        let value = if is_binary {
            let bytes = base64::decode(&self.value).map_err(|_| "its value is not Base64".to_owned())?;
            value.binary_value(Blob::new(bytes))
        } else {
            value.string_value(self.value)
        };
        value.build().map_err(|error| error.to_string())
    }
}

/// A file that letters are written to.
#[derive(Debug)]
pub(crate) struct Export {
    path: PathBuf,
    file: File,
}

impl Export {
    /// Creates the file, which must not exist.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        // Payloads are private.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.write(true).create_new(true).open(path);
        let file = file
            .and_then(|file| sync_folder_of(path).map(|()| file))
            .map_err(|error| Failure::CouldNot(format!("--export {}: {error}", path.display())))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes lines, and waits until they are on disk.
    fn write(&self, lines: &[Line]) -> io::Result<()> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        (&self.file).write_all(&text)?;
        self.file.sync_all()
    }
}

impl LetterAction for Export {
    type Prepared = Line;

    fn prepare(&self, received: &Received) -> Result<Line, Reason> {
        Ok(Line::of(received))
    }

    async fn perform(&self, _: &impl LetterQueue, lines: Vec<Line>) -> Vec<Result<(), CallFailure>> {
        let written = self.write(&lines).map_err(|error| {
            let why = format!("{}: {error}", self.path.display());
            CallFailure { why, for_all: true }
        });
        vec![written; lines.len()]
    }
}

/// A new file survives a crash only if its folder is on disk too.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        // Folders cannot be synced here.
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

pub(crate) const IMPORT_EXAMPLES: &str = "\
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

pub(crate) async fn import(arguments: &ImportArguments, session: Session) -> Result<(), failure::Failure> {
    let importing = Importing::read(&arguments.file)?;
    let letters = DeadLetters::find(session).await?;
    let &Importing { letters: count, before, cut_off, .. } = &importing;
    let to_send =
        format!("{} to {}", counted(count, "letter", "letters"), letters.deployment.dead_letter_queue.name());
    let mut out = anstream::stdout();
    let is_json = letters.session.common.json;
    if !is_json {
        writeln!(out, "to import: {to_send}")?;
        if before > 0 {
            let (before, path) = (HumanCount(before), importing.done_path.display());
            writeln!(out, "left: {before}, which were imported before ({path})")?;
        }
        if cut_off {
            writeln!(out, "left: the last line, which is cut off; its letter was never deleted")?;
        }
    }
    let (mut done, mut interrupted) = (Done::default(), false);
    let is_idle = arguments.dry_run || count == 0;
    if !is_idle {
        confirm(&format!("send {to_send}?"), &letters.session).await?;
        (done, interrupted) = importing.run(&letters.reader(count), Pace(arguments.rate)).await?;
    }
    let summary = done.summary("imported");
    if is_json {
        let report = json!({
            "letters": count, "imported": done.letters, "before": before, "cut_off": cut_off,
            "dry_run": arguments.dry_run, "left": done.left,
        });
        writeln!(out, "{report}")?;
    } else if !is_idle {
        writeln!(out, "{summary}")?;
    }
    if interrupted {
        return Err(Failure::Interrupted(summary).into());
    }
    if done.left.is_empty() { Ok(()) } else { Err(left_over(&summary).into()) }
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

impl Importing {
    /// Reads the file, and the record of what was imported: the same path, and `.done`. Any other line is refused.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let done_path = path.with_added_extension("done");
        let done = match std::fs::read_to_string(&done_path) {
            Ok(ids) => ids.lines().map(ToOwned::to_owned).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => HashSet::new(),
            Err(error) => return Err(unreadable(&done_path, &error)),
        };
        let (mut letters, mut before, mut ids) = (0, 0, HashSet::new());
        let mut lines = Lines::of(path)?;
        while let Some(line) = lines.next()? {
            line.clone().message().map_err(|problem| lines.bad(&problem))?;
            let kind = if done.contains(&line.message_id) { &mut before } else { &mut letters };
            *kind += 1;
            if let Some(twice) = ids.replace(line.message_id) {
                return Err(lines.bad(&format!("message {twice:?} is there twice")));
            }
        }
        Ok(Self { path: path.to_owned(), done_path, done, letters, before, cut_off: lines.cut_off })
    }

    /// Sends the letters, and says whether Ctrl-C ended that early.
    pub(crate) async fn run<Q: LetterQueue>(
        self,
        reader: &Reader<'_, Q>,
        pace: Pace,
    ) -> Result<(Done, bool), Failure> {
        let mut done = Done::default();
        let unrecorded = |error: io::Error| unreadable(&self.done_path, &error);
        let record = OpenOptions::new().append(true).create(true).open(&self.done_path);
        let mut record = record.map_err(unrecorded)?;
        let mut lines = Lines::of(&self.path)?;
        loop {
            let (mut ids, mut messages) = (Vec::new(), Vec::new());
            while ids.len() < pace.at_once(done.letters) {
                let Some(line) = lines.next()? else { break };
                if !self.done.contains(&line.message_id) {
                    ids.push(line.message_id.clone());
                    messages.push(line.message().map_err(|problem| lines.bad(&problem))?);
                }
            }
            if ids.is_empty() {
                return Ok((done, false));
            }
            let turn = tokio::time::sleep(pace.time_for(ids.len() as u64));
            let answers = reader.queue.send(Destination::DeadLetterQueue, messages).await;
            let mut end = Ok(());
            for (id, answer) in ids.iter().zip(answers) {
                match answer {
                    Ok(()) => {
                        // The line's end comes first, so that an id that was cut off stays alone.
                        write!(record, "\n{id}").map_err(unrecorded)?;
                        done.letters += 1;
                    }
                    Err(cause) => end = end.and(done.leave(CallFailure::of("sqs:SendMessage", &cause))),
                }
            }
            record.sync_data().map_err(unrecorded)?;
            (reader.progress)(done.letters);
            match end {
                Err(failure) if done.letters == 0 => return Err(failure),
                Err(_) => return Ok((done, false)),
                Ok(()) => {}
            }
            tokio::select! {
                () = turn => {}
                () = reader.interrupt.raised() => return Ok((done, true)),
            }
        }
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
        self.file.read_line(&mut text).map_err(|error| unreadable(&self.path, &error))?;
        let Some(line) = text.strip_suffix('\n') else {
            self.cut_off = !text.is_empty();
            return Ok(None);
        };
        self.number += 1;
        serde_json::from_str(line).map(Some).map_err(|error| self.bad(&error.to_string()))
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
    use comeback_engine::{Record, Timestamp};
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    fn attribute() -> impl Strategy<Value = MessageAttributeValue> {
        let text = ("(String|Number)(\\.[a-z]{1,5})?", "\\PC{1,20}").prop_map(|(of_type, value)| {
            MessageAttributeValue::builder().data_type(of_type).string_value(value).build().unwrap()
        });
        let binary = vec(any::<u8>(), 0..40).prop_map(|bytes| {
            let value = MessageAttributeValue::builder().data_type("Binary").binary_value(Blob::new(bytes));
            value.build().unwrap()
        });
        prop_oneof![text, binary]
    }

    proptest! {
        #[test]
        fn a_letter_comes_back_as_it_was(
            body in "\\PC{1,60}",
            attributes in btree_map("[A-Za-z]{1,8}", attribute(), 0..10),
            trace_header in proptest::option::of("Root=[0-9a-f-]{1,20}"),
            sent in any::<u64>(),
        ) {
            let record = Record {
                message_id: "m-1".into(),
                receipt_handle: "h-1".into(),
                body: format!("{body}\n\u{2028}\"\\"),
                receive_count: 1,
                sent: Timestamp::from_millis(sent),
                first_receive: Timestamp::from_millis(sent),
                moved: None,
                trace_header: trace_header.clone(),
            };
            let received = Received { record, attributes: attributes.into_iter().collect() };
            let line = serde_json::to_string(&Line::of(&received)).unwrap();
            prop_assert!(!line.contains('\n'), "{}", line);
            let message = serde_json::from_str::<Line>(&line).unwrap().message().unwrap();
            prop_assert_eq!(message.body, received.record.body);
            prop_assert_eq!(message.attributes, received.attributes);
            prop_assert_eq!(message.trace_header, trace_header);
        }
    }

    #[test]
    fn an_export_overwrites_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letters.jsonl");
        std::fs::write(&path, "mine").unwrap();
        let Failure::CouldNot(refused) = Export::create(&path).unwrap_err() else {
            panic!("another exit code")
        };
        assert!(refused.contains("exists"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

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
