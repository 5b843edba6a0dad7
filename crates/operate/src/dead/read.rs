use super::queue::HIDDEN_FOR;
use crate::Failure;

/// Letters that are hidden at once at most. SQS allows about 120,000 messages in flight, and the letters that other
/// readers have at hand are among them.
pub const MOST_HIDDEN: u64 = 110_000;

/// How far the work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// So many letters were read.
    Read(u64),
    /// So many letters were acted on.
    Done(u64),
    /// So many letters are still to be given back.
    Hidden(u64),
}

/// Why no more letters were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// There are no more.
    All,
    /// There was nothing more to do.
    Enough,
    /// The operator stopped it.
    Interrupted,
    /// [`MOST_HIDDEN`] letters are hidden, and SQS hands out few more.
    TooManyHidden,
    /// It could not go on.
    Failed(Failure),
}

/// What was read of the dead-letter queue, and what is still hidden of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Letters that were read, each counted once.
    pub letters: u64,
    /// Letters that came too late, and were left alone.
    pub newer: u64,
    /// Why no more were read.
    pub end: End,
    /// Letters that could not be given back, and why. They come back by themselves.
    pub still_hidden: Option<(u64, String)>,
}

impl Read {
    /// Why it is not known that every letter was read, in words.
    #[must_use]
    pub fn incomplete(&self) -> Option<String> {
        match &self.end {
            End::All | End::Enough => None,
            End::Interrupted => Some("it was interrupted".into()),
            End::TooManyHidden => Some(format!(
                "{MOST_HIDDEN} letters are hidden at once, and SQS allows about 120000: the letters behind them cannot be \
                 read before some are redriven or discarded"
            )),
            End::Failed(failure) => Some(failure.to_string()),
        }
    }

    /// How a command ends that did this much of its work.
    ///
    /// # Errors
    ///
    /// It was stopped, or letters are left behind it.
    pub fn result(&self, done: &str) -> Result<(), Failure> {
        let hidden = self.still_hidden.as_ref().map(|(letters, why)| {
            let minutes = HIDDEN_FOR.as_secs() / 60;
            format!("{letters} letters could not be given back and are hidden for {minutes} minutes at most: {why}")
        });
        match (self.incomplete(), hidden) {
            (None, None) => Ok(()),
            (Some(_), hidden) if self.end == End::Interrupted => Err(Failure::Interrupted(
                hidden.into_iter().fold(done.to_owned(), |done, it| format!("{done}; {it}")),
            )),
            (incomplete, hidden) => {
                let parts = incomplete.into_iter().chain([done.to_owned()]).chain(hidden);
                Err(Failure::Undone(parts.collect::<Vec<_>>().join("; ")))
            }
        }
    }

    pub(super) fn hides(&mut self, letters: u64, why: &str) {
        let (count, _) = self.still_hidden.get_or_insert((0, why.to_owned()));
        *count += letters;
    }
}
