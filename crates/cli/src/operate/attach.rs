//! `comeback attach` and `comeback detach`: send the failures of a function to Comeback, or leave them to Lambda again.
//!
//! [`Attachment`] holds everything that is there, read once. Its `attach` and `detach` plan the changes and their order, and
//! call nothing. Then the plan is shown, confirmed, performed, and checked. There is no other state: an interrupted run is
//! resumed by planning again.

mod allow_list;
mod attachment;
mod change;
mod kept;
mod leaving;
#[cfg(test)]
mod model;
mod plan;
mod policy;

use std::io::Write as _;

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde::Serialize;

use crate::clock::now;
use crate::failure;
use crate::operate::account::Failure;
use crate::operate::attach::attachment::Attachment;
use crate::operate::attach::change::{AttachPlan, Change, Difference, settled};
use crate::operate::attach::leaving::Leaving;
use crate::operate::function::FunctionName;
use crate::operate::session::{Common, Session, confirm};
use crate::text::terminal::Progress;

pub(crate) const ATTACH_EXAMPLES: &str = "\
Examples:
  comeback attach orders --dry-run
  comeback attach orders:live --yes
  comeback attach orders --handler my-retry-handler --json --yes";

#[derive(Debug, Args)]
pub(crate) struct AttachArguments {
    /// The function, as NAME, NAME:ALIAS, NAME:VERSION or ARN; callers' failures count where they invoke it
    #[arg(value_name = "FUNCTION[:ALIAS]")]
    pub(crate) function: FunctionName,
    /// Show the changes, and make none of them
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn attach(arguments: &AttachArguments, session: Session) -> Result<(), failure::Failure> {
    // All is read anew each time: the changes are seen only that way.
    let plan = async || {
        let deployment = session.deployment().await?;
        let attachment = Attachment::read(&session.account, &deployment, &arguments.function).await?;
        attachment.attach()
    };
    let order = CarryOut {
        verb: "attach",
        function: &arguments.function,
        dry_run: arguments.dry_run,
        nothing: "it is attached, and nothing is to be changed",
    };
    carry_out(&order, &session, plan).await?;
    Ok(())
}

pub(crate) const DETACH_EXAMPLES: &str = "\
Examples:
  comeback detach orders --dry-run
  comeback detach orders:live --yes
  comeback detach orders --now --yes";

#[derive(Debug, Args)]
pub(crate) struct DetachArguments {
    /// The function, as NAME, NAME:ALIAS, NAME:VERSION or ARN
    #[arg(value_name = "FUNCTION[:ALIAS]")]
    pub(crate) function: FunctionName,
    /// Show the changes, and make none of them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not wait for the function's events: those that still wait go to the dead-letter queue
    #[arg(long)]
    pub(crate) now: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn detach(arguments: &DetachArguments, session: Session) -> Result<(), failure::Failure> {
    let account = &session.account;
    // All is read anew each time, as of then: the time that is kept must not be before the destination goes.
    let plan = async || {
        let deployment = session.deployment().await?;
        let attachment = Attachment::read(account, &deployment, &arguments.function).await?;
        let progress = Progress::endless("reading the handler's log: {pos} lines");
        let read = |lines: usize| progress.set(lines as u64);
        let leaving = Leaving::read(account, &deployment, &attachment, arguments.now, now(), &read).await?;
        attachment.detach(&leaving)
    };
    let order = CarryOut {
        verb: "detach",
        function: &arguments.function,
        dry_run: arguments.dry_run,
        nothing: "it is not attached, and nothing is to be changed",
    };
    let planned = carry_out(&order, &session, plan).await?;
    match planned.left {
        // The run that takes the destination away has done all that can be done by now.
        Some(left) if planned.changes.is_empty() => {
            let or = if arguments.now { "" } else { ", or give up what waits with --now" };
            let what = format!(
                "{} is not detached completely: {left}; repeat the command later{or}",
                arguments.function
            );
            Err(Failure::Undone(what).into())
        }
        _ => Ok(()),
    }
}

const COMES: Style = AnsiColor::Green.on_default();
const GOES: Style = AnsiColor::Red.on_default();
const CHANGES: Style = AnsiColor::Yellow.on_default();

/// A command on a function.
pub(crate) struct CarryOut<'a> {
    /// `attach` or `detach`.
    pub(crate) verb: &'static str,
    pub(crate) function: &'a FunctionName,
    pub(crate) dry_run: bool,
    /// The message if there is nothing to do.
    pub(crate) nothing: &'static str,
}

#[derive(Serialize)]
struct Report<'a> {
    function: String,
    differences: Vec<Difference>,
    notes: &'a [String],
    left: Option<&'a str>,
    dry_run: bool,
    /// Everything is done, apart from what is left.
    done: bool,
}

/// Shows the plan, asks, makes the changes, and checks them. Gives the plan that was made.
pub(crate) async fn carry_out(
    order: &CarryOut<'_>,
    session: &Session,
    plan: impl AsyncFn() -> Result<AttachPlan, Failure>,
) -> Result<AttachPlan, failure::Failure> {
    let mut planned = session.interrupt.or(plan()).await?;
    let is_json = session.common.json;
    if !is_json {
        show(order, &planned)?;
    }
    let nothing_to_do = planned.changes.is_empty();
    if !nothing_to_do && !order.dry_run {
        confirm(&format!("{} {}?", order.verb, order.function), session).await?;
        // Somebody else may have changed it while the question stood. What waits of the function changes by itself.
        let again = session.interrupt.or(plan()).await?;
        if !again.agrees_with(&planned) {
            let what = "nothing was changed: the plan is out of date, because somebody else made a change; run the command again";
            return Err(Failure::CouldNot(what.into()).into());
        }
        planned = again;
        let made = make(session, &planned, &plan).await;
        if let (Err(_), true) = (&made, is_json) {
            print(order, &planned, false)?;
        }
        made?;
    }
    if is_json {
        print(order, &planned, nothing_to_do || !order.dry_run)?;
    } else if !nothing_to_do && !order.dry_run {
        writeln!(anstream::stdout(), "done: every change was made, and is seen")?;
    }
    Ok(planned)
}

async fn make(
    session: &Session,
    planned: &AttachPlan,
    plan: &impl AsyncFn() -> Result<AttachPlan, Failure>,
) -> Result<(), Failure> {
    let said = |change: &Change| {
        if !session.common.json {
            for Difference { resource, setting, .. } in change.differences() {
                anstream::eprintln!("  {resource}: {setting}");
            }
        }
    };
    planned.perform(&session.account, &session.interrupt, &said).await?;
    let seen = session.interrupt.or(settled(plan)).await?;
    if seen.changes.is_empty() {
        return Ok(());
    }
    let missing: Vec<String> = seen
        .changes
        .iter()
        .flat_map(Change::differences)
        .map(|it| format!("{}: {}", it.resource, it.setting))
        .collect();
    Err(Failure::Undone(format!(
        "every change was made, but a minute later some are not seen ({}): somebody else changed them too, or AWS needs \
         longer; repeat the command",
        missing.join(", ")
    )))
}

fn print(order: &CarryOut<'_>, plan: &AttachPlan, done: bool) -> std::io::Result<()> {
    let report = Report {
        function: order.function.to_string(),
        differences: plan.changes.iter().flat_map(Change::differences).collect(),
        notes: &plan.notes,
        left: plan.left.as_deref(),
        dry_run: order.dry_run,
        done,
    };
    writeln!(anstream::stdout(), "{}", serde_json::json!(report))
}

fn show(order: &CarryOut<'_>, plan: &AttachPlan) -> std::io::Result<()> {
    let mut out = anstream::stdout();
    let CarryOut { verb, function, nothing, .. } = order;
    if plan.changes.is_empty() {
        if plan.left.is_none() {
            writeln!(out, "{function}: {nothing}")?;
        }
    } else {
        writeln!(out, "{verb} {function}:\n{}", changes(plan))?;
    }
    for note in &plan.notes {
        writeln!(out, "note: {note}")?;
    }
    if let Some(left) = plan.left.as_ref().filter(|_| !plan.changes.is_empty()) {
        writeln!(out, "left: {left}. Repeat the command later to finish")?;
    }
    Ok(())
}

/// The differences below their resources: `+` added, `-` removed, `~` changed.
fn changes(plan: &AttachPlan) -> String {
    let mut text = String::new();
    let mut above = String::new();
    for Difference { resource, setting, from, to } in plan.changes.iter().flat_map(Change::differences) {
        if resource != above {
            text.push_str(&format!("  {resource}\n"));
            above = resource;
        }
        let line = match (from, to) {
            (None, to) => format!("{COMES}+ {setting}: {}{COMES:#}", to.unwrap_or_default()),
            (Some(from), None) => format!("{GOES}- {setting}: {from}{GOES:#}"),
            (Some(from), Some(to)) => format!("{CHANGES}~ {setting}: {from} → {to}{CHANGES:#}"),
        };
        text.push_str(&format!("    {line}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::operate::function::InvokeSettings;

    use super::*;

    #[test]
    fn what_comes_goes_and_changes_has_its_own_sign() {
        let (function, qualifier) = ("orders".to_owned(), Some("live".to_owned()));
        let from = InvokeSettings { retries: Some(2), event_age: Some(600), ..InvokeSettings::default() };
        let to = InvokeSettings {
            retries: Some(0),
            on_failure: Some("arn:q".into()),
            ..InvokeSettings::default()
        };
        let (role, policy) = ("orders-role".into(), "comeback-q".into());
        let change = Change::Withdraw { role, policy, statements: Vec::new() };
        let plan = AttachPlan {
            changes: vec![Change::Settings { function, qualifier, from, to }, change],
            ..AttachPlan::default()
        };
        let plain = anstream::adapter::strip_str(&changes(&plan)).to_string();
        let expected = "  function orders:live\n    + on failure: arn:q\n    ~ retries: 2 → 0\n    - event age: 600s\n  \
        role orders-role\n    - policy comeback-q: allowed\n";
        assert_eq!(plain, expected);
    }
}
