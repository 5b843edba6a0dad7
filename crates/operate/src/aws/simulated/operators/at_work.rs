//! The simulated operators in one run, and the commands that they are running.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use comeback_engine::{LogLine, Policies, Timestamp};
use comeback_timelapse::{OperatedDeployment, START};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom as _;
use rand::{RngExt, SeedableRng};

use super::super::{ACCOUNT, Clock as _, Fault, LogGroup, Sample, SimulatedAws};
use super::command::{Ending, SimulatedCommand};
use super::deployed::{RunClock, account, deploy};
use crate::deployment::find::Which;
use crate::operator::Operator;

/// The delays, faults and clock errors that operators encounter, besides the latency of each call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Circumstances {
    /// The seed for the random latencies, faults, clock errors and log delays.
    pub seed: u64,
    /// The longest time until a new line in the handler's log becomes readable.
    pub log_delay: Duration,
    /// The probability that a call fails, or that its response is lost.
    pub fault_rate: f64,
    /// The maximum error of an operator's clock, which may be ahead or behind.
    pub clock_error: Duration,
}

pub(super) struct AtWork {
    run: Rc<dyn OperatedDeployment>,
    aws: SimulatedAws,
    clock: Rc<RunClock>,
    log: LateLog,
    /// The account's policies, and the time when they took effect.
    policies: (Arc<Policies>, Timestamp),
    /// The version of the pauses parameter that the simulated run last received.
    written: i64,
    commands: Vec<Working>,
    made: Option<mpsc::Sender<(String, u64)>>,
}

/// A command that has not ended.
struct Working {
    command: SimulatedCommand,
    arn: String,
    work: Pin<Box<dyn Future<Output = Ending>>>,
    awake: Arc<Awake>,
    /// True once a fault has struck one of the command's calls.
    had_fault: Rc<Cell<bool>>,
}

/// The waker of a simulated command; true once the command can continue.
struct Awake(AtomicBool);

impl Wake for Awake {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl AtWork {
    pub(super) fn new(
        circumstances: Circumstances,
        commands: &[SimulatedCommand],
        made: Option<mpsc::Sender<(String, u64)>>,
        run: Rc<dyn OperatedDeployment>,
    ) -> Self {
        let clock = Rc::new(RunClock::new(Rc::clone(&run)));
        let aws = account(&run, &clock);
        let policies = run.policies();
        deploy(&aws, &policies);
        let command = |(command, number): (&SimulatedCommand, u64)| {
            Working::new(*command, number, circumstances, &aws, Rc::clone(&clock))
        };
        Self {
            commands: commands.iter().zip(1..).map(command).collect(),
            log: LateLog::new(circumstances),
            policies: (policies, run.now()),
            written: 0,
            made,
            run,
            aws,
            clock,
        }
    }

    /// Acts at the current virtual time, and returns the time of the next action; `None` if no command is left.
    pub(super) fn act(&mut self) -> Option<Timestamp> {
        self.follow_run();
        self.clock.wake();
        while self.go_on() {
            self.pass_on_pauses();
        }
        self.clock.next()
    }

    /// Copies the run's current policies and new log lines to the account.
    fn follow_run(&mut self) {
        let policies = self.run.policies();
        if !Arc::ptr_eq(&policies, &self.policies.0) {
            deploy(&self.aws, &policies);
            self.policies = (policies, self.run.now());
        }
        self.log.take(self.run.take_log());
        let state = &mut *self.aws.state();
        self.log.show(self.run.now(), state.log_groups.entry(Sample::LOG_GROUP.into()).or_default());
    }

    /// Runs one command until it has to wait or ends; returns false if no command can continue.
    fn go_on(&mut self) -> bool {
        let is_awake = |working: &Working| working.awake.0.swap(false, Ordering::Relaxed);
        let Some(turn) = self.commands.iter().position(is_awake) else { return false };
        let Working { work, awake, .. } = &mut self.commands[turn];
        let waker = Waker::from(Arc::clone(awake));
        if let Poll::Ready(ending) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
            let ended = self.commands.remove(turn);
            self.judge(&ended, ending);
        }
        true
    }

    /// Reports the command's change or failure.
    fn judge(&self, ended: &Working, ending: Ending) {
        match ending {
            Ending::Done { what, recalled } => {
                if let Some(made) = &self.made {
                    // The receiver may be gone.
                    made.send((what, recalled)).ok();
                }
            }
            Ending::Failed(failure) => {
                let what = format!("{:?}: {failure}", ended.command);
                self.run.command_failed(what, self.is_excused(ended));
            }
            Ending::NothingToDo | Ending::Killed => {}
        }
    }

    /// Returns true if a fault, or someone else's change to the pauses or policies, may excuse the command's failure.
    fn is_excused(&self, ended: &Working) -> bool {
        let began = START.saturating_add(ended.command.at);
        let state = self.aws.state();
        let versions = state.parameters.get(Sample::PAUSES).map(|it| &it.versions[..]).unwrap_or_default();
        let by_others = versions.iter().any(|it| it.at >= Some(began) && it.by.as_ref() != Some(&ended.arn));
        ended.had_fault.get() || by_others || self.policies.1 >= began
    }

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

impl Working {
    fn new(
        command: SimulatedCommand,
        number: u64,
        circumstances: Circumstances,
        aws: &SimulatedAws,
        clock: Rc<RunClock>,
    ) -> Self {
        let Circumstances { seed, fault_rate, clock_error, .. } = circumstances;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ number << 32);
        let arn = format!("arn:aws:iam::{ACCOUNT}:user/operator-{number}");
        let aws = aws.called_by(&arn);
        let error = clock_error.as_millis() as i64;
        aws.set_clock_ahead(rng.random_range(-error..=error));
        let mut latencies = Xoshiro256PlusPlus::seed_from_u64(rng.random());
        aws.calls_take(move || latency(&mut latencies));
        let had_fault = Rc::new(Cell::new(false));
        let (mut faults, struck) = (Xoshiro256PlusPlus::seed_from_u64(rng.random()), Rc::clone(&had_fault));
        aws.on_call(move |call| {
            let fault = faults.random_bool(fault_rate).then(|| fault(&mut faults, call.entries));
            struck.set(struck.get() || fault.is_some());
            fault
        });
        let SimulatedCommand { at, change, killed_after } = command;
        let work = async move {
            clock.sleep_until(START.saturating_add(at)).await;
            let keys = some_keys(&aws, change.keys(), &mut rng);
            if keys.len() < change.keys() {
                return Ending::NothingToDo;
            }
            let made = change.make(Operator::new(aws.account(), Which::Stack(Sample::STACK.into())), keys);
            match killed_after {
                Some(calls) => aws.killed_after(calls, made).await.unwrap_or(Ending::Killed),
                None => made.await,
            }
        };
        let awake = Arc::new(Awake(AtomicBool::new(true)));
        Self { command, arn, work: Box::pin(work), awake, had_fault }
    }
}

/// Returns a random latency: up to half a second or, for one call in a hundred, up to five seconds.
fn latency(rng: &mut Xoshiro256PlusPlus) -> Duration {
    let longest = if rng.random_bool(0.01) { 5_000 } else { 500 };
    Duration::from_millis(rng.random_range(5..=longest))
}

/// Picks a random fault for a call with `entries` batch entries; 0 means that it is not a batch call.
fn fault(rng: &mut Xoshiro256PlusPlus, entries: usize) -> Fault {
    match rng.random_range(0..3) {
        0 => Fault::AnswerLost,
        1 if entries > 0 => Fault::EntriesFail(BTreeSet::from([rng.random_range(0..entries)])),
        _ => Fault::CallFails,
    }
}

/// Returns the keys of `count` random events in the log, or of all events if there are fewer.
fn some_keys(aws: &SimulatedAws, count: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<String> {
    if count == 0 {
        return Vec::new();
    }
    let state = aws.state();
    let lines = state.log_groups.get(Sample::LOG_GROUP).into_iter().flat_map(|group| &group.lines);
    let keys: BTreeSet<String> =
        lines.filter_map(|line| Some(LogLine::read(&line.message).ok()?.event?.key.to_string())).collect();
    let keys: Vec<String> = keys.into_iter().collect();
    keys.sample(rng, count).cloned().collect()
}

/// The handler's log, whose lines become readable only after a delay.
struct LateLog {
    delay: Duration,
    rng: Xoshiro256PlusPlus,
    taken: u64,
    /// Lines that cannot be read yet, with their timestamps. The key is the time when the line becomes readable, and
    /// the line's number.
    late: BTreeMap<(Timestamp, u64), (Timestamp, String)>,
}

impl LateLog {
    fn new(Circumstances { seed, log_delay, .. }: Circumstances) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { delay: log_delay, rng, taken: 0, late: BTreeMap::new() }
    }

    fn take(&mut self, lines: Vec<(Timestamp, String)>) {
        for (at, line) in lines {
            let delay = Duration::from_millis(self.rng.random_range(0..=self.delay.as_millis() as u64));
            self.taken += 1;
            self.late.insert((at.saturating_add(delay), self.taken), (at, line));
        }
    }

    fn show(&mut self, now: Timestamp, log: &mut LogGroup) {
        while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= now) {
            let (at, line) = entry.remove();
            log.write(at, "run", line);
        }
    }
}
