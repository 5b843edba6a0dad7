//! Resumes retries: ends a pause, recalls the messages that the pause held, and spreads their retries over time.

use std::time::Duration;

use comeback_engine::{HOLD, Pause, PauseTarget, Pauses, Recall, Timestamp};
use serde::Serialize;

use crate::change::{Answer, Change, Completed, Performed, Plan, Question};
use crate::command::CommandName;
use crate::deployment::Deployment;
use crate::durations;
use crate::failure::Failure;
use crate::function::FunctionName;
use crate::layout::Layout;
use crate::operator::Operator;
use crate::operator_line::{Activity, flag};
use crate::pause::is_paused;
use crate::pauses::edits::{self, check_spread, open_of, spread_ended};
use crate::pauses::parameter::{PausesParameter, WrittenEdit};
use crate::pauses::repair::Repair;
use crate::pauses::{self, DEFAULT_SPREAD, OpenPause, forgotten_note, holds, named, noticed_within};
use crate::recall::{HELD_LINES, Recalled, recall};
use crate::request::reach::Reach;
use crate::text;
use crate::text::{Text, quoted};
use crate::waiting::filter::WaitingFilter;
use crate::waiting::reading::{LogQuery, Reading};

/// A [`Change`] that ends the pause of one function, or the pause that covers every function.
#[derive(Clone, Debug)]
pub struct ResumeRetries {
    /// The paused function, or `None` for the pause that covers every function. With `None`, unreadable pauses are
    /// replaced with their last readable version, and no pause ends.
    pub function: Option<FunctionName>,
    /// The time over which held events are retried, or `None` for the time chosen for the pause. If none was chosen,
    /// the default is the length of the pause, up to [`DEFAULT_SPREAD`].
    pub spread: Option<Duration>,
}

/// The plan for a [`ResumeRetries`].
#[derive(Clone, Debug, Serialize)]
pub struct ResumePlan {
    ended: Vec<OpenPause>,
    still_paused_by: Vec<OpenPause>,
    /// Older pauses that were dropped because the SSM parameter was full (empty in a plan).
    forgotten: Vec<OpenPause>,
    spread_seconds: u64,
    noticed_within_seconds: Option<u64>,
    /// The events that the pauses hold, or `None` if the handler's log cannot be read.
    held: Option<Reach>,
    /// The outcome of the recall, or `None` if no message was recalled.
    result: Option<Recalled>,
    /// The replacement of an unreadable text; `None` if the pauses are readable.
    repair: Option<Repair>,
    #[serde(skip)]
    unknown: Option<Text>,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    function: Option<FunctionName>,
    #[serde(skip)]
    target: PauseTarget,
    #[serde(skip)]
    deployment: Deployment,
}

impl Change for ResumeRetries {
    type Plan = ResumePlan;
    type Done = Completed<ResumePlan>;

    async fn plan(&self, operator: &Operator) -> Result<ResumePlan, Failure> {
        let deployment = operator.deployment().await?;
        let Operator { account, interrupt, .. } = operator;
        let parameter = PausesParameter::of(account, &deployment)?.repairing(self.function.is_none());
        let (pauses, repair, _) = interrupt.or(parameter.read_or_repair()).await?;
        let now = operator.now();
        let target = pauses::target(&deployment, self.function.as_ref())?;
        let spread = self.spread.unwrap_or_else(|| own_spread(&pauses, &target, now));
        check_spread(spread)?;
        let (ended, closed) = match repair {
            // A repair ends no pause, because the operator could not list the pauses before it.
            Some(_) => (Vec::new(), pauses.clone()),
            None => {
                // A pause that ends within this second counts as ended.
                let open = open_of(&pauses, &target, now.rounded_up_to_secs());
                let ended = open.map(|pause| OpenPause::of(pause, now)).collect();
                (ended, edits::closed(&pauses, &target, spread, now))
            }
        };
        let held = self.held(operator, &deployment, &closed, &target, now).await;
        // The reading is not needed, so its failure ends nothing. But after an interruption, nothing may be written.
        if interrupt.is_raised() {
            return Err(Failure::interrupted("nothing was changed"));
        }
        let (held, unknown) = match held {
            Ok(held) => (Some(held), None),
            Err(failure) => (None, Some(text!["unknown how many events are held: ", failure.text()])),
        };
        Ok(ResumePlan {
            held,
            result: None,
            repair,
            unknown,
            ended,
            still_paused_by: others(&pauses, &target, now),
            forgotten: Vec::new(),
            spread_seconds: spread.as_secs(),
            noticed_within_seconds: noticed_within(&deployment).map(|noticed| noticed.as_secs()),
            name: named(self.function.as_ref()),
            function: self.function.clone(),
            target,
            deployment,
        })
    }

    async fn perform(&self, operator: &Operator, plan: &ResumePlan) -> Result<Performed<Self>, Failure> {
        let now = self.plan(operator).await?;
        if now.identity() != plan.identity() {
            return Ok(Performed::Outdated(now));
        }
        // More events may be held now than when the plan was made.
        let held = now.held;
        let closing = operator.now();
        let WrittenEdit { forgotten, checked } = match plan.repair {
            Some(_) => repair(operator, plan, closing).await?,
            None => close(operator, plan, closing).await?,
        };
        let (result, end) = match checked {
            Ok(()) => {
                let pause = ending(&plan.target, closing.rounded_up_to_secs());
                let planned = held.as_ref().map_or(0, |held| held.recalled);
                recall(operator, &plan.deployment, &self.wanted(), Recall::Resume(&pause), planned).await
            }
            Err(failure) => (None, Err(failure)),
        };
        let (now, notes) = (operator.now(), forgotten_note(&forgotten).into_iter().collect());
        let forgotten = forgotten.iter().map(|pause| OpenPause::of(pause, now)).collect();
        let plan = ResumePlan { forgotten, held, result, ..plan.clone() };
        let end = plan.still_covered().and(end);
        Ok(Performed::Done(Completed { plan, notes }, end))
    }

    fn activity(&self, done: &Completed<ResumePlan>) -> Option<Activity> {
        let resume = Activity { what: CommandName::Resume.words().into(), ..Activity::default() };
        if done.plan.repair.is_some() {
            return Some(resume);
        }
        Some(Activity {
            flags: self.spread.map(|spread| flag("spread", &durations::flag(spread))).into_iter().collect(),
            functions: vec![done.plan.target.to_string()],
            count: done.plan.held.as_ref().map(|held| held.found),
            ..resume
        })
    }
}

impl ResumeRetries {
    /// Estimates how replacing the current pauses with `closed` affects the held events.
    async fn held(
        &self,
        operator: &Operator,
        deployment: &Deployment,
        closed: &Pauses,
        target: &PauseTarget,
        now: Timestamp,
    ) -> Result<Reach, Failure> {
        let ended = ending(target, now.rounded_up_to_secs());
        let Some(entry) = Recall::Resume(&ended).find(closed) else { return Ok(Reach::default()) };
        let wanted = self.wanted();
        let scope = LogQuery { wanted: &wanted, since: Some(HELD_LINES), handles: true };
        let read = Reading::read(operator, deployment.clone(), scope, now);
        let reading = operator.interrupt.or(read).await?;
        Ok(Reach::of(&reading.waits, deployment, closed, entry))
    }

    fn wanted(&self) -> WaitingFilter {
        WaitingFilter { functions: self.function.iter().cloned().collect(), ..WaitingFilter::default() }
    }
}

/// A pause of the target that ends at `end`, for [`Recall::find`], which compares nothing else.
pub(crate) fn ending(target: &PauseTarget, end: Timestamp) -> Pause {
    Pause { target: target.clone(), from: end, until: Some(end), spread: Duration::ZERO, by: None, why: None }
}

/// Ends the open pauses.
async fn close(operator: &Operator, plan: &ResumePlan, now: Timestamp) -> Result<WrittenEdit, Failure> {
    let (end, spread) = (now.rounded_up_to_secs(), Duration::from_secs(plan.spread_seconds));
    let is_over = |pauses: &Pauses| open_of(pauses, &plan.target, end).next().is_none();
    // If two operators ended the pause, both would recall its messages, and a message could then be handled
    // twice.
    let make = |pauses: &Pauses| match is_over(pauses) {
        true => Err(plan.already_ended()),
        false => Ok(edits::closed(pauses, &plan.target, spread, now)),
    };
    let is_ours = |pause: &Pause| pause.until == Some(end) && pause.spread == spread;
    let is_in = |pauses: &Pauses| {
        let was_open =
            |pause: &&Pause| plan.open().any(|open| (&open.target, open.from) == (&pause.target, pause.from));
        is_over(pauses) && pauses.iter().filter(was_open).all(is_ours)
    };
    PausesParameter::of(&operator.account, &plan.deployment)?.edit(now, make, is_in).await
}

/// Writes the last readable version in place of the unreadable text.
async fn repair(operator: &Operator, plan: &ResumePlan, now: Timestamp) -> Result<WrittenEdit, Failure> {
    let parameter = PausesParameter::of(&operator.account, &plan.deployment)?.repairing(true);
    // `edit` passes the last readable version, which is written unchanged. After that, any readable text will do.
    parameter.edit(now, |pauses| Ok(pauses.clone()), |_| true).await
}

/// The longest spread of the target's open pauses.
fn own_spread(pauses: &Pauses, target: &PauseTarget, now: Timestamp) -> Duration {
    let spread = |pause: &Pause| spread_ended(pause, now);
    open_of(pauses, target, now).map(spread).max().unwrap_or(DEFAULT_SPREAD)
}

/// Other active pauses that also hold the target's events, such as a pause that covers every function.
fn others(pauses: &Pauses, target: &PauseTarget, now: Timestamp) -> Vec<OpenPause> {
    if *target == PauseTarget::All {
        return Vec::new();
    }
    let is_other = |pause: &&Pause| pause.target != *target && holds(pause, target, now);
    pauses.iter().filter(is_other).map(|pause| OpenPause::of(pause, now)).collect()
}

impl ResumePlan {
    fn open(&self) -> impl Iterator<Item = &Pause> {
        self.ended.iter().map(|ended| &ended.pause)
    }

    fn already_ended(&self) -> Failure {
        let list = quoted(self.deployment.command(CommandName::Pause, ["--list"]));
        Failure::undone(text![
            format!("{}: the pause has just ended without this command; see ", self.name),
            list
        ])
    }

    /// Fails if another pause still covers the function.
    fn still_covered(&self) -> Result<(), Failure> {
        let Some(still) = self.still_paused_by.first() else { return Ok(()) };
        let by = still.pause.by.as_deref().unwrap_or("somebody");
        let which = match &still.pause.target {
            PauseTarget::All => "--all".to_owned(),
            PauseTarget::Functions(function) => function.to_string(),
        };
        let resume = self.deployment.command(CommandName::Resume, [which]);
        let name = &self.name;
        Err(Failure::undone(text![
            format!("{name} is still covered by another pause, set by {by}: "),
            resume
        ]))
    }

    /// A note about held events that are not recalled: how soon the handler checks them, or why it does not retry any.
    fn others_return(&self) -> Option<Text> {
        self.deployment.stopped_note().or_else(|| {
            let all_recalled = self.held.as_ref().is_some_and(|held| held.found == held.recalled);
            let noticed = Duration::from_secs(self.noticed_within_seconds?);
            let minutes = (noticed + HOLD).as_secs().div_ceil(60);
            let others = format!("Held events that are not recalled are checked within {minutes} minutes.");
            (!all_recalled).then(|| others.into())
        })
    }

    /// Says that a repair does not end the pause of every function, if the text that it puts back has one.
    fn goes_on(&self) -> Option<Text> {
        let resume = quoted(self.deployment.command(CommandName::Resume, ["--all"]));
        let is_paused = self.repair.as_ref().is_some_and(Repair::pauses_every_function);
        is_paused.then(|| text!["The pause of every function goes on; run ", resume, " again to end it."])
    }

    /// Suggests `comeback retry` for events in backoff, because the end of a pause does not bring their retries
    /// forward.
    fn offer_to_retry(&self) -> Option<Text> {
        let which = self.function.as_ref().map_or_else(|| "--all".to_owned(), ToString::to_string);
        let retry = self.deployment.command(CommandName::Retry, [&*which, "--dry-run"]);
        let offer = text!["To see whether waiting events can be retried sooner: ", retry];
        self.deployment.stopped().is_none().then_some(offer)
    }
}

impl Plan for ResumePlan {
    fn identity(&self) -> String {
        let repair = self.repair.as_ref().map(Repair::versions);
        format!("{:?}", (repair, &self.target, self.open().collect::<Vec<_>>()))
    }

    fn question(&self) -> Option<Question> {
        if self.repair.is_some() {
            return Some(Question::new("replace the unreadable pauses?"));
        }
        (!self.ended.is_empty()).then(|| Question::new(format!("resume {}?", self.name)))
    }

    fn log_group(&self) -> &str {
        &self.deployment.log_group
    }
}

impl Answer for ResumePlan {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        if let Some(repair) = &self.repair {
            repair.lines().into_iter().for_each(|line| layout.line(line));
        }
        self.goes_on().into_iter().for_each(|line| layout.line(line));
        self.open().for_each(|pause| layout.line(is_paused(&self.name, pause)));
        if let Some(held) = self.held.as_ref().filter(|held| held.found > 0) {
            let spread = durations::text(Duration::from_secs(self.spread_seconds));
            let due = format!("within {spread} of the end");
            let lines = held.lines(self.noticed_within_seconds, &due, "held by another pause too");
            lines.into_iter().for_each(|line| layout.line(line));
        }
        self.unknown.iter().for_each(|unknown| layout.note(unknown));
        layout
    }

    fn end(&self) -> Result<(), Failure> {
        if !self.ended.is_empty() || self.repair.is_some() {
            return Ok(());
        }
        self.still_covered()?;
        let list = quoted(self.deployment.command(CommandName::Pause, ["--list"]));
        let nothing = match &self.function {
            Some(function) => format!("{function} is not paused; see "),
            None => "no pause covers every function; see ".into(),
        };
        Err(Failure::undone(text![nothing, list]))
    }
}

impl Answer for Completed<ResumePlan> {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        self.plan.repair.iter().for_each(|repair| layout.line(repair.done()));
        self.plan.goes_on().into_iter().for_each(|line| layout.line(line));
        if self.plan.ended.is_empty() {
            self.notes.iter().for_each(|note| layout.note(note));
            return layout;
        }
        let spread = durations::text(Duration::from_secs(self.plan.spread_seconds));
        layout.line(format!("{}: resumed; due events return over {spread}", self.plan.name));
        self.plan.result.iter().flat_map(Recalled::lines).for_each(|line| layout.line(line));
        let more = [self.plan.others_return(), self.plan.offer_to_retry()];
        more.into_iter().flatten().for_each(|line| layout.line(line));
        self.notes.iter().for_each(|note| layout.note(note));
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aws::Mapping;
    use crate::aws::simulated::Sample;
    use crate::interrupt::Interrupt;
    use crate::pauses::parameter::tests::{done, listed, pause};
    use crate::request::tests::sample;

    fn plan(deployment: Deployment, function: Option<&str>) -> ResumePlan {
        ResumePlan {
            ended: Vec::new(),
            still_paused_by: Vec::new(),
            forgotten: Vec::new(),
            spread_seconds: 60,
            noticed_within_seconds: noticed_within(&deployment).map(|noticed| noticed.as_secs()),
            held: None,
            result: None,
            repair: None,
            unknown: None,
            name: "orders".into(),
            function: function.map(|name| name.parse().unwrap()),
            target: PauseTarget::All,
            deployment,
        }
    }

    #[test]
    fn resume_spreads_as_the_pause_says() {
        let text = r#"{"v":1,"pauses":[{"target":"*","from":10,"until":20,"spread":9},{"target":"*","from":15,"until":null,"spread":7}]}"#;
        let pauses = Pauses::read(text).unwrap();
        let spread = |target: &PauseTarget| own_spread(&pauses, target, Timestamp::from_secs(30)).as_secs();
        assert_eq!(spread(&PauseTarget::All), 7, "the other is over");
        let orders = "arn:aws:lambda:eu-west-1:123456789012:function:orders".parse().unwrap();
        assert_eq!(spread(&orders), DEFAULT_SPREAD.as_secs());
    }

    #[test]
    fn resume_promises_no_retries_while_the_handler_is_stopped() {
        let said =
            |deployment: &Deployment| plan(deployment.clone(), None).others_return().unwrap().to_string();
        let mut deployment = Deployment::sample();
        deployment.stack = Some("shop".into());
        let stopped = said(&deployment);
        let fix = "nothing is retried: `comeback doctor --short --stack shop` names the fix.";
        assert!(stopped.ends_with(fix), "{stopped}");
        deployment.mapping = Some(Mapping::sample());
        // 24 minutes is the sum of 38 s and 1,344 s, rounded up.
        let others = "Held events that are not recalled are checked within 24 minutes.";
        assert_eq!(said(&deployment), others);
        let recalled = Reach { found: 3, recalled: 3, ..Reach::default() };
        let all = ResumePlan { held: Some(recalled), ..plan(deployment, None) };
        assert_eq!(all.others_return(), None);
    }

    #[test]
    fn resume_says_what_another_pause_still_holds() {
        let held = Some(Reach { found: 3, recalled: 1, paused: 2, ..Reach::default() });
        let said = crate::change::tests::plain(&ResumePlan { held, ..plan(Deployment::sample(), None) });
        let first = said.lines().next();
        assert_eq!(first, Some("  not recalled: 2 events, held by another pause too"), "{said}");
    }

    #[test]
    fn resume_offers_a_retry_where_the_handler_runs() {
        let deployment = Deployment { mapping: Some(Mapping::sample()), ..Deployment::sample() };
        let stopped = Deployment { never_runs: true, ..deployment.clone() };
        assert_eq!(plan(stopped, None).offer_to_retry(), None);
        let offer = |function| plan(deployment.clone(), function).offer_to_retry().unwrap().to_string();
        let offered = "To see whether waiting events can be retried sooner: comeback retry";
        assert_eq!(offer(Some("orders:live")), format!("{offered} orders:live --dry-run"));
        assert_eq!(offer(None), format!("{offered} --all --dry-run"));
    }

    #[tokio::test]
    async fn nothing_is_resumed_after_an_interruption_before_the_write() {
        let (aws, operator) = sample();
        drop(done(&operator, &pause(Sample::ORDERS)).await);
        aws.advance(Duration::from_secs(60));
        let resume = ResumeRetries { function: Some(Sample::ORDERS.parse().unwrap()), spread: None };
        let plan = resume.plan(&operator).await.unwrap();
        let interrupt = Interrupt::default();
        let raised = interrupt.clone();
        aws.on_call(move |call| {
            if call.action == "logs:FilterLogEvents" {
                raised.raise();
            }
            None
        });
        let stopped = Operator { interrupt, ..operator.clone() };
        let Err(failure) = resume.perform(&stopped, &plan).await else { panic!("it was interrupted") };
        assert_eq!(failure, Failure::interrupted("nothing was changed"));
        assert_eq!(listed(&operator).await, [1, 0], "the pause is still open");
    }

    #[test]
    fn a_function_that_is_not_paused_cannot_be_resumed() {
        let end = |function| plan(Deployment::sample(), function).end().unwrap_err().to_string();
        assert_eq!(end(Some("orders")), "orders is not paused; see `comeback pause --list`");
        assert_eq!(end(None), "no pause covers every function; see `comeback pause --list`");
    }
}
