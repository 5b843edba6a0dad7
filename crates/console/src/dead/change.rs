//! Forms for redriving and discarding dead-letters. Plans use the snapshot; only the change itself reads the queue.

use comeback_operate::dead::groups::Alike;
use comeback_operate::dead::pace::Pace;
use comeback_operate::dead::{Chosen, Discard, Redrive, Selection, Snapshot};
use comeback_operate::shown::shown;
use comeback_operate::{Command, CommandName, Failure};

use crate::change::{Asked, ChangeForm, Input, RequestedChange};
use crate::console::Console;
use crate::dead::files::{file_name, new_file_name};
use crate::dead::parts::{described, selection, snapshot};
use crate::page::{Fields, Problem, Visit};

pub(super) static REDRIVE: ChangeForm = ChangeForm {
    path: "/dead/redrive",
    title: "Redrive",
    about: "Send dead-letters back to the retry queue, where their events start over with the same key. Each \
            is deleted only once SQS has accepted its copy.",
    command: CommandName::Redrive,
    inputs: &[RATE, RETARGET],
    read: |form, visit, fields| requested(form, visit, fields.without(&[EXPORT]), Pace::REDRIVE),
    back: "/dead",
    reads_dead_letters: true,
};

pub(super) static DISCARD: ChangeForm = ChangeForm {
    path: "/dead/discard",
    title: "Discard",
    about: "Write dead-letters to a file in the folder where this server was started, and delete them. Each is deleted only \
            once it is on disk. Import the file to bring them back.",
    command: CommandName::Discard,
    inputs: &[RATE],
    read: |form, visit, fields| {
        let export = match fields.get(EXPORT) {
            Some(name) => file_name(name).ok_or_else(Problem::incomplete)?.to_owned(),
            None => new_file_name("discarded", visit.console.now()),
        };
        requested(form, visit, fields.with(EXPORT, &export), Pace::FILE)
    },
    back: "/dead",
    reads_dead_letters: true,
};

/// Form field with the name of the file that a discard writes.
const EXPORT: &str = "export";
const RATE: Input = Input::new("rate", "Rate", "At most this rate, such as 20/s");
const RETARGET: Input = Input::new(
    "retarget",
    "Another function",
    "Give the full ARN; TARGET_FUNCTIONS must allow it. Empty: the original function",
);

/// Reads a redrive or, if the form names a file to write, a discard.
fn requested(
    form: &'static ChangeForm,
    visit: &Visit,
    mut fields: Fields,
    pace: Pace,
) -> Result<RequestedChange, Problem> {
    visit.refuse_if_read_only()?;
    let console = &visit.console;
    let (snapshot, selection) = (snapshot(console)?, selection(&fields)?);
    fields.0.iter_mut().for_each(|(_, value)| *value = value.trim().to_owned());
    let file = fields.get(EXPORT).map(ToOwned::to_owned);
    // The form shows the default rate, but the command needs no flag for it.
    let default = pace.to_string();
    fields.0.retain(|(name, value)| name != RATE.name || *value != default);
    let mut own = form.command(&fields, &console.address.flags());
    if fields.get(RATE.name).is_none() {
        fields = fields.with(RATE.name, &default);
    }
    let command = filter_flags(&snapshot, &selection).map(|(mut words, is_exact)| {
        words.extend(file.iter().map(|name| format!("--export={name}")));
        words.append(&mut own.words);
        // A filter that is not exact might match other dead-letters.
        words.extend((!is_exact).then(|| "--dry-run".to_owned()));
        (Command { words, ..own }.to_string(), is_exact)
    });
    let (command, is_exact) = command.unwrap_or_default();
    let inexact = "No filter of the command selects exactly these. To see what the nearest one selects:";
    let what = described(&snapshot, &selection);
    let count = snapshot.rows(&selection).len() as u64;
    Ok(RequestedChange {
        note: format!(
            "This is about {what}. The queue is read again for it; dead-letters that arrived after the scan stay as they are."
        ),
        command,
        difference: (!is_exact).then_some(inexact),
        count_to_type: file.as_ref().map(|_| count),
        file,
        scanned_at: Some(snapshot.at),
        change: Some(asked(selection, &fields, console)),
        fields,
        ..RequestedChange::default()
    })
}

/// Returns the requested change, or fails if the form was not made from the newest scan.
fn asked(selection: Selection, fields: &Fields, console: &Console) -> Result<Box<dyn Asked>, Failure> {
    let pace = Pace::read(fields.get(RATE.name).unwrap_or_default());
    let pace = pace.map_err(|problem| Failure::refused(format!("rate: {problem}")))?;
    let chosen = Chosen::Selected(console.dead.snapshot_of(fields.get("scan"))?, selection);
    if let Some(export) = fields.get(EXPORT) {
        let export = console.dead.folder().join(export);
        return Ok(Box::new(Discard { chosen, export, pace, limit: None }));
    }
    let retarget = fields.get(RETARGET.name).map(ToOwned::to_owned);
    Ok(Box::new(Redrive { chosen, retarget, payload: None, pace, limit: None }))
}

/// Returns filter flags that select the dead-letters in `selection`, and true if they select no others. Returns `None`
/// if a command line cannot express the selection.
fn filter_flags(snapshot: &Snapshot, selection: &Selection) -> Option<(Vec<String>, bool)> {
    let (flags, is_exact) = match selection {
        Selection::All if snapshot.filter.takes_everything() => (vec!["--all".into()], true),
        Selection::All => (snapshot.filter.flags(), true),
        Selection::DeadLetters(ids) if ids.len() > 1 => return None,
        Selection::DeadLetters(_) => {
            let key = snapshot.rows(selection).first()?.key.clone()?;
            (vec![format!("--key={key}")], true)
        }
        Selection::Group(number) => {
            let Alike { reason, target, error_type, detail, .. } = snapshot.group(*number)?;
            let own =
                [("reason", Some(*reason)), ("target", target.as_deref()), ("error", error_type.as_deref())];
            let own = own.into_iter().filter_map(|(name, value)| Some((format!("--{name}="), value?)));
            let own: Vec<(String, &str)> = own.collect();
            // All dead-letters in a group match the scan's filter. The group's own flags replace the filter's flags of
            // the same name, because a flag must not appear twice.
            let is_replaced = |flag: &str| own.iter().any(|(name, _)| flag.starts_with(name));
            let others: Vec<String> =
                snapshot.filter.flags().into_iter().filter(|flag| !is_replaced(flag)).collect();
            let is_one_error = error_type.as_ref().is_some_and(|error| !error.contains(['*', '?']));
            let is_exact = others.is_empty() && detail.is_none() && is_one_error;
            let own = own.iter().map(|(name, value)| format!("{name}{value}"));
            (own.chain(others).collect(), is_exact)
        }
    };
    // A command line shows control characters escaped, so the flags would select other dead-letters.
    flags.iter().all(|flag| shown(flag) == *flag).then_some((flags, is_exact))
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use comeback_operate::dead::Filter;
    use comeback_operate::dead::testing::{event, malformed};

    use super::*;
    use crate::tests::{confirmed, locally, scanned, snapshot_of};

    #[tokio::test]
    async fn a_command_selects_the_same_or_is_inexact() {
        let flags = |snapshot: &Snapshot, selection: Selection| filter_flags(snapshot, &selection);
        let mut snapshot = snapshot_of([event("Timeout"), event("Timeout"), malformed()]).await;
        assert_eq!(flags(&snapshot, Selection::All), Some((vec!["--all".into()], true)));
        let groups: Vec<usize> = snapshot.groups().into_iter().map(|(number, _)| number).collect();
        let (own, is_exact) = flags(&snapshot, Selection::Group(groups[0])).unwrap();
        assert!(is_exact && own.len() == 3 && own[0] == "--reason=max_age", "{own:?}");
        let (malformed, is_exact) = flags(&snapshot, Selection::Group(groups[1])).unwrap();
        assert!(!is_exact && malformed == ["--reason=malformed_record"], "no filter is about a detail");
        let id = |number| snapshot.rows(&Selection::Group(number))[0].message_id.to_string();
        let (with_key, without_key) = (id(groups[0]), id(groups[1]));
        assert!(flags(&snapshot, Selection::one(with_key)).unwrap().1);
        assert_eq!(flags(&snapshot, Selection::one(without_key)), None);
        let older = Some(std::time::Duration::from_secs(3_600));
        snapshot.filter = Filter { error: Some("Time*".into()), older, ..Filter::default() };
        let (some, is_exact) = flags(&snapshot, Selection::Group(groups[0])).unwrap();
        assert_eq!(some.iter().filter(|flag| flag.starts_with("--error=")).count(), 1, "{some:?}");
        assert!(!is_exact && some.contains(&"--older=1h".into()), "{some:?}");
        snapshot.filter = Filter { error: Some("Time\nout".into()), ..Filter::default() };
        assert_eq!(flags(&snapshot, Selection::All), None, "a terminal would obey the line break");
    }
    #[tokio::test]
    async fn discard_needs_the_right_number() {
        locally(async {
            let (account, here, fields, _) = scanned(false).await;
            let (_, page) = here.answer(here.page(&format!("/dead/discard?{fields}"))).await;
            assert!(page.contains("<label for=\"typed\">To discard 1 dead-letter, type 1</label>"), "{page}");
            let form = format!("{}&typed=2", confirmed(&page));
            let (status, page) = here.answer(here.form_of("/dead/discard", &form)).await;
            assert_eq!(status, StatusCode::OK);
            assert!(page.contains("Nothing was done: to discard them, type 1."), "{page}");
            assert_eq!(account.depth().total(), 2);
        })
        .await;
    }

    #[tokio::test]
    async fn form_sent_again_leads_to_its_page() {
        locally(async {
            let (account, here, fields, _) = scanned(false).await;
            let (_, page) = here.answer(here.page(&format!("/dead/redrive?{fields}"))).await;
            for _ in 0..2 {
                let response = here.response(here.form_of("/dead/redrive", &confirmed(&page))).await;
                assert_eq!(response.status(), StatusCode::SEE_OTHER);
                here.console.works.settled().await;
                here.console.dead.set_snapshot(None);
                assert_eq!(account.retried().len(), 1);
            }
        })
        .await;
    }
    #[tokio::test]
    async fn default_rate_is_no_flag() {
        locally(async {
            let (_, here, fields, key) = scanned(false).await;
            for (rate, flag) in [("", ""), ("50/s", ""), ("20/s", " --rate=20/s")] {
                let path = format!("/dead/redrive?{fields}&rate={rate}");
                let (_, page) = here.answer(here.page(&path)).await;
                assert!(page.contains(&format!("redrive --key={key}{flag}</code>")), "{rate}: {page}");
            }
        })
        .await;
    }
}
