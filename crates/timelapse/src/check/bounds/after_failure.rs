//! The bounds of waits after a step that did not work.

use std::ops::RangeInclusive;
use std::time::Duration;

use comeback_backoff::ceiling;
use comeback_engine::Timestamp;

use super::{Bounds, LONGEST_HIDING, Look, SECOND};
use crate::check::invariants::{Broken, Invariant};

/// For how long a message is hidden whose re-invocation was not answered.
const AFTER_UNANSWERED: RangeInclusive<Duration> = Duration::from_secs(3_600)..=Duration::from_secs(7_200);
/// An invoke is given up as unanswered after this long.
const INVOKE_TIME: Duration = Duration::from_secs(20);

impl Bounds {
    /// Whether a wait at `now` ends by the latest end of one that began with an earlier copy's failed step.
    pub(crate) fn ends_by(until: Timestamp, now: Timestamp, wait: Duration) -> bool {
        now < until && now.saturating_add(wait) <= until.saturating_add(SECOND)
    }

    /// The hiding at `now` of a message whose copy may have been accepted.
    pub(crate) fn hiding_after_lost_copy(
        &self,
        look: &Look,
        now: Timestamp,
        shortest: Duration,
        hidden_for: Duration,
    ) -> Result<(), Broken> {
        if (shortest.as_secs()..=LONGEST_HIDING.as_secs()).contains(&hidden_for.as_secs()) {
            return Ok(());
        }
        let detail = format!(
            "hidden at {now} for {} s, though a copy may be on its way; {} s at least",
            hidden_for.as_secs(),
            shortest.as_secs()
        );
        Err(Broken::new(Invariant::SpacedInvokes, look.origin.event, detail))
    }

    /// The longest wait of a message whose re-invocation or dead-letter failed.
    pub(crate) fn longest_after_failure(&self, look: &Look, unanswered: bool) -> Duration {
        if unanswered {
            return *AFTER_UNANSWERED.end() + INVOKE_TIME;
        }
        Duration::from_secs(ceiling(1, 3_600, u64::from(look.receive_count) + 1))
    }

    /// The shortest wait at `now` of a message whose re-invocation was not answered.
    pub(crate) fn shortest_after_unanswered(&self, now: Timestamp, first_failure: Timestamp) -> Duration {
        self.cut_after_unanswered(now, first_failure).min(*AFTER_UNANSWERED.start())
    }

    fn cut_after_unanswered(&self, now: Timestamp, first_failure: Timestamp) -> Duration {
        let cut = self.end(first_failure, now).since(now).saturating_sub(self.last_retry());
        // The handler allows for the time that the invoke took.
        let cut = cut.saturating_sub(INVOKE_TIME);
        if cut >= self.last_retry() { cut } else { Duration::MAX }
    }

    /// The hiding of a message whose re-invocation or dead-letter failed.
    pub(crate) fn hiding_after_failure(&self, look: &Look, hidden_for: Duration) -> Result<(), Broken> {
        let longest = self.longest_after_failure(look, false);
        if hidden_for <= longest {
            return Ok(());
        }
        let (hidden, longest) = (hidden_for.as_secs(), longest.as_secs());
        let detail = format!("hidden for {hidden} s after a failed call; at most {longest} s");
        Err(Broken::new(Invariant::LongestWait, look.origin.event, detail))
    }

    /// The hiding at `now`, the handler's clock, of a message whose re-invocation was not answered: one to
    /// two hours, less only if a last retry could not be made otherwise.
    pub(crate) fn hiding_after_unanswered(
        &self,
        look: &Look,
        now: Timestamp,
        first_failure: Timestamp,
        hidden_for: Duration,
    ) -> Result<(), Broken> {
        let longest = self.cut_after_unanswered(now, first_failure);
        let invariant = if hidden_for.as_secs() < AFTER_UNANSWERED.start().min(&longest).as_secs() {
            Invariant::SpacedInvokes
        } else if hidden_for > *AFTER_UNANSWERED.end().min(&longest) {
            Invariant::LongestWait
        } else {
            return Ok(());
        };
        let detail = format!("hidden at {now} for {} s after an unanswered invoke", hidden_for.as_secs());
        Err(Broken::new(invariant, look.origin.event, detail))
    }
}
