//! Performs changes in the background, so that they continue after their pages are closed.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use axum::response::Response;
use comeback_operate::numbers::grouped;
use comeback_operate::{Failure, Follow, Interrupt, Layout, Progress, Text};
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;
use tokio::task::JoinError;
use tokio::time::Instant;

use crate::response::{encoded, go_to};

/// Form field with the form's one-time id, so that a form sent twice is performed only once.
pub(super) const ONCE: &str = "once";
/// Maximum number of finished changes that still have a page.
const KEPT: usize = 20;
/// Time during which every page shows a notification about a successful change.
const TOAST_FOR: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlanQuestion {
    pub(super) text: String,
    /// Digest of the question's text and of its plan. An operator who submits a form with this digest agrees to that
    /// plan.
    pub(super) digest: String,
}

impl PlanQuestion {
    /// Creates a question about the plan that `identity` identifies.
    pub(super) fn about(text: &str, identity: &str) -> Self {
        let mut digest = Sha256::new();
        for part in [text, identity] {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
        let digest = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let mut text = text.to_owned();
        text.get_mut(..1).into_iter().for_each(str::make_ascii_uppercase);
        Self { text, digest }
    }
}

/// Output and progress of a change, and the operator's consent to it.
#[derive(Debug, Default)]
pub(super) struct PageScreen {
    layout: RefCell<Layout>,
    progress: Cell<Option<Progress>>,
    /// Digest of the question to which the operator has answered yes. An answer counts only once: after it
    /// has been used, the digest is `None`.
    agreed: RefCell<Option<String>>,
    /// True if the operator has not confirmed the current plan, so nothing was changed.
    is_plan_new: Cell<bool>,
}

impl PageScreen {
    pub(super) fn agreeing(digest: &str) -> Self {
        Self { agreed: RefCell::new(Some(digest.to_owned())), ..Self::default() }
    }

    pub(super) fn show(&self, layout: Layout) {
        self.layout.borrow_mut().and(layout);
    }

    /// Fails unless the operator has answered yes to `question` about this plan; each yes counts only once.
    pub(super) fn agree(&self, question: &str, identity: &str) -> Result<(), Failure> {
        let digest = PlanQuestion::about(question, identity).digest;
        self.is_plan_new.set(self.agreed.take() != Some(digest));
        if self.is_plan_new.get() { Err(Failure::not_confirmed("nothing was changed")) } else { Ok(()) }
    }

    pub(super) fn layout(&self) -> Layout {
        self.layout.borrow().clone()
    }

    pub(super) fn is_plan_new(&self) -> bool {
        self.is_plan_new.get()
    }

    /// Returns the progress of the current step, such as `7/2,000 dead-letters`, or `None` when no step is in progress.
    pub(super) fn progress(&self) -> Option<String> {
        let Progress { done, of, unit } = self.progress.get().filter(|it| it.of != Some(it.done))?;
        let of = of.map(|of| format!("/{}", grouped(of))).unwrap_or_default();
        Some(format!("{}{of} {unit}", grouped(done)))
    }
}

impl Follow for PageScreen {
    fn progress(&self, progress: Progress) {
        self.progress.set(Some(progress));
    }

    fn remark(&self, text: &Text) {
        self.layout.borrow_mut().note(text);
    }
}

/// A change that is in progress or has finished.
pub(super) struct Work {
    pub(super) screen: Rc<PageScreen>,
    pub(super) summary: WorkSummary,
    /// The interrupt that stops the change, as Ctrl-C does in a terminal.
    pub(super) interrupt: Interrupt,
    /// Result of the change, and the moment when it ended; empty until then.
    ended: OnceCell<(Result<(), Failure>, Instant)>,
    /// True if the change's page was shown after the change had ended.
    is_seen: Cell<bool>,
}

/// A one-line notification about a change, shown at the edge of every page except the change's own.
#[derive(Clone, Debug)]
pub(super) struct Toast {
    pub(super) path: String,
    pub(super) title: String,
    pub(super) state: String,
    pub(super) tone: &'static str,
}

impl Work {
    /// Returns the result of the change, or `None` while the change is in progress.
    pub(super) fn result(&self) -> Option<&Result<(), Failure>> {
        self.ended.get().map(|(result, _)| result)
    }

    fn has_ended(&self) -> bool {
        self.result().is_some()
    }

    pub(super) fn see(&self) {
        self.is_seen.set(self.has_ended());
    }

    /// Returns the change's notification; `None` if its result was seen, or if it succeeded over [`TOAST_FOR`] ago.
    fn toast(&self, path: String) -> Option<Toast> {
        let (state, tone) = match self.ended.get() {
            _ if self.is_seen.get() => return None,
            Some((Ok(()), at)) if at.elapsed() > TOAST_FOR => return None,
            Some((Ok(()), _)) => ("done".to_owned(), "good"),
            // The notification about a failure stays until the operator has seen the result.
            Some((Err(_), _)) => ("failed".to_owned(), "bad"),
            None => (self.screen.progress().unwrap_or_else(|| "in progress".into()), ""),
        };
        Some(Toast { path, title: self.summary.title.clone(), state, tone })
    }
}

/// Returns the failure to show after a task has panicked.
pub(super) fn panicked(_: JoinError) -> Failure {
    Failure::could_not("this is a bug in `comeback`; see the terminal where it runs")
}

/// The text on a page that shows a change in progress.
pub(super) struct WorkSummary {
    pub(super) title: String,
    /// The command line that makes the same change; empty if no command does.
    pub(super) command: String,
    pub(super) plan: String,
    /// Path that the page links to once the change has ended; the link's text is `next` if the change succeeded.
    pub(super) back: &'static str,
    pub(super) next: &'static str,
    /// Name of the file that the change writes and offers for download, if any.
    pub(super) file: Option<String>,
    /// True if the work reads the dead-letter queue, which only one work at a time may do.
    pub(super) reads_dead_letters: bool,
    /// Digest of the question to which the operator has answered yes; empty for a change without a question.
    pub(super) agreed: String,
}

impl WorkSummary {
    pub(super) fn new(title: impl Into<String>, plan: impl Into<String>, back: &'static str) -> Self {
        Self {
            title: title.into(),
            command: String::new(),
            plan: plan.into(),
            back,
            next: "Back",
            file: None,
            reads_dead_letters: false,
            agreed: String::new(),
        }
    }
}

/// Returns the path of a change's page; `id` comes from a form and may be any text.
pub(super) fn page_of(id: &str) -> String {
    format!("/progress/{}", encoded(id))
}

/// The changes that this server is making or has made, each with the one-time id of its form; the latest is last.
#[derive(Default)]
pub(super) struct Works {
    by_id: RefCell<Vec<(String, Rc<Work>)>>,
    /// Ids of the changes that were dropped from `by_id`. The form of such a change cannot be sent again.
    forgotten: RefCell<BTreeSet<String>>,
    ended: Rc<Notify>,
}

impl Works {
    /// Performs the change that the form with this `id` requests, and redirects to its page.
    pub(super) fn perform<F>(
        &self,
        id: &str,
        summary: WorkSummary,
        command: impl FnOnce(Rc<PageScreen>, Interrupt) -> F,
    ) -> Response
    where
        F: Future<Output = Result<(), Failure>> + 'static,
    {
        self.forget_the_oldest();
        let interrupt = Interrupt::default();
        let screen = Rc::new(PageScreen::agreeing(&summary.agreed));
        let performing = tokio::task::spawn_local(command(Rc::clone(&screen), interrupt.clone()));
        let (ended, is_seen) = (OnceCell::new(), Cell::new(false));
        let work = Rc::new(Work { screen, summary, interrupt, ended, is_seen });
        self.by_id.borrow_mut().push((id.to_owned(), Rc::clone(&work)));
        let ended = Rc::clone(&self.ended);
        tokio::task::spawn_local(async move {
            let result = performing.await.unwrap_or_else(|panic| Err(panicked(panic)));
            work.ended.get_or_init(|| (result, Instant::now()));
            ended.notify_one();
        });
        go_to(&page_of(id))
    }

    pub(super) fn toasts(&self, shown: &str) -> Vec<Toast> {
        let works = self.by_id.borrow();
        let others = works.iter().map(|(id, work)| (page_of(id), work));
        others.filter(|(path, _)| path != shown).filter_map(|(path, work)| work.toast(path)).collect()
    }

    /// Drops the oldest finished changes to save memory, because their output may be long.
    fn forget_the_oldest(&self) {
        let mut works = self.by_id.borrow_mut();
        while works.iter().filter(|(_, work)| work.has_ended()).count() >= KEPT
            && let Some(oldest) = works.iter().position(|(_, work)| work.has_ended())
        {
            self.forgotten.borrow_mut().insert(works.remove(oldest).0);
        }
    }

    #[cfg(test)]
    pub(super) async fn settled(&self) {
        while self.by_id.borrow().iter().any(|(_, work)| !work.has_ended()) {
            self.ended.notified().await;
        }
    }

    /// Stops all changes in progress, and waits until they have ended. A change ends once the messages that it hid and
    /// did not process are visible again.
    pub(super) async fn stop_all(&self) {
        loop {
            let open = |works: &[(String, Rc<Work>)]| {
                works
                    .iter()
                    .filter(|(_, work)| !work.has_ended())
                    .inspect(|(_, work)| work.interrupt.raise())
                    .count()
            };
            if open(&self.by_id.borrow()) == 0 {
                return;
            }
            self.ended.notified().await;
        }
    }

    /// Returns true if the form with this `id` was already submitted.
    pub(super) fn has(&self, id: &str) -> bool {
        self.get(id).is_some() || self.forgotten.borrow().contains(id)
    }

    pub(super) fn get(&self, id: &str) -> Option<Rc<Work>> {
        self.by_id.borrow().iter().find(|(known, _)| known == id).map(|(_, work)| Rc::clone(work))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn summary(agreed: &str) -> WorkSummary {
        WorkSummary {
            agreed: agreed.into(),
            ..WorkSummary::new("Discard", "/dead/discard?plan=yes", "/dead")
        }
    }

    /// Asks the operator to agree to the plan, and then adds one to `done`.
    async fn change(screen: Rc<PageScreen>, plan: &str, done: Rc<Cell<u32>>) -> Result<(), Failure> {
        screen.agree("delete them?", plan)?;
        done.set(done.get() + 1);
        Ok(())
    }

    fn shown(plan: &str) -> String {
        PlanQuestion::about("delete them?", plan).digest
    }

    async fn locally<T>(test: impl Future<Output = T>) -> T {
        tokio::task::LocalSet::new().run_until(test).await
    }

    #[tokio::test]
    async fn forgotten_change_is_not_performed_again() {
        locally(async {
            let works = Works::default();
            works.perform("going", summary(""), |_, interrupt| async move {
                interrupt.raised().await;
                Ok(())
            });
            for id in 0..KEPT + 1 {
                works.perform(&id.to_string(), summary(""), |_, _| async { Ok(()) });
                works.ended.notified().await;
            }
            assert!(works.get("0").is_none() && works.get("1").is_some() && works.get("going").is_some());
            assert!(works.has("0") && !works.has("another"));
            works.stop_all().await;
        })
        .await;
    }

    #[tokio::test]
    async fn any_text_is_an_id() {
        locally(async {
            let works = Works::default();
            let response =
                works.perform("a/b\r\nc", summary(""), |screen, _| change(screen, "[]", Rc::default()));
            assert_eq!(response.headers()["location"], "/progress/a%2Fb%0D%0Ac");
            assert!(works.get("a/b\r\nc").is_some());
        })
        .await;
    }

    #[tokio::test]
    async fn a_plan_that_has_changed_is_not_performed() {
        locally(async {
            for (was, is) in [("[1,2]", "[1]"), ("[1]", ""), ("", "[]")] {
                let (works, done) = (Works::default(), Rc::new(Cell::new(0)));
                let digest = shown(was);
                let performing = Rc::clone(&done);
                works.perform("id", summary(&digest), |screen, _| change(screen, is, performing));
                works.settled().await;
                assert_eq!(done.get(), 0);
                assert!(works.get("id").unwrap().screen.is_plan_new(), "the page links to the new plan");
            }
        })
        .await;
    }

    #[tokio::test]
    async fn one_yes_answers_one_question() {
        let screen = Rc::new(PageScreen::agreeing(&shown("[1]")));
        let done = Rc::new(Cell::new(0));
        assert!(change(Rc::clone(&screen), "[1]", Rc::clone(&done)).await.is_ok());
        assert!(screen.agree("delete them?", "[1]").is_err());
    }

    #[tokio::test]
    async fn stopped_server_waits_for_its_changes() {
        locally(async {
            let (works, given_back) = (Works::default(), Rc::new(Cell::new(false)));
            let gives_back = Rc::clone(&given_back);
            works.perform("id", summary(""), |_, interrupt| async move {
                interrupt.raised().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                gives_back.set(true);
                Ok(())
            });
            works.stop_all().await;
            assert!(given_back.get());
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn panic_ends_its_change() {
        locally(async {
            let works = Works::default();
            works.perform("id", summary(""), |_, _| async { panic!("a bug") });
            let stopped = tokio::time::timeout(Duration::from_secs(1), works.stop_all()).await;
            assert!(stopped.is_ok(), "Ctrl-C waits for it");
            let work = works.get("id").unwrap();
            let failure = work.result().unwrap().as_ref().unwrap_err().to_string();
            assert_eq!(failure, "this is a bug in `comeback`; see the terminal where it runs");
        })
        .await;
    }

    #[test]
    fn progress_is_that_of_the_current_step() {
        let screen = PageScreen::default();
        let follow = |done, of, unit| Follow::progress(&screen, Progress { done, of, unit });
        assert_eq!(screen.progress(), None);
        follow(1_500, None, "dead-letters read");
        assert_eq!(screen.progress().as_deref(), Some("1,500 dead-letters read"));
        follow(7, Some(2_000), "dead-letters");
        assert_eq!(screen.progress().as_deref(), Some("7/2,000 dead-letters"));
        follow(2_000, Some(2_000), "dead-letters");
        assert_eq!(screen.progress(), None);
    }
}
