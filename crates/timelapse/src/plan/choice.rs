use std::time::Duration;

use comeback_engine::MAXIMUM_CONCURRENCY_RANGE;
use serde::Serialize;

use super::candidate::Candidate;

/// Why no policy of the grid meets a goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// What keeps policies from it.
    pub limit: LimitedBy,
    /// The policy that comes closest.
    pub policy: Candidate,
}

/// What keeps policies from meeting a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// `MAX_AGE` gives events up before the outage ends; the fewest under this policy, which recovers soon enough.
    MaxAge,
    /// `MAX_RETRIES` does, in the same way.
    MaxRetries,
    /// The retries take more pollers than Lambda allows; the fewest under this policy.
    Throughput,
    /// Every policy waits too long: at least a second, and invocations take time too. This one recovers the soonest.
    Waits,
}

/// The policies that lose nothing and that no other such policy beats, the fastest first. Of equals, the shortest cap.
pub(super) fn unbeaten(grid: &[Candidate]) -> Vec<&Candidate> {
    let all: Vec<&Candidate> = grid.iter().filter(|candidate| candidate.loses_nothing()).collect();
    let is_beaten = |one: &Candidate| all.iter().any(|other| beats(other, one));
    let mut unbeaten: Vec<&Candidate> = all.iter().copied().filter(|one| !is_beaten(one)).collect();
    unbeaten.sort_by(|one, other| {
        let [one, other] = [one, other].map(|candidate| what_counts(candidate));
        one.partial_cmp(&other).expect("BUG: a figure is no number")
    });
    unbeaten.dedup_by(|one, other| what_counts(one) == what_counts(other));
    unbeaten
}

/// The cheapest of the unbeaten policies that recover in this time.
pub(super) fn cheapest(grid: &[Candidate], time: Duration) -> Option<&Candidate> {
    let met = unbeaten(grid).into_iter().filter(|candidate| p99(candidate) <= time.as_millis() as f64);
    met.min_by(|one, other| one.usd_per_million_events.total_cmp(&other.usd_per_million_events))
}

/// What keeps the policies that recover soon enough from meeting the goal; or that none recovers soon enough.
pub(super) fn limits(grid: &[Candidate], time: Duration) -> Vec<Limit> {
    // Where nothing is delivered at all, nothing is late either.
    let is_late =
        |candidate: &&Candidate| p99(candidate).is_finite() && p99(candidate) > time.as_millis() as f64;
    let in_time: Vec<&Candidate> = grid.iter().filter(|candidate| !is_late(candidate)).collect();
    let limit = |limit, policy: &Candidate| Limit { limit, policy: policy.clone() };
    let fewest = |by, reason: &str| {
        let of = |candidate: &Candidate| candidate.given_up.get(reason).copied();
        let some = in_time.iter().filter(|candidate| of(candidate).is_some());
        some.min_by_key(|candidate| of(candidate)).map(|candidate| limit(by, candidate))
    };
    let pollers = |candidate: &&&Candidate| candidate.maximum_concurrency;
    let too_many = in_time.iter().filter(|candidate| pollers(candidate) > *MAXIMUM_CONCURRENCY_RANGE.end());
    let throughput = too_many.min_by_key(pollers).map(|candidate| limit(LimitedBy::Throughput, candidate));
    let limits =
        [fewest(LimitedBy::MaxAge, "max_age"), fewest(LimitedBy::MaxRetries, "max_retries"), throughput];
    let limits: Vec<Limit> = limits.into_iter().flatten().collect();
    if !limits.is_empty() {
        return limits;
    }
    let soonest = grid.iter().min_by(|one, other| p99(one).total_cmp(&p99(other)));
    soonest.map(|candidate| limit(LimitedBy::Waits, candidate)).into_iter().collect()
}

/// Whether `one` is as good as `other` in everything that counts, and better in something.
fn beats(one: &Candidate, other: &Candidate) -> bool {
    let (one, other) = (what_counts(one), what_counts(other));
    one != other && one.iter().zip(&other).all(|(one, other)| one <= other)
}

/// Less is better in each.
fn what_counts(candidate: &Candidate) -> [f64; 3] {
    [p99(candidate), candidate.retries_per_event, candidate.usd_per_million_events]
}

/// Infinite if nothing is delivered.
fn p99(candidate: &Candidate) -> f64 {
    candidate.recovery_ms.map_or(f64::INFINITY, |recovery| recovery.p99 as f64)
}

#[cfg(test)]
mod tests;
