//! Operators of a simulated run. They pause and resume functions, ask for waiting events to be retried now or
//! cancelled, and recall the messages of those events.

use std::time::Duration;

use comeback_engine::{
    Cancel, LONGEST_SPREAD, LONGEST_WITHIN, Pause, PauseTarget, Pauses, Policy, Request, RetryNow, Timestamp,
    Written, longest_between_reads,
};
use rand::{Rng, RngExt};

use crate::aws::agenda::START;
use crate::aws::target::{DOWN, FLAKY};
use crate::faults::mix::generator;

/// A recall by an operator: it ends the hiding of waiting messages. The operator starts it once every handler has read
/// the request or the end of the pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorRecall {
    /// Delay of the handler's log: the operator reads no line that is newer than this.
    pub log_delay: Duration,
    /// True if the command is killed after half of the messages.
    pub is_killed: bool,
}

impl OperatorRecall {
    /// Draws a recall in two of three cases, from a log that is up to a minute late. One in four is killed.
    fn chaos(rng: &mut impl Rng) -> Option<Self> {
        let log_delay = Duration::from_secs(rng.random_range(0..=60));
        let recall = Self { log_delay, is_killed: rng.random_bool(0.25) };
        (rng.random_range(0..3) > 0).then_some(recall)
    }
}

/// A pause that an operator makes. Times are whole seconds; `at` counts from the run's start.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorPause {
    /// The paused functions. All events of a run belong to [`TARGET_ARN`](crate::TARGET_ARN).
    pub target: PauseTarget,
    /// Beginning of the pause.
    pub at: Duration,
    /// Duration of the pause; `None` if nobody resumes.
    pub length: Option<Duration>,
    /// True if the end of the pause is planned from the start. Otherwise an operator resumes at that time.
    pub is_planned: bool,
    /// Time over which the held events come back after the pause; at most [`LONGEST_SPREAD`].
    pub spread: Duration,
    /// The recall of the held events by the operator who resumes; `None` if there is none.
    pub recall: Option<OperatorRecall>,
}

impl OperatorPause {
    /// Makes a pause of every function, which an operator resumes.
    pub const fn of_all(at: Duration, length: Duration, spread: Duration) -> Self {
        Self { target: PauseTarget::All, at, length: Some(length), is_planned: false, spread, recall: None }
    }

    /// Draws no pauses for half of the seeds; for the others one or two, of up to an eighth of the run and with a
    /// spread of up to an hour.
    pub fn chaos(seed: u64, duration: Duration) -> Vec<Self> {
        let mut rng = generator(seed, "pauses", "operators");
        if rng.random_bool(0.5) {
            return Vec::new();
        }
        let mut recalls = generator(seed, "pauses", "recalls");
        let seconds = duration.as_secs();
        let mut at = rng.random_range(0..=seconds / 8);
        let mut pauses = Vec::new();
        for _ in 0..rng.random_range(1..=2) {
            let length = rng.random_range(1..=(seconds / 8).max(1));
            let is_planned = rng.random_bool(0.3);
            let spread = Duration::from_secs(rng.random_range(0..=3_600));
            let of = Self::of_all(Duration::from_secs(at), Duration::from_secs(length), spread);
            let recall = OperatorRecall::chaos(&mut recalls).filter(|_| !is_planned);
            pauses.push(Self { is_planned, recall, ..of });
            at += length + rng.random_range(1..=(seconds / 8).max(1));
        }
        pauses
    }

    pub(crate) fn end(&self) -> Option<Timestamp> {
        self.length.map(|length| START.saturating_add(self.at + length))
    }

    pub(crate) fn is_valid(&self) -> bool {
        let times = [Some(self.at), self.length, Some(self.spread)];
        let whole = times.iter().flatten().all(|time| time.subsec_nanos() == 0);
        whole && self.length != Some(Duration::ZERO) && self.spread <= LONGEST_SPREAD
    }

    fn opened(&self) -> Pause {
        Pause {
            target: self.target.clone(),
            from: START.saturating_add(self.at),
            until: self.end().filter(|_| self.is_planned),
            spread: self.spread,
            by: Some("simulated operator".into()),
            why: None,
        }
    }
}

/// An operator's request to retry the waiting events of every function now. Times are whole seconds; `at` counts from
/// the run's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorRetry {
    /// Time of the request.
    pub at: Duration,
    /// Time over which the events come back; at most [`LONGEST_WITHIN`].
    pub within: Duration,
    /// True if the parameter's entry for this request is unreadable, so that no handler obeys it.
    pub is_garbled: bool,
    /// Time until an operator withdraws the request; `None` if nobody does.
    pub withdrawn_after: Option<Duration>,
    /// The recall of the events that the request covers; `None` if there is none.
    pub recall: Option<OperatorRecall>,
}

impl OperatorRetry {
    /// Makes a readable request, without a recall and never withdrawn.
    pub const fn new(at: Duration, within: Duration) -> Self {
        Self { at, within, is_garbled: false, withdrawn_after: None, recall: None }
    }

    /// Adds an immediate recall of everything that waits.
    #[must_use]
    pub fn recalling(self) -> Self {
        Self { recall: Some(OperatorRecall::default()), ..self }
    }

    /// Draws no requests for half of the seeds; for the others one to three, of up to two hours each. One in five is
    /// unreadable, and one in four is withdrawn.
    pub fn chaos(seed: u64, duration: Duration) -> Vec<Self> {
        let mut rng = generator(seed, "retries", "operators");
        if rng.random_bool(0.5) {
            return Vec::new();
        }
        let mut recalls = generator(seed, "retries", "recalls");
        let mut withdrawals = generator(seed, "retries", "withdrawals");
        let request = |_| Self {
            at: Duration::from_secs(rng.random_range(0..=duration.as_secs())),
            within: Duration::from_secs(rng.random_range(0..=7_200)),
            is_garbled: rng.random_bool(0.2),
            withdrawn_after: withdrawn_after(&mut withdrawals),
            recall: OperatorRecall::chaos(&mut recalls),
        };
        let count = 1 + seed % 3;
        (0..count).map(request).collect()
    }

    pub(crate) fn moment(&self) -> Timestamp {
        START.saturating_add(self.at)
    }

    pub(crate) fn is_valid(&self) -> bool {
        let times = [Some(self.at), Some(self.within), self.withdrawn_after];
        times.iter().flatten().all(|time| time.subsec_nanos() == 0) && self.within <= LONGEST_WITHIN
    }

    /// Returns the request as the `comeback` command writes it for a stack with this policy. Without a policy, the
    /// request ends as late as any request may.
    fn given(&self, policy: Option<&Policy>) -> RetryNow {
        RetryNow { request: request(self.moment(), self.within, policy), within: self.within }
    }
}

/// An operator's request to cancel the waiting events of every function. Times are whole seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorCancel {
    /// Time of the request, counted from the run's start.
    pub at: Duration,
    /// Cancels only events that failed with this error; `None` for all.
    pub error: Option<&'static str>,
    /// Time until an operator withdraws the request; `None` if nobody does.
    pub withdrawn_after: Option<Duration>,
    /// The recall of the events that the request covers; `None` if there is none.
    pub recall: Option<OperatorRecall>,
}

impl OperatorCancel {
    /// Makes a request to cancel everything that waits, without a recall and never withdrawn.
    pub const fn new(at: Duration) -> Self {
        Self { at, error: None, withdrawn_after: None, recall: None }
    }

    /// Draws one cancel request for a quarter of the seeds. Half of these are limited to one error, and one in four is
    /// withdrawn.
    pub fn chaos(seed: u64, duration: Duration) -> Vec<Self> {
        let mut rng = generator(seed, "cancels", "operators");
        let at = Duration::from_secs(rng.random_range(0..=duration.as_secs()));
        let recall = OperatorRecall::chaos(&mut rng);
        if !rng.random_bool(0.25) {
            return Vec::new();
        }
        let error = rng.random_bool(0.5).then(|| if rng.random() { DOWN } else { FLAKY }.error_type);
        vec![Self { at, error, withdrawn_after: withdrawn_after(&mut rng), recall }]
    }

    pub(crate) fn moment(&self) -> Timestamp {
        START.saturating_add(self.at)
    }

    pub(crate) fn is_valid(&self) -> bool {
        [Some(self.at), self.withdrawn_after].iter().flatten().all(|time| time.subsec_nanos() == 0)
    }

    fn given(&self, policy: Option<&Policy>) -> Cancel {
        let request = request(self.moment(), Duration::ZERO, policy);
        Cancel { request: Request { errors: self.error.into_iter().map(Into::into).collect(), ..request } }
    }
}

/// Draws the time until a request is withdrawn, at most two hours, for one request in four; otherwise `None`.
fn withdrawn_after(rng: &mut impl Rng) -> Option<Duration> {
    let after = Duration::from_secs(rng.random_range(0..=7_200));
    rng.random_bool(0.25).then_some(after)
}

/// Makes a request for all events that failed before this moment, spread over `within`.
fn request(at: Timestamp, within: Duration, policy: Option<&Policy>) -> Request {
    let request = Request {
        target: PauseTarget::All,
        at,
        errors: Vec::new(),
        keys: Vec::new(),
        by: Some("simulated operator".into()),
        why: None,
        until: None,
        withdrawn: false,
        millis: 0,
    };
    match policy {
        Some(policy) => {
            request.with_end(within, policy.backoff().cap(), policy.settings().maximum_concurrency)
        }
        None => request,
    }
}

/// A recall that takes place during a run.
#[derive(Debug)]
pub(crate) struct PlannedRecall {
    /// When every handler has read the operator's change of the parameter, so that the recall can start.
    pub(crate) moment: Timestamp,
    pub(crate) written: Written,
    pub(crate) recall: OperatorRecall,
}

/// Lists the recalls of all operators, for a stack with this policy.
pub(crate) fn planned_recalls(
    pauses: &[OperatorPause],
    retries: &[OperatorRetry],
    cancels: &[OperatorCancel],
    policy: &Policy,
) -> Vec<PlannedRecall> {
    let resumed = pauses.iter().filter(|pause| !pause.is_planned);
    let resumed = resumed
        .filter_map(|pause| Some((Written::Resume(pause.target.clone(), pause.end()?), pause.recall?)));
    let retried = retries.iter().filter(|retry| !retry.is_garbled);
    let retried =
        retried.filter_map(|retry| Some((Written::Retry(retry.given(Some(policy))), retry.recall?)));
    let cancelled = cancels.iter();
    let cancelled =
        cancelled.filter_map(|cancel| Some((Written::Cancel(cancel.given(Some(policy))), cancel.recall?)));
    let noticed = longest_between_reads(policy.settings().maximum_concurrency);
    let planned = |(written, recall): (Written, OperatorRecall)| PlannedRecall {
        moment: written.at().saturating_add(noticed),
        written,
        recall,
    };
    resumed.chain(retried).chain(cancelled).map(planned).collect()
}

/// A change of the pauses parameter by an operator.
enum Edit<'a> {
    Resume(&'a OperatorPause),
    Open(&'a OperatorPause),
    Retry(&'a OperatorRetry),
    Cancel(&'a OperatorCancel),
    WithdrawRetry(&'a OperatorRetry),
    WithdrawCancel(&'a OperatorCancel),
}

/// The pauses parameter during a run, as the operators change it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameter {
    /// Contents of the parameter after each edit, with the moment of the edit.
    versions: Vec<(Timestamp, Pauses)>,
    /// Ended pauses that were dropped from the full parameter, each with the moment of the drop.
    pub(crate) forgotten: Vec<(Timestamp, Pause)>,
    /// Moments at which an unreadable entry was added.
    garbled: Vec<Timestamp>,
}

impl Parameter {
    /// Applies all edits. Fails if two pauses of one target overlap, or if the parameter would become too large.
    /// Requests end when the policy allows or, without a policy, as late as any may.
    pub(crate) fn of(
        pauses: &[OperatorPause],
        retries: &[OperatorRetry],
        cancels: &[OperatorCancel],
        policy: Option<&Policy>,
    ) -> Result<Self, String> {
        let opened = pauses.iter().map(|pause| (START.saturating_add(pause.at), 1, Edit::Open(pause)));
        let resumed = pauses.iter().filter(|pause| !pause.is_planned);
        let resumed = resumed.filter_map(|pause| Some((pause.end()?, 0, Edit::Resume(pause))));
        let readable = || retries.iter().filter(|retry| !retry.is_garbled);
        let requested = readable().map(|retry| (retry.moment(), 2, Edit::Retry(retry)));
        let cancelled = cancels.iter().map(|cancel| (cancel.moment(), 3, Edit::Cancel(cancel)));
        let withdrawn = readable().filter_map(|it| {
            Some((it.moment().saturating_add(it.withdrawn_after?), 4, Edit::WithdrawRetry(it)))
        });
        let not_cancelled = cancels.iter().filter_map(|it| {
            Some((it.moment().saturating_add(it.withdrawn_after?), 4, Edit::WithdrawCancel(it)))
        });
        let mut edits: Vec<_> = opened.chain(resumed).chain(requested).chain(cancelled).collect();
        edits.extend(withdrawn.chain(not_cancelled));
        edits.sort_by_key(|(at, turn, _)| (*at, *turn));
        let garbled = retries.iter().filter(|retry| retry.is_garbled).map(OperatorRetry::moment).collect();
        let mut parameter = Self { garbled, ..Self::default() };
        let mut held = Pauses::default();
        for (at, _, edit) in edits {
            let (fitted, forgotten) =
                edit.of(&held, policy, at)?.fitted(at).map_err(|refused| refused.to_string())?;
            held = fitted.clone();
            parameter.versions.push((at, fitted));
            parameter.forgotten.extend(forgotten.into_iter().map(|pause| (at, pause)));
        }
        Ok(parameter)
    }

    /// Returns the parameter's contents at `now`; `None` before the first edit.
    pub(crate) fn held(&self, now: Timestamp) -> Option<&Pauses> {
        self.versions.iter().rev().find(|(at, _)| *at <= now).map(|(_, held)| held)
    }

    /// Returns the parameter's text at `now`; `None` before the first edit.
    pub(crate) fn text(&self, now: Timestamp) -> Option<String> {
        let held = self.held(now);
        let garbled = self.garbled.iter().filter(|at| **at <= now).count();
        if garbled == 0 {
            return held.map(Pauses::write);
        }
        let text = held.cloned().unwrap_or_default().write();
        let entries = vec![r#"{"target":"*","at":"soon"}"#; garbled].join(",");
        Some(match text.split_once(r#""retries":["#) {
            Some((before, after)) => format!(r#"{before}"retries":[{entries},{after}"#),
            None => format!(r#"{},"retries":[{entries}]}}"#, text.trim_end_matches('}')),
        })
    }
}

impl Edit<'_> {
    fn of(&self, before: &Pauses, policy: Option<&Policy>, at: Timestamp) -> Result<Pauses, String> {
        let all = || before.iter().cloned();
        match self {
            Self::Open(opened) if all().any(|it| it.target == opened.target && !it.is_over(at)) => {
                Err("two pauses of one target overlap".into())
            }
            Self::Open(opened) => Ok(before.with(all().chain([opened.opened()]))),
            Self::Resume(resumed) => Ok(before.with(all().map(|pause| {
                let is_it = pause.target == resumed.target && !pause.is_over(at);
                if is_it { pause.ended(at, resumed.spread) } else { pause }
            }))),
            Self::Retry(retry) => Ok(before.with_retry(&retry.given(policy))),
            Self::Cancel(cancel) => Ok(before.with_cancel(&cancel.given(policy))),
            Self::WithdrawRetry(retry) => {
                let given = retry.given(policy);
                Ok(before.withdrawn(|it| *it == given, |_| false))
            }
            Self::WithdrawCancel(cancel) => {
                let given = cancel.given(policy);
                Ok(before.withdrawn(|_| false, |it| *it == given))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn policy() -> Policy {
        let variables = [("TARGET_FUNCTIONS", crate::TARGET_ARN), ("MAX_BACKOFF", "1h")];
        let read = |name: &str| variables.iter().find(|it| it.0 == name).map(|it| it.1.into());
        Policy::from_variables(read).expect("a policy")
    }

    fn held(all: &[OperatorPause], at: Duration) -> Option<String> {
        Parameter::of(all, &[], &[], None).expect("they fit").text(START.saturating_add(at))
    }

    #[test]
    fn the_parameter_is_as_the_commands_leave_it() {
        let pause = OperatorPause::of_all(HOUR, HOUR, Duration::from_secs(60));
        assert_eq!(held(std::slice::from_ref(&pause), HOUR - Duration::from_secs(1)), None);
        let open = r#"{"v":1,"pauses":[{"target":"*","from":1767229200,"until":null,"spread":60,"by":"simulated operator"}]}"#;
        assert_eq!(held(std::slice::from_ref(&pause), HOUR).as_deref(), Some(open));
        let closed = r#"{"v":1,"pauses":[{"target":"*","from":1767229200,"until":1767232800,"spread":60}]}"#;
        assert_eq!(held(std::slice::from_ref(&pause), 2 * HOUR).as_deref(), Some(closed));
        let planned = OperatorPause { is_planned: true, ..pause };
        assert!(held(&[planned], HOUR).unwrap().contains(r#""until":1767232800,"#));
    }

    #[test]
    fn half_of_the_seeds_pause_in_ways_that_fit() {
        let paused = (0..400).filter(|&seed| {
            let all = OperatorPause::chaos(seed, 24 * HOUR);
            assert!(all.iter().all(OperatorPause::is_valid));
            Parameter::of(&all, &[], &[], None)
                .expect("they fit")
                .held(START.saturating_add(24 * HOUR))
                .is_some()
        });
        assert!((160..=240).contains(&paused.count()));
        for seconds in [0, 1, 7] {
            let all = OperatorPause::chaos(7, Duration::from_secs(seconds));
            assert!(all.iter().all(OperatorPause::is_valid), "{all:?}");
        }
    }

    #[test]
    fn a_request_leaves_at_its_end() {
        let first = OperatorRetry::new(HOUR, Duration::from_secs(60));
        let policy = policy();
        let (cap, environments) = (policy.backoff().cap(), policy.settings().maximum_concurrency);
        let end = first.given(None).request.end(first.within, cap, environments);
        let parameter = |retries: &[OperatorRetry]| Parameter::of(&[], retries, &[], Some(&policy)).unwrap();
        let text = |retries: &[OperatorRetry], at| parameter(retries).text(at).unwrap();
        let text = text(std::slice::from_ref(&first), end);
        assert!(text.contains(&format!(r#""until":{}"#, end.rounded_up_to_secs().as_secs())), "{text}");
        let later = OperatorRetry::new(11 * HOUR, Duration::ZERO);
        let both = parameter(&[first, later.clone()]);
        let held = both.held(later.moment()).unwrap();
        assert_eq!(held.retries().map(|retry| retry.request.at).collect::<Vec<_>>(), [later.moment()]);
    }

    #[test]
    fn a_withdrawn_request_stays_but_is_not_obeyed() {
        let retry = OperatorRetry {
            withdrawn_after: Some(Duration::from_secs(60)),
            ..OperatorRetry::new(HOUR, HOUR)
        };
        let cancel = OperatorCancel {
            error: Some("TargetDown"),
            withdrawn_after: retry.withdrawn_after,
            ..OperatorCancel::new(HOUR)
        };
        let parameter = Parameter::of(&[], &[retry], &[cancel], Some(&policy())).unwrap();
        let obeyed = |seconds| {
            let now = START.saturating_add(HOUR + Duration::from_secs(seconds));
            let held = parameter.held(now).unwrap();
            let all = held.retries().map(|it| &it.request).chain(held.cancels().map(|it| &it.request));
            all.map(|request| (request.errors.len(), request.is_in_force(now))).collect::<Vec<_>>()
        };
        assert_eq!(obeyed(59), [(0, true), (1, true)]);
        assert_eq!(obeyed(60), [(0, false), (1, false)]);
    }

    #[test]
    fn requests_stand_beside_pauses_even_garbled_ones() {
        let garbled = OperatorRetry { is_garbled: true, ..OperatorRetry::new(HOUR, HOUR) };
        let all = [OperatorRetry::new(HOUR, Duration::from_secs(60)), garbled.clone()];
        let text_at = |retries: &[OperatorRetry], time| {
            Parameter::of(&[], retries, &[], Some(&policy())).unwrap().text(START.saturating_add(time))
        };
        let at = |retries: &[OperatorRetry]| text_at(retries, HOUR).unwrap();
        for text in [at(&all), at(&[garbled])] {
            let read = Pauses::read(&text).unwrap();
            assert_eq!(read.unreadable_requests(START.saturating_add(HOUR)).count(), 1, "{text}");
        }
        assert_eq!(Pauses::read(&at(&all)).unwrap().retries().count(), 1);
        assert_eq!(text_at(&all, Duration::ZERO), None);
        for seed in 0..100 {
            let all = OperatorRetry::chaos(seed, 24 * HOUR);
            assert!(all.iter().all(OperatorRetry::is_valid) && all.len() <= 3, "{all:?}");
        }
    }
}
