//! The HTML page that `comeback simulate --report` writes about a run.

mod beside;
mod canvas;
mod depth;
mod life;
mod recovery;
mod retries;
mod runs;
mod tables;
mod targets;

use askama::Template;
use comeback_timelapse::{Scenario, SimulatedTarget};

use crate::chart::{Colour, PALETTE};
use crate::figure::{Chart, FigureTable, SIZE};
use crate::flags::recorded_arn;
use crate::plan;
use crate::simulate::figures::headline;

pub use beside::{Beside, beside};
pub use life::Lives;
pub use runs::Runs;
use runs::Side;

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    version: &'static str,
    palette: [Colour; PALETTE.len()],
    headline: String,
    tiles: Vec<Tile>,
    outcome: Vec<FigureTable>,
    has_outage: bool,
    retries: Vec<String>,
    retry_charts: [Chart; 2],
    /// Charts with a line for each of the first five targets in the first run; empty if there is only one target.
    target_charts: Vec<Chart>,
    depth: Vec<String>,
    queue_charts: [Chart; 2],
    recovery: Option<(Chart, FigureTable)>,
    /// True if the policy was also run with the other kinds of jitter.
    by_jitter: bool,
    life: Option<Chart>,
    /// The `comeback plan` command for the cheapest policy that recovers from this run's outage within 30 minutes.
    plan: Option<String>,
    limit: Vec<String>,
    limit_by_rate: FigureTable,
    cost: FigureTable,
    command: String,
}

/// A figure in large type, shown for each policy.
pub struct Tile {
    /// Name of the figure, such as `delivered`.
    pub label: &'static str,
    /// The name of each policy, and the figure's value under that policy.
    pub values: Vec<(String, String)>,
}

/// Renders the report; the same arguments give the same bytes.
pub fn page(repeat: &str, scenario: &Scenario, runs: &Runs, lives: Lives) -> String {
    let Runs { sides, jitters } = runs;
    let has_outage = !scenario.longest_outage().is_zero();
    let recoveries = recovery::of(sides, jitters);
    let rate = tables::own_rate(scenario).filter(|_| has_outage);
    let page = Page {
        version: env!("CARGO_PKG_VERSION"),
        palette: PALETTE,
        headline: headline(scenario),
        tiles: tables::tiles(sides),
        outcome: [tables::outcome(sides), tables::policy(sides)]
            .into_iter()
            .chain(tables::faults(sides))
            .collect(),
        has_outage,
        retries: retries::stories(sides),
        retry_charts: retries::charts(scenario, sides),
        target_charts: targets::charts(scenario, &sides[0].summary),
        depth: runs::say(sides, depth::story),
        queue_charts: [retries::attempts_chart(sides), depth::chart(scenario, sides)],
        by_jitter: !jitters.is_empty(),
        recovery: has_outage
            .then(|| (recovery::chart(&recoveries, SIZE), recovery::table(scenario, &recoveries))),
        life: lives.most_eventful().and_then(|life| life::chart(scenario, &life)),
        plan: rate
            .map(|rate| plan::command_for(scenario.longest_outage(), rate, own_policy(scenario, &sides[0]))),
        limit: tables::in_flight_arithmetic(scenario, sides),
        limit_by_rate: tables::in_flight_by_rate(scenario, sides),
        cost: tables::cost(sides),
        command: repeat.to_owned(),
    };
    page.render().expect("BUG: writing to a String")
}

/// Returns the value of `--policies` and the name of the scenario's only function. Returns `None` if the scenario has
/// several functions, or if `--policies` has no entry for that function.
fn own_policy<'s>(scenario: &'s Scenario, side: &'s Side) -> Option<(&'s str, &'s str)> {
    let [SimulatedTarget { name, .. }] = scenario.targets.as_slice() else { return None };
    side.policies.entry_of(&recorded_arn(name))?;
    let (_, policies) = side.flags.given().find(|(flag, _)| *flag == "policies")?;
    Some((policies, name))
}
