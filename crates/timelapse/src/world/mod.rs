//! The simulated account: a retry queue, a target, an event source mapping, and how one leads to
//! another. Its clock only moves from one happening to the next.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the account's parts, and what each happening leads to |
//! | `happening` | everything that can happen |
//! | `arrivals` | events reach the target |
//! | `sending` | from the target to the queue: records of failures |
//! | `polling`, `batch` | from the queue to the handler and back: polls, batches and their answers |
//! | `strikes`, `missing_fields` | faults of messages and batches on their way to the handler |
//! | `handling` | the batch that the handler is working on |
//! | `account` | the account as the handler sees it |
//! | `api` | the handler's calls: checked, then performed |
//! | `environments` | the handler's execution environments |
//! | `minutes` | the run minute by minute |

pub(crate) mod account;
pub(crate) mod api;
mod arrivals;
pub(crate) mod batch;
pub(crate) mod environments;
pub(crate) mod handling;
pub(crate) mod happening;
pub(crate) mod minutes;
mod missing_fields;
mod polling;
mod sending;
mod strikes;

use std::time::Duration;

use comeback_engine::{HideUpTo, Policy, Timestamp};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::aws::agenda::Agenda;
use crate::aws::id::Id;
use crate::aws::mapping::Mapping;
use crate::aws::queue::{Queue, QueueSettings, Removal, Removed, Slot};
use crate::aws::target::Target;
use crate::check::bounds::Bounds;
use crate::check::copies::Copies;
use crate::check::invariants::{Broken, Invariant};
use crate::check::ledger::{EXPIRED, Ledger, MAX_RECEIVE_COUNT};
use crate::check::origin::{Attempt, Tracked};
use crate::check::pauses::Known;
use crate::check::payload::Payloads;
use crate::check::room::InFlightBound;
use crate::event::EventNumber;
use crate::faults::dice::Dice;
use crate::figures::calls::CallCounts;
use crate::scenario::{START, Scenario};

use api::looking::Counts;
use batch::Batch;
use environments::Environments;
use handling::Handling;
use happening::{Happened, Happening};
use minutes::Minutes;

/// A handler that decided about a message this lately does not leave it to expire: the longest backoff.
const RECENTLY: Duration = Duration::from_secs(12 * 3_600);

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) now: Timestamp,
    /// How long the handler has waited between its calls, on top of `now`.
    pub(crate) waited: Duration,
    pub(crate) agenda: Agenda<Happening>,
    pub(crate) queue: Queue<Tracked>,
    pub(crate) mapping: Mapping<Batch>,
    pub(crate) environments: Environments,
    pub(crate) target: Target<Attempt>,
    pub(crate) ledger: Ledger,
    pub(crate) calls: CallCounts,
    /// Lines of the handler's log: one for each message that it was given, and one for all that it moved of a
    /// batch.
    pub(crate) decisions: u64,
    pub(crate) dice: Dice,
    /// The batch that the handler is working on.
    pub(crate) handling: Option<Handling>,
    /// A call of the handler is being performed.
    pub(crate) at_work: bool,
    /// The first invariant that was broken.
    pub(crate) broken: Option<Broken>,
    /// Re-invocations that Lambda accepted.
    pub(crate) retries: u64,
    /// Of those, the ones of a message that was re-invoked or dead-lettered before.
    pub(crate) duplicate_retries: u64,
    /// Dead-letters that SQS accepted of such a message.
    pub(crate) duplicate_dead_letters: u64,
    /// Copies that SQS accepted.
    pub(crate) moves: u64,
    /// Of those, the ones made while messages in flight were under half of `HIDE_UP_TO`.
    pub(crate) moves_with_room: u64,
    /// Copies of a message that was settled before.
    pub(crate) duplicate_moves: u64,
    pub(crate) minutes: Minutes,
    /// The moments of arrival, earliest last.
    arrivals: Vec<Timestamp>,
    bounds: Bounds,
    copies: Copies,
    payloads: Payloads,
    /// The last message to expire did so early.
    early_expiry: bool,
    /// Messages whose retention is to end early.
    early_expiries: Vec<(Slot, Id, EventNumber)>,
    message_ids: Xoshiro256PlusPlus,
    /// Of moves, so that they change no other message's id.
    copy_ids: Xoshiro256PlusPlus,
    counts: Counts,
    in_flight_bound: InFlightBound,
    /// Only to tell messages of one event apart: no check asks it.
    policy: Policy,
    /// `HIDE_UP_TO`; 0 where it is no number.
    hide_up_to: usize,
    /// `MAXIMUM_CONCURRENCY`: batches under way at once.
    pub(crate) maximum_concurrency: usize,
}

impl World {
    pub(crate) fn new(scenario: Scenario, policy: &Policy) -> Self {
        // One generator for each purpose, so that one more draw of one changes nothing in another.
        let mut seeds = Xoshiro256PlusPlus::seed_from_u64(scenario.seed);
        let queue = QueueSettings { in_flight_limit: scenario.in_flight_limit, ..QueueSettings::default() };
        let hide_up_to = if let HideUpTo::UpTo(most) = policy.hide_up_to() { most as usize } else { 0 };
        let engine = comeback_engine::Environment::new(policy.clone());
        let environments = if scenario.pauses.is_empty() {
            Environments::new(engine, Known::none())
        } else {
            Environments::new(engine.reading_pauses(), Known::Nothing)
        };
        let mut world = Self {
            now: START,
            waited: Duration::ZERO,
            agenda: Agenda::default(),
            queue: Queue::new(queue),
            mapping: Mapping::new(START),
            environments,
            ledger: Ledger::new(scenario.events),
            calls: CallCounts::default(),
            decisions: 0,
            dice: Dice::new(scenario.seed, START, &scenario.faults),
            handling: None,
            at_work: false,
            broken: None,
            retries: 0,
            duplicate_retries: 0,
            duplicate_dead_letters: 0,
            moves: 0,
            moves_with_room: 0,
            duplicate_moves: 0,
            bounds: Bounds::of(policy),
            copies: Copies::default(),
            payloads: Payloads::of_size(scenario.payload_size),
            early_expiry: false,
            early_expiries: Vec::new(),
            minutes: Minutes::of(&scenario),
            arrivals: scenario.arrivals(seeds.random()),
            target: Target::new(
                scenario.outage_end(),
                scenario.failure_rate,
                scenario.retry_after,
                seeds.random(),
            ),
            message_ids: Xoshiro256PlusPlus::seed_from_u64(seeds.random()),
            copy_ids: Xoshiro256PlusPlus::seed_from_u64(seeds.random()),
            counts: Counts::default(),
            in_flight_bound: InFlightBound::of(policy, &scenario),
            policy: policy.clone(),
            hide_up_to,
            maximum_concurrency: policy.maximum_concurrency() as usize,
            scenario,
        };
        world.plan_arrival();
        world
    }

    /// The clock moves on to the next happening. `None` once the run is over.
    pub(crate) fn next(&mut self) -> Option<Happened> {
        let (now, happening) = self.agenda.next_until(self.scenario.end())?;
        self.advance(now);
        Some(self.happen(happening))
    }

    fn happen(&mut self, happening: Happening) -> Happened {
        match happening {
            Happening::Arrival => self.arrive(),
            Happening::InvocationEnds(invocation) => {
                return Happened::Invoked(self.end_invocation(invocation));
            }
            Happening::QueueTimer(timer) => self.queue.run_out(self.now, timer),
            Happening::Poll => self.poll(),
            Happening::BatchEnds(batch) => return Happened::BatchOpened(Box::new(self.open_batch(batch))),
            Happening::HandlerTimesOut(batch) => self.mapping.end(self.now, batch),
            Happening::AppearsEarly(receipt) => self.appear_early(receipt),
            Happening::ExpiresEarly(expiry) => self.expire_early(expiry),
        }
        Happened::Inside
    }

    /// The clock moves on. Until then the queue does not change.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        self.minutes.note_depth(self.now, now, self.queue.depth());
        self.counts.note(now, self.queue.in_flight());
        self.now = now;
    }

    /// After each happening: messages that the queue has removed go to the ledger, and pollers see
    /// messages that are visible.
    pub(crate) fn follow_up(&mut self) {
        for Removed { id, carried, removal } in self.queue.take_removals() {
            let reason = match removal {
                Removal::ReceivedTooOften => MAX_RECEIVE_COUNT,
                Removal::Expired => EXPIRED,
            };
            let expired = removal == Removal::Expired && !self.early_expiry;
            if expired && self.now.since(carried.decided) < RECENTLY {
                let detail = format!("expired; a handler decided about it at {}", carried.decided);
                let broken = Broken::new(Invariant::NoneExpires, carried.origin.event, detail);
                self.note_broken(Err::<(), _>(broken));
            }
            // A handler may still be working on it.
            self.copies.excuse(id, false);
            self.give_up(carried.origin.event, reason);
            self.drop_carrier(carried.origin.event);
        }
        self.early_expiry = false;
        if !self.mapping.poll_planned && self.can_receive() {
            self.mapping.poll_planned = true;
            self.plan(self.scenario.poll_delay, Happening::Poll);
        }
        let left_visible = !self.mapping.poll_planned
            && self.queue.visible() > 0
            && self.mapping.batches_under_way() < self.maximum_concurrency;
        let checked = self.in_flight_bound.check(self.queue.in_flight(), left_visible);
        self.note_broken(checked);
    }

    fn give_up(&mut self, event: EventNumber, reason: &'static str) {
        self.ledger.give_up(event, reason);
        self.minutes.at(self.now).dead_lettered += 1;
    }

    fn drop_carrier(&mut self, event: EventNumber) {
        let dropped = self.ledger.drop_carrier(event);
        self.note_broken(dropped);
    }

    /// Notes the first invariant that is broken, which ends the run.
    fn note_broken<T>(&mut self, checked: Result<T, Broken>) -> Option<T> {
        checked.map_err(|broken| self.broken.get_or_insert(broken)).ok()
    }

    fn handling(&self) -> &Handling {
        self.handling.as_ref().expect("BUG: calls come from the handler")
    }

    fn handling_mut(&mut self) -> &mut Handling {
        self.handling.as_mut().expect("BUG: calls come from the handler")
    }

    fn can_receive(&self) -> bool {
        self.mapping.batches_under_way() < self.maximum_concurrency && self.queue.has_visible()
    }

    fn plan(&mut self, delay: Duration, happening: Happening) {
        self.agenda.plan(self.now.saturating_add(delay), happening);
    }
}
