//! Asynchronous invocations of the target, which is down for a while and fails now and then.

use comeback_engine::Timestamp;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use serde_json::value::RawValue;
use slab::Slab;

use crate::aws::failure_record::{FailureRecords, TargetError};
use crate::aws::id::Id;
use crate::check::bounds::Envelope;
use crate::check::invariants::{Broken, Invariant};
use crate::event as payload;
use crate::scenario::Scenario;

/// How the target fails while it is down.
const DOWN: TargetError =
    TargetError { error_type: "TargetDown", error_message: "a dependency is not reachable" };
/// How it fails now and then.
const FLAKY: TargetError = TargetError { error_type: "TargetFlaky", error_message: "it failed by chance" };

/// One invocation that Lambda has accepted.
#[derive(Debug)]
struct Invocation {
    event: usize,
    attempt: u64,
    request_id: Id,
    payload: String,
    error: Option<TargetError>,
}

/// How an invocation ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) event: usize,
    /// 0 if it was no retry.
    pub(crate) attempt: u64,
    /// What it failed with and the record that Lambda writes of it.
    pub(crate) failure: Option<(TargetError, String)>,
}

#[derive(Debug)]
pub(crate) struct Target {
    invocations: Slab<Invocation>,
    outage_end: Timestamp,
    failure_rate: f64,
    ids: Xoshiro256PlusPlus,
    luck: Xoshiro256PlusPlus,
    records: FailureRecords,
    /// Text buffers of earlier records.
    spare: Vec<String>,
    expected: String,
}

impl Target {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Self {
        Self {
            invocations: Slab::new(),
            outage_end: scenario.outage_end(),
            failure_rate: scenario.failure_rate,
            ids: Xoshiro256PlusPlus::seed_from_u64(seed),
            luck: Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(1)),
            records: FailureRecords::default(),
            spare: Vec::new(),
            expected: String::new(),
        }
    }

    /// The first invocation with an event. Gives its place in the list.
    pub(crate) fn arrive(&mut self, now: Timestamp, event: usize) -> usize {
        let mut text = String::new();
        payload::write(event, &mut text);
        self.start(now, event, 0, text)
    }

    /// Opens the envelope of a re-invocation as a target does, and checks that what it holds is an
    /// event's payload, byte for byte. Gives the event.
    pub(crate) fn open(&mut self, payload: &str) -> Result<(usize, Envelope), Broken> {
        let broken = |event, detail: &str| Broken::new(Invariant::PayloadVerbatim, event, detail);
        let raw: &RawValue =
            serde_json::from_str(payload).map_err(|_| broken(None, "the target got no JSON"))?;
        let opened = comeback_envelope::open(raw).map_err(|malformed| {
            broken(None, &format!("the target got a malformed envelope: {malformed}"))
        })?;
        let text = opened.payload.get();
        let event =
            payload::event_of(text).ok_or_else(|| broken(None, "the target got no event's payload"))?;
        payload::write(event, &mut self.expected);
        if text != self.expected {
            return Err(broken(Some(event), &format!("the target got {text}")));
        }
        let metadata = opened.metadata.ok_or_else(|| broken(Some(event), "the target got no envelope"))?;
        let (attempt, initial_timestamp) = (metadata.attempt, metadata.initial_timestamp);
        Ok((event, Envelope { attempt, initial_timestamp }))
    }

    /// An invocation is accepted. Gives its place in the list.
    pub(crate) fn start(&mut self, now: Timestamp, event: usize, attempt: u64, payload: String) -> usize {
        let error = if now < self.outage_end {
            Some(DOWN)
        } else {
            self.luck.random_bool(self.failure_rate).then_some(FLAKY)
        };
        let request_id = Id::draw(&mut self.ids);
        self.invocations.insert(Invocation { event, attempt, request_id, payload, error })
    }

    pub(crate) fn end(&mut self, now: Timestamp, place: usize) -> Ended {
        let Invocation { event, attempt, request_id, payload, error } = self.invocations.remove(place);
        let failure = error.map(|error| {
            let spare = self.spare.pop().unwrap_or_default();
            (error, self.records.write(now, request_id, &payload, error, spare))
        });
        Ended { event, attempt, failure }
    }

    /// Takes a record that is no longer needed, for its buffer: a twentieth of the time that a retry
    /// takes with many events.
    pub(crate) fn reuse(&mut self, record: String) {
        self.spare.push(record);
    }
}
