//! Builds the HTML page that `comeback simulate --report` writes about a run. The page's headings are in
//! `templates/report.html`.

mod beside;
mod canvas;
mod depth;
mod life;
mod recovery;
mod retries;
mod runs;
mod tables;
mod targets;
mod template;

use askama::Template;
use comeback_timelapse::{Scenario, SimulatedTarget};

use crate::chart::PALETTE;
use crate::figure::SIZE;
use crate::flags::recorded_arn;
use crate::plan;
use crate::simulate::figures::headline;

use template::Page;

pub use beside::{Beside, beside};
pub use life::Lives;
pub use runs::Runs;
use runs::Side;
pub use template::Tile;

/// Renders the report. The same arguments give the same bytes.
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

/// If the run has exactly one function and `--policies` has an entry for it, returns the value of `--policies` and the
/// function's name; otherwise `None`.
fn own_policy<'s>(scenario: &'s Scenario, side: &'s Side) -> Option<(&'s str, &'s str)> {
    let [SimulatedTarget { name, .. }] = scenario.targets.as_slice() else { return None };
    side.policies.entry_of(&recorded_arn(name))?;
    let (_, policies) = side.flags.given().find(|(flag, _)| *flag == "policies")?;
    Some((policies, name))
}
