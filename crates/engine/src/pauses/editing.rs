//! What the commands do to the pauses before they write them back. `now` is their own clock.

use std::time::Duration;

use super::wire::LATEST;
use super::{Concurrency, LONGEST_SPREAD, Pause, PauseTarget, Pauses};
use crate::Timestamp;

/// For how long a pause that is over still counts: SQS keeps no message for longer.
const KEPT: Duration = Duration::from_secs(14 * 86_400);
/// What a String parameter of SSM's standard tier holds. Source: "Managing parameter tiers", AWS Systems
/// Manager User Guide.
pub const LONGEST_PAUSES: usize = 4_096;

/// An edit of the pauses that is refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EditError {
    /// The same target has an open pause.
    #[error("{} is paused since {}{}: resume it first", .0.target, .0.from, shown(.0))]
    AlreadyPaused(Box<Pause>),
    /// It would be over when it begins.
    #[error("the pause would end at {until}, which is not after its start at {from}: give a later end")]
    EndsTooSoon {
        /// Its start.
        from: Timestamp,
        /// Its end.
        until: Timestamp,
    },
    /// The handler would read none of the pauses any more.
    #[error("the pause would end in the year 10000 or later: give an earlier end, or none")]
    EndsTooLate,
    /// Nobody would restore the function's reserved concurrency at that end.
    #[error("a hard pause has no planned end: open it without one, and end it with resume")]
    HardWithEnd,
    /// Over [`LONGEST_SPREAD`].
    #[error("the spread is {0} s; it must be at most 1209600 s (14 days)")]
    SpreadTooLong(u64),
    /// The target has no open pause.
    #[error("{0} is not paused: pauses are listed by pause --list")]
    NotPaused(Box<PauseTarget>),
    /// Over [`LONGEST_PAUSES`].
    #[error(
        "the pauses would take {0} bytes; the parameter holds 4096: shorten the reasons, or resume a function"
    )]
    TooLarge(usize),
}

fn shown(Pause { by, why, .. }: &Pause) -> String {
    let by = by.iter().map(|by| format!(" by {by}"));
    by.chain(why.iter().map(|why| format!(" ({why})"))).collect()
}

impl Pauses {
    /// Opens a pause.
    ///
    /// # Errors
    ///
    /// The same target has an open pause, or the pause makes no sense.
    pub fn open(&self, pause: Pause, now: Timestamp) -> Result<Self, EditError> {
        if let Some(open) = self.iter().find(|other| other.target == pause.target && !other.is_over(now)) {
            return Err(EditError::AlreadyPaused(Box::new(open.clone())));
        }
        check_spread(pause.spread)?;
        match pause.until {
            Some(until) if until <= pause.from => {
                return Err(EditError::EndsTooSoon { from: pause.from, until });
            }
            Some(until) if until.as_secs() > LATEST => return Err(EditError::EndsTooLate),
            Some(_) if pause.concurrency != Concurrency::Untouched => return Err(EditError::HardWithEnd),
            _ => {}
        }
        Ok(Self::of(self.iter().cloned().chain([pause]).collect()))
    }

    /// Closes the open pauses of a target now, rounded up to a second: what was due in them comes back over
    /// `spread`. One that has not begun is taken out. Gives what they were too, for the concurrency that is to
    /// be restored.
    ///
    /// # Errors
    ///
    /// None is open, or the spread is too long.
    pub fn close(
        &self,
        target: &PauseTarget,
        spread: Duration,
        now: Timestamp,
    ) -> Result<(Self, Vec<Pause>), EditError> {
        check_spread(spread)?;
        let (mut open, mut others) = (Vec::new(), Vec::new());
        for pause in self.iter().cloned() {
            let closes = pause.target == *target && !pause.is_over(now);
            if closes { &mut open } else { &mut others }.push(pause);
        }
        if open.is_empty() {
            return Err(EditError::NotPaused(Box::new(target.clone())));
        }
        // Rounded down it would end before the latest event that it has held.
        let end = Timestamp::from_secs(now.as_millis().div_ceil(1_000));
        let begun = open.iter().filter(|pause| pause.from < end);
        others.extend(begun.map(|pause| {
            let spread = Duration::from_secs(spread.as_secs());
            Pause { until: Some(end), spread, ..pause.clone() }.closed()
        }));
        Ok((Self::of(others), open))
    }

    /// Without the pauses that ended over 14 days ago. Of those that are over, only what counts is kept, and
    /// those of one target that overlap or adjoin are one.
    #[must_use]
    pub fn tidied(&self, now: Timestamp) -> Self {
        let is_kept = |pause: &&Pause| pause.until.is_none_or(|until| now.since(until) <= KEPT);
        let mut tidied: Vec<Pause> = Vec::new();
        for pause in self.iter().filter(is_kept) {
            let pause = if pause.is_over(now) { pause.clone().closed() } else { pause.clone() };
            match tidied.iter_mut().find(|earlier| earlier.adjoins(&pause, now)) {
                Some(earlier) => earlier.absorb(&pause),
                None => tidied.push(pause),
            }
        }
        Self::of(tidied)
    }

    /// Whether the parameter holds them.
    ///
    /// # Errors
    ///
    /// [`EditError::TooLarge`], with the bytes that they would take.
    pub fn check_size(&self) -> Result<(), EditError> {
        let bytes = self.write().len();
        if bytes <= LONGEST_PAUSES { Ok(()) } else { Err(EditError::TooLarge(bytes)) }
    }
}

impl Pause {
    fn closed(self) -> Self {
        Self { by: None, why: None, concurrency: Concurrency::Untouched, ..self }
    }

    /// Whether both are over, of one target, and nothing lies between them. The other begins later.
    fn adjoins(&self, other: &Self, now: Timestamp) -> bool {
        let both_over = self.is_over(now) && other.is_over(now);
        both_over && self.target == other.target && self.until.is_some_and(|until| other.from <= until)
    }

    /// What was due in either comes back after the later end, as that pause says.
    fn absorb(&mut self, other: &Self) {
        if other.until >= self.until {
            (self.until, self.spread) = (other.until, other.spread);
        }
    }
}

fn check_spread(spread: Duration) -> Result<(), EditError> {
    if spread <= LONGEST_SPREAD { Ok(()) } else { Err(EditError::SpreadTooLong(spread.as_secs())) }
}
