//! When the handler looks at a message whose wait is split into pieces, and which of these looks it logs.

use std::time::Duration;

use rand::RngExt;

use crate::due::Case;
use crate::seed::generator;
use crate::time::ceil_secs;
use crate::timing::{LONGEST_VISIBILITY, QUEUE_VISIBILITY_TIMEOUT, longest_between_reads};
use crate::{Directive, Timestamp};

/// The shortest first piece, in seconds.
const SHORTEST: u64 = 60;
/// How much earlier than its moment a look may come, because clocks differ.
const EARLY: Duration = Duration::from_secs(10);
/// How late a look usually is, at most.
const LATE: Duration = Duration::from_secs(30);
/// From this receive on, no piece is shortened to end at a look's moment. If SQS refused every second hiding, every second
/// piece would be short: 63 receives in half a day. With 1,230 s for each of the others, that makes 977 in 13 days and 12
/// hours.
const WHOLE_FROM_RECEIVE: u32 = 64;

/// The moments of the looks at one wait: the first within `LONGEST_HIDE` of its start, and then one every
/// `LONGEST_HIDE`.
///
/// The first is drawn, so that events that failed together are not looked at together: an order to retry finds them spread
/// over `LONGEST_HIDE`. Its seed includes the wait under the current policy, because no handler remembers the policy under
/// which it hid a message: after a change of policy, the moments differ. So a look at one of these moments follows a look
/// under the same policy, and any other look has a reason that is worth logging: the message was throttled, its handler
/// died, or the policy has changed. A change is not logged if the old and the new moment are within seconds of each other;
/// with an hour between looks, that is one message in a hundred.
pub(crate) struct Looks {
    start: Timestamp,
    /// From the start to the first.
    first: Duration,
    apart: Duration,
}

impl Looks {
    pub(crate) fn of(case: &Case<'_, '_>) -> Self {
        let Case { event, record, policy, .. } = *case;
        let wait = match event.directive {
            Some(Directive::RetryAfter(moment)) => moment.as_secs(),
            _ => case.draw().as_secs(),
        };
        let seed = format!("{} {} look {}", record.first_id(), event.retry, policy.max_age.as_secs());
        let first = generator(&seed, wait).random_range(SHORTEST..=policy.longest_hide.as_secs());
        Self { start: case.start(), first: Duration::from_secs(first), apart: policy.longest_hide }
    }

    /// Whole seconds from this look until the next: at most `LONGEST_HIDE`.
    pub(crate) fn next(&self, case: &Case<'_, '_>) -> u64 {
        let left = match self.late(case.now) {
            Some(late) => (self.apart + EARLY).saturating_sub(late),
            None => self.first.saturating_sub(case.now.since(self.start)),
        };
        let is_short = left + LATE < self.apart;
        let is_whole = is_short && case.record.receive_count >= WHOLE_FROM_RECEIVE;
        ceil_secs(if is_whole { self.apart } else { left.min(self.apart) })
    }

    /// Whether a look finds only what the previous look found and logged: the same policy and the same due time. Even so, a
    /// line is due [now and then](seconds_between_lines).
    pub(crate) fn find_nothing_new(&self, case: &Case<'_, '_>, due: Timestamp) -> bool {
        let Some(late) = self.late(case.now).filter(|late| *late <= EARLY + LATE) else { return false };
        let moment = (case.now.since(self.start) + EARLY).saturating_sub(late);
        let before = moment.saturating_sub(self.apart);
        let lines = |look: Duration| look.as_secs() / seconds_between_lines(self.apart);
        // What the look before may not have known of the pauses is new.
        let known = self
            .start
            .saturating_add(before)
            .before(longest_between_reads(case.policy.maximum_concurrency()));
        let found = Case { now: known, ..*case }.due();
        lines(moment) == lines(before) && found.is_some_and(|found| found.at == due)
    }

    /// How late a look at `now` comes after the latest of the moments, plus [`EARLY`]; `None` before the first.
    fn late(&self, now: Timestamp) -> Option<Duration> {
        let since_first = (now.since(self.start) + EARLY).checked_sub(self.first)?;
        let late = since_first.as_millis() % self.apart.as_millis();
        Some(Duration::from_millis(late as u64))
    }
}

/// Seconds after which a look is logged even if it finds nothing new: commands read the last 12 hours of the log, so a
/// message that is hidden for `piece` at once must have a line in them.
pub(crate) fn seconds_between_lines(piece: Duration) -> u64 {
    LONGEST_VISIBILITY.saturating_sub(piece + QUEUE_VISIBILITY_TIMEOUT).as_secs().max(1)
}
