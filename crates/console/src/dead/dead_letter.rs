//! The page for one dead-letter: its facts from the snapshot or, on request, the whole dead-letter from the queue.

use std::rc::Rc;

use askama::Template;
use axum::response::Response;
use comeback_operate::dead::show::{DeadLetterDetails, pretty, show as dead_letter};
use comeback_operate::shown::{shown_json, shown_lines};
use comeback_operate::{Answer as _, CommandName, Fact, Table, Unwatched};

use crate::access::token;
use crate::dead::parts::{row, snapshot};
use crate::dead::state::{ReadAgain, scan_id};
use crate::page::{Fields, Frame, Problem, Visit, ok};
use crate::performer::turn;
use crate::response::go_to;
use crate::work::panicked;

/// Query parameter with the random name of a dead-letter that was read again from the queue.
const READ: &str = "read";

#[derive(Template)]
#[template(path = "dead_letter.html")]
struct DeadLetterPage {
    frame: Frame,
    path: String,
    id: String,
    scan: String,
    once: String,
    command: String,
    /// The facts from the snapshot or, once the dead-letter has been read again, from the queue.
    facts: Vec<Fact>,
    read: Option<Rc<ReadAgain>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShownPart {
    Details,
    Formatted,
    Verbatim,
    Edit,
}

impl ShownPart {
    fn of(fields: &Fields) -> Option<Self> {
        match fields.get("show")? {
            "details" => Some(Self::Details),
            "formatted" => Some(Self::Formatted),
            "verbatim" => Some(Self::Verbatim),
            "edit" => Some(Self::Edit),
            _ => None,
        }
    }

    fn text(self, dead_letter: &DeadLetterDetails) -> Option<(&'static str, String)> {
        let payload = dead_letter.payload.as_ref().map(|payload| payload.get());
        match (self, payload, &dead_letter.body) {
            (Self::Details, ..) | (Self::Edit, Some(_), _) => None,
            (Self::Formatted, Some(payload), _) => Some(("Payload, formatted", shown_json(&pretty(payload)))),
            (Self::Verbatim, Some(payload), _) => Some(("Payload, verbatim", shown_json(payload))),
            (_, None, body) => Some(("Body", shown_lines(body.as_deref().unwrap_or_default()).into_owned())),
        }
    }
}

/// Returns the payload as editable text, with control and bidirectional characters as JSON escapes. Returns `None` if
/// the dead-letter has no payload.
fn editable(dead_letter: &DeadLetterDetails) -> Option<String> {
    Some(shown_json(&pretty(dead_letter.payload.as_ref()?.get())))
}

pub(super) async fn show(visit: Visit) -> Result<Response, Problem> {
    let snapshot = snapshot(&visit.console)?;
    let id = visit.segment(3);
    let row = row(&snapshot, &id)?;
    let read = visit.query().get(READ).and_then(|read| visit.console.dead.read_again(read));
    let facts = match &read {
        Some(read) => read.facts.clone(),
        None => {
            let Table { columns, rows: mut cells } = snapshot.table(&[row], visit.console.now());
            let known = columns.iter().zip(cells.remove(0));
            known.map(|(column, cell)| Fact::new(column.head, vec![cell])).collect()
        }
    };
    ok(&DeadLetterPage {
        frame: visit.frame("Dead-letter", None).of(snapshot.at),
        path: visit.path().to_owned(),
        scan: scan_id(&snapshot),
        once: token(),
        command: visit.console.command(CommandName::DeadShow, [&*id]),
        id,
        facts,
        read,
    })
}

/// Reads the queue until the dead-letter is found, and redirects to the result. If the browser disconnects, the read
/// continues, so that it can make the dead-letters visible again.
pub(super) async fn read(visit: Visit, fields: Fields) -> Result<Response, Problem> {
    let wanted = ShownPart::of(&fields).ok_or_else(Problem::incomplete)?;
    let turn = turn(&visit.console, "")?;
    let (console, id) = (visit.console.clone(), visit.segment(3));
    let reading = tokio::task::spawn_local(async move {
        let _turn = turn;
        dead_letter(&console.operator(Rc::new(Unwatched), console.dead.interrupt.clone()).await?, &id).await
    });
    let dead_letter = reading.await.map_err(panicked)??;
    let problem = dead_letter.end().err().map(|problem| problem.text());
    let editable = editable(&dead_letter).filter(|_| wanted == ShownPart::Edit);
    let read = ReadAgain { facts: dead_letter.facts(), text: wanted.text(&dead_letter), editable, problem };
    Ok(go_to(&format!("{}?{READ}={}", visit.path(), visit.console.dead.has_read(read))))
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use comeback_operate::dead::Selection;
    use comeback_operate::dead::testing::event;

    use crate::tests::{Setting, locally, snapshot_of};

    use super::*;

    /// The URL of a dead-letter that was read again contains a random name, not the payload.
    #[tokio::test]
    async fn a_reread_is_shown_by_its_name_alone() {
        locally(async {
            let setting = Setting::new(false).await;
            let snapshot = snapshot_of([event("Timeout")]).await;
            let path = format!("/dead/each/{}", snapshot.rows(&Selection::All)[0].message_id);
            setting.console.dead.set_snapshot(Some(snapshot));
            let read = |text: &str| ReadAgain {
                facts: Vec::new(),
                text: Some(("Payload, formatted", text.to_owned())),
                editable: None,
                problem: None,
            };
            let old = setting.console.dead.has_read(read("the old payload"));
            let new = setting.console.dead.has_read(read("the new payload"));
            for (name, shown) in [(&*new, true), (&*old, false), ("", false)] {
                let (status, page) = setting.answer(setting.page(&format!("{path}?read={name}"))).await;
                assert_eq!(status, StatusCode::OK);
                assert_eq!(
                    (page.contains("the new payload"), page.contains("the old")),
                    (shown, false),
                    "{page}"
                );
            }
            setting.console.dead.set_snapshot(None);
            assert!(setting.console.dead.read_again(&new).is_none(), "the next scan ends it");
        })
        .await;
    }
}
