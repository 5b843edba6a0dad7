//! Recalls hidden messages after a change that makes their events due earlier.
//!
//! The handler logs the receipt handle of each message that it hides. A recall waits until the handler has read the
//! change, and then reads the log. Each message that [`Recall`] chooses gets a new visibility timeout, which expires
//! when its retry is due.

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::{HOLD, NotRecalled, Pauses, RETURNS_SOON, Recall, Rules, Timestamp};
use serde::Serialize;

use crate::aws::{EntryFailure, EntryFailureKind};
use crate::dead::scan::{failed, tell_pause};
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::numbers::counted;
use crate::operator::{Operator, Progress};
use crate::pauses::noticed_within;
use crate::text;
use crate::text::Text;
use crate::waiting::filter::WaitingFilter;
use crate::waiting::reading::{LogQuery, Reading};

/// The number of messages to recall before the clock is read again.
const TOGETHER: usize = 1_000;
/// The interval between progress reports.
const TICK: Duration = Duration::from_secs(1);

/// The maximum age of the last log line about a held message: [`HOLD`], plus time for the line to arrive.
pub(crate) const HELD_LINES: Duration = HOLD.saturating_add(Duration::from_secs(120));

/// The outcome of a recall. A recall makes hidden messages visible when their retries are due, instead of later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recalled {
    /// The number of messages that now become visible when their retries are due.
    pub recalled: u64,
    /// The latest due time of the recalled messages, if any.
    pub all_due: Option<Timestamp>,
    /// The number of messages that had already left the queue.
    pub gone: u64,
    /// The number of messages that were not recalled because an earlier request, or a pause that ended earlier, applies
    /// to them.
    pub before: u64,
    /// The number of messages that had been moved (sent again with a delay). They become visible within 15 minutes.
    pub moved: u64,
    /// The number of messages that were not recalled because they were about to become visible anyway.
    pub soon: u64,
    /// The number of messages that were not recalled because the call failed, by reason.
    pub failed: BTreeMap<String, u64>,
    /// The number of messages that may have been recalled, because the call got no answer, by reason.
    pub unanswered: BTreeMap<String, u64>,
}

/// A message to hide again until its retry is due. Messages are sorted by due time, then by handle.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Chosen {
    due: Timestamp,
    receipt_handle: String,
    /// When the message would become visible if its visibility timeout were not changed.
    returns: Timestamp,
}

/// Makes the hidden messages that match `wanted` visible when their retries are due.
///
/// `entry` is the request or the end of a pause; it must already be in the SSM parameter. `planned` is the number of
/// messages to recall; if it is 0, the function does nothing and returns `None`.
pub(crate) async fn recall(
    operator: &Operator,
    deployment: &Deployment,
    wanted: &WaitingFilter,
    entry: Recall<'_>,
    planned: u64,
) -> (Option<Recalled>, Result<(), Failure>) {
    if planned == 0 {
        return (None, Ok(()));
    }
    let mut recalled = Recalled::default();
    let work = async {
        let chosen = operator.interrupt.or(choose(operator, deployment, wanted, entry)).await;
        let (chosen, left) = chosen?;
        recalled = left;
        recalled.hide(operator, deployment, chosen).await
    };
    let end = work.await.map_err(rest_returns_by_itself);
    (Some(recalled), end)
}

async fn choose(
    operator: &Operator,
    deployment: &Deployment,
    wanted: &WaitingFilter,
    entry: Recall<'_>,
) -> Result<(Vec<Chosen>, Recalled), Failure> {
    until_it_is_read(operator, deployment, entry.at()).await;
    let now = operator.now();
    let since = matches!(entry, Recall::Resume(_)).then_some(HELD_LINES);
    let scope = LogQuery { wanted, since, handles: true };
    let reading = Reading::read(operator, deployment.clone(), scope, now).await?;
    let policies = deployment.policies().ok();
    let none = Pauses::default();
    let pauses = reading.pauses.as_ref().map_err(Clone::clone)?.as_ref().unwrap_or(&none);
    let (Some(policies), Some(entry)) = (&policies, entry.find(pauses)) else {
        return Err(Failure::undone("another operator has changed the pauses or the settings meanwhile"));
    };
    let rules = Rules { policies, pauses };
    // This machine's clock may be slow. If the newest log line is later, its time counts.
    let newest = reading.waits.all_messages().map(|(_, message, _)| message.at).max();
    let now = newest.map_or(now, |newest| now.max(newest));
    let (mut chosen, mut left) = (Vec::new(), Recalled::default());
    for (_, message, kind) in reading.waits.all_messages() {
        match entry.due(message, kind, rules, now) {
            Ok(due) => {
                let handle = message.handle.as_ref().expect("BUG: recalled without a handle");
                let receipt_handle = handle.receipt_handle.as_ref().to_owned();
                chosen.push(Chosen { due, receipt_handle, returns: message.next_check() });
            }
            Err(NotRecalled::Before) => left.before += 1,
            Err(NotRecalled::Moved) => left.moved += 1,
            Err(NotRecalled::Soon) => left.soon += 1,
            // The plan already counts messages left out for any other reason.
            Err(_) => {}
        }
    }
    chosen.sort_unstable();
    Ok((chosen, left))
}

/// Waits until every execution environment of the handler has read the entry that was written at `at`. Until then, an
/// environment might hide a recalled message again.
async fn until_it_is_read(operator: &Operator, deployment: &Deployment, at: Timestamp) {
    let noticed = noticed_within(deployment).unwrap_or_default();
    loop {
        let done = operator.now().since(at).min(noticed).as_secs();
        let unit = "seconds until the handler has read the request";
        operator.follow.progress(Progress { done, of: Some(noticed.as_secs()), unit });
        if operator.now() >= at.saturating_add(noticed) {
            return;
        }
        operator.account.aws.sleep(TICK).await;
    }
}

fn rest_returns_by_itself(failure: Failure) -> Failure {
    let rest = "; what was written stands, and each message that was not recalled returns when its hiding ends: \
                another request does not recall it";
    match failure {
        Failure::Interrupted(_) => Failure::interrupted(format!("not every message was recalled{rest}")),
        Failure::Undone(text) => Failure::undone(text.and(rest)),
        other => Failure::could_not(other.text().and(rest)),
    }
}

impl Recalled {
    async fn hide(
        &mut self,
        operator: &Operator,
        deployment: &Deployment,
        chosen: Vec<Chosen>,
    ) -> Result<(), Failure> {
        let (aws, of) = (&operator.account.aws, Some(chosen.len() as u64));
        let mut done = 0;
        for some in chosen.chunks(TOGETHER) {
            operator.follow.progress(Progress { done, of, unit: "messages recalled" });
            if operator.interrupt.is_raised() {
                return Err(Failure::interrupted(""));
            }
            let now = operator.now();
            // Since the log was read, the handler may have received a message again and hidden it for an invocation.
            let soon = now.saturating_add(RETURNS_SOON);
            let still: Vec<&Chosen> = some.iter().filter(|message| message.returns > soon).collect();
            self.soon += (some.len() - still.len()) as u64;
            let until = |message: &&Chosen| {
                let left = message.due.since(now).as_millis().div_ceil(1_000) as u64;
                (message.receipt_handle.clone(), Duration::from_secs(left))
            };
            let calls = still.iter().map(until).collect();
            let answers = aws.hide(&deployment.retry_queue.url, calls, false, &tell_pause(operator)).await;
            for (message, answer) in still.iter().zip(answers) {
                self.count(message.due, answer)?;
            }
            done += some.len() as u64;
        }
        operator.follow.progress(Progress { done, of, unit: "messages recalled" });
        Ok(())
    }

    fn count(&mut self, due: Timestamp, answer: Result<(), EntryFailure>) -> Result<(), Failure> {
        let Err(failure) = answer else {
            self.recalled += 1;
            self.all_due = self.all_due.max(Some(due));
            return Ok(());
        };
        match failure.code.as_str() {
            "InvalidParameterValue" | "ReceiptHandleIsInvalid" => self.gone += 1,
            code if code.ends_with("MessageNotInflight") => self.soon += 1,
            _ => {
                let why = failed("sqs:ChangeMessageVisibility", &failure);
                if matches!(failure.kind, EntryFailureKind::Denied | EntryFailureKind::Missing) {
                    return Err(Failure::could_not(why));
                }
                let counts = if failure.is_unanswered() { &mut self.unanswered } else { &mut self.failed };
                *counts.entry(why).or_default() += 1;
            }
        }
        Ok(())
    }

    pub(crate) fn lines(&self) -> Vec<Text> {
        let Self { recalled, all_due, gone, before, moved, soon, failed, unanswered } = self;
        let messages = counted(*recalled, "message was", "messages were");
        let first = match all_due {
            Some(all_due) => text![format!("{messages} recalled, all due by "), *all_due, "."],
            None => "No message was recalled.".into(),
        };
        let left = [
            (*gone, "had left the queue"),
            (*before, "recalled or left by an earlier request; no message is recalled for a second one"),
            (*moved, "sent again with a delay: back within 15m"),
            (*soon, "returning as soon by themselves"),
        ];
        let left =
            left.into_iter().filter(|(count, _)| *count > 0).map(|(count, why)| (count, why.to_owned()));
        let failed = failed.iter().map(|(why, count)| (*count, format!("not recalled: {why}")));
        let unanswered = unanswered.iter();
        let unanswered =
            unanswered.map(|(why, count)| (*count, format!("perhaps recalled: no answer ({why})")));
        let line = |(count, why)| format!("  {} {why}", counted(count, "message", "messages")).into();
        std::iter::once(first).chain(left.chain(unanswered).chain(failed).map(line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::{PauseTarget, Record, RequestKind};
    use serde_json::json;

    use super::*;
    use crate::aws::simulated::Sample;
    use crate::aws::{EntryFailureKind, NewMessage, Receive};
    use crate::change::tests::plain;
    use crate::change::{Change, Performed, Plan as _};
    use crate::request::RequestEvents;
    use crate::request::tests::{moves, request, sample, writes};
    use crate::resume::{ResumeRetries, ending};

    const HOUR: Duration = Duration::from_secs(3_600);

    /// Receives a message, hides it for an hour, and writes the log line that the handler would write.
    async fn waits(
        operator: &Operator,
        aws: &crate::aws::simulated::SimulatedAws,
        key: &str,
        action: &str,
    ) -> Record {
        aws.queue(Sample::RETRY_QUEUE).send(aws.time(), Duration::ZERO, NewMessage::default());
        let url = operator.deployment().await.unwrap().retry_queue.url;
        let receive = Receive { visibility: HOUR, wait: Duration::ZERO };
        let message = operator.account.aws.receive(&url, 1, receive).await.unwrap().remove(0).record;
        let due = aws.time().saturating_add(HOUR);
        let line = json!({
            "message_id": message.message_id, "receipt_handle": message.receipt_handle, "action": action, "due": due, "due_by": "policy",
            "delay": HOUR.as_secs(),
        });
        writes(aws, key, line);
        message
    }

    fn visible(aws: &crate::aws::simulated::SimulatedAws) -> u64 {
        let now = aws.time();
        aws.queue(Sample::RETRY_QUEUE).depth(now).visible
    }

    #[tokio::test]
    async fn waiting_events_return_within_the_request() {
        let (aws, operator) = sample();
        let mut ids = Vec::new();
        for key in ["k-1", "k-2", "k-3"] {
            ids.push(waits(&operator, &aws, key, "defer").await.message_id);
        }
        let gone = waits(&operator, &aws, "k-4", "defer").await;
        let now = aws.time();
        aws.queue(Sample::RETRY_QUEUE).delete(now, &gone.receipt_handle).unwrap();
        aws.advance(Duration::from_secs(60));
        let retries = request();
        let plan = retries.plan(&operator).await.unwrap();
        let Ok(Performed::Done(requested, end)) = retries.perform(&operator, &plan).await else {
            panic!("not done")
        };
        assert_eq!(end, Ok(()));
        let done = serde_json::to_value(&requested).unwrap()["result"].take();
        assert_eq!((&done["recalled"], &done["gone"], &done["before"]), (&json!(3), &json!(1), &json!(0)));
        assert!(now.saturating_add(Duration::from_secs(98)) <= aws.time(), "every copy has read it");
        // Each message returns at the due time that the handler draws for its retry.
        let text = operator.account.aws.parameter(Sample::PAUSES).await.unwrap().unwrap().text;
        let pauses = Pauses::read(&text).unwrap();
        let request = pauses.requests().next().unwrap();
        let mut due: Vec<_> = ids.iter().map(|id| request.due_of(id, 1)).collect();
        due.sort_unstable();
        assert_eq!(done["all_due"], json!(due[2]));
        for (due, before) in due.into_iter().zip(0..) {
            aws.advance(due.since(aws.time()).saturating_sub(Duration::from_secs(1)));
            assert_eq!(visible(&aws), before, "{due}");
            aws.advance(Duration::from_secs(2));
            assert_eq!(visible(&aws), before + 1, "{due}");
        }
        // Without newer log lines about these messages, a second request cannot find out whether they were recalled.
        let again = serde_json::to_value(retries.plan(&operator).await.unwrap()).unwrap();
        assert_eq!((&again["recalled"], &again["before"]), (&json!(0), &json!(4)));
    }

    #[tokio::test]
    async fn failures_during_the_question_are_recalled() {
        let (aws, operator) = sample();
        moves(&aws, "k-1");
        let retries = request();
        let plan = retries.plan(&operator).await.unwrap();
        assert_eq!(serde_json::to_value(&plan).unwrap()["recalled"], 0);
        waits(&operator, &aws, "k-2", "defer").await;
        let Ok(Performed::Done(requested, Ok(()))) = retries.perform(&operator, &plan).await else {
            panic!("not done")
        };
        let value = serde_json::to_value(&requested).unwrap();
        assert_eq!((&value["recalled"], &value["result"]["recalled"]), (&json!(1), &json!(1)), "{value:#}");
    }

    #[tokio::test]
    async fn held_events_return_within_the_pauses_length() {
        let (aws, operator) = sample();
        let from = aws.time().as_secs() - 120;
        let paused =
            format!(r#"{{"v":1,"pauses":[{{"target":"*","from":{from},"until":null,"spread":1800}}]}}"#);
        let opened = operator.account.aws.put_parameter(Sample::PAUSES, &paused, true).await;
        assert!(opened.unwrap().is_some());
        waits(&operator, &aws, "k-1", "hold").await;
        let resume = ResumeRetries { function: None, spread: None };
        let plan = resume.plan(&operator).await.unwrap();
        let Ok(Performed::Done(resumed, end)) = resume.perform(&operator, &plan).await else {
            panic!("not done")
        };
        assert_eq!(end, Ok(()));
        let value = serde_json::to_value(&resumed).unwrap();
        assert_eq!((&value["spread_seconds"], &value["result"]["recalled"]), (&json!(120), &json!(1)));
        aws.advance(Duration::from_secs(120));
        assert_eq!(visible(&aws), 1);
    }

    #[tokio::test]
    async fn events_held_during_the_question_return() {
        let (aws, operator) = sample();
        let from = aws.time().as_secs() - 120;
        let paused =
            format!(r#"{{"v":1,"pauses":[{{"target":"*","from":{from},"until":null,"spread":1800}}]}}"#);
        let opened = operator.account.aws.put_parameter(Sample::PAUSES, &paused, true).await;
        assert!(opened.unwrap().is_some());
        let resume = ResumeRetries { function: None, spread: None };
        let plan = resume.plan(&operator).await.unwrap();
        waits(&operator, &aws, "k-1", "hold").await;
        let Ok(Performed::Done(resumed, Ok(()))) = resume.perform(&operator, &plan).await else {
            panic!("not done")
        };
        let value = serde_json::to_value(&resumed).unwrap();
        assert_eq!((&value["held"]["recalled"], &value["result"]["recalled"]), (&json!(1), &json!(1)));
    }

    #[tokio::test]
    async fn cancelled_events_return_at_once() {
        let (aws, operator) = sample();
        for (key, action) in [("k-1", "defer"), ("k-2", "hold"), ("k-3", "defer")] {
            waits(&operator, &aws, key, action).await;
        }
        let keys = vec!["k-1".to_owned(), "k-2".to_owned()];
        let cancel = RequestEvents { kind: RequestKind::Cancel, keys, ..request() };
        let plan = cancel.plan(&operator).await.unwrap();
        assert_eq!(plan.question().unwrap().text, "cancel these?");
        let planned = serde_json::to_value(&plan).unwrap();
        assert_eq!((&planned["found"], &planned["recalled"]), (&json!(2), &json!(2)), "{planned:#}");
        let Ok(Performed::Done(requested, Ok(()))) = cancel.perform(&operator, &plan).await else {
            panic!("not done")
        };
        assert_eq!(serde_json::to_value(&requested).unwrap()["result"]["recalled"], 2);
        assert_eq!(visible(&aws), 2);
        let text = operator.account.aws.parameter(Sample::PAUSES).await.unwrap().unwrap().text;
        let pauses = Pauses::read(&text).unwrap();
        let written = pauses.requests().next().unwrap();
        assert_eq!((&written.keys[..], written.until), (&["k-1".into(), "k-2".into()][..], None));
        // A request to cancel by key also applies to later failures, so it is accepted even if no event is waiting.
        let later = RequestEvents { keys: vec!["k-9".into()], ..cancel.clone() };
        assert!(later.plan(&operator).await.unwrap().question().is_some());
        let many = RequestEvents { keys: vec!["k".into(); 21], ..cancel };
        let refused = many.plan(&operator).await.unwrap_err();
        assert_eq!(
            (refused.exit_code(), &*refused.to_string()),
            (2, "a request names at most 20 keys; make several")
        );
    }

    #[tokio::test]
    async fn denied_recall_leaves_the_request() {
        let (aws, operator) = sample();
        waits(&operator, &aws, "k-1", "defer").await;
        aws.deny("sqs:ChangeMessageVisibility");
        let retries = request();
        let plan = retries.plan(&operator).await.unwrap();
        let Ok(Performed::Done(_, Err(failure))) = retries.perform(&operator, &plan).await else {
            panic!("not denied")
        };
        let (code, said) = (failure.exit_code(), failure.to_string());
        assert!(
            code == 1 && said.contains("sqs:ChangeMessageVisibility") && said.contains("stands"),
            "{said}"
        );
        assert!(said.ends_with("when its hiding ends: another request does not recall it"), "{said}");
        // A later request cannot find out that the recall failed.
        let Ok(Performed::Done(requested, Ok(()))) = retries.perform(&operator, &plan).await else {
            panic!("denied")
        };
        let value = serde_json::to_value(&requested).unwrap();
        assert_eq!((&value["before"], &value["result"]), (&json!(1), &json!(null)));
        let said = plain(&retries.plan(&operator).await.unwrap());
        assert!(said.contains("not recalled: 1 event, recalled or left by an earlier request"), "{said}");
    }

    #[tokio::test]
    async fn returned_messages_are_left_alone() {
        let (aws, operator) = sample();
        let deployment = operator.deployment().await.unwrap();
        let now = aws.time();
        let mut chosen = Vec::new();
        for (key, seconds) in [("k-1", 60), ("k-2", 61)] {
            let receipt_handle = waits(&operator, &aws, key, "defer").await.receipt_handle;
            let returns = now.saturating_add(Duration::from_secs(seconds));
            chosen.push(Chosen { receipt_handle, due: now, returns });
        }
        let mut recalled = Recalled::default();
        recalled.hide(&operator, &deployment, chosen).await.unwrap();
        assert_eq!((recalled.recalled, recalled.soon, visible(&aws)), (1, 1, 1));
    }

    #[tokio::test]
    async fn pauses_that_cannot_be_read_again_are_named() {
        let (aws, operator) = sample();
        let deployment = operator.deployment().await.unwrap();
        aws.deny("ssm:GetParameter");
        let pause = ending(&PauseTarget::All, aws.time());
        let entry = Recall::Resume(&pause);
        let (_, end) = recall(&operator, &deployment, &WaitingFilter::default(), entry, 1).await;
        let said = end.unwrap_err().to_string();
        assert!(said.contains("ssm:GetParameter") && said.contains("stands"), "{said}");
    }

    #[test]
    fn answers_are_counted_by_meaning() {
        let mut recalled = Recalled::default();
        let due = Timestamp::from_secs(60);
        let failed =
            |kind, code: &str| Err(EntryFailure { kind, code: code.into(), text: format!("{code}: no") });
        for answer in [
            Ok(()),
            failed(EntryFailureKind::Refused, "InvalidParameterValue"),
            failed(EntryFailureKind::Refused, "ReceiptHandleIsInvalid"),
            failed(EntryFailureKind::Refused, "AWS.SimpleQueueService.MessageNotInflight"),
            failed(EntryFailureKind::Transient, "ServiceUnavailable"),
            failed(EntryFailureKind::Transient, ""),
        ] {
            recalled.count(due, answer).unwrap();
        }
        let lines: Vec<_> = recalled.lines().iter().map(ToString::to_string).collect();
        let expected = [
            "1 message was recalled, all due by 1970-01-01T00:01:00.000Z.",
            "  2 messages had left the queue",
            "  1 message returning as soon by themselves",
            "  1 message perhaps recalled: no answer (sqs:ChangeMessageVisibility: : no)",
            "  1 message not recalled: sqs:ChangeMessageVisibility: ServiceUnavailable: no",
        ];
        assert_eq!(lines, expected);
        assert!(recalled.count(due, failed(EntryFailureKind::Denied, "AccessDenied")).is_err());
    }
}
