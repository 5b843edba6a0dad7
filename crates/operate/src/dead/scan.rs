//! Receiving every letter once.

use std::io;

use comeback_delivery::{Cause, ErrorKind};
use comeback_engine::Timestamp;
use futures_util::future::join_all;

use super::deed::Trouble;
use super::held::Held;
use super::queue::{LetterQueue, Received};
use super::read::{End, MOST_HIDDEN, Progress, Read};
use super::seen::Seen;
use crate::{Failure, Interrupt};

/// Letters of one round, ten a receive.
pub(super) const ROUND: usize = 80;
const A_RECEIVE: usize = 10;
/// So many rounds in a row bring no letter that is new to us: sixteen long polls. Then there is none.
const QUIET_ROUNDS: u32 = 2;
/// Letters that are given back in one delivery.
const GIVEN_BACK_AT_ONCE: usize = 1_000;

/// Letters received one after another, none twice.
pub(super) struct Scan<'q, Q> {
    queue: &'q Q,
    interrupt: &'q Interrupt,
    until: Timestamp,
    held: Held,
    seen: Seen,
    hidden: u64,
    letters: u64,
    newer: u64,
    quiet_rounds: u32,
    most_hidden: u64,
}

impl<'q, Q: LetterQueue> Scan<'q, Q> {
    /// Of the letters that were sent until then.
    pub(super) fn new(queue: &'q Q, interrupt: &'q Interrupt, until: Timestamp) -> Result<Self, Failure> {
        Ok(Self {
            queue,
            interrupt,
            until,
            held: Held::new().map_err(|error| unheld(&error))?,
            seen: Seen::default(),
            hidden: 0,
            letters: 0,
            newer: 0,
            quiet_rounds: 0,
            most_hidden: MOST_HIDDEN,
        })
    }

    /// The next letters, `most` of them or a round. Each must be deleted, or held.
    pub(super) async fn next(&mut self, most: usize) -> Result<Vec<Received>, End> {
        loop {
            if self.interrupt.is_raised() {
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

    /// How many letters were read.
    pub(super) const fn letters(&self) -> u64 {
        self.letters
    }

    /// Keeps letters to be given back.
    pub(super) fn hold<'l>(&mut self, letters: impl IntoIterator<Item = &'l Received>) -> Result<(), End> {
        for letter in letters {
            let held = self.held.hold(&letter.record.receipt_handle);
            held.map_err(|error| End::Failed(unheld(&error)))?;
        }
        Ok(())
    }

    /// Letters were deleted: they are no longer in flight.
    pub(super) const fn deleted(&mut self, letters: u64) {
        self.hidden -= letters;
    }

    /// Gives back what is held, however the scan ended.
    pub(super) async fn give_back(self, end: End, tell: &dyn Fn(Progress)) -> Read {
        let Self { queue, held, letters, newer, .. } = self;
        let mut left = held.count();
        let mut read = Read { letters, newer, end, still_hidden: None };
        let handles = match held.handles() {
            Ok(handles) => handles,
            Err(error) => return Read { still_hidden: Some((left, unheld(&error).to_string())), ..read },
        };
        let mut handles = handles.peekable();
        while handles.peek().is_some() {
            tell(Progress::Hidden(left));
            let some = handles.by_ref().take(GIVEN_BACK_AT_ONCE).collect::<io::Result<Vec<_>>>();
            let some = match some {
                Ok(some) => some,
                Err(error) => {
                    read.hides(left, &unheld(&error).to_string());
                    break;
                }
            };
            left -= some.len() as u64;
            let failed: Vec<_> = queue.give_back(some).await.into_iter().filter_map(still_hides).collect();
            if let Some(cause) = failed.first() {
                let denied = matches!(cause.error(), Some(error) if error.kind == ErrorKind::Denied);
                read.hides(
                    failed.len() as u64 + if denied { left } else { 0 },
                    &Trouble::of("sqs:ChangeMessageVisibility", cause).why,
                );
                if denied {
                    break;
                }
            }
        }
        read
    }

    /// One round of receives: the letters of it that are new to us, and old enough. The others are held.
    async fn round(&mut self, most: usize) -> Result<Vec<Received>, End> {
        let sizes = (0..most).step_by(A_RECEIVE).map(|before| (most - before).min(A_RECEIVE));
        let answers = join_all(sizes.map(|size| self.queue.receive(size))).await;
        let mut failed = None;
        let (mut fresh, mut others, mut met_again) = (Vec::new(), Vec::new(), false);
        for answer in answers {
            let letters = answer.unwrap_or_else(|failure| {
                failed = Some(failure);
                Vec::new()
            });
            for letter in letters {
                let is_new = self.seen.insert(&letter.record.message_id);
                self.hidden += u64::from(is_new);
                met_again |= !is_new;
                let is_old = letter.record.sent <= self.until;
                self.letters += u64::from(is_new && is_old);
                self.newer += u64::from(is_new && !is_old);
                if is_new && is_old { fresh.push(letter) } else { others.push(letter) }
            }
        }
        self.hold(&others)?;
        if let Some(failure) = failed {
            self.hold(&fresh)?;
            return Err(End::Failed(failure));
        }
        // Letters that have come back meanwhile say nothing about others behind them.
        self.quiet_rounds += u32::from(fresh.is_empty() && !met_again);
        Ok(fresh)
    }
}

/// SQS refuses a handle whose letter is visible already, received by another, or gone: none of them is ours to show.
fn still_hides(given_back: Result<(), Cause>) -> Option<Cause> {
    given_back.err().filter(|cause| cause.error().is_none_or(|error| error.kind != ErrorKind::Refused))
}

fn unheld(error: &io::Error) -> Failure {
    Failure::CouldNot(format!("the temporary file that holds receipt handles: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead::tests::letters::{self, NOW};
    use crate::dead::tests::simulated::Simulated;

    #[tokio::test(start_paused = true)]
    async fn no_more_is_read_than_can_be_hidden_until_something_is_deleted() {
        let simulated = Simulated::new(7);
        (0..300).for_each(|_| drop(simulated.put(&letters::event("Timeout"))));
        let (_raise, interrupt) = Interrupt::new();
        let mut scan = Scan { most_hidden: 100, ..Scan::new(&simulated, &interrupt, NOW).unwrap() };
        for _ in 0..2 {
            let letters = scan.next(ROUND).await.unwrap();
            scan.hold(&letters).unwrap();
        }
        assert_eq!(scan.next(ROUND).await.unwrap_err(), End::TooManyHidden);
        scan.deleted(61);
        assert_eq!(scan.next(ROUND).await.unwrap().len(), 80);
        let read = scan.give_back(End::TooManyHidden, &|_| ()).await;
        assert_eq!(
            read.result("read 240 letters").unwrap_err().to_string(),
            "110000 letters are hidden at once, and SQS allows about 120000: the letters behind them cannot be read \
             before some are redriven or discarded; read 240 letters"
        );
    }
}
