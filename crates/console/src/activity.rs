//! The page that lists what operators have changed.

use askama::Template;
use axum::Router;
use axum::response::Response;
use comeback_operate::{Answer as _, CommandName, Layout};

use crate::console::Console;
use crate::page::{Frame, Problem, Visit, ok, page};

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/activity", page(activity))
}

#[derive(Template)]
#[template(path = "activity.html")]
struct Activity {
    frame: Frame,
    layout: Layout,
    command: String,
}

async fn activity(visit: Visit) -> Result<Response, Problem> {
    let read = visit.console.activity().await;
    ok(&Activity {
        layout: read.value?.layout(),
        frame: visit.frame("Activity", Some(read.at)),
        command: visit.console.command(CommandName::History, [""; 0]),
    })
}
