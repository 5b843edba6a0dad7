//! An example target that fails on request.
//!
//! `{"fail_times": 3}` fails the first three invocations, and `{"fail": true}` fails every invocation; `"error_type"`
//! and `"error_message"` set the error. Any other event succeeds. While the environment variable `FAIL_WITH` names an
//! error, every event fails with this error, as it would after a broken deployment. An error can also control its own
//! retry: `FAIL_WITH='RetryAfter: 15m; closed'`, or `"error_type": "NonRetryable"`.
//!
//! A real target needs only the call to [`comeback_envelope::open`].

use comeback_envelope::{Malformed, open};
use lambda_runtime::{Diagnostic, LambdaEvent, run, service_fn};
use serde::Deserialize;
use serde_json::value::RawValue;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    tracing_subscriber::fmt().json().flatten_event(true).with_target(false).init();
    run(service_fn(async |invocation| handle(&invocation).map_err(diagnostic))).await
}

fn handle(invocation: &LambdaEvent<Box<RawValue>>) -> Result<(), Failure> {
    let event = open(&invocation.payload).map_err(|malformed| Failure::malformed(&malformed))?;
    let attempt = event.attempt();
    let outcome = broken(std::env::var("FAIL_WITH").ok())
        .and_then(|()| Wish::read(&event.payload))
        .and_then(|wish| wish.grant(attempt));
    let idempotency_key = event.idempotency_key(&invocation.context.request_id);
    match &outcome {
        Ok(()) => tracing::info!(attempt, idempotency_key, "succeeded"),
        Err(Failure { error_type, .. }) => tracing::warn!(attempt, idempotency_key, error_type, "failed"),
    }
    outcome
}

/// Converts a failure into the error that Lambda writes to the invocation record.
fn diagnostic(Failure { error_type, error_message }: Failure) -> Diagnostic {
    Diagnostic { error_type, error_message }
}

/// The failure that an event asks for.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Wish {
    fail: bool,
    fail_times: u64,
    error_type: Option<String>,
    error_message: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Failure {
    error_type: String,
    error_message: String,
}

/// Fails with `fail_with`, the value of `FAIL_WITH` (`TYPE` or `TYPE: MESSAGE`), unless it is unset or empty.
fn broken(fail_with: Option<String>) -> Result<(), Failure> {
    let Some(error) = fail_with.filter(|error| !error.is_empty()) else { return Ok(()) };
    let (error_type, error_message) = error.split_once(": ").unwrap_or((&error, "FAIL_WITH is set"));
    Err(Failure { error_type: error_type.to_owned(), error_message: error_message.to_owned() })
}

impl Wish {
    /// Reads from a payload how the invocation should fail, if at all.
    fn read(payload: &RawValue) -> Result<Self, Failure> {
        if !payload.get().starts_with('{') {
            return Ok(Self::default());
        }
        serde_json::from_str(payload.get()).map_err(|error| Failure {
            error_type: "UnreadableWish".to_owned(),
            error_message: error.to_string(),
        })
    }

    /// Fails if the event asks for a failure of this attempt; `attempt` is the number of earlier failures.
    fn grant(self, attempt: u64) -> Result<(), Failure> {
        if !self.fail && attempt >= self.fail_times {
            return Ok(());
        }
        Err(Failure {
            error_type: self.error_type.unwrap_or_else(|| "FailedOnRequest".to_owned()),
            error_message: self
                .error_message
                .unwrap_or_else(|| format!("attempt {attempt} was asked to fail")),
        })
    }
}

impl Failure {
    fn malformed(malformed: &Malformed) -> Self {
        Self { error_type: "MalformedEnvelope".to_owned(), error_message: malformed.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(payload: &str, attempt: u64) -> Result<(), Failure> {
        let payload = RawValue::from_string(payload.to_owned()).unwrap();
        Wish::read(&payload)?.grant(attempt)
    }

    fn failure(error_type: &str, error_message: &str) -> Result<(), Failure> {
        Err(Failure { error_type: error_type.to_owned(), error_message: error_message.to_owned() })
    }

    #[test]
    fn fails_while_fail_with_is_set() {
        assert_eq!(broken(Some("TargetDown".to_owned())), failure("TargetDown", "FAIL_WITH is set"));
        let says_when = Some("RetryAfter: 15m; closed: until noon".to_owned());
        assert_eq!(broken(says_when), failure("RetryAfter", "15m; closed: until noon"));
        assert_eq!(broken(Some(String::new())), Ok(()));
        assert_eq!(broken(None), Ok(()));
    }

    #[test]
    fn fails_as_many_times_as_asked() {
        for attempt in 0..3 {
            let message = format!("attempt {attempt} was asked to fail");
            assert_eq!(outcome(r#"{"fail_times": 3}"#, attempt), failure("FailedOnRequest", &message));
        }
        assert_eq!(outcome(r#"{"fail_times": 3}"#, 3), Ok(()));
        assert_eq!(outcome(r#"{"fail_times": 3}"#, 4), Ok(()));
    }

    #[test]
    fn fails_always_when_asked() {
        assert!(outcome(r#"{"fail": true}"#, 10_000).is_err());
        assert_eq!(outcome(r#"{"fail": false}"#, 0), Ok(()));
    }

    #[test]
    fn the_event_chooses_the_error() {
        let asked = r#"{"fail": true, "error_type": "OrderRefused"}"#;
        assert_eq!(outcome(asked, 1), failure("OrderRefused", "attempt 1 was asked to fail"));
        assert_eq!(outcome(r#"{"error_type": "OrderRefused"}"#, 0), Ok(()), "no failure, no error");
        let says_when = r#"{"fail": true, "error_type": "RetryAfter", "error_message": "15m"}"#;
        assert_eq!(outcome(says_when, 0), failure("RetryAfter", "15m"));
    }

    #[test]
    fn any_other_payload_succeeds() {
        for payload in ["{}", "null", "[1]", r#""text""#, "1.0", r#"{"order": {"fail": true}}"#] {
            assert_eq!(outcome(payload, 0), Ok(()), "{payload}");
        }
    }

    #[test]
    fn unreadable_event_fails_with_a_reason() {
        let refused = outcome(r#"{"fail_times": "three"}"#, 9).unwrap_err();
        assert_eq!(refused.error_type, "UnreadableWish");
        assert!(
            refused.error_message.starts_with("invalid type: string \"three\", expected u64"),
            "{refused:?}"
        );
    }
}
