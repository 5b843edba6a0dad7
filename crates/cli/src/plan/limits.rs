use comeback_engine::{MAXIMUM_CONCURRENCY_RANGE, Settings};
use comeback_timelapse::{Candidate, EVENTS_OF_A_PLAN, Goal, Limit};
use indicatif::HumanCount;

use crate::plan::table::{named, time};
use crate::text::durations;

/// Why no policy meets the goal: a sentence for each limit.
pub(super) fn in_words(limits: &[Limit], goal: &Goal, settings: &Settings) -> Vec<String> {
    limits.iter().map(|limit| sentence(limit, goal, settings)).collect()
}

fn sentence(limit: &Limit, goal: &Goal, settings: &Settings) -> String {
    match limit {
        Limit::MaxAge { policy } => format!(
            "MAX_AGE: {} recovers soon enough, but gives {} up, because MAX_AGE ({}) ends before the outage of {} does. \
             Raise --max-age well above that",
            named(policy),
            share(policy, "max_age"),
            time(settings.max_age),
            durations::text(goal.outage),
        ),
        Limit::MaxRetries { policy } => format!(
            "MAX_RETRIES: {} recovers soon enough, but gives {} up, because their retries (MAX_RETRIES {}) are used up \
             before the outage ends. Raise --max-retries",
            named(policy),
            share(policy, "max_retries"),
            settings.max_retries,
        ),
        Limit::Throughput { policy } => format!(
            "throughput: {} recovers soon enough, but takes {} pollers, and MAXIMUM_CONCURRENCY is {} at most. Several \
             retry queues are the way out",
            named(policy),
            HumanCount(policy.maximum_concurrency),
            HumanCount(*MAXIMUM_CONCURRENCY_RANGE.end()),
        ),
        Limit::Waits { policy } => {
            let soonest = policy.recovery_ms.map_or(0.0, |recovery| recovery.p99 as f64 / 1e3);
            format!(
                "the waits: no retry is due sooner than a second after the failure before it, and the run, the poll and \
                 the handler's batch take time as well. {} is the soonest, with 99 % delivered after {}",
                named(policy),
                durations::short(soonest),
            )
        }
    }
}

/// `2.1 % of the events`
fn share(policy: &Candidate, reason: &str) -> String {
    let given_up = policy.given_up.get(reason).copied().unwrap_or_default();
    format!("{:.1} % of the events", given_up as f64 / EVENTS_OF_A_PLAN as f64 * 100.0)
}

#[cfg(test)]
mod tests {
    use comeback_timelapse::Percentiles;

    use super::*;

    #[test]
    fn waits_that_are_too_long_name_the_policy_that_recovers_the_soonest() {
        let policy = Box::new(Candidate {
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
            given_up: std::collections::BTreeMap::new(),
        });
        let text = in_words(&[Limit::Waits { policy }], &Goal::default(), &Settings::default()).concat();
        let end =
            "MAX_BACKOFF 1s, JITTER full, BASE_BACKOFF 1s is the soonest, with 99 % delivered after 1.6s";
        assert!(
            text.starts_with("the waits: no retry is due sooner than a second") && text.ends_with(end),
            "{text}"
        );
    }
}
