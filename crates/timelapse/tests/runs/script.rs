//! Scripted edits that an operator makes to the pauses parameter during a run.

use std::sync::Arc;
use std::time::Duration;

use comeback_engine::{Pause, PauseTarget, Pauses, Policies, Request, RequestKind};
use comeback_timelapse::{MakeOperators, START};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::writing::writing;

type Edit = Arc<dyn Fn(&Pauses, &Policies) -> Pauses + Send + Sync>;

/// Edits to the pauses parameter, each with its time since the run's start, in whole seconds.
#[derive(Clone, Default)]
pub(super) struct Script {
    edits: Vec<(Duration, Edit)>,
    /// Times at which an unreadable entry is added to the pauses parameter.
    garbled: Vec<Duration>,
}

impl Script {
    fn with(
        mut self,
        at: Duration,
        edit: impl Fn(&Pauses, &Policies) -> Pauses + Send + Sync + 'static,
    ) -> Self {
        self.edits.push((at, Arc::new(edit)));
        self
    }

    /// Adds a pause at `at` that an operator ends after `length`.
    pub(super) fn paused(self, at: Duration, length: Duration, spread: Duration) -> Self {
        self.opened(PauseTarget::All, at, None, spread).resumed(PauseTarget::All, at + length, spread)
    }

    /// Adds an edit that opens a pause from `at` to `until`, or without an end.
    pub(super) fn opened(
        self,
        target: PauseTarget,
        at: Duration,
        until: Option<Duration>,
        spread: Duration,
    ) -> Self {
        let until = until.map(|until| START.saturating_add(until));
        let from = START.saturating_add(at);
        let pause = Pause { target, from, until, spread, by: Some("simulated operator".into()), why: None };
        self.with(at, move |pauses, _| pauses.with(pauses.iter().cloned().chain([pause.clone()])))
    }

    pub(super) fn resumed(self, target: PauseTarget, at: Duration, spread: Duration) -> Self {
        let now = START.saturating_add(at);
        self.with(at, move |pauses, _| {
            pauses.with(pauses.iter().map(|pause| {
                let is_it = pause.target == target && !pause.is_over(now);
                if is_it { pause.ended(now, spread) } else { pause.clone() }
            }))
        })
    }

    /// Adds an edit at `at` that requests a retry of every waiting event, spread over `within`.
    pub(super) fn retried(self, at: Duration, within: Duration) -> Self {
        self.with(at, move |pauses, policies| {
            pauses.with_request(&request(RequestKind::Retry, at, within, None, policies))
        })
    }

    /// Adds an edit at `at` that cancels all waiting events or, with an `error`, only those with that error.
    pub(super) fn cancelled(self, at: Duration, error: Option<&'static str>) -> Self {
        self.with(at, move |pauses, policies| {
            pauses.with_request(&request(RequestKind::Cancel, at, Duration::ZERO, error, policies))
        })
    }

    /// Adds an edit at `at` that withdraws the requests made at `made`.
    pub(super) fn withdrawn(self, at: Duration, made: Duration) -> Self {
        let made = START.saturating_add(made);
        self.with(at, move |pauses, _| pauses.withdrawn(|it| it.at == made))
    }

    pub(super) fn garbled(mut self, at: Duration) -> Self {
        self.garbled.push(at);
        self.with(at, |pauses, _| pauses.clone())
    }

    /// Returns a random script with at most two pauses, three retry requests and one cancel request.
    pub(super) fn chaos(seed: u64, duration: Duration) -> Self {
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x5c21_9700);
        let (secs, all) = (duration.as_secs(), Duration::from_secs);
        let mut script = Self::default();
        let mut at = rng.random_range(0..=secs / 8);
        for _ in 0..[0, 0, 1, 2][rng.random_range(0..4_usize)] {
            let end = at + rng.random_range(1..=(secs / 8).max(1));
            let spread = all(rng.random_range(0..=3_600));
            script = if rng.random_bool(0.3) {
                script.opened(PauseTarget::All, all(at), Some(all(end)), spread)
            } else {
                script.paused(all(at), all(end - at), spread)
            };
            at = end + rng.random_range(1..=(secs / 8).max(1));
        }
        for _ in 0..[0, 0, 0, 1, 2, 3][rng.random_range(0..6_usize)] {
            let at = all(rng.random_range(0..=secs));
            script = if rng.random_bool(0.2) {
                script.garbled(at)
            } else {
                script.retried(at, all(rng.random_range(0..=7_200))).perhaps_withdrawn(at, rng)
            };
        }
        if rng.random_bool(0.25) {
            let at = all(rng.random_range(0..=secs));
            let error = [None, None, Some("TargetDown"), Some("TargetFlaky")][rng.random_range(0..4_usize)];
            script = script.cancelled(at, error).perhaps_withdrawn(at, rng);
        }
        script
    }

    fn perhaps_withdrawn(self, made: Duration, rng: &mut Xoshiro256PlusPlus) -> Self {
        let after = Duration::from_secs(rng.random_range(0..=7_200));
        if rng.random_bool(0.25) { self.withdrawn(made + after, made) } else { self }
    }

    /// Returns operators who make the script's edits, or `None` if the script has no edits.
    pub(super) fn operators(self) -> Option<MakeOperators> {
        let make = move |script: &Self, policies: &Policies| writing(script.texts(policies));
        (!self.edits.is_empty()).then(|| MakeOperators::new(move |run| make(&self, &run.policies()).of(run)))
    }

    fn texts(&self, policies: &Policies) -> Vec<(Duration, String)> {
        let mut edits = self.edits.clone();
        edits.sort_by_key(|(at, _)| *at);
        let mut held = Pauses::default();
        let written = edits.into_iter().map(|(at, edit)| {
            held = edit(&held, policies).fitted(START.saturating_add(at)).expect("it fits").0;
            let garbled = self.garbled.iter().filter(|it| **it <= at).count();
            (at, with_garbled(&held.write(), garbled))
        });
        written.collect()
    }
}

fn request(
    kind: RequestKind,
    at: Duration,
    within: Duration,
    error: Option<&str>,
    policies: &Policies,
) -> Request {
    let request = Request {
        kind,
        target: PauseTarget::All,
        at: START.saturating_add(at),
        within,
        errors: error.into_iter().map(Into::into).collect(),
        keys: Vec::new(),
        by: Some("simulated operator".into()),
        why: None,
        until: None,
        withdrawn: false,
        millis: 0,
    };
    let stack = policies.stack();
    request.with_end(stack.backoff().cap(), stack.settings().maximum_concurrency)
}

fn with_garbled(text: &str, count: usize) -> String {
    if count == 0 {
        return text.to_owned();
    }
    let entries = vec![r#"{"target":"*","at":"soon"}"#; count].join(",");
    match text.split_once(r#""retries":["#) {
        Some((before, after)) => format!(r#"{before}"retries":[{entries},{after}"#),
        None => format!(r#"{},"retries":[{entries}]}}"#, text.trim_end_matches('}')),
    }
}
