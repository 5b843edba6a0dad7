//! Simulates a deployment that keeps running. The caller can change the deployment between calls to [`Live::run`].

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use comeback_delivery::EntryAnswer;
use comeback_engine::{
    BatchEvent, BatchReport, CallFailure, DeadLetter, DeadLettered, Environment, FunctionArn, InFlightCount,
    InvokeFailure, Move, Policies, Record, Timestamp, VisibilityChange, short_name,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use slab::Slab;
use uuid::Uuid;

use crate::account::{Answers, Invoked, Service, SimulatedAccount};
use crate::aws::agenda::Agenda;
use crate::aws::draw_id;
use crate::aws::mapping::kept;
use crate::aws::target::{FailedInvocation, FailureRecords, TargetError};
use crate::world::batch::{IDLE, LIFE};

/// Time until a poller receives a visible message.
const POLL_DELAY: Duration = Duration::from_millis(20);
/// The retry handler's run time for a batch.
const HANDLER_RUN_TIME: Duration = Duration::from_millis(100);
const BATCH_SIZE: usize = 10;
/// Maximum event age that `comeback attach` sets in Lambda.
const EVENT_AGE: Duration = Duration::from_secs(60);

/// The queues, the pauses parameter and the logs of a [`Live`] deployment.
pub trait Surroundings {
    /// Receives up to `most` messages from the retry queue, as the event that a poller passes to the handler.
    fn receive(&mut self, now: Timestamp, most: usize) -> BatchEvent;

    /// Deletes a message from the retry queue, as `DeleteMessage` does.
    fn delete(&mut self, now: Timestamp, receipt_handle: &str);

    /// Changes the visibility timeout of a message in the retry queue, as `ChangeMessageVisibility` does.
    fn hide(&mut self, now: Timestamp, receipt_handle: &str, timeout: Duration) -> EntryAnswer;

    /// Sends the record of a failed invocation to the retry queue, as Lambda does.
    fn send_failure(&mut self, now: Timestamp, record: String);

    /// Sends the copy of a moved message to the retry queue, as the handler does.
    fn send_again(&mut self, now: Timestamp, copy: &Move<'_>) -> EntryAnswer;

    /// Sends a dead-letter to the dead-letter queue.
    fn send_dead_letter(&mut self, now: Timestamp, dead_letter: &DeadLetter) -> EntryAnswer;

    /// Returns true if at least one message in the retry queue is visible.
    fn has_visible(&mut self, now: Timestamp) -> bool;

    /// Returns the next time at which a message in the retry queue becomes visible or expires; `None` if the queue is
    /// empty.
    fn next_change(&self) -> Option<Timestamp>;

    /// Returns the number of in-flight messages in the retry queue.
    fn in_flight(&mut self, now: Timestamp) -> u64;

    /// Returns the value of the pauses parameter; `None` if the parameter does not exist.
    fn pauses(&mut self, now: Timestamp) -> Option<String>;

    /// Called when a function writes a line to its log; `function` is empty for the handler.
    fn log(&mut self, at: Timestamp, function: &str, stream: &str, line: String);

    /// Called after the handler has finished a batch.
    fn handled(&mut self, now: Timestamp);
}

/// A function to simulate, with its events and its defect.
#[derive(Clone, Debug)]
pub struct LiveFunction {
    /// ARN of the function, without a qualifier.
    pub arn: String,
    /// Mean number of events per hour. They arrive at random times.
    pub events_per_hour: f64,
    /// Returns the payload of the event with the given number.
    pub payload: fn(u64) -> String,
    /// Run time of an invocation.
    pub run_time: Duration,
    /// The defect in the function, or `None` if the function works.
    pub defect: Option<Defect>,
}

/// A defect that makes invocations of a function fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Every invocation fails with this error.
    Down(TargetError),
    /// Invocations whose payload contains this string fail with this error.
    Bug(&'static str, TargetError),
    /// At most this many invocations run at a time, and each takes this long. The function never runs for an event
    /// that arrives while that many are running.
    Throttled(usize, Duration),
}

#[derive(Debug)]
struct Function {
    is: LiveFunction,
    records: FailureRecords,
    arrived: u64,
    running: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Occurrence {
    /// An event arrives for the function with this index.
    Arrival(usize),
    InvocationEnds(usize),
    /// A poller of the event source mapping requests messages.
    Poll,
    /// The handler makes its calls for a batch, and responds.
    BatchEnds(usize),
}

#[derive(Debug)]
struct Invocation {
    function: usize,
    request_id: Uuid,
    payload: String,
    started: Timestamp,
    ends: Ending,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Delivered,
    Failed(TargetError),
    /// The function never ran, because it had no free concurrency before the event reached its maximum age.
    NotRun,
}

#[derive(Debug)]
struct Batch {
    started: Timestamp,
    event: BatchEvent,
    environment: LiveEnvironment,
}

#[derive(Debug)]
struct LiveEnvironment {
    handler: Environment,
    stream: String,
    born: Timestamp,
    idle_since: Timestamp,
}

/// A running deployment: the target functions, the retry handler and its event source mapping.
#[derive(Debug)]
pub struct Live {
    now: Timestamp,
    agenda: Agenda<Occurrence>,
    functions: Vec<Function>,
    invocations: Slab<Invocation>,
    batches: Slab<Batch>,
    idle: Vec<LiveEnvironment>,
    /// The policies for new environments of the handler; `None` while it refuses its settings.
    policies: Option<Arc<Policies>>,
    poll_planned: bool,
    arrivals: Xoshiro256PlusPlus,
    ids: Xoshiro256PlusPlus,
}

impl Live {
    /// Starts a deployment at `now`; the same seed, functions and calls always produce the same run.
    pub fn new(seed: u64, now: Timestamp, functions: Vec<LiveFunction>) -> Self {
        let mut seeds = Xoshiro256PlusPlus::seed_from_u64(seed);
        let function = |is: LiveFunction| {
            let records = FailureRecords::of(&is.arn);
            Function { is, records, arrived: 0, running: 0 }
        };
        let mut live = Self {
            now,
            agenda: Agenda::default(),
            functions: functions.into_iter().map(function).collect(),
            invocations: Slab::new(),
            batches: Slab::new(),
            idle: Vec::new(),
            policies: None,
            poll_planned: false,
            arrivals: Xoshiro256PlusPlus::seed_from_u64(seeds.random()),
            ids: Xoshiro256PlusPlus::seed_from_u64(seeds.random()),
        };
        (0..live.functions.len()).for_each(|function| live.plan_arrival(function));
        live
    }

    /// Returns the functions, each with its defect if it has one.
    pub fn functions(&self) -> impl Iterator<Item = &LiveFunction> {
        self.functions.iter().map(|function| &function.is)
    }

    /// Sets the defect of the function with this index; `None` repairs the function.
    pub fn set_defect(&mut self, function: usize, defect: Option<Defect>) {
        self.functions[function].is.defect = defect;
    }

    /// Changes the handler's environment variables to these policies; with `None`, the handler does not start.
    pub fn set_policies(&mut self, policies: Option<Arc<Policies>>) {
        self.policies = policies;
        self.idle.clear();
    }

    /// Adds an asynchronous invocation that Lambda accepted from another caller under this request id. Does nothing if
    /// the function is not in the deployment, or if the id is not a UUID.
    pub fn invoke(&mut self, function_arn: &str, payload: String, request_id: &str) {
        if let (Some(function), Ok(request_id)) = (self.position(function_arn), Uuid::parse_str(request_id)) {
            self.start(function, payload, request_id);
        }
    }

    fn position(&self, function_arn: &str) -> Option<usize> {
        let called = function_arn.parse::<FunctionArn>().ok()?.unqualified().to_string();
        self.functions.iter().position(|function| function.is.arn == called)
    }

    /// Advances the deployment to the time `until`.
    pub fn run(&mut self, until: Timestamp, surroundings: &mut impl Surroundings) {
        loop {
            if !self.poll_planned && self.has_a_free_poller() && surroundings.has_visible(self.now) {
                self.poll_planned = true;
                self.plan(POLL_DELAY, Occurrence::Poll);
            }
            let change = surroundings.next_change().filter(|change| *change > self.now);
            let next = change.map_or(until, |change| change.min(until));
            match self.agenda.next_until(next) {
                Some((now, occurrence)) => {
                    self.now = now;
                    self.perform(occurrence, surroundings);
                }
                None if next < until => self.now = next,
                None => break,
            }
        }
        self.now = until.max(self.now);
    }

    fn perform(&mut self, occurrence: Occurrence, surroundings: &mut impl Surroundings) {
        match occurrence {
            Occurrence::Arrival(function) => self.arrive(function),
            Occurrence::InvocationEnds(invocation) => self.end(invocation, surroundings),
            Occurrence::Poll => self.poll(surroundings),
            Occurrence::BatchEnds(batch) => self.handle(batch, surroundings),
        }
    }

    fn arrive(&mut self, position: usize) {
        let function = &mut self.functions[position];
        let payload = (function.is.payload)(function.arrived);
        function.arrived += 1;
        let request_id = draw_id(&mut self.ids);
        self.start(position, payload, request_id);
        self.plan_arrival(position);
    }

    fn plan_arrival(&mut self, function: usize) {
        let mean = 3_600.0 / self.functions[function].is.events_per_hour;
        let luck: f64 = self.arrivals.random();
        let gap = Duration::from_secs_f64(-mean * (1.0 - luck).ln());
        self.plan(gap, Occurrence::Arrival(function));
    }

    fn start(&mut self, position: usize, payload: String, request_id: Uuid) {
        let function = &mut self.functions[position];
        let (ends, run_time) = match function.is.defect {
            Some(Defect::Down(error)) => (Ending::Failed(error), function.is.run_time),
            Some(Defect::Bug(text, error)) if payload.contains(text) => {
                (Ending::Failed(error), function.is.run_time)
            }
            Some(Defect::Throttled(most, _)) if function.running >= most => (Ending::NotRun, EVENT_AGE),
            Some(Defect::Throttled(_, run_time)) => (Ending::Delivered, run_time),
            _ => (Ending::Delivered, function.is.run_time),
        };
        function.running += usize::from(!matches!(ends, Ending::NotRun));
        let started = self.now;
        let invocation =
            self.invocations.insert(Invocation { function: position, request_id, payload, started, ends });
        self.plan(run_time, Occurrence::InvocationEnds(invocation));
    }

    fn end(&mut self, key: usize, surroundings: &mut impl Surroundings) {
        let Invocation { function, request_id, payload, started, ends } = self.invocations.remove(key);
        let Function { is, records, running, .. } = &mut self.functions[function];
        if !matches!(ends, Ending::NotRun) {
            *running -= 1;
            // No two running invocations have the same key, so the key identifies the invocation's environment.
            let stream = stream(started, function as u64, key as u64);
            for (at, line) in function_log(request_id, started, self.now, ends) {
                surroundings.log(at, short_name(&is.arn), &stream, line);
            }
        }
        let record = match ends {
            Ending::Delivered => return,
            Ending::Failed(error) => {
                let failed = FailedInvocation { request_id, payload: &payload, error };
                records.write(self.now, failed, String::new())
            }
            Ending::NotRun => records.write_aged(self.now, request_id, &payload),
        };
        surroundings.send_failure(self.now, record);
    }

    fn poll(&mut self, surroundings: &mut impl Surroundings) {
        self.poll_planned = false;
        while self.has_a_free_poller() {
            let event = surroundings.receive(self.now, BATCH_SIZE);
            if event.records.is_empty() && event.incomplete.is_empty() {
                return;
            }
            let Some(environment) = self.environment() else { return };
            let batch = self.batches.insert(Batch { started: self.now, event, environment });
            self.plan(HANDLER_RUN_TIME, Occurrence::BatchEnds(batch));
        }
    }

    fn has_a_free_poller(&self) -> bool {
        let most = self.policies.as_ref().map_or(0, |it| it.stack().settings().maximum_concurrency);
        self.batches.len() < most as usize
    }

    /// Takes an idle environment of the handler, or starts one. Returns `None` if the handler does not start.
    fn environment(&mut self) -> Option<LiveEnvironment> {
        let now = self.now;
        self.idle.retain(|it| now.since(it.idle_since) <= IDLE && now.since(it.born) <= LIFE);
        self.idle.pop().or_else(|| {
            let handler = Environment::new(Arc::clone(self.policies.as_ref()?)).reading_pauses();
            let stream = stream(now, u64::MAX, self.ids.random());
            Some(LiveEnvironment { handler, stream, born: now, idle_since: now })
        })
    }

    /// Passes one batch to the real retry handler.
    fn handle(&mut self, key: usize, surroundings: &mut impl Surroundings) {
        let Batch { started, event, mut environment } = self.batches.remove(key);
        let now = self.now;
        let account = SimulatedAccount::new(Calls { live: self, surroundings });
        let report = account.handle(&mut environment.handler, &event, [started, started, now]);
        let report = report.expect("BUG: a simulated call did not answer at once");
        let Calls { live, surroundings } = account.service.into_inner();
        answer(&report, now, &environment.stream, surroundings);
        let is_current =
            live.policies.as_ref().is_some_and(|it| Arc::ptr_eq(it, environment.handler.policies()));
        if is_current {
            live.idle.push(LiveEnvironment { idle_since: now, ..environment });
        }
    }

    fn plan(&mut self, delay: Duration, occurrence: Occurrence) {
        self.agenda.plan(self.now.saturating_add(delay), occurrence);
    }
}

/// Writes the handler's log lines, and deletes the messages that the handler did not report as failed.
fn answer(report: &BatchReport<'_>, now: Timestamp, stream: &str, surroundings: &mut impl Surroundings) {
    for line in report.log_lines(now) {
        let line = serde_json::to_string(&line).expect("BUG: a log line is not JSON");
        surroundings.log(now, "", stream, line);
    }
    let records = &report.batch.records;
    let failures: Vec<&str> = report.batch_item_failures().collect();
    for (record, is_kept) in records.iter().zip(kept(records, &failures)) {
        if !is_kept {
            surroundings.delete(now, &record.receipt_handle);
        }
    }
    surroundings.handled(now);
}

struct Calls<'l, S> {
    live: &'l mut Live,
    surroundings: &'l mut S,
}

impl<S: Surroundings> Service for Calls<'_, S> {
    fn change_visibility(&mut self, changes: &[&&VisibilityChange<'_>]) -> Answers {
        let now = self.live.now;
        let hide = |change: &&&VisibilityChange<'_>| {
            self.surroundings.hide(now, &change.record.receipt_handle, change.visibility_timeout)
        };
        Ok(changes.iter().map(hide).collect())
    }

    fn invoke(&mut self, _: &Record, function_arn: &str, payload: String) -> Invoked {
        let Some(function) = self.live.position(function_arn) else {
            let cause = format!("ResourceNotFoundException: Function not found: {function_arn}");
            return Err(InvokeFailure::NotFound(cause));
        };
        let request_id = draw_id(&mut self.live.ids);
        self.live.start(function, payload, request_id);
        Ok(Some(request_id.to_string()))
    }

    fn send_dead_letters(&mut self, dead_lettered: &[&&DeadLettered<'_>]) -> Answers {
        let now = self.live.now;
        let send = |it: &&&DeadLettered<'_>| self.surroundings.send_dead_letter(now, it.dead_letter);
        Ok(dead_lettered.iter().map(send).collect())
    }

    fn send_again(&mut self, moves: &[&&Move<'_>]) -> Answers {
        let now = self.live.now;
        Ok(moves.iter().map(|copy| self.surroundings.send_again(now, copy)).collect())
    }

    fn count_in_flight(&mut self) -> Result<InFlightCount, CallFailure> {
        let at = self.live.now;
        Ok(InFlightCount { in_flight: self.surroundings.in_flight(at), at })
    }

    fn read_pauses(&mut self) -> Result<Option<String>, CallFailure> {
        Ok(self.surroundings.pauses(self.live.now))
    }
}

fn function_log(
    request_id: Uuid,
    started: Timestamp,
    ended: Timestamp,
    ends: Ending,
) -> Vec<(Timestamp, String)> {
    let mut lines = vec![(started, format!("START RequestId: {request_id} Version: $LATEST"))];
    if let Ending::Failed(TargetError { error_type, error_message, .. }) = ends {
        lines.push((ended, format!("[ERROR] {error_type}: {error_message}")));
    }
    let took = ended.since(started).as_millis();
    let report =
        format!("REPORT RequestId: {request_id}\tDuration: {took}.00 ms\tBilled Duration: {took} ms\t");
    lines.extend([(ended, format!("END RequestId: {request_id}")), (ended, report)]);
    lines
}

fn stream(born: Timestamp, of: u64, number: u64) -> String {
    let day = born.to_string()[..10].replace('-', "/");
    format!("{day}/[$LATEST]{of:016x}{number:016x}")
}
