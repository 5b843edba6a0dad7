//! Asynchronous invocations of the target, which is down for a while and fails now and then.

use std::time::Duration;

use comeback_engine::Timestamp;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use slab::Slab;

use super::failure_record::{FailureRecords, TargetError};
use super::id::Id;

/// The function whose events are retried; a policy must allow it.
pub const TARGET_ARN: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";

/// How the target fails while it is down.
pub(crate) const DOWN: TargetError = TargetError {
    error_type: "TargetDown",
    error_message: "a dependency is not reachable",
    retry_after: None,
};
/// How it fails now and then.
const FLAKY: TargetError =
    TargetError { error_type: "TargetFlaky", error_message: "it failed by chance", retry_after: None };

/// Names an invocation in Lambda's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InvocationKey(usize);

/// One invocation that Lambda has accepted.
#[derive(Debug)]
struct Invocation<T> {
    carried: T,
    request_id: Id,
    payload: String,
    error: Option<TargetError>,
}

/// An invocation that has ended.
#[derive(Debug)]
pub(crate) struct Ended<T> {
    pub(crate) carried: T,
    /// The error it failed with and the record that Lambda writes of it.
    pub(crate) failure: Option<(TargetError, String)>,
}

/// The target. Each invocation carries something of its caller's (`T`), which Lambda never looks at.
#[derive(Debug)]
pub(crate) struct Target<T> {
    invocations: Slab<Invocation<T>>,
    outage_end: Timestamp,
    failure_rate: f64,
    retry_after: Option<Duration>,
    ids: Xoshiro256PlusPlus,
    luck: Xoshiro256PlusPlus,
    records: FailureRecords,
    /// Text buffers of earlier records.
    spare: Vec<String>,
}

impl<T> Target<T> {
    /// A target that is down until `outage_end`, and afterwards fails this share of its invocations. It asks to be
    /// retried after `retry_after`.
    pub(crate) fn new(
        outage_end: Timestamp,
        failure_rate: f64,
        retry_after: Option<Duration>,
        seed: u64,
    ) -> Self {
        Self {
            invocations: Slab::new(),
            outage_end,
            failure_rate,
            retry_after,
            ids: Xoshiro256PlusPlus::seed_from_u64(seed),
            luck: Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(1)),
            records: FailureRecords::of(TARGET_ARN),
            spare: Vec::new(),
        }
    }

    /// Lambda accepts an invocation.
    pub(crate) fn start(&mut self, now: Timestamp, carried: T, payload: String) -> InvocationKey {
        let error = if now < self.outage_end {
            Some(DOWN)
        } else {
            self.luck.random_bool(self.failure_rate).then_some(FLAKY)
        };
        let error = error.map(|error| match self.retry_after {
            Some(_) => TargetError { error_type: "RetryAfter", retry_after: self.retry_after, ..error },
            None => error,
        });
        let request_id = Id::draw(&mut self.ids);
        InvocationKey(self.invocations.insert(Invocation { carried, request_id, payload, error }))
    }

    /// The request id of an invocation that has not ended.
    pub(crate) fn request_id(&self, key: InvocationKey) -> String {
        self.invocations[key.0].request_id.to_string()
    }

    pub(crate) fn end(&mut self, now: Timestamp, key: InvocationKey) -> Ended<T> {
        let Invocation { carried, request_id, payload, error } = self.invocations.remove(key.0);
        let failure = error.map(|error| {
            let spare = self.spare.pop().unwrap_or_default();
            (error, self.records.write(now, request_id, &payload, error, spare))
        });
        Ended { carried, failure }
    }

    /// The same text in a buffer of an earlier record, if there is one.
    pub(crate) fn copy(&mut self, record: &str) -> String {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.push_str(record);
        copy
    }

    /// Takes a record that is no longer needed, for its buffer. With many events this saves a
    /// twentieth of the time that a retry takes.
    pub(crate) fn reuse(&mut self, record: String) {
        self.spare.push(record);
    }
}
