use std::time::Duration;

use comeback_engine::{BatchReport, Policy, RESERVE, Record, handle_batch};
use futures_util::FutureExt;

use crate::agenda::Happening;
use crate::faults::Fault;
use crate::invariants::Broken;
use crate::mapping::{Batch, kept};
use crate::ports::SimulatedAws;
use crate::scenario::{HANDLER_TIMEOUT, START, Scenario, ScenarioError};
use crate::summary::Summary;
use crate::violation::{Recorder, Violation};
use crate::watcher::Watcher;
use crate::world::World;

/// How many happenings pass between two calls of a watcher's clock.
const CLOCK_EVERY: u64 = 4_096;

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
/// A run that breaks one is made again, to write down what led to it; the watcher sees the first.
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
    let aws = SimulatedAws::new(World::new(scenario.clone(), policy));
    let mut happened = 0u64;
    while let Some(happening) = next(&aws) {
        match happening {
            Happening::InvocationEnds(place) => end_invocation(&aws, place, watcher),
            Happening::BatchEnds(place) => handle(&aws, place, policy, watcher),
            happening => aws.0.borrow_mut().happen(happening),
        }
        let world = &mut *aws.0.borrow_mut();
        world.follow_up();
        tell_strikes(world, watcher);
        if let Some(broken) = world.broken.take() {
            return Err((broken, world.now.since(START)));
        }
        happened += 1;
        if happened.is_multiple_of(CLOCK_EVERY) {
            watcher.clock(world.now.since(START));
        }
    }
    Summary::of(aws.0.into_inner()).map_err(|broken| (broken, scenario.duration))
}

fn next(aws: &SimulatedAws) -> Option<Happening> {
    let world = &mut *aws.0.borrow_mut();
    let (now, happening) = world.agenda.next_until(world.scenario.end())?;
    world.advance(now);
    Some(happening)
}

fn end_invocation(aws: &SimulatedAws, place: usize, watcher: &mut impl Watcher) {
    let mut world = aws.0.borrow_mut();
    let ended = world.end_invocation(place);
    let error = ended.failure.map(|(error, _)| error);
    watcher.invoked(world.now.since(START), ended.event, ended.attempt, error);
}

fn tell_strikes(world: &mut World, watcher: &mut impl Watcher) {
    let at = world.now.since(START);
    for (fault, event) in world.dice.take_notes() {
        watcher.struck(at, event, fault);
    }
}

/// One batch through the handler that ships. It reads its clock when it starts; its calls come at
/// the end of its run time, and none once its deadline has passed.
fn handle(aws: &SimulatedAws, place: usize, policy: &Policy, watcher: &mut impl Watcher) {
    let batch = aws.0.borrow_mut().open_batch(place);
    let struck = aws.0.borrow_mut().strike_fields(&batch);
    if struck.as_ref().is_some_and(|event| event.check_ids().is_err()) {
        // The shell reports the whole batch failed, and does nothing.
        let all = vec![true; batch.records.len()];
        return aws.0.borrow_mut().delete_settled(batch, &all);
    }
    let records = struck.as_ref().map_or(&batch.records, |event| &event.records);
    let report = drive(aws, &batch, records, policy);
    let world = &mut *aws.0.borrow_mut();
    tell_strikes(world, watcher);
    let report = match (report, batch.death) {
        (Some(report), None) => report,
        // It had no second call to die before.
        (Some(report), Some(death)) if death.fault == Fault::HandlerDiedBetween => report,
        (_, Some(death)) => return world.bury(batch, death.fault),
        (None, None) => panic!("BUG: a simulated call did not answer at once"),
    };
    for outcome in &report.outcomes {
        watcher.decided(world.now.since(START), event_of(&batch, outcome.message_id), outcome);
    }
    let mut failures: Vec<&str> = report.batch_item_failures().collect();
    let incomplete = struck.iter().flat_map(|event| &event.incomplete);
    failures.extend(incomplete.map(|message| message.message_id.as_str()));
    let kept = kept(&batch.records, &failures);
    world.delete_settled(batch, &kept);
}

/// `None` if the handler dies on the way: what it would do next is never done.
fn drive<'a>(
    aws: &SimulatedAws,
    batch: &Batch,
    records: &'a [Record],
    policy: &Policy,
) -> Option<BatchReport<'a>> {
    let past_deadline = aws.until(batch.started.saturating_add(HANDLER_TIMEOUT - RESERVE));
    let report = handle_batch(records, policy, batch.clock, &past_deadline, aws).now_or_never();
    assert!(!aws.0.borrow().at_work, "BUG: a simulated call panicked; see above");
    report
}

fn event_of(batch: &Batch, message_id: &str) -> usize {
    let place = batch.records.iter().position(|record| record.message_id == message_id);
    batch.received[place.expect("BUG: an outcome of another batch")].event
}
