use std::io::Write as _;

use anstyle::{AnsiColor, Style};
use comeback_operate::{AttachPlan, Change, Difference, Failure, FunctionName, settled};
use serde::Serialize;

use crate::failure;
use crate::operate::confirm::confirm;
use crate::operate::session::Session;

const COMES: Style = AnsiColor::Green.on_default();
const GOES: Style = AnsiColor::Red.on_default();
const CHANGES: Style = AnsiColor::Yellow.on_default();

/// What is to be done with a function.
pub(crate) struct CarryOut<'a> {
    /// `attach` or `detach`.
    pub(crate) verb: &'static str,
    pub(crate) function: &'a FunctionName,
    pub(crate) dry_run: bool,
    /// Said where there is nothing to do.
    pub(crate) nothing: &'static str,
}

/// What is printed with `--json`.
#[derive(Serialize)]
struct Report<'a> {
    function: String,
    differences: Vec<Difference>,
    notes: &'a [String],
    left: Option<&'a str>,
    dry_run: bool,
    /// Whether everything is as it should be, but for what is left.
    done: bool,
}

/// Shows the plan, asks, makes the changes, and looks whether they are there. Gives the plan that was made.
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
            let what = "nothing was changed: meanwhile somebody else changed what the plan is about; look at it again";
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
        "every change was made, but a minute later some are not seen ({}): somebody else changes them too, or AWS needs \
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

/// The differences, each below its resource: `+` what comes, `-` what goes, `~` what changes.
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
    use comeback_operate::InvokeSettings;

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
