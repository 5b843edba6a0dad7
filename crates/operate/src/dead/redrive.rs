//! Redrives dead-letters: sends their events back to the retry queue, as if they had never been retried.

use comeback_engine::{ReasonCode, Request, RequestKind};
use serde::Serialize;

use crate::aws::{NewMessage, Received};
use crate::change::{Answer, Change, Performed, Plan, Question};
use crate::command::CommandName;
use crate::dead::groups::Alike;
use crate::dead::pace::Pace;
use crate::dead::plan::{Acted, Chosen, DeadLetterOutcome, Picked};
use crate::dead::rules::{NewPayload, RedriveRules};
use crate::dead::scan::counted_dead_letters;
use crate::dead::snapshot::Row;
use crate::dead::work::{DeadLetterAction, NotDone, act, send};
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::layout::Layout;
use crate::numbers::grouped;
use crate::operator::Operator;
use crate::operator_line::{Activity, flag};
use crate::pauses::parameter::read_pauses;
use crate::pauses::requests::RequestInForce;
use crate::shown::shown;
use crate::text;

/// A change that sends dead-letters to the retry queue, and deletes each one after SQS accepts its copy.
#[derive(Clone, Debug)]
pub struct Redrive {
    /// The dead-letters to redrive.
    pub chosen: Chosen,
    /// The ARN of a function to invoke instead of the original one; `None` keeps the original function.
    /// `TARGET_FUNCTIONS` must allow the new function.
    pub retarget: Option<String>,
    /// A payload to send instead of the dead-letter's own; `None` keeps the original. A new payload is refused if the
    /// plan has several dead-letters.
    pub payload: Option<NewPayload>,
    /// The maximum rate of the redrive.
    pub pace: Pace,
    /// The maximum number of dead-letters to redrive; `None` means no limit.
    pub limit: Option<u64>,
}

impl Redrive {
    /// A redrive of dead-letters to their original functions, at the default pace and without a limit.
    pub fn new(chosen: Chosen) -> Self {
        Self { chosen, retarget: None, payload: None, pace: Pace::REDRIVE, limit: None }
    }

    /// Fails if the filter names a function that is not on the allow-list, because its events would be dead-lettered
    /// again.
    fn check_target(&self, deployment: &Deployment) -> Result<(), Failure> {
        let Chosen::Matching(filter) = &self.chosen else { return Ok(()) };
        let Some(target) = filter.target.as_ref().filter(|_| self.retarget.is_none()) else { return Ok(()) };
        if deployment.allows_name(target) {
            return Ok(());
        }
        Err(not_allowed([&*deployment.arn_of(target).to_string()], deployment))
    }

    /// Returns the reason why the handler would immediately dead-letter the event again. `cancels` are the cancel
    /// requests in force.
    fn skips(&self, row: &Row, alike: &Alike, cancels: &[Request]) -> Option<ReasonCode> {
        // The scan checked neither `retarget` nor, if it was an earlier scan, the new payload.
        let refused = row.refused.filter(|code| match code {
            ReasonCode::TargetNotAllowed => self.retarget.is_none(),
            ReasonCode::PayloadTooLarge => {
                self.payload.is_none() || matches!(self.chosen, Chosen::Matching(_))
            }
            _ => true,
        });
        let function_arn = self.retarget.as_deref().or(alike.target.as_deref()).unwrap_or_default();
        let is_cancelled = row.key.as_deref().is_some_and(|key| {
            // Only a request that names keys reaches what is sent after it. A redriven event has no error.
            let reaches = |cancel: &Request| cancel.names_keys() && cancel.covers(function_arn, None, key);
            cancels.iter().any(reaches)
        });
        refused.or_else(|| is_cancelled.then_some(ReasonCode::Cancelled))
    }
}

/// The plan for a redrive.
#[derive(Clone, Debug, Serialize)]
pub struct RedrivePlan {
    plan: Picked,
    outcome: Option<DeadLetterOutcome>,
    redriven: u64,
    #[serde(skip)]
    rules: RedriveRules,
    /// The reason why the cancel requests could not be read. The plan then skips no event because of them.
    #[serde(skip)]
    cancels_unknown: Option<Failure>,
}

/// The result of a redrive.
#[derive(Debug, Serialize)]
pub struct Redriven {
    #[serde(flatten)]
    acted: Acted,
    redriven: u64,
}

impl RedrivePlan {
    /// The number of dead-letters to redrive.
    pub fn count(&self) -> u64 {
        self.plan.dead_letters
    }

    fn refusal(&self) -> Failure {
        not_allowed(self.plan.not_allowed.iter().map(String::as_str), self.plan.deployment())
    }
}

impl Redriven {
    /// The number of dead-letters that were redriven.
    pub fn count(&self) -> u64 {
        self.redriven
    }
}

impl Change for Redrive {
    type Plan = RedrivePlan;
    type Done = Redriven;

    async fn plan(&self, operator: &Operator) -> Result<RedrivePlan, Failure> {
        let deployment = operator.deployment().await?;
        let rules = RedriveRules::new(&deployment, self.retarget.as_deref(), self.payload.clone())?;
        self.check_target(&deployment)?;
        let snapshot = self.chosen.snapshot(operator, &deployment, Some(&rules)).await?;
        let (cancels, cancels_unknown) = match cancels_in_force(operator, &deployment).await {
            Ok(cancels) => (cancels, None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        let skip = |row: &Row, alike: &Alike| self.skips(row, alike, &cancels);
        let picked = Picked::of(&self.chosen, snapshot, skip, (self.pace, self.limit))?;
        if self.payload.is_some() && picked.dead_letters > 1 {
            return Err(Failure::refused(format!(
                "a new payload is for one dead-letter, but {} match; add filters, or --limit 1",
                grouped(picked.dead_letters)
            )));
        }
        Ok(RedrivePlan { plan: picked, outcome: None, redriven: 0, rules, cancels_unknown })
    }

    async fn perform(&self, operator: &Operator, plan: &RedrivePlan) -> Result<Performed<Self>, Failure> {
        let RedrivePlan { plan: picked, rules, .. } = plan;
        if !picked.not_allowed.is_empty() {
            return Err(plan.refusal());
        }
        if !picked.is_current(operator).await? {
            return Ok(Performed::Outdated(self.plan(operator).await?));
        }
        let sending = Sending { operator, url: &picked.deployment().retry_queue.url, rules };
        let acted = act(operator, picked, &sending, "redrove").await?;
        let result = acted.result();
        Ok(Performed::Done(Redriven { redriven: acted.outcome.done, acted }, result))
    }

    fn activity(&self, done: &Redriven) -> Option<Activity> {
        let mut activity = done.acted.activity(CommandName::Redrive, &self.chosen)?;
        activity.flags.extend(self.retarget.as_ref().map(|arn| flag("retarget", arn)));
        activity.flags.extend(self.payload.as_ref().map(|_| "--payload-file".to_owned()));
        Some(activity)
    }
}

impl Plan for RedrivePlan {
    fn identity(&self) -> String {
        let RedriveRules { retarget, payload, .. } = &self.rules;
        let payload = payload.as_ref().map(NewPayload::json);
        format!("{retarget:?} {payload:?} {}", self.plan.identity())
    }

    fn question(&self) -> Option<Question> {
        let count = self.count();
        let queue = self.plan.deployment().retry_queue.name();
        let is_asked = count > 0 && self.plan.not_allowed.is_empty();
        let with = if self.rules.payload.is_some() { " with the new payload" } else { "" };
        is_asked.then(|| Question::new(format!("send {}{with} to {queue}?", counted_dead_letters(count))))
    }

    fn log_group(&self) -> &str {
        &self.plan.deployment().log_group
    }
}

impl Answer for RedrivePlan {
    fn layout(&self) -> Layout {
        let mut layout = self.plan.layout("redrive");
        if let Some(payload) = self.rules.payload.as_ref().filter(|_| self.count() > 0) {
            let bytes = grouped(payload.json().len() as u64);
            layout
                .line(format!("Its payload is replaced by the new one, of {bytes} bytes. It keeps its key."));
        }
        if let Some(failure) = self.cancels_unknown.as_ref().filter(|_| self.count() > 0) {
            layout.note(text!["unknown which events the handler would cancel again: ", failure.text()]);
        }
        layout
    }

    fn end(&self) -> Result<(), Failure> {
        if !self.plan.not_allowed.is_empty() {
            return Err(self.refusal());
        }
        self.plan.snapshot.read.result("nothing was changed")
    }
}

async fn cancels_in_force(operator: &Operator, deployment: &Deployment) -> Result<Vec<Request>, Failure> {
    let pauses = read_pauses(&operator.account, deployment).await?.unwrap_or_default();
    let requests = RequestInForce::all_of(&pauses, operator.now()).into_iter().map(|request| request.0);
    Ok(requests.filter(|request| request.kind == RequestKind::Cancel).collect())
}

fn not_allowed<'a>(arns: impl IntoIterator<Item = &'a str>, deployment: &Deployment) -> Failure {
    let arns: Vec<&str> = arns.into_iter().collect();
    let listed: Vec<_> = arns.iter().map(|arn| shown(arn)).collect();
    Failure::could_not(text![
        format!(
            "nothing was sent: TARGET_FUNCTIONS does not allow {}, so these would be dead-lettered again: ",
            listed.join(", ")
        ),
        deployment.attach_commands(arns),
        "; or choose others with --target, or name another function with --retarget"
    ])
}

impl Answer for Redriven {
    fn layout(&self) -> Layout {
        self.acted.layout(None)
    }
}

/// Sends dead-letters to the retry queue.
struct Sending<'a> {
    operator: &'a Operator,
    url: &'a str,
    rules: &'a RedriveRules,
}

impl DeadLetterAction for Sending<'_> {
    type Prepared = NewMessage;

    fn prepare(&self, received: &Received) -> Result<NewMessage, ReasonCode> {
        self.rules.message(received)
    }

    async fn perform(&self, messages: Vec<NewMessage>) -> Vec<Result<(), NotDone>> {
        send(self.operator, (self.url, "retry queue"), messages).await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::rc::Rc;
    use std::time::Duration;

    use comeback_engine::{Action, Pauses, Record, decide};
    use serde_json::Value;

    use super::*;
    use crate::aws::simulated::{Fault, Sample};
    use crate::aws::{Aws as _, Receive};
    use crate::change::tests::plain;
    use crate::dead::filter::Filter;
    use crate::dead::snapshot::{Selection, scan};
    use crate::dead::testing::{Dead, ORDERS, SampleDeadLetter, event, malformed, received, unknown};

    fn with(dead_letters: usize) -> Dead {
        Dead::with((0..dead_letters).map(|_| event("Timeout")))
    }

    async fn planned(dead: &Dead, redrive: &Redrive) -> RedrivePlan {
        redrive.plan(&dead.operator()).await.unwrap()
    }

    async fn run(dead: &Dead, redrive: &Redrive) -> (Redriven, Result<(), Failure>) {
        run_by(&dead.operator(), redrive).await
    }

    async fn run_by(operator: &Operator, redrive: &Redrive) -> (Redriven, Result<(), Failure>) {
        let plan = redrive.plan(operator).await.unwrap();
        match redrive.perform(operator, &plan).await {
            Ok(Performed::Done(done, result)) => (done, result),
            other => panic!("{other:?}"),
        }
    }

    fn all() -> Redrive {
        Redrive::new(Chosen::matching(Filter::default()))
    }

    #[tokio::test]
    async fn dead_letters_start_over_and_leave_the_queue() {
        let dead = with(150);
        let (done, result) = run(&dead, &all()).await;
        assert_eq!((plain(&done), result), ("redrove 150 dead-letters\n".into(), Ok(())));
        let retried = dead.retried();
        assert_eq!((dead.depth().total(), retried.len()), (0, 150));
        assert!(retried[0].message.body.contains(r#""payload":{"n":1E400,"id":"key-"#), "byte for byte");
        assert!(retried.iter().all(|message| message.message.attributes.is_empty()));
    }

    #[tokio::test]
    async fn plan_and_result_have_the_same_members() {
        let dead = with(2);
        let redrive = all();
        let plan = planned(&dead, &redrive).await;
        let before = serde_json::to_value(&plan).unwrap();
        let after = serde_json::to_value(&run(&dead, &redrive).await.0).unwrap();
        assert_eq!((&before["redriven"], &before["outcome"]), (&0.into(), &Value::Null));
        assert_eq!((&after["redriven"], &after["outcome"]["done"]), (&2.into(), &2.into()));
        assert_eq!(before["plan"], after["plan"]);
        let plan = &before["plan"];
        assert_eq!(
            (&plan["dead_letters"], &plan["chosen"], &plan["read"]),
            (&2.into(), &2.into(), &2.into())
        );
        assert_eq!(plan["groups"][0]["reason"], "max_age");
    }

    #[tokio::test]
    async fn dead_letters_go_at_their_pace() {
        for (per_second, seconds) in [(50.0, 3), (4.0, 37), (0.5, 300)] {
            let dead = with(150);
            let redrive = Redrive { pace: Pace(per_second), ..all() };
            let plan = planned(&dead, &redrive).await;
            let start = dead.aws.time();
            redrive.perform(&dead.operator(), &plan).await.unwrap();
            let took = dead.aws.time().since(start).as_secs();
            assert!((seconds..seconds + 5).contains(&took), "{per_second} a second: {took} s");
        }
    }

    #[tokio::test]
    async fn one_dead_letter_is_redriven_with_a_new_payload() {
        let dead = with(2);
        let payload = Some(NewPayload::read(r#"{"n": 1E400, "fixed": true}"#).unwrap());
        let both = Redrive { payload: payload.clone(), ..all() };
        let refused = both.plan(&dead.operator()).await.unwrap_err();
        assert!(matches!(&refused, Failure::Refused(_)), "{refused}");
        assert_eq!(
            refused.to_string(),
            "a new payload is for one dead-letter, but 2 match; add filters, or --limit 1"
        );
        let snapshot = Rc::new(scan(&dead.operator(), Filter::default()).await.unwrap());
        let row = &snapshot.rows(&Selection::All)[0];
        let (id, key) = (row.message_id.to_string(), row.key.clone().unwrap());
        let chosen = Chosen::Selected(Rc::clone(&snapshot), Selection::one(id));
        let one = Redrive { payload, ..Redrive::new(chosen) };
        let plan = planned(&dead, &one).await;
        assert_eq!(plan.question().unwrap().text, "send 1 dead-letter with the new payload to retries?");
        assert!(plain(&plan).ends_with("of 24 bytes. It keeps its key.\n"), "{}", plain(&plan));
        let other = Redrive { payload: Some(NewPayload::read("1").unwrap()), ..one.clone() };
        assert_ne!(
            planned(&dead, &other).await.identity(),
            plan.identity(),
            "it is part of what is agreed to"
        );
        let (done, result) = run(&dead, &one).await;
        assert_eq!((done.redriven, result), (1, Ok(())));
        assert_eq!(one.activity(&done).unwrap().flags, ["--payload-file"]);
        let body = &dead.retried()[0].message.body;
        assert!(body.contains(r#""payload":{"n":1E400,"fixed":true}"#), "{body}");
        assert!(body.contains(&format!(r#""origin_request_id":"{key}""#)), "{body}");
        assert_eq!((dead.depth().total(), dead.retried().len()), (1, 1));
    }

    #[tokio::test]
    async fn no_more_than_the_limit_are_redriven() {
        let dead = with(150);
        let (done, result) = run(&dead, &Redrive { limit: Some(77), ..all() }).await;
        assert_eq!((done.redriven, result), (77, Ok(())));
        assert_eq!((dead.depth().visible, dead.retried().len()), (73, 77));
    }

    #[tokio::test]
    async fn only_dead_letters_of_the_plan_are_redriven() {
        let dead = with(10);
        let redrive = all();
        let plan = planned(&dead, &redrive).await;
        (0..90).for_each(|_| drop(dead.put(&event("Timeout"))));
        let Ok(Performed::Done(done, Ok(()))) = redrive.perform(&dead.operator(), &plan).await else {
            panic!()
        };
        assert_eq!((done.redriven, dead.depth().visible, dead.retried().len()), (10, 90, 10));
    }

    #[tokio::test]
    async fn missing_dead_letters_are_reported() {
        let dead = with(3);
        let (mine, other) = (all(), Redrive { limit: Some(1), ..all() });
        let plan = planned(&dead, &mine).await;
        run(&dead, &other).await.1.unwrap();
        let Ok(Performed::Done(done, Ok(()))) = mine.perform(&dead.operator(), &plan).await else { panic!() };
        let expected = "\
redrove 2 dead-letters
note: 1 dead-letter was not found again: sent back, discarded or hidden by somebody else since the scan
";
        assert_eq!((plain(&done), dead.retried().len()), (expected.into(), 3));
    }

    #[tokio::test]
    async fn interrupt_ends_after_the_dead_letters_at_hand() {
        let dead = with(150);
        // The fourth progress report comes after the first batch, which has only one dead-letter.
        let redrive = Redrive::new(Chosen::matching(Filter::default()));
        let (done, result) = run_by(&dead.stopping_after(4), &redrive).await;
        assert_eq!((done.redriven, result), (1, Err(Failure::interrupted("redrove 1 dead-letter"))));
        assert_eq!((dead.depth().visible, dead.retried().len()), (149, 1));
    }

    #[tokio::test]
    async fn dead_letter_that_is_received_twice_is_deleted() {
        let dead = with(1);
        let plan = planned(&dead, &all()).await;
        let (aws, mut receives) = (dead.aws.clone(), 0);
        dead.aws.on_call(move |call| {
            receives += u32::from(call.action == "sqs:ReceiveMessage");
            // SQS hands the dead-letter out again to the second of the concurrent receives.
            if call.action == "sqs:ReceiveMessage" && receives == 2 {
                let now = aws.time();
                let mut queue = aws.queue(Sample::DEAD_LETTER_QUEUE);
                let handle = format!("{}/1.2", queue.name());
                queue.change_visibility(now, &handle, Duration::ZERO).unwrap();
            }
            None
        });
        let Ok(Performed::Done(done, Ok(()))) = all().perform(&dead.operator(), &plan).await else {
            panic!()
        };
        assert_eq!((done.redriven, dead.retried().len(), dead.depth().total()), (1, 1, 0));
    }

    #[tokio::test]
    async fn a_denied_send_leaves_everything() {
        let dead = with(150);
        dead.aws.deny("sqs:SendMessage");
        let redrive = all();
        let plan = planned(&dead, &redrive).await;
        let Err(failure) = redrive.perform(&dead.operator(), &plan).await else { panic!() };
        let failure = (failure.to_string(), failure.exit_code());
        assert!(failure.0.starts_with("sqs:SendMessage: AccessDenied: ") && failure.1 == 1, "{failure:?}");
        assert!(
            failure.0.ends_with("; docs/operate.md lists the permissions of each command"),
            "{failure:?}"
        );
        assert_eq!((dead.depth().visible, dead.retried().len()), (150, 0));
    }

    #[tokio::test]
    async fn a_denied_deletion_makes_one_copy() {
        let dead = with(150);
        dead.aws.deny("sqs:DeleteMessage");
        let (done, result) = run(&dead, &all()).await;
        assert_eq!((done.redriven, done.acted.outcome.not_deleted.map(|it| it.count)), (0, Some(1)));
        assert_eq!(result.unwrap_err().exit_code(), 3);
        assert_eq!((dead.depth().visible, dead.retried().len()), (150, 1));
    }

    #[tokio::test]
    async fn a_send_without_an_answer_counts_as_made() {
        let dead = with(1);
        let lost = |action: &str| (action == "sqs:SendMessage").then_some(Fault::AnswerLost);
        dead.aws.on_call(move |call| lost(call.action));
        let (done, result) = run(&dead, &all()).await;
        let expected = "redrove 0 dead-letters; 1 dead-letter was not deleted, so the next run will process them \
                        again: no answer, so it may be in the retry queue too (sqs:SendMessage: no answer); run the \
                        command again for the rest";
        assert_eq!((done.redriven, result), (0, Err(Failure::undone(expected))));
        assert_eq!((dead.depth().visible, dead.retried().len()), (1, 1));
    }

    #[tokio::test]
    async fn unretriable_dead_letters_are_skipped() {
        let dead = Dead::with([event("Timeout"), malformed(), unknown()]);
        let (done, result) = run(&dead, &all()).await;
        assert_eq!((done.redriven, result, dead.depth().visible), (1, Ok(()), 2));
        assert_eq!(done.acted.plan.skipped, BTreeMap::from([("malformed_record", 2)]));
    }

    #[tokio::test]
    async fn events_that_would_be_cancelled_again_are_skipped() {
        let dead_letter = event("Timeout");
        let (dead, key) = (Dead::with([dead_letter.clone()]), &*dead_letter.key);
        let (snapshot, deployment) = (scanned(&dead).await, dead.deployment().await);
        let (sent, policies) = (dead.aws.time(), deployment.policies().unwrap());
        let received = received(&dead_letter);
        let body = RedriveRules::new(&deployment, None, None).unwrap().message(&received).unwrap().body;
        let redriven = Record { body, sent, first_receive: sent, ..received.record };
        let now = sent.as_secs();
        let by_key = format!(r#""target":"*","at":{now},"keys":["{key}"]"#);
        let other =
            format!(r#""target":"{}","at":{now},"keys":["{key}"]"#, ORDERS.replace("orders", "other"));
        for (kind, request, skipped) in [
            ("cancels", by_key.clone(), 1),
            ("cancels", by_key.replace('*', ORDERS), 1),
            ("cancels", by_key.replace(key, "other"), 0),
            ("cancels", other, 0),
            ("cancels", format!(r#""target":"*","at":{now}"#), 0), // reaches only what was sent before it
            ("cancels", format!(r#"{by_key},"errors":["Timeout"]"#), 0), // reaches only what fails again
            ("cancels", format!(r#"{by_key},"withdrawn":true"#), 0),
            ("cancels", format!(r#"{by_key},"until":{}"#, now - 1), 0),
            ("retries", format!(r#"{by_key},"within":0"#), 0),
        ] {
            let pauses = format!(r#"{{"v":1,"pauses":[],"{kind}":[{{{request}}}]}}"#);
            dead.aws.put_parameter(Sample::PAUSES, &pauses, false).await.unwrap();
            let action = decide(&redriven, &policies, &Pauses::read(&pauses).unwrap(), sent);
            let is_cancelled =
                matches!(action, Action::DeadLetter { reason } if reason.code == ReasonCode::Cancelled);
            assert_eq!(is_cancelled, skipped == 1, "the handler, {kind}: {request}");
            for redrive in [all(), part(&snapshot, Selection::All)] {
                let plan = planned(&dead, &redrive).await;
                let cancelled = plan.plan.skipped.get("cancelled").copied().unwrap_or_default();
                assert_eq!((cancelled, plan.count()), (skipped, 1 - skipped), "{kind}: {request}");
            }
        }
    }

    #[tokio::test]
    async fn unreadable_cancel_requests_are_noted() {
        let dead = with(1);
        dead.aws.deny("ssm:GetParameter");
        let plan = planned(&dead, &all()).await;
        let said = plain(&plan);
        let note = "note: unknown which events the handler would cancel again: ssm:GetParameter";
        assert!(plan.count() == 1 && said.contains(note), "{said}");
        assert_eq!(run(&dead, &all()).await.0.redriven, 1);
    }

    #[tokio::test]
    async fn a_function_that_is_not_allowed_ends_the_plan() {
        let dead = Dead::with([event("Timeout").of_payments()]);
        let plan = planned(&dead, &all()).await;
        let failure = plan.end().unwrap_err();
        let expected = "nothing was sent: TARGET_FUNCTIONS does not allow \
                        arn:aws:lambda:eu-west-1:123456789012:function:payments:$LATEST, so these would be \
                        dead-lettered again: `comeback attach payments` (if the function moved to another stack, see \
                        docs/attach.md); or choose others with --target, or name another function with --retarget";
        assert_eq!((failure.to_string(), failure.exit_code(), plan.question()), (expected.into(), 1, None));
        let Err(refused) = all().perform(&dead.operator(), &plan).await else { panic!() };
        assert_eq!((refused, dead.retried().len()), (failure, 0));
    }

    #[tokio::test]
    async fn nothing_is_redriven_after_the_deployment_changed() {
        let dead = with(2);
        let snapshot = scanned(&dead).await;
        let (by_filter, by_scan) = (all(), part(&snapshot, Selection::All));
        let (plan, of_scan) = (planned(&dead, &by_filter).await, planned(&dead, &by_scan).await);
        dead.set("TARGET_FUNCTIONS", &ORDERS.replace("orders", "payments"));
        let Ok(Performed::Outdated(new)) = by_filter.perform(&dead.operator(), &plan).await else { panic!() };
        assert_eq!((new.count(), new.question()), (0, None));
        assert!(new.end().unwrap_err().to_string().contains("TARGET_FUNCTIONS does not allow"));
        let Err(refused) = by_scan.perform(&dead.operator(), &of_scan).await else { panic!() };
        assert!(refused.to_string().ends_with("have changed since this scan; scan again"));
        assert_eq!((dead.depth().visible, dead.retried().len()), (2, 0));
    }

    #[tokio::test]
    async fn mistakes_are_refused_before_reading_the_queue() {
        let dead = Dead::with([event("Timeout").of_payments()]);
        dead.aws.deny("sqs:ReceiveMessage");
        dead.set("TARGET_FUNCTIONS", &format!("{ORDERS}:live"));
        for name in ["payments", "orders:dev"] {
            let filter = Filter { target: Some(name.parse().unwrap()), ..Filter::default() };
            let failure = Redrive::new(Chosen::matching(filter)).plan(&dead.operator()).await.unwrap_err();
            let failure = failure.to_string();
            assert!(failure.starts_with("nothing was sent: TARGET_FUNCTIONS does not allow "), "{failure}");
        }
        let retarget = Some("payments".to_owned());
        let failure = Redrive { retarget, ..all() }.plan(&dead.operator()).await.unwrap_err();
        assert!(failure.to_string().starts_with("--retarget payments: give the full ARN"), "{failure}");
    }

    fn part(snapshot: &Rc<crate::dead::Snapshot>, selection: Selection) -> Redrive {
        Redrive::new(Chosen::Selected(Rc::clone(snapshot), selection))
    }

    async fn scanned(dead: &Dead) -> Rc<crate::dead::Snapshot> {
        Rc::new(scan(&dead.operator(), Filter::default()).await.unwrap())
    }

    #[tokio::test]
    async fn snapshot_plan_ignores_newer_dead_letters() {
        let dead = Dead::with([event("Timeout"), event("Fatal")]);
        let snapshot = scanned(&dead).await;
        dead.aws.deny("sqs:ReceiveMessage");
        let redrive = part(&snapshot, Selection::All);
        let before = planned(&dead, &redrive).await.identity();
        dead.put(&event("Timeout"));
        assert_eq!(planned(&dead, &redrive).await.identity(), before);
    }

    #[tokio::test]
    async fn a_redrive_touches_only_its_dead_letters_of_the_snapshot() {
        let dead = Dead::with((0..10).map(|n| event(if n < 3 { "Fatal" } else { "Timeout" })));
        let snapshot = scanned(&dead).await;
        (0..5).for_each(|_| drop(dead.put(&event("Fatal"))));
        let (group, _) = snapshot.groups().remove(1);
        let redrive = part(&snapshot, Selection::Group(group));
        let before = planned(&dead, &redrive).await.identity();
        assert_eq!(plain(&run(&dead, &redrive).await.0), "redrove 3 dead-letters\n");
        assert_eq!((dead.retried().len(), dead.depth().visible), (3, 12));
        assert_eq!(snapshot.groups().len(), 1, "the snapshot forgets them");
        let after = planned(&dead, &redrive).await;
        assert!(after.question().is_none() && after.identity() != before);
        let id = snapshot.rows(&Selection::All)[0].message_id.to_string();
        run(&dead, &part(&snapshot, Selection::one(id))).await.1.unwrap();
        assert_eq!(dead.retried().len(), 4);
    }

    #[tokio::test]
    async fn selected_dead_letter_is_redriven_whatever_the_scan_missed() {
        let dead = with(3);
        let url = dead.deployment().await.dead_letter_queue.url;
        let hide = Receive { visibility: Duration::from_secs(900), wait: Duration::ZERO };
        dead.operator().account.aws.receive(&url, 1, hide).await.unwrap();
        let snapshot = scanned(&dead).await;
        assert!(snapshot.read.locked.is_some());
        dead.aws.advance(Duration::from_secs(3_600));
        let id = snapshot.rows(&Selection::All)[0].message_id.to_string();
        let (done, result) = run(&dead, &part(&snapshot, Selection::one(id))).await;
        assert_eq!((done.redriven, result), (1, Ok(())));
    }

    #[tokio::test]
    async fn retarget_replaces_a_function_not_allowed() {
        let dead = Dead::with([event("Timeout").of_payments(), event("Timeout"), malformed()]);
        let snapshot = scanned(&dead).await;
        let own = part(&snapshot, Selection::All);
        assert!(planned(&dead, &own).await.end().is_err());
        let redrive = Redrive { retarget: Some(ORDERS.into()), ..own };
        assert_eq!(run(&dead, &redrive).await.0.redriven, 2);
        assert!(dead.retried().iter().all(|message| message.message.body.contains("function:orders")));
        let left: Vec<_> = snapshot.rows(&Selection::All);
        assert_eq!(
            left.iter().map(|row| snapshot.alike(row).reason).collect::<Vec<_>>(),
            ["malformed_record"]
        );
    }

    #[tokio::test]
    async fn single_dead_letters_plan_has_its_message() {
        let other = event("Timeout");
        let other = SampleDeadLetter { body: other.body.replace("\"m\"", "\"order 4001\""), ..other };
        let dead = Dead::with([event("Timeout"), other]);
        let snapshot = scanned(&dead).await;
        for row in snapshot.rows(&Selection::All) {
            let plan = planned(&dead, &part(&snapshot, Selection::one(&*row.message_id))).await;
            let json = serde_json::to_value(&plan).unwrap();
            assert_eq!(json["plan"]["groups"][0]["error_message"].as_str(), row.message.as_deref());
        }
    }
}
