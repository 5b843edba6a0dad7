//! Limits the number of messages that an environment may hide.

use std::time::Duration;

use crate::account::{CallFailure, InFlightCount};
use crate::policy::Policy;
use crate::setting::HideUpTo;
use crate::time::Timestamp;

/// Minimum time between an environment's counts of the messages in flight. SQS's approximate counts settle within a
/// minute. Source: "Amazon SQS standard queues", SQS Developer Guide.
const BETWEEN_COUNTS: Duration = Duration::from_secs(60);
/// The size of a batch. An environment with room for fewer messages counts the messages in flight again.
const LOW: u64 = 10;

/// The number of messages in one retry queue that one handler environment may still hide.
///
/// If a count finds *n* of the queue's messages in flight, the environment has room for (`HIDE_UP_TO` − *n*) / (2 ×
/// `MAXIMUM_CONCURRENCY`) messages, or for none if *n* is larger than `HIDE_UP_TO`. Each message that stays hidden when
/// its batch ends reduces the room by one. An environment has no room before its first count, or after a failed one.
///
/// # Why this bounds the messages in flight
///
/// Let *P* be the number of pollers, *H* the value of `HIDE_UP_TO`, and *s* the last moment at which at most *H*
/// messages were in flight. Assume that a count is at most a minute old, and that no poller is served by more than one
/// new environment within a minute. From *s* on, an environment can hide at most
///
/// 1. *H* / 2*P* messages with the room that it has left at *s*, and
/// 2. *H* / 2*P* messages with the room from one more count. Only a count within a minute of *s* can still find fewer
///    than *H* messages in flight, and counts are a minute apart.
///
/// For all pollers together, that is *H*. In addition, one batch may be in progress for each poller, with any number of
/// its messages hidden. So at most 2 × *H* messages and one batch for each poller are in flight. With the highest
/// `HIDE_UP_TO` (55,000) and 1,000 pollers, that equals SQS's limit of 120,000. If a handler crashes, or Lambda loses a
/// deletion, more messages stay hidden: the messages of that batch for two hours, and the originals of moved messages
/// for up to 12 hours.
#[derive(Clone, Debug)]
pub struct Room {
    hide_up_to: HideUpTo,
    pollers: u64,
    left: u64,
    counted: Option<Timestamp>,
}

impl Room {
    pub(crate) const fn of(policy: &Policy) -> Self {
        let pollers = policy.settings().maximum_concurrency;
        Self { hide_up_to: policy.settings().hide_up_to, pollers, left: 0, counted: None }
    }

    /// Returns the room for a queue whose messages have not been counted yet. The settings stay the same.
    pub(crate) fn unknown(&self) -> Self {
        Self { left: 0, counted: None, ..self.clone() }
    }

    pub(crate) const fn left(&self) -> u64 {
        match self.hide_up_to {
            HideUpTo::Always => u64::MAX,
            HideUpTo::UpTo(_) => self.left,
        }
    }

    pub(crate) fn take(&mut self, messages: u64) {
        self.left = self.left.saturating_sub(messages);
    }

    /// Returns true if the messages in flight have not been counted yet and a count could give the environment some
    /// room.
    pub(crate) const fn is_unknown(&self) -> bool {
        self.counted.is_none() && self.share_of(0) > 0
    }

    /// Returns true if the environment has little room left and may now count the messages in flight.
    pub(crate) fn is_low(&self, now: Timestamp) -> bool {
        let may_count = self.counted.is_none_or(|at| now.since(at) >= BETWEEN_COUNTS);
        self.share_of(0) > 0 && self.left < LOW && may_count
    }

    /// Records a count of the messages in flight. After a failed count, there is no room for at least a minute.
    pub(crate) fn counted(&mut self, count: &Result<InFlightCount, CallFailure>, now: Timestamp) {
        self.left = count.as_ref().map_or(0, |count| self.share_of(count.in_flight));
        self.counted = Some(count.as_ref().map_or(now, |count| count.at));
    }

    /// Returns how many messages the environment may hide if the last count was `in_flight`; 0 for
    /// [`HideUpTo::Always`], which needs no count.
    const fn share_of(&self, in_flight: u64) -> u64 {
        match self.hide_up_to {
            HideUpTo::Always => 0,
            HideUpTo::UpTo(most) => most.saturating_sub(in_flight) / (2 * self.pollers),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::settings::Settings;

    fn room(hide_up_to: HideUpTo, pollers: u64) -> Room {
        let settings = Settings { hide_up_to, maximum_concurrency: pollers, ..Settings::default() };
        Room::of(&Policy::new(settings).unwrap())
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(1_000_000 + seconds)
    }

    fn found(in_flight: u64, seconds: u64) -> Result<InFlightCount, CallFailure> {
        Ok(InFlightCount { in_flight, at: at(seconds) })
    }

    #[test]
    fn a_new_environment_has_no_room_before_its_first_count() {
        let mut room = room(HideUpTo::UpTo(1_000), 5);
        assert!(room.left() == 0 && room.is_unknown() && room.is_low(at(0)));
        room.counted(&found(200, 1), at(0));
        assert_eq!(room.left(), 80, "(1,000 - 200) / 10");
        assert!(!room.is_unknown() && !room.is_low(at(500)));
    }

    #[test]
    fn low_room_is_counted_a_minute_after_the_last_count() {
        let mut room = room(HideUpTo::UpTo(1_000), 5);
        room.counted(&found(0, 1), at(0));
        room.take(90);
        assert!(room.left() == 10 && !room.is_low(at(61)), "a batch fits");
        room.take(1);
        assert!(!room.is_low(at(60)) && room.is_low(at(61)));
        room.take(20);
        assert_eq!(room.left(), 0);
        room.counted(&found(2_000, 61), at(61));
        assert!(room.left() == 0 && !room.is_low(at(120)) && room.is_low(at(121)));
    }

    #[test]
    fn a_failed_count_is_no_room_for_a_minute() {
        let mut room = room(HideUpTo::UpTo(1_000), 5);
        room.counted(&found(0, 1), at(0));
        room.counted(&Err(CallFailure { cause: "throttled".into(), remedy: None }), at(100));
        assert!(room.left() == 0 && !room.is_low(at(159)) && room.is_low(at(160)));
    }

    #[test]
    fn a_count_that_could_change_nothing_is_not_made() {
        for (hide_up_to, pollers, left) in
            [(HideUpTo::Always, 2, u64::MAX), (HideUpTo::UpTo(0), 2, 0), (HideUpTo::UpTo(39), 20, 0)]
        {
            let mut room = room(hide_up_to, pollers);
            assert!(!room.is_unknown() && !room.is_low(at(0)), "{hide_up_to}");
            room.take(10);
            assert_eq!((room.left(), room.is_low(at(1_000))), (left, false), "{hide_up_to}");
        }
    }

    proptest! {
        /// Checks the bound of [`Room`] with counts that are a minute old, and messages that never become visible
        /// again.
        #[test]
        fn messages_in_flight_are_bounded(
            most in 1..2_000u64,
            pollers in 2..20u64,
            turns in prop::collection::vec((0..20usize, 0..30u64, 0..10u8), 1..600),
        ) {
            let mut rooms = vec![(room(HideUpTo::UpTo(most), pollers), 0); pollers as usize];
            let in_hand = 10 * pollers;
            let (mut now, mut in_flight) = (0, in_hand);
            let mut history = vec![(0, in_hand)];
            for (turn, later, fate) in turns {
                now += later;
                let (room_of, born) = &mut rooms[turn % pollers as usize];
                if fate == 0 && now >= *born + 60 {
                    (*room_of, *born) = (room(HideUpTo::UpTo(most), pollers), now);
                }
                if room_of.is_low(at(now)) {
                    let minute_ago = now.saturating_sub(60);
                    let count = history.iter().rev().find(|(at, _)| *at <= minute_ago).map_or(in_hand, |(_, n)| *n);
                    room_of.counted(&found(count, now), at(now));
                }
                let hidden = room_of.left().min(10);
                room_of.take(hidden);
                in_flight += hidden;
                history.push((now, in_flight));
                prop_assert!(in_flight <= 2 * most + in_hand, "{in_flight} of {most}, {pollers} pollers");
            }
        }
    }
}
