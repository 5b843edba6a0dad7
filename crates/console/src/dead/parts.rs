//! Parts shared by the pages about dead-letters.

use std::collections::BTreeSet;
use std::rc::Rc;

use axum::http::StatusCode;
use comeback_operate::dead::groups::Alike;
use comeback_operate::dead::snapshot::{Row, Selection, Snapshot};
use comeback_operate::function::shown_name;
use comeback_operate::numbers::grouped;

use crate::console::Console;
use crate::page::{Fields, Problem};
use crate::performer::busy;
use crate::response::encoded;

/// Returns the newest snapshot. A scan drops the earlier one when it begins, so meanwhile there is none.
pub(super) fn snapshot(console: &Console) -> Result<Rc<Snapshot>, Problem> {
    let why = "No scan has finished: start one on the Dead-letters page.";
    console.dead.snapshot().ok_or_else(|| match console.dead.under_way() {
        Some(_) => busy(),
        None => Problem::Refused(StatusCode::NOT_FOUND, why.into()),
    })
}

/// Returns the dead-letter with this message id, unless it is gone.
pub(super) fn row<'s>(snapshot: &'s Snapshot, id: &str) -> Result<&'s Row, Problem> {
    let why = "The scan has no such dead-letter, or it was redriven or discarded since.";
    let row = snapshot.rows(&Selection::one(id)).first().copied();
    row.ok_or_else(|| Problem::Refused(StatusCode::NOT_FOUND, why.into()))
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
