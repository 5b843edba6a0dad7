//! Performs what a form requests in the background, and lets only one action at a time read the dead-letter queue.

use std::rc::Rc;

use axum::http::StatusCode;
use axum::response::Response;
use comeback_operate::{Failure, Interrupt, Operator};

use crate::console::Console;
use crate::dead::state::Turn;
use crate::page::Problem;
use crate::response::go_to;
use crate::work::{PageScreen, WorkSummary, page_of};

/// Form field with the form's one-time id, so that a form submitted twice is performed only once.
pub(super) const ONCE: &str = "once";

/// Context of an action that runs in the background.
pub(super) struct Performer {
    pub(super) console: Console,
    pub(super) screen: Rc<PageScreen>,
    interrupt: Interrupt,
}

impl Performer {
    /// Returns an [`Operator`] that shows its progress on the action's page.
    pub(super) async fn operator(&self) -> Result<Operator, Failure> {
        self.console.operator(Rc::clone(&self.screen) as _, self.interrupt.clone()).await
    }
}

/// Reserves the dead-letter queue for the action at `path`. Fails if another action has reserved the queue.
pub(super) fn turn(console: &Console, path: &str) -> Result<Turn, Problem> {
    let why = "Another action is reading the dead-letters, and two would hide them from each other. The \
               Dead-letters page shows it.";
    console.dead.turn(path).ok_or_else(|| Problem::Refused(StatusCode::CONFLICT, why.into()))
}

/// Performs an action, and redirects to its progress page. A second submission of the form does not repeat the action.
pub(super) fn perform_in_background<F>(
    console: &Console,
    once: &str,
    summary: WorkSummary,
    action: impl FnOnce(Performer) -> F,
) -> Result<Response, Problem>
where
    F: Future<Output = Result<(), Failure>> + 'static,
{
    let path = page_of(once);
    if console.works.has(once) {
        return Ok(go_to(&path));
    }
    let turn = summary.reads_dead_letters.then(|| turn(console, &path)).transpose()?;
    let (performing, file) = (console.clone(), summary.file.clone());
    Ok(console.works.perform(once, summary, |screen, interrupt| {
        let action = action(Performer { console: performing.clone(), screen, interrupt });
        async move {
            let _turn = turn;
            let (result, dead) = (action.await, &performing.dead);
            let written = file.filter(|file| dead.folder().join(file).exists());
            written.iter().for_each(|file| dead.has_written(file));
            result
        }
    }))
}
