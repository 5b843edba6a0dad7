//! One dead-letter: what the snapshot has of it and, read again when that is asked for, all of it.

use std::rc::Rc;

use askama::Template;
use axum::Router;
use axum::http::StatusCode;
use axum::response::Response;

use crate::account::Failure;
use crate::clock::now;
use crate::operate::dead::dead_letters::DeadLetters;
use crate::operate::dead::reading::{self, Whole, pretty};
use crate::operate::dead::snapshot::Selection;
use crate::text::terminal::{command_line, shown_json, shown_lines};
use crate::ui::access::token;
use crate::ui::console::Console;
use crate::ui::dead::parts::{DeadLetterLine, incomplete, snapshot, turn};
use crate::ui::dead::state::scan_id;
use crate::ui::page::{Fields, Frame, Problem, Visit, form_that_reads, ok, page};
use crate::ui::work::PageScreen;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/dead/each/{id}", page(show).merge(form_that_reads(read)))
}

#[derive(Template)]
#[template(path = "ui/dead_letter.html")]
struct DeadLetterPage {
    frame: Frame,
    path: String,
    id: String,
    scan: String,
    once: String,
    command: String,
    known: DeadLetterLine,
    read: Option<ReadAgain>,
}

/// A dead-letter as it was read again for this page.
struct ReadAgain {
    lines: Vec<(String, String)>,
    /// The payload or, where no event was found, the body; if it was asked for.
    text: Option<(&'static str, String)>,
    problem: Option<String>,
}

/// What to show of a dead-letter that is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Details,
    Formatted,
    Verbatim,
}

impl Wanted {
    fn of(fields: &Fields) -> Option<Self> {
        match fields.get("show")? {
            "details" => Some(Self::Details),
            "formatted" => Some(Self::Formatted),
            "verbatim" => Some(Self::Verbatim),
            _ => None,
        }
    }

    fn text(self, dead_letter: &Whole) -> Option<(&'static str, String)> {
        let payload = dead_letter.payload.as_ref().map(|payload| payload.get());
        match (self, payload, &dead_letter.body) {
            (Self::Details, ..) => None,
            (Self::Formatted, Some(payload), _) => Some(("Payload, formatted", shown_json(&pretty(payload)))),
            (Self::Verbatim, Some(payload), _) => Some(("Payload, verbatim", shown_json(payload))),
            (_, None, body) => Some(("Body", shown_lines(body.as_deref().unwrap_or_default()))),
        }
    }
}

async fn show(visit: Visit) -> Result<Response, Problem> {
    dead_letter_page(&visit, None)
}

fn dead_letter_page(visit: &Visit, read: Option<ReadAgain>) -> Result<Response, Problem> {
    let snapshot = snapshot(&visit.console)?;
    let id = visit.last_of_path();
    let selection = Selection::DeadLetter(id.clone());
    let rows = snapshot.rows(&selection);
    let row = rows.first().ok_or_else(|| {
        let why = "The scan has no such dead-letter, or it was sent back or discarded since.";
        Problem::Refused(StatusCode::NOT_FOUND, why.into())
    })?;
    ok(&DeadLetterPage {
        frame: visit.frame("Dead-letter", None).of(snapshot.at),
        path: visit.path().to_owned(),
        scan: scan_id(&snapshot),
        once: token(),
        command: command_line(["comeback", "dead", "show", &*id]) + &visit.console.common.place_flags(),
        id,
        known: DeadLetterLine::of(&snapshot, row, now()),
        read,
    })
}

/// Reads the queue until the dead-letter is found. It goes on if the browser hangs up, so that the dead-letters are
/// given back.
async fn read(visit: Visit, fields: Fields) -> Result<Response, Problem> {
    let wanted = Wanted::of(&fields).ok_or_else(incomplete)?;
    let turn = turn(&visit.console, "")?;
    let (console, id) = (visit.console.clone(), visit.last_of_path());
    let reading = tokio::task::spawn_local(async move {
        let _turn = turn;
        let session = console.session_on(Rc::new(PageScreen::default()), console.dead.interrupt()).await?;
        let dead_letters = DeadLetters::find(session).await?;
        reading::find(&id, &dead_letters).await
    });
    let (dead_letter, read) =
        reading.await.map_err(|_| Failure::CouldNot("the dead-letter could not be read".into()))??;
    let problem = read.result("the dead-letter was found").err().map(|problem| problem.to_string());
    dead_letter_page(
        &visit,
        Some(ReadAgain { lines: dead_letter.lines(), text: wanted.text(&dead_letter), problem }),
    )
}
