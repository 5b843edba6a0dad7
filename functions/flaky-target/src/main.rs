//! An example of a function that Comeback retries: it fails while its event says so.
//!
//! `{"fail_times": 3}` fails the first three invocations, `{"fail": true}` every one, and
//! `{"error_type": "…", "error_message": "…"}` beside either chooses the error. Anything else succeeds. While the
//! variable `FAIL_WITH` names an error, every event fails with it: a function that a deployment broke. The error may
//! say how it wants to be retried: `FAIL_WITH='RetryAfter: 15m; closed'`, or `"error_type": "NonRetryable"`.
//!
//! Of this, a real target needs one line: [`comeback_envelope::open`].
//!
//! | file | holds |
//! |---|---|
//! | `behaviour` | what an event asks for, and the failure it gets |

mod behaviour;

use comeback_envelope::open;
use lambda_runtime::{Diagnostic, LambdaEvent, run, service_fn};
use serde_json::value::RawValue;

use crate::behaviour::{Failure, Wish, broken};

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

/// Lambda writes these two to the invocation record, where `NON_RETRYABLE_ERRORS` looks.
fn diagnostic(Failure { error_type, error_message }: Failure) -> Diagnostic {
    Diagnostic { error_type, error_message }
}
