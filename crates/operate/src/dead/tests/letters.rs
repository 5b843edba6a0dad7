//! Letters of every kind, each with a key of its own.

use std::cell::Cell;

use comeback_engine::{Policy, Timestamp};
use rand::RngExt;

/// The only function that may be re-invoked, with any qualifier.
pub(crate) const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
/// Later than all that a simulated queue holds.
pub(crate) const NOW: Timestamp = Timestamp::from_secs(2_000_000_000);

thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });

/// What is put into the dead-letter queue.
#[derive(Clone, Debug)]
pub(crate) struct Put {
    pub(crate) key: String,
    pub(crate) error_type: &'static str,
    pub(crate) body: String,
    /// The attribute `Reason`.
    pub(crate) reason: Option<&'static str>,
    /// Whether its event can start anew.
    pub(crate) can_be_redriven: bool,
}

pub(crate) fn policy() -> Policy {
    let variables = |name: &str| (name == "TARGET_FUNCTIONS").then(|| ORDERS.to_owned());
    Policy::from_variables(variables).expect("a valid policy")
}

fn key() -> String {
    NUMBER.set(NUMBER.get() + 1);
    format!("key-{}", NUMBER.get())
}

/// A dead-letter of ours.
pub(crate) fn event(error_type: &'static str) -> Put {
    let key = key();
    let body = format!(
        r#"{{"reason":"max_age","detail":"why","function_arn":"{ORDERS}:$LATEST","retries_made":7,"initial_timestamp":999990000,"dead_lettered_at":1000000000,"origin_request_id":"{key}","error":{{"type":"{error_type}","message":"m"}},"payload":{{"n":1E400,"id":"{key}"}}}}"#
    );
    Put { key, error_type, body, reason: Some("max_age"), can_be_redriven: true }
}

/// A record that SQS's own redrive took from the retry queue.
pub(crate) fn record(error_type: &'static str) -> Put {
    let key = key();
    let body = format!(
        r#"{{"timestamp":"2001-09-09T01:46:40Z","requestContext":{{"requestId":"{key}","functionArn":"{ORDERS}"}},"requestPayload":{{"id":"{key}"}},"responsePayload":{{"errorType":"{error_type}"}}}}"#
    );
    Put { key, error_type, body, reason: None, can_be_redriven: true }
}

/// A body that was not understood.
pub(crate) fn malformed() -> Put {
    let key = key();
    let body = format!(r#"{{"requestPayload":"{key}"}}"#);
    Put { key, error_type: "", body, reason: Some("malformed_record"), can_be_redriven: false }
}

/// No message of ours.
pub(crate) fn unknown() -> Put {
    let key = key();
    let body = format!("hello from {key}");
    Put { key, error_type: "", body, reason: None, can_be_redriven: false }
}

pub(crate) fn any(luck: &mut impl RngExt) -> Put {
    let error = ["Timeout", "OutOfMemory"][luck.random_range(0..2)];
    match luck.random_range(0..8) {
        0 => record(error),
        1 => malformed(),
        2 => unknown(),
        _ => event(error),
    }
}
