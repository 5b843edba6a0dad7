//! Rehearses every policy in a grid of candidates with the same events, and recommends the cheapest one that meets a
//! goal.

mod candidate;
mod goal;

use std::cmp::Ordering;
use std::time::Duration;

use comeback_engine::{MAXIMUM_CONCURRENCY_RANGE, Policy, Settings};
use rayon::prelude::*;
use serde::Serialize;

use crate::simulation::RunError;
use goal::grid;

pub use candidate::Candidate;
pub use goal::{Goal, REHEARSED};

/// Result of planning: every policy in the grid, and the cheapest that meets the goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyPlan {
    /// The outage to recover from, and the time allowed for the recovery.
    pub goal: Goal,
    /// The cheapest policy that meets the goal; `None` if no policy meets the goal.
    pub cheapest: Option<Candidate>,
    /// The reasons why no policy meets the goal; empty if a policy meets it.
    pub limits: Vec<Limit>,
    /// The default policy, with its figures.
    pub defaults: Candidate,
    /// The policies that lose nothing and are Pareto-optimal in recovery time, retries and price, fastest first.
    pub unbeaten: Vec<Candidate>,
    /// Every policy that was compared.
    pub grid: Vec<Candidate>,
}

/// A reason why no policy in the grid meets the goal, with an example of a policy that fails for this reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// The obstacle that keeps policies from meeting the goal.
    pub limit: LimitedBy,
    /// The policy that comes closest to overcoming this obstacle.
    pub policy: Candidate,
}

/// Obstacles that keep policies from meeting a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// Events reach `MAX_AGE` before the outage ends.
    MaxAge,
    /// `MAX_RETRIES` ends the retries before the outage ends.
    MaxRetries,
    /// The retries need a higher `MAXIMUM_CONCURRENCY` than Lambda allows.
    Throughput,
    /// The target has too little capacity for the outage's events, even with the best waits.
    Capacity,
    /// Under every policy, the waits are too long to meet the goal.
    Waits,
}

impl PolicyPlan {
    /// Rehearses every policy in the grid on all cores, and calls `progress` after each. The grid varies
    /// `BASE_BACKOFF`, `MAX_BACKOFF` and `JITTER`; the other settings come from `policy`. The plan is the same on any
    /// number of cores.
    ///
    /// # Errors
    ///
    /// Fails if a part of the goal is out of range, or if a run breaks an invariant. An error for a part of the goal
    /// names it as the command line does.
    pub fn of(goal: &Goal, policy: &Policy, progress: &(impl Fn() + Sync)) -> Result<Self, RunError> {
        goal.check().map_err(RunError::Refused)?;
        let rehearse = |settings: &Settings| {
            let candidate = Candidate::rehearse(goal, settings, REHEARSED);
            progress();
            candidate
        };
        // All results are collected first, so that the reported violation does not depend on which run ends first.
        let candidates: Vec<Result<Candidate, RunError>> =
            grid(goal, policy.settings()).par_iter().map(rehearse).collect();
        let candidates = candidates.into_iter().collect::<Result<_, _>>()?;
        Ok(Self::chosen(goal.clone(), candidates))
    }

    /// Number of policies that a plan for this goal compares.
    pub fn policies(goal: &Goal) -> usize {
        grid(goal, &Settings::default()).len()
    }

    fn chosen(goal: Goal, grid: Vec<Candidate>) -> Self {
        // The plan computes this condition instead of simulating it, because a simulated target may use up a minute's
        // capacity in the first second of the minute.
        let is_possible = !goal.takes_too_little();
        let cheapest = cheapest(&grid, goal.recover_within).filter(|_| is_possible).cloned();
        let limits = if cheapest.is_some() { Vec::new() } else { limits(&grid, &goal) };
        let defaults = grid.iter().find(|candidate| candidate.has_default_backoff());
        Self {
            defaults: defaults.expect("BUG: the grid is without the defaults").clone(),
            unbeaten: unbeaten(&grid).into_iter().cloned().collect(),
            goal,
            cheapest,
            limits,
            grid,
        }
    }
}

/// Returns the policies for [`PolicyPlan::unbeaten`]. If several have equal figures, returns only the one with the
/// shortest cap.
fn unbeaten(grid: &[Candidate]) -> Vec<&Candidate> {
    let all: Vec<&Candidate> = grid.iter().filter(|candidate| candidate.loses_nothing()).collect();
    let is_beaten = |one: &Candidate| all.iter().any(|other| beats(other, one));
    let mut unbeaten: Vec<&Candidate> = all.iter().copied().filter(|one| !is_beaten(one)).collect();
    unbeaten.sort_by(|one, other| {
        let [one, other] = [one, other].map(|candidate| what_counts(candidate));
        one.partial_cmp(&other).expect("BUG: a figure is not a number")
    });
    unbeaten.dedup_by(|one, other| what_counts(one) == what_counts(other));
    unbeaten
}

fn cheapest(grid: &[Candidate], time: Duration) -> Option<&Candidate> {
    let met = unbeaten(grid).into_iter().filter(|candidate| p99(candidate) <= time.as_millis() as f64);
    met.min_by(|one, other| one.usd_per_million_events.total_cmp(&other.usd_per_million_events))
}

/// Returns the reasons why no policy meets the goal. `Waits` is a reason only if no other applies.
fn limits(grid: &[Candidate], goal: &Goal) -> Vec<Limit> {
    let limit = |limit, policy: &Candidate| Limit { limit, policy: policy.clone() };
    if goal.takes_too_little() {
        let complete = grid.iter().filter(|candidate| candidate.dead_lettered.is_empty());
        let soonest = complete.min_by(by_p99).or_else(|| grid.iter().min_by(by_p99));
        return soonest.map(|candidate| limit(LimitedBy::Capacity, candidate)).into_iter().collect();
    }
    let time = goal.recover_within;
    // A policy that delivers no event is not late.
    let is_late =
        |candidate: &&Candidate| p99(candidate).is_finite() && p99(candidate) > time.as_millis() as f64;
    let in_time: Vec<&Candidate> = grid.iter().filter(|candidate| !is_late(candidate)).collect();
    let fewest = |by, reason: &str| {
        let of = |candidate: &Candidate| candidate.dead_lettered.get(reason).copied();
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
    let soonest = grid.iter().min_by(by_p99);
    soonest.map(|candidate| limit(LimitedBy::Waits, candidate)).into_iter().collect()
}

fn beats(one: &Candidate, other: &Candidate) -> bool {
    let (one, other) = (what_counts(one), what_counts(other));
    one != other && one.iter().zip(&other).all(|(one, other)| one <= other)
}

/// Returns the figures by which candidates are compared; lower is better.
fn what_counts(candidate: &Candidate) -> [f64; 3] {
    [p99(candidate), candidate.retries_per_event, candidate.usd_per_million_events]
}

fn by_p99(one: &&Candidate, other: &&Candidate) -> Ordering {
    p99(one).total_cmp(&p99(other))
}

/// Returns the 99th percentile of a candidate's recovery time, in milliseconds; infinite if no event is delivered.
fn p99(candidate: &Candidate) -> f64 {
    candidate.recovery_ms.map_or(f64::INFINITY, |recovery| recovery.p99 as f64)
}

#[cfg(test)]
mod tests;
