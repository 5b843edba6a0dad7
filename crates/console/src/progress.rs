//! The page about a change, with its progress, its result, and a Stop button.

use std::rc::Rc;

use askama::Template;
use axum::response::Response;

use crate::page::{Fields, Frame, Problem, Visit, ok};
use crate::response::go_to;
use crate::work::{Work, page_of};

#[derive(Template)]
#[template(path = "work.html")]
struct WorkPage {
    frame: Frame,
    work: Rc<Work>,
    stop: String,
    /// Name of the downloadable file that the change wrote; `None` if it wrote no file.
    file: Option<String>,
}

pub(super) async fn show(visit: Visit) -> Result<Response, Problem> {
    let work = found(&visit)?;
    work.see();
    let is_written = |file: &String| visit.console.dead.files().contains(file);
    ok(&WorkPage {
        frame: visit.frame(&work.summary.title, None),
        stop: format!("{}/stop", visit.path()),
        file: work.summary.file.clone().filter(is_written),
        work,
    })
}

pub(super) async fn stop(visit: Visit, _: Fields) -> Result<Response, Problem> {
    found(&visit)?.interrupt.raise();
    Ok(go_to(&page_of(&visit.segment(2))))
}

fn found(visit: &Visit) -> Result<Rc<Work>, Problem> {
    visit.console.works.get(&visit.segment(2)).ok_or(Problem::Missing)
}

#[cfg(test)]
mod tests {
    use comeback_operate::Failure;

    use crate::tests::{Setting, locally};
    use crate::work::WorkSummary;

    fn summary() -> WorkSummary {
        WorkSummary {
            file: Some("exported-2.jsonl".into()),
            ..WorkSummary::new("Export all", "/dead", "/dead")
        }
    }

    #[tokio::test]
    async fn stopped_change_shows_how_far_it_came() {
        locally(async {
            let setting = Setting::new(false).await;
            setting.console.works.perform("1", summary(), |_, interrupt| async move {
                interrupt.raised().await;
                Err(Failure::interrupted("redrove 3 of 9"))
            });
            let page = async || setting.answer(setting.page("/progress/1")).await.1;
            let going = page().await;
            assert!(going.contains("In progress.") && going.contains("<button>Stop</button>"), "{going}");
            setting.answer(setting.form_of("/progress/1/stop", "")).await;
            let stopping = page().await;
            assert!(stopping.contains("Stopping once") && !stopping.contains("<button>Stop"), "{stopping}");
            setting.console.works.settled().await;
            let stopped = page().await;
            assert!(stopped.contains("<p class=\"notice bad\">interrupted: redrove 3 of 9"), "{stopped}");
            assert!(stopped.contains("<a href=\"/dead\">Back</a>") && !stopped.contains("Stop"), "{stopped}");
        })
        .await;
    }

    #[tokio::test]
    async fn an_export_leads_to_its_own_file_once_that_is_written() {
        locally(async {
            let setting = Setting::new(false).await;
            setting.console.works.perform("1", summary(), |_, _| async { Ok(()) });
            setting.console.works.settled().await;
            let page = async || setting.answer(setting.page("/progress/1")).await.1;
            setting.console.dead.has_written("exported-1.jsonl");
            let without = page().await;
            assert!(!without.contains("/dead/file"), "{without}");
            setting.console.dead.has_written("exported-2.jsonl");
            let with = page().await;
            assert!(with.contains("<form method=\"post\" action=\"/dead/file\">"), "{with}");
            assert!(with.contains("name=\"name\" value=\"exported-2.jsonl\""), "{with}");
            assert!(!with.contains("exported-1.jsonl"), "{with}");
        })
        .await;
    }

    #[tokio::test]
    async fn other_pages_say_what_is_under_way_and_what_was_done() {
        locally(async {
            let setting = Setting::new(false).await;
            let (finish, finished) = tokio::sync::oneshot::channel::<()>();
            setting.console.works.perform("1", summary(), |_, _| async move {
                finished.await.ok();
                Ok(())
            });
            let toast = async || {
                let (_, page) = setting.answer(setting.page("/lab?tab=0123456789abcdef&events=10")).await;
                let (_, toasts) = page.split_once("class=\"toasts\"").expect("the toasts");
                toasts.split("</div>").next().unwrap_or_default().to_owned()
            };
            assert!(toast().await.contains("Export all</a>: in progress"));
            finish.send(()).unwrap();
            setting.console.works.settled().await;
            assert!(toast().await.contains("notice good\"><a href=\"/progress/1\">Export all</a>: done"));
            let (_, own) = setting.answer(setting.page("/progress/1")).await;
            assert!(!own.contains("</a>: done"), "its own page says it anyway: {own}");
            assert!(!toast().await.contains("Export all"), "the operator has seen it");
        })
        .await;
    }
}
