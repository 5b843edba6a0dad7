//! `comeback plan`: finds the cheapest policy for a recovery goal.

use std::io::Write;
use std::time::Duration;

use comeback_operate::{Failure, durations};
use comeback_rehearsal::plan::{self, HEAD, PlanArguments, Recommended, rows};
use comeback_timelapse::PolicyPlan;
use comfy_table::{Cell, Color, Table};

use crate::clock::timed;
use crate::failure::CommandFailure;
use crate::output::{create, fill, print_json};
use crate::tables::{Meter, align_right, table};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback plan                                        3h down, 10 events a second, back within 30m
  comeback plan --outage 1h --rate 200/s --recover-within 5m --plot out/
  comeback plan --recover-within 2h --never-succeed 1% if one event in a hundred fails every time
  comeback plan --outage 1h --capacity 3                for a target that takes three times its traffic
  comeback plan --policies 'payments MAX_AGE=6h MAX_RETRIES=50' --target payments
  comeback plan --outage 3d --max-age 7d --recover-within 6h --json";

pub(crate) fn run(arguments: &PlanArguments) -> Result<(), CommandFailure> {
    let policies = PolicyPlan::policies(&arguments.goal());
    let progress = Meter::new(policies as u64, "{pos} of {len} policies, {eta} left");
    let (recommended, wall_time) = timed(|| plan::recommended(arguments, &|_, _| progress.advance(1)));
    drop(progress);
    let recommended = recommended?;
    if arguments.json {
        // Written first, so that a failure is the only JSON.
        write_plot(arguments, &recommended)?;
        print_json(&recommended)?;
    } else {
        let text = text(&recommended, arguments.target.as_deref(), wall_time);
        writeln!(anstream::stdout().lock(), "{text}")?;
        write_plot(arguments, &recommended)?;
    }
    let limits = recommended.limited_by;
    if limits.is_empty() {
        return Ok(());
    }
    let limits = limits.join("\n       ");
    let problem = format!("no policy in the grid meets the goal; what stands in the way:\n       {limits}");
    Err(Failure::undone(problem).into())
}

fn write_plot(arguments: &PlanArguments, recommended: &Recommended) -> Result<(), CommandFailure> {
    let Some(folder) = &arguments.plot else { return Ok(()) };
    let file = folder.join("plan.svg");
    fill(create(&file)?, &file, &plan::draw(&recommended.plan))
}

fn text(recommended: &Recommended, target: Option<&str>, wall_time: Duration) -> String {
    let plan = &recommended.plan;
    let target = target.zip(recommended.entry.as_ref());
    let target = target.map(|(name, entry)| format!("For {name}, under its entry of POLICIES: {entry}\n"));
    format!(
        "{}{}\n\n{}\n{}{}{}\n\nwall time: {}",
        target.unwrap_or_default(),
        plan::headline(plan),
        policies(plan),
        plan::legend(plan),
        plan::slower_alone(plan).map_or(String::new(), |slower| format!("\n{slower}")),
        recommended.paste(),
        durations::text(wall_time),
    )
}

/// Returns a table of the default policy and of every unbeaten policy, fastest first.
fn policies(plan: &PolicyPlan) -> Table {
    let mut table = table();
    table.set_header(HEAD);
    for (policy, cells) in rows(plan) {
        let is_cheapest = Some(policy) == plan.cheapest.as_ref();
        let colour = |cell| if is_cheapest { Cell::new(cell).fg(Color::Green) } else { Cell::new(cell) };
        table.add_row(cells.map(colour));
    }
    align_right(&mut table, [0, 2, 3, 4, 5, 6, 7]);
    table
}
