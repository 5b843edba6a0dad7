//! Requests from `comeback retry` and `comeback cancel`, which retry waiting events now or cancel them.
//!
//! A request is an entry in the SSM parameter that also holds the pauses. The handler applies it to each message that
//! it checks. Both commands recall messages that are hidden past their new due times. A cancelled event is
//! dead-lettered, and can still be redriven.

pub mod follow;
pub mod reach;
pub mod withdraw;

use std::time::Duration;

use comeback_engine::{
    LONGEST_REQUEST, LONGEST_UNANSWERED, LONGEST_WITHIN, MOST_KEYS, Pause, PauseTarget, Pauses, Policies,
    PolicyEntry, Recall, Request, RequestKind, Timestamp,
};
use serde::Serialize;

use crate::change::{Answer, Change, Completed, Performed, Plan, Question};
use crate::command::{Command, CommandName};
use crate::deployment::Deployment;
use crate::durations;
use crate::failure::Failure;
use crate::function::{FunctionName, command_name};
use crate::layout::Layout;
use crate::operator::Operator;
use crate::operator_line::{Activity, flag};
use crate::pauses::parameter::{PausesParameter, WrittenEdit};
use crate::pauses::requests::RequestInForce;
use crate::pauses::{self, forgotten_note, holds, named, noticed_within, read_text, target_name};
use crate::recall::{Recalled, recall};
use crate::request::reach::Reach;
use crate::text;
use crate::text::{Text, quoted};
use crate::waiting::filter::WaitingFilter;
use crate::waiting::reading::{LogQuery, Reading};

/// A [`Change`] that writes a request, either to retry waiting events now or to cancel them.
#[derive(Clone, Debug)]
pub struct RequestEvents {
    /// The requested action.
    pub kind: RequestKind,
    /// The time over which the handler spreads the retries, in whole seconds. A cancel request ignores it.
    pub within: Duration,
    /// The function whose events are retried or cancelled, or `None` for every function.
    pub function: Option<FunctionName>,
    /// A glob pattern for the error's type, or `None` for any error.
    pub error: Option<String>,
    /// The keys of the events to retry or cancel: at most [`MOST_KEYS`], or none for all events. A cancellation by
    /// key also applies to events that fail later.
    pub keys: Vec<String>,
    /// The reason for the request, if the operator gave one.
    pub why: Option<String>,
}

/// The plan for a [`RequestEvents`].
#[derive(Clone, Debug, Serialize)]
pub struct RequestPlan {
    /// The request as it was written to the SSM parameter; `None` while it is only planned.
    requested: Option<RequestInForce>,
    #[serde(flatten)]
    reach: Reach,
    /// Within this time, the handler checks every message that the request can affect.
    checked_within_seconds: u64,
    noticed_within_seconds: Option<u64>,
    notes: Vec<Text>,
    /// The outcome of the recall, or `None` if no message was recalled.
    result: Option<Recalled>,
    #[serde(skip)]
    target: PauseTarget,
    #[serde(skip)]
    wanted: WaitingFilter,
    #[serde(skip)]
    kind: RequestKind,
    #[serde(skip)]
    within: Duration,
    /// The time when planning began.
    #[serde(skip)]
    begin: Timestamp,
    /// True if the log shows every waiting event, and the request would neither cancel an event nor bring one forward.
    #[serde(skip)]
    is_useless: bool,
    #[serde(skip)]
    deployment: Deployment,
}

impl Change for RequestEvents {
    type Plan = RequestPlan;
    type Done = Completed<RequestPlan>;

    async fn plan(&self, operator: &Operator) -> Result<RequestPlan, Failure> {
        let deployment = operator.deployment().await?;
        operator.interrupt.or(self.plan_of(operator, deployment)).await
    }

    /// Writes the request and recalls messages. The plan cannot be out of date, because the request applies to all
    /// events that have failed by now. More messages may therefore be recalled than the plan shows.
    async fn perform(&self, operator: &Operator, _: &RequestPlan) -> Result<Performed<Self>, Failure> {
        let plan = self.plan(operator).await?;
        let RequestPlan { deployment, target, wanted, reach, .. } = &plan;
        let parameter = PausesParameter::of(&operator.account, deployment)?;
        let policies = policies(deployment)?;
        // A handler that has not read the request yet may hide a message again.
        let hidden = reach.hidden.max(longest_hiding(&policies, target));
        let request = self.request(operator, target.clone(), operator.now(), hidden, &policies);
        let is_in = |pauses: &Pauses| pauses.requests().any(|it| *it == request);
        let make = |pauses: &Pauses| Ok(pauses.with_request(&request));
        let WrittenEdit { forgotten, checked } = parameter.edit(request.at, make, is_in).await?;
        let (result, end) = match checked {
            Ok(()) => {
                let entry = Recall::Request(&request);
                recall(operator, deployment, wanted, entry, reach.recalled).await
            }
            Err(failure) => (None, Err(failure)),
        };
        let plan = RequestPlan { requested: Some(RequestInForce(request)), result, ..plan };
        let notes = forgotten_note(&forgotten).into_iter().collect();
        Ok(Performed::Done(Completed { plan, notes }, end))
    }

    fn activity(&self, done: &Completed<RequestPlan>) -> Option<Activity> {
        Some(Activity {
            what: self.kind.name().into(),
            flags: self.flags(),
            functions: vec![done.plan.target.to_string()],
            keys: self.keys.clone(),
            count: Some(done.plan.reach.reached),
            why: self.why.clone(),
        })
    }
}

impl RequestEvents {
    /// The request's time span and error pattern, written as flags, such as `--within=10m`.
    fn flags(&self) -> Vec<String> {
        let within = || flag("within", &durations::flag(self.within));
        let within = (self.kind == RequestKind::Retry).then(within);
        within.into_iter().chain(self.error.as_ref().map(|error| flag("error", error))).collect()
    }

    async fn plan_of(&self, operator: &Operator, deployment: Deployment) -> Result<RequestPlan, Failure> {
        let account = &operator.account;
        let function = self.function.as_ref();
        let begin = operator.now();
        let parameter = PausesParameter::of(account, &deployment)?;
        let policies = policies(&deployment)?;
        let target = pauses::retried_target(&deployment, function)?;
        if self.keys.len() > MOST_KEYS {
            return Err(Failure::refused(format!("a request names at most {MOST_KEYS} keys; make several")));
        }
        // A request that does not fit in the parameter is refused before the log is read.
        let pauses = parameter.read().await?;
        let request = self.request(operator, target.clone(), begin, LONGEST_REQUEST, &policies);
        let pauses = pauses.with_request(&request).fitted(begin)?.0;
        let wanted = WaitingFilter {
            functions: function.into_iter().cloned().collect(),
            error: self.error.clone(),
            keys: self.keys.clone(),
        };
        let scope = LogQuery { handles: true, ..LogQuery::of(&wanted) };
        let reading = Reading::read(operator, deployment.clone(), scope, begin).await?;
        let errors = reading.unmatched(operator, scope, begin).await;
        let reach = Reach::of(&reading.waits, &deployment, &pauses, Recall::Request(&request));
        let is_complete = reading.is_complete(begin);
        let unknown = if is_complete { Duration::ZERO } else { longest_hiding(&policies, &target) };
        let hidden = reach.hidden.max(unknown);
        let mut notes = reading.notes_on_all(begin);
        // A cancelled event needs no invocation, so no pause holds it.
        let pause = pauses.iter().find(|pause| holds(pause, &target, begin));
        let pause = pause.filter(|_| self.kind != RequestKind::Cancel);
        notes.extend(pause.map(|pause| paused_note(pause, &deployment)));
        Ok(RequestPlan {
            requested: None,
            checked_within_seconds: hidden.as_secs(),
            noticed_within_seconds: noticed_within(&deployment).map(|noticed| noticed.as_secs()),
            notes,
            result: None,
            target,
            kind: self.kind,
            within: self.within,
            begin,
            // A request to cancel by key also applies to later failures.
            is_useless: is_complete
                && !reach.brings_forward
                && (self.kind != RequestKind::Cancel || self.keys.is_empty()),
            reach: Reach { hidden, unmatched: self.error.clone().zip(errors), ..reach },
            wanted,
            deployment,
        })
    }

    /// Returns the request to write, made at time `at`. Its end depends on `hidden`, the longest time that a message is
    /// hidden. A cancellation by key always has the maximum lifetime.
    fn request(
        &self,
        operator: &Operator,
        target: PauseTarget,
        at: Timestamp,
        hidden: Duration,
        policies: &Policies,
    ) -> Request {
        let within = if self.kind == RequestKind::Retry { self.within.as_secs() } else { 0 };
        let request = Request {
            kind: self.kind,
            target,
            at: at.rounded_up_to_secs(),
            millis: at.as_millis() % 1_000,
            within: Duration::from_secs(within),
            errors: self.error.iter().cloned().collect(),
            keys: self.keys.clone(),
            by: Some(operator.account.place.user().to_owned()),
            why: self.why.clone(),
            until: None,
            withdrawn: false,
        };
        match self.kind {
            RequestKind::Cancel if request.names_keys() => request,
            _ => request.with_end(hidden, policies.stack().settings().maximum_concurrency),
        }
    }
}

/// The default time over which a request spreads the retries.
pub const DEFAULT_WITHIN: Duration = Duration::from_secs(600);

/// Parses the time over which a request spreads the retries.
///
/// # Errors
///
/// Fails if the text is not a duration, or if the duration is longer than 11 hours.
pub fn read_within(text: &str) -> Result<Duration, String> {
    let within = durations::read(text)?;
    if within <= LONGEST_WITHIN {
        return Ok(within);
    }
    Err("must be at most 11h, so that the handler has checked every event before the request ends".into())
}

/// Validates a glob for error types, and returns it.
///
/// # Errors
///
/// Fails if the glob is empty or contains `{{`, which SSM refuses.
pub fn read_error(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("must be an error type such as Timeout*; omit --error for every error".into());
    }
    read_text(text)
}

/// Validates an event's key, and returns it.
///
/// # Errors
///
/// Fails if the key is empty or contains `{{`, which SSM refuses.
pub fn read_key(text: &str) -> Result<String, String> {
    if text.is_empty() {
        let waiting = Command::new(CommandName::Waiting, ["--each"], "");
        Err(format!("must be an event's key: {waiting} lists them"))
    } else {
        read_text(text)
    }
}

/// Parses the handler's retry policies. Fails if the handler would refuse its settings, or if the allow-list is
/// empty.
fn policies(deployment: &Deployment) -> Result<Policies, Failure> {
    let policies = deployment.policies().map_err(|refused| {
        let refused = refused.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Failure::undone(format!("handler {} does not start: {refused}", deployment.handler))
    })?;
    if policies.stack().keeps_everything() {
        let what = "the allow-list is empty, so the handler retries nothing; attach a function first";
        return Err(Failure::undone(what));
    }
    Ok(policies)
}

/// The longest time for which the handler may have hidden a message that is missing from the log.
fn longest_hiding(policies: &Policies, target: &PauseTarget) -> Duration {
    let is_theirs = |entry: &&PolicyEntry| match target {
        PauseTarget::All => true,
        PauseTarget::Functions(function) => {
            let arn = function.to_string();
            // An entry with a qualifier covers only one alias or version of the function.
            let qualifier = entry.pattern().rsplit(':').next().unwrap_or_default();
            entry.is_about(&arn) || entry.is_about(&format!("{arn}:{qualifier}"))
        }
    };
    let entries = policies.entries().iter().filter(is_theirs).map(PolicyEntry::policy);
    let ceilings = entries.chain([policies.stack()]).map(|policy| policy.backoff().cap());
    ceilings.fold(LONGEST_UNANSWERED, Duration::max)
}

fn paused_note(pause: &Pause, deployment: &Deployment) -> Text {
    let target = pause.target.to_string();
    let which = match pause.target {
        PauseTarget::All => "--all".into(),
        PauseTarget::Functions(_) => command_name(&target, &deployment.handler_arn),
    };
    text![
        format!("{} has been paused since ", target_name(&target)),
        pause.from,
        "; end that first: ",
        deployment.command(CommandName::Resume, [which]),
    ]
}

impl Plan for RequestPlan {
    /// Identifies the plan by its target, errors and keys, but not by the number of events.
    fn identity(&self) -> String {
        format!("{:?}", (&self.target, &self.wanted.error, &self.wanted.keys))
    }

    fn question(&self) -> Option<Question> {
        let question = match self.kind {
            RequestKind::Retry => format!("retry these within {}?", durations::text(self.within)),
            RequestKind::Cancel => "cancel these?".into(),
        };
        (!self.is_useless).then(|| Question::new(question))
    }

    fn log_group(&self) -> &str {
        &self.deployment.log_group
    }
}

impl Answer for RequestPlan {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        let name = named(self.wanted.functions.first());
        layout.line(format!("{name}: {}", self.reach.in_words(self.kind)));
        let due = match self.kind {
            RequestKind::Retry => {
                format!("within {} of it, and never later than without it", durations::text(self.within))
            }
            RequestKind::Cancel => "at once, and is dead-lettered as cancelled".into(),
        };
        let paused = "held by a pause: resume, then retry again";
        let lines = self.reach.lines(self.noticed_within_seconds, &due, paused);
        lines.into_iter().for_each(|line| layout.line(line));
        if self.kind == RequestKind::Cancel && !self.wanted.keys.is_empty() {
            layout.line("Failures of these events in the next 25h are dead-lettered too.");
        }
        self.notes.iter().for_each(|note| layout.line(note));
        if self.is_useless {
            layout.line("Nothing was requested.");
        }
        layout
    }
}

impl Answer for Completed<RequestPlan> {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        let waiting = quoted(self.plan.deployment.command(CommandName::Waiting, [""; 0]));
        let at = self.plan.requested.as_ref().map_or(self.plan.begin, |it| it.0.at);
        layout.line(text!["Requested at ", at, ". ", waiting, " shows what is left."]);
        self.plan.result.iter().flat_map(Recalled::lines).for_each(|line| layout.line(line));
        self.notes.iter().for_each(|note| layout.note(note));
        layout
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::aws::simulated::{Sample, SimulatedAws, function_arn};
    use crate::change::tests::plain;
    use crate::deployment::find::Which;
    use crate::log::test_line;
    use crate::request::withdraw::WithdrawRequests;

    const NOW: Timestamp = Timestamp::from_secs(1_789_400_000);
    const TEN_MINUTES: Duration = Duration::from_secs(600);

    pub(crate) fn sample() -> (SimulatedAws, Operator) {
        let aws = Sample { is_attached: true, ..Sample::new(NOW) }.build();
        let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
        (aws, operator)
    }

    pub(crate) fn writes(aws: &SimulatedAws, key: &str, fields: Value) {
        let now = aws.time();
        let mut line = json!({"timestamp": now, "key": key, "target": function_arn("orders")});
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let line = serde_json::to_string(&test_line(line)).unwrap();
        aws.state().log_groups.get_mut(Sample::LOG_GROUP).unwrap().write(now, "s", line);
    }

    /// Logs a moved message, which the handler checks every 15 minutes.
    pub(crate) fn moves(aws: &SimulatedAws, key: &str) {
        let due = aws.time().saturating_add(Duration::from_secs(30_000));
        writes(aws, key, json!({"action": "defer", "due": due, "due_by": "policy", "delay": 900}));
    }

    pub(crate) fn request() -> RequestEvents {
        let (error, why) = (None, Some("deploy 4712".into()));
        let function = Some("orders".parse().unwrap());
        let (kind, within) = (RequestKind::Retry, TEN_MINUTES);
        RequestEvents { kind, within, function, error, keys: Vec::new(), why }
    }

    pub(crate) fn plan(reach: Reach) -> RequestPlan {
        RequestPlan {
            requested: None,
            checked_within_seconds: reach.hidden.as_secs(),
            noticed_within_seconds: Some(38),
            notes: vec!["a note".into()],
            result: None,
            target: PauseTarget::All,
            wanted: WaitingFilter { functions: vec!["orders".parse().unwrap()], ..WaitingFilter::default() },
            kind: RequestKind::Retry,
            within: TEN_MINUTES,
            begin: NOW,
            is_useless: !reach.brings_forward,
            reach,
            deployment: Deployment::sample(),
        }
    }

    #[tokio::test]
    async fn request_is_written_watched_and_withdrawn() {
        let (aws, operator) = sample();
        moves(&aws, "k-1");
        let retries = request();
        let plan = retries.plan(&operator).await.unwrap();
        assert_eq!(plan.question().unwrap().text, "retry these within 10m?");
        let before = serde_json::to_value(&plan).unwrap();
        assert_eq!((&before["requested"], &before["reached"]), (&json!(null), &json!(1)));
        aws.advance(Duration::from_secs(3));
        let Ok(Performed::Done(requested, Ok(()))) = retries.perform(&operator, &plan).await else {
            panic!("not done")
        };
        let at = NOW.saturating_add(Duration::from_secs(3));
        let expected = format!("Requested at {at}. `comeback waiting` shows what is left.\n");
        assert_eq!(plain(&requested), expected);
        let after = serde_json::to_value(&requested).unwrap();
        assert_eq!(
            (&after["requested"]["at"], &after["requested"]["why"]),
            (&json!(at), &json!("deploy 4712"))
        );
        let members = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(members(&after), members(&before), "docs/json.md has them once");

        let id = json!({"action": "reinvoke", "due": at, "invoke_request_id": "r-1"});
        aws.advance(Duration::from_secs(60));
        writes(&aws, "k-1", id);
        let mut lines = Vec::new();
        let say = |line: Text| {
            lines.push(line.to_string());
            Ok::<_, Failure>(())
        };
        assert!(requested.can_be_followed());
        requested.follow(&operator, say).await.unwrap();
        let last = lines.last().unwrap();
        assert!(lines.len() == 1 && last.ends_with("Z  1 of 1 retried"), "{lines:?}");

        let withdraw = |function: Option<&str>| {
            let function = function.map(|name| name.parse().unwrap());
            WithdrawRequests { function, kind: RequestKind::Retry }
        };
        let all = withdraw(None).plan(&operator).await.unwrap();
        let list =
            "no retry request for every function is in force; `comeback pause --list` shows the others";
        assert_eq!((all.end().unwrap_err().to_string(), all.question()), (list.into(), None));
        let orders = withdraw(Some("orders"));
        let plan = orders.plan(&operator).await.unwrap();
        assert!(plain(&plan).starts_with("retry now: orders, requested at "), "{}", plain(&plan));
        let Ok(Performed::Done(withdrawn, Ok(()))) = orders.perform(&operator, &plan).await else {
            panic!("not done")
        };
        let said = plain(&withdrawn);
        let expected = "orders: 1 retry request was withdrawn; events not reached yet keep their own due times\n\
                        Takes effect within 38s; until then, the handler may still retry.\n";
        assert_eq!(said, expected);
        let Ok(Performed::Outdated(again)) = orders.perform(&operator, &plan).await else {
            panic!("still in force")
        };
        assert!(again.question().is_none() && again.end().is_err());
    }

    /// Resuming the function would retry the events that the operator wants to cancel.
    #[tokio::test]
    async fn a_cancel_does_not_advise_to_resume() {
        let (aws, operator) = sample();
        moves(&aws, "k-1");
        let paused = r#"{"v":1,"pauses":[{"target":"*","from":1700000000,"until":null,"spread":0}]}"#;
        let opened = operator.account.aws.put_parameter(Sample::PAUSES, paused, true).await;
        assert!(opened.unwrap().is_some());
        let retry = request();
        let cancel = RequestEvents { kind: RequestKind::Cancel, ..retry.clone() };
        let said = async |asked: RequestEvents| plain(&asked.plan(&operator).await.unwrap());
        let (retry, cancel) = (said(retry).await, said(cancel).await);
        assert!(retry.contains("end that first: comeback resume"), "{retry}");
        assert!(
            cancel.contains("1 waiting event will be cancelled") && !cancel.contains("resume"),
            "{cancel}"
        );
    }

    #[tokio::test]
    async fn request_that_brings_nothing_forward_is_not_made() {
        let (aws, operator) = sample();
        let planned = async || request().plan(&operator).await.unwrap();
        let useless = planned().await;
        assert_eq!((useless.question(), useless.end()), (None, Ok(())));
        let last = useless.layout().0.pop();
        assert_eq!(last, Some(crate::layout::Block::Line("Nothing was requested.".into())));
        // The queue now has a message that the log does not show.
        aws.queue(Sample::RETRY_QUEUE).send(NOW, Duration::ZERO, crate::aws::NewMessage::default());
        assert!(planned().await.question().is_some());
    }

    #[tokio::test]
    async fn request_for_a_function_that_is_not_retried_is_refused() {
        let (_, operator) = sample();
        let other = RequestEvents { function: Some("billing".parse().unwrap()), ..request() };
        let refused = other.plan(&operator).await.unwrap_err().to_string();
        assert!(refused.starts_with("TARGET_FUNCTIONS does not allow "), "{refused}");
        let long = RequestEvents { why: Some("x".repeat(5_000)), ..request() };
        let refused = long.plan(&operator).await.unwrap_err().to_string();
        assert!(refused.contains("the parameter holds 4096: shorten the reasons"), "{refused}");
    }

    #[test]
    fn equal_requests_of_one_second_differ() {
        let (_, operator) = sample();
        let policies = Deployment::sample().policies().unwrap();
        let made = |millis| {
            let at = Timestamp::from_millis(NOW.as_millis() + millis);
            request().request(&operator, PauseTarget::All, at, TEN_MINUTES, &policies)
        };
        let (one, other) = (made(1), made(2));
        let pauses = Pauses::default().with_request(&one).with_request(&other);
        let read = Pauses::read(&pauses.write()).unwrap();
        assert_eq!(one.at, other.at);
        assert_ne!(one, other);
        assert_eq!(read.requests().collect::<Vec<_>>(), [&one, &other]);
    }

    #[test]
    fn handler_that_retries_nothing_is_refused() {
        let mut deployment = Deployment::sample();
        assert!(policies(&deployment).is_ok());
        deployment.variables.insert("TARGET_FUNCTIONS".into(), String::new());
        let refused = policies(&deployment).unwrap_err().to_string();
        assert!(refused.starts_with("the allow-list is empty"), "{refused}");
        deployment.variables.insert("MAX_AGE".into(), "30".into());
        let refused = policies(&deployment).unwrap_err().to_string();
        assert!(refused.starts_with("handler retry-handler does not start: MAX_AGE is 30 s"), "{refused}");
    }

    #[test]
    fn longest_policy_that_can_match_stands_in_for_the_log() {
        let hours = |policies: &str, target: &str| {
            let mut deployment = Deployment::sample();
            deployment.variables.insert("POLICIES".into(), policies.into());
            let target = target.replace("orders", "arn:aws:lambda:eu-west-1:123456789012:function:orders");
            longest_hiding(&deployment.policies().unwrap(), &target.parse().unwrap()).as_secs() / 3_600
        };
        let policies = "export BACKOFFS=20s,9h; orders:live MAX_BACKOFF=5h; o* MAX_BACKOFF=4h";
        assert_eq!(hours("", "orders"), 2, "an unanswered call");
        assert_eq!(hours(policies, "orders"), 5);
        assert_eq!(hours(policies, "orders:live"), 5);
        assert_eq!(hours(policies, "orders:dev"), 4);
        assert_eq!(hours(policies, "*"), 9);
    }

    #[test]
    fn plan_names_count_and_time() {
        let reach = Reach {
            found: 1_210,
            reached: 1_204,
            recalled: 1_200,
            moved: 4,
            hidden: Duration::from_secs(3_600),
            half_within_seconds: Some(2_100),
            all_within_seconds: Some(4_200),
            retry_after: 4,
            last_retry: 2,
            brings_forward: true,
            ..Reach::default()
        };
        let expected = "\
orders: 1,204 of 1,210 waiting events will be retried, all within 1h 10m, half within 35m
  not recalled: 4 events, sent again with a delay: the handler finds the request within 15m
  not recalled: 4 events, which wait because their function asked for it (RetryAfter)
  not recalled: 2 events, with only one retry left (MAX_RETRIES)
1,200 messages are recalled once the handler has read the request (38s): each returns within 10m of it, and never \
later than without it.
a note
";
        assert_eq!(plain(&plan(reach)), expected);
    }

    #[test]
    fn plan_that_reaches_nothing_says_why() {
        let mistyped = Some(("Zzz*".into(), "TargetDown (3), Timeout (1)".into()));
        let end = "\na note\nNothing was requested.\n";
        assert_eq!(
            plain(&plan(Reach { unmatched: mistyped, ..Reach::default() })),
            "orders: no event has an error that matches Zzz*; the errors are: TargetDown (3), Timeout (1)"
                .to_owned()
                + end
        );
        let due = Reach { found: 4, reached: 4, all_within_seconds: Some(3_261), ..Reach::default() };
        assert_eq!(
            plain(&plan(due)),
            "orders: nothing to speed up: these 4 events return when they are due anyway (within 54m 21s)"
                .to_owned()
                + end
        );
    }

    #[test]
    fn pause_is_named_as_the_operator_names_it() {
        let read = |target: &str| {
            let pause = format!(r#"{{"target":"{target}","from":1700000000,"until":null,"spread":0}}"#);
            Pauses::read(&format!(r#"{{"v":1,"pauses":[{pause}]}}"#)).unwrap()
        };
        let now = Timestamp::from_secs(1_700_000_060);
        let orders = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
        let deployment = Deployment { stack: Some("shop".into()), ..Deployment::sample() };
        let said = |pauses: &Pauses| {
            let pause = pauses.iter().find(|pause| holds(pause, &orders.parse().unwrap(), now));
            paused_note(pause.unwrap(), &deployment).to_string()
        };
        let rest = "has been paused since 2023-11-14T22:13:20.000Z; end that first: comeback resume";
        assert_eq!(said(&read(orders)), format!("orders {rest} orders --stack shop"));
        assert_eq!(said(&read("*")), format!("every function {rest} --all --stack shop"));
    }
}
