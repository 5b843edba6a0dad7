//! The policy lab: what `simulate` and `plan` say of a policy, while it is filled in. It needs no account.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::response::Response;
use clap::Parser as _;
use comeback_engine::{Kind, Setting, Unset};
use comeback_timelapse::Watcher;
use tokio::sync::watch;

use crate::deployed::{DeployedSetting, lines};
use crate::failure::CommandFailure;
use crate::flags::{PolicyFlags, variable};
use crate::operate::deployment::Deployment;
use crate::plan::{PlanArguments, Recommended, recommended};
use crate::simulate::{Beside, SimulateArguments, beside};
use crate::text::terminal::command_line;
use crate::ui::access::token;
use crate::ui::action::refusal;
use crate::ui::console::Console;
use crate::ui::page::{Fields, Frame, Problem, Visit, go_to, ok, page};

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/lab", page(lab))
}

/// The flags of the policy that the form has.
const POLICY: [&str; 8] = [
    "max-age",
    "max-retries",
    "base-backoff",
    "max-backoff",
    "backoffs",
    "jitter",
    "hide-up-to",
    "maximum-concurrency",
];

/// A field beside those of the policy: name, label, placeholder and hint.
type Given = (&'static str, &'static str, &'static str, &'static str);

/// Flags of `simulate`; `plan` takes the outage and the capacity too.
const RUN: [Given; 5] = [
    ("outage", "Outage", "3h", "How long the target is down"),
    ("events", "Events", "1000", "Events that reach the target during the outage"),
    ("failure-rate", "Failure rate", "0", "Share of the invocations that fail after the outage, 0 to 1"),
    ("capacity", "Capacity", "no limit", "The most the target takes, as a multiple of its usual traffic"),
    ("for", "Virtual time", "24h", "How long the run goes on"),
];
/// Flags of `plan`; `schedule` takes the rate too.
const GOAL: [Given; 2] = [
    ("rate", "Rate", "10/s", "Events that fail while the target is down, such as 10/s or 600/m"),
    (
        "recover-within",
        "Back within",
        "none",
        "Recommend a policy with which 99 % are delivered this soon after the outage",
    ),
];

/// The field that tells tabs apart: each has its own simulation.
const TAB: &str = "tab";
const BESIDE: &str = "beside";
const DEPLOYED: &str = "deployed";
/// How long a page waits for its figures, before it shows how far they are.
const PATIENCE: Duration = Duration::from_millis(500);
/// Tabs whose figures are kept.
const TABS: usize = 8;

/// A field of the form.
struct Input {
    name: &'static str,
    label: String,
    placeholder: String,
    hint: String,
    value: String,
    /// Empty if any text may be given.
    choices: &'static [&'static str],
}

#[derive(Template)]
#[template(path = "ui/lab.html")]
struct LabPage {
    frame: Frame,
    tab: String,
    groups: [(&'static str, Vec<Input>); 3],
    is_beside_deployed: bool,
    /// Why the deployed policy is not shown although it was asked for.
    undeployed: Option<String>,
    commands: Vec<String>,
    /// What to put into a deployment: parameters and properties.
    pasted: Option<(String, String)>,
    /// Percent of the work that is done.
    percent: u64,
    /// `None` while it is simulated.
    answer: Option<Arc<Result<Answer, String>>>,
}

async fn lab(visit: Visit) -> Result<Response, Problem> {
    let console = &visit.console;
    let fields = visit.query();
    let Some(tab) = fields.get(TAB) else {
        // What is deployed is of interest to whoever has looked at it.
        let beside = if console.account().is_some() { DEPLOYED } else { "default" };
        return Ok(go_to(&format!("/lab?{TAB}={}&{BESIDE}={beside}", &token()[..16])));
    };
    let is_beside_deployed = fields.get(BESIDE) == Some(DEPLOYED);
    let (other, undeployed) = match is_beside_deployed {
        true => match console.deployment().await.value {
            Ok(deployment) => (("the deployed policy", flags_of(&deployment)), None),
            Err(failure) => (("the default policy", PolicyFlags::default()), Some(failure.to_string())),
        },
        false => (("the default policy", PolicyFlags::default()), None),
    };
    let words = Words::of(&fields);
    let (percent, answer) = console.labs.answer(tab, words.clone(), other).await;
    ok(&LabPage {
        frame: visit.frame("Policy lab", None),
        tab: tab.to_owned(),
        groups: [
            ("Policy", POLICY.map(|flag| policy_input(flag, &fields)).into()),
            ("What happens", RUN.map(|given| input(given, &fields)).into()),
            ("Load and goal", GOAL.map(|given| input(given, &fields)).into()),
        ],
        is_beside_deployed,
        undeployed,
        commands: words.lines(),
        pasted: pasted(&fields),
        percent,
        answer,
    })
}

fn input((name, label, placeholder, hint): Given, fields: &Fields) -> Input {
    Input {
        name,
        label: label.into(),
        placeholder: placeholder.into(),
        hint: hint.into(),
        value: fields.get(name).unwrap_or_default().to_owned(),
        choices: &[],
    }
}

fn policy_input(flag: &'static str, fields: &Fields) -> Input {
    let setting = Setting::named(&variable(flag));
    let default = match setting.default {
        Unset::Is(text) | Unset::Means(text) => text,
    };
    let choices = match setting.kind {
        Kind::Choice(choices) => choices,
        _ => &[],
    };
    Input {
        name: flag,
        label: setting.name.into(),
        placeholder: default.into(),
        hint: setting.meaning.into(),
        value: fields.get(flag).unwrap_or(if choices.is_empty() { "" } else { default }).to_owned(),
        choices,
    }
}

/// The policy of a deployment, as flags.
fn flags_of(deployment: &Deployment) -> PolicyFlags {
    let set = |flag: &&str| deployment.variables.get(&variable(flag)).filter(|value| !value.is_empty());
    let given: Vec<(&str, String)> =
        PolicyFlags::names().filter_map(|flag| Some((flag, set(&flag)?.clone()))).collect();
    PolicyFlags::default().with(given.iter().map(|(flag, value)| (*flag, value.as_str())))
}

/// What the given policy is in a deployment; `None` if it is the default.
fn pasted(fields: &Fields) -> Option<(String, String)> {
    let given: Vec<DeployedSetting> = POLICY
        .iter()
        .filter_map(|flag| Some((variable(flag), fields.get(flag)?)))
        .filter(|(variable, value)| !matches!(Setting::named(variable).default, Unset::Is(text) if text == *value))
        .map(|(variable, value)| DeployedSetting::of(&variable, value))
        .collect();
    (!given.is_empty()).then(|| lines(&given))
}

/// The commands that a form stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Words {
    simulate: Vec<String>,
    /// If there is a goal.
    plan: Option<Vec<String>>,
    rate: Option<String>,
}

impl Words {
    fn of(fields: &Fields) -> Self {
        let flag = |name: &str| fields.get(name).map(|value| format!("--{name}={value}"));
        let words = |command: &str, names: &mut dyn Iterator<Item = &'static str>| {
            ["comeback".to_owned(), command.to_owned()].into_iter().chain(names.filter_map(flag)).collect()
        };
        let names = |given: &[Given]| given.iter().map(|given| given.0).collect::<Vec<_>>();
        let plan = ["outage", "capacity", "max-age", "max-retries"].into_iter().chain(names(&GOAL));
        Self {
            simulate: words("simulate", &mut names(&RUN).into_iter().chain(POLICY)),
            plan: fields.get("recover-within").map(|_| words("plan", &mut { plan })),
            rate: fields.get("rate").map(ToOwned::to_owned),
        }
    }

    /// To copy.
    fn lines(&self) -> Vec<String> {
        let line = |words: &Vec<String>| command_line(words.iter().map(String::as_str));
        std::iter::once(&self.simulate).chain(&self.plan).map(line).collect()
    }

    fn parsed(&self) -> Result<(Box<SimulateArguments>, Option<PlanArguments>), CommandFailure> {
        let parsed = |words: &Vec<String>| {
            let parsed = crate::Arguments::try_parse_from(words).map(|arguments| arguments.command);
            parsed.map_err(|error| CommandFailure::Refused(vec![refusal(&error)]))
        };
        let crate::Command::Simulate(simulate) = parsed(&self.simulate)? else {
            unreachable!("BUG: not a simulation");
        };
        let plan = self.plan.as_ref().map(parsed).transpose()?.map(|command| match command {
            crate::Command::Plan(plan) => plan,
            _ => unreachable!("BUG: not a plan"),
        });
        Ok((simulate, plan))
    }
}

/// What a form gives.
struct Answer {
    beside: Beside,
    recommended: Option<Recommended>,
}

/// The simulations of the tabs, the latest last.
#[derive(Default)]
pub(super) struct Labs(RefCell<VecDeque<(String, Rc<Simulation>)>>);

/// A simulation, which stops when nobody holds this any longer.
struct Simulation {
    asked: (Words, (&'static str, PolicyFlags)),
    seen: Arc<Seen>,
    answer: watch::Receiver<Option<Arc<Result<Answer, String>>>>,
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.seen.is_stopped.store(true, Ordering::Relaxed);
    }
}

impl Labs {
    /// The answer to a tab's form, or how far it is. Another form of the same tab stops the one before.
    async fn answer(
        &self,
        tab: &str,
        words: Words,
        other: (&'static str, PolicyFlags),
    ) -> (u64, Option<Arc<Result<Answer, String>>>) {
        let simulation = self.of(tab, (words, other));
        let mut answer = simulation.answer.clone();
        let answered = tokio::time::timeout(PATIENCE, answer.wait_for(Option::is_some)).await;
        let answer = answered.ok().and_then(|answer| answer.ok()?.clone());
        (simulation.seen.percent.load(Ordering::Relaxed), answer)
    }

    fn of(&self, tab: &str, asked: (Words, (&'static str, PolicyFlags))) -> Rc<Simulation> {
        let mut tabs = self.0.borrow_mut();
        if let Some((_, known)) = tabs.iter().find(|(known, it)| known == tab && it.asked == asked) {
            return Rc::clone(known);
        }
        tabs.retain(|(known, _)| known != tab);
        if tabs.len() == TABS {
            tabs.pop_front();
        }
        let simulation = Rc::new(Simulation::start(asked));
        tabs.push_back((tab.to_owned(), Rc::clone(&simulation)));
        simulation
    }
}

impl Simulation {
    fn start(asked: (Words, (&'static str, PolicyFlags))) -> Self {
        let seen = Arc::new(Seen::default());
        let (sender, answer) = watch::channel(None);
        let (words, (name, other)) = asked.clone();
        let work = {
            let seen = Arc::clone(&seen);
            tokio::task::spawn_blocking(move || answer_of(&words, (name, &other), &seen))
        };
        tokio::task::spawn_local(async move {
            // One that was stopped has no answer, and nobody waits for it.
            if let Ok(answer) = work.await {
                sender.send_replace(Some(Arc::new(answer.map_err(|failure| failure.to_string()))));
            }
        });
        Self { asked, seen, answer }
    }
}

fn answer_of(words: &Words, other: (&str, &PolicyFlags), seen: &Seen) -> Result<Answer, CommandFailure> {
    let (simulate, plan) = words.parsed()?;
    let rate = words.rate.as_deref().map(crate::text::numbers::read_rate).transpose();
    let rate = rate.map_err(|why| CommandFailure::Refused(vec![format!("rate {why}")]))?;
    // Two runs, and the plan.
    let parts = if plan.is_some() { 3 } else { 2 };
    let beside = beside(&simulate, other, rate, |number, duration| Watch { seen, number, parts, duration })?;
    let recommended = plan.map(|plan| {
        recommended(&plan, &|done, all| {
            seen.is_at(((parts - 1) as f64 + done as f64 / all as f64) / parts as f64)
        })
    });
    Ok(Answer { beside, recommended: recommended.transpose()? })
}

/// How far a simulation is, and whether anybody still wants it.
#[derive(Debug, Default)]
struct Seen {
    percent: AtomicU64,
    is_stopped: AtomicBool,
}

/// What a simulation that nobody wants unwinds with.
struct Stopped;

impl Seen {
    fn is_at(&self, share: f64) {
        if self.is_stopped.load(Ordering::Relaxed) {
            // Without a message: this is no failure, and the thread that waits for it knows.
            std::panic::resume_unwind(Box::new(Stopped));
        }
        self.percent.store((share * 100.0) as u64, Ordering::Relaxed);
    }
}

/// Watches one of the runs.
struct Watch<'s> {
    seen: &'s Seen,
    number: usize,
    parts: usize,
    duration: Duration,
}

impl Watcher for Watch<'_> {
    fn clock(&mut self, at: Duration) {
        let share = at.as_secs_f64() / self.duration.as_secs_f64();
        self.seen.is_at((self.number as f64 + share) / self.parts as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(given: &[(&str, &str)]) -> Fields {
        Fields(given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_form_is_the_commands_with_its_values() {
        let form = fields(&[
            ("outage", "1h"),
            ("capacity", "2"),
            ("jitter", "none"),
            ("max-age", "2h"),
            ("rate", "20/s"),
            ("recover-within", ""),
        ]);
        let words = Words::of(&form);
        assert_eq!(words.lines(), ["comeback simulate --outage=1h --capacity=2 --max-age=2h --jitter=none"]);
        let words = Words::of(&form.with("recover-within", "10m"));
        assert_eq!(
            words.lines()[1],
            "comeback plan --outage=1h --capacity=2 --max-age=2h --rate=20/s --recover-within=10m"
        );
        let (sam, cdk) = pasted(&form).unwrap();
        assert_eq!(
            (&*sam, &*cdk),
            ("MaxAge=7200 Jitter=none", "maxAge: Duration.seconds(7200),\njitter: Jitter.NONE,")
        );
    }

    #[test]
    fn what_a_command_refuses_is_said_in_its_words() {
        let refused = |form: &[(&str, &str)]| {
            let answer =
                answer_of(&Words::of(&fields(form)), ("", &PolicyFlags::default()), &Seen::default());
            answer.err().expect("a refusal").to_string()
        };
        assert!(refused(&[("max-age", "1s")]).contains("MAX_AGE"), "{}", refused(&[("max-age", "1s")]));
        let outage = refused(&[("outage", "long")]);
        assert!(outage.contains("--outage") && !outage.contains("Usage"), "{outage}");
        assert!(refused(&[("rate", "-1")]).contains("rate"), "{}", refused(&[("rate", "-1")]));
    }

    #[tokio::test]
    async fn another_form_of_the_same_tab_stops_the_one_before() {
        let labs = Labs::default();
        let ask = |tab: &'static str, form: Fields| {
            labs.of(tab, (Words::of(&form), ("the default policy", PolicyFlags::default())))
        };
        tokio::task::LocalSet::new()
            .run_until(async {
                let long = || fields(&[("events", "100000")]);
                let first = ask("one", long());
                assert!(Rc::ptr_eq(&first, &ask("one", long())), "the same form is simulated once");
                let seen = Arc::clone(&first.seen);
                let other_tab = ask("two", long());
                let mut answer = first.answer.clone();
                drop(first);
                assert!(!seen.is_stopped.load(Ordering::Relaxed), "the tab still shows it");
                let short = ask("one", fields(&[("events", "10")]));
                assert!(seen.is_stopped.load(Ordering::Relaxed));
                assert!(answer.wait_for(Option::is_some).await.is_err(), "it ends without an answer");
                let mut answer = short.answer.clone();
                let answered = answer.wait_for(Option::is_some).await.unwrap().clone().unwrap();
                assert!(
                    answered.as_ref().as_ref().is_ok_and(|it| it.beside.headline.starts_with("10 events"))
                );
                assert!(!other_tab.seen.is_stopped.load(Ordering::Relaxed));
            })
            .await;
    }
}
