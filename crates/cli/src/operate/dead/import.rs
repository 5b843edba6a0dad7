//! `comeback dead import`: bring dead-letters back from the file that `dead discard` wrote. What was imported is
//! recorded beside the file, so that a repeated import goes on where it was.

use std::collections::HashSet;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::HumanCount;
use serde_json::json;
use tempfile::TempDir;

use crate::account::Failure;
use crate::failure::CommandFailure;
use crate::input::without_mark;
use crate::operate::dead::dead_letters::DeadLetters;
use crate::operate::dead::discard::Line;
use crate::operate::dead::plan::left_over;
use crate::operate::dead::queue::{CallFailure, Destination, QueueCalls};
use crate::operate::dead::scan::Reader;
use crate::operate::dead::work::{Done, Pace};
use crate::operate::session::{Common, Session, confirm};
use crate::text::numbers::{counted, read_rate};
use crate::text::terminal::shown;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback dead import old.jsonl
  gzip -dc old.jsonl.gz | comeback dead import - --yes";

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// File that `comeback dead discard --export` wrote; - is standard input, whose import cannot be continued
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Maximum dead-letters a second
    #[arg(long, value_name = "RATE", default_value = "500/s", value_parser = read_rate)]
    rate: f64,
    /// Show what would be imported without importing it
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &ImportArguments, session: Session) -> Result<(), CommandFailure> {
    let kept = if arguments.file == Path::new("-") { Some(standard_input()?) } else { None };
    let path = kept.as_ref().map_or_else(|| arguments.file.clone(), |folder| folder.path().join(INPUT));
    let importing = Importing::read(&path)?;
    let dead_letters = DeadLetters::find(session).await?;
    ask_and_import(importing, Pace(arguments.rate), arguments.dry_run, &dead_letters).await
}

/// The file that standard input is copied to: it is read twice.
const INPUT: &str = "standard-input";

fn standard_input() -> Result<TempDir, Failure> {
    let copied = tempfile::tempdir().and_then(|folder| {
        io::copy(&mut io::stdin().lock(), &mut File::create(folder.path().join(INPUT))?)?;
        Ok(folder)
    });
    copied.map_err(|error| unreadable(Path::new("standard input"), &error))
}

/// Shows what a file holds, asks, and imports it.
pub(crate) async fn ask_and_import<Q: QueueCalls>(
    importing: Importing,
    pace: Pace,
    dry_run: bool,
    dead_letters: &DeadLetters<Q>,
) -> Result<(), CommandFailure> {
    let (session, queue) = (&dead_letters.session, &dead_letters.deployment.dead_letter_queue);
    importing.check_queue(&queue.arn)?;
    let &Importing { dead_letters: count, before, cut_off, .. } = &importing;
    let to_send = format!("{} to {}", counted(count, "dead-letter", "dead-letters"), queue.name());
    session.say(&format!("to import: {to_send}\n"))?;
    if before > 0 {
        let (before, path) = (HumanCount(before), importing.done_path.display().to_string());
        session.say(&format!("skipped: {before}, already imported ({})\n", shown(&path)))?;
    }
    if cut_off {
        session.say("skipped: the last line, which is cut off; its dead-letter was never deleted\n")?;
    }
    let (mut done, mut interrupted) = (Done::default(), false);
    let is_idle = dry_run || count == 0;
    if !is_idle {
        let these = counted(count, "dead-letter", "dead-letters");
        confirm(&format!("add {these} to the dead-letter queue?"), session).await?;
        (done, interrupted) = importing.run(&dead_letters.reader(count), pace, &queue.arn).await?;
    }
    let summary = done.summary("imported");
    session.answer(&json!({
        "dead_letters": count, "imported": done.dead_letters, "before": before, "cut_off": cut_off,
        "dry_run": dry_run, "left": done.left,
    }));
    if interrupted {
        return Err(Failure::Interrupted(summary).into());
    }
    if !done.left.is_empty() {
        return Err(left_over(&summary).into());
    }
    if !is_idle {
        session.say(&format!("{summary}\n"))?;
    }
    Ok(())
}

/// An export that was read, and what is still to be imported of it.
#[derive(Debug)]
pub(crate) struct Importing {
    /// Where imported messages are recorded, by id.
    done_path: PathBuf,
    done: HashSet<String>,
    /// The queue that they were sent to, by its ARN; `None` if none was sent.
    queue: Option<String>,
    /// Bytes of that record.
    done_length: u64,
    /// Lines to import.
    dead_letters: u64,
    /// Lines imported before.
    before: u64,
    /// The last line is cut off: `discard` was killed while writing it, and never deleted its dead-letter.
    cut_off: bool,
    /// `discard` cannot write more of them until this is dropped.
    lines: Lines,
}

impl Importing {
    /// Reads the file, and the record of what was imported: the same path, and `.done`. Any other line is refused, and
    /// so is a file that `discard` is writing.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let mut lines = Lines::of(path)?;
        let done_path = path.with_added_extension("done");
        let done = match std::fs::read(&done_path) {
            Ok(ids) => ids,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(unreadable(&done_path, &error)),
        };
        let done_length = done.len() as u64;
        let done = without_mark(&done).map_err(|problem| unreadable(&done_path, &problem))?;
        let done = str::from_utf8(done).map_err(|error| unreadable(&done_path, &error))?;
        let queue = done.lines().next().and_then(|line| line.strip_prefix(QUEUE)).map(ToOwned::to_owned);
        let done: HashSet<_> = done.lines().map(ToOwned::to_owned).collect();
        let (mut dead_letters, mut before, mut ids) = (0, 0, HashSet::new());
        while let Some(line) = lines.next()? {
            line.clone().message().map_err(|problem| lines.bad(&problem))?;
            let kind = if done.contains(&line.message_id) { &mut before } else { &mut dead_letters };
            *kind += 1;
            if let Some(twice) = ids.replace(line.message_id) {
                return Err(lines.bad(&format!("message {twice:?} appears twice")));
            }
        }
        let cut_off = lines.cut_off;
        lines.rewind()?;
        Ok(Self { done_path, done, queue, done_length, dead_letters, before, cut_off, lines })
    }

    /// Fails if dead-letters of the file were sent to another queue.
    fn check_queue(&self, queue: &str) -> Result<(), Failure> {
        match &self.queue {
            Some(other) if other != queue => Err(Failure::Refused(format!(
                "{}: this file was already imported into {other}; to import it into {queue} too, copy the file",
                self.done_path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Sends the dead-letters, and says whether Ctrl-C ended that early. Fails if another import of the file runs, or
    /// has run since it was read.
    pub(crate) async fn run<Q: QueueCalls>(
        self,
        reader: &Reader<'_, Q>,
        pace: Pace,
        queue: &str,
    ) -> Result<(Done, bool), Failure> {
        let Self { done_path, done: imported_before, done_length, dead_letters, before, mut lines, .. } =
            self;
        let mut done = Done::default();
        let mut record = Progress::open(&done_path, done_length)?;
        if done_length == 0 {
            record.begin(queue).map_err(|error| unreadable(&done_path, &error))?;
        }
        loop {
            let (mut ids, mut messages) = (Vec::new(), Vec::new());
            while ids.len() < pace.at_once(done.dead_letters) {
                // Where nothing can be locked, the file may be longer by now than what was confirmed.
                if lines.number == dead_letters + before {
                    break;
                }
                let Some(line) = lines.next()? else { break };
                if !imported_before.contains(&line.message_id) {
                    ids.push(line.message_id.clone());
                    messages.push(line.message().map_err(|problem| lines.bad(&problem))?);
                }
            }
            if ids.is_empty() {
                return Ok((done, false));
            }
            record.reserve(&ids).map_err(|error| unreadable(&done_path, &error))?;
            let turn = tokio::time::sleep(pace.time_for(ids.len() as u64));
            let answers = reader.queue.send(Destination::DeadLetterQueue, messages).await;
            let (mut imported, mut end) = (Vec::new(), Ok(()));
            for (id, answer) in ids.into_iter().zip(answers) {
                match answer {
                    Ok(()) => imported.push(id),
                    Err(cause) => end = end.and(done.leave(CallFailure::of("sqs:SendMessage", &cause))),
                }
            }
            done.dead_letters += imported.len() as u64;
            record.add(&imported).map_err(|error| unreadable(&done_path, &error))?;
            (reader.progress)(done.dead_letters);
            match end {
                Err(failure) if done.dead_letters == 0 => return Err(failure),
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

/// Begins the first line of the record, which names the queue.
const QUEUE: &str = "queue ";

/// The record of imported messages: the queue, and their ids, each after a line's end, so that one that was cut off
/// stays alone.
struct Progress(File);

impl Progress {
    /// Locks the record until this is dropped: to be locked on NFS, a file must be writable.
    fn open(path: &Path, length: u64) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(|error| unreadable(path, &error))?;
        check_lock(path, file.try_lock(), "another import of this file is running")?;
        if file.metadata().map_err(|error| unreadable(path, &error))?.len() != length {
            let problem = "another import of this file ran in the meantime; run the command again";
            return Err(Failure::CouldNot(format!("{}: {problem}", path.display())));
        }
        file.seek(SeekFrom::End(0)).map_err(|error| unreadable(path, &error))?;
        Ok(Self(file))
    }

    fn begin(&mut self, queue: &str) -> io::Result<()> {
        writeln!(self.0, "{QUEUE}{queue}")?;
        self.0.sync_data()
    }

    /// Fills the room of these ids with empty lines, so that a full disk is noticed before their dead-letters are sent.
    fn reserve(&mut self, ids: &[String]) -> io::Result<()> {
        let room: usize = ids.iter().map(|id| id.len() + 1).sum();
        self.0.write_all(&vec![b'\n'; room])?;
        self.0.sync_data()?;
        self.0.seek_relative(-(room as i64))
    }

    /// Writes ids into the room that was reserved.
    fn add(&mut self, ids: &[String]) -> io::Result<()> {
        let text: String = ids.iter().flat_map(|id| ["\n", id]).collect();
        self.0.write_all(text.as_bytes())?;
        self.0.sync_data()
    }
}

/// The dead-letters of a file, one after another.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    number: u64,
    cut_off: bool,
}

impl Lines {
    fn of(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        check_lock(path, file.try_lock_shared(), "`dead discard` is still writing it")?;
        Ok(Self { path: path.to_owned(), file: BufReader::new(file), number: 0, cut_off: false })
    }

    /// The last line may lack its end, as an editor leaves it, or be cut off.
    fn next(&mut self) -> Result<Option<Line>, Failure> {
        let mut text = Vec::new();
        self.file.read_until(b'\n', &mut text).map_err(|error| unreadable(&self.path, &error))?;
        if text.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let text = match self.number {
            1 => without_mark(&text).map_err(|problem| unreadable(&self.path, &problem))?,
            _ => &text,
        };
        let whole = text.strip_suffix(b"\n");
        match serde_json::from_slice(whole.unwrap_or(text)) {
            Err(error) if whole.is_some() => Err(self.bad(&error.to_string())),
            line => {
                self.cut_off = line.is_err();
                Ok(line.ok())
            }
        }
    }

    fn rewind(&mut self) -> Result<(), Failure> {
        self.number = 0;
        self.file.rewind().map_err(|error| unreadable(&self.path, &error))
    }

    fn bad(&self, problem: &str) -> Failure {
        let (path, line) = (self.path.display(), self.number);
        Failure::CouldNot(format!(
            "{path}: line {line} is not a dead-letter that `dead discard` wrote: \
                                   {problem}"
        ))
    }
}

fn unreadable(path: &Path, error: &impl fmt::Display) -> Failure {
    Failure::CouldNot(format!("{}: {error}", path.display()))
}

/// Fails if a file is not locked; `by_whom` if somebody else has. Some file systems cannot lock.
fn check_lock(path: &Path, lock: Result<(), TryLockError>, by_whom: &str) -> Result<(), Failure> {
    match lock {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Failure::CouldNot(format!("{}: {by_whom}", path.display()))),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(error)) => Err(unreadable(path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::tests::in_utf16;
    use crate::operate::dead::discard::Export;
    use crate::operate::dead::discard::tests::LINE;
    use crate::operate::dead::simulated::Simulated;
    use crate::operate::session::Interrupt;

    const DEAD: &str = "arn:aws:sqs:eu-west-1:123456789012:dead";

    #[tokio::test(start_paused = true)]
    async fn a_file_is_imported_to_one_queue() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead-letters.jsonl");
        std::fs::write(&path, LINE).unwrap();
        let other = "arn:aws:sqs:eu-west-1:123456789012:other";
        let first = Importing::read(&path).unwrap();
        assert!(first.check_queue(other).is_ok(), "none was imported yet");
        import(first, &Simulated::with([])).await.unwrap();
        let again = Importing::read(&path).unwrap();
        assert_eq!((again.before, again.check_queue(DEAD)), (1, Ok(())));
        let refused = again.check_queue(other).unwrap_err().to_string();
        let expected = format!(
            "{}.done: this file was already imported into {DEAD}; to import it into {other} too, copy the file",
            path.display()
        );
        assert_eq!(refused, expected);
    }

    /// What reading a file with this text gives.
    fn reading(text: impl AsRef<[u8]>) -> Result<Importing, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead-letters.jsonl");
        std::fs::write(&path, text).unwrap();
        let folder = folder.path().display().to_string();
        Importing::read(&path).map_err(|failure| failure.to_string().replace(&folder, ""))
    }

    #[test]
    fn a_line_of_the_wire_is_read() {
        let importing = reading(format!("{LINE}\n")).unwrap();
        assert_eq!((importing.dead_letters, importing.before, importing.cut_off), (1, 0, false));
    }

    #[test]
    fn a_last_line_that_is_cut_off_is_left() {
        let last = LINE.replace("m-1", "é");
        for end in 1..last.len() {
            let importing = reading([LINE.as_bytes(), b"\n", &last.as_bytes()[..end]].concat()).unwrap();
            assert_eq!((importing.dead_letters, importing.cut_off), (1, true));
        }
    }

    #[test]
    fn a_last_line_without_its_end_is_read_if_it_is_whole() {
        let importing = reading(LINE).unwrap();
        assert_eq!((importing.dead_letters, importing.cut_off), (1, false));
        let importing = reading(format!("{LINE}\n{}", LINE.replace("m-1", "m-2"))).unwrap();
        assert_eq!((importing.dead_letters, importing.cut_off), (2, false));
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_utf16_is_named() {
        let importing = reading(format!("\u{feff}{LINE}\r\n{}\r\n", LINE.replace("m-1", "m-2"))).unwrap();
        assert_eq!((importing.dead_letters, importing.cut_off), (2, false));
        let utf16 = "it is UTF-16, as Windows PowerShell's `>` writes; save it as UTF-8";
        for bytes in in_utf16(&format!("{LINE}\n")) {
            assert_eq!(reading(bytes).unwrap_err(), format!("/dead-letters.jsonl: {utf16}"));
        }
        // And so in the record of what was imported.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead-letters.jsonl");
        std::fs::write(&path, LINE).unwrap();
        let done = folder.path().join("dead-letters.jsonl.done");
        std::fs::write(&done, "\u{feff}m-1\r\n").unwrap();
        assert_eq!(Importing::read(&path).unwrap().before, 1);
        for bytes in in_utf16("\nm-1") {
            std::fs::write(&done, bytes).unwrap();
            assert_eq!(
                Importing::read(&path).unwrap_err().to_string(),
                format!("{}: {utf16}", done.display())
            );
        }
    }

    #[test]
    fn any_other_line_is_refused_with_its_number() {
        let binary = LINE.replace("String", "Binary").replace("max_age", "?");
        for (text, line, problem) in [
            (format!("{LINE}\n\n"), 2, "EOF while parsing a value"),
            (format!("{LINE}\n{LINE}\n"), 2, "message \"m-1\" appears twice"),
            ("{}\n".into(), 1, "missing field `message_id`"),
            (format!("{binary}\n"), 1, "attribute \"Reason\": its value is not Base64"),
            (LINE.replace("\"body\"", "\"Body\"") + "\n", 1, "unknown field `Body`"),
        ] {
            let refused = reading(&text).unwrap_err();
            let expected = format!(
                "/dead-letters.jsonl: line {line} is not a dead-letter that `dead discard` wrote: {problem}"
            );
            assert!(refused.starts_with(&expected), "{refused}");
        }
    }

    async fn import(importing: Importing, simulated: &Simulated) -> Result<(Done, bool), String> {
        let (_raise, interrupt) = Interrupt::new();
        let reader = Reader {
            queue: simulated,
            interrupt: &interrupt,
            progress: Box::new(|_| ()),
            remark: Box::new(|_| ()),
        };
        importing.run(&reader, Pace(500.0), DEAD).await.map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_file_system_that_cannot_lock_is_no_obstacle() {
        let check = |kind: io::ErrorKind| {
            check_lock(Path::new("f"), Err(TryLockError::Error(kind.into())), "somebody").is_ok()
        };
        assert!(check(io::ErrorKind::Unsupported) && !check(io::ErrorKind::PermissionDenied));
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_is_imported_once_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead-letters.jsonl");
        std::fs::write(&path, LINE).unwrap();
        let simulated = Simulated::with([]);
        let [locked_out, first, late] = [(); 3].map(|()| Importing::read(&path).unwrap());
        let lock = Progress::open(&first.done_path, 0).unwrap();
        let refused = import(locked_out, &simulated).await.unwrap_err();
        assert_eq!(refused, format!("{}.done: another import of this file is running", path.display()));
        drop(lock);
        assert_eq!(import(first, &simulated).await.unwrap().0.dead_letters, 1);
        let refused = import(late, &simulated).await.unwrap_err();
        assert!(
            refused.ends_with("another import of this file ran in the meantime; run the command again"),
            "{refused}"
        );
        assert_eq!(simulated.depth().visible, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn no_dead_letter_is_imported_that_was_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead-letters.jsonl");
        let export = Export::create(&path).unwrap();
        let refused = Importing::read(&path).unwrap_err().to_string();
        assert_eq!(refused, format!("{}: `dead discard` is still writing it", path.display()));
        drop(export);
        let line = |id| format!("{}\n", LINE.replace("m-1", id));
        std::fs::write(&path, line("m-1")).unwrap();
        let importing = Importing::read(&path).unwrap();
        std::fs::write(&path, [line("m-1"), line("m-2")].concat()).unwrap();
        let simulated = Simulated::with([]);
        assert_eq!(import(importing, &simulated).await.unwrap().0.dead_letters, 1);
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn an_export_and_its_record_are_for_their_user_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead-letters.jsonl");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let export = Export::create(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        drop(export);
        std::fs::write(&path, LINE).unwrap();
        let importing = Importing::read(&path).unwrap();
        let done_path = importing.done_path.clone();
        import(importing, &Simulated::with([])).await.unwrap();
        assert_eq!(mode(&done_path), 0o600);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test(start_paused = true)]
    async fn nothing_is_sent_that_cannot_be_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead-letters.jsonl");
        std::fs::write(&path, LINE).unwrap();
        let importing = Importing::read(&path).unwrap();
        std::os::unix::fs::symlink("/dev/full", &importing.done_path).unwrap();
        let simulated = Simulated::with([]);
        let failure = import(importing, &simulated).await.unwrap_err();
        assert!(failure.contains("dead-letters.jsonl.done: No space left"), "{failure}");
        assert_eq!(simulated.depth().visible, 0);
    }
}
