use std::cell::RefCell;
use std::time::Duration;

use comeback_engine::{Policy, Ports, handle_batch};
use futures_util::FutureExt;

use crate::agenda::Happening;
use crate::mapping::{Batch, kept};
use crate::ports::SimulatedAws;
use crate::scenario::{HANDLER_TIMEOUT, START, Scenario, ScenarioError};
use crate::summary::Summary;
use crate::watcher::Watcher;
use crate::world::World;

/// How long before its timeout the handler starts no more calls: its `RESERVE`, which is the shell's
/// and so not to be had from here.
const DEADLINE_MARGIN: Duration = Duration::from_secs(7);
/// A watcher is told the time once in so many happenings.
const CLOCK_EVERY: u64 = 4_096;

/// Runs a scenario under a policy, to the end of its time.
///
/// # Errors
///
/// All settings of the scenario that were refused.
///
/// # Panics
///
/// With `BUG:`, if an event vanishes, an attempt comes out of order or a payload changes.
pub fn run(
    scenario: &Scenario,
    policy: &Policy,
    watcher: &mut impl Watcher,
) -> Result<Summary, Vec<ScenarioError>> {
    scenario.check()?;
    let aws = SimulatedAws(RefCell::new(World::new(scenario.clone())));
    let mut happened = 0u64;
    while let Some(happening) = next(&aws) {
        match happening {
            Happening::Arrival => aws.0.borrow_mut().arrive(),
            Happening::InvocationEnds(place) => end_invocation(&aws, place, watcher),
            Happening::Appears(receipt) => {
                let world = &mut *aws.0.borrow_mut();
                world.queue.appear(world.now, receipt);
            }
            Happening::Expires(slot) => {
                let world = &mut *aws.0.borrow_mut();
                world.queue.expire(world.now, slot);
            }
            Happening::Poll => aws.0.borrow_mut().poll(),
            Happening::BatchEnds(place) => handle(&aws, place, policy, watcher),
        }
        let mut world = aws.0.borrow_mut();
        world.follow_up();
        happened += 1;
        if happened.is_multiple_of(CLOCK_EVERY) {
            watcher.clock(world.now.since(START));
        }
    }
    Ok(Summary::of(aws.0.into_inner()))
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

/// One batch through the handler that ships. It reads its clock when it starts; its calls come at
/// the end of its run time, and none once its deadline has passed.
fn handle(aws: &SimulatedAws, place: usize, policy: &Policy, watcher: &mut impl Watcher) {
    let (now, batch) = {
        let world = &mut *aws.0.borrow_mut();
        (world.now, world.mapping.end(world.now, place))
    };
    let deadline = aws.until(batch.started.saturating_add(HANDLER_TIMEOUT - DEADLINE_MARGIN));
    let ports = Ports { retry_queue: aws, target: aws, dead_letter_queue: aws };
    let report = handle_batch(&batch.records, policy, batch.started, deadline, ports)
        .now_or_never()
        .expect("BUG: a simulated call did not answer at once");
    for outcome in &report.outcomes {
        watcher.decided(now.since(START), event_of(&batch, outcome.message_id), outcome);
    }
    let failures: Vec<&str> = report.batch_item_failures().collect();
    let kept = kept(&batch.records, &failures);
    aws.0.borrow_mut().delete_settled(batch, &kept);
}

fn event_of(batch: &Batch, message_id: &str) -> usize {
    let place = batch.records.iter().position(|record| record.message_id == message_id);
    batch.received[place.expect("BUG: an outcome of another batch")].1
}
