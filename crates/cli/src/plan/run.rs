use std::io::Write;
use std::time::Duration;

use comeback_engine::Settings;
use comeback_timelapse::{Goal, Plan, PlanError};
use serde::Serialize;

use crate::clock::timed;
use crate::failure::Failure;
use crate::plan::arguments::{PlanArguments, repeat};
use crate::plan::settings::{Setting, overrides, properties, settings};
use crate::plan::{limits, plot, table};
use crate::text::durations;
use crate::text::terminal::Progress;

pub(crate) fn run(arguments: &PlanArguments) -> Result<(), Failure> {
    let (goal, other) = checked(arguments)?;
    let (plan, wall_time) = timed(|| planned(&goal, &other));
    let plan = plan?;
    let limited_by = limits::in_words(&plan.limits, &goal, &other);
    let pasted = plan.cheapest.as_ref().map(|policy| settings(policy, &other));
    let mut out = anstream::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", json(&plan, pasted.as_deref(), &limited_by))?;
    } else {
        writeln!(out, "{}", text(&plan, pasted.as_deref(), wall_time))?;
    }
    if let Some(folder) = &arguments.plot {
        let file = plot::write(folder, &plan)?;
        anstream::eprintln!("wrote {}", file.display());
    }
    if limited_by.is_empty() { Ok(()) } else { Err(Failure::GoalNotMet(limited_by)) }
}

/// Refuses everything wrong at once.
fn checked(arguments: &PlanArguments) -> Result<(Goal, Settings), Failure> {
    let goal = arguments.goal();
    match (arguments.settings(), goal.check()) {
        (Ok(settings), Ok(())) => Ok((goal, settings)),
        (settings, goal) => {
            Err(Failure::refused(settings.err().unwrap_or_default(), goal.err().unwrap_or_default()))
        }
    }
}

fn planned(goal: &Goal, settings: &Settings) -> Result<Plan, Failure> {
    let progress = Progress::new(Plan::policies(goal) as u64, "{pos} of {len} policies, {eta} left");
    Plan::of(goal, settings, &|| progress.advance(1)).map_err(|error| match error {
        PlanError::Refused { settings, goal } => Failure::refused(settings, goal),
        PlanError::Violated(violation) => Failure::Violated { violation, repeat: repeat(goal, settings) },
    })
}

fn json(plan: &Plan, settings: Option<&[Setting]>, limited_by: &[String]) -> String {
    #[derive(Serialize)]
    struct Printed<'a> {
        #[serde(flatten)]
        plan: &'a Plan,
        settings: Option<&'a [Setting]>,
        limited_by: &'a [String],
    }
    serde_json::to_string_pretty(&Printed { plan, settings, limited_by }).expect("BUG: a plan is plain JSON")
}

fn text(plan: &Plan, settings: Option<&[Setting]>, wall_time: Duration) -> String {
    let pasted = settings.map_or(String::new(), |settings| {
        let properties = properties(settings).replace('\n', "\n  ");
        format!(
            "\n\nWith SAM:\n  {}\n\nAs properties of the CDK construct:\n  {properties}",
            overrides(settings)
        )
    });
    format!(
        "{}\n\n{}\n{}{}{pasted}\n\nwall time: {}",
        table::headline(plan),
        table::policies(plan),
        table::legend(plan),
        table::slower_alone(plan).map_or(String::new(), |slower| format!("\n{slower}")),
        durations::text(wall_time),
    )
}
