//! Receiving every letter once, and giving back what was not deleted.

use std::collections::HashSet;
use std::ops::ControlFlow;

use comeback_delivery::{Cause, ErrorKind};
use comeback_engine::Timestamp;
use futures_util::future::join_all;

use crate::operate::account::Failure;
use crate::operate::dead::queue::{CallFailure, HIDDEN_FOR, LetterQueue, MOST_OF_A_RECEIVE, ROUND, Received};
use crate::operate::session::Interrupt;

/// Letters hidden at once at most. SQS allows about 120,000 messages in flight, those of other readers included.
const MOST_HIDDEN: u64 = 110_000;
/// Rounds in a row without a new letter, after which the queue counts as read: sixteen long polls.
const QUIET_ROUNDS: u32 = 2;
/// Letters given back in one delivery.
const GIVEN_BACK_AT_ONCE: usize = 1_000;

/// What each command that reads letters has: the calls, Ctrl-C, and the progress bar.
pub(crate) struct Reader<'a, Q> {
    pub(crate) queue: &'a Q,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) progress: &'a dyn Fn(Progress),
}

/// How far a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Letters read.
    Read(u64),
    /// Letters redriven, discarded, imported or moved.
    Done(u64),
    /// Letters still to be given back.
    Hidden(u64),
}

/// Why reading ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Every letter was read.
    All,
    /// The command needs no more letters.
    Enough,
    Interrupted,
    /// [`MOST_HIDDEN`] letters are hidden.
    TooManyHidden,
    Failed(Failure),
}

/// What was read of the dead-letter queue, and what is still hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// Letters read, each counted once.
    pub(crate) letters: u64,
    /// Letters left alone, because they were sent too late.
    pub(crate) newer: u64,
    pub(crate) end: End,
    /// Letters that could not be given back, and why. They become visible by themselves.
    pub(crate) still_hidden: Option<(u64, String)>,
}

impl Read {
    /// Why some letters may not have been read.
    pub(crate) fn incomplete(&self) -> Option<String> {
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

    /// How a command ends that has done `done`.
    pub(crate) fn result(&self, done: &str) -> Result<(), Failure> {
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

    /// A failure before any letter was read is the command's.
    pub(crate) fn begun(self) -> Result<Self, Failure> {
        match self.end {
            End::Failed(failure) if self.letters == 0 => Err(failure),
            _ => Ok(self),
        }
    }

    fn hides(&mut self, letters: u64, why: &str) {
        let (count, _) = self.still_hidden.get_or_insert((0, why.to_owned()));
        *count += letters;
    }
}

/// Receives letters one after another, none twice.
pub(crate) struct Scan<'a, Q> {
    reader: &'a Reader<'a, Q>,
    until: Timestamp,
    /// Receipt handles of the letters to give back: 110,000 take about 50 MB.
    held: Vec<String>,
    /// Ids of the messages received so far.
    seen: HashSet<String>,
    hidden: u64,
    letters: u64,
    newer: u64,
    quiet_rounds: u32,
    most_hidden: u64,
}

impl<'a, Q: LetterQueue> Scan<'a, Q> {
    /// Reads letters that were sent until `until`.
    pub(crate) fn new(reader: &'a Reader<'a, Q>, until: Timestamp) -> Self {
        let (held, seen) = (Vec::new(), HashSet::new());
        let most_hidden = MOST_HIDDEN;
        Self { reader, until, held, seen, hidden: 0, letters: 0, newer: 0, quiet_rounds: 0, most_hidden }
    }

    /// Shows every letter to `look` until it breaks, and gives all of them back.
    pub(crate) async fn look(
        mut self,
        mut look: impl FnMut(&Received) -> ControlFlow<()>,
    ) -> Result<Read, Failure> {
        let end = loop {
            let letters = match self.next(ROUND).await {
                Ok(letters) => letters,
                Err(end) => break end,
            };
            let is_enough = letters.iter().any(|letter| look(letter).is_break());
            self.hold(&letters);
            (self.reader.progress)(Progress::Read(self.letters));
            if is_enough {
                break End::Enough;
            }
        };
        self.give_back(end).await.begun()
    }

    /// The next letters, at most `most` and at most a round. The caller deletes or holds each.
    pub(crate) async fn next(&mut self, most: usize) -> Result<Vec<Received>, End> {
        loop {
            if self.reader.interrupt.is_raised() {
                return Err(End::Interrupted);
            }
            if self.hidden >= self.most_hidden {
                return Err(End::TooManyHidden);
            }
            let letters = self.round(most.min(ROUND)).await?;
            if !letters.is_empty() {
                self.quiet_rounds = 0;
                return Ok(letters);
            }
            if self.quiet_rounds == QUIET_ROUNDS {
                return Err(End::All);
            }
        }
    }

    /// Keeps letters to be given back.
    pub(crate) fn hold<'l>(&mut self, letters: impl IntoIterator<Item = &'l Received>) {
        self.held.extend(letters.into_iter().map(|letter| letter.record.receipt_handle.clone()));
    }

    /// A letter was deleted: it is no longer in flight.
    pub(crate) const fn deleted(&mut self) {
        self.hidden -= 1;
    }

    /// Gives back what is held, however the scan ended.
    pub(crate) async fn give_back(self, end: End) -> Read {
        let Self { reader, mut held, letters, newer, .. } = self;
        let mut read = Read { letters, newer, end, still_hidden: None };
        while !held.is_empty() {
            (reader.progress)(Progress::Hidden(held.len() as u64));
            let later = held.split_off(held.len().min(GIVEN_BACK_AT_ONCE));
            let some = std::mem::replace(&mut held, later);
            let answers = reader.queue.give_back(some).await;
            let failed: Vec<_> = answers.into_iter().filter_map(still_hides).collect();
            if let Some(cause) = failed.first() {
                let denied = matches!(cause.error(), Some(error) if error.kind == ErrorKind::Denied);
                let not_tried = if denied { held.len() } else { 0 };
                let why = CallFailure::of("sqs:ChangeMessageVisibility", cause).why;
                read.hides((failed.len() + not_tried) as u64, &why);
                if denied {
                    break;
                }
            }
        }
        read
    }

    /// Receives one round, and returns the letters that are new to us and old enough. The others are held.
    async fn round(&mut self, most: usize) -> Result<Vec<Received>, End> {
        let sizes = (0..most).step_by(MOST_OF_A_RECEIVE).map(|before| (most - before).min(MOST_OF_A_RECEIVE));
        let answers = join_all(sizes.map(|size| self.reader.queue.receive(size))).await;
        let mut failed = None;
        let (mut fresh, mut others, mut met_again) = (Vec::new(), Vec::new(), false);
        for answer in answers {
            let letters = answer.unwrap_or_else(|failure| {
                failed = Some(failure);
                Vec::new()
            });
            for letter in letters {
                let is_new = self.seen.insert(letter.record.message_id.clone());
                self.hidden += u64::from(is_new);
                met_again |= !is_new;
                let is_old = letter.record.sent <= self.until;
                self.letters += u64::from(is_new && is_old);
                self.newer += u64::from(is_new && !is_old);
                if is_new && is_old { fresh.push(letter) } else { others.push(letter) }
            }
        }
        self.hold(&others);
        if let Some(failure) = failed {
            self.hold(&fresh);
            return Err(End::Failed(failure));
        }
        // A letter received again says nothing about letters behind it.
        self.quiet_rounds += u32::from(fresh.is_empty() && !met_again);
        Ok(fresh)
    }
}

/// SQS refuses a handle whose letter is visible, received by another reader, or gone. We need not give those back.
fn still_hides(given_back: Result<(), Cause>) -> Option<Cause> {
    given_back.err().filter(|cause| cause.error().is_none_or(|error| error.kind != ErrorKind::Refused))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::dead::simulated::{NOW, Simulated, event};

    #[tokio::test(start_paused = true)]
    async fn reading_stops_at_the_limit_of_hidden_letters() {
        let simulated = Simulated::with((0..300).map(|_| event("Timeout")));
        let (_raise, interrupt) = Interrupt::new();
        let reader = Reader { queue: &simulated, interrupt: &interrupt, progress: &|_| () };
        let mut scan = Scan { most_hidden: 100, ..Scan::new(&reader, NOW) };
        for _ in 0..2 {
            let letters = scan.next(ROUND).await.unwrap();
            scan.hold(&letters);
        }
        assert_eq!(scan.next(ROUND).await.unwrap_err(), End::TooManyHidden);
        (0..61).for_each(|_| scan.deleted());
        assert_eq!(scan.next(ROUND).await.unwrap().len(), 80);
        let read = scan.give_back(End::TooManyHidden).await;
        assert_eq!(
            read.result("read 240 letters").unwrap_err().to_string(),
            "110000 letters are hidden at once, and SQS allows about 120000: the letters behind them cannot be read \
             before some are redriven or discarded; read 240 letters"
        );
    }
}
