//! Handles the buttons in the demonstration's bar, which set the clock's pace and make a function fail or recover.

use axum::response::Response;

use crate::page::{Fields, Problem, Visit};
use crate::response::go_to;

pub(super) async fn press(visit: Visit, fields: Fields) -> Result<Response, Problem> {
    let demo = visit.console.demo.as_ref().ok_or(Problem::Missing)?;
    let field = |name| fields.get(name).unwrap_or_default();
    let (button, function) = field("button").split_once(' ').unwrap_or((field("button"), ""));
    if !demo.press(button, function) {
        return Err(Problem::bad_request("The demonstration has no such button."));
    }
    visit.console.has_changed();
    // Browsers read `\` as `/`, and skip tabs and line breaks.
    let is_elsewhere = |back: &str| back.starts_with("//") || back.starts_with("/\\");
    let is_page = |back: &&str| {
        back.starts_with('/') && !is_elsewhere(back) && back.bytes().all(|byte| byte.is_ascii_graphic())
    };
    Ok(go_to(Some(field("back")).filter(is_page).unwrap_or("/")))
}
