//! The handler's log: JSON lines on standard output. The lines contain nothing from a payload.

use std::io::Write as _;
use std::panic::PanicHookInfo;

use comeback_engine::{
    BatchEvent, BatchReport, CallFailure, LogLine, Moves, NO_MESSAGE_ID, Pause, PausesRead, Timestamp, logged,
};
use tracing::{Level, Subscriber};
use tracing_subscriber::fmt::MakeWriter;

/// Starts logging JSON lines with a timestamp, whatever the function's log format is. `lambda_runtime`'s subscriber
/// follows that format and omits the timestamp.
pub(crate) fn init() {
    let subscriber = subscriber(std::io::stdout);
    tracing::subscriber::set_global_default(subscriber).expect("BUG: logging starts once, in main");
    std::panic::set_hook(Box::new(|panic| tracing::error!("{}", said(panic))));
}

pub(crate) fn started() {
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "the retry handler starts");
}

/// Returns the text to log for a panic. Omits the panic's message if it may quote the event.
fn said(panic: &PanicHookInfo<'_>) -> String {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let words = panic.payload_as_str().filter(|words| words.starts_with("BUG: "));
    format!("panicked at {place}: {}", words.unwrap_or("message omitted, because it may quote the event"))
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

/// Logs a line for each message that cannot be read in full. Call this before the batch is handled, so that the lines
/// are written even if the handler times out.
pub(crate) fn unreadable(batch: &BatchEvent) {
    if batch.lacks_an_id() {
        tracing::error!("{NO_MESSAGE_ID}");
        return;
    }
    for message in &batch.incomplete {
        tracing::error!(message_id = message.message_id, "{message}; it is kept");
    }
    for message in &batch.garbled {
        tracing::warn!(message_id = message.message_id, "{message}");
    }
}

/// Logs the outcome of a batch. Messages that were only moved again get no lines of their own; one line counts all
/// moves.
pub(crate) fn report(report: &BatchReport<'_>, now: Timestamp) {
    messages(report.log_lines(now));
    moves(&report.moves);
    if let Some(failure) = &report.unguarded {
        failed(
            failure,
            "messages could not be hidden before their calls; if the handler crashes, the calls are repeated after 1,230 s",
        );
    }
    if let Some(failure) = &report.count_failure {
        failed(failure, "the messages in flight could not be counted");
    }
    match &report.pauses {
        Some(PausesRead::Known { long, unreadable_requests }) => {
            long.iter().for_each(long_pause);
            unreadable_requests.iter().for_each(|problem| unreadable_request(problem));
        }
        Some(PausesRead::AsBefore(failure)) => {
            failed(failure, "the pauses could not be read; using those of the last read");
        }
        Some(PausesRead::Unknown(failure)) => unknown_pauses(failure),
        None => {}
    }
}

fn unreadable_request(problem: &str) {
    tracing::warn!(
        problem = logged(problem),
        remedy =
            "take the entry out of the parameter that PAUSES names, and run comeback retry or cancel again",
        "a request is unreadable, and ignored; the pauses are not affected"
    );
}

fn messages<'l>(lines: impl Iterator<Item = LogLine<'l>>) {
    let lines = lines.map(|line| serde_json::to_string(&line).expect("BUG: a line of the log is not JSON"));
    self::lines(&lines.collect::<Vec<_>>());
}

/// Writes lines that are already JSON.
pub(crate) fn lines(lines: &[String]) {
    let mut out = out();
    for line in lines {
        if let Err(error) = writeln!(out, "{line}") {
            tracing::error!("a line could not be written: {error}");
        }
    }
}

#[cfg(not(test))]
fn out() -> impl std::io::Write {
    std::io::stdout().lock()
}

#[cfg(test)]
fn out() -> impl std::io::Write {
    tests::OUT.with_borrow(Clone::clone)
}

fn long_pause(Pause { target, from, by, why, .. }: &Pause) {
    tracing::warn!(
        paused = logged(&target.to_string()),
        since = %from,
        by = by.as_deref().map(logged),
        why = why.as_deref().map(logged),
        "paused for more than 24 hours; resume it if it was forgotten"
    );
}

/// ERROR for a problem that an operator can fix, WARN for any other problem.
fn level(problem: Option<&CallFailure>) -> Level {
    match problem {
        Some(problem) if problem.remedy.is_some() => Level::ERROR,
        Some(_) => Level::WARN,
        None => Level::INFO,
    }
}

/// Logs an event at a level that is known only at run time; `tracing` requires a constant level.
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
        problem = logged(&failure.cause),
        remedy = failure.remedy.as_deref(),
        "{message}"
    );
}

/// Logs that the pauses could not be read. The level is ERROR because messages accumulate until a read succeeds.
fn unknown_pauses(CallFailure { cause, remedy }: &CallFailure) {
    tracing::error!(
        problem = logged(cause),
        remedy = remedy.as_deref().unwrap_or("check that the handler can reach SSM, or unset PAUSES"),
        "the pauses could not be read, and none were read before; no function is invoked until a read succeeds"
    );
}

fn moves(Moves { made, failed, problem }: &Moves) {
    if *made > 0 || problem.is_some() {
        event!(
            level(problem.as_ref()),
            action = "move",
            moved = made,
            hidden_instead = failed,
            problem = problem.as_ref().map(|problem| logged(&problem.cause)),
            remedy = problem.as_ref().and_then(|problem| problem.remedy.as_deref()),
        );
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;
    use std::future::Future;
    use std::io;
    use std::sync::{Arc, Mutex};

    use comeback_engine::{Cause, DueBy, FailedEvent, Location, LogLine, Outcome, Pauses, Record, What};
    use serde_json::{Value, json};

    use super::*;

    #[derive(Clone, Default)]
    pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    thread_local! {
        /// Everything that this thread logs in a test.
        pub(super) static OUT: RefCell<Lines> = RefCell::default();
    }

    impl Lines {
        fn begin() -> Self {
            let lines = Self::default();
            OUT.set(lines.clone());
            lines
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    /// Awaits the future, and returns its output and everything that this thread logged while the future ran.
    pub(crate) async fn logged_in<O>(work: impl Future<Output = O>) -> (O, String) {
        let lines = Lines::begin();
        let writer = lines.clone();
        let _logging = tracing::subscriber::set_default(subscriber(move || writer.clone()));
        (work.await, lines.text())
    }

    /// Calls `work`, and returns everything that this thread logged during the call.
    pub(crate) fn logged(work: impl FnOnce()) -> String {
        let lines = Lines::begin();
        let writer = lines.clone();
        tracing::subscriber::with_default(subscriber(move || writer.clone()), work);
        lines.text()
    }

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);

    /// Returns a message that reports the function's failure at `time`, and the event parsed from it. Leaks the
    /// message, because the event borrows from it.
    pub(crate) fn failed_at(function_arn: &str, time: Timestamp) -> (&'static Record, FailedEvent<'static>) {
        let body = json!({
            "timestamp": time.to_string(),
            "requestContext": {"functionArn": function_arn, "requestId": "r-0"},
            "requestPayload": 7,
            "responsePayload": {"errorType": "Timeout"},
        });
        let record = Box::leak(Box::new(Record {
            message_id: "m-1".into(),
            receipt_handle: "h-1".into(),
            body: body.to_string(),
            receive_count: 2,
            sent: time,
            first_receive: time,
            moved: None,
            trace_header: None,
            attributes: Vec::new(),
        }));
        (record, FailedEvent::read(record).unwrap())
    }

    fn outcome(what: What, location: Location) -> Outcome<'static> {
        let (record, event) = failed_at("arn:f", Timestamp::from_secs(1_699_999_000));
        Outcome { record, event: Some(event), policy: None, what, location }
    }

    fn waiting(delay: u64) -> What {
        let due = Timestamp::from_secs(1_700_000_000);
        What::Defer { due, due_by: DueBy::Policy, delay, early: None, failure: None }
    }

    /// The outcome for a message that had been moved before, and has now been moved again.
    fn moved(what: What) -> Outcome<'static> {
        let mut outcome = outcome(what, Location::Moved);
        let mut copy = outcome.record.clone();
        copy.restore(r#"{"message_id":"m-0","sent":1,"first_receive":1,"receives":1,"moves":1}"#).unwrap();
        outcome.record = Box::leak(Box::new(copy));
        outcome
    }

    #[test]
    fn first_line_has_the_version() {
        let line: Value = serde_json::from_str(&logged(started)).unwrap();
        assert_eq!((&line["version"], &line["level"]), (&json!(env!("CARGO_PKG_VERSION")), &json!("INFO")));
    }

    #[test]
    fn a_message_without_an_id_is_the_only_line() {
        let batch = BatchEvent::read(r#"{"Records": [{}, {"messageId": "m-1"}]}"#).unwrap();
        let text = logged(|| unreadable(&batch));
        let line: Value = serde_json::from_str(&text).unwrap();
        let message = json!("a message has no messageId; the whole batch is kept");
        assert_eq!((&line["level"], &line["message"]), (&json!("ERROR"), &message));
    }

    #[test]
    fn message_line_equals_the_engines() {
        let event = BatchEvent::default();
        let deferred = outcome(waiting(4), Location::Hidden);
        let report = BatchReport { outcomes: vec![deferred.clone()], ..BatchReport::new(&event) };
        let text = logged(|| super::report(&report, NOW));
        assert_eq!(LogLine::read(text.trim_end()), Ok(LogLine::of(&deferred, NOW)), "{text}");
        assert_eq!(text.matches('\n').count(), 1, "{text}");
    }

    fn lines(outcomes: Vec<Outcome<'_>>, moves: Moves, count_failure: Option<CallFailure>) -> Vec<Value> {
        let event = BatchEvent::default();
        lines_of(&BatchReport { outcomes, moves, count_failure, ..BatchReport::new(&event) })
    }

    fn lines_of(batch: &BatchReport<'_>) -> Vec<Value> {
        let text = logged(|| report(batch, NOW));
        let untimed = |line: &str| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("timestamp");
            line
        };
        text.lines().map(untimed).collect()
    }

    #[test]
    fn moves_of_a_batch_share_a_line() {
        let moves_on = || moved(waiting(700));
        let made = Moves { made: 2, ..Moves::default() };
        assert_eq!(
            lines(vec![moves_on(), moves_on()], made.clone(), None),
            [json!({"level": "INFO", "action": "move", "moved": 2, "hidden_instead": 0})]
        );
        // A message's first move gets a line of its own, because an operator may search for it.
        let first = &lines(vec![outcome(waiting(700), Location::Moved)], made.clone(), None)[0];
        assert_eq!((&first["action"], &first["key"]), (&json!("defer"), &json!("r-0")));
        let failure = CallFailure { cause: "throttled".into(), remedy: None };
        let refused = moved(What::Keep {
            cause: Cause::Refused,
            delay: Some(700),
            not_before: Some(Timestamp::from_secs(1_700_001_400)),
            reason: None,
            due: None,
            failure: Some(failure),
        });
        let of_failed = &lines(vec![refused, moves_on()], made, None)[0];
        assert_eq!(
            (&of_failed["action"], &of_failed["problem"], &of_failed["delay"], &of_failed["not_before"]),
            (&json!("keep"), &json!("throttled"), &json!(700), &json!("2023-11-14T22:36:40.000Z")),
            "a message whose step failed has its own line all the same"
        );
    }

    #[test]
    fn failed_moves_and_counts_log_once_per_batch() {
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
    fn unguarded_calls_log_once_per_batch() {
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
    fn failed_reads_and_long_pauses_are_logged() {
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
            said(PausesRead::Known { long, unreadable_requests: Vec::new() }),
            [json!({"level": "WARN", "paused": "*", "since": "2023-11-14T22:13:20.000Z", "by": "ops",
                    "why": "x".repeat(512), "message": "paused for more than 24 hours; resume it if it was \
                                                        forgotten"})]
        );
        let unreadable =
            |unreadable_requests| said(PausesRead::Known { long: Vec::new(), unreadable_requests });
        assert_eq!(unreadable(Vec::new()), [] as [Value; 0]);
        let warning = &unreadable(vec!["missing field `at`".into()])[0];
        assert_eq!((&warning["level"], &warning["problem"]), (&json!("WARN"), &json!("missing field `at`")));
    }
}
