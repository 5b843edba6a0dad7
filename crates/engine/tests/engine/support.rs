//! Messages and policies for the engine's tests.

use std::time::Duration;

use comeback_engine::{
    Action, BatchReport, HideUpTo, Jitter, Outcome, Pauses, Policies, Policy, Record, Settings, Timestamp,
};

/// The ARN of a function that [`policy`] allows as a target.
pub(crate) const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
/// [`ORDERS`] with a qualifier, as Lambda writes it in an invocation record.
pub(crate) const TARGET: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders:$LATEST";
/// The time at which the tests' event first failed: 2026-09-14T15:46:54Z.
pub(crate) const T0: Timestamp = Timestamp::from_secs(1_789_400_814);
pub(crate) const SENT: Timestamp = Timestamp::from_millis(T0.as_millis() + 200);
/// An hour after [`T0`]: late enough for a first retry, and well before the default `MAX_AGE`.
pub(crate) const NOW: Timestamp = Timestamp::from_secs(T0.as_secs() + 3_600);
pub(crate) const FIRST_RECEIVE: Timestamp = Timestamp::from_millis(T0.as_millis() + 1_000);

/// An invocation record for [`TARGET`], as Lambda writes it.
pub(crate) fn body(payload: &str) -> String {
    format!(
        r#"{{"version":"1.0","timestamp":"2026-09-14T15:46:54.145Z","requestContext":{{"requestId":"r-1","functionArn":"{TARGET}","condition":"RetriesExhausted","approximateInvokeCount":1}},"requestPayload":{payload},"responseContext":{{"statusCode":200,"executedVersion":"$LATEST","functionError":"Unhandled"}},"responsePayload":{{"errorType":"Timeout","errorMessage":"too slow"}}}}"#
    )
}

/// A payload in its envelope, as the function received it on retry `attempt`.
pub(crate) fn enveloped(attempt: u64, payload: &str) -> String {
    format!(
        r#"{{"_retry_metadata":{{"attempt":{attempt},"initial_timestamp":{},"origin_request_id":"r-0"}},"_original_payload":{payload}}}"#,
        T0.as_secs()
    )
}

/// A message on its first receive.
pub(crate) fn record(body: impl Into<String>) -> Record {
    Record {
        message_id: "m-1".into(),
        receipt_handle: "h-1".into(),
        body: body.into(),
        receive_count: 1,
        sent: SENT,
        first_receive: FIRST_RECEIVE,
        moved: None,
        trace_header: None,
        attributes: Vec::new(),
    }
}

pub(crate) fn received_again(body: impl Into<String>) -> Record {
    Record { receive_count: 2, ..record(body) }
}

pub(crate) fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} is not in {text}");
    text.replace(from, to)
}

/// Settings without jitter, and with room to hide every waiting message.
pub(crate) fn settings() -> Settings {
    Settings {
        max_retries: 185,
        base_backoff: 1,
        max_backoff: 43_170,
        jitter: Jitter::None,
        target_functions: vec![ORDERS.into()],
        hide_up_to: HideUpTo::Always,
        ..Settings::default()
    }
}

pub(crate) fn policy(change: impl FnOnce(&mut Settings)) -> Policy {
    let mut settings = settings();
    change(&mut settings);
    Policy::new(settings).expect("the test's settings are valid")
}

pub(crate) fn after(moment: Timestamp, millis: u64) -> Timestamp {
    moment.saturating_add(Duration::from_millis(millis))
}

/// 12 hours after `moment`, when every backoff is over.
pub(crate) fn long_after(moment: Timestamp) -> Timestamp {
    after(moment, 43_200_000)
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Defer(u64),
    Hold(u64),
    Reinvoke(u64),
    DeadLetter(&'static str),
}

/// The parts of a decision that tests compare.
pub(crate) fn seen(action: &Action<'_>) -> Seen {
    match action {
        Action::Defer { visibility_timeout, .. } => {
            assert_eq!(visibility_timeout.subsec_nanos(), 0, "SQS counts whole seconds");
            Seen::Defer(visibility_timeout.as_secs())
        }
        Action::Hold { visibility_timeout, .. } => {
            assert_eq!(visibility_timeout.subsec_nanos(), 0, "SQS counts whole seconds");
            Seen::Hold(visibility_timeout.as_secs())
        }
        Action::Reinvoke { envelope, .. } => Seen::Reinvoke(envelope.metadata.attempt),
        Action::DeadLetter { reason, .. } => Seen::DeadLetter(reason.code.name()),
    }
}

pub(crate) fn decide<'a>(record: &'a Record, policy: &Policy, now: Timestamp) -> Action<'a> {
    comeback_engine::decide(record, &Policies::from(policy.clone()), &Pauses::default(), now)
}

pub(crate) fn decided(record: &Record, policy: &Policy, now: Timestamp) -> Seen {
    seen(&decide(record, policy, now))
}

pub(crate) fn detail(record: &Record, policy: &Policy, now: Timestamp) -> String {
    match decide(record, policy, now) {
        Action::DeadLetter { reason, .. } => reason.detail,
        other => panic!("not dead-lettered: {other:?}"),
    }
}

pub(crate) fn numbered(count: usize, receive_count: u32, body: impl Fn(usize) -> String) -> Vec<Record> {
    (0..count)
        .map(|n| Record {
            message_id: format!("m-{n}"),
            receipt_handle: format!("h-{n}"),
            receive_count,
            ..record(body(n))
        })
        .collect()
}

pub(crate) fn first_receives(count: usize) -> Vec<Record> {
    numbered(count, 1, |n| body(&n.to_string()))
}

pub(crate) fn due(count: usize) -> Vec<Record> {
    numbered(count, 2, |n| body(&n.to_string()))
}

pub(crate) fn garbage(count: usize) -> Vec<Record> {
    numbered(count, 1, |n| format!("garbage {n}"))
}

pub(crate) fn kept(report: &BatchReport<'_>) -> Vec<String> {
    report.batch_item_failures().map(Into::into).collect()
}

pub(crate) fn ids(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("m-{n}")).collect()
}

pub(crate) fn problem<'o>(outcome: &'o Outcome<'_>) -> &'o str {
    &outcome.problem().expect("it has a problem").cause
}
