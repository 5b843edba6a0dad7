//! Pages for redriving and discarding dead-letters. Plans use the snapshot; only the change itself reads the queue.

use askama::Template;
use axum::response::Response;
use axum::routing::MethodRouter;
use comeback_engine::Timestamp;
use comeback_operate::dead::groups::Alike;
use comeback_operate::dead::pace::Pace;
use comeback_operate::dead::{Chosen, Discard, Redrive, Selection, Snapshot};
use comeback_operate::numbers::{counted, grouped};
use comeback_operate::shown::shown;
use comeback_operate::{CommandName, Failure};

use crate::access::token;
use crate::change::{Asked, Input, Offer};
use crate::console::Console;
use crate::dead::files::{file_name, new_file_name};
use crate::dead::parts::{described, perform_in_turn, selection, snapshot};
use crate::page::{Fields, Frame, Problem, Visit, form, ok, page};
use crate::work::WorkSummary;

/// A redrive or a discard.
#[derive(Debug)]
pub(super) struct DeadLetterChange {
    pub(super) path: &'static str,
    title: &'static str,
    about: &'static str,
    command: CommandName,
    is_discard: bool,
    pace: Pace,
}

pub(super) static REDRIVE: DeadLetterChange = DeadLetterChange {
    path: "/dead/redrive",
    title: "Redrive",
    about: "Send dead-letters back to the retry queue, where their events start over with the same key. Each \
            is deleted only once SQS has accepted its copy.",
    command: CommandName::Redrive,
    is_discard: false,
    pace: Pace::REDRIVE,
};

pub(super) static DISCARD: DeadLetterChange = DeadLetterChange {
    path: "/dead/discard",
    title: "Discard",
    about: "Write dead-letters to a file in the folder where this server was started, and delete them. Each is deleted only \
            once it is on disk. Import the file to bring them back.",
    command: CommandName::Discard,
    is_discard: true,
    pace: Pace::FILE,
};

const RATE: Input = Input::new("rate", "Rate", "At most this rate, such as 20/s");
const RETARGET: Input = Input::new(
    "retarget",
    "Another function",
    "Give the full ARN; TARGET_FUNCTIONS must allow it. Empty: the original function",
);

struct FormChoices {
    selection: Selection,
    fields: Fields,
    retarget: Option<String>,
    rate: String,
    /// Name of the file that a discard writes.
    export: String,
}

impl DeadLetterChange {
    /// The route of the change's page. GET plans the change, and POST performs it.
    pub(super) fn route(&'static self) -> MethodRouter<Console> {
        let plans = page(move |visit| self.plan(visit));
        plans.merge(form(move |visit, fields| self.perform(visit, fields)))
    }

    fn wanted(&self, mut fields: Fields, now: Timestamp) -> Result<FormChoices, Problem> {
        let selection = selection(&fields)?;
        let text = |name: &str| fields.get(name).map(|value| value.trim().to_owned());
        let (retarget, rate) = (text("retarget").filter(|_| !self.is_discard), text("rate"));
        let export = match text("export") {
            Some(name) => file_name(&name).ok_or_else(Problem::incomplete)?.to_owned(),
            None => new_file_name("discarded", now),
        };
        fields.0.retain(|(name, _)| name != "export");
        if self.is_discard {
            fields.0.push(("export".into(), export.clone()));
        }
        let rate = rate.unwrap_or_else(|| self.pace.to_string());
        Ok(FormChoices { selection, fields, retarget, rate, export })
    }

    async fn plan(&'static self, visit: Visit) -> Result<Response, Problem> {
        let fields = visit.query();
        self.plan_page(&visit, fields, None).await
    }

    async fn plan_page(
        &'static self,
        visit: &Visit,
        fields: Fields,
        problem: Option<String>,
    ) -> Result<Response, Problem> {
        visit.refuse_if_read_only()?;
        let snapshot = snapshot(&visit.console)?;
        let wanted = self.wanted(fields, visit.console.now())?;
        let offer = Offer::of(self.asked(&wanted, &visit.console), &visit.console).await;
        let count = snapshot.rows(&wanted.selection).len();
        let to_type = (self.is_discard && offer.question.is_some()).then(|| count.to_string());
        let named = ["scan", "group", "dead_letter", "export"].into_iter();
        let hidden =
            named.flat_map(|name| wanted.fields.all(name).map(move |value| (name, value.to_owned())));
        let mut inputs = vec![(RATE, wanted.rate.clone())];
        if !self.is_discard {
            inputs.push((RETARGET, wanted.retarget.clone().unwrap_or_default()));
        }
        ok(&PlanPage {
            frame: visit.frame(self.title, None).of(snapshot.at),
            change: self,
            what: described(&snapshot, &wanted.selection),
            hidden: hidden.collect(),
            inputs,
            offer,
            to_type,
            count: counted(count as u64, "dead-letter", "dead-letters"),
            problem,
            fields: wanted.fields.to_query(),
            once: token(),
            command: self.command(&snapshot, &wanted, &visit.console),
        })
    }

    async fn perform(&'static self, visit: Visit, form: Fields) -> Result<Response, Problem> {
        let [digest, once, query] = form.required(["digest", "once", "fields"])?;
        let fields = Fields::of_query(query);
        let wanted = self.wanted(fields.clone(), visit.console.now())?;
        // If the form is sent a second time, the count is not checked again, because the dead-letters may be gone by
        // then.
        if self.is_discard && visit.console.works.get(once).is_none() {
            let snapshot = snapshot(&visit.console)?;
            let count = snapshot.rows(&wanted.selection).len();
            if !is_count(form.get("typed").unwrap_or_default(), count) {
                // If no dead-letter is left, the plan itself says so.
                let problem = format!("Nothing was done: to discard them, type {count}.");
                return self.plan_page(&visit, fields, Some(problem).filter(|_| count > 0)).await;
            }
        }
        let snapshot = visit.console.dead.snapshot();
        let command = snapshot.and_then(|snapshot| self.command(&snapshot, &wanted, &visit.console));
        let command = command.filter(|command| command.is_exact).map(|command| command.line);
        let summary = WorkSummary {
            command: command.unwrap_or_default(),
            agreed: digest.to_owned(),
            ..WorkSummary::new(self.title, format!("{}?{}", self.path, wanted.fields.to_query()), "/dead")
        };
        perform_in_turn(&visit.console, once, summary, |performer| async move {
            let dead = &performer.console.dead;
            let result = performer.change(self.asked(&wanted, &performer.console)?).await;
            if self.is_discard && dead.folder().join(&wanted.export).exists() {
                dead.has_written(&wanted.export);
            }
            result
        })
    }

    /// Returns the requested change, or fails if the form was not made from the newest scan.
    fn asked(&self, wanted: &FormChoices, console: &Console) -> Result<Box<dyn Asked>, Failure> {
        let pace = Pace::read(&wanted.rate);
        let pace = pace.map_err(|problem| Failure::refused(format!("rate: {problem}")))?;
        let snapshot = console.dead.snapshot_of(wanted.fields.get("scan"))?;
        let chosen = Chosen::Selected(snapshot, wanted.selection.clone());
        if self.is_discard {
            let export = console.dead.folder().join(&wanted.export);
            return Ok(Box::new(Discard { chosen, export, pace, limit: None }));
        }
        let retarget = wanted.retarget.clone();
        Ok(Box::new(Redrive { chosen, retarget, payload: None, pace, limit: None }))
    }

    /// Returns the command that makes the same change, if there is one. The command has `--dry-run` if its filter
    /// might match other dead-letters.
    fn command(&self, snapshot: &Snapshot, wanted: &FormChoices, console: &Console) -> Option<CommandLine> {
        let (mut words, is_exact) = filter_flags(snapshot, &wanted.selection)?;
        if self.is_discard {
            words.push(format!("--export={}", wanted.export));
        }
        words.extend(wanted.retarget.iter().map(|arn| format!("--retarget={arn}")));
        if wanted.rate != self.pace.to_string() {
            words.push(format!("--rate={}", wanted.rate));
        }
        if !is_exact {
            words.push("--dry-run".into());
        }
        Some(CommandLine { line: console.command(self.command, words), is_exact })
    }
}

/// A command line to copy from the page.
struct CommandLine {
    line: String,
    /// True if the command selects exactly the dead-letters in the plan.
    is_exact: bool,
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

/// Returns true if `typed` is `count`, with or without thousands separators.
fn is_count(typed: &str, count: usize) -> bool {
    let typed = typed.trim();
    typed == count.to_string() || typed == grouped(count as u64)
}

#[derive(Template)]
#[template(path = "dead_plan.html")]
struct PlanPage {
    frame: Frame,
    change: &'static DeadLetterChange,
    what: String,
    hidden: Vec<(&'static str, String)>,
    inputs: Vec<(Input, String)>,
    offer: Offer,
    /// The number that the operator must type to confirm; `None` if a button is enough.
    to_type: Option<String>,
    count: String,
    problem: Option<String>,
    fields: String,
    once: String,
    command: Option<CommandLine>,
}

#[cfg(test)]
mod tests {
    use comeback_operate::dead::Filter;
    use comeback_operate::dead::testing::{event, malformed};

    use super::*;
    use crate::tests::snapshot_of;

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

    #[test]
    fn only_the_exact_count_is_accepted() {
        for typed in ["1200", " 1200 ", "1,200"] {
            assert!(is_count(typed, 1_200), "{typed}");
        }
        for typed in ["", "1201", "12", "all", "1200.0", "1 200"] {
            assert!(!is_count(typed, 1_200), "{typed}");
        }
    }
}
