//! The way back of an export. What was imported is recorded beside the file, so that repeating an import resumes it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};

use super::deed::Trouble;
use super::export::Line;
use super::pace::Pace;
use super::queue::{Destination, LetterQueue};
use super::read::Progress;
use super::seen::Seen;
use crate::{Failure, Interrupt};

/// An export that was read through, and what of it is still to be imported.
#[derive(Debug)]
pub struct Importing {
    path: PathBuf,
    done_path: PathBuf,
    done: Seen,
    /// Lines that are to be imported.
    pub letters: u64,
    /// Lines that were imported before, as the record beside the file says.
    pub before: u64,
    /// The last line is cut off. Its letter was never deleted: `discard` was killed while it wrote it.
    pub cut_off: bool,
}

/// What was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Letters that are in the dead-letter queue again.
    pub done: u64,
    /// Letters that were not, by what was wrong.
    pub left: BTreeMap<String, u64>,
    /// Whether the operator stopped it.
    pub interrupted: bool,
}

impl Importing {
    /// Reads the file, and the record of what was imported of it: the same path, and `.done`.
    ///
    /// # Errors
    ///
    /// One of them cannot be read, or a line is no letter. Nothing is sent then.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let mut done_path = path.as_os_str().to_owned();
        done_path.push(".done");
        let done_path = PathBuf::from(done_path);
        let mut importing = Self {
            path: path.to_owned(),
            done: done_before(&done_path)?,
            done_path,
            letters: 0,
            before: 0,
            cut_off: false,
        };
        let mut ids = Seen::default();
        let mut lines = Lines::of(path)?;
        while let Some(line) = lines.next()? {
            line.clone().message().map_err(|problem| lines.bad(&problem))?;
            if !ids.insert(&line.message_id) {
                return Err(lines.bad(&format!("message {:?} is there twice", line.message_id)));
            }
            let is_done = importing.done.contains(&line.message_id);
            importing.letters += u64::from(!is_done);
            importing.before += u64::from(is_done);
        }
        importing.cut_off = lines.cut_off;
        Ok(importing)
    }

    /// Where it is recorded what was imported.
    #[must_use]
    pub fn done_path(&self) -> &Path {
        &self.done_path
    }

    pub(super) async fn run<Q: LetterQueue>(
        self,
        queue: &Q,
        pace: Pace,
        interrupt: &Interrupt,
        tell: &dyn Fn(Progress),
    ) -> Result<Imported, Failure> {
        let mut imported = Imported { done: 0, left: BTreeMap::new(), interrupted: false };
        let unrecorded = |error: io::Error| unreadable(&self.done_path, &error);
        let done = OpenOptions::new().append(true).create(true).open(&self.done_path);
        let mut done = done.map_err(unrecorded)?;
        let mut lines = Lines::of(&self.path)?;
        loop {
            let at_once = if imported.done == 0 { 1 } else { pace.at_once() };
            let some = self.some(&mut lines, at_once)?;
            if some.is_empty() {
                return Ok(imported);
            }
            let turn = tokio::time::sleep(pace.time_for(some.len() as u64));
            let ids: Vec<String> = some.iter().map(|line| line.message_id.clone()).collect();
            let messages = some.into_iter().map(|line| line.message().map_err(|problem| lines.bad(&problem)));
            let messages = messages.collect::<Result<_, _>>()?;
            let answers = queue.send(Destination::DeadLetterQueue, messages).await;
            let mut of_all = None;
            for (id, answer) in ids.iter().zip(answers) {
                match answer {
                    Ok(()) => {
                        // Begun with its line's end, so that one that was cut off stays alone.
                        write!(done, "\n{id}").map_err(unrecorded)?;
                        imported.done += 1;
                    }
                    Err(cause) => {
                        let trouble = Trouble::of("sqs:SendMessage", &cause);
                        of_all = trouble.of_all.then(|| Failure::CouldNot(trouble.why.clone())).or(of_all);
                        *imported.left.entry(trouble.why).or_default() += 1;
                    }
                }
            }
            done.sync_data().map_err(unrecorded)?;
            tell(Progress::Done(imported.done));
            if let Some(failure) = of_all {
                return if imported.done == 0 { Err(failure) } else { Ok(imported) };
            }
            tokio::select! {
                () = turn => {}
                () = interrupt.raised() => return Ok(Imported { interrupted: true, ..imported }),
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
        Failure::CouldNot(format!("{path}: line {line} is no letter that `dead discard` wrote: {problem}"))
    }
}

/// The ids of an earlier import; none where there was none.
fn done_before(path: &Path) -> Result<Seen, Failure> {
    let mut done = Seen::default();
    let file = match File::open(path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(done),
        Err(error) => return Err(unreadable(path, &error)),
    };
    for id in file.lines() {
        done.insert(&id.map_err(|error| unreadable(path, &error))?);
    }
    Ok(done)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::CouldNot(format!("{}: {error}", path.display()))
}
