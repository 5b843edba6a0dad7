use std::io::Write as _;

use comeback_operate::{AttachPlan, Change, Difference, Failure, FunctionName, settled};
use comfy_table::{Attribute, Cell};
use serde::Serialize;

use crate::failure;
use crate::operate::confirm::confirm;
use crate::operate::session::Session;
use crate::text::table::table;

/// What is to be done with a function.
pub(crate) struct CarryOut<'a> {
    /// `attach` or `detach`.
    pub(crate) verb: &'static str,
    pub(crate) function: &'a FunctionName,
    /// The retry handler's name.
    pub(crate) handler: &'a str,
    pub(crate) dry_run: bool,
    /// Said where there is nothing to do.
    pub(crate) nothing: &'static str,
}

/// What is printed with `--json`.
#[derive(Serialize)]
struct Report<'a> {
    function: String,
    handler: &'a str,
    differences: Vec<Difference>,
    notes: &'a [String],
    left: Option<&'a str>,
    dry_run: bool,
    /// Whether everything is as it should be, but for what is left.
    done: bool,
}

/// Shows the plan, asks, makes the changes, and looks whether they are there. Gives the plan that was shown.
pub(crate) async fn carry_out(
    order: &CarryOut<'_>,
    session: &Session,
    plan: impl AsyncFn() -> Result<AttachPlan, Failure>,
) -> Result<AttachPlan, failure::Failure> {
    let planned = session.interrupt.or(plan()).await?;
    let is_json = session.common.json;
    if !is_json {
        show(order, &planned)?;
    }
    let nothing_to_do = planned.changes.is_empty();
    if !nothing_to_do && !order.dry_run {
        confirm(&format!("{} {}?", order.verb, order.function), &session.common)?;
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
        handler: order.handler,
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
    let CarryOut { verb, function, handler, nothing, .. } = order;
    if plan.changes.is_empty() {
        if plan.left.is_none() {
            writeln!(out, "{function}: {nothing}")?;
        }
    } else {
        writeln!(out, "{verb} {function}, with the retry handler {handler}:")?;
        let mut table = table();
        table.set_header(
            ["what", "setting", "is", "will be"].map(|name| Cell::new(name).add_attribute(Attribute::Bold)),
        );
        for Difference { resource, setting, from, to } in plan.changes.iter().flat_map(Change::differences) {
            let text = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            table.add_row([resource, setting, text(from), text(to)]);
        }
        writeln!(out, "{table}")?;
    }
    for note in &plan.notes {
        writeln!(out, "note: {note}")?;
    }
    if let Some(left) = plan.left.as_ref().filter(|_| !plan.changes.is_empty()) {
        writeln!(
            out,
            "left: the allow-list, the permissions and the recursion setting, for events that still wait ({left}). Repeat \
             the command later to take them away too"
        )?;
    }
    Ok(())
}
