//! The main loop of a simulated run.

use std::rc::Rc;
use std::time::Duration;

use comeback_engine::{BatchReport, Policies};

use crate::account::SimulatedAccount;
use crate::aws::agenda::START;
use crate::aws::mapping::kept;
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::figures::Summary;
use crate::scenario::{Scenario, ScenarioError};
use crate::watch::{Trace, Violation, Watcher, elapsed};
use crate::world::batch::{Batch, Death, Handover};
use crate::world::{Occurrence, World};

/// Number of simulated occurrences between two calls to [`Watcher::clock`].
const OCCURRENCES_PER_CLOCK: u64 = 4_096;

/// The reasons for a run without a summary, or for a search without a plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The scenario or the goal is invalid. There is one error for each invalid setting.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Refused(Vec<ScenarioError>),
    /// The run broke an invariant.
    #[error(transparent)]
    Violated(Box<Violation>),
    /// Faults multiplied the events so much that the run would never end.
    #[error(
        "at {}, the faults had given {} more than {most} copies or retries; lower a fault's rate, or shorten \
         its window or the run",
        elapsed(*at),
        event.map_or_else(|| "all events".to_owned(), |event| format!("event {event}"))
    )]
    Multiplied {
        /// The event that had too many copies or retries; `None` if the run exceeded only the limit for all events
        /// together.
        event: Option<EventNumber>,
        /// The limit that the run exceeded: a number of copies or retries.
        most: u64,
        /// Virtual time at which the run exceeded the limit in `most`, counted from the start of the run.
        at: Duration,
    },
}

/// Simulates a scenario under these policies until its duration is over or an invariant breaks.
///
/// If an invariant breaks, the run is repeated to record its history, without calls to the watcher.
///
/// # Errors
///
/// Fails if a setting of the scenario is out of range, if the run breaks an invariant, or if faults produce too many
/// copies or retries of events.
pub fn run(scenario: &Scenario, policies: &Policies, watcher: &mut dyn Watcher) -> Result<Summary, RunError> {
    scenario.check().map_err(RunError::Refused)?;
    simulate(scenario, policies, watcher).map_err(|error| {
        let RunError::Violated(mut violation) = error else { return error };
        let mut trace = Trace::recording(violation.event);
        let again = simulate(scenario, policies, &mut trace);
        assert!(again.is_err(), "BUG: the same seed did not give the same run");
        (violation.history, violation.trace) = trace.recorded();
        RunError::Violated(violation)
    })
}

/// Simulates the scenario once, without recording a violation's history and trace.
fn simulate(
    scenario: &Scenario,
    policies: &Policies,
    watcher: &mut dyn Watcher,
) -> Result<Summary, RunError> {
    let account = Rc::new(SimulatedAccount::new(World::new(scenario, policies)));
    let mut operators = scenario.operators.as_ref().map(|make| make.of(account.clone()));
    let mut occurrences = 0u64;
    let violated = |broken, at| RunError::Violated(Box::new(Violation::new(broken, scenario.seed, at)));
    // This is a closure, so that the borrow of the world ends before the handler calls the world.
    let next = || account.service.borrow_mut().next();
    while let Some(occurrence) = next() {
        let handover = account.service.borrow_mut().perform(occurrence, watcher);
        if let Some(handover) = handover {
            handle(&account, handover, watcher);
        }
        let acting = operators.as_mut().filter(|_| occurrence == Occurrence::OperatorsAct);
        let acted = acting.map(|operators| operators());
        let world = &mut *account.service.borrow_mut();
        match acted {
            Some(Some(again)) => world.operators_act_at(again),
            Some(None) => world.operators_are_done(),
            None => {}
        }
        world.follow_up();
        report_strikes(world, watcher);
        let at = world.now.since(START);
        if let Some(broken) = world.oracle.broken.take() {
            return Err(violated(broken, at));
        }
        if let Some((event, most)) = world.oracle.ledger.multiplied {
            return Err(RunError::Multiplied { event, most, at });
        }
        occurrences += 1;
        if occurrences.is_multiple_of(OCCURRENCES_PER_CLOCK) {
            watcher.clock(at);
        }
    }
    drop(operators);
    let account = Rc::into_inner(account).expect("BUG: operators have kept their deployment");
    let mut world = account.service.into_inner();
    world.finish();
    world.check_log().map_err(|broken| violated(broken, scenario.duration))?;
    let World { oracle, tallies, dice, .. } = world;
    Ok(Summary::of(scenario, tallies, oracle.ledger, dice.struck()))
}

fn report_strikes(world: &mut World, watcher: &mut dyn Watcher) {
    let at = world.now.since(START);
    for (fault, event) in std::mem::take(&mut world.dice.notes) {
        watcher.struck(at, event, fault);
    }
}

/// Passes one batch to the real retry handler.
fn handle(account: &SimulatedAccount<World>, mut handover: Handover, watcher: &mut dyn Watcher) {
    let event = handover.struck.as_ref().unwrap_or(&handover.event);
    let now = account.service.borrow().now;
    let Batch { started, clock, .. } = *account.service.borrow().current_batch();
    let report = account.handle(&mut handover.environment.handler, event, [started, clock, now]);
    let world = &mut *account.service.borrow_mut();
    report_strikes(world, watcher);
    let report = match (report, world.current_batch().death) {
        (Some(report), None) => report,
        (Some(report), Some(death)) if survives(&report, death) => report,
        (_, Some(death)) => return world.bury(handover, death.fault),
        (None, None) => panic!("BUG: a simulated call did not answer at once"),
    };
    world.note_report(&report, watcher);
    let failures: Vec<&str> = report.batch_item_failures().collect();
    let kept = kept(&handover.event.records, &failures);
    world.delete_settled(handover, &kept);
}

/// Returns true if the handler never reached the point of its planned crash.
fn survives(report: &BatchReport<'_>, death: Death) -> bool {
    let has_moved_nothing = death.fault == Fault::HandlerDiedAfterMove && death.calls > 0;
    report.kept_whole || death.fault == Fault::HandlerDiedBetween || has_moved_nothing
}
