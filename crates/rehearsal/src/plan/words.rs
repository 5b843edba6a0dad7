//! A plan in words: a table of its policies, and then either the settings to deploy or the reasons why no policy meets
//! the goal.

use std::time::Duration;

use comeback_engine::{MAXIMUM_CONCURRENCY_RANGE, PolicyEntry, Settings};
use comeback_operate::durations;
use comeback_operate::numbers::{grouped, rate_text, rounded};
use comeback_timelapse::{Candidate, Goal, Limit, LimitedBy, Percentiles, PolicyPlan, REHEARSED};

use crate::deployed::DeployedSetting;
use crate::figure::FigureTable;

/// The mark in a plan's table for the cheapest policy that meets the goal.
const CHEAPEST: &str = "▸ ";
/// The mark in a plan's table for the default policy.
const DEFAULTS: &str = "○ ";

/// Returns a headline of two lines: the outage and the goal, then the number of policies that were compared.
pub fn headline(plan: &PolicyPlan) -> String {
    let Goal { outage, events_per_second, recover_within, never_succeed, capacity, seed } = &plan.goal;
    let never = if *never_succeed > 0.0 {
        format!("; {} % of the events never succeed", rounded(never_succeed * 100.0))
    } else {
        String::new()
    };
    let capacity = capacity.map(|times| format!("; the target can take {times} × that")).unwrap_or_default();
    format!(
        "An outage of {}; events arrive at {}{capacity}; goal: 99 % recovered within {}{never}; seed \
         {seed}\n{} policies simulated, each with {} events of the outage",
        durations::text(*outage),
        rate_text(*events_per_second),
        durations::text(*recover_within),
        grouped(plan.grid.len() as u64),
        grouped(REHEARSED as u64),
    )
}

/// Column headings for the cells that [`rows`] returns.
pub const HEAD: [&str; 8] = ["cap", "jitter", "base", "p50", "p99", "retries", "peak", "USD"];

pub(super) fn figures(plan: &PolicyPlan) -> FigureTable {
    let rows = rows(plan);
    let column = |index: usize| rows.iter().map(|(_, cells)| cells[index].clone()).collect();
    FigureTable {
        caption: "The policies that nothing else beats, and the defaults, the fastest first".into(),
        columns: HEAD.iter().enumerate().map(|(index, head)| ((*head).to_owned(), column(index))).collect(),
    }
}

/// Returns the rows of a plan's table: the default policy and each unbeaten policy, with the fastest first.
pub fn rows(plan: &PolicyPlan) -> Vec<(&Candidate, [String; 8])> {
    let mut rows: Vec<&Candidate> = plan.unbeaten.iter().collect();
    if !plan.unbeaten.contains(&plan.defaults) {
        rows.push(&plan.defaults);
        rows.sort_by_key(|policy| policy.recovery_ms.map_or(u64::MAX, |recovery| recovery.p99));
    }
    let cells = |policy: &Candidate| {
        let recovery = |part: fn(Percentiles) -> u64| {
            policy.recovery_ms.map_or("-".into(), |recovery| durations::short(part(recovery) as f64 / 1e3))
        };
        let mark = if Some(policy) == plan.cheapest.as_ref() { CHEAPEST } else { "" };
        let defaults = if *policy == plan.defaults { DEFAULTS } else { "" };
        [
            format!("{mark}{defaults}{}", time(policy.max_backoff)),
            policy.jitter.to_owned(),
            time(policy.base_backoff),
            recovery(|recovery| recovery.p50),
            recovery(|recovery| recovery.p99),
            format!("{:.1}", policy.retries_per_event),
            format!("{:.1} ×", policy.peak_load),
            format!("{:.2}", policy.usd_per_million_events),
        ]
    };
    rows.into_iter().map(|policy| (policy, cells(policy))).collect()
}

/// Explains the marks and the columns of a plan's table.
pub fn legend(plan: &PolicyPlan) -> String {
    let within = durations::text(plan.goal.recover_within);
    let cheapest = |_| format!("{CHEAPEST}the cheapest that recovers within {within}; ");
    let cheapest = plan.cheapest.as_ref().map(cheapest).unwrap_or_default();
    let defaults = &plan.defaults;
    let dead_lettered: usize = defaults.dead_lettered.values().sum();
    let percent = rounded(dead_lettered as f64 / REHEARSED as f64 * 100.0);
    let loss = (dead_lettered > 0).then(|| format!(", which dead-letter {percent} % of the events"));
    let loss = loss.unwrap_or_default();
    format!(
        "{cheapest}{DEFAULTS}the defaults{loss}\np50, p99: time from the end of the outage until 50 % and 99 \
         % of its events are delivered.\nPeak: retries in the busiest minute after the outage, as a multiple \
         of the usual {}.\nUSD: for a million events, at list price. About {} events wait when the outage \
         ends.",
        rate_text(plan.goal.events_per_second),
        rounded(defaults.waiting),
    )
}

/// Describes how the cheapest policy delays events outside an outage, if its `BASE_BACKOFF` exceeds the default.
pub fn slower_alone(plan: &PolicyPlan) -> Option<String> {
    let (base, usual) = (plan.cheapest.as_ref()?.base_backoff, plan.defaults.base_backoff);
    let [base, usual] = [(base > usual).then_some(base)?, usual].map(time);
    Some(format!(
        "With BASE_BACKOFF {base}, a single failure has its first retry within {base} \
         instead of {usual}."
    ))
}

/// Formats a duration. The maximum of `MAX_BACKOFF`, which is 30 s less than 12 hours, becomes `12h`.
pub(super) fn time(seconds: u64) -> String {
    if seconds < 3_600 {
        durations::text(Duration::from_secs(seconds))
    } else {
        durations::short(seconds as f64)
    }
}

/// Returns the settings to deploy: those of the chosen policy, and any others that differ from their defaults.
pub(super) fn settings(policy: &Candidate, other: &Settings) -> Vec<DeployedSetting> {
    let default = Settings::default();
    let [base, cap] = [policy.base_backoff, policy.max_backoff].map(|seconds| seconds.to_string());
    let backoff = [("BASE_BACKOFF", &*base), ("MAX_BACKOFF", &*cap), ("JITTER", policy.jitter)];
    let backoff = backoff.into_iter().map(|(variable, value)| DeployedSetting::of(variable, value));
    let age = (other.max_age != default.max_age).then(|| number("MAX_AGE", other.max_age));
    let retries = other.max_retries;
    let retries = (retries != default.max_retries).then(|| number("MAX_RETRIES", retries));
    backoff.chain(age).chain(retries).chain(queue_settings(policy)).collect()
}

pub(super) fn queue_settings(policy: &Candidate) -> Option<DeployedSetting> {
    let pollers = policy.maximum_concurrency;
    let is_needed = pollers > Settings::default().maximum_concurrency;
    is_needed.then(|| number("MAXIMUM_CONCURRENCY", pollers))
}

fn number(variable: &str, number: u64) -> DeployedSetting {
    DeployedSetting::of(variable, &number.to_string())
}

/// Formats an entry in `POLICIES` with its backoff settings replaced by the plan's.
pub(super) fn entry(policy: &Candidate, entry: &PolicyEntry) -> String {
    const CHOSEN: [&str; 4] = ["BASE_BACKOFF", "MAX_BACKOFF", "BACKOFFS", "JITTER"];
    let other = entry.settings().filter(|(name, _)| !CHOSEN.contains(name));
    let other = other.map(|(name, value)| format!(" {name}={value}")).collect::<String>();
    let Candidate { base_backoff, max_backoff, jitter, .. } = policy;
    let pattern = entry.pattern();
    format!("{pattern}{other} BASE_BACKOFF={base_backoff} MAX_BACKOFF={max_backoff} JITTER={jitter}")
}

/// Explains one reason why no policy meets the goal.
pub(super) fn sentence(Limit { limit, policy }: &Limit, goal: &Goal, settings: &Settings) -> String {
    let [cap, base] = [policy.max_backoff, policy.base_backoff].map(time);
    let named = format!("MAX_BACKOFF {cap}, JITTER {}, BASE_BACKOFF {base}", policy.jitter);
    match limit {
        LimitedBy::MaxAge => format!(
            "MAX_AGE: {named} recovers fast enough, but dead-letters {}, because MAX_AGE ({}) ends before the \
             outage of {} does. Raise it well above that",
            share(policy, "max_age"),
            time(settings.max_age),
            durations::text(goal.outage),
        ),
        LimitedBy::MaxRetries => format!(
            "MAX_RETRIES: {named} recovers fast enough, but dead-letters {}, because their retries \
             (MAX_RETRIES {}) are used up before {}. Raise MAX_RETRIES",
            share(policy, "max_retries"),
            settings.max_retries,
            if goal.capacity.is_some() { "the target takes them" } else { "the outage ends" },
        ),
        LimitedBy::Throughput => format!(
            "throughput: {named} recovers fast enough, but needs {} pollers, and MAXIMUM_CONCURRENCY is at \
             most {}. Use several retry queues",
            grouped(policy.maximum_concurrency),
            grouped(*MAXIMUM_CONCURRENCY_RANGE.end()),
        ),
        LimitedBy::Capacity => format!(
            "the target's capacity: it needs about {} for 99 % of the outage's events. Allow more time, or \
             raise the capacity",
            durations::short(goal.least_recovery().as_secs_f64()),
        ),
        LimitedBy::Waits => {
            let soonest = policy.recovery_ms.map_or(0.0, |recovery| recovery.p99 as f64 / 1e3);
            format!(
                "the waits: a retry comes at least a second after the previous failure, and the invocation, \
                 the poll and the handler take time too. The fastest is {named}, with 99 % delivered after {}",
                durations::short(soonest),
            )
        }
    }
}

/// Formats the share of events that were dead-lettered for `reason`: `2.1 % of the events`.
fn share(policy: &Candidate, reason: &str) -> String {
    let dead_lettered = policy.dead_lettered.get(reason).copied().unwrap_or_default();
    format!("{:.1} % of the events", dead_lettered as f64 / REHEARSED as f64 * 100.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn too_long_waits_name_the_fastest_policy() {
        let policy = Candidate {
            max_backoff: 1,
            jitter: "full",
            base_backoff: 1,
            recovery_ms: Some(Percentiles { p50: 900, p99: 1_640, max: 1_700 }),
            retries_per_event: 8.0,
            peak_retries_per_second: 20.0,
            peak_load: 2.0,
            waiting: 100.0,
            usd_per_million_events: 10.0,
            maximum_concurrency: 2,
            dead_lettered: BTreeMap::new(),
        };
        let limit = Limit { limit: LimitedBy::Waits, policy };
        let text = sentence(&limit, &Goal::default(), &Settings::default());
        let end =
            "The fastest is MAX_BACKOFF 1s, JITTER full, BASE_BACKOFF 1s, with 99 % delivered after 1.6s";
        assert!(
            text.starts_with("the waits: a retry comes at least a second") && text.ends_with(end),
            "{text}"
        );
    }
}
