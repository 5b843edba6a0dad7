//! Chart of a policy's schedule on an HTML page: the time of each retry.

use comeback_engine::Policy;
use comeback_operate::durations;
use comeback_timelapse::Schedule;
use plotters::prelude::*;

use crate::axis::CountAxis;
use crate::chart::BLUE;
use crate::figure::{Chart, Key, Table, drawn, frame};
use crate::schedule::{axis_of, outcome, percent, shown};

/// Draws each retry as a band that covers nine events in ten, with a point at the mean.
pub(super) fn chart(policy: &Policy, schedule: &Schedule) -> Chart {
    let picture = drawn(|root| {
        let last = schedule.retries.len().max(1) as f64;
        let (x, y) = (axis_of(schedule, policy.max_age()), CountAxis::Linear((0.0..last + 0.5).into()));
        let scale = if x.logarithmic { ", logarithmic" } else { "" };
        let mut chart = frame(root, (x, y), &format!("time since the first failure{scale}"), "")?;
        for retry in &schedule.retries {
            let (at, row) = (retry.since_first_failure_seconds, retry.retry as f64);
            let band = [(at.p5.into(), row), (at.p95.into(), row)];
            chart.draw_series([PathElement::new(band, BLUE.mix(0.4).stroke_width(2))])?;
            chart.draw_series([Circle::new((at.mean, row), 2, BLUE.filled())])?;
        }
        Ok(())
    });
    Chart {
        id: "schedule",
        heading: "When retries come, by their number".into(),
        description: format!("{}.", outcome(schedule)),
        keys: vec![
            Key { symbol: "●", colour: BLUE, label: "mean".into() },
            Key { symbol: "──", colour: BLUE, label: "nine events in ten".into() },
        ],
        picture,
        table: Some(figures(schedule)),
    }
}

fn figures(schedule: &Schedule) -> Table {
    let retries: Vec<_> = shown(&schedule.retries).collect();
    let time = |seconds: f64| durations::short(seconds);
    Table {
        caption: format!("Retries of an event that fails every time: {}", outcome(schedule)),
        columns: vec![
            ("retry".into(), retries.iter().map(|it| it.retry.to_string()).collect()),
            ("mean wait".into(), retries.iter().map(|it| time(it.wait_seconds.mean)).collect()),
            (
                "since failure".into(),
                retries.iter().map(|it| time(it.since_first_failure_seconds.mean)).collect(),
            ),
            (
                "events".into(),
                retries.iter().map(|it| percent(it.events as f64 / schedule.events as f64)).collect(),
            ),
        ],
    }
}
