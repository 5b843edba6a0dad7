//! The page for redriving one dead-letter with a different payload.
//!
//! The payload may be a megabyte long, so it is sent in forms, never in a URL.

use askama::Template;
use axum::response::Response;
use comeback_operate::dead::rules::NewPayload;
use comeback_operate::dead::{Chosen, Redrive, Selection};
use comeback_operate::shown::shown_json;
use comeback_operate::{CommandName, Failure};

use crate::access::token;
use crate::change::{Asked, Offer};
use crate::console::Console;
use crate::dead::parts::{path, perform_in_turn, snapshot};
use crate::page::{Fields, Frame, Problem, Visit, ok};
use crate::work::WorkSummary;

/// Maximum size of the form, in bytes. It is enough for an indented, percent-encoded payload of a megabyte.
pub(super) const LARGEST_EDIT: usize = 16 << 20;

#[derive(Template)]
#[template(path = "dead_edit.html")]
struct EditPage {
    frame: Frame,
    scan: String,
    id: String,
    path: String,
    typed: String,
    plan: Result<Plan, String>,
    /// One-time id of the form for exporting the dead-letter.
    export: String,
}

struct Plan {
    offer: Offer,
    payload: NewPayload,
    once: String,
    command: Option<String>,
}

fn asked(console: &Console, scan: &str, id: &str, payload: NewPayload) -> Result<Box<dyn Asked>, Failure> {
    let chosen = Chosen::Selected(console.dead.snapshot_of(Some(scan))?, Selection::one(id));
    Ok(Box::new(Redrive { payload: Some(payload), ..Redrive::new(chosen) }))
}

/// Shows the plan for a redrive with the form's payload, or performs the redrive if the form has the plan's digest.
pub(super) async fn edit(visit: Visit, form: Fields) -> Result<Response, Problem> {
    let [scan, id] = form.required(["scan", "dead_letter"])?.map(ToOwned::to_owned);
    // The page shows control and bidirectional characters as JSON escapes, which have the same meaning. The payload
    // gets the same escapes, so that the operator agrees to exactly the text on the page.
    let typed = shown_json(form.get("payload").unwrap_or_default());
    let payload = NewPayload::read(&typed);
    if let (Some(digest), Some(once), Ok(payload)) = (form.get("digest"), form.get("once"), &payload) {
        let (agreed, payload) = (digest.to_owned(), payload.clone());
        let summary = WorkSummary { agreed, ..WorkSummary::new("Edit and redrive", "/dead", "/dead") };
        return perform_in_turn(&visit.console, once, summary, |performer| async move {
            performer.change(asked(&performer.console, &scan, &id, payload)?).await
        });
    }
    let snapshot = snapshot(&visit.console)?;
    let selection = Selection::one(&id);
    let rows = snapshot.rows(&selection);
    let row = rows.first().ok_or(Problem::Missing)?;
    let plan = match payload {
        Ok(payload) => {
            let asked = asked(&visit.console, &scan, &id, payload.clone());
            let command = row.key.as_ref().map(|key| {
                let words = [format!("--key={key}"), "--payload-file=payload.json".into()];
                visit.console.command(CommandName::Redrive, words)
            });
            Ok(Plan { offer: Offer::of(asked, &visit.console).await, payload, once: token(), command })
        }
        Err(problem) => Err(problem),
    };
    ok(&EditPage {
        frame: visit.frame("Edit and redrive", None).of(snapshot.at),
        path: path(row),
        scan,
        id,
        typed,
        plan,
        export: token(),
    })
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use comeback_operate::dead::testing::{Dead, event};
    use comeback_operate::dead::{Filter, scan};

    use super::*;
    use crate::response::encoded;
    use crate::tests::{Setting, address, hidden, locally};

    /// Creates an account with two dead-letters. Returns the account, its console, and the form fields and the key of
    /// the first dead-letter.
    async fn setting(read_only: bool) -> (Dead, Setting, String, String) {
        let dead_letters = [event("Timeout"), event("Timeout")];
        let key = dead_letters[0].key.clone();
        let dead = Dead::with(dead_letters);
        let snapshot = scan(&dead.operator(), Filter::default()).await.unwrap();
        let id = snapshot.dead_letter_of(&key).unwrap().message_id.to_string();
        let console = Console::new(address(), read_only, None);
        console.reach(dead.aws.account());
        let fields = format!("scan={}&dead_letter={id}", crate::dead::state::scan_id(&snapshot));
        console.dead.set_snapshot(Some(snapshot));
        (dead, Setting::of(console).await, fields, key)
    }

    #[tokio::test]
    async fn a_payload_is_checked_and_sent_in_two_steps() {
        locally(async {
            let (dead, here, fields, key) = setting(false).await;
            let form = |more: &str| here.form_of("/dead/edit", &format!("{fields}&{more}"));
            let wrong = encoded("{\r\n  \"n\": 01\r\n}");
            let (status, page) = here.answer(form(&format!("payload={wrong}"))).await;
            assert_eq!(status, StatusCode::OK);
            assert!(page.contains("not JSON: invalid number at line 2 column 9"), "{page}");
            assert!(page.contains("&#34;n&#34;: 01") && !page.contains("name=\"digest\""), "{page}");
            let right = encoded("{\r\n  \"n\": 1E400\r\n}");
            let (_, page) = here.answer(form(&format!("payload={right}"))).await;
            for shown in [
                "Send 1 dead-letter with the new payload to retries?",
                "name=\"payload\" value=\"{&#34;n&#34;:1E400}\"",
                "action=\"/dead/export\"",
            ] {
                assert!(page.contains(shown), "{shown}: {page}");
            }
            assert_eq!(dead.retried().len(), 0, "a plan sends nothing");
            let digest = hidden(&page, "digest");
            let agreed = |once: &str, payload: &str| {
                form(&format!("digest={digest}&once={once}&payload={}", encoded(payload)))
            };
            for (once, payload, sent) in [("a1", "{\"n\":2}", 0), ("a2", "{\"n\":1E400}", 1)] {
                assert_eq!(here.answer(agreed(once, payload)).await.0, StatusCode::SEE_OTHER);
                here.console.works.settled().await;
                assert_eq!(dead.retried().len(), sent, "{payload}");
            }
            let body = &dead.retried()[0].message.body;
            assert!(body.contains("\"payload\":{\"n\":1E400}") && body.contains(&key), "{body}");
            assert_eq!(dead.depth().total(), 1);
        })
        .await;
    }

    #[tokio::test]
    async fn a_read_only_console_edits_nothing() {
        locally(async {
            let (_, here, fields, _) = setting(true).await;
            let form = here.form_of("/dead/edit", &format!("{fields}&payload=1"));
            assert_eq!(here.answer(form).await.0, StatusCode::FORBIDDEN);
        })
        .await;
    }
}
