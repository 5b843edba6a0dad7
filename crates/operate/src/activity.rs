//! The output of `comeback history`: the changes that operators made.

use std::cmp::Reverse;
use std::time::Duration;

use comeback_engine::{NotALine, Timestamp};
use serde::Serialize;

use crate::aws::{LogEvent, LogFilter};
use crate::change::Answer;
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::function::shown_name;
use crate::layout::{Layout, Table};
use crate::numbers::{counted, grouped};
use crate::operator::Operator;
use crate::operator_line::{Completion, OperatorLine, STREAM};
use crate::text::{Piece, Text, Tone};

/// The changes that operators made to a deployment, as recorded in the handler's log.
#[derive(Debug, Serialize)]
pub struct RecordedChanges {
    /// The time from which the log was read; `None` if the whole log was read.
    since: Option<Timestamp>,
    /// The recorded changes, the newest first.
    changes: Vec<OperatorLine>,
    /// Number of log lines that only a newer version of Comeback can parse.
    newer: u64,
    #[serde(skip)]
    deployment: Deployment,
}

/// Reads the recorded changes that are no older than `since`; `None` reads the whole log.
///
/// # Errors
///
/// Fails if the deployment or its log cannot be read.
pub async fn recorded(operator: &Operator, since: Option<Duration>) -> Result<RecordedChanges, Failure> {
    let deployment = operator.deployment().await?;
    let since = since.map(|since| operator.now().before(since));
    let from = since.unwrap_or(Timestamp::from_secs(0));
    let lines = LogFilter { stream: Some(STREAM), ..LogFilter::since(&deployment.log_group, from) };
    let (mut changes, mut newer) = (Vec::new(), 0);
    let take = |page: Vec<LogEvent>| {
        for line in page {
            match OperatorLine::read(&line.message) {
                Ok(entry) => changes.push(entry),
                Err(NotALine::Newer) => newer += 1,
                Err(NotALine::Other) => {}
            }
        }
    };
    let read = lines.pages(&operator.account, take);
    // If the log group or its stream does not exist, nothing has been recorded yet.
    operator.interrupt.or(read).await?;
    changes.sort_by_key(|entry| Reverse(entry.at));
    Ok(RecordedChanges { since, changes, newer, deployment })
}

impl Answer for RecordedChanges {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        if self.changes.is_empty() {
            layout.line("no change was recorded");
        } else {
            layout.table(self.table());
        }
        if self.newer > 0 {
            let lines = counted(self.newer, "change was", "changes were");
            layout
                .note(format!("{lines} recorded by a newer version of comeback, which this one cannot read"));
        }
        layout
    }
}

impl RecordedChanges {
    fn table(&self) -> Table {
        let mut table = Table::new(["when", "who", "what", "on", "how many", "why", "result"]);
        table.columns[4].is_number = true;
        for entry in &self.changes {
            let activity = &entry.activity;
            table.row([
                entry.at.into(),
                Text::from(&entry.by),
                activity.flags.iter().fold(activity.what.clone(), |what, flag| what + " " + flag).into(),
                self.subjects(entry),
                activity.count.map(grouped).unwrap_or_default().into(),
                activity.why.as_deref().unwrap_or_default().into(),
                result(entry),
            ]);
        }
        table
    }

    fn subjects(&self, entry: &OperatorLine) -> Text {
        let function = |name: &String| match &**name {
            "*" => Text::from("every function"),
            name => self.deployment.function(name, shown_name(name)),
        };
        let functions = entry.activity.functions.iter().map(function);
        let keys = entry.activity.keys.iter().map(|key| Piece::Event(key.clone()).into());
        Text::joined(functions.chain(keys), ", ")
    }
}

fn result(entry: &OperatorLine) -> Text {
    let problem = || entry.problem.as_deref().unwrap_or_default();
    match entry.result {
        Completion::Done => "done".into(),
        Completion::Undone | Completion::Interrupted => Text::toned(Tone::Warning, problem()),
        Completion::Failed => Text::toned(Tone::Bad, problem()),
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::RequestKind;
    use serde_json::{Value, json};

    use super::*;
    use crate::attach::{Route, RouteFailures};
    use crate::aws::Aws as _;
    use crate::aws::simulated::{Sample, SimulatedAws, function_arn};
    use crate::change::tests::plain;
    use crate::change::{Change, Performed, perform, result_layout};
    use crate::dead::pace::Pace;
    use crate::dead::testing::{Dead, event};
    use crate::dead::{Chosen, Discard, Filter, Import, Redrive};
    use crate::deployment::find::Which;
    use crate::interrupt::Interrupt;
    use crate::layout::Block;
    use crate::pause::PauseRetries;
    use crate::request::RequestEvents;
    use crate::request::withdraw::WithdrawRequests;
    use crate::resume::ResumeRetries;

    const NOW: Timestamp = Timestamp::from_secs(1_789_400_000);
    const PUT: &str = "logs:PutLogEvents";

    fn sample() -> (SimulatedAws, Operator) {
        let aws = Sample { is_attached: true, ..Sample::new(NOW) }.build();
        let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
        (aws, operator)
    }

    fn pause() -> PauseRetries {
        let (function, spread) = ("orders".parse().unwrap(), Duration::from_secs(60));
        let why = Some("deploy 4711".into());
        PauseRetries { function: Some(function), end: None, spread: Some(spread), why }
    }

    fn resume() -> ResumeRetries {
        ResumeRetries { function: Some("orders".parse().unwrap()), spread: None }
    }

    /// Makes a change, and returns its result and the notes for the operator.
    async fn made(operator: &Operator, change: impl Change) -> (Result<(), Failure>, Vec<String>) {
        let plan = change.plan(operator).await.unwrap();
        let Ok((Performed::Done(done, result), recorded)) = perform(&change, operator, &plan).await else {
            panic!("not done")
        };
        let layout = result_layout(&done, &recorded);
        let notes = layout.0.iter().filter_map(|block| match block {
            Block::Note(text) => Some(text.to_string()),
            _ => None,
        });
        let notes: Vec<String> = notes.collect();
        assert_eq!(recorded.is_err(), notes.iter().any(|note| note.contains(" is not recorded: ")));
        (result, notes)
    }

    async fn read(operator: &Operator) -> Value {
        serde_json::to_value(recorded(operator, None).await.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn changes_are_read_back_newest_first() {
        let (aws, operator) = sample();
        assert_eq!(plain(&recorded(&operator, None).await.unwrap()), "no change was recorded\n");
        assert_eq!(made(&operator, pause()).await, (Ok(()), Vec::new()));
        aws.advance(Duration::from_secs(60));
        assert_eq!(made(&operator, resume()).await, (Ok(()), Vec::new()));
        let orders = function_arn("orders");
        let expected = json!([
            {"at": "2026-09-14T15:34:24.000Z", "by": "ops", "what": "resume", "flags": [], "functions": [orders], "keys": [],
             "count": 0, "why": null, "result": "done", "problem": null},
            {"at": "2026-09-14T15:33:22.000Z", "by": "ops", "what": "pause", "flags": ["--spread=1m"], "functions": [orders], "keys": [],
             "count": null, "why": "deploy 4711", "result": "done", "problem": null},
        ]);
        let read = read(&operator).await;
        assert_eq!((&read["changes"], &read["since"], &read["newer"]), (&expected, &Value::Null, &json!(0)));
        let latest = recorded(&operator, Some(Duration::from_secs(30))).await.unwrap();
        let expected = "\
when | who | what | on | how many | why | result
2026-09-14T15:34:24.000Z | ops | resume | orders | 0 |  | done
";
        assert_eq!(plain(&latest), expected);
    }

    #[tokio::test]
    async fn every_change_is_recorded() {
        let dead_letters = [event("Timeout"), event("Timeout"), event("Timeout")];
        let key = dead_letters[0].key.clone();
        let dead = Dead::with(dead_letters);
        let operator = dead.operator();
        let one = Chosen::matching(Filter { key: Some(key.clone()), ..Filter::default() });
        made(&operator, Redrive::new(one)).await.0.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("old.jsonl");
        let (chosen, export, pace) = (Chosen::matching(Filter::default()), file.clone(), Pace::FILE);
        made(&operator, Discard { chosen, export, pace, limit: None }).await.0.unwrap();
        made(&operator, Import { file, pace }).await.0.unwrap();
        let (function, functions) = (Some("orders".parse().unwrap()), vec!["orders".parse().unwrap()]);
        let request = RequestEvents {
            kind: RequestKind::Cancel,
            within: Duration::ZERO,
            function: function.clone(),
            error: None,
            keys: vec!["k-1".into()],
            why: Some("import 12".into()),
        };
        made(&operator, request).await.0.unwrap();
        made(&operator, WithdrawRequests { function, kind: RequestKind::Cancel }).await.0.unwrap();
        let route = Route::Detach { at_once: true };
        // The function's role keeps its permission, because invocations may still be running. The detach is therefore
        // reported as incomplete.
        let detached = made(&operator, RouteFailures { functions, route }).await.0;
        assert!(matches!(detached, Err(Failure::Undone(_))), "{detached:?}");
        let mut changes = recorded(&operator, None).await.unwrap().changes;
        changes.sort_by_key(|entry| entry.at);
        let said = changes.iter().map(|OperatorLine { activity, result, .. }| {
            let is_done = *result == Completion::Done;
            let functions = activity.functions.iter().map(|name| shown_name(name)).collect::<Vec<_>>();
            (
                &*activity.what,
                functions,
                activity.keys.clone(),
                activity.count,
                activity.why.as_deref(),
                is_done,
            )
        });
        let expected = [
            ("dead redrive", vec!["orders"], vec![key], Some(1), None, true),
            ("dead discard", vec!["orders"], vec![], Some(2), None, true),
            ("dead import", vec![], vec![], Some(2), None, true),
            ("cancel", vec!["orders"], vec!["k-1".into()], Some(0), Some("import 12"), true),
            ("cancel --withdraw", vec!["orders"], vec![], None, None, true),
            ("detach", vec!["orders"], vec![], Some(1), None, false),
        ];
        assert_eq!(said.collect::<Vec<_>>(), expected);
    }

    #[tokio::test]
    async fn a_change_that_ended_halfway_is_recorded_with_what_it_did() {
        let dead = Dead::with((0..150).map(|_| event("Timeout")));
        // The scan reports progress three times, and the first dead-letter is sent on its own, so the fourth report
        // follows the first send.
        let redrive = Redrive::new(Chosen::matching(Filter::default()));
        assert_eq!(
            made(&dead.stopping_after(4), redrive).await.0,
            Err(Failure::interrupted("redrove 1 dead-letter"))
        );
        let read = read(&dead.operator()).await["changes"].take();
        let [change] = &read.as_array().unwrap()[..] else { panic!("{read}") };
        assert_eq!(
            (&change["count"], &change["result"], &change["problem"]),
            (&json!(1), &json!("interrupted"), &json!("interrupted: redrove 1 dead-letter"))
        );
    }

    #[tokio::test]
    async fn pause_that_was_interrupted_after_its_write_is_recorded() {
        let (aws, operator) = sample();
        let interrupt = Interrupt::default();
        let raised = interrupt.clone();
        aws.on_call(move |call| {
            if call.action == "ssm:PutParameter" {
                raised.raise();
            }
            None
        });
        let stopped = Operator { interrupt, ..operator.clone() };
        assert_eq!(made(&stopped, pause()).await.0, Ok(()));
        let changes = read(&operator).await["changes"].take();
        assert_eq!((&changes[0]["what"], &changes[0]["result"]), (&json!("pause"), &json!("done")));
    }

    #[tokio::test]
    async fn a_change_that_cannot_be_recorded_is_made_and_says_so() {
        for denied in [PUT, "logs:CreateLogStream"] {
            let (aws, operator) = sample();
            aws.deny(denied);
            let (result, notes) = made(&operator, pause()).await;
            assert_eq!(result, Ok(()));
            let [note] = &*notes else { panic!("{notes:?}") };
            assert!(note.starts_with(&format!("the change is not recorded: {denied} on ")), "{note}");
            let again = pause().plan(&operator).await.unwrap();
            assert!(plain(&again).contains("Nothing to change."), "it is paused: {}", plain(&again));
        }
    }

    #[tokio::test]
    async fn nothing_is_recorded_of_a_change_that_was_not_made() {
        let (aws, operator) = sample();
        let (mine, other) = (pause(), pause());
        let plan = mine.plan(&operator).await.unwrap();
        made(&operator, other).await.0.unwrap();
        perform(&mine, &operator, &plan).await.unwrap().1.unwrap();
        let resume = resume();
        let plan = resume.plan(&operator).await.unwrap();
        aws.deny("ssm:PutParameter");
        assert!(perform(&resume, &operator, &plan).await.is_err());
        let changes = read(&operator).await["changes"].take();
        assert_eq!(changes.as_array().map(Vec::len), Some(1), "only the other pause: {changes}");
    }

    #[tokio::test]
    async fn lines_of_other_kinds_are_left_out() {
        let (aws, operator) = sample();
        made(&operator, pause()).await.0.unwrap();
        let lines = [
            r#"{"v":2,"action":"operator"}"#,
            r#"{"v":1,"action":"hold"}"#,
            r#"{"v":1,"action":"operator"}"#,
            "text",
        ];
        for line in lines {
            assert!(aws.put_log_line(Sample::LOG_GROUP, STREAM, NOW, line).await.unwrap());
        }
        let recorded = recorded(&operator, None).await.unwrap();
        assert_eq!((recorded.changes.len(), recorded.newer), (1, 1));
        assert!(plain(&recorded).contains("note: 1 change was recorded by a newer version"));
    }

    #[tokio::test]
    async fn searches_for_events_do_not_find_the_lines() {
        let (aws, operator) = sample();
        made(&operator, pause()).await.0.unwrap();
        let pattern = Some(crate::waiting::filter::WaitingFilter::default().pattern());
        let filter = LogFilter { group: Sample::LOG_GROUP, pattern, since: NOW, until: None, stream: None };
        let page = aws.log_page(&filter, None).await.unwrap().unwrap();
        assert_eq!((page.events, page.next), (Vec::new(), None));
        assert_eq!(aws.state().log_groups[Sample::LOG_GROUP].lines.len(), 1);
    }
}
