use std::time::Duration;

use comeback_timelapse::{Candidate, EVENTS_OF_A_PLAN, Goal, Plan};
use comfy_table::{Cell, Color, Table};
use indicatif::HumanCount;

use crate::text::durations;
use crate::text::numbers::{rate_text, rounded};
use crate::text::terminal::{align_right, table};

/// Marks the cheapest policy that meets the goal, ...
const CHEAPEST: &str = "▸ ";
/// ... and the defaults.
const DEFAULTS: &str = "○ ";

/// The goal, and what was made of it.
pub(super) fn headline(plan: &Plan) -> String {
    let Goal { outage, events_per_second, recover_within, never_succeed, seed } = &plan.goal;
    let never = if *never_succeed > 0.0 {
        format!("; {} % of the events never succeed", rounded(never_succeed * 100.0))
    } else {
        String::new()
    };
    format!(
        "An outage of {}; events come at {}; 99 % recovered within {}{never}; seed {seed}\n\
         {} policies were rehearsed, each with {} events of the outage",
        durations::text(*outage),
        rate_text(*events_per_second),
        durations::text(*recover_within),
        HumanCount(plan.grid.len() as u64),
        HumanCount(EVENTS_OF_A_PLAN as u64),
    )
}

/// The policies that nothing else beats, and the defaults, the fastest first.
pub(super) fn policies(plan: &Plan) -> Table {
    let mut rows: Vec<&Candidate> = plan.unbeaten.iter().collect();
    if !plan.unbeaten.contains(&plan.defaults) {
        rows.push(&plan.defaults);
        rows.sort_by_key(|policy| policy.recovery_ms.map_or(u64::MAX, |recovery| recovery.p99));
    }
    let mut table = table();
    table.set_header(["cap", "jitter", "base", "p50", "p99", "retries", "peak", "USD"]);
    for policy in rows {
        let is_cheapest = Some(policy) == plan.cheapest.as_ref();
        let recovery = |part: fn(comeback_timelapse::Percentiles) -> u64| {
            policy.recovery_ms.map_or("-".into(), |recovery| durations::short(part(recovery) as f64 / 1e3))
        };
        let mark = if is_cheapest { CHEAPEST } else { "" };
        let defaults = if *policy == plan.defaults { DEFAULTS } else { "" };
        let cells = [
            format!("{mark}{defaults}{}", time(policy.max_backoff)),
            policy.jitter.to_owned(),
            time(policy.base_backoff),
            recovery(|recovery| recovery.p50),
            recovery(|recovery| recovery.p99),
            format!("{:.1}", policy.retries_per_event),
            format!("{:.1} ×", policy.peak_load),
            format!("{:.2}", policy.usd_per_million_events),
        ];
        let colour = |cell| if is_cheapest { Cell::new(cell).fg(Color::Green) } else { Cell::new(cell) };
        table.add_row(cells.map(colour));
    }
    align_right(&mut table, [0, 2, 3, 4, 5, 6, 7]);
    table
}

/// What the marks and the columns mean.
pub(super) fn legend(plan: &Plan) -> String {
    let cheapest = match &plan.cheapest {
        Some(_) => format!(
            "{CHEAPEST}the cheapest that recovers within {}; ",
            durations::text(plan.goal.recover_within)
        ),
        None => String::new(),
    };
    let defaults = &plan.defaults;
    let given_up: usize = defaults.given_up.values().sum();
    let loss = if given_up == 0 {
        String::new()
    } else {
        format!(
            ", which give {} % of the events up",
            rounded(given_up as f64 / EVENTS_OF_A_PLAN as f64 * 100.0)
        )
    };
    format!(
        "{cheapest}{DEFAULTS}the defaults{loss}\n\
         p50, p99: from the end of the outage until so many of its events are delivered. Peak: the retries\n\
         of the busiest minute after the outage, as a multiple of the usual {}. USD: for a\n\
         million events, at list price. About {} events wait when the outage ends.",
        rate_text(plan.goal.events_per_second),
        rounded(defaults.waiting),
    )
}

/// What a longer base costs events that fail outside of an outage, if the cheapest policy has one.
pub(super) fn slower_alone(plan: &Plan) -> Option<String> {
    let (base, usual) = (plan.cheapest.as_ref()?.base_backoff, plan.defaults.base_backoff);
    (base > usual).then(|| {
        format!(
            "With BASE_BACKOFF {} an event that fails by itself has its first retry within {}, instead of {}.",
            time(base),
            time(base),
            time(usual),
        )
    })
}

/// `MAX_BACKOFF 30m, JITTER equal, BASE_BACKOFF 10s`
pub(super) fn named(policy: &Candidate) -> String {
    let Candidate { max_backoff, jitter, base_backoff, .. } = policy;
    format!("MAX_BACKOFF {}, JITTER {jitter}, BASE_BACKOFF {}", time(*max_backoff), time(*base_backoff))
}

/// The longest cap is 30 s less than `12h`.
pub(super) fn time(seconds: u64) -> String {
    if seconds < 3_600 {
        durations::text(Duration::from_secs(seconds))
    } else {
        durations::short(seconds as f64)
    }
}
