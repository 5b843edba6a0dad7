//! `comeback dead discard`: write dead-letters to a file and delete them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::MessageAttributeValue;
use aws_smithy_types::base64;
use clap::Args;
use comeback_delivery::sqs::Message;
use comeback_engine::Reason;
use indicatif::HumanCount;
use serde::{Deserialize, Serialize};

use crate::account::Failure;
use crate::clock;
use crate::failure::CommandFailure;
use crate::operate::dead::dead_letters::DeadLetters;
use crate::operate::dead::filter::Filter;
use crate::operate::dead::plan::{Asked, Plan, Verb};
use crate::operate::dead::queue::{CallFailure, QueueCalls, Received};
use crate::operate::dead::snapshot::{Forgetting, Selected, Snapshot};
use crate::operate::dead::work::{DeadLetterAction, Pace, Work};
use crate::operate::session::{Common, Session, confirm_plan};
use crate::text::numbers::{counted, read_rate};
use crate::text::terminal::{command_line, shown};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback dead discard --older 7d --export old.jsonl --dry-run
  comeback dead discard --reason malformed_record --export malformed.jsonl
  comeback dead discard --all --export all.jsonl";

#[derive(Debug, Args)]
pub(crate) struct DiscardArguments {
    /// New file to write the dead-letters to before deleting them
    #[arg(long, value_name = "FILE")]
    export: PathBuf,
    /// All dead-letters, and messages that are not Comeback's
    #[arg(long, conflicts_with = "Filter")]
    all: bool,
    /// Maximum dead-letters a second
    #[arg(long, value_name = "RATE", default_value = "500/s", value_parser = read_rate)]
    rate: f64,
    /// Maximum number of dead-letters
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Show the plan without changing anything
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &DiscardArguments, session: Session) -> Result<(), CommandFailure> {
    let export = arguments.export.display().to_string();
    let export = shown(&export);
    if arguments.export.exists() {
        return Err(Failure::Refused(format!(
            "--export {export}: the file exists and is not overwritten; choose another name"
        ))
        .into());
    }
    let dead_letters = DeadLetters::find(session).await?;
    let &DiscardArguments { ref filter, rate, limit, dry_run, .. } = arguments;
    let now = clock::now();
    let work = Work { filter: Some(filter.clone()), now, until: now, pace: Pace(rate), limit };
    let asked = Asked { verb: Verb::Discard(&arguments.export), all: arguments.all, dry_run };
    let plan = Plan::make(asked, work, |_| Ok(()), &dead_letters).await?;
    ask_and_discard(&plan, &arguments.export, None).await
}

/// Discards dead-letters of a snapshot.
pub(crate) async fn discard_selected<Q: QueueCalls>(
    selected: &Selected<'_>,
    export: &Path,
    pace: Pace,
    dead_letters: &DeadLetters<Q>,
) -> Result<(), CommandFailure> {
    let asked = Asked { verb: Verb::Discard(export), all: true, dry_run: false };
    let plan = Plan::of_snapshot(asked, pace, selected, dead_letters)?;
    ask_and_discard(&plan, export, Some(selected.snapshot)).await
}

async fn ask_and_discard<Q: QueueCalls>(
    plan: &Plan<'_, Q>,
    path: &Path,
    snapshot: Option<&Snapshot>,
) -> Result<(), CommandFailure> {
    let session = &plan.dead_letters.session;
    if plan.asked.dry_run || plan.dead_letters() == 0 {
        return Ok(plan.read.result("nothing was changed")?);
    }
    let export = path.display().to_string();
    let export = shown(&export);
    let count = counted(plan.dead_letters(), "dead-letter", "dead-letters");
    let question = format!("write {count} to {export} and delete them from the queue?");
    confirm_plan(&question, &plan.identity(), session).await?;
    let file = Export::create(path)?;
    let (done, read) = plan.carry_out(&Forgetting { action: &file, snapshot }).await?;
    let summary = done.summary("discarded");
    plan.answer(Some((&done, &read)));
    plan.note_missing(&done, &read);
    let result = plan.result(&done, &read, &summary);
    let place = session.common.place_flags();
    let back = match &done.not_deleted {
        _ if file.is_empty() => None,
        None => {
            let file = command_line([&*export]);
            Some(format!("`comeback dead import {file}{place}` brings them back"))
        }
        Some((count, _)) => Some(format!(
            "{} may be both in {export} and in the queue, so an import could duplicate them",
            counted(*count, "dead-letter", "dead-letters")
        )),
    };
    // A failure begins with the summary.
    let summary = result.is_ok().then_some(summary);
    let said: Vec<_> = summary.into_iter().chain(back).collect();
    if !said.is_empty() {
        session.say(&format!("{}\n", said.join("; ")))?;
    }
    Ok(result?)
}

/// Bytes of dead-letters that are written to a file at once.
const WRITTEN_AT_ONCE: usize = 4 << 20;

/// Writes dead-letters of a snapshot to a new file. They stay in the queue.
pub(crate) async fn export_selected<Q: QueueCalls>(
    selected: &Selected<'_>,
    path: &Path,
    dead_letters: &DeadLetters<Q>,
) -> Result<(), CommandFailure> {
    let wanted = selected.ids();
    let file = Export::create(path)?;
    let (mut lines, mut bytes, mut found, mut written) = (Vec::new(), 0, 0, Ok(()));
    let show = |received: &Received| {
        if wanted.contains(&received.record.message_id) {
            bytes += received.record.body.len();
            lines.push(Line::of(received));
            found += 1;
            if bytes >= WRITTEN_AT_ONCE {
                written = file.write(&lines);
                bytes = 0;
                lines.clear();
            }
        }
        written.is_err() || found == wanted.len()
    };
    let read = dead_letters.show_each(selected.snapshot.newest, show).await?;
    written.and_then(|()| file.write(&lines)).map_err(|failure| Failure::CouldNot(failure.why))?;
    let of =
        if found < wanted.len() { format!(" of {}", HumanCount(wanted.len() as u64)) } else { String::new() };
    let count = counted(found as u64, "dead-letter", "dead-letters");
    let summary = format!(
        "wrote {count}{of} to {}; they are still in the queue, so an import would duplicate them",
        shown(&path.display().to_string())
    );
    dead_letters.session.say(&format!("{summary}\n"))?;
    Ok(read.result(&summary)?)
}

/// A dead-letter as a line of an export: what SQS stores of it and takes back.
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
pub(crate) struct Attribute {
    /// `String`, `Number` or `Binary`, and perhaps a label: `Number.int`.
    r#type: String,
    /// Text; in Base64 for a `Binary`.
    pub(crate) value: String,
}

impl Line {
    fn of(received: &Received) -> Self {
        let record = &received.record;
        Self {
            message_id: record.message_id.clone(),
            sent_timestamp: record.sent.as_millis(),
            trace_header: record.trace_header.clone(),
            attributes: Attribute::all_of(received),
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
    /// A dead-letter's message attributes, by name.
    pub(crate) fn all_of(received: &Received) -> BTreeMap<String, Self> {
        let attribute = |(name, value): &(String, MessageAttributeValue)| {
            let text = match value.binary_value() {
                Some(bytes) => base64::encode(bytes),
                None => value.string_value().unwrap_or_default().to_owned(),
            };
            (name.clone(), Self { r#type: value.data_type().to_owned(), value: text })
        };
        received.attributes.iter().map(attribute).collect()
    }

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

/// A file that dead-letters are written to. If it is empty in the end, it is removed, so that the command can be
/// repeated.
#[derive(Debug)]
pub(crate) struct Export {
    path: PathBuf,
    file: File,
    /// Where each line begins that was written last.
    beginnings: RefCell<Vec<u64>>,
}

impl Export {
    /// Creates the file, which must not exist.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        // Payloads are private.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let failure = |error| Failure::CouldNot(format!("--export {}: {error}", path.display()));
        let file = options.write(true).create_new(true).open(path).map_err(failure)?;
        let export = Self { path: path.to_owned(), file, beginnings: RefCell::default() };
        sync_folder_of(path).map_err(failure)?;
        // Keeps an import from reading it meanwhile, where files can be locked.
        let _ = export.file.try_lock();
        Ok(export)
    }

    fn is_empty(&self) -> bool {
        self.path.metadata().is_ok_and(|file| file.is_file() && file.len() == 0)
    }

    /// Writes lines, and waits until they are on disk. If that fails, the file is cut back to what it was: their
    /// dead-letters stay in the queue, and an import must not send them too.
    fn write(&self, lines: &[Line]) -> Result<(), CallFailure> {
        let failure = |error: io::Error, may_be_elsewhere| {
            let why = format!("{}: {error}", self.path.display());
            CallFailure { why, for_all: true, may_be_elsewhere }
        };
        let before = self.file.metadata().map_err(|error| failure(error, false))?.len();
        let (mut text, mut beginnings) = (Vec::new(), Vec::new());
        for line in lines {
            beginnings.push(before + text.len() as u64);
            serde_json::to_writer(&mut text, line).map_err(|error| failure(error.into(), false))?;
            text.push(b'\n');
        }
        self.beginnings.replace(beginnings);
        let written = (&self.file).write_all(&text).and_then(|()| self.file.sync_all());
        written.map_err(|error| failure(error, self.cut(before).is_err()))
    }

    /// Waits until the cut is on disk: after a crash, an import would send what came back.
    fn cut(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length).and_then(|()| self.file.sync_all())
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        if self.is_empty() {
            let _ = fs::remove_file(&self.path).and_then(|()| sync_folder_of(&self.path));
        }
    }
}

impl DeadLetterAction for Export {
    type Prepared = Line;

    fn prepare(&self, received: &Received) -> Result<Line, Reason> {
        Ok(Line::of(received))
    }

    async fn perform(&self, _: &impl QueueCalls, lines: Vec<Line>) -> Vec<Result<(), CallFailure>> {
        vec![self.write(&lines); lines.len()]
    }

    /// An import must not send what is still in the queue.
    fn take_back(&self, dead_letters: usize) -> bool {
        let beginning = self.beginnings.borrow().iter().nth_back(dead_letters - 1).copied();
        beginning.is_some_and(|length| self.cut(length).is_ok())
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

#[cfg(test)]
pub(crate) mod tests {
    use std::process::Command;
    use std::slice;

    use comeback_engine::{Record, Timestamp};
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::operate::dead::scan::{Read, Reader};
    use crate::operate::dead::simulated::{NOW, Simulated, event};
    use crate::operate::dead::work::Done;
    use crate::operate::session::Interrupt;

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
        fn a_dead_letter_comes_back_as_it_was(
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
                attributes: Vec::new(),
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
        let path = folder.path().join("dead-letters.jsonl");
        std::fs::write(&path, "mine").unwrap();
        let Failure::CouldNot(refused) = Export::create(&path).unwrap_err() else {
            panic!("another exit code")
        };
        assert!(refused.contains("exists"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[tokio::test(start_paused = true)]
    async fn no_dead_letter_is_in_the_file_that_surely_stays_in_the_queue() {
        // From the second dead-letter on, each deletion is denied, or fails after it may have been made.
        for (denied, fault_rate, in_file) in [("delete", 0.0, 1), ("", 1.0, 51)] {
            let simulated = Simulated::with((0..90).map(|_| event("Timeout")));
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("dead-letters.jsonl");
            let export = Export::create(&path).unwrap();
            let (_raise, interrupt) = Interrupt::new();
            let progress = Box::new(|_| {
                simulated.denied.set(denied);
                simulated.fault_rate.set(fault_rate);
            });
            let reader =
                Reader { queue: &simulated, interrupt: &interrupt, progress, remark: Box::new(|_| ()) };
            let filter = Filter::default();
            let work = Work { filter: Some(filter), now: NOW, until: NOW, pace: Pace(50.0), limit: None };
            let (done, _) = work.run(&reader, &simulated.ids(), &export).await.unwrap();
            let not_deleted = done.not_deleted.map_or(0, |(count, _)| count);
            assert_eq!(
                (done.dead_letters, not_deleted, done.left.values().sum()),
                (1, in_file - 1, 51 - in_file)
            );
            assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count() as u64, in_file);
        }
    }

    async fn discard(simulated: &Simulated, export: &Export) -> Result<(Done, Read), Failure> {
        let (_raise, interrupt) = Interrupt::new();
        let reader = Reader {
            queue: simulated,
            interrupt: &interrupt,
            progress: Box::new(|_| ()),
            remark: Box::new(|_| ()),
        };
        let filter = Filter::default();
        let work = Work { filter: Some(filter), now: NOW, until: NOW, pace: Pace(50.0), limit: None };
        work.run(&reader, &simulated.ids(), export).await
    }

    #[tokio::test(start_paused = true)]
    async fn dead_letters_that_cannot_be_cut_off_the_file_count_as_not_deleted() {
        let simulated = Simulated::with([event("Timeout")]);
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        // It can be neither written nor cut.
        let file = File::open(&path).unwrap();
        let export = Export { path: path.to_path_buf(), file, beginnings: RefCell::default() };
        let (done, _) = discard(&simulated, &export).await.unwrap();
        assert_eq!((done.dead_letters, done.not_deleted.unwrap().0, done.left.len()), (0, 1, 0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_cut_that_may_not_be_on_disk_counts_as_not_made() {
        // The name of this thread can be written and cut, and not synced.
        let path = PathBuf::from("/proc/thread-self/comm");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(0).unwrap();
        let export = Export { path, file, beginnings: RefCell::default() };
        let failure = export.write(&[serde_json::from_str(LINE).unwrap()]).unwrap_err();
        assert!(failure.may_be_elsewhere, "{failure:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_export_without_a_dead_letter_is_removed() {
        let simulated = Simulated::with([event("Timeout")]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead-letters.jsonl");
        let export = Export::create(&path).unwrap();
        simulated.denied.set("delete");
        discard(&simulated, &export).await.unwrap_err();
        drop(export);
        assert!(!path.exists());
        let export = Export::create(&path).unwrap();
        simulated.denied.set("");
        assert_eq!(discard(&simulated, &export).await.unwrap().0.dead_letters, 1);
        drop(export);
        assert!(path.exists());
    }

    pub(crate) const LINE: &str = r#"{"message_id":"m-1","sent_timestamp":1,"attributes":{"Reason":{"type":"String","value":"max_age"}},"body":"{}"}"#;

    /// A limit on the size of files stands in for a full disk. It holds for a whole process, so this test runs itself.
    #[cfg(unix)]
    #[test]
    fn a_full_disk_leaves_no_dead_letter_in_the_file_that_stays_in_the_queue() {
        let name = "operate::dead::discard::tests::a_full_disk_leaves_no_dead_letter_in_the_file_that_stays_in_the_queue";
        let line: Line = serde_json::from_str(LINE).unwrap();
        if let Some(path) = std::env::var_os("FULL_DISK") {
            let export = Export::create(Path::new(&path)).unwrap();
            assert!(export.write(slice::from_ref(&line)).is_ok());
            assert!(export.write(&vec![line; 20]).is_err());
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead-letters.jsonl");
        let limited = r#"trap '' XFSZ && ulimit -f 1 && exec "$0" --exact "$1""#;
        let test = std::env::current_exe().unwrap();
        let mut shell = Command::new("sh");
        let ran = shell.arg("-c").arg(limited).arg(test).arg(name).env("FULL_DISK", &path).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{LINE}\n"));
    }
}
