//! Receiving every dead-letter once, and giving back what was not deleted.

use std::collections::BTreeMap;
use std::fmt;

use comeback_delivery::ErrorKind;
use comeback_engine::{Record, Timestamp};
use futures_util::future::join_all;
use serde::Serialize;

use crate::account::Failure;
use crate::operate::dead::queue::{CallFailure, HIDDEN_FOR, MOST_OF_A_RECEIVE, QueueCalls, ROUND, Received};
use crate::operate::deployment::queue::Depth;
use crate::operate::session::Interrupt;
use crate::text::numbers::counted;

/// Dead-letters hidden at once at most. SQS allows about 120,000 messages in flight, those of other readers included.
const MOST_HIDDEN: usize = 110_000;
/// Rounds in a row without a new dead-letter, after which the queue counts as read: sixteen long polls.
const QUIET_ROUNDS: u32 = 2;
/// Dead-letters given back in one delivery.
const GIVEN_BACK_AT_ONCE: usize = 1_000;
/// Giving back fewer dead-letters takes no time worth mentioning.
const MANY: usize = 2_000;

/// What each command that reads dead-letters has: the calls, Ctrl-C, and what hears how many were read or acted on.
pub(crate) struct Reader<'a, Q> {
    pub(crate) queue: &'a Q,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) progress: Box<dyn Fn(u64) + 'a>,
    /// Hears what takes a while.
    pub(crate) remark: Box<dyn Fn(&str) + 'a>,
}

/// Why reading ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Every dead-letter was read.
    All,
    /// The command needs no more dead-letters.
    Enough,
    Interrupted,
    /// [`MOST_HIDDEN`] dead-letters are hidden.
    TooManyHidden,
    Failed(Failure),
}

/// What was read of the dead-letter queue, and what is still hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// Dead-letters read, each counted once.
    pub(crate) dead_letters: u64,
    /// Dead-letters left alone, because they were sent too late.
    pub(crate) newer: u64,
    pub(crate) end: End,
    /// Dead-letters that could not be given back, and why. They become visible again.
    pub(crate) still_hidden: Option<(u64, String)>,
    /// Dead-letters that another reader has hidden.
    pub(crate) locked: Option<Locked>,
}

/// Dead-letters that another reader has hidden, or one that was killed: nobody can read them before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Locked {
    /// Approximately.
    pub(crate) dead_letters: u64,
    /// When the last of them is visible again if the command that has hidden it ended just now. SQS does not say when
    /// it was hidden, so a later check names a later time.
    pub(crate) until: Timestamp,
}

impl Locked {
    /// The dead-letters that other readers hide, in a queue that had `depth` at `now`, after `read` of them were read.
    pub(crate) fn of(depth: Depth, read: u64, now: Timestamp) -> Option<Self> {
        // The counts may be a minute old: what was hidden then may be visible, and read, by now.
        let dead_letters = depth.in_flight.saturating_sub(read.saturating_sub(depth.visible));
        (dead_letters > 0).then(|| Self { dead_letters, until: now.saturating_add(HIDDEN_FOR) })
    }

    fn in_short(&self) -> String {
        let minutes = HIDDEN_FOR.as_secs() / 60;
        format!("{} hidden by another command, for up to {minutes} minutes after that one ends", self.count())
    }

    fn count(&self) -> String {
        counted(self.dead_letters, "more is", "more are")
    }

    /// Rounded up to a minute.
    fn clock(&self) -> String {
        let until = Timestamp::from_secs(self.until.rounded_up_to_secs().as_secs().next_multiple_of(60));
        format!("{} UTC", until.to_string().get(11..16).unwrap_or_default())
    }
}

impl fmt::Display for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, clock) = (self.count(), self.clock());
        let minutes = HIDDEN_FOR.as_secs() / 60;
        write!(
            f,
            "{count} hidden by another command, possibly a killed one, for up to {minutes} minutes after its \
             end (until {clock} if it ended just now)"
        )
    }
}

impl Read {
    /// With the dead-letters that another reader has hidden, of a queue that was `depth` deep before. Dead-letters that
    /// came meanwhile are not of that depth.
    pub(crate) fn beside_locked(self, depth: Depth, now: Timestamp) -> Self {
        Self { locked: Locked::of(depth, self.dead_letters, now), ..self }
    }

    /// Why some dead-letters may not have been read.
    pub(crate) fn incomplete(&self) -> Option<String> {
        match &self.end {
            End::All => self.locked.map(|locked| locked.to_string()),
            End::Enough => None,
            End::Interrupted => Some("it was interrupted".into()),
            End::TooManyHidden => Some(format!(
                "{MOST_HIDDEN} dead-letters are hidden, and SQS allows about 120000 at once; redrive or \
                 discard some to reach the rest"
            )),
            End::Failed(failure) => Some(failure.to_string()),
        }
    }

    /// How a command ends that has done `done`.
    pub(crate) fn result(&self, done: &str) -> Result<(), Failure> {
        let hidden = self.still_hidden.as_ref().map(|(dead_letters, why)| {
            let minutes = HIDDEN_FOR.as_secs() / 60;
            format!(
                "{dead_letters} dead-letters could not be made visible again and stay hidden for up to \
                     {minutes} minutes: {why}"
            )
        });
        let locked = self.locked.filter(|_| self.end == End::All).map(|locked| locked.in_short());
        let is_whole = hidden.is_none() && locked.is_none();
        let after = [done.to_owned()].into_iter().chain(locked).chain(hidden);
        let before = match self.end {
            End::All | End::Enough if is_whole => return Ok(()),
            End::TooManyHidden | End::Failed(_) => self.incomplete(),
            End::All | End::Enough | End::Interrupted => None,
        };
        let what = before.into_iter().chain(after).collect::<Vec<_>>().join("; ");
        Err(if self.end == End::Interrupted { Failure::Interrupted(what) } else { Failure::Undone(what) })
    }
}

/// Receives dead-letters one after another, none twice.
pub(crate) struct Scan<'a, Q> {
    reader: &'a Reader<'a, Q>,
    until: Timestamp,
    /// Receipt handles of the dead-letters received so far, by message id: 110,000 take about 50 MB. `None` once it is
    /// deleted.
    handles: BTreeMap<String, Option<String>>,
    /// Handles that are not `None`.
    hidden: usize,
    read: Read,
    quiet_rounds: u32,
    most_hidden: usize,
}

impl<'a, Q: QueueCalls> Scan<'a, Q> {
    /// Reads dead-letters that were sent until `until`.
    pub(crate) fn new(reader: &'a Reader<'a, Q>, until: Timestamp) -> Self {
        let read = Read { dead_letters: 0, newer: 0, end: End::All, still_hidden: None, locked: None };
        let (handles, most_hidden) = (BTreeMap::new(), MOST_HIDDEN);
        Self { reader, until, handles, hidden: 0, read, quiet_rounds: 0, most_hidden }
    }

    /// Shows every dead-letter to `show` until it returns `true`, and gives all of them back.
    pub(crate) async fn show_each(
        mut self,
        mut show: impl FnMut(&Received) -> bool,
    ) -> Result<Read, Failure> {
        let end = loop {
            let dead_letters = match self.next(ROUND).await {
                Ok(dead_letters) => dead_letters,
                Err(end) => break end,
            };
            let is_enough = dead_letters.iter().any(&mut show);
            (self.reader.progress)(self.read.dead_letters);
            if is_enough {
                break End::Enough;
            }
        };
        self.give_back(end).await
    }

    /// The next dead-letters, at most `most` and at most a round. Those that are not [deleted](Self::deleted) are given
    /// back in the end.
    pub(crate) async fn next(&mut self, most: usize) -> Result<Vec<Received>, End> {
        loop {
            if self.reader.interrupt.is_raised() {
                return Err(End::Interrupted);
            }
            if self.hidden >= self.most_hidden {
                return Err(End::TooManyHidden);
            }
            let dead_letters = self.round(most.min(ROUND)).await?;
            if !dead_letters.is_empty() {
                self.quiet_rounds = 0;
                return Ok(dead_letters);
            }
            if self.quiet_rounds == QUIET_ROUNDS {
                return Err(End::All);
            }
        }
    }

    /// Records that a dead-letter was deleted, so that it is not given back.
    pub(crate) fn deleted(&mut self, dead_letter: &Received) {
        let handle = self.handles.insert(dead_letter.record.message_id.clone(), None);
        self.hidden -= usize::from(handle.flatten().is_some());
    }

    /// Gives back what is held, however the scan ended. A failure before any dead-letter was read is the command's.
    pub(crate) async fn give_back(self, end: End) -> Result<Read, Failure> {
        let Self { reader, handles, mut read, .. } = self;
        let handles: Vec<String> = handles.into_values().flatten().collect();
        if handles.len() > MANY {
            let count = counted(handles.len() as u64, "dead-letter", "dead-letters");
            (reader.remark)(&format!("making {count} visible again"));
        }
        let mut not_tried = handles.len();
        for some in handles.chunks(GIVEN_BACK_AT_ONCE) {
            not_tried -= some.len();
            let mut causes: Vec<_> =
                reader.queue.give_back(some.to_vec()).await.into_iter().filter_map(Result::err).collect();
            // SQS refuses the handle of a dead-letter that is visible, gone, or in another reader's hands: there is
            // nothing to give back.
            causes.retain(|cause| cause.error().is_none_or(|error| error.kind != ErrorKind::Refused));
            let Some(cause) = causes.first() else { continue };
            let failure = CallFailure::of("sqs:ChangeMessageVisibility", cause);
            let (hidden, _) = read.still_hidden.get_or_insert((0, failure.why));
            *hidden += causes.len() as u64;
            if matches!(cause.error(), Some(error) if error.kind == ErrorKind::Denied) {
                *hidden += not_tried as u64;
                break;
            }
        }
        match end {
            End::Failed(failure) if read.dead_letters == 0 => Err(failure),
            _ => Ok(Read { end, ..read }),
        }
    }

    /// Receives one round, and returns the dead-letters that are new to us and old enough.
    async fn round(&mut self, most: usize) -> Result<Vec<Received>, End> {
        let sizes = (0..most).step_by(MOST_OF_A_RECEIVE).map(|before| (most - before).min(MOST_OF_A_RECEIVE));
        let answers = join_all(sizes.map(|size| self.reader.queue.receive(size))).await;
        let (mut fresh, mut met_again, mut failed) = (Vec::new(), false, Ok(()));
        let dead_letters = answers.into_iter().flat_map(|answer| {
            answer.unwrap_or_else(|failure| {
                failed = Err(End::Failed(failure));
                Vec::new()
            })
        });
        for dead_letter in dead_letters {
            let Record { message_id, receipt_handle, .. } = &dead_letter.record;
            let known = self.handles.insert(message_id.clone(), Some(receipt_handle.clone()));
            self.hidden += usize::from(!matches!(known, Some(Some(_))));
            if known.is_some() {
                met_again = true;
            } else if dead_letter.record.sent <= self.until {
                self.read.dead_letters += 1;
                fresh.push(dead_letter);
            } else {
                self.read.newer += 1;
            }
        }
        failed?;
        // A dead-letter received again says nothing about dead-letters behind it.
        self.quiet_rounds += u32::from(fresh.is_empty() && !met_again);
        Ok(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::dead::simulated::{NOW, Simulated, event};

    #[tokio::test(start_paused = true)]
    async fn reading_stops_at_the_limit_of_hidden_dead_letters() {
        let simulated = Simulated::with((0..300).map(|_| event("Timeout")));
        let (_raise, interrupt) = Interrupt::new();
        let reader = Reader {
            queue: &simulated,
            interrupt: &interrupt,
            progress: Box::new(|_| ()),
            remark: Box::new(|_| ()),
        };
        let mut scan = Scan { most_hidden: 100, ..Scan::new(&reader, NOW) };
        let dead_letters = scan.next(ROUND).await.unwrap();
        scan.next(ROUND).await.unwrap();
        assert_eq!(scan.next(ROUND).await.unwrap_err(), End::TooManyHidden);
        dead_letters.iter().take(61).for_each(|dead_letter| scan.deleted(dead_letter));
        assert_eq!(scan.next(ROUND).await.unwrap().len(), 80);
        let read = scan.give_back(End::TooManyHidden).await.unwrap();
        assert_eq!(
            read.result("read 240 dead-letters").unwrap_err().to_string(),
            "110000 dead-letters are hidden, and SQS allows about 120000 at once; redrive or discard some to \
             reach the rest; read 240 dead-letters"
        );
    }

    #[test]
    fn dead_letters_that_another_reader_hides_are_counted_and_end_with_3() {
        let depth = |visible, in_flight| Depth { visible, in_flight, delayed: 0 };
        assert_eq!(Locked::of(depth(4, 0), 4, NOW), None);
        // Given back since the counts were taken, and read.
        assert_eq!(Locked::of(depth(4, 51), 55, NOW), None);
        let locked = Locked::of(depth(4, 51), 4, NOW).unwrap();
        assert_eq!(
            locked.to_string(),
            "51 more are hidden by another command, possibly a killed one, for up to 15 minutes after its end \
             (until 03:49 UTC if it ended just now)"
        );
        assert_eq!(locked.until, Timestamp::from_secs(2_000_000_000 + 900));
        let read =
            Read { dead_letters: 4, newer: 0, end: End::All, still_hidden: None, locked: Some(locked) };
        let undone = "read 4 dead-letters; 51 more are hidden by another command, for up to 15 minutes after \
                      that one ends";
        assert_eq!(read.result("read 4 dead-letters"), Err(Failure::Undone(undone.into())));
        let with_newer = Read { dead_letters: 4, newer: 6, ..read }.beside_locked(depth(4, 51), NOW);
        assert_eq!(with_newer.locked.unwrap().dead_letters, 51);
        let enough =
            Read { dead_letters: 4, newer: 0, end: End::Enough, still_hidden: None, locked: Some(locked) };
        assert_eq!(enough.result("the dead-letter was found"), Ok(()));
    }
}
