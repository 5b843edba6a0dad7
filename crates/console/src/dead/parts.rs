//! The common parts of the pages of dead-letters.

use std::rc::Rc;

use axum::http::StatusCode;
use axum::response::Response;
use comeback_engine::Timestamp;
use comeback_operate::dead::groups::{Alike, age, expires};
use comeback_operate::dead::snapshot::{Row, Selection, Snapshot};
use comeback_operate::durations::short;
use comeback_operate::numbers::grouped;
use comeback_operate::{Failure, Interrupt};

use crate::console::Console;
use crate::dead::state::Turn;
use crate::page::{Fields, Moment, Problem, encoded, function_name};
use crate::response::go_to;
use crate::work::{PageScreen, Summary};

/// The newest snapshot.
pub(super) fn snapshot(console: &Console) -> Result<Rc<Snapshot>, Problem> {
    let why = "No scan has finished: start one on the Dead-letters page.";
    console.dead.snapshot().ok_or_else(|| Problem::Refused(StatusCode::NOT_FOUND, why.into()))
}

/// Takes the queue for something with this page.
pub(super) fn turn(console: &Console, path: &str) -> Result<Turn, Problem> {
    let why = "Another action is reading the dead-letters, and two would hide them from each other. The \
               Dead-letters page shows it.";
    console.dead.turn(path).ok_or_else(|| Problem::Refused(StatusCode::CONFLICT, why.into()))
}

/// Performs something that reads the queue, on a page of its own, once.
pub(super) fn perform_in_turn<F>(
    console: &Console,
    once: &str,
    summary: Summary,
    command: impl FnOnce(Rc<PageScreen>, Interrupt) -> F,
) -> Result<Response, Problem>
where
    F: Future<Output = Result<(), Failure>> + 'static,
{
    if !once.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(incomplete());
    }
    let path = format!("/progress/{once}");
    if console.dead.under_way().as_ref() == Some(&path) {
        return Ok(go_to(&path));
    }
    let turn = turn(console, &path)?;
    Ok(console.works.perform(once, summary, move |screen, interrupt| {
        let performing = command(screen, interrupt);
        async move {
            let _turn = turn;
            performing.await
        }
    }))
}

pub(super) fn incomplete() -> Problem {
    Problem::Refused(StatusCode::BAD_REQUEST, "The form is incomplete.".into())
}

/// A field of a form, as `templates/dead_parts.html` draws it.
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
    pub(super) value: String,
}

/// The time since a moment, as answers write it.
pub(super) fn aged(moment: Timestamp, now: Timestamp) -> Moment {
    Moment { text: age(moment, now), at: Some(moment) }
}

/// The time until a moment.
pub(super) fn until(moment: Timestamp, now: Timestamp) -> Moment {
    let left = moment.since(now);
    let text = if left.is_zero() { "now".into() } else { format!("in {}", short(left.as_secs() as f64)) };
    Moment { text, at: Some(moment) }
}

/// Fields that name dead-letters of a snapshot.
pub(super) fn selection(fields: &Fields) -> Result<Selection, Problem> {
    match (fields.get("group"), fields.get("dead_letter")) {
        (None, None) => Ok(Selection::All),
        (Some(group), None) => group.parse().map(Selection::Group).map_err(|_| Problem::Missing),
        (None, Some(dead_letter)) => Ok(Selection::DeadLetter(dead_letter.to_owned())),
        (Some(_), Some(_)) => Err(Problem::Missing),
    }
}

/// A dead-letter on one line.
pub(super) struct DeadLetterLine {
    pub(super) path: String,
    pub(super) key: String,
    pub(super) function: String,
    pub(super) reason: &'static str,
    pub(super) error: String,
    pub(super) message: String,
    pub(super) retries: String,
    pub(super) dead_lettered_at: Moment,
    pub(super) expires: Moment,
}

impl DeadLetterLine {
    pub(super) fn of(snapshot: &Snapshot, row: &Row, now: Timestamp) -> Self {
        let alike = snapshot.alike(row);
        Self {
            path: format!("/dead/each/{}", encoded(&row.message_id)),
            key: row.key.as_ref().unwrap_or(&row.message_id).to_string(),
            function: function_name(alike.target.as_deref().unwrap_or_default()).to_owned(),
            reason: alike.reason,
            error: alike.error_type.clone().unwrap_or_default(),
            message: row.message.as_deref().unwrap_or_default().to_owned(),
            retries: row.retries.map(|retries| grouped(retries.into())).unwrap_or_default(),
            dead_lettered_at: aged(row.dead_lettered_at, now),
            expires: until(expires(row.sent), now),
        }
    }
}

/// Which dead-letters, in words.
pub(super) fn described(snapshot: &Snapshot, selection: &Selection) -> String {
    let group = |number: usize| snapshot.group(number);
    match selection {
        Selection::All => "every dead-letter of the scan".into(),
        Selection::DeadLetter(id) => format!("the dead-letter {id}"),
        Selection::Group(number) => {
            let Some(Alike { reason, target, error_type, detail }) = group(*number) else {
                return "no dead-letter".into();
            };
            let target = target.as_deref().map(|target| format!(" of {}", function_name(target)));
            let error = error_type.as_ref().or(detail.as_ref()).map(|error| format!(", {error}"));
            format!("{reason}{}{}", target.unwrap_or_default(), error.unwrap_or_default())
        }
    }
}
