//! Simulated operators, who run the shipped commands during a run of the simulator, `comeback-timelapse`.
//!
//! Their account shares the handler's log, the pauses parameter, the retry queue and the clock with the run.

mod at_work;
mod command;
mod deployed;

use std::sync::mpsc;
use std::time::Duration;

use comeback_engine::RequestKind;
use comeback_timelapse::MakeOperators;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use at_work::AtWork;
pub use at_work::Circumstances;
pub use command::{EventSelection, SimulatedChange, SimulatedCommand};

/// Simulated operators, and the commands that they run on all functions during a simulated run.
#[derive(Clone, Debug, Default)]
pub struct SimulatedOperators {
    /// The delays, faults and clock errors that the operators encounter.
    pub circumstances: Circumstances,
    /// The commands that the operators run.
    pub commands: Vec<SimulatedCommand>,
    /// The channel for the kind of each change that a command makes, such as `retry --withdraw`, and the number of
    /// messages that the change recalls.
    pub made: Option<mpsc::Sender<(String, u64)>>,
}

impl SimulatedOperators {
    /// Returns a function that creates the operators for a simulation, or `None` if they have nothing to do.
    ///
    /// `retry_now` is the time of `comeback retry`, counted from the run's start, and the value of its `--within`.
    /// `chaos` is the seed for random commands, and the length of the run.
    pub fn of(
        retry_now: Option<(Duration, Duration)>,
        chaos: Option<(u64, Duration)>,
    ) -> Option<MakeOperators> {
        let mut all = chaos.map_or_else(Self::default, |(seed, duration)| Self::chaos(seed, duration));
        let retry = retry_now.map(|(at, within)| SimulatedCommand {
            at,
            change: SimulatedChange::Request(RequestKind::Retry, within, EventSelection::All),
            killed_after: None,
        });
        all.commands.extend(retry);
        (!all.commands.is_empty()).then(|| all.make())
    }

    /// Draws random [`Circumstances`] and commands for a run of length `duration`. The list of commands may be empty.
    pub fn chaos(seed: u64, duration: Duration) -> Self {
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x6f70_6572_6174_6f72);
        let circumstances = Circumstances {
            seed,
            log_delay: Duration::from_secs(rng.random_range(0..=60)),
            fault_rate: [0.0, 0.0, 0.01, 0.05][rng.random_range(0..4_usize)],
            clock_error: Duration::from_secs([0, 5][rng.random_range(0..2_usize)]),
        };
        let mut changes = Vec::new();
        pauses(rng, duration, &mut changes);
        for _ in 0..[0, 0, 0, 1, 2, 3][rng.random_range(0..6_usize)] {
            let within = Duration::from_secs(rng.random_range(0..=7_200));
            request(rng, duration, RequestKind::Retry, within, &mut changes);
        }
        if rng.random_bool(0.25) {
            request(rng, duration, RequestKind::Cancel, Duration::ZERO, &mut changes);
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
        Self { circumstances, commands: changes.into_iter().map(command).collect(), made: None }
    }

    /// Returns a function that creates the operators at the start of each run.
    pub fn make(self) -> MakeOperators {
        MakeOperators::new(move |run| {
            let mut at_work = AtWork::new(self.circumstances, &self.commands, self.made.clone(), run);
            Box::new(move || at_work.act())
        })
    }
}

/// Adds up to two pauses to `changes` at random times, each for at most an eighth of the run.
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

/// Chooses at random which events a request selects.
fn selection(rng: &mut Xoshiro256PlusPlus) -> EventSelection {
    match rng.random_range(0..6) {
        0 => EventSelection::Error("TargetDown"),
        1 => EventSelection::Error("TargetFlaky"),
        2 => EventSelection::Keys(rng.random_range(1..=3)),
        _ => EventSelection::All,
    }
}

/// Adds a request at a random time. One request in four is withdrawn within two hours.
fn request(
    rng: &mut Xoshiro256PlusPlus,
    duration: Duration,
    kind: RequestKind,
    within: Duration,
    changes: &mut Vec<(Duration, SimulatedChange)>,
) {
    let change = SimulatedChange::Request(kind, within, selection(rng));
    let at = Duration::from_millis(rng.random_range(0..=duration.as_millis() as u64));
    changes.push((at, change));
    if rng.random_bool(0.25) {
        let after = Duration::from_secs(rng.random_range(0..=7_200));
        changes.push((at + after, SimulatedChange::Withdraw(kind)));
    }
}
