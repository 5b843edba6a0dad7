"""Ten bugs that an engine like this one could well have: each a few lines, and what stands there instead."""

from collections import namedtuple

Mutant = namedtuple("Mutant", "bug file before after")

MUTANTS = [
    Mutant(
        "attempt off by one",
        "crates/engine/src/event.rs",
        "None => (0, failure.timestamp.unwrap_or(record.sent), None),",
        "None => (1, failure.timestamp.unwrap_or(record.sent), None),",
    ),
    Mutant(
        "cap after jitter",
        "crates/engine/src/due.rs",
        "Duration::from_secs(policy.backoff.delay(event.retry, &mut rng))",
        "let uncapped = Backoff { cap: u64::MAX, ..policy.backoff };\n"
        "    Duration::from_secs(uncapped.delay(event.retry, &mut rng).min(policy.backoff.cap))",
    ),
    Mutant(
        "inert jitter",
        "crates/engine/src/due.rs",
        "=> generator(&record.message_id, event.retry),",
        '=> generator("", event.retry),',
    ),
    Mutant(
        "wait counted from now instead of the first receive",
        "crates/engine/src/due.rs",
        "let start = if is_first_receive(record) { now } else { record.first_receive };",
        "let start = now;",
    ),
    Mutant(
        "failed dead-letter dropped",
        "crates/engine/src/handle_batch/answered.rs",
        "Err(problem) => Sent::Failed(self.attempt.failed(problem)),",
        "Err(_) => Sent::Ended(self.attempt.outcome(None, None)),",
    ),
    Mutant(
        "failed deferral deleted",
        "crates/engine/src/report.rs",
        "Some(Step::Defer { .. }) | None => false,",
        "Some(Step::Defer { .. }) => self.problem.is_some(),\n            None => false,",
    ),
    Mutant(
        "allow-list skipped",
        "crates/engine/src/decide.rs",
        "if !policy.allows(&event.function_arn) {",
        "if false {",
    ),
    Mutant(
        "first failure reset on each retry",
        "crates/engine/src/event.rs",
        "(attempt, Timestamp::from_secs(initial_timestamp), origin_request_id)",
        "(attempt, failure.timestamp.unwrap_or(record.sent), origin_request_id)",
    ),
    Mutant(
        "envelope nested",
        "crates/engine/src/event.rs",
        "            payload: event.payload,",
        "            payload: Cow::Borrowed(failure.request_payload),",
    ),
    Mutant(
        "MAX_AGE compared the wrong way",
        "crates/engine/src/decide.rs",
        "if now > end(event, policy) {",
        "if now < end(event, policy) {",
    ),
]
