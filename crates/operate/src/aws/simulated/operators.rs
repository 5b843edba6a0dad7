//! Operators of a simulated run of `timelapse`, who run the shipped commands.
//!
//! The account of such operators has a deployment with the run's policies. Its log, its pauses' parameter and its retry
//! queue are those of the run, and so is its clock.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use async_trait::async_trait;
use comeback_engine::{Policies, Settings, Timestamp};
use comeback_timelapse::{MakeOperators, OperatedDeployment, OperatorTasks, Operators, START};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::queue::OfRun;
use super::{Clock, Sample, SimulatedAws};
use crate::change::{Change, Plan as _, perform};
use crate::operator::{Operator, Which};
use crate::pause::PauseRetries;
use crate::pauses::edits::{End, Wanted};
use crate::request::withdraw::WithdrawRequests;
use crate::request::{Ask, Kind, RequestEvents};
use crate::resume::ResumeRetries;

/// The commands that operators run on every function of a simulated run.
#[derive(Clone, Debug, Default)]
pub struct SimulatedOperators {
    /// Seed of the order of calls when several operators work at once.
    pub seed: u64,
    /// The time until a line of the handler's log can be read.
    pub log_delay: Duration,
    /// The commands.
    pub commands: Vec<SimulatedCommand>,
}

/// A command that an operator runs, and confirms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedCommand {
    /// When it is run, counted from the start.
    pub at: Duration,
    /// The change that it makes.
    pub change: SimulatedChange,
    /// The number of calls that it makes before it is killed; `None` if nobody kills it.
    pub killed_after: Option<u64>,
}

/// A change to every function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SimulatedChange {
    /// `pause`, perhaps with a planned length.
    Pause(Option<Duration>),
    /// `resume`, with this spread.
    Resume(Duration),
    /// `retry --within`.
    Retry(Duration),
    /// `cancel`, perhaps only of events with this error.
    Cancel(Option<&'static str>),
    /// `retry --withdraw` or `cancel --withdraw`.
    Withdraw(Kind),
}

impl SimulatedOperators {
    /// Operators for these tasks; `None` if the list is empty.
    pub fn of(tasks: &OperatorTasks) -> Option<MakeOperators> {
        let mut all = tasks.chaos.map_or_else(Self::default, |(seed, duration)| Self::chaos(seed, duration));
        let retry = tasks.retry_now.map(|(at, within)| SimulatedCommand {
            at,
            change: SimulatedChange::Retry(within),
            killed_after: None,
        });
        all.commands.extend(retry);
        (!all.commands.is_empty()).then(|| all.make())
    }

    /// Draws commands for a run of this length; for some seeds none. The log is up to a minute late. One command in four
    /// is killed, and one in two is not alone: another operator runs a command at the same time.
    pub fn chaos(seed: u64, duration: Duration) -> Self {
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x6f70_6572_6174_6f72);
        let log_delay = Duration::from_secs(rng.random_range(0..=60));
        let mut changes = Vec::new();
        pauses(rng, duration, &mut changes);
        let retries = [0, 0, 0, 1, 2, 3][rng.random_range(0..6_usize)];
        for _ in 0..retries {
            let within = Duration::from_secs(rng.random_range(0..=7_200));
            request(rng, duration, SimulatedChange::Retry(within), Kind::Retry, &mut changes);
        }
        if rng.random_bool(0.25) {
            let error = [None, None, Some("TargetDown"), Some("TargetFlaky")][rng.random_range(0..4_usize)];
            request(rng, duration, SimulatedChange::Cancel(error), Kind::Cancel, &mut changes);
        }
        for index in 0..changes.len() {
            if rng.random_bool(0.5) {
                let after = Duration::from_millis(rng.random_range(0..=3_000));
                let (at, change) = (changes[index].0 + after, changes[rng.random_range(0..changes.len())].1);
                changes.push((at, change));
            }
        }
        let command = |(at, change)| {
            let calls = rng.random_range(0..60);
            SimulatedCommand { at, change, killed_after: rng.random_bool(0.25).then_some(calls) }
        };
        Self { seed, log_delay, commands: changes.into_iter().map(command).collect() }
    }

    /// Creates the operators at the start of each run.
    pub fn make(self) -> MakeOperators {
        MakeOperators::new(move |run| Box::new(AtWork::new(&self, run)))
    }
}

/// Draws up to two pauses, each of up to an eighth of the run. Some have a planned end.
fn pauses(rng: &mut Xoshiro256PlusPlus, duration: Duration, changes: &mut Vec<(Duration, SimulatedChange)>) {
    let eighth = (duration.as_secs() / 8).max(1);
    let mut at = rng.random_range(0..=eighth);
    for _ in 0..[0, 0, 1, 2][rng.random_range(0..4_usize)] {
        let length = rng.random_range(1..=eighth);
        let is_planned = rng.random_bool(0.3);
        let planned = is_planned.then_some(Duration::from_secs(length));
        changes.push((Duration::from_secs(at), SimulatedChange::Pause(planned)));
        if !is_planned {
            let spread = Duration::from_secs(rng.random_range(0..=3_600));
            changes.push((Duration::from_secs(at + length), SimulatedChange::Resume(spread)));
        }
        at += length + rng.random_range(1..=eighth);
    }
}

/// Draws the time of a request. One in four is withdrawn within two hours.
fn request(
    rng: &mut Xoshiro256PlusPlus,
    duration: Duration,
    change: SimulatedChange,
    kind: Kind,
    changes: &mut Vec<(Duration, SimulatedChange)>,
) {
    let at = Duration::from_millis(rng.random_range(0..=duration.as_millis() as u64));
    changes.push((at, change));
    if rng.random_bool(0.25) {
        let after = Duration::from_secs(rng.random_range(0..=7_200));
        changes.push((at + after, SimulatedChange::Withdraw(kind)));
    }
}

impl SimulatedChange {
    async fn make(self, operator: Operator) {
        let function = None;
        match self {
            Self::Pause(length) => {
                let end = length.map(End::After);
                let wanted = Wanted { end, spread: None, why: Some("chaos".into()) };
                confirmed(PauseRetries { operator, function, wanted }).await;
            }
            Self::Resume(spread) => {
                confirmed(ResumeRetries { operator, function, spread: Some(spread) }).await;
            }
            Self::Retry(within) => requested(operator, Ask::Retry { within }, None).await,
            Self::Cancel(error) => requested(operator, Ask::Cancel, error).await,
            Self::Withdraw(kind) => confirmed(WithdrawRequests { operator, function, kind }).await,
        }
    }
}

async fn requested(operator: Operator, ask: Ask, error: Option<&str>) {
    let (error, keys) = (error.map(ToOwned::to_owned), Vec::new());
    confirmed(RequestEvents { operator, ask, function: None, error, keys, why: None }).await;
}

/// Plans a change, performs it and records it. If the command refuses, the operator gives up.
async fn confirmed(change: impl Change) {
    if let Ok(plan) = change.plan().await
        && plan.question().is_some()
    {
        let _ = perform(&change, &plan).await;
    }
}

/// The operators of one run, with their account.
struct AtWork {
    run: Rc<dyn OperatedDeployment>,
    aws: SimulatedAws,
    clock: Rc<RunClock>,
    log_delay: Duration,
    /// Lines of the handler's log that cannot be read yet, the oldest first.
    late: VecDeque<(Timestamp, String)>,
    /// The last version of the pauses' parameter that the run has.
    written: i64,
    rng: Xoshiro256PlusPlus,
    commands: Vec<Working>,
}

/// A command that has not ended.
struct Working {
    work: Pin<Box<dyn Future<Output = ()>>>,
    awake: Arc<Awake>,
}

/// True if a command can go on.
struct Awake(AtomicBool);

impl Wake for Awake {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl AtWork {
    fn new(operators: &SimulatedOperators, run: Rc<dyn OperatedDeployment>) -> Self {
        let clock = Rc::new(RunClock { run: Rc::clone(&run), sleepers: RefCell::default() });
        let aws = account(&run, &clock);
        let command = |(command, number): (&SimulatedCommand, usize)| {
            let aws = aws.called_by(&format!("arn:aws:iam::{}:user/operator-{number}", super::ACCOUNT));
            let (SimulatedCommand { at, change, killed_after }, clock) = (*command, Rc::clone(&clock));
            let work = async move {
                clock.sleep_until(START.saturating_add(at)).await;
                let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
                match killed_after {
                    Some(calls) => drop(aws.killed_after(calls, change.make(operator)).await),
                    None => change.make(operator).await,
                }
            };
            Working { work: Box::pin(work), awake: Arc::new(Awake(AtomicBool::new(true))) }
        };
        let commands = operators.commands.iter().zip(1..).map(command).collect();
        let rng = Xoshiro256PlusPlus::seed_from_u64(operators.seed);
        let log_delay = operators.log_delay;
        Self { run, aws, clock, log_delay, late: VecDeque::new(), written: 0, rng, commands }
    }

    /// Shows the lines of the handler's log that are old enough.
    fn show_log(&mut self) {
        self.late.extend(self.run.take_log());
        let shown = self.run.now().before(self.log_delay);
        let state = &mut *self.aws.state();
        let log = state.log_groups.entry(Sample::LOG_GROUP.into()).or_default();
        while let Some((at, line)) = self.late.pop_front_if(|(at, _)| *at <= shown) {
            log.write(at, "run", line);
        }
    }

    /// Lets one of the commands that can go on do so, up to its next call. Returns false if none can.
    fn go_on(&mut self) -> bool {
        let is_awake = |working: &Working| working.awake.0.load(Ordering::Relaxed);
        let awake: Vec<usize> = (0..self.commands.len()).filter(|&it| is_awake(&self.commands[it])).collect();
        if awake.is_empty() {
            return false;
        }
        let turn = awake[self.rng.random_range(0..awake.len())];
        let Working { work, awake } = &mut self.commands[turn];
        awake.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(awake));
        if work.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.commands.remove(turn);
        }
        true
    }

    /// Passes a new version of the pauses' parameter to the run.
    fn pass_on_pauses(&mut self) {
        let state = self.aws.state();
        let Some(version) = state.parameters.get(Sample::PAUSES).and_then(|it| it.versions.last()) else {
            return;
        };
        if version.number > self.written {
            self.written = version.number;
            self.run.write_pauses(&version.text);
        }
    }
}

impl Operators for AtWork {
    fn act(&mut self) -> Option<Timestamp> {
        self.show_log();
        self.clock.wake();
        while self.go_on() {
            self.pass_on_pauses();
        }
        self.clock.next()
    }
}

/// Creates an account that has the run's deployment.
fn account(run: &Rc<dyn OperatedDeployment>, clock: &Rc<RunClock>) -> SimulatedAws {
    let aws = Sample::new(run.now()).build();
    aws.runs_by(Rc::<RunClock>::clone(clock));
    let policies = run.policies();
    let state = &mut *aws.state();
    let handler = state.functions.get_mut(Sample::HANDLER).expect("BUG: no handler");
    for (name, value) in variables(&policies) {
        handler.configuration.variables.insert(name.into(), value);
    }
    for mapping in &mut state.mappings {
        mapping.maximum_concurrency = i32::try_from(policies.stack().settings().maximum_concurrency).ok();
    }
    let retries = state.queues.get_mut(Sample::RETRY_QUEUE).expect("BUG: no retry queue");
    retries.run = Some(OfRun(Rc::clone(run)));
    aws.clone()
}

/// The handler's variables for these policies.
fn variables(policies: &Policies) -> Vec<(&'static str, String)> {
    let Settings {
        handler: _,
        target_functions,
        max_age,
        max_retries,
        base_backoff,
        max_backoff,
        backoffs,
        jitter,
        envelope,
        directives,
        hide_up_to,
        maximum_concurrency,
        non_retryable_errors,
    } = policies.stack().settings();
    let entries: Vec<String> = policies.entries().iter().map(ToString::to_string).collect();
    let mut variables = vec![
        ("TARGET_FUNCTIONS", target_functions.join(",")),
        ("MAX_AGE", max_age.to_string()),
        ("MAX_RETRIES", max_retries.to_string()),
        ("JITTER", jitter.name().to_owned()),
        ("ENVELOPE", envelope.name().to_owned()),
        ("DIRECTIVES", if *directives { "on" } else { "off" }.to_owned()),
        ("HIDE_UP_TO", hide_up_to.to_string()),
        ("MAXIMUM_CONCURRENCY", maximum_concurrency.to_string()),
        ("NON_RETRYABLE_ERRORS", non_retryable_errors.join(",")),
        ("POLICIES", entries.join("; ")),
    ];
    if backoffs.is_empty() {
        variables.push(("BASE_BACKOFF", base_backoff.to_string()));
        variables.push(("MAX_BACKOFF", max_backoff.to_string()));
    } else {
        let seconds: Vec<String> = backoffs.iter().map(ToString::to_string).collect();
        variables.push(("BACKOFFS", seconds.join(",")));
    }
    variables
}

/// The clock of a run, which moves on between two turns of its operators.
struct RunClock {
    run: Rc<dyn OperatedDeployment>,
    /// The sleeping commands, each with the time when it wakes.
    sleepers: RefCell<Vec<(Timestamp, Waker)>>,
}

impl fmt::Debug for RunClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunClock").field("now", &self.run.now()).finish_non_exhaustive()
    }
}

impl RunClock {
    /// Wakes every command whose time has come.
    fn wake(&self) {
        let now = self.run.now();
        self.sleepers
            .borrow_mut()
            .extract_if(.., |(time, _)| *time <= now)
            .for_each(|(_, waker)| waker.wake());
    }

    /// The time when the next command wakes.
    fn next(&self) -> Option<Timestamp> {
        self.sleepers.borrow().iter().map(|(time, _)| *time).min()
    }
}

#[async_trait(?Send)]
impl Clock for RunClock {
    fn now(&self) -> Timestamp {
        self.run.now()
    }

    async fn sleep_until(&self, time: Timestamp) {
        std::future::poll_fn(|context| {
            if self.now() >= time {
                return Poll::Ready(());
            }
            self.sleepers.borrow_mut().push((time, context.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}
