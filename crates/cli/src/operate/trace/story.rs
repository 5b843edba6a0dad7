//! One event's life: its lines, found in the logs and put in order. The handler's log is the only index there is.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::RandomState;

use comeback_engine::{
    Cause, DueBy, FunctionArn, LogFold, LogLine, LoggedEarly, LoggedEvent, LoggedFailure, MessageState,
    Timestamp, WaitsFor, What as Logged,
};
use serde::Serialize;
use serde_json::Value;

use crate::account::{Account, Failure, Or as _};
use crate::clock::now;
use crate::operate::deployment::{Deployment, Unlisted};
use crate::operate::function;
use crate::operate::log::{LogEvent, Search, event_line, names};
use crate::operate::pauses::in_force::InForce;
use crate::operate::pauses::noticed_within;
use crate::operate::pauses::parameter::read_pauses;

/// What happened to one event, as the handler logged it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Story {
    pub(crate) key: String,
    /// The function that is retried now: a redrive may have sent the event to another one.
    pub(crate) target: String,
    /// The target of each invocation, by its request id.
    #[serde(skip)]
    pub(crate) targets: BTreeMap<String, String>,
    pub(crate) first_failure: Option<Timestamp>,
    pub(crate) steps: Vec<Step>,
    pub(crate) end: End,
    /// Failures of an attempt beyond its first: copies of the event, each with retries of its own.
    pub(crate) copies: usize,
    /// The handler's lines about it, as they are.
    #[serde(skip)]
    pub(crate) lines: Vec<LoggedLine>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Step {
    pub(crate) at: Timestamp,
    #[serde(flatten)]
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum What {
    /// An attempt failed. Its failure reached the handler at this time.
    Failed {
        /// 0 for the first invocation, then the retry's number.
        attempt: u64,
        request_id: Option<String>,
        error_type: Option<String>,
        /// The text of its `RetryAfter`, if that was ignored, and why.
        retry_after_ignored: Option<String>,
    },
    /// It was given up before, and an operator sent it back: its retries start over.
    Redriven,
    Waits {
        retry: u64,
        due: Timestamp,
        due_by: DueBy,
        /// The entry of `POLICIES` in force; `None` if the stack's policy was.
        policy: Option<String>,
    },
    Held {
        retry: u64,
        last: Timestamp,
    },
    Invoked {
        retry: u64,
        request_id: Option<String>,
        /// Since it was due. Where something moved it forward: since it would have been due without that.
        late_ms: Option<u64>,
        /// What has moved it forward.
        early: Option<Early>,
        /// The entry of `POLICIES` in force; `None` if the stack's policy was.
        policy: Option<String>,
    },
    Kept {
        /// `None` if it waits for its due time or a pause, and could not be hidden.
        cause: Option<Cause>,
        problem: String,
        /// What an operator can do about it, where that is known.
        remedy: Option<String>,
    },
    GivenUp {
        reason: String,
        detail: Option<String>,
        /// The entry of `POLICIES` in force; `None` if the stack's policy was.
        policy: Option<String>,
    },
}

/// Why a retry came early: the order of a `comeback retry`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Early {
    pub(crate) asked_at: Timestamp,
    pub(crate) asked_by: Option<String>,
    /// When the retry would have been due without it.
    pub(crate) otherwise_due: Timestamp,
}

/// The state of the event's latest failure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub(crate) enum End {
    Waiting {
        due: Timestamp,
    },
    Held,
    /// It was invoked, and no line came since: a success leaves none.
    Invoked {
        request_id: Option<String>,
        at: Timestamp,
    },
    Kept,
    GivenUp,
}

impl Story {
    /// Puts the lines of one event in order; `None` if there are none.
    pub(crate) fn of(mut lines: Vec<LogLine<'_>>) -> Option<Self> {
        lines.sort_by_key(|line| line.timestamp);
        let events = || lines.iter().filter_map(|line| line.event.as_ref());
        let last = events().next_back()?;
        let (key, target) = (last.key.to_string(), last.target.to_string());
        // The first line that names an invocation counts: a redriven dead-letter keeps the id, and may change the
        // target.
        let targets = lines.iter().rev().filter_map(|line| Some((line.event.as_ref()?, &line.what)));
        let targets = targets.flat_map(|(event, what)| {
            let invoked = match what {
                Logged::Reinvoke { invoke_request_id, .. } => invoke_request_id.as_ref(),
                _ => None,
            };
            let ids = event.request_id.as_ref().into_iter().chain(invoked);
            ids.map(|id| (id.to_string(), event.target.to_string()))
        });
        let targets = targets.collect();
        let first_failure = events().map(|event| event.first_failure).min();
        let end = End::of(&lines)?;
        let mut teller = Teller::default();
        lines.into_iter().for_each(|line| teller.take(line));
        let Teller { steps, copies, .. } = teller;
        Some(Self { key, target, targets, first_failure, steps, end, copies, lines: Vec::new() })
    }

    /// The ids of the event's invocations, each once, in order.
    pub(crate) fn request_ids(&self) -> impl Iterator<Item = &str> {
        let mut seen = BTreeSet::new();
        let ids = self.steps.iter().filter_map(|step| match &step.what {
            What::Failed { request_id, .. } | What::Invoked { request_id, .. } => request_id.as_deref(),
            _ => None,
        });
        ids.filter(move |id| seen.insert(*id))
    }
}

#[derive(Default)]
struct Teller {
    steps: Vec<Step>,
    /// Attempts that were seen to fail: the number of the next retry, and the attempt's own request id.
    failed: BTreeSet<(u64, Option<String>)>,
    copies: usize,
}

impl Teller {
    fn take(&mut self, line: LogLine<'_>) {
        let LogLine { timestamp: at, event: Some(event), what, .. } = line else { return };
        self.failure(at, &event);
        let LoggedEvent { retry, policy, .. } = event;
        let policy = policy.map(Into::into);
        let what = match what {
            Logged::Keep { cause, failure: Some(failure), .. } => What::kept(Some(cause), failure),
            Logged::Defer { failure: Some(failure), .. } | Logged::Hold { failure: Some(failure), .. } => {
                What::kept(None, failure)
            }
            Logged::Defer { due, due_by, .. } => What::Waits { retry, due, due_by, policy },
            Logged::Hold { .. } => What::Held { retry, last: at },
            Logged::Reinvoke { due, invoke_request_id, early } => {
                let early = early.map(Early::from);
                let due = early.as_ref().map_or(due, |early| early.otherwise_due);
                let late_ms = u64::try_from(at.since(due).as_millis()).ok();
                What::Invoked { retry, request_id: invoke_request_id.map(Into::into), late_ms, early, policy }
            }
            Logged::DeadLetter { reason, detail, .. } => {
                What::GivenUp { reason: reason.name().into(), detail: Some(detail.into()), policy }
            }
            // The wait after a step that did not work goes on.
            Logged::Keep { failure: None, .. } => return,
        };
        // A later check knows the due time better: it counts from the message's first receive.
        let is_later_check = match (self.steps.last().map(|step| &step.what), &what) {
            (Some(What::Held { retry: known, .. }), What::Held { .. })
            | (Some(What::Waits { retry: known, .. }), What::Waits { .. }) => *known == retry,
            _ => false,
        };
        match self.steps.last_mut().filter(|_| is_later_check) {
            Some(step) => step.what = what,
            None => self.steps.push(Step { at, what }),
        }
    }

    /// Every line of a message says which attempt failed; only the first makes a step.
    fn failure(&mut self, at: Timestamp, event: &LoggedEvent<'_>) {
        let Some(attempt) = event.retry.checked_sub(1) else { return };
        let was_given_up = matches!(self.steps.last(), Some(Step { what: What::GivenUp { .. }, .. }));
        let starts_anew = was_given_up && attempt == 0;
        if starts_anew {
            self.failed.clear();
        }
        let is_copy = self.failed.iter().any(|(retry, _)| *retry == event.retry);
        let request_id = event.request_id.as_deref().map(ToOwned::to_owned);
        if self.failed.insert((event.retry, request_id.clone())) {
            self.copies += usize::from(is_copy);
            let error_type = event.error_type.as_deref().map(Into::into);
            let retry_after_ignored = event.retry_after_ignored.as_deref().map(Into::into);
            let failed = What::Failed { attempt, request_id, error_type, retry_after_ignored };
            let what = if starts_anew { What::Redriven } else { failed };
            self.steps.push(Step { at, what });
        }
    }
}

impl What {
    fn kept(cause: Option<Cause>, LoggedFailure { problem, remedy }: LoggedFailure<'_>) -> Self {
        Self::Kept { cause, problem: problem.into(), remedy: remedy.map(Into::into) }
    }
}

impl From<LoggedEarly<'_>> for Early {
    fn from(LoggedEarly { otherwise_due, asked_at, asked_by }: LoggedEarly<'_>) -> Self {
        Self { asked_at, asked_by: asked_by.map(Into::into), otherwise_due }
    }
}

impl End {
    /// `None` without a line. Lines of an earlier failure may be missing, so only the latest counts, with its copies.
    fn of(lines: &[LogLine<'_>]) -> Option<Self> {
        let mut log = LogFold::new(RandomState::new());
        lines.iter().for_each(|line| log.take(line));
        let number = |event: &LoggedEvent<'_>| (event.first_failure, event.retry);
        let latest = lines.iter().filter_map(|line| line.event.as_ref()).map(number).max()?;
        let about =
            lines.iter().filter(|line| line.event.as_ref().is_some_and(|event| number(event) == latest));
        let waiting = about.clone().filter_map(|line| match log.state_of(line.event.as_ref()?)? {
            MessageState::Waiting(message) => Some(message),
            MessageState::Settled => None,
        });
        if let Some(message) = waiting.max_by_key(|message| message.at) {
            return Some(match message.waits_for {
                WaitsFor::Due { due, .. } => Self::Waiting { due },
                WaitsFor::Resume => Self::Held,
                WaitsFor::NextTry { .. } => Self::Kept,
            });
        }
        let settling = about.rev().find(|line| line.what.settles())?;
        Some(match &settling.what {
            Logged::Reinvoke { invoke_request_id, .. } => {
                let request_id = invoke_request_id.as_deref().map(Into::into);
                Self::Invoked { request_id, at: settling.timestamp }
            }
            _ => Self::GivenUp,
        })
    }
}

/// One event's life, as far as the logs show it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Trace {
    #[serde(flatten)]
    pub(crate) story: Story,
    /// What the target's log has of its invocations, in their order: of the last one, or of all with `logs`.
    pub(crate) invocations: Vec<Invocation>,
    /// Whether its function is paused now; `None` if that is not known, or if the event does not wait.
    pub(crate) pause: Option<InForce>,
    /// Why that is not known of an event that waits.
    pub(crate) pause_unknown: Option<String>,
    /// What happens to it, if its function is not on the allow-list; `None` also if it does not wait.
    pub(crate) not_allowed: Option<Unlisted>,
    /// The handler, in whose account and region commands take names.
    #[serde(skip)]
    pub(crate) home: FunctionArn,
}

/// The logs of a deployment: the handler's, and its targets'.
pub(crate) struct Logs<'a> {
    pub(crate) account: &'a Account,
    pub(crate) deployment: &'a Deployment,
    pub(crate) since: Timestamp,
    /// Hears how many lines were found so far.
    pub(crate) progress: &'a dyn Fn(usize),
}

impl Trace {
    /// Finds an event by its key, or by the request id of one of its invocations. With `all_lines`, all that its
    /// invocations wrote is read too.
    pub(crate) async fn find(logs: &Logs<'_>, id: &str, all_lines: bool) -> Result<Self, Failure> {
        let Logs { account, deployment, since, .. } = *logs;
        let story = logs.story(id).await?.ok_or_else(|| {
            Failure::CouldNot(format!(
                "no line in {} since {since} has {id}, so Comeback knows of no failure: the event succeeded at once, \
                 or failed just now (its first failure is logged after some seconds, or a minute if its function is \
                 throttled)",
                deployment.log_group
            ))
        })?;
        let asked: Vec<String> = match (&story.end, all_lines) {
            (_, true) => story.request_ids().map(ToOwned::to_owned).collect(),
            (End::Invoked { request_id: Some(id), .. }, false) => vec![id.clone()],
            (_, false) => Vec::new(),
        };
        let mut invocations = Vec::new();
        for request_id in asked {
            let target = story.targets.get(&request_id).unwrap_or(&story.target);
            invocations.push(logs.invocation(target, &request_id, all_lines).await?);
        }
        let waits = matches!(story.end, End::Waiting { .. } | End::Held | End::Kept);
        let pause =
            if waits { in_force(account, deployment, &story.target).await.map(Some) } else { Ok(None) };
        // The log is known even if the pauses cannot be read.
        let pause_unknown = pause.as_ref().err().map(ToString::to_string);
        let policies = deployment.policies().ok().filter(|_| waits);
        let not_allowed = policies.and_then(|policies| Unlisted::of(&policies, &story.target));
        let (pause, home) = (pause.unwrap_or_default(), deployment.handler_arn.clone());
        Ok(Self { story, invocations, pause, pause_unknown, not_allowed, home })
    }
}

async fn in_force(account: &Account, deployment: &Deployment, target: &str) -> Result<InForce, Failure> {
    let pauses = read_pauses(account, deployment).await?.unwrap_or_default();
    Ok(InForce::of(&pauses, target, noticed_within(deployment).unwrap_or_default(), now()))
}

impl Logs<'_> {
    /// What the handler's log says of the event that an id belongs to: its key, one of its request ids, or the id of a
    /// message. `None` if no line names the id.
    pub(crate) async fn story(&self, id: &str) -> Result<Option<Story>, Failure> {
        let Self { account, deployment, since, progress } = *self;
        let search = async |term: &str| {
            let found = Search { group: &deployment.log_group, term, since, until: None, stream: None };
            let events = found.run(account, progress).await?.into_iter();
            let lines = events.filter_map(|event| Some((event_line(&event.message)?, event)));
            Ok::<_, Failure>(lines.collect::<Vec<_>>())
        };
        let mut lines = search(id).await?;
        lines.retain(|(line, _)| names(line, id));
        let key_of = |line: &LogLine<'_>| line.event.as_ref().map(|event| event.key.to_string());
        let keys: BTreeSet<String> = lines.iter().filter_map(|(line, _)| key_of(line)).collect();
        if keys.len() > 1 {
            let keys = keys.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Failure::CouldNot(format!("{id} matches several events: {keys}")));
        }
        if let Some(key) = keys.first().filter(|key| *key != id) {
            lines = search(key).await?;
            lines.retain(|(line, _)| key_of(line).as_ref() == Some(key));
        }
        let (lines, events): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
        let events = events.into_iter().map(|LogEvent { at, message, .. }| LoggedLine { at, line: message });
        Ok(Story::of(lines).map(|story| Story { lines: events.collect(), ..story }))
    }

    /// Reads what the log of a function has of a request: its report, and with `lines` all it wrote.
    pub(crate) async fn invocation(
        &self,
        function_arn: &str,
        request_id: &str,
        lines: bool,
    ) -> Result<Invocation, Failure> {
        let Self { account, since, .. } = *self;
        let request_id = request_id.to_owned();
        let found = async {
            let group = log_group(account, function_arn).await?;
            let search = Search { group: &group, term: &request_id, since, until: None, stream: None };
            let events = search.run(account, &|_| ()).await?;
            Ok::<_, Failure>((group, events))
        };
        let (group, events) = match found.await {
            Ok(found) => found,
            Err(refused @ Failure::Refused(_)) => return Err(refused),
            Err(why) => {
                let report = Report::Unread { why: why.to_string() };
                return Ok(Invocation { request_id, report, lines: Vec::new() });
            }
        };
        let mut logged = Vec::new();
        if let (true, Some(first), Some(last)) = (lines, events.first(), events.last()) {
            // Some lines do not name the request. But an environment serves one at a time, so all of its stream belongs
            // to it, from the first line that names it to the last.
            let (until, stream) = (Some(last.at), Some(&*first.stream));
            let all = Search { group: &group, term: "", since: first.at, until, stream };
            for LogEvent { at, message, .. } in all.run(account, &|_| ()).await? {
                logged.push(LoggedLine { at, line: message.trim_end().to_owned() });
            }
        }
        Ok(Invocation { report: report(&events, &request_id), request_id, lines: logged })
    }
}

/// What a target's log has of one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Invocation {
    pub(crate) request_id: String,
    pub(crate) report: Report,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) lines: Vec<LoggedLine>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LoggedLine {
    pub(crate) at: Timestamp,
    pub(crate) line: String,
}

/// The line that Lambda writes at the end of each invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "seen")]
pub(crate) enum Report {
    #[serde(rename = "yes")]
    Seen {
        at: Timestamp,
        /// `success`, `error`, `failure` or `timeout`, where the report says so.
        status: Option<String>,
    },
    /// It was not seen: the invocation has not begun or not ended, or its log came late.
    #[serde(rename = "no")]
    NotSeen,
    #[serde(rename = "unknown")]
    Unread { why: String },
}

/// Lambda writes it as text, `REPORT RequestId: …`, or as JSON, `{"type":"platform.report","record":{…}}`.
fn report(events: &[LogEvent], request_id: &str) -> Report {
    let of = |event: &LogEvent| {
        if let Some(rest) = event.message.strip_prefix("REPORT RequestId: ") {
            let status = rest.split('\t').find_map(|field| field.trim().strip_prefix("Status: "));
            return rest.starts_with(request_id).then(|| status.map(ToOwned::to_owned));
        }
        let line: Value = serde_json::from_str(&event.message).ok()?;
        let is_it = line["type"] == "platform.report" && line["record"]["requestId"] == request_id;
        is_it.then(|| line["record"]["status"].as_str().map(ToOwned::to_owned))
    };
    // An invocation that Lambda itself repeated has several; the last one counts.
    let seen = events.iter().rev().find_map(|event| Some((event.at, of(event)?)));
    seen.map_or(Report::NotSeen, |(at, status)| Report::Seen { at, status })
}

async fn log_group(account: &Account, function_arn: &str) -> Result<String, Failure> {
    let call = account.lambda.get_function_configuration().function_name(function_arn);
    let answer = call.send().await.or_failure("lambda:GetFunctionConfiguration", function_arn)?;
    Ok(function::log_group(answer.logging_config(), answer.function_name().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::operate::log::tests::test_line;

    /// A line of the event k-1, whose first attempt was r-0, at that second.
    fn line(second: u64, retry: u64, mut more: Value) -> LogLine<'static> {
        let known = more.as_object_mut().unwrap();
        known.insert("timestamp".into(), json!(Timestamp::from_secs(second)));
        known.insert("retry".into(), json!(retry));
        known.entry("request_id").or_insert(json!(format!("r-{}", retry - 1)));
        test_line(more)
    }

    fn defers(second: u64, retry: u64, due: u64) -> LogLine<'static> {
        let due = Timestamp::from_secs(due);
        line(second, retry, json!({"action": "defer", "due": due, "due_by": "policy", "delay": 60}))
    }

    fn invokes(second: u64, retry: u64, due: u64) -> LogLine<'static> {
        let (due, id) = (Timestamp::from_secs(due), format!("r-{retry}"));
        line(second, retry, json!({"action": "reinvoke", "due": due, "invoke_request_id": id}))
    }

    fn gives_up(second: u64, retry: u64) -> LogLine<'static> {
        let detail = "2 retries made";
        line(second, retry, json!({"action": "dead_letter", "reason": "max_retries", "detail": detail}))
    }

    fn event_of<'l>(line: &'l mut LogLine<'static>) -> &'l mut LoggedEvent<'static> {
        line.event.as_mut().unwrap()
    }

    fn story(lines: Vec<LogLine<'_>>) -> Story {
        Story::of(lines).unwrap()
    }

    fn steps(story: &Story) -> Vec<String> {
        let name =
            |step: &Step| serde_json::to_value(&step.what).unwrap()["what"].as_str().unwrap().to_owned();
        story.steps.iter().map(name).collect()
    }

    #[test]
    fn an_event_fails_waits_and_is_invoked() {
        let story = story(vec![invokes(13, 1, 12), defers(10, 1, 12), defers(20, 2, 30)]);
        assert_eq!(steps(&story), ["failed", "waits", "invoked", "failed", "waits"]);
        assert_eq!(story.end, End::Waiting { due: Timestamp::from_secs(30) });
        assert_eq!(story.request_ids().collect::<Vec<_>>(), ["r-0", "r-1"]);
        let What::Failed { attempt, error_type, .. } = &story.steps[3].what else { panic!("{story:?}") };
        assert_eq!((*attempt, error_type.as_deref()), (1, Some("TargetDown")));
        let What::Invoked { late_ms, .. } = story.steps[2].what else { panic!("{story:?}") };
        assert_eq!(late_ms, Some(1_000));
        assert_eq!(story.copies, 0);
    }

    /// It was due when it was requested, and the handler found the request at its next check.
    #[test]
    fn an_early_retry_is_late_only_after_its_own_time() {
        for (otherwise_due, expected) in [(20_000, 0), (1_000, 813_000)] {
            let early = json!({
                "action": "reinvoke", "due": Timestamp::from_secs(1_000), "asked_at": Timestamp::from_secs(1_000),
                "otherwise_due": Timestamp::from_secs(otherwise_due),
            });
            let story = story(vec![defers(10, 1, 20_000), line(1_813, 1, early)]);
            let What::Invoked { late_ms, .. } = story.steps[2].what else { panic!("{story:?}") };
            assert_eq!(late_ms, Some(expected));
        }
    }

    #[test]
    fn an_ignored_wait_is_named_with_its_failure() {
        let mut first = defers(10, 1, 90);
        event_of(&mut first).retry_after_ignored = Some("\"soon\": why".into());
        let story = story(vec![first]);
        let step = &story.steps[0];
        let What::Failed { retry_after_ignored, .. } = &step.what else { panic!("{step:?}") };
        assert_eq!(retry_after_ignored.as_deref(), Some("\"soon\": why"));
        let sentence = anstream::adapter::strip_str(&crate::operate::trace::sentence(step)).to_string();
        assert!(sentence.contains(", whose wait was ignored: \"soon\": why"), "{sentence}");
    }

    /// A change of policy while it waited.
    #[test]
    fn the_policy_of_the_last_check_gave_the_due_time() {
        let by = |mut line: LogLine<'static>, policy: &str| {
            event_of(&mut line).policy = Some(policy.to_owned().into());
            line
        };
        let story = story(vec![by(defers(10, 1, 90), "o*"), by(defers(60, 1, 70), "orders")]);
        let policy = Some("orders".to_owned());
        assert_eq!(
            story.steps[1].what,
            What::Waits { retry: 1, due: Timestamp::from_secs(70), due_by: DueBy::Policy, policy }
        );
    }

    /// All that is known after it: no line came.
    #[test]
    fn after_an_invocation_nothing_is_claimed() {
        let story = story(vec![defers(10, 1, 12), invokes(13, 1, 12)]);
        assert_eq!(story.end, End::Invoked { request_id: Some("r-1".into()), at: Timestamp::from_secs(13) });
    }

    /// The batch with the deferral ended later than the one with the re-invocation.
    #[test]
    fn a_late_line_does_not_make_a_settled_event_wait() {
        let story = story(vec![defers(10, 1, 12), invokes(13, 1, 12), defers(15, 1, 12)]);
        assert!(matches!(story.end, End::Invoked { .. }), "{:?}", story.end);
    }

    #[test]
    fn a_message_that_comes_back_early_waits_once() {
        let story = story(vec![defers(10, 1, 51), defers(20, 1, 50), defers(30, 1, 50), invokes(50, 1, 50)]);
        assert_eq!(steps(&story), ["failed", "waits", "invoked"]);
        assert_eq!(
            story.steps[1].what,
            What::Waits { retry: 1, due: Timestamp::from_secs(50), due_by: DueBy::Policy, policy: None }
        );
    }

    /// It was moved while it waited, which has no line of its own.
    #[test]
    fn an_invocation_alone_tells_the_failure_before_it() {
        let story = story(vec![invokes(50, 3, 50)]);
        assert_eq!(steps(&story), ["failed", "invoked"]);
        assert!(matches!(story.steps[0].what, What::Failed { attempt: 2, .. }));
    }

    #[test]
    fn a_pause_is_one_step_however_often_the_event_is_checked() {
        let hold =
            |second| line(second, 1, json!({"action": "hold", "due": Timestamp::from_secs(12), "delay": 60}));
        let held = story(vec![defers(10, 1, 12), hold(12), hold(1_356), hold(2_700)]);
        assert_eq!(steps(&held), ["failed", "waits", "held"]);
        assert_eq!(held.steps[2].what, What::Held { retry: 1, last: Timestamp::from_secs(2_700) });
        assert_eq!(held.end, End::Held);
    }

    #[test]
    fn a_step_that_did_not_work_has_its_remedy_beside_it() {
        let refused = json!({"action": "keep", "cause": "refused", "problem": "denied", "remedy": "allow it", "delay": 4});
        let kept = story(vec![defers(10, 1, 12), line(12, 1, refused)]);
        assert_eq!(steps(&kept), ["failed", "waits", "kept"]);
        assert_eq!(kept.end, End::Kept);
        // A dead-letter that could not be sent is not the end.
        let unsent = json!({"action": "keep", "cause": "dead_letter_not_sent", "reason": "max_retries", "problem": "denied"});
        assert_eq!(story(vec![line(12, 1, unsent)]).end, End::Kept);
    }

    #[test]
    fn a_dead_letter_is_the_end_until_it_is_redriven() {
        let end = story(vec![defers(10, 2, 12), gives_up(12, 3)]);
        assert_eq!(end.end, End::GivenUp, "its last re-invocation has no line");
        let redriven = |mut line: LogLine<'static>| {
            event_of(&mut line).first_failure = Timestamp::from_secs(700);
            line
        };
        let anew = [defers(90, 1, 91), invokes(91, 1, 91)].map(redriven);
        let anew = story([vec![defers(10, 2, 12), gives_up(12, 3)], anew.into()].concat());
        assert!(matches!(anew.end, End::Invoked { .. }), "{:?}", anew.end);
        assert_eq!(steps(&anew), ["failed", "waits", "failed", "given_up", "redriven", "waits", "invoked"]);
    }

    #[test]
    fn a_retargeted_event_has_invocations_of_both_functions() {
        let moved = |mut line: LogLine<'static>| {
            event_of(&mut line).target = "arn:g".into();
            line
        };
        let due = Timestamp::from_secs(91);
        let again = line(91, 1, json!({"action": "reinvoke", "due": due, "invoke_request_id": "r-7"}));
        let lines = vec![
            defers(10, 1, 12),
            invokes(13, 1, 12),
            gives_up(20, 2),
            moved(defers(90, 1, 91)),
            moved(again),
        ];
        let story = story(lines);
        assert_eq!(story.target, "arn:g");
        let targets = ["r-0", "r-1", "r-7"].map(|id| &*story.targets[id]);
        assert_eq!(targets, ["arn:orders", "arn:orders", "arn:g"]);
    }

    #[test]
    fn two_failures_of_one_attempt_are_copies() {
        let other = line(
            25,
            2,
            json!({"action": "defer", "due": Timestamp::from_secs(40), "due_by": "policy", "delay": 9, "request_id": "r-9"}),
        );
        let story = story(vec![defers(10, 1, 12), defers(20, 2, 30), other]);
        assert_eq!(story.copies, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_that_cannot_be_read_name_the_way_out() {
        let account = Account::answering(|operation, _| match operation {
            "GetParameter" => json!({"Parameter": {"Value": "garbled", "Version": 2}}),
            "GetParameterHistory" => {
                json!({"Parameters": [{"Value": r#"{"v":1,"pauses":[]}"#, "Version": 1}]})
            }
            other => panic!("{other} is not expected"),
        });
        let mut deployment = Deployment::sample();
        deployment.variables.insert("PAUSES".into(), "p".into());
        let failure = in_force(&account.await, &deployment, "arn:orders").await.unwrap_err().to_string();
        assert!(failure.contains("restore version 1, the last readable one: aws ssm"), "{failure}");
    }

    fn event(at: u64, message: &str) -> LogEvent {
        LogEvent { at: Timestamp::from_secs(at), stream: "s".into(), message: message.into() }
    }

    #[test]
    fn a_report_is_read_in_both_forms_of_lambdas_log() {
        let seen = |at, status: Option<&str>| Report::Seen {
            at: Timestamp::from_secs(at),
            status: status.map(ToOwned::to_owned),
        };
        let text = "REPORT RequestId: r-1\tDuration: 2.1 ms\tBilled Duration: 3 ms\t";
        let timeout = "REPORT RequestId: r-1\tDuration: 3000.00 ms\tStatus: timeout";
        let json = r#"{"time":"…","type":"platform.report","record":{"requestId":"r-1","status":"success"}}"#;
        assert_eq!(report(&[event(7, text)], "r-1"), seen(7, None));
        assert_eq!(report(&[event(7, timeout)], "r-1"), seen(7, Some("timeout")));
        assert_eq!(report(&[event(7, json)], "r-1"), seen(7, Some("success")));
        assert_eq!(report(&[event(7, timeout), event(9, json)], "r-1"), seen(9, Some("success")));
    }

    #[test]
    fn another_requests_report_and_other_lines_are_not_taken_for_it() {
        let others = [
            event(1, "START RequestId: r-1"),
            event(2, "REPORT RequestId: r-2\tafter r-1"),
            event(3, r#"{"type":"platform.report","record":{"requestId":"r-2"},"note":"r-1"}"#),
            event(4, r#"{"type":"platform.start","record":{"requestId":"r-1"}}"#),
        ];
        assert_eq!(report(&others, "r-1"), Report::NotSeen);
    }
}
