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
//! | `requests`, `spacing`, `api` | the handler's calls: checked, then performed |
//! | `minutes` | the run minute by minute |

pub(crate) mod account;
mod api;
mod arrivals;
pub(crate) mod batch;
pub(crate) mod handling;
pub(crate) mod happening;
pub(crate) mod minutes;
mod missing_fields;
mod polling;
mod requests;
mod sending;
mod spacing;
mod strikes;

use std::time::Duration;

use comeback_engine::{Policy, Timestamp};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::aws::agenda::Agenda;
use crate::aws::id::Id;
use crate::aws::mapping::Mapping;
use crate::aws::queue::{Queue, QueueSettings, Removal, Removed, Slot};
use crate::aws::target::Target;
use crate::check::bounds::Bounds;
use crate::check::copies::Copies;
use crate::check::invariants::Broken;
use crate::check::ledger::{EXPIRED, Ledger, MAX_RECEIVE_COUNT};
use crate::check::origin::{Attempt, Tracked};
use crate::check::payload::Payloads;
use crate::event::EventNumber;
use crate::faults::dice::Dice;
use crate::figures::calls::CallCounts;
use crate::scenario::{START, Scenario};

use batch::Batch;
use handling::Handling;
use happening::{Happened, Happening};
use minutes::Minutes;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) now: Timestamp,
    /// How long the handler has waited between its calls, on top of `now`.
    pub(crate) waited: Duration,
    pub(crate) agenda: Agenda<Happening>,
    pub(crate) queue: Queue<Tracked>,
    pub(crate) mapping: Mapping<Batch>,
    pub(crate) target: Target<Attempt>,
    pub(crate) ledger: Ledger,
    pub(crate) calls: CallCounts,
    /// Messages that the handler was given, each with a decision in its log.
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
    pub(crate) minutes: Minutes,
    /// The moments of arrival, earliest last.
    arrivals: Vec<Timestamp>,
    bounds: Bounds,
    copies: Copies,
    payloads: Payloads,
    /// Messages whose retention is to end early.
    early_expiries: Vec<(Slot, Id, EventNumber)>,
    message_ids: Xoshiro256PlusPlus,
}

impl World {
    pub(crate) fn new(scenario: Scenario, policy: &Policy) -> Self {
        // One generator for each purpose, so that one more draw of one changes nothing in another.
        let mut seeds = Xoshiro256PlusPlus::seed_from_u64(scenario.seed);
        let queue = QueueSettings { in_flight_limit: scenario.in_flight_limit, ..QueueSettings::default() };
        let mut world = Self {
            now: START,
            waited: Duration::ZERO,
            agenda: Agenda::default(),
            queue: Queue::new(queue),
            mapping: Mapping::new(START),
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
            bounds: Bounds::of(policy),
            copies: Copies::default(),
            payloads: Payloads::of_size(scenario.payload_size),
            early_expiries: Vec::new(),
            minutes: Minutes::of(&scenario),
            arrivals: scenario.arrivals(seeds.random()),
            target: Target::new(scenario.outage_end(), scenario.failure_rate, seeds.random()),
            message_ids: Xoshiro256PlusPlus::seed_from_u64(seeds.random()),
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
            Happening::BatchEnds(batch) => return Happened::BatchOpened(self.open_batch(batch)),
            Happening::HandlerTimesOut(batch) => self.mapping.end(self.now, batch),
            Happening::AppearsEarly(receipt) => self.appear_early(receipt),
            Happening::ExpiresEarly(expiry) => self.expire_early(expiry),
        }
        Happened::Inside
    }

    /// The clock moves on. Until then the queue does not change.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        self.minutes.note_depth(self.now, now, self.queue.depth());
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
            // A handler may still be working on it.
            self.copies.excuse(id, false);
            self.give_up(carried.origin.event, reason);
            self.drop_carrier(carried.origin.event);
        }
        if !self.mapping.poll_planned && self.can_receive() {
            self.mapping.poll_planned = true;
            self.plan(self.scenario.poll_delay, Happening::Poll);
        }
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
        self.mapping.batches_under_way() < self.scenario.maximum_concurrency && self.queue.has_visible()
    }

    fn plan(&mut self, delay: Duration, happening: Happening) {
        self.agenda.plan(self.now.saturating_add(delay), happening);
    }
}
