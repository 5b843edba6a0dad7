use std::time::Duration;

use comeback_engine::Jitter;
use comeback_timelapse::{Scenario, Summary};
use indicatif::HumanCount;
use plotters::prelude::*;

use crate::axis::CountAxis;
use crate::axis::TimeAxis;
use crate::chart::{GREEN, GREY, PURPLE};
use crate::simulate::page::canvas::{drawn, frame};
use crate::simulate::page::runs::Side;
use crate::simulate::page::template::{Chart, Key, Svg, Table};
use crate::text::durations;

/// More points of a line than this cannot be seen.
const POINTS: usize = 200;

/// The run of one strategy.
pub(super) struct Recovery<'a> {
    pub(super) name: String,
    pub(super) colour: RGBColor,
    /// Whether it is the policy's own jitter.
    pub(super) own: bool,
    pub(super) summary: &'a Summary,
}

/// Of the jitters that no compared policy has.
const OTHERS: [RGBColor; 3] = [GREEN, PURPLE, GREY];

/// The policy under each jitter, its own first; then the policy it is compared with, if that differs
/// in more than its jitter. A compared policy has its own colour here as everywhere.
pub(super) fn of<'a>(sides: &'a [Side], jitters: &'a [(Jitter, Summary)]) -> Vec<Recovery<'a>> {
    let own = &sides[0];
    let is_of = |side: &Side, jitter: Jitter| side.flags == own.flags.with([("jitter", jitter.name())]);
    let strategy =
        |jitter, summary, colour, own| Recovery { name: format!("jitter {jitter}"), colour, own, summary };
    let mut recoveries = vec![strategy(own.policy.backoff().jitter(), &own.summary, own.colour, true)];
    let mut others = OTHERS.into_iter();
    for (jitter, summary) in jitters {
        let compared = sides[1..].iter().find(|side| is_of(side, *jitter)).map(|side| side.colour);
        let colour = compared.or_else(|| others.next()).expect("BUG: more jitters than colours");
        recoveries.push(strategy(*jitter, summary, colour, false));
    }
    let differs = |side: &&Side| !jitters.iter().any(|(jitter, _)| is_of(side, *jitter));
    recoveries.extend(sides[1..].iter().filter(differs).map(|side| Recovery {
        name: side.name.clone(),
        colour: side.colour,
        own: false,
        summary: &side.summary,
    }));
    recoveries
}

/// How soon after the outage the events were delivered, by strategy.
pub(super) fn chart(recoveries: &[Recovery<'_>]) -> Chart {
    let say = |recovery: &Recovery<'_>| {
        let half = recovery.summary.recovery_delay_ms.map_or("-".into(), |delay| time(delay.p50));
        format!("{}: half of the delivered within {half}.", recovery.name)
    };
    let key =
        |recovery: &Recovery<'_>| Key {
            symbol: "━━", colour: recovery.colour, label: recovery.name.clone()
        };
    Chart {
        id: "recovery",
        heading: "Events delivered after the outage's end, logarithmic time".into(),
        description: recoveries.iter().map(say).collect::<Vec<_>>().join(" "),
        keys: recoveries.iter().map(key).collect(),
        svg: draw(recoveries),
        table: None,
    }
}

fn draw(recoveries: &[Recovery<'_>]) -> Svg {
    let seconds = |ms: u64| ms as f64 / 1e3;
    let delays = || recoveries.iter().map(|recovery| &recovery.summary.recovery_delays_ms);
    let first = delays().filter_map(|delays| delays.get(delays.len() / 100)).min();
    let last = delays().filter_map(|delays| delays.last()).max();
    let start = first.map_or(1.0, |&ms| seconds(ms)).max(1.0) / 1.3;
    let x = TimeAxis::logarithmic(start, last.map_or(1.0, |&ms| seconds(ms)) * 1.1);
    let y = CountAxis::Linear((0.0..102.0).into());
    drawn(|root| {
        let mut chart =
            frame(root, (x, y), "time since the outage's end", |percent| format!("{percent:.0} %"))?;
        // The policy's own comes last, above the others.
        let (own, others): (Vec<_>, Vec<_>) = recoveries.iter().partition(|recovery| recovery.own);
        for recovery in others.into_iter().chain(own) {
            let Summary { recovery_delays_ms: delays, events_hit, .. } = recovery.summary;
            let point = |i: usize| {
                let delivered = delays.len() * i / POINTS;
                let at = delivered.checked_sub(1).map_or(start, |last| seconds(delays[last]));
                (at.max(start), delivered as f64 / (*events_hit).max(1) as f64 * 100.0)
            };
            let width = if recovery.own { 3 } else { 2 };
            chart.draw_series([PathElement::new(
                (0..=POINTS).map(point).collect::<Vec<_>>(),
                recovery.colour.stroke_width(width),
            )])?;
        }
        Ok(())
    })
}

/// The same in figures.
pub(super) fn table(scenario: &Scenario, recoveries: &[Recovery<'_>]) -> Table {
    let head = [
        "",
        "delivered",
        "half within",
        "99 % within",
        "all within",
        "retries",
        "most in a minute after it",
        "USD",
    ];
    let row = |recovery: &Recovery<'_>| {
        let summary = recovery.summary;
        let delays = summary
            .recovery_delay_ms
            .map_or(["-"; 3].map(String::from), |delay| [delay.p50, delay.p99, delay.max].map(time));
        let after = summary.minutes.iter().skip(scenario.outage.as_secs() as usize / 60);
        let most = after.map(|minute| minute.retries).max().unwrap_or(0);
        let delivered = format!(
            "{} of {}",
            HumanCount(summary.recovery_delays_ms.len() as u64),
            HumanCount(summary.events_hit as u64)
        );
        let [half, most_of_them, all] = delays;
        vec![
            recovery.name.clone(),
            delivered,
            half,
            most_of_them,
            all,
            HumanCount(summary.retries).to_string(),
            HumanCount(most.into()).to_string(),
            format!("{:.4}", summary.cost_usd),
        ]
    };
    Table {
        caption: "Of the events that arrived during the outage, since its end".into(),
        head: head.map(String::from).into(),
        rows: recoveries.iter().map(row).collect(),
    }
}

fn time(ms: u64) -> String {
    durations::text(Duration::from_millis(ms))
}
