//! The file that a discard or an export writes and an import reads: one dead-letter per line, as JSON.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use comeback_engine::ReasonCode;
use serde::{Deserialize, Serialize};

use crate::aws::{AttributeValue, NewMessage, Received};
use crate::dead::scan::{counted_dead_letters, show_each};
use crate::dead::snapshot::{Selection, Snapshot};
use crate::dead::work::{DeadLetterAction, NotDone};
use crate::failure::Failure;
use crate::numbers::grouped;
use crate::operator::Operator;
use crate::shown::shown;
use crate::text::without_mark;

const WRITTEN_AT_ONCE: usize = 4 << 20;

/// One line in a file of dead-letters, with all the data that an import needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredDeadLetter {
    pub(super) message_id: String,
    /// The time when the message was sent, in milliseconds since the epoch. An import ignores it.
    sent_timestamp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace_header: Option<String>,
    attributes: BTreeMap<String, AttributeValue>,
    /// The message's body, byte for byte as it was received.
    pub(super) body: String,
}

impl StoredDeadLetter {
    pub(super) fn of(received: &Received) -> Self {
        let record = &received.record;
        Self {
            message_id: record.message_id.clone(),
            sent_timestamp: record.sent.as_millis(),
            trace_header: record.trace_header.clone(),
            attributes: received.attributes.clone(),
            body: record.body.clone(),
        }
    }

    pub(super) fn message(self) -> Result<NewMessage, String> {
        if let Some((name, _)) = self.attributes.iter().find(|(_, value)| value.bytes().is_none()) {
            return Err(format!("attribute {name:?}: its value is not Base64"));
        }
        Ok(NewMessage { body: self.body, attributes: self.attributes, trace_header: self.trace_header })
    }
}

/// A new file for dead-letters, which is deleted on drop if it is still empty.
#[derive(Debug)]
pub(super) struct NewFile {
    path: PathBuf,
    file: File,
    /// The file offset of each line that the last write added.
    beginnings: RefCell<Vec<u64>>,
}

impl NewFile {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        // Payloads are private.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let failure = |error| Failure::could_not(format!("--export {}: {error}", path.display()));
        let file = options.write(true).create_new(true).open(path).map_err(failure)?;
        let new = Self { path: path.to_owned(), file, beginnings: RefCell::default() };
        sync_folder_of(path).map_err(failure)?;
        // The lock, if the system has file locks, keeps an import from reading an incomplete file.
        let _ = new.file.try_lock();
        Ok(new)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.path.metadata().is_ok_and(|file| file.is_file() && file.len() == 0)
    }

    /// Appends lines and waits until they are on disk; if that fails, truncates the file to its previous length.
    fn write(&self, lines: &[StoredDeadLetter]) -> Result<(), NotDone> {
        let failure = |error: io::Error, may_be_elsewhere| {
            let why = format!("{}: {error}", self.path.display());
            NotDone { why, for_all: true, may_be_elsewhere }
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

    /// Truncates the file and syncs it to disk. Without the sync, the removed lines could reappear after a crash.
    fn cut(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length).and_then(|()| self.file.sync_all())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.is_empty() {
            let _ = fs::remove_file(&self.path).and_then(|()| sync_folder_of(&self.path));
        }
    }
}

impl DeadLetterAction for NewFile {
    type Prepared = StoredDeadLetter;

    fn prepare(&self, received: &Received) -> Result<StoredDeadLetter, ReasonCode> {
        Ok(StoredDeadLetter::of(received))
    }

    async fn perform(&self, lines: Vec<StoredDeadLetter>) -> Vec<Result<(), NotDone>> {
        vec![self.write(&lines); lines.len()]
    }

    /// Removes the lines of the last `dead_letters` dead-letters, which are still in the queue; returns true on
    /// success.
    fn take_back(&self, dead_letters: usize) -> bool {
        let beginning = self.beginnings.borrow().iter().nth_back(dead_letters - 1).copied();
        beginning.is_some_and(|length| self.cut(length).is_ok())
    }
}

/// Syncs the folder of a new file, so that a crash does not lose the file.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Writes the selected dead-letters of a snapshot to a new file, and leaves them in the queue. Returns a sentence about
/// what was written, and the failure that ended the read early, if any.
///
/// # Errors
///
/// Fails if the file exists or cannot be written, or if the dead-letter queue cannot be read.
pub async fn export(
    operator: &Operator,
    snapshot: &Snapshot,
    selection: &Selection,
    path: &Path,
) -> Result<(String, Result<(), Failure>), Failure> {
    let wanted: HashSet<&str> = snapshot.rows(selection).into_iter().map(|row| &*row.message_id).collect();
    let file = NewFile::create(path)?;
    let (mut lines, mut bytes, mut found, mut written) = (Vec::new(), 0, 0, Ok(()));
    let show = |received: &Received| {
        if wanted.contains(received.id()) {
            bytes += received.record.body.len();
            lines.push(StoredDeadLetter::of(received));
            found += 1;
            if bytes >= WRITTEN_AT_ONCE {
                written = file.write(&lines);
                bytes = 0;
                lines.clear();
            }
        }
        written.is_err() || found == wanted.len()
    };
    let read = show_each(operator, &snapshot.deployment, snapshot.newest, show).await?;
    written.and_then(|()| file.write(&lines)).map_err(|failure| Failure::could_not(failure.why))?;
    let of =
        if found < wanted.len() { format!(" of {}", grouped(wanted.len() as u64)) } else { String::new() };
    let (count, file) = (counted_dead_letters(found as u64), path.display().to_string());
    let file = shown(&file);
    let summary = format!(
        "wrote {count}{of} to {file}; they are still in the queue, so an import would duplicate them"
    );
    let end = read.result(&summary);
    Ok((summary, end))
}

#[derive(Debug)]
pub(super) struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    number: u64,
    /// True if the last line is incomplete because `dead discard` was killed while writing it. Its dead-letter is still
    /// in the queue.
    pub(super) is_cut_off: bool,
}

impl Lines {
    /// Opens a file; fails while `dead discard` is still writing it.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| unreadable(path, error))?;
        if let Err(TryLockError::WouldBlock) = file.try_lock_shared() {
            return Err(unreadable(path, "`dead discard` is still writing it"));
        }
        Ok(Self { path: path.to_owned(), file: BufReader::new(file), number: 0, is_cut_off: false })
    }

    /// Reads the next line. Returns the original message's id and the message to send. Returns `None` at the end of the
    /// file, or if the last line is incomplete. A complete last line may lack its line break, because some editors
    /// remove it.
    pub(super) fn next(&mut self) -> Result<Option<(String, NewMessage)>, Failure> {
        let mut text = Vec::new();
        self.file.read_until(b'\n', &mut text).map_err(|error| unreadable(&self.path, error))?;
        if text.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let text = match self.number {
            1 => without_mark(&text).map_err(|problem| unreadable(&self.path, problem))?,
            _ => &text,
        };
        let whole = text.strip_suffix(b"\n");
        match serde_json::from_slice::<StoredDeadLetter>(whole.unwrap_or(text)) {
            Err(error) if whole.is_some() => Err(self.bad(&error.to_string())),
            Err(_) => {
                self.is_cut_off = true;
                Ok(None)
            }
            Ok(line) => {
                let id = line.message_id.clone();
                Ok(Some((id, line.message().map_err(|problem| self.bad(&problem))?)))
            }
        }
    }

    /// The error for the line that was read last.
    pub(super) fn bad(&self, problem: &str) -> Failure {
        let (path, line) = (self.path.display(), self.number);
        Failure::could_not(format!(
            "{path}: line {line} is not a dead-letter that `dead discard` wrote: {problem}"
        ))
    }
}

pub(super) fn unreadable(path: &Path, problem: impl std::fmt::Display) -> Failure {
    Failure::could_not(format!("{}: {problem}", path.display()))
}

#[cfg(test)]
pub(super) mod tests {
    use std::process::Command;
    use std::slice;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use comeback_engine::{Record, Timestamp};
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::dead::filter::Filter;
    use crate::dead::snapshot::scan;
    use crate::dead::testing::{Dead, event};

    fn attribute() -> impl Strategy<Value = AttributeValue> {
        let text = ("(String|Number)(\\.[a-z]{1,5})?", "\\PC{1,20}")
            .prop_map(|(data_type, value)| AttributeValue { data_type, value });
        let binary = vec(any::<u8>(), 0..40)
            .prop_map(|bytes| AttributeValue { data_type: "Binary".into(), value: BASE64.encode(bytes) });
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
            let received = Received { record, attributes };
            let line = serde_json::to_string(&StoredDeadLetter::of(&received)).unwrap();
            prop_assert!(!line.contains('\n'), "{}", line);
            let message = serde_json::from_str::<StoredDeadLetter>(&line).unwrap().message().unwrap();
            let Received { record, attributes } = received;
            prop_assert_eq!(message, NewMessage { body: record.body, attributes, trace_header });
        }
    }

    #[test]
    fn a_new_file_overwrites_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead-letters.jsonl");
        std::fs::write(&path, "mine").unwrap();
        let refused = NewFile::create(&path).unwrap_err();
        assert!(refused.to_string().contains("exists") && refused.exit_code() == 1, "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn failed_cut_may_leave_a_copy() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        // The file is read-only, so it can be neither written nor truncated.
        let file = File::open(&path).unwrap();
        let new = NewFile { path: path.to_path_buf(), file, beginnings: RefCell::default() };
        assert!(new.write(&[serde_json::from_str(LINE).unwrap()]).unwrap_err().may_be_elsewhere);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn unsynced_cut_counts_as_failed() {
        // This file can be written and truncated, but not synced.
        let path = PathBuf::from("/proc/thread-self/comm");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(0).unwrap();
        let new = NewFile { path, file, beginnings: RefCell::default() };
        let failure = new.write(&[serde_json::from_str(LINE).unwrap()]).unwrap_err();
        assert!(failure.may_be_elsewhere, "{failure:?}");
    }

    #[tokio::test]
    async fn an_export_leaves_the_dead_letters() {
        let dead = Dead::with((0..9).map(|n| event(if n < 4 { "Fatal" } else { "Timeout" })));
        let fatal = Filter { error: Some("Fatal".into()), ..Filter::default() };
        let snapshot = scan(&dead.operator(), fatal).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("exported.jsonl");
        let exported = export(&dead.operator(), &snapshot, &Selection::All, &path).await.unwrap();
        let said = format!(
            "wrote 4 dead-letters to {}; they are still in the queue, so an import would duplicate them",
            path.display()
        );
        assert_eq!(exported, (said, Ok(())));
        assert_eq!((dead.depth().visible, dead.depth().in_flight), (9, 0));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!((text.matches("Fatal").count(), text.lines().count()), (4, 4));
    }

    pub(crate) const LINE: &str = r#"{"message_id":"m-1","sent_timestamp":1,"attributes":{"Reason":{"type":"String","value":"max_age"}},"body":"{}"}"#;

    /// Simulates a full disk with a limit on file sizes, in a child process because the limit is per process.
    #[cfg(unix)]
    #[test]
    fn full_disk_leaves_no_copy_in_the_file() {
        let name = "dead::file::tests::full_disk_leaves_no_copy_in_the_file";
        let line: StoredDeadLetter = serde_json::from_str(LINE).unwrap();
        if let Some(path) = std::env::var_os("FULL_DISK") {
            let export = NewFile::create(Path::new(&path)).unwrap();
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
