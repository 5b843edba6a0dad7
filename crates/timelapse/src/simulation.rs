use std::sync::Arc;
use std::time::Duration;

use comeback_engine::{BatchEvent, BatchReport, Environment, HANDLER_TIMEOUT, Policy, RESERVE, Record};
use futures_util::FutureExt;

use crate::aws::mapping::kept;
use crate::check::invariants::Broken;
use crate::check::violation::{Recorder, Violation};
use crate::event::EventNumber;
use crate::faults::fault::Fault;
use crate::figures::summary::Summary;
use crate::scenario::{START, Scenario, ScenarioError};
use crate::watch::watcher::Watcher;
use crate::world::World;
use crate::world::account::SimulatedAccount;
use crate::world::batch::Batch;
use crate::world::happening::Happened;

/// Between one call of [`Watcher::clock`] and the next.
const HAPPENINGS_PER_CLOCK: u64 = 4_096;

/// Why a run has no summary.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// All settings of the scenario that were refused.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Refused(Vec<ScenarioError>),
    /// An invariant did not hold.
    #[error(transparent)]
    Violated(Box<Violation>),
}

/// Runs a scenario under a policy, to the end of its time or to the first [`Invariant`] that is
/// broken.
///
/// A run that breaks one is made again, to record what led to it. The watcher sees only the first run.
///
/// [`Invariant`]: crate::Invariant
///
/// # Errors
///
/// The scenario was refused, or an invariant did not hold.
pub fn run(scenario: &Scenario, policy: &Policy, watcher: &mut impl Watcher) -> Result<Summary, RunError> {
    scenario.check().map_err(RunError::Refused)?;
    simulate(scenario, policy, watcher).map_err(|(broken, _)| {
        let mut recorder = Recorder::new(broken.event);
        let again = simulate(scenario, policy, &mut recorder);
        let (broken, at) = again.expect_err("BUG: the same seed did not give the same run");
        RunError::Violated(Box::new(recorder.violation(broken, scenario.seed, at)))
    })
}

fn simulate(
    scenario: &Scenario,
    policy: &Policy,
    watcher: &mut impl Watcher,
) -> Result<Summary, (Broken, Duration)> {
    let aws = SimulatedAccount::new(World::new(scenario.clone(), policy));
    let mut happenings = 0u64;
    while let Some(happened) = next(&aws) {
        match happened {
            Happened::Inside => {}
            Happened::Invoked(ended) => {
                let error = ended.failure.map(|(error, _)| error);
                watcher.invoked(elapsed(&aws), ended.carried.event, ended.carried.number, error);
            }
            Happened::BatchOpened(batch) => handle(&aws, *batch, watcher),
        }
        let world = &mut *aws.0.borrow_mut();
        world.follow_up();
        report_strikes(world, watcher);
        if let Some(broken) = world.broken.take() {
            return Err((broken, world.now.since(START)));
        }
        happenings += 1;
        if happenings.is_multiple_of(HAPPENINGS_PER_CLOCK) {
            watcher.clock(world.now.since(START));
        }
    }
    Summary::of(aws.0.into_inner()).map_err(|broken| (broken, scenario.duration))
}

// A function of its own, so that the world is free again when the handler calls it.
fn next(aws: &SimulatedAccount) -> Option<Happened> {
    aws.0.borrow_mut().next()
}

fn elapsed(aws: &SimulatedAccount) -> Duration {
    aws.0.borrow().now.since(START)
}

fn report_strikes(world: &mut World, watcher: &mut impl Watcher) {
    let at = world.now.since(START);
    for (fault, event) in world.dice.take_notes() {
        watcher.struck(at, event, fault);
    }
}

/// One batch through the handler that ships. It reads its clock when it starts; its calls come at
/// the end of its run time, and none once its deadline has passed.
fn handle(aws: &SimulatedAccount, mut batch: Batch, watcher: &mut impl Watcher) {
    let struck = batch.struck.take();
    let records = std::mem::take(&mut batch.records);
    let whole = BatchEvent { records, ..BatchEvent::default() };
    let mut environment = batch.environment.engine.clone();
    if batch.old_handler {
        environment = Environment::new(Arc::clone(environment.policy())).hiding_everything();
    }
    let report = drive(aws, &batch, struck.as_ref().unwrap_or(&whole), &mut environment);
    let world = &mut *aws.0.borrow_mut();
    report_strikes(world, watcher);
    let died = world.handling.as_ref().is_some_and(|handling| handling.died);
    let report = match (report, batch.death) {
        (Some(report), _) if report.kept_whole.is_some() => {
            let all = vec![true; whole.records.len()];
            batch.records = whole.records;
            return world.delete_settled(batch, &all);
        }
        (Some(report), None) => report,
        // It made only one call, so that there was nothing for it to die between; or no move to die of.
        (Some(report), Some(death)) if death.fault == Fault::HandlerDiedBetween => report,
        (Some(report), Some(death)) if death.fault == Fault::HandlerDiedAfterMove && !died => report,
        (_, Some(death)) => {
            batch.records = whole.records;
            return world.bury(batch, death.fault);
        }
        (None, None) => panic!("BUG: a simulated call did not answer at once"),
    };
    for outcome in &report.outcomes {
        watcher.decided(
            world.now.since(START),
            event_of(&batch, &whole.records, outcome.message_id),
            outcome,
        );
    }
    world.check_hops(&batch, &report);
    if !batch.old_handler {
        batch.environment.engine = environment;
        world.remember_reads(&mut batch.environment);
    }
    let failures: Vec<&str> = report.batch_item_failures().collect();
    let kept = kept(&whole.records, &failures);
    batch.records = whole.records;
    world.delete_settled(batch, &kept);
}

/// `None` if the handler dies on the way and does nothing more.
fn drive<'a>(
    aws: &SimulatedAccount,
    batch: &Batch,
    event: &'a BatchEvent,
    environment: &mut Environment,
) -> Option<BatchReport<'a>> {
    let past_deadline = aws.past_deadline(batch.started.saturating_add(HANDLER_TIMEOUT - RESERVE));
    let report = environment.handle(event, batch.clock, &past_deadline, aws).now_or_never();
    assert!(!aws.0.borrow().at_work, "BUG: a simulated call panicked; see above");
    report
}

fn event_of(batch: &Batch, records: &[Record], message_id: &str) -> EventNumber {
    let index = records.iter().position(|record| record.message_id == message_id);
    batch.messages[index.expect("BUG: an outcome of another batch")].origin.event
}
