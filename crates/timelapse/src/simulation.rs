use std::time::Duration;

use comeback_engine::{
    BatchReport, HANDLER_TIMEOUT, KnownPauses, Policy, RESERVE, Record, Room, handle_batch,
};
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
            Happened::BatchOpened(batch) => handle(&aws, *batch, policy, watcher),
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
fn handle(aws: &SimulatedAccount, mut batch: Batch, policy: &Policy, watcher: &mut impl Watcher) {
    let struck = batch.struck.take();
    if struck.as_ref().is_some_and(|event| event.check_ids().is_err()) {
        // The handler's shell reports the whole batch failed, and does nothing.
        let all = vec![true; batch.records.len()];
        return aws.0.borrow_mut().delete_settled(batch, &all);
    }
    let records = struck.as_ref().map_or(&batch.records, |event| &event.records);
    let (mut pauses, mut room) = if batch.old_handler {
        (KnownPauses::none(), Room::unlimited())
    } else {
        (batch.environment.pauses.clone(), batch.environment.room.clone())
    };
    let report = drive(aws, &batch, records, policy, &mut pauses, &mut room);
    let world = &mut *aws.0.borrow_mut();
    report_strikes(world, watcher);
    let died = world.handling.as_ref().is_some_and(|handling| handling.died);
    let report = match (report, batch.death) {
        (Some(report), None) => report,
        // It made only one call, so that there was nothing for it to die between; or no move to die of.
        (Some(report), Some(death)) if death.fault == Fault::HandlerDiedBetween => report,
        (Some(report), Some(death)) if death.fault == Fault::HandlerDiedAfterMove && !died => report,
        (_, Some(death)) => return world.bury(batch, death.fault),
        (None, None) => panic!("BUG: a simulated call did not answer at once"),
    };
    for outcome in &report.outcomes {
        watcher.decided(world.now.since(START), event_of(&batch, outcome.message_id), outcome);
    }
    world.check_hops(&batch, &report);
    if !batch.old_handler {
        (batch.environment.pauses, batch.environment.room) = (pauses, room);
        world.remember_reads(&mut batch.environment);
    }
    let mut failures: Vec<&str> = report.batch_item_failures().collect();
    let incomplete = struck.iter().flat_map(|event| &event.incomplete);
    failures.extend(incomplete.map(|message| message.message_id.as_str()));
    let kept = kept(&batch.records, &failures);
    world.delete_settled(batch, &kept);
}

/// `None` if the handler dies on the way and does nothing more.
fn drive<'a>(
    aws: &SimulatedAccount,
    batch: &Batch,
    records: &'a [Record],
    policy: &Policy,
    pauses: &mut KnownPauses,
    room: &mut Room,
) -> Option<BatchReport<'a>> {
    let past_deadline = aws.past_deadline(batch.started.saturating_add(HANDLER_TIMEOUT - RESERVE));
    let report = handle_batch(records, policy, batch.clock, &past_deadline, pauses, room, aws).now_or_never();
    assert!(!aws.0.borrow().at_work, "BUG: a simulated call panicked; see above");
    report
}

fn event_of(batch: &Batch, message_id: &str) -> EventNumber {
    let index = batch.records.iter().position(|record| record.message_id == message_id);
    batch.messages[index.expect("BUG: an outcome of another batch")].origin.event
}
