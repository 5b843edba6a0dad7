//! `comeback simulate --report`: one page about a run, to share.

mod canvas;
mod depth;
mod life;
mod recovery;
mod retries;
mod runs;
mod tables;
mod template;

use askama::Template;
use comeback_timelapse::Scenario;

use crate::chart::PALETTE;
use crate::plan;
use crate::simulate::figures::headline;

use recovery::Recovery;
use runs::Side;
use template::{Page, Section};

pub(super) use life::Lives;
pub(super) use runs::Runs;

/// The page. The same arguments give the same bytes.
pub(super) fn page(repeat: &str, scenario: &Scenario, runs: Runs, lives: Lives) -> String {
    let Runs { policies, jitters } = runs;
    let sides = runs::sides(policies, scenario.seed);
    let recoveries = recovery::of(&sides, &jitters);
    let sections = vec![
        outcome(&sides),
        over_time(scenario, &sides),
        attempts_and_depth(scenario, &sides),
        events(scenario, &recoveries, lives),
        limit(scenario, &sides),
        cost(&sides),
    ];
    let page = Page {
        version: env!("CARGO_PKG_VERSION"),
        palette: PALETTE,
        headline: headline(scenario),
        tiles: tables::tiles(&sides),
        sections,
        command: repeat.to_owned(),
    };
    page.render().expect("BUG: writing to a String")
}

fn outcome(sides: &[Side]) -> Section {
    Section {
        id: "outcome",
        heading: "Policy and outcome",
        tables: [tables::outcome(sides), tables::policy(sides)]
            .into_iter()
            .chain(tables::faults(sides))
            .collect(),
        ..Section::default()
    }
}

fn over_time(scenario: &Scenario, sides: &[Side]) -> Section {
    let mut paragraphs = retries::stories(sides);
    if !scenario.outage.is_zero() {
        paragraphs.push("In the shaded time the target is down.".into());
    }
    Section {
        id: "over-time",
        heading: "Retries over time",
        paragraphs,
        charts: retries::charts(scenario, sides),
        ..Section::default()
    }
}

fn attempts_and_depth(scenario: &Scenario, sides: &[Side]) -> Section {
    Section {
        id: "queue",
        heading: "Attempts, and messages in the queue",
        paragraphs: runs::say(sides, depth::story),
        charts: vec![retries::attempts_chart(sides), depth::chart(scenario, sides)],
        ..Section::default()
    }
}

fn limit(scenario: &Scenario, sides: &[Side]) -> Section {
    Section {
        id: "limit",
        heading: "How many events can wait",
        paragraphs: tables::in_flight_arithmetic(scenario, sides),
        tables: vec![tables::in_flight_by_rate(scenario, sides)],
        ..Section::default()
    }
}

/// What became of the events that the outage hit: all together, and one alone.
fn events(scenario: &Scenario, recoveries: &[Recovery<'_>], lives: Lives) -> Section {
    let one_life = lives.most_eventful().and_then(|life| life::chart(scenario, &life));
    let one = match &one_life {
        Some(_) => "One event's life is that of the most attempts among the first events to arrive.",
        None => "None of the first events to arrive has failed.",
    };
    let (heading, all, chart, tables) = if scenario.outage.is_zero() {
        ("One event's life", "There is no outage in this run to recover from.", None, Vec::new())
    } else {
        (
            "Recovery by jitter, and one event's life",
            "The same run under every jitter; all else is as in the policy.",
            Some(recovery::chart(recoveries)),
            vec![recovery::table(scenario, recoveries)],
        )
    };
    Section {
        id: "events",
        heading,
        paragraphs: std::iter::once(format!("{all} {one}")).chain(plan_for(scenario)).collect(),
        tables,
        charts: chart.into_iter().chain(one_life).collect(),
    }
}

/// How to find a policy that recovers sooner, or costs less.
fn plan_for(scenario: &Scenario) -> Option<String> {
    let rate = tables::own_rate(scenario).filter(|_| !scenario.outage.is_zero())?;
    let command = plan::command_for(scenario.outage, rate);
    Some(format!(
        "The cheapest policy that recovers from this outage within 30 minutes, say, is found by: {command}"
    ))
}

fn cost(sides: &[Side]) -> Section {
    let paragraph = "The target's first invocations are not counted: they happen with or without retries.";
    Section {
        id: "cost",
        heading: "Calls and cost",
        paragraphs: vec![paragraph.into()],
        tables: vec![tables::cost(sides)],
        ..Section::default()
    }
}
