use std::cell::{Cell, RefCell};
use std::time::Duration;

use comeback_engine::{
    BatchReport, CallFailure, Environment, GivenUp, HANDLER_TIMEOUT, InvokeFailure, Look, Move, Policy,
    RESERVE, Record, Timestamp, VisibilityChange,
};
use futures_util::FutureExt;

use crate::account::{Answers, Service, SimulatedAccount};
use crate::aws::agenda::START;
use crate::aws::mapping::kept;
use crate::check::Broken;
use crate::faults::fault::Fault;
use crate::figures::summary::Summary;
use crate::scenario::{Scenario, ScenarioError};
use crate::watch::{Recorder, Violation, Watcher};
use crate::world::batch::Batch;
use crate::world::{Happened, World};

/// Happenings between two calls of [`Watcher::clock`].
const HAPPENINGS_PER_CLOCK: u64 = 4_096;

/// Why a run has no summary.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// Every setting of the scenario that was refused.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Refused(Vec<ScenarioError>),
    /// An invariant did not hold.
    #[error(transparent)]
    Violated(Box<Violation>),
}

/// Runs a scenario under a policy, to the end of its time or to the first broken [`Invariant`](crate::Invariant).
///
/// A run that breaks one is made again to record what led to it. The watcher sees only the first run.
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
    let account = SimulatedAccount::new(Simulated::new(World::new(scenario, policy)));
    let old_handler = Environment::new(policy.clone()).hiding_everything();
    let mut happenings = 0u64;
    while let Some(happened) = account.service.next() {
        match happened {
            Happened::Inside => {}
            Happened::Invoked(ended) => {
                let error = ended.failure.map(|(error, _)| error);
                let at = account.service.world.borrow().now.since(START);
                watcher.invoked(at, ended.carried.event, ended.carried.number, error);
            }
            Happened::BatchOpened(batch) => handle(&account, *batch, &old_handler, watcher),
        }
        let world = &mut *account.service.world.borrow_mut();
        world.follow_up();
        report_strikes(world, watcher);
        if let Some(broken) = world.oracle.take_broken() {
            return Err((broken, world.now.since(START)));
        }
        happenings += 1;
        if happenings.is_multiple_of(HAPPENINGS_PER_CLOCK) {
            watcher.clock(world.now.since(START));
        }
    }
    let mut world = account.service.world.into_inner();
    world.finish();
    let World { oracle, tallies, dice, .. } = world;
    let (ledger, balance) = oracle.end().map_err(|broken| (broken, scenario.duration))?;
    Ok(Summary::of(scenario, tallies, (&ledger, balance), dice.struck()))
}

fn report_strikes(world: &mut World, watcher: &mut impl Watcher) {
    let at = world.now.since(START);
    for (fault, event) in world.dice.take_notes() {
        watcher.struck(at, event, fault);
    }
}

/// One batch through the handler that ships. It reads its clock when it starts; its calls come at the end of its run time,
/// and none once its deadline has passed.
fn handle(
    account: &SimulatedAccount<Simulated>,
    mut batch: Batch,
    old_handler: &Environment,
    watcher: &mut impl Watcher,
) {
    let mut old_handler = batch.old_handler.then(|| old_handler.clone());
    let handler = old_handler.as_mut().unwrap_or(&mut batch.environment.handler);
    let event = batch.struck.take();
    let event = event.as_ref().unwrap_or(&batch.event);
    let past_deadline =
        account.service.past_deadline(batch.started.saturating_add(HANDLER_TIMEOUT - RESERVE));
    let report = handler.handle(event, batch.clock, &past_deadline, account).now_or_never();
    assert!(!account.service.at_work.get(), "BUG: a simulated call panicked; see above");
    let world = &mut *account.service.world.borrow_mut();
    report_strikes(world, watcher);
    let report = match (report, batch.death) {
        (Some(report), None) => report,
        (Some(report), Some(death)) if survives(&report, death.fault, world) => report,
        (_, Some(death)) => return world.bury(batch, death.fault),
        (None, None) => panic!("BUG: a simulated call did not answer at once"),
    };
    for outcome in &report.outcomes {
        watcher.decided(world.now.since(START), batch.event_of(outcome.message_id), outcome);
    }
    world.note_report(&report);
    let failures: Vec<&str> = report.batch_item_failures().collect();
    let kept = kept(&batch.event.records, &failures);
    world.delete_settled(batch, &kept);
}

/// Whether a handler that was to die has answered: it did nothing, or made only one call, or moved nothing.
fn survives(report: &BatchReport<'_>, fault: Fault, world: &World) -> bool {
    report.kept_whole.is_some()
        || fault == Fault::HandlerDiedBetween
        || fault == Fault::HandlerDiedAfterMove && world.at_hand.as_ref().is_some_and(|at_hand| !at_hand.died)
}

/// The world as a service of the handler's calls, at the world's present moment: the end of the handler's run time.
pub(crate) struct Simulated {
    world: RefCell<World>,
    /// How long the handler has waited between its calls. The world stands still meanwhile; only its deadline comes nearer.
    waited: Cell<Duration>,
    /// A call is being performed. A panic in it is ours, but the handler takes it for the call's and goes on.
    at_work: Cell<bool>,
}

impl Simulated {
    fn new(world: World) -> Self {
        Self { world: RefCell::new(world), waited: Cell::default(), at_work: Cell::default() }
    }

    // A function of its own, so that the world is free again when the handler calls it.
    fn next(&self) -> Option<Happened> {
        self.world.borrow_mut().next()
    }

    /// A deadline: whether the virtual clock has reached this moment, with the time that the handler waits from now on.
    fn past_deadline(&self, moment: Timestamp) -> impl Fn() -> bool {
        self.waited.set(Duration::ZERO);
        let now = self.world.borrow().now;
        move || now.saturating_add(self.waited.get()) >= moment
    }

    /// One API call. It is never answered if the handler has died.
    fn call<T>(&self, call: impl FnOnce(&mut World) -> T) -> Option<T> {
        let lives = self.world.borrow_mut().at_hand_mut().lives_on();
        lives.then(|| self.perform(call))
    }

    fn perform<T>(&self, work: impl FnOnce(&mut World) -> T) -> T {
        assert!(!self.at_work.replace(true), "BUG: an earlier call panicked");
        let done = work(&mut self.world.borrow_mut());
        self.at_work.set(false);
        done
    }
}

impl Service for Simulated {
    fn change_visibility(&self, changes: &[&&VisibilityChange<'_>]) -> Option<Answers> {
        self.call(|world| world.change_visibility(changes))
    }

    fn invoke(
        &self,
        record: &Record,
        function_arn: &str,
        payload: String,
    ) -> Option<Result<Option<String>, InvokeFailure>> {
        self.call(|world| world.invoke(record, function_arn, payload))
    }

    fn gives_up(&self, given_up: &[GivenUp<'_>]) {
        self.perform(|world| world.note_given_up(given_up));
    }

    fn send_dead_letters(&self, given_up: &[&&GivenUp<'_>]) -> Option<Answers> {
        self.call(|world| world.send_dead_letters(given_up))
    }

    fn send_again(&self, moves: &[&&Move<'_>]) -> Option<Answers> {
        self.call(|world| world.send_again(moves))
    }

    fn look(&self) -> Option<Result<Look, CallFailure>> {
        self.call(World::look)
    }

    fn read_pauses(&self) -> Option<Result<Option<String>, CallFailure>> {
        self.call(World::read_pauses)
    }

    fn wait(&self, wait: Duration) {
        self.waited.set(self.waited.get().saturating_add(wait));
    }
}
