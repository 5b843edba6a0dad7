//! How fast waits pass after an outage, computed only from a function's published metrics, minute by minute. During an
//! outage, backoffs grow to hours: right while the function is down, wrong once it works again.
//!
//! Each minute of the series leads from one state to the next:
//!
//! - The function is *down* if the newest minutes with data, at least 5 of them, hold 500 attempts, and 99.5 % of these
//!   failed. It stays down while 99.5 % of each further minute's attempts fail, however few they are.
//! - Then it is *recovering*. Its speed begins at 1 and grows while it copes: by a factor of 1.35 a minute, up to 20, while
//!   at most 10 % of a minute's attempts fail and its load is under half of what it was in the last 60 minutes of the outage
//!   that have data. The speed halves if over 30 % fail, or if the load is over 0.7 of the outage's.
//! - It is well 6 hours after the last minute with that many attempts, or once the clocks have run through 12 hours, the
//!   longest backoff.
//!
//! The speed in a minute is that of the state 3 minutes before: later minutes are not complete yet. A minute without data
//! changes nothing, but after 10 of them in a row it is *unknown* how a function is that was down or recovering, and the
//! speed is 1, until there is data again.
//!
//! A function may be taken for down without an outage. With the default policy and steady traffic it is not, as
//! [`LEAST_ATTEMPTS`] says. But if 30 % of its events always fail and are retried every minute for a day, 99.9 % of its
//! attempts fail; and if traffic stops, only the retries of what always fails are left. That makes no retry late: the speed
//! is 1 while it is down, and grows only while at most 10 % fail.

use std::collections::VecDeque;
use std::iter::successors;
use std::time::Duration;

use crate::Timestamp;
use crate::timing::{QUEUE_VISIBILITY_TIMEOUT, RETENTION_MARGIN};

/// How many minutes a series must reach back. It covers the longest backoff (12 hours), the longest recovery that may have
/// been under way when that began, and the minutes before it that show the outage and its load. A longer series changes no
/// due time of a message that has waited for at most 12 hours.
pub const SERIES_MINUTES: u64 = LONGEST_SERVED + LONGEST_RECOVERY + LOOK_BACK + 60;

/// A minute counts once its beginning is this many minutes old. Lambda's metrics are complete one to two minutes after
/// its end.
const SETTLED_AFTER: u64 = 3;
/// Fewest minutes with data that can show an outage: a burst of failures is shorter.
const LEAST_DOWN: usize = 5;
/// Fewest attempts in them. If half of the events always fail, retries under the default policy make 95 % of the attempts
/// fail, and 500 attempts then hold 24 successes on average. The probability of at most 2 is 10⁻⁸.
const LEAST_ATTEMPTS: u64 = 500;
/// At most one attempt in this many may have succeeded.
const ATTEMPTS_PER_SUCCESS: u64 = 200;
/// No minute older than this is considered. A function with fewer attempts is retried as its policy says.
const LOOK_BACK: u64 = 180;
/// Minutes of an outage whose mean load is the measure of the load after it: enough to even out the bursts of retries,
/// and so few that the attempts of its beginning, when backoffs are short, are not among them after some hours.
const MEASURED: usize = 60;
/// In minutes. What still waits by then has served half of the longest backoff in real time.
const LONGEST_RECOVERY: u64 = 6 * 60;
/// The longest backoff, in minutes.
const LONGEST_SERVED: u64 = 12 * 60;
/// Minutes without data after which the speed is 1. CloudWatch has none for a minute without an invocation.
const LONGEST_SILENCE: u64 = 10;

/// Speeds are in hundredths.
const REAL_TIME: u64 = 100;
/// A wait of 12 hours is over in 36 minutes. The model of this controller grew by 1.6 a minute, up to 10, under a load of
/// 0.7 of that of the outage: its busiest minute had 16 times the usual load, twice that without a recovery. So the speed
/// here grows more slowly and stops at a lower load, and the higher limit makes up for the time that this takes.
const FASTEST: u64 = 2_000;
/// What the speed is multiplied by in a minute in which the function copes, in hundredths. A minute's load is known 3
/// minutes later, when the speed has grown 2.5-fold: more would overshoot.
const GROWTH: u64 = 135;
/// It copes while at most this many in a hundred attempts fail, as they may without an outage …
const FEW_FAILURES: u64 = 10;
/// … and its load is under this many hundredths of that of the outage. With a higher limit, the load overshoots.
const LOW_LOAD: u64 = 50;
/// The speed halves if more than this many in a hundred attempts fail …
const MANY_FAILURES: u64 = 30;
/// … or if the load is over this many hundredths. In between, the speed stays, so that it does not swing.
const HIGH_LOAD: u64 = 70;

const MINUTE_MS: u64 = 60_000;

/// Shortest and longest time between two looks at a waiting event, except for very long waits.
pub(crate) const LOOKS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(300));
/// Within these bounds, looks are an eighth of the time waited apart.
const WAITED_PER_LOOK: u32 = 8;
/// After very long waits, they are at least a 48th of it apart.
const WAITED_PER_LATE_LOOK: u32 = 48;
/// Receives until SQS would delete a message, if no hiding works from now on: with more than this, looks for a recovery are
/// as rare as the receives of a message that nobody hides. SQS allows 1,000, and pieces cut short take a few.
const RECEIVES_TO_SPARE: u64 = 985;

/// CloudWatch's figures of one minute of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricMinute {
    /// Its number, counted from the epoch.
    pub number: u64,
    /// Invocations that began in it.
    pub invocations: u32,
    /// How many of them failed.
    pub errors: u32,
}

impl MetricMinute {
    pub(crate) const fn is_possible(self) -> bool {
        self.errors <= self.invocations
    }

    /// Whether it is old enough to count. Its two metrics are published separately, so until then it may show more errors
    /// than invocations.
    pub(crate) const fn has_settled(self, now: Timestamp) -> bool {
        self.number.saturating_add(SETTLED_AFTER) <= now.as_millis() / MINUTE_MS
    }
}

/// A series that contradicts itself. Nothing in it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} errors in {} invocations at {}, or a minute twice", .0.errors, .0.invocations, beginning_of(.0.number))]
pub struct Contradiction(MetricMinute);

/// What a function's minutes say at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nothing to wait for, as far as there is data.
    Well,
    /// It was down or recovering, and there is no data since.
    Unknown {
        /// The end of its last minute with data.
        since: Timestamp,
    },
    /// Nearly every invocation fails.
    Down {
        /// When the known part of its outage began.
        since: Timestamp,
    },
    /// It works again.
    Recovering {
        /// The end of its last down minute.
        since: Timestamp,
        /// How fast the clocks of its waiting events run, in hundredths: 100 to 2,000.
        speed: u64,
    },
}

/// The course of a function, minute by minute. By default nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The number of the first minute.
    first: u64,
    /// The state after each minute.
    after: Vec<Health>,
}

impl Recovery {
    /// Follows the minutes, in any order.
    ///
    /// # Errors
    ///
    /// A minute has more errors than invocations, or appears twice.
    pub fn of(minutes: impl IntoIterator<Item = MetricMinute>) -> Result<Self, Contradiction> {
        let mut minutes: Vec<MetricMinute> = minutes.into_iter().collect();
        minutes.sort_unstable_by_key(|minute| minute.number);
        let twice = minutes.windows(2).find(|pair| pair[0].number == pair[1].number).map(|pair| pair[1]);
        let impossible = minutes.iter().copied().find(|minute| !minute.is_possible());
        if let Some(minute) = impossible.or(twice) {
            return Err(Contradiction(minute));
        }
        minutes.retain(|minute| minute.invocations > 0);
        let Some(last) = minutes.last().map(|minute| minute.number) else {
            return Ok(Self::default());
        };
        let first = last.saturating_sub(SERIES_MINUTES);
        minutes.retain(|minute| minute.number >= first);
        let mut course = Course::default();
        let mut known = minutes.into_iter().peekable();
        // The last of these is as good as any later one: there is no data since.
        let numbers = first..=last.saturating_add(LONGEST_SILENCE + 1);
        let after = numbers.map(|number| course.next(number, known.next_if(|it| it.number == number)));
        Ok(Self { first, after: after.collect() })
    }

    /// What is known at a moment.
    pub fn health(&self, now: Timestamp) -> Health {
        let settled = (now.as_millis() / MINUTE_MS).checked_sub(SETTLED_AFTER);
        let index = settled.and_then(|minute| minute.checked_sub(self.first));
        let index = index.map(|index| usize::try_from(index).unwrap_or(usize::MAX));
        let state = index.and_then(|index| self.after.get(index).or(self.after.last()));
        state.copied().unwrap_or(Health::Well)
    }

    /// When a backoff of `delay` that began at `start` is over: a moment up to `now` if the faster clock has served it
    /// already, and otherwise now plus the rest in real time. Never later than in real time.
    pub(crate) fn served(&self, start: Timestamp, delay: Duration, now: Timestamp) -> Timestamp {
        let in_real_time = start.saturating_add(delay);
        let end = now.min(in_real_time).as_millis();
        let mut at = start.as_millis();
        let mut left = in_real_time.as_millis().saturating_sub(at).saturating_mul(REAL_TIME);
        while at < end {
            let speed = self.health(Timestamp::from_millis(at)).speed();
            let until = (at / MINUTE_MS).saturating_add(1).saturating_mul(MINUTE_MS).min(end);
            let served = (until - at).saturating_mul(speed);
            if served >= left {
                return Timestamp::from_millis(at + left.div_ceil(speed));
            }
            (left, at) = (left - served, until);
        }
        Timestamp::from_millis(at.saturating_add(left.div_ceil(REAL_TIME))).min(in_real_time)
    }
}

impl Health {
    /// How fast the clocks run, in hundredths.
    pub const fn speed(self) -> u64 {
        match self {
            Self::Recovering { speed, .. } => speed,
            Self::Well | Self::Unknown { .. } | Self::Down { .. } => REAL_TIME,
        }
    }
}

/// How long to hide a message that has waited for this long, so that a recovery is noticed. `age` is the time since the
/// message was sent.
pub(crate) fn look_after(waited: Duration, receives: u32, age: Duration) -> Duration {
    let unhidden = RETENTION_MARGIN.saturating_sub(age).as_secs() / QUEUE_VISIBILITY_TIMEOUT.as_secs();
    let is_tight = u64::from(receives) + unhidden >= RECEIVES_TO_SPARE;
    let shortest = if is_tight { QUEUE_VISIBILITY_TIMEOUT } else { LOOKS.0 };
    (waited / WAITED_PER_LOOK).min(LOOKS.1).max(waited / WAITED_PER_LATE_LOOK).max(shortest)
}

/// How many of these looks a wait takes, with pieces of at most `longest_hide`.
pub fn looks_within(wait: Duration, longest_hide: Duration) -> usize {
    let next = |&(waited, receives): &(Duration, u32)| {
        Some((waited + look_after(waited, receives, waited).min(longest_hide), receives + 1))
    };
    successors(next(&(Duration::ZERO, 1)), next).take_while(|(waited, _)| *waited < wait).count()
}

/// The state on the way through the minutes.
#[derive(Debug, Default)]
struct Course {
    /// The known minutes of the last [`LOOK_BACK`].
    recent: VecDeque<MetricMinute>,
    /// Since the last known minute.
    silence: u64,
    outage: Option<Outage>,
}

/// An outage, and what came after it.
#[derive(Clone, Copy, Debug)]
struct Outage {
    /// The number of the first minute that made it down.
    began: u64,
    /// The number of the last one that [made it down](Course::down_since).
    last_down: u64,
    /// The number of the last one in which it failed: that one, or a later one with fewer attempts.
    last_failed: u64,
    /// Attempts in its last 60 known minutes, and in how many minutes.
    load: (u64, u64),
    /// It did not fail in a later minute.
    is_over: bool,
    /// In hundredths.
    speed: u64,
    /// In hundredths of minutes.
    served: u64,
}

impl Course {
    fn next(&mut self, number: u64, known: Option<MetricMinute>) -> Health {
        self.silence = if known.is_some() { 0 } else { self.silence + 1 };
        self.recent.extend(known);
        while self.recent.front().is_some_and(|oldest| number - oldest.number >= LOOK_BACK) {
            self.recent.pop_front();
        }
        if let (Some(_), Some(since)) = (known, self.down_since(number)) {
            let began = self.outage.filter(|outage| !outage.is_over).map_or(since, |outage| outage.began);
            self.outage = Some(Outage {
                began,
                last_down: number,
                last_failed: number,
                load: self.load(),
                is_over: false,
                speed: REAL_TIME,
                served: 0,
            });
        } else if let Some(outage) = &mut self.outage {
            known.into_iter().for_each(|minute| outage.steer(minute));
            outage.served += if self.silence > LONGEST_SILENCE { REAL_TIME } else { outage.speed };
        }
        self.outage.take_if(|outage| outage.is_forgotten(number));
        self.health(number)
    }

    /// The first minute of the newest down minutes, if the function is down.
    fn down_since(&self, number: u64) -> Option<u64> {
        let (mut attempts, mut errors, mut since) = (0, 0, number);
        for (newer, minute) in self.recent.iter().rev().enumerate() {
            if newer >= LEAST_DOWN && attempts >= LEAST_ATTEMPTS {
                break;
            }
            attempts += u64::from(minute.invocations);
            errors += u64::from(minute.errors);
            since = minute.number;
        }
        let is_enough = self.recent.len() >= LEAST_DOWN && attempts >= LEAST_ATTEMPTS;
        (is_enough && fails(attempts, errors)).then_some(since)
    }

    fn load(&self) -> (u64, u64) {
        let newest = self.recent.iter().rev().take(MEASURED).map(|minute| u64::from(minute.invocations));
        newest.fold((0, 0), |(attempts, minutes), invocations| (attempts + invocations, minutes + 1))
    }

    fn health(&self, number: u64) -> Health {
        match self.outage {
            None => Health::Well,
            Some(outage) if self.silence <= LONGEST_SILENCE => outage.health(),
            Some(_) => Health::Unknown { since: beginning_of((number + 1).saturating_sub(self.silence)) },
        }
    }
}

impl Outage {
    /// A minute that does not make it down.
    fn steer(&mut self, MetricMinute { number, invocations, errors }: MetricMinute) {
        let (invocations, errors) = (u64::from(invocations), u64::from(errors));
        if !self.is_over && fails(invocations, errors) {
            self.last_failed = number;
            return;
        }
        self.is_over = true;
        let (attempts, minutes) = self.load;
        let (failures, load) = (100 * errors, 100 * invocations * minutes);
        if failures > MANY_FAILURES * invocations || load > HIGH_LOAD * attempts {
            self.speed = (self.speed / 2).max(REAL_TIME);
        } else if failures <= FEW_FAILURES * invocations && load < LOW_LOAD * attempts {
            self.speed = (self.speed * GROWTH / 100).min(FASTEST);
        }
    }

    /// Only minutes with enough attempts count for the gain, so that it does not depend on how far a series reaches back.
    const fn is_forgotten(&self, number: u64) -> bool {
        if self.is_over {
            number - self.last_down >= LONGEST_RECOVERY || self.served >= LONGEST_SERVED * REAL_TIME
        } else {
            number - self.last_failed >= LONGEST_RECOVERY
        }
    }

    fn health(&self) -> Health {
        if self.is_over {
            Health::Recovering { since: beginning_of(self.last_failed.saturating_add(1)), speed: self.speed }
        } else {
            Health::Down { since: beginning_of(self.began) }
        }
    }
}

/// Whether as good as all attempts fail.
const fn fails(attempts: u64, errors: u64) -> bool {
    (attempts - errors) * ATTEMPTS_PER_SUCCESS <= attempts
}

fn beginning_of(number: u64) -> Timestamp {
    Timestamp::from_millis(number.saturating_mul(MINUTE_MS))
}

#[cfg(test)]
mod tests;
