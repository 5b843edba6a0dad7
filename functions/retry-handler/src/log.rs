//! The handler's log: JSON lines on standard output, never with anything of a payload.

use std::io::Write as _;
use std::panic::PanicHookInfo;

use comeback_engine::{
    BatchEvent, BatchReport, CallFailure, Directive, DueBy, Moves, Outcome, Pause, PausesRead, Step,
};
use tracing::{Level, Subscriber};
use tracing_subscriber::fmt::MakeWriter;

/// Starts logging JSON lines with a timestamp, whatever the function's log format is. lambda_runtime's own subscriber
/// follows that setting and leaves the timestamp to it.
pub(crate) fn init() {
    let subscriber = subscriber(std::io::stdout);
    tracing::subscriber::set_global_default(subscriber).expect("BUG: logging starts once, in main");
    std::panic::set_hook(Box::new(|panic| tracing::error!("{}", said(panic))));
}

/// The log's first line, which says what version runs.
pub(crate) fn started() {
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "the retry handler starts");
}

/// A panic of ours says what is wrong. Any other may quote the event.
fn said(panic: &PanicHookInfo<'_>) -> String {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let words = panic.payload_as_str().filter(|words| words.starts_with("BUG: "));
    format!("panicked at {place}: {}", words.unwrap_or("its message is left out, as it may quote the event"))
}

fn subscriber<W>(writer: W) -> impl Subscriber
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_target(false)
        .with_current_span(false)
        .with_span_list(false)
        .with_max_level(Level::INFO)
        .with_writer(writer)
        .finish()
}

/// A line for each message that cannot be read whole. Written before the batch is performed, so that a timeout of the
/// function does not lose it.
pub(crate) fn unreadable(batch: &BatchEvent) {
    if let Err(problem) = batch.check_ids() {
        tracing::error!("{problem}");
        return;
    }
    for message in &batch.incomplete {
        tracing::error!(message_id = message.message_id, "{message}; it is kept");
    }
    for message in &batch.garbled {
        tracing::warn!(message_id = message.message_id, "{message}");
    }
}

/// A line for each message that was handled. Copies that were only moved once more share a line.
pub(crate) fn report(report: &BatchReport<'_>) {
    report.outcomes.iter().filter(|it| !it.only_moves_on()).for_each(outcome);
    moves(&report.moves);
    if let Some(failure) = &report.unguarded {
        failed(
            failure,
            "messages could not be hidden before their calls; if the handler crashes, the calls are repeated after 1,230 s",
        );
    }
    if let Some(failure) = &report.look_failure {
        failed(failure, "the messages in flight could not be counted");
    }
    match &report.pauses {
        Some(PausesRead::Known { long, unreadable_retries }) => {
            long.iter().for_each(long_pause);
            unreadable_retries.iter().for_each(|problem| unreadable_retry(problem));
        }
        Some(PausesRead::AsBefore(failure)) => {
            failed(failure, "the pauses could not be read; using those of the last read");
        }
        Some(PausesRead::Unknown(failure)) => unknown_pauses(failure),
        None => {}
    }
}

fn unreadable_retry(problem: &str) {
    tracing::warn!(
        problem = cut(problem),
        remedy =
            "take the entry out of the parameter that PAUSES names, and order it again with comeback retry",
        "an order to retry now is unreadable, and ignored; the pauses are not affected"
    );
}

/// Lines that are JSON already.
pub(crate) fn lines(lines: &[String]) {
    let mut out = std::io::stdout().lock();
    for line in lines {
        if let Err(error) = writeln!(out, "{line}") {
            tracing::error!("a line of metrics could not be written: {error}");
        }
    }
}

fn long_pause(Pause { target, from, by, why, .. }: &Pause) {
    tracing::warn!(
        paused = cut(&target.to_string()),
        since = %from,
        by = by.as_deref().map(cut),
        why = why.as_deref().map(cut),
        "paused for over 24 hours: resume it if it was forgotten"
    );
}

/// An ERROR if an operator can fix it.
fn level(problem: Option<&CallFailure>) -> Level {
    match problem {
        Some(problem) if problem.remedy.is_some() => Level::ERROR,
        Some(_) => Level::WARN,
        None => Level::INFO,
    }
}

/// An event takes its level as a constant, hence one for each.
macro_rules! event {
    ($level:expr, $($fields:tt)*) => {
        match $level {
            Level::ERROR => tracing::error!($($fields)*),
            Level::WARN => tracing::warn!($($fields)*),
            _ => tracing::info!($($fields)*),
        }
    };
}

fn failed(failure: &CallFailure, message: &str) {
    event!(
        level(Some(failure)),
        problem = cut(&failure.cause),
        remedy = failure.remedy.as_deref(),
        "{message}"
    );
}

/// An ERROR, because messages pile up until a read works.
fn unknown_pauses(CallFailure { cause, remedy }: &CallFailure) {
    tracing::error!(
        problem = cut(cause),
        remedy = remedy.as_deref().unwrap_or("check that the handler can reach SSM, or unset PAUSES"),
        "the pauses could not be read, and none were read before: no function is invoked until a read works"
    );
}

/// One line for all of a batch's moves, if there were any.
fn moves(Moves { made, failed, problem }: &Moves) {
    if *made > 0 || problem.is_some() {
        event!(
            level(problem.as_ref()),
            action = "move",
            moved = made,
            hidden_instead = failed,
            problem = problem.as_ref().map(|problem| cut(&problem.cause)),
            remedy = problem.as_ref().and_then(|problem| problem.remedy.as_deref()),
        );
    }
}

/// One line for what was decided for a message, and whether it worked.
fn outcome(outcome: &Outcome<'_>) {
    let retry = outcome.retry.as_ref();
    let reason = outcome.reason();
    let problem = outcome.problem.as_ref();
    let directive = retry.and_then(|retry| retry.directive.as_ref());
    let (retry_after, unreadable) = match directive {
        Some(Directive::RetryAfter(moment)) => (Some(tracing::field::display(moment)), None),
        Some(Directive::Unreadable { text, why }) => (None, Some(format!("{text:?}: {why}"))),
        Some(Directive::NonRetryable) | None => (None, None),
    };
    let early = outcome.early.as_ref();
    let is_warning = problem.is_none() && (reason.is_some() || unreadable.is_some());
    event!(
        if is_warning { Level::WARN } else { level(problem) },
        message_id = outcome.message_id,
        key = retry.map(|retry| cut(&retry.key)),
        target = retry.map(|retry| cut(&retry.function_arn)),
        retry = retry.map(|retry| retry.number),
        action = outcome.step.as_ref().map(Step::name),
        delay = outcome.moved.or(outcome.visibility_timeout()).map(|wait| wait.as_secs()),
        due = outcome.due().map(tracing::field::display),
        due_by = outcome.due_by.map(DueBy::name),
        not_before = outcome.not_before.map(tracing::field::display),
        asked_at = early.map(|early| tracing::field::display(early.asked_at)),
        asked_by = early.and_then(|early| early.asked_by.as_deref()).map(cut),
        otherwise_due = early.map(|early| tracing::field::display(early.otherwise_due)),
        request_id = retry.and_then(|retry| retry.request_id.as_deref()).map(cut),
        invoke_request_id = outcome.invoke_request_id.as_deref().map(cut),
        trace = outcome.trace,
        first_failure = retry.map(|retry| tracing::field::display(retry.first_failure)),
        error_type = retry.and_then(|retry| retry.error_type.as_deref()).map(cut),
        policy = retry.and_then(|retry| retry.policy.as_deref()).map(cut),
        retry_after,
        retry_after_ignored = unreadable,
        reason = reason.map(|reason| reason.code.name()),
        detail = reason.map(|reason| reason.detail.as_str()),
        problem = problem.map(|problem| cut(&problem.cause)),
        remedy = problem.and_then(|problem| problem.remedy.as_deref()),
    );
}

/// Limits text from queues and services: CloudWatch drops lines that are too long.
fn cut(text: &str) -> &str {
    const CHARACTERS: usize = 512;
    text.char_indices().nth(CHARACTERS).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
pub(crate) mod tests {
    use std::future::Future;
    use std::io;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use comeback_engine::{Early, Pauses, Reason, ReasonCode, Retry, Timestamp};
    use serde_json::{Value, json};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Lines {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    /// What is done, and all that is logged on this thread meanwhile.
    pub(crate) async fn logged_in<O>(work: impl Future<Output = O>) -> (O, String) {
        let lines = Lines::default();
        let writer = lines.clone();
        let _logging = tracing::subscriber::set_default(subscriber(move || writer.clone()));
        (work.await, lines.text())
    }

    /// All that is logged meanwhile.
    pub(crate) fn logged(work: impl FnOnce()) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        tracing::subscriber::with_default(subscriber(move || writer.clone()), work);
        lines.text()
    }

    /// The line of an outcome, its timestamp checked and taken out.
    fn line(outcome: &Outcome<'_>) -> Value {
        let text = logged(|| super::outcome(outcome));
        assert_eq!(text.lines().count(), 1, "{text}");
        let mut line: Value = serde_json::from_str(&text).unwrap();
        let timestamp = line.as_object_mut().unwrap().remove("timestamp").unwrap();
        assert!(Timestamp::from_rfc3339(timestamp.as_str().unwrap()).is_some(), "{timestamp}");
        line
    }

    fn retry() -> Retry {
        Retry {
            function_arn: "arn:f".into(),
            number: 3,
            key: "r-0".into(),
            request_id: Some("r-2".into()),
            error_type: Some("Timeout".into()),
            directive: None,
            first_failure: Timestamp::from_secs(1_699_999_000),
            policy: None,
        }
    }

    fn deferred() -> Outcome<'static> {
        Outcome {
            message_id: "m-1",
            retry: Some(retry()),
            step: Some(Step::Defer {
                due: Timestamp::from_secs(1_700_000_000),
                visibility_timeout: Duration::from_secs(4),
            }),
            invoke_request_id: None,
            problem: None,
            hidden_for: None,
            moved: None,
            not_before: None,
            due_by: None,
            early: None,
            is_copy: false,
            trace: None,
            is_first_receive: false,
        }
    }

    #[test]
    fn first_line_has_the_version() {
        let line: Value = serde_json::from_str(&logged(started)).unwrap();
        assert_eq!((&line["version"], &line["level"]), (&json!(env!("CARGO_PKG_VERSION")), &json!("INFO")));
    }

    #[test]
    fn a_deferral_is_one_line_with_what_was_decided() {
        assert_eq!(
            line(&Outcome { due_by: Some(DueBy::Policy), ..deferred() }),
            json!({"level": "INFO", "message_id": "m-1", "key": "r-0", "target": "arn:f", "retry": 3,
                   "action": "defer", "delay": 4, "due": "2023-11-14T22:13:20.000Z", "due_by": "policy",
                   "request_id": "r-2", "first_failure": "2023-11-14T21:56:40.000Z", "error_type": "Timeout"})
        );
    }

    #[test]
    fn a_re_invocation_names_the_attempt_before_it_and_the_one_just_made() {
        let due = Timestamp::from_secs(1_700_000_000);
        let invoke_request_id = Some("r-3".into());
        let reinvoked =
            line(&Outcome { step: Some(Step::Reinvoke { due }), invoke_request_id, ..deferred() });
        assert_eq!(
            (&reinvoked["request_id"], &reinvoked["invoke_request_id"]),
            (&json!("r-2"), &json!("r-3"))
        );
        let unknown = Retry { request_id: None, error_type: None, ..retry() };
        let unknown = line(&Outcome { retry: Some(unknown), ..deferred() });
        for absent in ["request_id", "invoke_request_id", "error_type"] {
            assert_eq!(unknown.get(absent), None, "{unknown}");
        }
    }

    #[test]
    fn the_trace_of_an_event_is_on_its_line() {
        let trace = Some("1-5759e988-bd862e3fe1be46a994272793");
        assert_eq!(line(&Outcome { trace, ..deferred() })["trace"], json!(trace));
    }

    #[test]
    fn the_entry_of_a_functions_own_policy_is_on_the_line() {
        let retry = Retry { policy: Some("orders*".into()), ..retry() };
        assert_eq!(line(&Outcome { retry: Some(retry), ..deferred() })["policy"], "orders*");
    }

    #[test]
    fn a_directive_is_on_the_line_and_one_that_cannot_be_read_is_a_warning() {
        let said = |directive| {
            let retry = Retry { directive: Some(directive), ..retry() };
            let line = line(&Outcome { retry: Some(retry), ..deferred() });
            ["level", "retry_after", "retry_after_ignored"].map(|field| line[field].clone())
        };
        let moment = Directive::RetryAfter(Timestamp::from_secs(1_700_000_000));
        assert_eq!(said(moment), [json!("INFO"), json!("2023-11-14T22:13:20.000Z"), Value::Null]);
        let unreadable = Directive::Unreadable { text: "soon".into(), why: "it is not a date" };
        assert_eq!(said(unreadable), [json!("WARN"), Value::Null, json!("\"soon\": it is not a date")]);
        assert_eq!(said(Directive::NonRetryable), [json!("INFO"), Value::Null, Value::Null]);
    }

    /// What a batch logs, without the timestamps.
    fn lines(outcomes: Vec<Outcome<'_>>, moves: Moves, look_failure: Option<CallFailure>) -> Vec<Value> {
        let event = BatchEvent::default();
        lines_of(&BatchReport { outcomes, moves, look_failure, ..BatchReport::new(&event) })
    }

    fn lines_of(batch: &BatchReport<'_>) -> Vec<Value> {
        let text = logged(|| report(batch));
        let untimed = |line: &str| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("timestamp");
            line
        };
        text.lines().map(untimed).collect()
    }

    #[test]
    fn the_moves_of_a_batch_are_one_line() {
        let moved = || Outcome { moved: Some(Duration::from_secs(700)), is_copy: true, ..deferred() };
        let made = Moves { made: 2, ..Moves::default() };
        assert_eq!(
            lines(vec![moved(), moved()], made.clone(), None),
            [json!({"level": "INFO", "action": "move", "moved": 2, "hidden_instead": 0})]
        );
        // Its first line is how an event is found.
        let first = &lines(vec![Outcome { is_copy: false, ..moved() }], made.clone(), None)[0];
        assert_eq!((&first["action"], &first["key"]), (&json!("defer"), &json!("r-0")));
        let failed = Outcome {
            step: Some(Step::Reinvoke { due: Timestamp::from_secs(1_700_000_000) }),
            problem: Some(CallFailure { cause: "throttled".into(), remedy: None }),
            not_before: Some(Timestamp::from_secs(1_700_001_400)),
            ..moved()
        };
        let of_failed = &lines(vec![failed, moved()], made, None)[0];
        assert_eq!(
            (&of_failed["action"], &of_failed["problem"], &of_failed["delay"], &of_failed["not_before"]),
            (&json!("reinvoke"), &json!("throttled"), &json!(700), &json!("2023-11-14T22:36:40.000Z")),
            "a message whose step failed has its own line all the same"
        );
    }

    #[test]
    fn moves_that_are_refused_and_looks_that_fail_are_said_once_a_batch() {
        let denied = |remedy: Option<&'static str>| CallFailure {
            cause: "denied".into(),
            remedy: remedy.map(Into::into),
        };
        let moves = Moves { made: 1, failed: 3, problem: Some(denied(Some("allow it"))) };
        assert_eq!(
            lines(Vec::new(), moves, Some(denied(None))),
            [
                json!({"level": "ERROR", "action": "move", "moved": 1, "hidden_instead": 3,
                       "problem": "denied", "remedy": "allow it"}),
                json!({"level": "WARN", "problem": "denied",
                       "message": "the messages in flight could not be counted"}),
            ]
        );
        assert_eq!(lines(Vec::new(), Moves::default(), None), [] as [Value; 0]);
    }

    #[test]
    fn calls_without_a_hiding_before_them_are_said_once_a_batch() {
        let said = |remedy: Option<&'static str>| {
            let event = BatchEvent::default();
            let unguarded = Some(CallFailure { cause: "denied".into(), remedy: remedy.map(Into::into) });
            lines_of(&BatchReport { unguarded, ..BatchReport::new(&event) })
        };
        let message = "messages could not be hidden before their calls; if the handler crashes, the calls are repeated after 1,230 s";
        assert_eq!(said(None), [json!({"level": "WARN", "problem": "denied", "message": message})]);
        assert_eq!(
            said(Some("allow it")),
            [json!({"level": "ERROR", "problem": "denied", "remedy": "allow it", "message": message})]
        );
    }

    #[test]
    fn a_read_of_the_pauses_is_logged_if_it_failed_or_found_a_long_one() {
        let said = |pauses| {
            let event = BatchEvent::default();
            lines_of(&BatchReport { pauses: Some(pauses), ..BatchReport::new(&event) })
        };
        let failure = |remedy: Option<&'static str>| CallFailure {
            cause: "denied".into(),
            remedy: remedy.map(Into::into),
        };
        let before = "the pauses could not be read; using those of the last read";
        assert_eq!(
            said(PausesRead::AsBefore(failure(Some("allow it")))),
            [json!({"level": "ERROR", "problem": "denied", "remedy": "allow it", "message": before})]
        );
        assert_eq!(
            said(PausesRead::AsBefore(failure(None))),
            [json!({"level": "WARN", "problem": "denied", "message": before})]
        );
        let unknown = &said(PausesRead::Unknown(failure(None)))[0];
        let remedy = json!("check that the handler can reach SSM, or unset PAUSES");
        assert_eq!((&unknown["level"], &unknown["remedy"]), (&json!("ERROR"), &remedy));
        assert_eq!(said(PausesRead::Unknown(failure(Some("allow it"))))[0]["remedy"], json!("allow it"));
        let text = format!(
            r#"{{"v":1,"pauses":[{{"target":"*","from":1700000000,"until":null,"spread":0,"by":"ops","why":"{}"}}]}}"#,
            "x".repeat(2_000)
        );
        let long = Pauses::read(&text).unwrap().iter().cloned().collect();
        assert_eq!(
            said(PausesRead::Known { long, unreadable_retries: Vec::new() }),
            [json!({"level": "WARN", "paused": "*", "since": "2023-11-14T22:13:20.000Z", "by": "ops",
                    "why": "x".repeat(512), "message": "paused for over 24 hours: resume it if it was forgotten"})]
        );
        let unreadable =
            |unreadable_retries| said(PausesRead::Known { long: Vec::new(), unreadable_retries });
        assert_eq!(unreadable(Vec::new()), [] as [Value; 0]);
        let warning = &unreadable(vec!["missing field `at`".into()])[0];
        assert_eq!((&warning["level"], &warning["problem"]), (&json!("WARN"), &json!("missing field `at`")));
    }

    #[test]
    fn a_retry_that_comes_early_names_its_request() {
        let asked_at = Timestamp::from_secs(1_700_000_000);
        let otherwise_due = Timestamp::from_secs(1_700_025_200);
        let early = Some(Early { otherwise_due, asked_at, asked_by: Some("ops".into()) });
        let step = Some(Step::Reinvoke { due: Timestamp::from_secs(1_700_000_060) });
        let line = line(&Outcome { step, early, ..deferred() });
        let fields = ["asked_at", "asked_by", "otherwise_due"].map(|field| line[field].clone());
        assert_eq!(fields, ["2023-11-14T22:13:20.000Z", "ops", "2023-11-15T05:13:20.000Z"].map(Value::from));
    }

    #[test]
    fn a_forged_text_cannot_make_a_line_long() {
        let long = || "é".repeat(700_000);
        let (function_arn, key) = (long(), long());
        let (request_id, error_type) = (Some(long()), Some(long()));
        let retry = Some(Retry { function_arn, key, request_id, error_type, ..retry() });
        let line = line(&Outcome { retry, invoke_request_id: Some(long()), ..deferred() });
        for name in ["target", "key", "request_id", "error_type", "invoke_request_id"] {
            assert_eq!(line[name], "é".repeat(512), "{name}");
        }
    }

    #[test]
    fn a_dead_letter_has_its_reason_and_warns() {
        let reason = Reason { code: ReasonCode::MaxRetries, detail: "185 made".into() };
        let outcome = Outcome { step: Some(Step::DeadLetter { due: None, reason }), ..deferred() };
        assert_eq!(
            line(&outcome),
            json!({"level": "WARN", "message_id": "m-1", "key": "r-0", "target": "arn:f", "retry": 3,
                   "action": "dead_letter", "request_id": "r-2", "first_failure": "2023-11-14T21:56:40.000Z",
                   "error_type": "Timeout", "reason": "max_retries", "detail": "185 made"})
        );
    }

    #[test]
    fn a_problem_that_an_operator_can_fix_is_an_error_with_its_remedy() {
        let problem = |remedy: Option<&'static str>| {
            Some(CallFailure { cause: "denied".into(), remedy: remedy.map(Into::into) })
        };
        let fixable = line(&Outcome { problem: problem(Some("allow it")), ..deferred() });
        assert_eq!((&fixable["level"], &fixable["remedy"]), (&json!("ERROR"), &json!("allow it")));
        let passing = line(&Outcome { problem: problem(None), ..deferred() });
        assert_eq!((&passing["level"], &passing["problem"]), (&json!("WARN"), &json!("denied")));
    }
}
