//! The waits after failed actions, and the delays of moved messages.

use std::ops::RangeInclusive;
use std::time::Duration;

use comeback_backoff::Jitter;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

use crate::account::{HANDLER_TIMEOUT, INVOKE_TIMEOUT};
use crate::decide::Case;
use crate::policy::in_seconds;
use crate::record::{LONGEST_UNANSWERED, Record};
use crate::seed::generator;
use crate::time::{Timestamp, ceil_secs};
use crate::timing::LONGEST_AFTER_FAILURE;

/// Range of the wait after an unanswered `Invoke`, in seconds. Each wait is at least an hour, so an outage of an hour
/// can duplicate an event only once.
const AFTER_UNANSWERED: RangeInclusive<u64> = 3_600..=LONGEST_UNANSWERED.as_secs();
/// Maximum `DelaySeconds` of a message. Source: SQS quotas, "Message delay".
pub const LONGEST_HOP: Duration = Duration::from_secs(900);

#[derive(Clone, Copy)]
pub(crate) struct Wait {
    /// The visibility timeout to set, in whole seconds, 1 to 43,170.
    pub(crate) visibility_timeout: Duration,
    /// The time until the wait ends, even if SQS cannot hide a message for that long.
    pub(crate) left: Duration,
    /// The end of the wait; `None` if it can be computed from the message's own data.
    pub(crate) not_before: Option<Timestamp>,
    /// True if the message is hidden because a call may have been accepted, as in
    /// [`Location::Guarded`](crate::Location::Guarded).
    pub(crate) is_guard: bool,
}

impl Wait {
    /// Creates a wait that begins at `now`. If the message is moved, its copy must record the end of the wait.
    pub(crate) fn from(now: Timestamp, wait: Duration) -> Self {
        let not_before = Some(now.saturating_add(wait));
        Self { visibility_timeout: wait, left: wait, not_before, is_guard: false }
    }

    /// The rest of the wait recorded in a moved message; `None` if no wait is recorded, or the wait is over.
    pub(crate) fn carried(record: &Record, now: Timestamp) -> Option<Self> {
        let not_before = record.moved.as_ref()?.not_before?;
        let left = Duration::from_secs(ceil_secs(not_before.since(now)));
        // The wait may guard a call that was made in an earlier batch.
        let wait = Self { visibility_timeout: left, left, not_before: Some(not_before), is_guard: true };
        (!left.is_zero()).then_some(wait)
    }

    pub(crate) fn after_failure(record: &Record, now: Timestamp) -> Self {
        Self::from(now, after_failure(record))
    }

    /// The wait after a re-invocation to which Lambda did not respond.
    pub(crate) fn after_unanswered(case: &Case<'_, '_>) -> Self {
        // `now` is the time when the batch arrived. The message is hidden again once this invoke and the invokes before
        // it have ended.
        let hiding = uncertain(case.record, Some(case), INVOKE_TIMEOUT).max(Duration::from_secs(1));
        let wait = Self::from(case.now, hiding + INVOKE_TIMEOUT);
        Self { visibility_timeout: hiding, is_guard: true, ..wait }
    }

    pub(crate) fn hops(&self) -> u64 {
        ceil_secs(self.left).div_ceil(LONGEST_HOP.as_secs()).max(1)
    }

    /// The delay of the first move, about equal to those of the later moves: 1 to 900 whole seconds.
    pub(crate) fn hop(&self) -> Duration {
        Duration::from_secs(ceil_secs(self.left).div_ceil(self.hops()).max(1))
    }
}

/// Draws the wait after a failed call, with full jitter. The ceiling in seconds is min(3,600, 2^receive count).
fn after_failure(record: &Record) -> Duration {
    let backoff = in_seconds(1, LONGEST_AFTER_FAILURE.as_secs(), Jitter::Full);
    let retry = u64::from(record.receive_count) + 1;
    backoff.delay(retry, &mut generator_of(record)).expect("BUG: it has no last retry")
}

/// Returns the visibility timeout to set before a re-invocation or move. It is longer than the handler's invocation
/// can last.
pub(crate) fn guard(record: &Record, case: Option<&Case<'_, '_>>) -> Duration {
    HANDLER_TIMEOUT + uncertain(record, case, HANDLER_TIMEOUT)
}

/// Draws the wait after a call that AWS may have accepted: one to two hours, counted from the end of the call.
/// `call` is the call's duration.
///
/// Rule 6 of [`decide`](mod@crate::decide) may shorten it to leave time for a last retry. If there is no time for one,
/// the wait is not shortened.
fn uncertain(record: &Record, case: Option<&Case<'_, '_>>, call: Duration) -> Duration {
    let drawn = Duration::from_secs(generator_of(record).random_range(AFTER_UNANSWERED));
    let cut = case.and_then(|case| case.cut(drawn, case.now.saturating_add(call), case.end_of_max_age()));
    Duration::from_secs(cut.unwrap_or(drawn).as_secs())
}

/// The random-number generator for a message's waits, with a new seed on each receive.
fn generator_of(record: &Record) -> Xoshiro256PlusPlus {
    generator(record.first_id(), u64::from(record.receive_count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wait(millis: u64) -> Wait {
        Wait::from(Timestamp::from_secs(0), Duration::from_millis(millis))
    }

    #[test]
    fn a_wait_is_cut_into_equal_hops() {
        for (millis, hops, hop) in
            [(0, 1, 1), (1, 1, 1), (1_000, 1, 1), (900_000, 1, 900), (900_001, 2, 451), (43_170_000, 48, 900)]
        {
            assert_eq!((wait(millis).hops(), wait(millis).hop().as_secs()), (hops, hop), "{millis} ms");
        }
    }

    proptest! {
        #[test]
        fn hops_end_where_the_wait_ends(millis in 1..20_000_000u64) {
            let (mut at, mut made) = (0, 0);
            while at < millis {
                let hop = wait(millis - at).hop();
                prop_assert!((1..=900).contains(&hop.as_secs()) && hop.subsec_nanos() == 0);
                at += hop.as_secs() * 1_000;
                made += 1;
            }
            prop_assert!(at < millis + 1_000, "{} ms late", at - millis);
            prop_assert!(made <= millis.div_ceil(900_000), "{made} hops");
        }
    }
}
