//! Imports dead-letters from a file that `dead discard` wrote. A second file lets a repeated import continue where the
//! previous one stopped.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::change::{Answer, Change, Performed, Plan, Question};
use crate::command::CommandName;
use crate::dead::file::{Lines, unreadable};
use crate::dead::pace::Pace;
use crate::dead::plan::{DeadLetterOutcome, left_over};
use crate::dead::scan::counted_dead_letters;
use crate::dead::work::{NotDone, send};
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::layout::Layout;
use crate::numbers::grouped;
use crate::operator::{Operator, Progress};
use crate::operator_line::Activity;
use crate::shown::shown;
use crate::text::without_mark;

/// A change that sends the dead-letters in a file back to the dead-letter queue.
#[derive(Clone, Debug)]
pub struct Import {
    /// The file to import. A second file, with `.done` appended to the path, records the dead-letters already imported.
    pub file: PathBuf,
    /// The maximum rate of the import.
    pub pace: Pace,
}

/// The plan for an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportPlan {
    dead_letters: u64,
    imported: u64,
    before: u64,
    cut_off: bool,
    left: BTreeMap<String, u64>,
    #[serde(skip)]
    queue: String,
    #[serde(skip)]
    url: String,
    #[serde(skip)]
    log_group: String,
    #[serde(skip)]
    journal: PathBuf,
}

/// The result of an import.
#[derive(Debug, Serialize)]
pub struct Imported {
    #[serde(flatten)]
    plan: ImportPlan,
    #[serde(skip)]
    is_whole: bool,
}

/// Checks all lines of a file.
///
/// # Errors
///
/// Fails if the file cannot be read, is still being written, or contains a line that is not a dead-letter.
pub fn check(file: &Path) -> Result<(), Failure> {
    count(file, &HashSet::new()).map(drop)
}

#[derive(Default)]
struct Count {
    new: u64,
    /// The number of dead-letters in the file that earlier imports have already sent.
    before: u64,
    is_cut_off: bool,
}

fn count(file: &Path, imported: &HashSet<String>) -> Result<Count, Failure> {
    let mut lines = Lines::open(file)?;
    let (mut count, mut ids) = (Count::default(), HashSet::new());
    while let Some((id, _)) = lines.next()? {
        let kind = if imported.contains(&id) { &mut count.before } else { &mut count.new };
        *kind += 1;
        if let Some(twice) = ids.replace(id) {
            return Err(lines.bad(&format!("message {twice:?} appears twice")));
        }
    }
    count.is_cut_off = lines.is_cut_off;
    Ok(count)
}

impl Import {
    fn journal(&self) -> PathBuf {
        self.file.with_added_extension("done")
    }

    fn plan_for(
        &self,
        deployment: &Deployment,
        record: &ImportRecord,
        count: &Count,
    ) -> Result<ImportPlan, Failure> {
        let queue = &deployment.dead_letter_queue;
        let journal = self.journal();
        if let Some(other) = record.queue.as_ref().filter(|other| **other != queue.arn) {
            let (journal, queue) = (journal.display(), &queue.arn);
            return Err(Failure::refused(format!(
                "{journal}: this file was already imported into {other}; to import it into {queue} too, copy the file"
            )));
        }
        let &Count { new, before, is_cut_off } = count;
        Ok(ImportPlan {
            dead_letters: new,
            imported: 0,
            before,
            cut_off: is_cut_off,
            left: BTreeMap::new(),
            queue: queue.name().to_owned(),
            url: queue.url.clone(),
            log_group: deployment.log_group.clone(),
            journal,
        })
    }

    /// Sends the dead-letters that are not yet `imported`, and counts them in `outcome` even if a later send fails.
    async fn send_all(
        &self,
        operator: &Operator,
        plan: &ImportPlan,
        (journal, imported): (&mut Journal, &HashSet<String>),
        outcome: &mut DeadLetterOutcome,
    ) -> Result<(), Failure> {
        let mut lines = Lines::open(&self.file)?;
        loop {
            let (mut ids, mut messages) = (Vec::new(), Vec::new());
            while ids.len() < self.pace.at_once(outcome.done) {
                let Some((id, message)) = lines.next()? else { break };
                if !imported.contains(&id) {
                    ids.push(id);
                    messages.push(message);
                }
            }
            if ids.is_empty() {
                return Ok(());
            }
            let (begin, count) = (operator.now(), ids.len() as u64);
            let answers = send(operator, (&plan.url, "dead-letter queue"), messages).await;
            let (mut accepted, mut end) = (Vec::new(), None);
            for (id, answer) in ids.into_iter().zip(answers) {
                let Err(NotDone { why, for_all, .. }) = answer else {
                    accepted.push(id);
                    continue;
                };
                outcome.leave(&why);
                end = end.or(for_all.then_some(why));
            }
            outcome.done += accepted.len() as u64;
            journal.add(&accepted)?;
            let (done, of) = (outcome.done, Some(plan.dead_letters));
            operator.follow.progress(Progress { done, of, unit: "dead-letters" });
            match end {
                Some(why) if outcome.done == 0 => return Err(Failure::could_not(why)),
                Some(_) => return Ok(()),
                None if self.pace.rest(operator, begin, count).await => {}
                None => return Err(Failure::interrupted("")),
            }
        }
    }
}

impl Change for Import {
    type Plan = ImportPlan;
    type Done = Imported;

    async fn plan(&self, operator: &Operator) -> Result<ImportPlan, Failure> {
        let record = ImportRecord::of(&self.journal())?;
        let count = count(&self.file, &record.ids)?;
        self.plan_for(&operator.deployment().await?, &record, &count)
    }

    /// Sends the dead-letters that are not yet imported, or returns a new plan if one of the files has changed.
    async fn perform(&self, operator: &Operator, plan: &ImportPlan) -> Result<Performed<Self>, Failure> {
        let deployment = operator.deployment().await?;
        let (mut journal, record) = Journal::open(&plan.journal)?;
        let now = self.plan_for(&deployment, &record, &count(&self.file, &record.ids)?)?;
        if now != *plan {
            return Ok(Performed::Outdated(now));
        }
        if record.queue.is_none() {
            journal.begin(&deployment.dead_letter_queue.arn)?;
        }
        let mut outcome = DeadLetterOutcome::default();
        let sent = self.send_all(operator, plan, (&mut journal, &record.ids), &mut outcome).await;
        let summary = outcome.summary("imported");
        let result = match sent {
            Err(Failure::Interrupted(_)) => Err(Failure::interrupted(summary)),
            Err(failure) if outcome.done == 0 => return Err(failure),
            Err(failure) => Err(Failure::could_not(format!("{summary}; {failure}"))),
            Ok(()) if outcome.left.is_empty() => Ok(()),
            Ok(()) => Err(left_over(&summary)),
        };
        let plan = ImportPlan { imported: outcome.done, left: outcome.left, ..now };
        Ok(Performed::Done(Imported { plan, is_whole: result.is_ok() }, result))
    }

    fn activity(&self, done: &Imported) -> Option<Activity> {
        let count = done.plan.imported;
        let what = CommandName::Import.words().into();
        (count > 0).then(|| Activity { what, count: Some(count), ..Activity::default() })
    }
}

impl Plan for ImportPlan {
    fn question(&self) -> Option<Question> {
        let count = counted_dead_letters(self.dead_letters);
        (self.dead_letters > 0).then(|| Question::new(format!("add {count} to the dead-letter queue?")))
    }

    fn log_group(&self) -> &str {
        &self.log_group
    }
}

impl Answer for ImportPlan {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        layout.line(format!("to import: {} to {}", counted_dead_letters(self.dead_letters), self.queue));
        if self.before > 0 {
            let (before, journal) = (grouped(self.before), self.journal.display().to_string());
            layout.line(format!("skipped: {before}, already imported ({})", shown(&journal)));
        }
        if self.cut_off {
            layout.line("skipped: the last line, which is cut off; its dead-letter was never deleted");
        }
        layout
    }
}

impl Answer for Imported {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        // The text of a failure already contains the summary.
        if self.is_whole {
            layout.line(format!("imported {}", counted_dead_letters(self.plan.imported)));
        }
        layout
    }
}

/// The beginning of the first line in the `.done` file, before the queue's ARN.
const QUEUE: &str = "queue ";

/// The content of the `.done` file, which records what was already imported from a file of dead-letters.
#[derive(Debug, Default)]
struct ImportRecord {
    /// The ARN of the dead-letter queue to which the file is imported; `None` if no import has begun.
    queue: Option<String>,
    /// The message ids of the dead-letters that were already imported, as they appear in the imported file.
    ids: HashSet<String>,
}

impl ImportRecord {
    fn of(path: &Path) -> Result<Self, Failure> {
        match std::fs::read(path) {
            Ok(text) => Self::read(path, &text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(unreadable(path, error)),
        }
    }

    fn read(path: &Path, text: &[u8]) -> Result<Self, Failure> {
        let text = without_mark(text).map_err(|problem| unreadable(path, problem))?;
        let text = str::from_utf8(text).map_err(|error| unreadable(path, error))?;
        let queue = text.lines().next().and_then(|line| line.strip_prefix(QUEUE)).map(ToOwned::to_owned);
        Ok(Self { queue, ids: text.lines().map(ToOwned::to_owned).collect() })
    }
}

/// The open `.done` file. A line break precedes each id, because a crash may have cut off the id before it.
struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens, locks and reads the `.done` file.
    fn open(path: &Path) -> Result<(Self, ImportRecord), Failure> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(|error| unreadable(path, error))?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(unreadable(path, "another import of this file is running"));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|error| unreadable(path, error))?;
        let record = ImportRecord::read(path, &text)?;
        Ok((Self { path: path.to_owned(), file }, record))
    }

    fn begin(&mut self, queue: &str) -> Result<(), Failure> {
        self.append(&format!("{QUEUE}{queue}\n"))
    }

    fn add(&mut self, ids: &[String]) -> Result<(), Failure> {
        self.append(&ids.iter().flat_map(|id| ["\n", id]).collect::<String>())
    }

    fn append(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|error| unreadable(&self.path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aws::simulated::{Sample, queue_url};
    use crate::change::tests::plain;
    use crate::dead::file::NewFile;
    use crate::dead::file::tests::LINE;
    use crate::dead::testing::Dead;

    struct Setting {
        folder: tempfile::TempDir,
        dead: Dead,
    }

    impl Setting {
        fn with(text: impl AsRef<[u8]>) -> Self {
            let setting = Self { folder: tempfile::tempdir().unwrap(), dead: Dead::with([]) };
            std::fs::write(setting.file(), text).unwrap();
            setting
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join("dead-letters.jsonl")
        }

        fn import(&self) -> Import {
            Import { file: self.file(), pace: Pace(500.0) }
        }

        async fn plan(&self) -> Result<ImportPlan, String> {
            let folder = self.folder.path().display().to_string();
            self.import()
                .plan(&self.dead.operator())
                .await
                .map_err(|failure| failure.to_string().replace(&folder, ""))
        }

        async fn run(&self) -> Imported {
            let plan = self.plan().await.unwrap();
            let Ok(Performed::Done(done, Ok(()))) = self.import().perform(&self.dead.operator(), &plan).await
            else {
                panic!()
            };
            done
        }
    }

    /// Plans an import of this text, and returns the number of dead-letters and whether the last line is cut off.
    async fn planned(text: impl AsRef<[u8]>) -> Result<(u64, bool), String> {
        Setting::with(text).plan().await.map(|plan| (plan.dead_letters, plan.cut_off))
    }

    #[tokio::test]
    async fn a_file_is_imported_once() {
        let setting = Setting::with(format!("{LINE}\n"));
        let plan = setting.plan().await.unwrap();
        assert_eq!(plain(&plan), "to import: 1 dead-letter to dead\n");
        assert_eq!(plan.question().unwrap().text, "add 1 dead-letter to the dead-letter queue?");
        assert_eq!(plain(&setting.run().await), "imported 1 dead-letter\n");
        let stored = setting.dead.dead().remove(0);
        assert_eq!((&*stored.message.body, stored.message.attributes.len()), ("{}", 1));
        let again = setting.plan().await.unwrap();
        let path = setting.file().display().to_string();
        let expected =
            format!("to import: 0 dead-letters to dead\nskipped: 1, already imported ({path}.done)\n");
        assert_eq!((plain(&again), again.question()), (expected, None));
        let json = serde_json::to_string(&again).unwrap();
        assert_eq!(json, r#"{"dead_letters":0,"imported":0,"before":1,"cut_off":false,"left":{}}"#);
    }

    #[tokio::test]
    async fn sends_before_a_failure_are_counted() {
        // The spaces put the second line beyond the first buffered read.
        let second = " ".repeat(50_000) + &LINE.replace("m-1", "m-2");
        let setting = Setting::with(format!("{LINE}\n{second}\n"));
        let plan = setting.plan().await.unwrap();
        let (file, length) = (setting.file(), second.len());
        setting.dead.aws.on_call(move |call| {
            if call.action == "sqs:SendMessage" {
                std::fs::write(&file, format!("{LINE}\n{}\n", "x".repeat(length))).unwrap();
            }
            None
        });
        let Ok(Performed::Done(done, Err(failure))) =
            setting.import().perform(&setting.dead.operator(), &plan).await
        else {
            panic!()
        };
        let failed = failure.to_string();
        assert!(failed.starts_with("imported 1 dead-letter; ") && failed.contains("line 2"), "{failed}");
        assert_eq!((done.plan.imported, failure.exit_code()), (1, 1));
    }

    #[tokio::test]
    async fn a_file_is_imported_to_one_queue() {
        let setting = Setting::with(LINE);
        let other = "arn:aws:sqs:eu-west-1:123456789012:other";
        std::fs::write(setting.import().journal(), format!("queue {other}\n\nm-1")).unwrap();
        let dead = "arn:aws:sqs:eu-west-1:123456789012:dead";
        let expected = format!(
            "/dead-letters.jsonl.done: this file was already imported into {other}; to import it into {dead} too, \
             copy the file"
        );
        assert_eq!(setting.plan().await.unwrap_err(), expected);
    }

    #[tokio::test]
    async fn a_last_line_that_is_cut_off_is_left() {
        let last = LINE.replace("m-1", "é");
        for end in [1, 2, 20, last.find('é').unwrap() + 1, last.len() - 1] {
            let text = [LINE.as_bytes(), b"\n", &last.as_bytes()[..end]].concat();
            assert_eq!(planned(text).await, Ok((1, true)));
        }
    }

    #[tokio::test]
    async fn whole_last_line_needs_no_line_break() {
        assert_eq!(planned(LINE).await, Ok((1, false)));
        assert_eq!(planned(format!("{LINE}\n{}", LINE.replace("m-1", "m-2"))).await, Ok((2, false)));
    }

    #[tokio::test]
    async fn a_byte_order_mark_is_skipped_and_utf16_is_named() {
        let marked = format!("\u{feff}{LINE}\r\n{}\r\n", LINE.replace("m-1", "m-2"));
        assert_eq!(planned(&marked).await, Ok((2, false)));
        let utf16: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let named = "it is UTF-16, as Windows PowerShell's `>` writes; save it as UTF-8";
        for bytes in [&utf16[..], &utf16[2..]] {
            assert_eq!(planned(bytes).await.unwrap_err(), format!("/dead-letters.jsonl: {named}"));
        }
        // The `.done` file may also begin with a byte-order mark, and is refused if it is UTF-16.
        let setting = Setting::with(LINE);
        std::fs::write(setting.import().journal(), "\u{feff}m-1\r\n").unwrap();
        assert_eq!(setting.plan().await.unwrap().before, 1);
        std::fs::write(setting.import().journal(), utf16).unwrap();
        assert_eq!(setting.plan().await.unwrap_err(), format!("/dead-letters.jsonl.done: {named}"));
    }

    #[tokio::test]
    async fn any_other_line_is_refused_with_its_number() {
        let binary = LINE.replace("String", "Binary").replace("max_age", "?");
        let odd =
            r#"{"message_id":"m","sent_timestamp":1,"attributes":{"Reason":5},"body":"b"}"#.to_owned() + "\n";
        for (text, line, problem) in [
            (format!("{LINE}\n\n"), 2, "EOF while parsing a value"),
            (format!("{LINE}\n{LINE}\n"), 2, "message \"m-1\" appears twice"),
            ("{}\n".into(), 1, "missing field `message_id`"),
            (format!("{binary}\n"), 1, "attribute \"Reason\": its value is not Base64"),
            (LINE.replace("\"body\"", "\"Body\"") + "\n", 1, "unknown field `Body`"),
            (odd, 1, "invalid type: integer `5`, expected an attribute with `type` and `value`"),
        ] {
            let refused = planned(&text).await.unwrap_err();
            let expected = format!(
                "/dead-letters.jsonl: line {line} is not a dead-letter that `dead discard` wrote: {problem}"
            );
            assert!(refused.starts_with(&expected), "{refused}");
        }
    }

    #[tokio::test]
    async fn a_file_is_imported_once_at_a_time() {
        let setting = Setting::with(LINE);
        let plan = setting.plan().await.unwrap();
        let lock = Journal::open(&plan.journal).unwrap();
        let Err(refused) = setting.import().perform(&setting.dead.operator(), &plan).await else { panic!() };
        let path = setting.file().display().to_string();
        assert_eq!(refused.to_string(), format!("{path}.done: another import of this file is running"));
        drop(lock);
        setting.run().await;
        let Ok(Performed::Outdated(now)) = setting.import().perform(&setting.dead.operator(), &plan).await
        else {
            panic!()
        };
        assert_eq!((now.dead_letters, now.before, setting.dead.depth().visible), (0, 1, 1));
    }

    #[tokio::test]
    async fn only_planned_dead_letters_are_imported() {
        let setting = Setting::with(LINE);
        let plan = setting.plan().await.unwrap();
        std::fs::write(setting.file(), format!("{LINE}\n{}", LINE.replace("m-1", "m-2"))).unwrap();
        let Ok(Performed::Outdated(now)) = setting.import().perform(&setting.dead.operator(), &plan).await
        else {
            panic!()
        };
        assert_eq!((now.dead_letters, setting.dead.depth().visible), (2, 0));
    }

    #[tokio::test]
    async fn nothing_is_imported_after_the_queue_changed() {
        let setting = Setting::with(LINE);
        let plan = setting.plan().await.unwrap();
        setting.dead.set("DEAD_LETTER_QUEUE_URL", &queue_url(Sample::RETRY_QUEUE));
        let Ok(Performed::Outdated(new)) = setting.import().perform(&setting.dead.operator(), &plan).await
        else {
            panic!()
        };
        assert_eq!((&*new.queue, setting.dead.depth().visible), (Sample::RETRY_QUEUE, 0));
    }

    #[tokio::test]
    async fn a_file_that_is_being_written_is_refused() {
        let setting = Setting::with(LINE);
        std::fs::remove_file(setting.file()).unwrap();
        let new = NewFile::create(&setting.file()).unwrap();
        let refused = setting.plan().await.unwrap_err();
        assert_eq!(refused, "/dead-letters.jsonl: `dead discard` is still writing it");
        drop(new);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn export_and_record_are_private() {
        use std::os::unix::fs::PermissionsExt as _;

        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let setting = Setting::with(LINE);
        setting.run().await;
        assert_eq!(mode(&setting.import().journal()), 0o600);
        let new = setting.folder.path().join("new.jsonl");
        let _new = NewFile::create(&new).unwrap();
        assert_eq!(mode(&new), 0o600);
    }

    #[tokio::test]
    async fn nothing_is_sent_without_a_record() {
        let setting = Setting::with(LINE);
        let plan = setting.plan().await.unwrap();
        std::fs::create_dir(&plan.journal).unwrap();
        let Err(failure) = setting.import().perform(&setting.dead.operator(), &plan).await else { panic!() };
        assert!(failure.to_string().contains("dead-letters.jsonl.done: "), "{failure}");
        assert_eq!(setting.dead.depth().visible, 0);
    }
}
