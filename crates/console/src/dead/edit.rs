//! The form for redriving one dead-letter with a different payload.

use comeback_operate::dead::rules::NewPayload;
use comeback_operate::dead::{Chosen, Redrive, Selection};
use comeback_operate::shown::shown_json;
use comeback_operate::{CommandName, Failure};

use crate::change::{Asked, ChangeForm, Input, RequestedChange};
use crate::console::Console;
use crate::dead::parts::{path, row, snapshot};
use crate::page::{Fields, Problem, Visit};

/// Maximum size of the form, in bytes. It is enough for an indented payload of a megabyte, percent-encoded twice.
pub(super) const LARGEST_EDIT: usize = 32 << 20;

pub(super) static EDIT: ChangeForm = ChangeForm {
    path: "/dead/edit",
    title: "Edit and redrive",
    about: "Send this dead-letter's event back to the retry queue with another payload. It starts over with the same \
            key. The dead-letter is deleted once SQS has accepted the copy: export it first to keep it.",
    command: CommandName::Redrive,
    inputs: &[PAYLOAD],
    read: requested,
    back: "/dead",
    reads_dead_letters: true,
};

pub(super) const PAYLOAD: Input = Input {
    is_long: true,
    ..Input::new("payload", "Payload", "JSON. Numbers are sent as they are written.")
};

fn requested(form: &'static ChangeForm, visit: &Visit, fields: Fields) -> Result<RequestedChange, Problem> {
    let [scan, id] = fields.required(["scan", "dead_letter"])?;
    let (console, snapshot) = (&visit.console, snapshot(&visit.console)?);
    let row = row(&snapshot, id)?;
    // The page shows control and bidirectional characters as JSON escapes, which have the same meaning. The payload
    // gets the same escapes, so that the operator agrees to exactly the text on the page.
    let typed = shown_json(fields.get(PAYLOAD.name).unwrap_or_default());
    let command = row.key.as_ref().map(|key| {
        let words = [format!("--key={key}"), "--payload-file=payload.json".into()];
        console.command(form.command, words)
    });
    Ok(RequestedChange {
        change: Some(asked(console, scan, Selection::one(id), &typed)),
        command: command.unwrap_or_default(),
        difference: Some("The same in a terminal, with the payload in a file:"),
        scanned_at: Some(snapshot.at),
        edited: Some(path(row)),
        fields: fields.with(PAYLOAD.name, &typed),
        ..RequestedChange::default()
    })
}

fn asked(
    console: &Console,
    scan: &str,
    selection: Selection,
    typed: &str,
) -> Result<Box<dyn Asked>, Failure> {
    let payload = Some(NewPayload::read(typed).map_err(Failure::refused)?);
    let chosen = Chosen::Selected(console.dead.snapshot_of(Some(scan))?, selection);
    Ok(Box::new(Redrive { payload, ..Redrive::new(chosen) }))
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use crate::response::encoded;
    use crate::tests::{hidden, locally, scanned};

    #[tokio::test]
    async fn a_payload_is_checked_and_sent_in_two_steps() {
        locally(async {
            let (dead, here, fields, key) = scanned(false).await;
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
                "{\n  &#34;n&#34;: 1E400\n}</textarea>",
                "action=\"/dead/export\"",
            ] {
                assert!(page.contains(shown), "{shown}: {page}");
            }
            assert_eq!(dead.retried().len(), 0, "a plan sends nothing");
            let digest = hidden(&page, "digest");
            let agreed = |once: &str, payload: &str| {
                let planned = format!("{fields}&payload={}", encoded(payload));
                form(&format!("digest={digest}&once={once}&fields={}", encoded(&planned)))
            };
            for (once, payload, sent) in [("a1", "{\"n\":2}", 0), ("a2", "{\"n\":1E400}", 1)] {
                assert_eq!(here.answer(agreed(once, payload)).await.0, StatusCode::SEE_OTHER);
                here.console.works.settled().await;
                assert_eq!(dead.retried().len(), sent, "{payload}");
            }
            let body = &dead.retried()[0].message.body;
            assert!(body.contains("\"payload\":{\"n\":1E400}") && body.contains(&key), "{body}");
            assert_eq!(dead.depth().total(), 1);
            let (status, page) = here.answer(agreed("a3", "1")).await;
            assert_eq!(status, StatusCode::NOT_FOUND);
            assert!(page.contains("or it was redriven or discarded since"), "{page}");
        })
        .await;
    }

    #[tokio::test]
    async fn a_read_only_console_edits_nothing() {
        locally(async {
            let (_, here, fields, _) = scanned(true).await;
            let form = here.form_of("/dead/edit", &format!("{fields}&payload=1"));
            assert_eq!(here.answer(form).await.0, StatusCode::FORBIDDEN);
        })
        .await;
    }
}
