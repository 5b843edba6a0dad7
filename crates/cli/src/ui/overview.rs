//! The first page: what `comeback status` answers.

use askama::Template;
use axum::Router;
use axum::response::Response;

use crate::figure::Chart;
use crate::operate::history::History;
use crate::ui::console::Console;
use crate::ui::page::{Frame, Problem, Visit, ok, page};

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/", page(overview))
}

#[derive(Template)]
#[template(path = "ui/overview.html")]
struct Overview {
    frame: Frame,
    /// The lines of `comeback status`: title and text.
    lines: Vec<(&'static str, String)>,
    /// The history of `comeback status`; empty if CloudWatch has no data.
    charts: Vec<Chart>,
}

async fn overview(visit: Visit) -> Result<Response, Problem> {
    let read = visit.console.status().await;
    let status = read.value?;
    let lines = status.lines(&visit.console.common.place_flags());
    let lines =
        lines.into_iter().map(|(title, line)| (title, anstream::adapter::strip_str(&line).to_string()));
    let charts = status.history.as_ref().map(History::charts).unwrap_or_default();
    ok(&Overview { frame: visit.frame("Overview", Some(read.at)), lines: lines.collect(), charts })
}
