//! The page that lists what operators have changed.

use askama::Template;
use axum::response::Response;
use comeback_operate::{Answer as _, CommandName, Layout};

use crate::page::{Frame, Problem, Visit, ok};

#[derive(Template)]
#[template(path = "activity.html")]
struct Activity {
    frame: Frame,
    layout: Layout,
    command: String,
}

pub(super) async fn activity(visit: Visit) -> Result<Response, Problem> {
    let read = visit.console.activity().await;
    ok(&Activity {
        layout: read.value?.layout(),
        frame: visit.frame("Activity", Some(read.at)),
        command: visit.console.command(CommandName::History, [""; 0]),
    })
}
