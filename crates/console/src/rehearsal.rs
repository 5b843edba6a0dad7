//! The simulations behind the policy lab, one for each browser tab.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use comeback_operate::Failure;
use comeback_operate::command::command_line;
use comeback_operate::numbers::read_rate;
use comeback_rehearsal::flags::{self, PolicyFlags};
use comeback_rehearsal::plan::{PlanArguments, Recommended, recommended};
use comeback_rehearsal::simulate::{Beside, SimulateArguments, beside};
use comeback_timelapse::Watcher;
use futures_util::FutureExt as _;
use futures_util::future::{LocalBoxFuture, Shared};

/// Maximum time that a page waits for a simulation before it shows the simulation's progress.
const PATIENCE: Duration = Duration::from_millis(500);
/// Maximum number of tabs whose results are kept.
const TABS: usize = 8;

/// The command lines that do the same as a lab form, each split into words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) simulate: Vec<String>,
    /// The `comeback plan` command; `None` if the form has no recovery goal.
    pub(super) plan: Option<Vec<String>>,
    pub(super) rate: Option<String>,
}

impl Words {
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |words: &Vec<String>| command_line(words.iter().map(String::as_str));
        std::iter::once(&self.simulate).chain(&self.plan).map(line).collect()
    }

    fn parsed(&self) -> Result<(SimulateArguments, Option<PlanArguments>), Failure> {
        let plan = self.plan.as_ref().map(|words| flags::parsed(words));
        Ok((flags::parsed(&self.simulate)?, plan.transpose()?))
    }
}

pub(super) struct LabResults {
    pub(super) beside: Beside,
    pub(super) recommended: Option<Recommended>,
}

/// The latest simulation run in each browser tab, newest last.
#[derive(Default)]
pub(super) struct Labs(RefCell<VecDeque<(String, Rc<Simulation>)>>);

/// The results of a finished simulation, or the reason why it failed.
pub(super) type LabAnswer = Arc<Result<LabResults, String>>;

/// A running or finished simulation. Dropping this value stops a running simulation.
struct Simulation {
    asked: (Words, (&'static str, PolicyFlags)),
    seen: Arc<Seen>,
    /// The result, or `None` if the simulation was stopped.
    answer: Shared<LocalBoxFuture<'static, Option<LabAnswer>>>,
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.seen.is_stopped.store(true, Ordering::Relaxed);
    }
}

impl Labs {
    /// Starts the simulation that a browser tab requests, unless it was already started for this tab. Returns its
    /// progress in percent, and its result if it ends within [`PATIENCE`].
    pub(super) async fn answer(
        &self,
        tab: &str,
        words: Words,
        other: (&'static str, PolicyFlags),
    ) -> (u64, Option<LabAnswer>) {
        let simulation = self.of(tab, (words, other));
        let answered = tokio::time::timeout(PATIENCE, simulation.answer.clone()).await;
        (simulation.seen.percent.load(Ordering::Relaxed), answered.ok().flatten())
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
        let (words, (name, other)) = asked.clone();
        let work = {
            let seen = Arc::clone(&seen);
            tokio::task::spawn_blocking(move || answer_of(&words, (name, &other), &seen))
        };
        let answer = async {
            let answer = work.await.ok()?;
            Some(Arc::new(answer.map_err(|failure| failure.to_string())))
        };
        Self { asked, seen, answer: answer.boxed_local().shared() }
    }
}

fn answer_of(words: &Words, other: (&str, &PolicyFlags), seen: &Seen) -> Result<LabResults, Failure> {
    let (simulate, plan) = words.parsed()?;
    let rate = words.rate.as_deref().map(read_rate).transpose();
    let rate = rate.map_err(|why| Failure::refused(format!("rate {why}")))?;
    // The work consists of two runs and, if the form has a recovery goal, the plan.
    let parts = if plan.is_some() { 3 } else { 2 };
    let beside = beside(&simulate, other, rate, |number, duration| Watch { seen, number, parts, duration })?;
    let recommended = plan.map(|plan| {
        recommended(&plan, &|done, all| {
            seen.is_at(((parts - 1) as f64 + done as f64 / all as f64) / parts as f64)
        })
    });
    Ok(LabResults { beside, recommended: recommended.transpose()? })
}

/// State that a simulation shares with the page: its progress, and a request to stop.
#[derive(Debug, Default)]
struct Seen {
    percent: AtomicU64,
    is_stopped: AtomicBool,
}

/// Payload of the panic that stops a simulation early.
struct Stopped;

impl Seen {
    fn is_at(&self, share: f64) {
        if self.is_stopped.load(Ordering::Relaxed) {
            // Unlike `panic!`, this prints no message, because the stop was requested.
            std::panic::resume_unwind(Box::new(Stopped));
        }
        self.percent.store((share * 100.0) as u64, Ordering::Relaxed);
    }
}

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

    fn words(flags: &[&str]) -> Words {
        let simulate = ["comeback", "simulate"].iter().chain(flags).map(|word| (*word).to_owned());
        Words { simulate: simulate.collect(), plan: None, rate: None }
    }

    #[test]
    fn a_refusal_has_the_commands_words() {
        let refused = |words: &Words| {
            let answer = answer_of(words, ("", &PolicyFlags::default()), &Seen::default());
            answer.err().expect("a refusal").to_string()
        };
        let age = refused(&words(&["--max-age=1s"]));
        assert!(age.contains("MAX_AGE"), "{age}");
        let outage = refused(&words(&["--outage=long"]));
        assert!(outage.contains("--outage") && !outage.contains("Usage"), "{outage}");
        let rate = refused(&Words { rate: Some("-1".into()), ..words(&[]) });
        assert!(rate.starts_with("rate must be"), "{rate}");
    }

    #[tokio::test]
    async fn another_form_of_the_same_tab_stops_the_one_before() {
        let labs = Labs::default();
        let ask = |tab: &'static str, words: Words| {
            labs.of(tab, (words, ("the default policy", PolicyFlags::default())))
        };
        let long = || words(&["--events=100000"]);
        let first = ask("one", long());
        assert!(Rc::ptr_eq(&first, &ask("one", long())), "the same form is simulated once");
        let seen = Arc::clone(&first.seen);
        let other_tab = ask("two", long());
        let answer = first.answer.clone();
        drop(first);
        assert!(!seen.is_stopped.load(Ordering::Relaxed), "the tab still shows it");
        let short = ask("one", words(&["--events=10"]));
        assert!(seen.is_stopped.load(Ordering::Relaxed));
        assert!(answer.await.is_none(), "it ends without an answer");
        let answered = short.answer.clone().await.unwrap();
        assert!(answered.as_ref().as_ref().is_ok_and(|it| it.beside.headline.starts_with("10 events")));
        assert!(!other_tab.seen.is_stopped.load(Ordering::Relaxed));
    }
}
