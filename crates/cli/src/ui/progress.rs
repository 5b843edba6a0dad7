//! The page of a performance: how far it is, its end, and a button that stops it.

use std::rc::Rc;

use askama::Template;
use axum::Router;
use axum::response::Response;

use crate::ui::console::Console;
use crate::ui::page::{Fields, Frame, Problem, Visit, form_that_reads, ok, page};
use crate::ui::response::go_to;
use crate::ui::work::Work;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/progress/{id}", page(show)).route("/progress/{id}/stop", form_that_reads(stop))
}

#[derive(Template)]
#[template(path = "ui/work.html")]
struct WorkPage {
    frame: Frame,
    stop: String,
    command: String,
    text: String,
    notes: Vec<String>,
    progress: Vec<String>,
    is_stopping: bool,
    /// `None` while it is under way.
    result: Option<Result<(), String>>,
    /// The plan has changed since it was shown, so nothing was done.
    changed: Option<String>,
    back: &'static str,
    next: &'static str,
}

async fn show(visit: Visit) -> Result<Response, Problem> {
    let id = visit.last_of_path();
    let work = found(&visit, &id)?;
    let result = work.result();
    ok(&WorkPage {
        frame: visit.frame(&work.title, None),
        stop: format!("/progress/{id}/stop"),
        command: work.command.clone(),
        text: work.screen.text(),
        notes: work.screen.notes(),
        progress: work.screen.progress(),
        is_stopping: work.is_stopping(),
        result: result.as_ref().map(|result| result.as_ref().map_err(ToString::to_string).copied()),
        changed: work.screen.open_question().filter(|_| result.is_some()).map(|_| work.plan.clone()),
        back: work.back,
        next: if matches!(*result, Some(Ok(()))) { work.next } else { "Back" },
    })
}

async fn stop(visit: Visit, _: Fields) -> Result<Response, Problem> {
    let path = visit.path().trim_end_matches("/stop").to_owned();
    let id = path.rsplit('/').next().unwrap_or_default();
    let work = found(&visit, id)?;
    work.stop();
    Ok(go_to(&path))
}

fn found(visit: &Visit, id: &str) -> Result<Rc<Work>, Problem> {
    visit.console.works.get(id).ok_or(Problem::Missing)
}
