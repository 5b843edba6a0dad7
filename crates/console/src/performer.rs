//! Performs what a form requests in the background, and lets only one action at a time read the dead-letter queue.

use std::rc::Rc;

use axum::http::StatusCode;
use axum::response::Response;
use comeback_operate::{Failure, Interrupt, Operator};

use crate::console::Console;
use crate::dead::state::Turn;
use crate::page::Problem;
use crate::work::{PageScreen, WorkSummary, page_of};

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
    console.dead.turn(path).ok_or_else(busy)
}

/// The refusal while another action reads the dead-letter queue.
pub(super) fn busy() -> Problem {
    let why = "Another action is reading the dead-letters, and two would hide them from each other. The \
               Dead-letters page shows it.";
    Problem::Refused(StatusCode::CONFLICT, why.into())
}

/// Performs an action, and redirects to its progress page.
pub(super) fn perform_in_background<F>(
    console: &Console,
    once: &str,
    mut summary: WorkSummary,
    action: impl FnOnce(Performer) -> F,
) -> Result<Response, Problem>
where
    F: Future<Output = Result<(), Failure>> + 'static,
{
    let turn = summary.reads_dead_letters.then(|| turn(console, &page_of(once))).transpose()?;
    // An action writes no file that exists already, so such a file is another action's.
    summary.file.take_if(|file| console.dead.folder().join(file).exists());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Setting, locally};

    #[tokio::test]
    async fn file_belongs_to_the_action_that_wrote_it() {
        locally(async {
            let console = Setting::new(false).await.console;
            let summary = WorkSummary::new("Discard", "/", "/");
            let older = WorkSummary { file: Some("Cargo.toml".into()), ..summary };
            perform_in_background(&console, "1", older, async |_| Ok(())).ok().unwrap();
            console.works.settled().await;
            let work = console.works.get("1").unwrap();
            assert_eq!((console.dead.files(), &work.summary.file), (vec![], &None));
            console.dead.has_written("a.jsonl");
            console.dead.has_written("a.jsonl");
            assert_eq!(console.dead.files(), ["a.jsonl"]);
        })
        .await;
    }
}
