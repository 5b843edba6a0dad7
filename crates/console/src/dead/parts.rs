//! Parts shared by the pages about dead-letters.

use std::collections::BTreeSet;
use std::rc::Rc;

use axum::http::StatusCode;
use axum::response::Response;
use comeback_operate::Failure;
use comeback_operate::dead::groups::Alike;
use comeback_operate::dead::snapshot::{Row, Selection, Snapshot};
use comeback_operate::function::shown_name;
use comeback_operate::numbers::grouped;

use crate::change::Performer;
use crate::console::Console;
use crate::dead::state::Turn;
use crate::page::{Fields, Problem};
use crate::response::{encoded, go_to};
use crate::work::{WorkSummary, page_of};

pub(super) fn snapshot(console: &Console) -> Result<Rc<Snapshot>, Problem> {
    let why = "No scan has finished: start one on the Dead-letters page.";
    console.dead.snapshot().ok_or_else(|| Problem::Refused(StatusCode::NOT_FOUND, why.into()))
}

/// Reserves the dead-letter queue for the action at `path`. Fails if another action has reserved the queue.
pub(super) fn turn(console: &Console, path: &str) -> Result<Turn, Problem> {
    let why = "Another action is reading the dead-letters, and two would hide them from each other. The \
               Dead-letters page shows it.";
    console.dead.turn(path).ok_or_else(|| Problem::Refused(StatusCode::CONFLICT, why.into()))
}

/// Performs an action that reads the dead-letter queue, and redirects to its progress page. A second submission of
/// the form does not repeat the action.
pub(super) fn perform_in_turn<F>(
    console: &Console,
    once: &str,
    summary: WorkSummary,
    command: impl FnOnce(Performer) -> F,
) -> Result<Response, Problem>
where
    F: Future<Output = Result<(), Failure>> + 'static,
{
    let path = page_of(once);
    if console.dead.under_way().as_ref() == Some(&path) {
        return Ok(go_to(&path));
    }
    let turn = turn(console, &path)?;
    let performing = console.clone();
    Ok(console.works.perform(once, summary, |screen, interrupt| {
        let performing = command(Performer { console: performing, screen, interrupt });
        async move {
            let _turn = turn;
            performing.await
        }
    }))
}

pub(super) fn path(row: &Row) -> String {
    format!("/dead/each/{}", encoded(&row.message_id))
}

pub(super) fn selection(fields: &Fields) -> Result<Selection, Problem> {
    let ids: BTreeSet<String> = fields.all("dead_letter").map(ToOwned::to_owned).collect();
    match (fields.get("group"), ids.is_empty()) {
        (None, true) => Ok(Selection::All),
        (Some(group), true) => group.parse().map(Selection::Group).map_err(|_| Problem::Missing),
        (None, false) => Ok(Selection::DeadLetters(ids)),
        (Some(_), false) => Err(Problem::Missing),
    }
}

/// A description of the selected dead-letters, for titles.
pub(super) fn described(snapshot: &Snapshot, selection: &Selection) -> String {
    let group = |number: usize| snapshot.group(number);
    match selection {
        Selection::All => "every dead-letter of the scan".into(),
        Selection::DeadLetters(ids) => match ids.first() {
            Some(id) if ids.len() == 1 => format!("the dead-letter {id}"),
            _ => format!("{} chosen dead-letters", grouped(ids.len() as u64)),
        },
        Selection::Group(number) => {
            let Some(Alike { reason, target, error_type, detail, .. }) = group(*number) else {
                return "no dead-letter".into();
            };
            let target = target.as_deref().map(|target| format!(" of {}", shown_name(target)));
            let error = error_type.as_ref().or(detail.as_ref()).map(|error| format!(", {error}"));
            format!("{reason}{}{}", target.unwrap_or_default(), error.unwrap_or_default())
        }
    }
}
