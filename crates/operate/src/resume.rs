//! The end of a pause: its function's retries go out again, spread over time.

use std::time::Duration;

use comeback_engine::{HOLD, Pause, PauseTarget, Pauses, Timestamp};
use serde::Serialize;

use crate::change::{Answer, Change, Performed, Plan, Question};
use crate::command::CommandName;
use crate::deployment::Deployment;
use crate::durations;
use crate::failure::Failure;
use crate::function::FunctionName;
use crate::layout::Layout;
use crate::operator::Operator;
use crate::pause::is_paused;
use crate::pauses::edits::{self, check_spread, open_of};
use crate::pauses::parameter::Parameter;
use crate::pauses::{self, DEFAULT_SPREAD, OpenPause, forgotten_note, named, noticed_within};
use crate::text;
use crate::text::{Text, quoted};

/// Ends the pause of a function, or the one that covers every function.
#[derive(Clone, Debug)]
pub struct ResumeRetries {
    /// The operator.
    pub operator: Operator,
    /// The function, as its pause names it; `None` is the pause of every function.
    pub function: Option<FunctionName>,
    /// The time over which held events return; `None` is the pause's own spread.
    pub spread: Option<Duration>,
}

/// The plan to end a pause: those that are open.
#[derive(Clone, Debug, Serialize)]
pub struct ResumePlan {
    ended: Vec<OpenPause>,
    still_paused_by: Vec<OpenPause>,
    /// Older pauses that left the parameter for want of room; of a plan, none.
    forgotten: Vec<OpenPause>,
    spread_seconds: u64,
    noticed_within_seconds: Option<u64>,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    function: Option<FunctionName>,
    #[serde(skip)]
    target: PauseTarget,
    #[serde(skip)]
    open: Vec<Pause>,
    #[serde(skip)]
    deployment: Deployment,
}

/// The pauses that were ended.
#[derive(Debug, Serialize)]
pub struct Resumed {
    #[serde(flatten)]
    plan: ResumePlan,
    #[serde(skip)]
    note: Option<String>,
}

impl Change for ResumeRetries {
    type Plan = ResumePlan;
    type Done = Resumed;

    async fn plan(&self) -> Result<ResumePlan, Failure> {
        let deployment = self.operator.deployment().await?;
        let Operator { account, interrupt, .. } = &self.operator;
        let read = async { Parameter::of(account, interrupt, &deployment)?.read().await };
        let pauses = interrupt.or(read).await?.0;
        let now = self.operator.now();
        let target = pauses::target(&deployment, self.function.as_ref())?;
        let spread = self.spread.unwrap_or_else(|| own_spread(&pauses, &target, now));
        check_spread(spread)?;
        let open: Vec<Pause> = open_of(&pauses, &target, now).cloned().collect();
        Ok(ResumePlan {
            ended: open.iter().map(|pause| OpenPause::of(pause, now)).collect(),
            still_paused_by: others(&pauses, &target, now),
            forgotten: Vec::new(),
            spread_seconds: spread.as_secs(),
            noticed_within_seconds: noticed_within(&deployment).map(|noticed| noticed.as_secs()),
            name: named(self.function.as_ref()),
            function: self.function.clone(),
            target,
            open,
            deployment,
        })
    }

    async fn perform(&self, plan: &ResumePlan) -> Performed<ResumePlan, Resumed> {
        match self.plan().await {
            Ok(now) if now.identity() != plan.identity() => return Performed::Outdated(now),
            Ok(_) => {}
            Err(failure) => return Performed::Failed(failure),
        }
        match self.close(plan).await {
            Ok(forgotten) => {
                let now = self.operator.now();
                let resumed = Resumed {
                    plan: ResumePlan {
                        forgotten: forgotten.iter().map(|pause| OpenPause::of(pause, now)).collect(),
                        ..plan.clone()
                    },
                    note: forgotten_note(&forgotten),
                };
                let end = plan.still_covered();
                Performed::Done(resumed, end)
            }
            Err(failure) => Performed::Failed(failure),
        }
    }
}

impl ResumeRetries {
    /// Closes the open pauses. Returns the ended ones that had to leave the parameter.
    async fn close(&self, plan: &ResumePlan) -> Result<Vec<Pause>, Failure> {
        let Operator { account, interrupt, .. } = &self.operator;
        let parameter = Parameter::of(account, interrupt, &plan.deployment)?;
        let (now, spread) = (self.operator.now(), Duration::from_secs(plan.spread_seconds));
        // The end is rounded up to a second.
        let end = now.rounded_up_to_secs();
        let make = |pauses: &Pauses| Ok(edits::closed(pauses, &plan.target, spread, now));
        let is_in = |pauses: &Pauses| open_of(pauses, &plan.target, end).next().is_none();
        parameter.edit(now, make, is_in).await
    }
}

/// The longest spread of the target's open pauses.
fn own_spread(pauses: &Pauses, target: &PauseTarget, now: Timestamp) -> Duration {
    open_of(pauses, target, now).map(|pause| pause.spread).max().unwrap_or(DEFAULT_SPREAD)
}

/// Other pauses that hold the function.
fn others(pauses: &Pauses, target: &PauseTarget, now: Timestamp) -> Vec<OpenPause> {
    let holds = |pause: &&Pause| match target {
        PauseTarget::Functions(function) if pause.target != *target => {
            pause.is_active(now) && pause.target.covers(&function.to_string())
        }
        _ => false,
    };
    pauses.iter().filter(holds).map(|pause| OpenPause::of(pause, now)).collect()
}

impl ResumePlan {
    /// A failure if another pause still covers the function.
    fn still_covered(&self) -> Result<(), Failure> {
        let Some(still) = self.still_paused_by.first() else { return Ok(()) };
        let by = still.by.as_deref().unwrap_or("somebody");
        let which = if still.target == "*" { "--all" } else { &still.target };
        let resume = self.deployment.command(CommandName::Resume, [which]);
        let name = &self.name;
        Err(Failure::undone(text![
            format!("{name} is still covered by another pause, set by {by}: "),
            resume
        ]))
    }

    /// When the events that were due come back.
    fn first_retries(&self) -> Option<Text> {
        self.deployment.stopped_note().or_else(|| {
            let noticed = Duration::from_secs(self.noticed_within_seconds?);
            let minutes = (noticed + HOLD).as_secs().div_ceil(60);
            Some(
                format!(
                    "The first retries may take up to {minutes} minutes, because held messages stay hidden until \
                     then."
                )
                .into(),
            )
        })
    }

    /// What waits for its backoff does not come back with the end of a pause.
    fn offer_to_retry(&self) -> Option<Text> {
        let which = self.function.as_ref().map_or_else(|| "--all".to_owned(), ToString::to_string);
        let retry = self.deployment.command(CommandName::Retry, [&*which, "--dry-run"]);
        let offer = text!["To see whether waiting events can be retried sooner: ", retry];
        self.deployment.stopped().is_none().then_some(offer)
    }
}

impl Plan for ResumePlan {
    fn identity(&self) -> String {
        format!("{:?}", (&self.target, &self.open))
    }

    fn question(&self) -> Option<Question> {
        (!self.open.is_empty()).then(|| Question::new(format!("resume {}?", self.name)))
    }
}

impl Answer for ResumePlan {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        self.open.iter().for_each(|pause| layout.line(is_paused(&self.name, pause)));
        layout
    }

    fn end(&self) -> Result<(), Failure> {
        if !self.open.is_empty() {
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

impl Answer for Resumed {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        let spread = durations::text(Duration::from_secs(self.plan.spread_seconds));
        layout.line(format!("{}: resumed; due events return over {spread}", self.plan.name));
        let more = [self.plan.first_retries(), self.plan.offer_to_retry()];
        more.into_iter().flatten().for_each(|line| layout.line(line));
        self.note.iter().for_each(|note| layout.note(note));
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aws::Mapping;

    fn plan(deployment: Deployment, function: Option<&str>) -> ResumePlan {
        ResumePlan {
            ended: Vec::new(),
            still_paused_by: Vec::new(),
            forgotten: Vec::new(),
            spread_seconds: 60,
            noticed_within_seconds: noticed_within(&deployment).map(|noticed| noticed.as_secs()),
            name: "orders".into(),
            function: function.map(|name| name.parse().unwrap()),
            target: PauseTarget::All,
            open: Vec::new(),
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
            |deployment: &Deployment| plan(deployment.clone(), None).first_retries().unwrap().to_string();
        let mut deployment = Deployment::sample();
        deployment.stack = Some("shop".into());
        let stopped = said(&deployment);
        let fix = "nothing is retried: `comeback doctor --short --stack shop` names the fix.";
        assert!(stopped.ends_with(fix), "{stopped}");
        deployment.mapping = Some(Mapping::sample());
        // 38 s and 1,344 s.
        let first =
            "The first retries may take up to 24 minutes, because held messages stay hidden until then.";
        assert_eq!(said(&deployment), first);
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

    #[test]
    fn a_function_that_is_not_paused_cannot_be_resumed() {
        let end = |function| plan(Deployment::sample(), function).end().unwrap_err().to_string();
        assert_eq!(end(Some("orders")), "orders is not paused; see `comeback pause --list`");
        assert_eq!(end(None), "no pause covers every function; see `comeback pause --list`");
    }
}
