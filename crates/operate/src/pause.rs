//! Pauses retries: while a function is paused, the handler holds its failed events.

use std::collections::BTreeSet;
use std::time::Duration;

use comeback_engine::{HOLD, Pause, PauseTarget, Pauses, RETENTION, Timestamp};
use serde::Serialize;

use crate::account::Account;
use crate::change::{Answer, Change, Completed, Performed, Plan, Question};
use crate::command::CommandName;
use crate::deployment::{Deployment, DeploymentName};
use crate::durations;
use crate::failure::Failure;
use crate::function::FunctionName;
use crate::layout::Layout;
use crate::operator::Operator;
use crate::operator_line::{Activity, flag};
use crate::pauses::edits::{self, check_spread, chosen_spread, default_spread, open_of};
use crate::pauses::parameter::{PausesParameter, WrittenEdit};
use crate::pauses::{self, DEFAULT_SPREAD, OpenPause, forgotten_note, named, noticed_within, target_name};
use crate::text;
use crate::text::{Text, quoted};

/// A [`Change`] that pauses a function, or edits its open pause.
///
/// For `end`, `spread` and `why`, `None` keeps an open pause's value, or gives a new pause the default.
#[derive(Clone, Debug)]
pub struct PauseRetries {
    /// The function to pause, or `None` for every function.
    pub function: Option<FunctionName>,
    /// When the pause is to end. By default, a new pause lasts until an operator resumes the retries.
    pub end: Option<PauseEnd>,
    /// The time over which the held events are retried after the pause.
    pub spread: Option<Duration>,
    /// The reason for the pause, required for a new pause.
    pub why: Option<String>,
}

/// When a pause ends, unless an operator ends it earlier.
#[derive(Clone, Copy, Debug)]
pub enum PauseEnd {
    /// The pause ends at this time.
    At(Timestamp),
    /// The pause ends this long after the operator's confirmation.
    After(Duration),
}

/// The plan for a [`PauseRetries`].
#[derive(Clone, Debug, Serialize)]
pub struct PausePlan {
    pause: OpenPause,
    before: Option<OpenPause>,
    /// Past pauses that were dropped because the SSM parameter was full (empty in a plan).
    forgotten: Vec<OpenPause>,
    noticed_within_seconds: Option<u64>,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    target: PauseTarget,
    #[serde(skip)]
    deployment: Deployment,
}

impl Change for PauseRetries {
    type Plan = PausePlan;
    type Done = Completed<PausePlan>;

    async fn plan(&self, operator: &Operator) -> Result<PausePlan, Failure> {
        let deployment = operator.deployment().await?;
        operator.interrupt.or(self.plan_of(operator, deployment)).await
    }

    async fn perform(&self, operator: &Operator, plan: &PausePlan) -> Result<Performed<Self>, Failure> {
        Ok(match self.write(operator, plan).await? {
            Some((paused, checked)) => Performed::Done(paused, checked),
            None => Performed::Outdated(self.plan(operator).await?),
        })
    }

    fn activity(&self, done: &Completed<PausePlan>) -> Option<Activity> {
        let Pause { target, why, .. } = &done.plan.pause.pause;
        Some(Activity {
            what: CommandName::Pause.words().into(),
            flags: self.flags(),
            functions: vec![target.to_string()],
            why: why.clone(),
            ..Activity::default()
        })
    }
}

impl PauseRetries {
    /// The end and the spread as flags of `comeback pause`.
    fn flags(&self) -> Vec<String> {
        let end = self.end.map(|end| match end {
            PauseEnd::At(until) => flag("until", &until.to_string()),
            PauseEnd::After(length) => flag("for", &durations::flag(length)),
        });
        let spread = self.spread.map(|spread| flag("spread", &durations::flag(spread)));
        end.into_iter().chain(spread).collect()
    }

    async fn plan_of(&self, operator: &Operator, deployment: Deployment) -> Result<PausePlan, Failure> {
        let (account, function) = (&operator.account, self.function.as_ref());
        let pauses = PausesParameter::of(account, &deployment)?.read().await?;
        let now = operator.now();
        let target = pauses::target(&deployment, function)?;
        let open = open_of(&pauses, &target, now).next().cloned();
        if open.is_none() {
            pauses::retried_target(&deployment, function)?;
            if let Some(function) = function {
                // An allow-list entry such as `shop-*` also matches the names of functions that do not exist.
                let arn = deployment.arn_of(function).unqualified().to_string();
                account.aws.configuration(&arn, function.qualifier.as_deref()).await?;
            }
        }
        let planned = self.pause(&target, open.as_ref(), account.place.user(), now)?;
        edits::with(&pauses, &planned, now).fitted(now)?;
        Ok(PausePlan {
            pause: OpenPause::of(&planned, now),
            before: open.as_ref().map(|open| OpenPause::of(open, now)),
            forgotten: Vec::new(),
            noticed_within_seconds: noticed_within(&deployment).map(|noticed| noticed.as_secs()),
            name: named(function),
            target,
            deployment,
        })
    }

    /// Writes the planned pause, or returns `None` if another operator has changed the target's pause meanwhile.
    async fn write(
        &self,
        operator: &Operator,
        plan: &PausePlan,
    ) -> Result<Option<(Completed<PausePlan>, Result<(), Failure>)>, Failure> {
        let Operator { account, interrupt, .. } = operator;
        let (deployment, open) = (&plan.deployment, plan.open());
        let parameter = PausesParameter::of(account, deployment)?;
        let now = operator.now();
        let pause = self.pause(&plan.target, open, account.place.user(), now)?;
        let is_outdated = std::cell::Cell::new(false);
        let make = |pauses: &Pauses| {
            if open_of(pauses, &plan.target, now).next() != open {
                is_outdated.set(true);
                return Err(crate::change::outdated());
            }
            Ok(edits::with(pauses, &pause, now))
        };
        let written = parameter.edit(now, make, |pauses| pauses.iter().any(|other| *other == pause)).await;
        if is_outdated.get() {
            return Ok(None);
        }
        let WrittenEdit { forgotten, checked } = written?;
        let elsewhere = match self.function.as_ref().filter(|_| open.is_none()) {
            // The pause is already in force, so an interruption ends only this check.
            Some(function) => tokio::select! {
                note = elsewhere(function, account, deployment) => note,
                () = interrupt.raised() => None,
            },
            None => None,
        };
        let shown = |pause: &Pause| OpenPause::of(pause, now);
        let plan = PausePlan {
            pause: shown(&pause),
            before: open.map(shown),
            forgotten: forgotten.iter().map(shown).collect(),
            ..plan.clone()
        };
        let notes = forgotten_note(&forgotten).into_iter().chain(elsewhere).collect();
        Ok(Some((Completed { plan, notes }, checked)))
    }

    /// Returns a copy of `open` with the operator's changes. If `open` is `None`, returns a new pause, made by the
    /// operator `by`.
    fn pause(
        &self,
        target: &PauseTarget,
        open: Option<&Pause>,
        by: &str,
        now: Timestamp,
    ) -> Result<Pause, Failure> {
        let end = self.end.map(|end| match end {
            PauseEnd::At(end) => end.rounded_up_to_secs(),
            PauseEnd::After(length) => now.saturating_add(length).rounded_up_to_secs(),
        });
        let chosen = self.spread.map(|spread| Duration::from_secs(spread.as_secs()));
        let pause = match open {
            Some(open) => Pause {
                until: end.or(open.until),
                why: self.why.clone().or_else(|| open.why.clone()),
                ..open.clone()
            },
            None if self.why.is_none() => {
                let name = target.to_string();
                let name = target_name(&name);
                return Err(Failure::refused(format!("{name} is not paused; a new pause needs --reason")));
            }
            None => Pause {
                target: target.clone(),
                from: Timestamp::from_secs(now.as_secs()),
                until: end,
                spread: DEFAULT_SPREAD,
                by: Some(by.to_owned()),
                why: self.why.clone(),
            },
        };
        let chosen = chosen.or_else(|| open.and_then(chosen_spread));
        let spread = chosen.unwrap_or_else(|| default_spread(&pause, pause.until));
        let pause = Pause { spread, ..pause };
        check(&pause, now)?;
        Ok(pause)
    }
}

/// Fails if the pause would end in the past, or not after its start. Also fails if the pause or its spread is longer
/// than 14 days.
fn check(pause: &Pause, now: Timestamp) -> Result<(), Failure> {
    check_spread(pause.spread)?;
    let from = pause.from.max(now);
    match pause.until {
        Some(until) if until <= from => Err(Failure::refused(format!(
            "the pause would end at {until}, not after its start at {from}; choose a later end"
        ))),
        // `from` is rounded up too, because an end relative to `now` was rounded up.
        Some(until) if until.since(from.rounded_up_to_secs()) > RETENTION => Err(Failure::refused(format!(
            "the pause would end at {until}, more than 14 days after {from}, and SQS keeps no message \
             longer; choose an earlier end"
        ))),
        _ => Ok(()),
    }
}

impl PausePlan {
    fn open(&self) -> Option<&Pause> {
        self.before.as_ref().map(|before| &before.pause)
    }
}

impl Plan for PausePlan {
    /// Returns a string that identifies the plan by its target and the target's open pause. The planned times are
    /// left out, because they change until the operator confirms the plan.
    fn identity(&self) -> String {
        format!("{:?}", (&self.target, self.open()))
    }

    fn question(&self) -> Option<Question> {
        let verb = if self.open().is_some() { "change the pause of" } else { "pause" };
        let is_new = self.open() != Some(&self.pause.pause);
        is_new.then(|| Question::new(format!("{verb} {}?", self.name)))
    }

    fn log_group(&self) -> &str {
        &self.deployment.log_group
    }
}

impl Answer for PausePlan {
    fn layout(&self) -> Layout {
        let (name, planned) = (&self.name, &self.pause.pause);
        let mut layout = Layout::default();
        match self.open() {
            None => layout.line(text![name, ": will be paused ", terms(planned)]),
            Some(open) => {
                layout.line(is_paused(name, open));
                match open == planned {
                    true => layout.line("Nothing to change."),
                    false => layout.line(text!["  will be paused ", terms(planned)]),
                }
            }
        }
        layout
    }
}

impl Answer for Completed<PausePlan> {
    fn layout(&self) -> Layout {
        let PausePlan { name, target, pause, deployment, noticed_within_seconds, .. } = &self.plan;
        let mut layout = Layout::default();
        let noticed = noticed_within_seconds.map(Duration::from_secs).map(durations::text);
        let noticed = noticed.map(|it| format!(" Retries may still go out for the next {it}."));
        layout.line(format!("{name} is paused.{}", noticed.unwrap_or_default()));
        layout.line(
            "Retries are held, including those of events that are already waiting. New events still run, and are \
             held if they fail.",
        );
        layout.line(
            "The pause uses up no retries and does not count towards MAX_AGE. An event that comes due during it is \
             checked again within "
                .to_owned()
                + &durations::text(HOLD)
                + ", also after `resume`.",
        );
        if pause.pause.until.is_none() {
            let which = if *target == PauseTarget::All { "--all" } else { name };
            layout.line(text!["Resume with: ", deployment.command(CommandName::Resume, [which])]);
        }
        self.notes.iter().for_each(|note| layout.note(note));
        layout
    }
}

/// Describes a pause in words, for example `orders: paused since … by alice, until resumed; …`.
pub(crate) fn is_paused(name: &str, pause: &Pause) -> Text {
    let by = pause.by.as_deref().unwrap_or("somebody");
    text![name, ": paused since ", pause.from, format!(" by {by}, "), terms(pause)]
}

/// Describes how the pause ends, for example `until resumed; events then return over 30m (deploy 4711)`.
fn terms(pause: &Pause) -> Text {
    let until = pause.until.map_or_else(|| "resumed".into(), Text::from);
    let why = pause.why.iter().map(|why| format!(" ({why})")).collect::<String>();
    text!["until ", until, format!("; events then return over {}{why}", durations::text(pause.spread))]
}

/// If the function's new failures go to another deployment, returns a note with the command that pauses it there.
async fn elsewhere(function: &FunctionName, account: &Account, deployment: &Deployment) -> Option<Text> {
    let arn = deployment.arn_of(function).unqualified().to_string();
    let settings = account.aws.invoke_settings(&arn).await.ok()?;
    let is_named = |qualifier: &Option<String>| match &function.qualifier {
        None => qualifier.is_none() || !function.is_latest,
        named => named == qualifier,
    };
    let named = settings.into_iter().filter(|(qualifier, _)| is_named(qualifier));
    let queues: BTreeSet<String> = named.filter_map(|(_, settings)| settings.on_failure).collect();
    for queue in queues.iter().filter(|queue| **queue != deployment.retry_queue.arn) {
        if let Ok(Some(other)) = DeploymentName::of_retry_queue(account, queue).await {
            let latest = if function.is_latest { ":$LATEST" } else { "" };
            let pause = deployment.command_of(&other, CommandName::Pause, [format!("{function}{latest}")]);
            return Some(text![
                format!("new failures of {function} go to {other}; to hold those too, run "),
                quoted(pause),
                " with the same flags"
            ]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Block;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(1_700_000_000 + second)
    }

    fn orders() -> PauseTarget {
        "arn:aws:lambda:eu-west-1:123456789012:function:orders".parse().unwrap()
    }

    fn pausing(end: Option<PauseEnd>, why: Option<&str>) -> PauseRetries {
        PauseRetries { function: None, end, spread: None, why: why.map(Into::into) }
    }

    fn new(end: Option<PauseEnd>) -> PauseRetries {
        pausing(end, Some("a bad deploy"))
    }

    fn plan(open: Option<Pause>, wanted: &PauseRetries) -> PausePlan {
        let target = orders();
        let now = Timestamp::from_secs(60);
        let planned = wanted.pause(&target, open.as_ref(), "anna", now).unwrap();
        PausePlan {
            pause: OpenPause::of(&planned, now),
            before: open.as_ref().map(|open| OpenPause::of(open, now)),
            forgotten: Vec::new(),
            noticed_within_seconds: Some(38),
            name: "orders".into(),
            target,
            deployment: Deployment::sample(),
        }
    }

    #[test]
    fn the_plan_shows_the_pause_as_it_is_and_as_it_will_be() {
        let open = Pause {
            target: orders(),
            from: Timestamp::from_secs(0),
            until: None,
            spread: Duration::from_secs(1_800),
            by: Some("anna".into()),
            why: Some("deploy 4711".into()),
        };
        let shown = |plan: PausePlan| {
            let lines = plan.layout().0.into_iter().map(|block| match block {
                Block::Line(text) => text.to_string(),
                other => panic!("{other:?}"),
            });
            (lines.collect::<Vec<_>>(), plan.question().is_some())
        };
        let is = "orders: paused since 1970-01-01T00:00:00.000Z by anna, until resumed; events then return over 30m \
                  (deploy 4711)";
        let will_be =
            "  will be paused until 1970-01-01T00:02:00.000Z; events then return over 2m (deploy 4711)";
        let wanted = pausing(Some(PauseEnd::After(Duration::from_secs(60))), None);
        let changed = shown(plan(Some(open.clone()), &wanted));
        assert_eq!(changed, (vec![is.to_owned(), will_be.to_owned()], true));
        let same = shown(plan(Some(open), &pausing(None, None)));
        assert_eq!(same, (vec![is.to_owned(), "Nothing to change.".to_owned()], false));
        let will_be = "orders: will be paused until resumed; events then return over 30m (a bad deploy)";
        assert_eq!(shown(plan(None, &new(None))), (vec![will_be.to_owned()], true));
    }

    #[test]
    fn a_plan_stays_the_same_while_time_passes() {
        let wanted = new(Some(PauseEnd::After(Duration::from_secs(60))));
        let now = plan(None, &wanted);
        let later = Pause { until: None, ..now.pause.pause.clone() };
        let later = PausePlan { pause: OpenPause { pause: later, open_seconds: 60 }, ..now.clone() };
        assert_eq!(now.identity(), later.identity());
        assert_ne!(
            now.identity(),
            plan(Some(now.pause.pause.clone()), &wanted).identity(),
            "somebody else has paused it"
        );
    }

    #[test]
    fn a_pause_that_makes_no_sense_is_refused() {
        let refused =
            |end, now| new(Some(end)).pause(&orders(), None, "ops", at(now)).unwrap_err().to_string();
        let ended = "the pause would end at 2023-11-14T22:13:30.000Z, not after its start at \
                     2023-11-14T22:13:30.000Z; choose a later end";
        assert_eq!(refused(PauseEnd::At(at(10)), 10), ended, "it has passed by the time of the answer");
        let fortnight = Duration::from_secs(14 * 86_400);
        assert!(new(Some(PauseEnd::After(fortnight))).pause(&orders(), None, "ops", at(10)).is_ok());
        let long = refused(PauseEnd::After(fortnight + Duration::from_secs(1)), 10);
        assert!(long.contains("more than 14 days after 2023-11-14T22:13:30.000Z"), "{long}");
        let spread = Some(Duration::from_secs(1_209_601));
        let wide = PauseRetries { spread, ..new(None) }.pause(&orders(), None, "ops", at(10)).unwrap_err();
        assert_eq!(wide.to_string(), "the spread is 1209601 s; it must be at most 1209600 s (14 days)");
        let unsaid = pausing(None, None).pause(&orders(), None, "ops", at(10)).unwrap_err().to_string();
        assert_eq!(unsaid, "orders is not paused; a new pause needs --reason");
    }

    #[test]
    fn an_end_counts_from_the_answer() {
        let end = Some(PauseEnd::After(Duration::from_secs(60)));
        let until = |now| new(end).pause(&orders(), None, "ops", at(now)).unwrap().until;
        assert_eq!([until(10), until(70)], [Some(at(70)), Some(at(130))]);
    }

    #[test]
    fn an_open_pause_is_changed_and_keeps_the_rest() {
        let open = Pause {
            target: orders(),
            from: at(10),
            until: Some(at(50)),
            spread: DEFAULT_SPREAD,
            by: Some("ops".into()),
            why: Some("a bad deploy".into()),
        };
        let end = Some(PauseEnd::At(at(90)));
        let spread = Duration::from_secs(7);
        let change = PauseRetries { spread: Some(spread), ..pausing(end, Some("late")) };
        let changed = change.pause(&orders(), Some(&open), "ben", at(30)).unwrap();
        let expected = Pause { until: Some(at(90)), spread, why: Some("late".into()), ..open.clone() };
        assert_eq!(changed, expected);
        assert_eq!(pausing(None, None).pause(&orders(), Some(&open), "ben", at(30)).unwrap(), open);
    }
}
