//! Processes a batch: chooses the records to process next, and decides the outcome of each message.

use std::collections::HashMap;
use std::future::Future;
use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, SystemTime};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use comeback_engine::{LogLevel, Timestamp};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, select};
use futures_util::stream::{self, StreamExt as _};
use lambda_runtime::{Context, Diagnostic, LambdaEvent};
use rand::RngExt as _;
use serde_json::Value;
use tower_service::Service;

use crate::calls::{Hiding, MOST_ENTRIES, Refused, SdkSqs, Sqs, queue_url};
use crate::dead_letter::{DeadLetter, Last, redriven};
use crate::line::ConsumerLine;
use crate::policy::{BadOptions, Options, SystemAttributes};

/// Lambda's maximum timeout for a function.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(900);
/// Maximum length of the reserve at the end of an invocation. During the reserve, the consumer does not start
/// processing another record.
const RESERVE: Duration = Duration::from_secs(5);
/// Calls to SQS are abandoned when only 1/`KEPT_FREE` of the [`RESERVE`] is left. If the function timed out during a
/// call, Lambda would deliver the whole batch again.
const KEPT_FREE: u32 = 5;
/// Maximum number of digits in a number from SQS, enough for milliseconds up to the year 2286.
const MOST_DIGITS: usize = 13;
/// Maximum number of characters that an error message quotes from an event's source.
const SHOWN: usize = 64;
/// Maximum length of an error's type or message, in characters.
const ERROR_CHARACTERS: usize = 8_192;
const MORE_TIME: &str = "raise the function's timeout, or lower the batch size";

/// The Lambda function made by [`consumer()`], as a service for the runtime.
#[derive(Clone)]
pub struct Consumer<F> {
    shared: Arc<Shared<F>>,
}

struct Shared<F> {
    options: Options,
    handler: F,
    sqs: Box<dyn Sqs>,
    now: fn() -> Timestamp,
    time_left: Box<dyn Fn(&Context) -> Duration + Send + Sync>,
    draw: Box<dyn Fn(u64, u64) -> u64 + Send + Sync>,
    log: Box<dyn Fn(&ConsumerLine<'_>) + Send + Sync>,
}

/// Turns a function that handles one record into a Lambda function for [`lambda_runtime::run`].
///
/// If the function returns a boxed error, convert the error with [`diagnostic`](crate::diagnostic). Otherwise, a boxed
/// [`RetryAfter`](crate::RetryAfter) or [`NonRetryable`](crate::NonRetryable) has no effect.
///
/// # Errors
///
/// Fails if an option is not valid.
pub fn consumer<F, Fut, E>(options: Options, handler: F) -> Result<Consumer<F>, BadOptions>
where
    F: Fn(SqsMessage, Context) -> Fut,
    Fut: Future<Output = Result<(), E>>,
    E: Into<Diagnostic>,
{
    options.check(std::env::var("AWS_REGION").ok().as_deref())?;
    #[expect(
        clippy::disallowed_methods,
        reason = "each draw is made once, and no other environment repeats it"
    )]
    let draw = |least, most| rand::rng().random_range(least..=most);
    let time_left = |context: &Context| time_left(Timestamp::from_millis(context.deadline), now());
    Ok(Consumer {
        shared: Arc::new(Shared {
            options,
            handler,
            sqs: Box::new(SdkSqs::default()),
            now,
            time_left: Box::new(time_left),
            draw: Box::new(draw),
            // A log line that cannot be written does not affect the message's outcome.
            log: Box::new(|line| drop(writeln!(std::io::stdout(), "{}", line.json()))),
        }),
    })
}

#[expect(clippy::disallowed_methods, reason = "the time comes from the shell")]
fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}

/// Returns the time until the deadline, or Lambda's maximum timeout if the deadline is bogus. `cargo lambda watch` sets
/// the deadline to a time in 1970.
fn time_left(deadline: Timestamp, now: Timestamp) -> Duration {
    let left = deadline.since(now);
    if left.max(now.since(deadline)) < Duration::from_secs(86_400) { left } else { LONGEST_TIMEOUT }
}

impl<F, Fut, E> Service<LambdaEvent<Value>> for Consumer<F>
where
    F: Fn(SqsMessage, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send,
    E: Into<Diagnostic> + Send,
{
    type Response = SqsBatchResponse;
    type Error = Diagnostic;
    type Future = Pin<Box<dyn Future<Output = Result<SqsBatchResponse, Diagnostic>> + Send>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Diagnostic>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, event: LambdaEvent<Value>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let records = records(event.payload)?;
            Ok(Batch::new(&shared, event.context, &records).handle(records).await)
        })
    }
}

/// Parses the records of an event. Fails if a record is not from SQS, so that no foreign record counts as handled.
fn records(event: Value) -> Result<Vec<SqsMessage>, Diagnostic> {
    let problem = match &event {
        Value::Object(event) => match event.get("Records") {
            Some(Value::Array(records)) => records.iter().find_map(foreign),
            _ => Some("it has no list of Records".to_owned()),
        },
        _ => Some("it is not an object".to_owned()),
    };
    let event = match problem {
        None => serde_json::from_value::<SqsEvent>(event).map_err(|error| error.to_string()),
        Some(problem) => Err(problem),
    };
    event.map(|event| event.records).map_err(|problem| Diagnostic {
        error_type: "NotAnSqsEvent".into(),
        error_message: format!(
            "not an SQS event: {problem}; comeback-sqs is for functions behind an SQS event source mapping"
        ),
    })
}

/// Returns the reason why a record is not from SQS, or `None` if it is from SQS.
fn foreign(record: &Value) -> Option<String> {
    let Value::Object(record) = record else { return Some("a record is not an object".into()) };
    let text = |name: &str| record.get(name).and_then(Value::as_str);
    match text("eventSource").or_else(|| text("EventSource")) {
        Some("aws:sqs") => None,
        Some(source) => Some(format!("a record is from {}", source.chars().take(SHOWN).collect::<String>())),
        None => {
            let named = text("eventSourceARN").is_some_and(|arn| arn.contains(":sqs:"));
            (!named && !record.contains_key("messageId")).then(|| "a record has no eventSource".into())
        }
    }
}

struct ReceivedMessage {
    record: SqsMessage,
    id: String,
    sent: SystemAttributes,
    /// The ID of the message's group in a FIFO queue, or `None` in a standard queue.
    group: Option<String>,
    end: Mutex<Ending>,
    /// True once SQS has confirmed that it hid or deleted the message.
    told: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Processing of the record has not started or has not finished. The message becomes visible again after the
    /// queue's own visibility timeout.
    Untouched,
    /// The record succeeded, or the message was sent to the dead-letter queue.
    Settled,
    /// The record failed, and its message is to become visible again at this time.
    Due(Timestamp),
    /// The message is skipped, because an earlier message of its group was not processed successfully. It becomes
    /// visible again immediately.
    Blocked,
}

impl ReceivedMessage {
    fn of(record: SqsMessage, fifo: bool, now: Timestamp) -> Self {
        let attribute = |name: &str| record.attributes.get(name);
        let number = |name: &str| -> Option<u64> {
            let text = attribute(name)?;
            let holds = text.len() <= MOST_DIGITS && text.bytes().all(|it| it.is_ascii_digit());
            text.parse().ok().filter(|_| holds)
        };
        let millis = |name| number(name).map_or(now, Timestamp::from_millis);
        let receives = number("ApproximateReceiveCount").unwrap_or(1).max(1);
        let sent = SystemAttributes {
            receives: receives.try_into().unwrap_or(u32::MAX),
            sent: millis("SentTimestamp"),
            first_receive: millis("ApproximateFirstReceiveTimestamp"),
            fifo,
        };
        let group = attribute("MessageGroupId").filter(|_| fifo).cloned();
        let id = record.message_id.clone().unwrap_or_default();
        let (end, told) = (Mutex::new(Ending::Untouched), AtomicBool::new(false));
        Self { record, id, sent, group, end, told }
    }

    fn end(&self) -> MutexGuard<'_, Ending> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_to_be_hidden(&self) -> bool {
        matches!(*self.end(), Ending::Due(_) | Ending::Blocked) && !self.told.load(Ordering::Relaxed)
    }

    fn is_to_be_deleted(&self) -> bool {
        *self.end() == Ending::Settled && !self.told.load(Ordering::Relaxed)
    }
}

struct Batch<'a, F> {
    shared: &'a Shared<F>,
    context: Context,
    queue_arn: String,
    reserve: Duration,
    /// The time from the start of the batch until the [reserve](RESERVE) begins.
    until_reserve: Duration,
    started: AtomicBool,
}

impl<'a, F, Fut, E> Batch<'a, F>
where
    F: Fn(SqsMessage, Context) -> Fut,
    Fut: Future<Output = Result<(), E>>,
    E: Into<Diagnostic>,
{
    fn new(shared: &'a Shared<F>, context: Context, records: &[SqsMessage]) -> Self {
        let queue_arn = records.first().and_then(|record| record.event_source_arn.clone());
        let time_left = (shared.time_left)(&context);
        let reserve = RESERVE.min(time_left / 10);
        let (until_reserve, started) = (time_left - reserve, AtomicBool::new(false));
        let queue_arn = queue_arn.unwrap_or_default();
        Self { shared, context, queue_arn, reserve, until_reserve, started }
    }

    async fn handle(&self, records: Vec<SqsMessage>) -> SqsBatchResponse {
        let mut response = SqsBatchResponse::default();
        if !records.iter().all(|record| record.message_id.as_ref().is_some_and(|id| !id.is_empty())) {
            let problem = "a record has no messageId, so none of the batch was run".to_owned();
            self.log(&ConsumerLine { problem: Some(problem), ..self.line(LogLevel::Error, "keep") });
            // An empty identifier makes Lambda keep the whole batch.
            response.set_failures([""]);
            return response;
        }
        let fifo = self.queue_arn.ends_with(".fifo");
        let now = (self.shared.now)();
        let messages: Vec<ReceivedMessage> =
            records.into_iter().map(|record| ReceivedMessage::of(record, fifo, now)).collect();
        select(pin!(self.run(&messages)), pin!(self.settle_early(&messages))).await;
        self.hide(&messages).await;
        let kept = messages.iter().filter(|message| *message.end() != Ending::Settled);
        response.set_failures(kept.map(|message| message.id.as_str()));
        response
    }

    /// Waits until the [reserve](RESERVE) begins, then hides or deletes the messages whose outcome is known, so that a
    /// timeout affects only the others. Never returns, because the response must wait for `run`. The caller drops this
    /// future when `run` is done.
    async fn settle_early(&self, messages: &[ReceivedMessage]) {
        // If the batch has only one record, a timeout cannot affect other records.
        if messages.len() > 1 {
            tokio::time::sleep(self.until_reserve).await;
            let running = messages.iter().filter(|message| *message.end() == Ending::Untouched).count();
            let problem = format!("records not done when the function's time was nearly up: {running}");
            let (problem, remedy) = (Some(problem), Some(MORE_TIME.into()));
            self.log(&ConsumerLine { problem, remedy, ..self.line(LogLevel::Warn, "keep") });
            self.hide(messages).await;
            self.delete(messages).await;
        }
        std::future::pending().await
    }

    async fn run(&self, messages: &[ReceivedMessage]) {
        if self.shared.options.concurrency == 1 {
            return self.run_in_order(messages).await;
        }
        // The futures are collected first, because the compiler cannot prove that a stream over the iterator is `Send`.
        let lanes: Vec<_> = lanes(messages).into_iter().map(|lane| self.run_in_order(lane)).collect();
        stream::iter(lanes).buffer_unordered(self.shared.options.concurrency).collect().await
    }

    async fn run_in_order<'m>(&self, messages: impl IntoIterator<Item = &'m ReceivedMessage>) {
        let mut blocked: Vec<&str> = Vec::new();
        for message in messages {
            let group = message.group.as_deref();
            if group.is_some_and(|group| blocked.contains(&group)) {
                *message.end() = Ending::Blocked; // set even if no time is left
            } else if self.has_time() {
                let end = self.run_one(message).await;
                *message.end() = end;
                if end != Ending::Settled {
                    blocked.extend(group);
                }
            }
        }
    }

    /// Returns true for the first record, and while there is time to begin another.
    fn has_time(&self) -> bool {
        !self.started.swap(true, Ordering::Relaxed) || (self.shared.time_left)(&self.context) > self.reserve
    }

    /// Returns how long a call to SQS may take if it starts now, or `None` if it is too late to start one.
    fn time_for_a_call(&self) -> Option<Duration> {
        let left = (self.shared.time_left)(&self.context).saturating_sub(self.reserve / KEPT_FREE);
        (!left.is_zero()).then_some(left)
    }

    async fn run_one(&self, message: &ReceivedMessage) -> Ending {
        let running = AssertUnwindSafe(async {
            let running = (self.shared.handler)(redriven(&message.record), self.context.clone());
            running.await.map_err(Into::<Diagnostic>::into) // the user's code, which may panic
        });
        let mut error = match running.catch_unwind().await {
            Ok(Ok(())) => return Ending::Settled,
            Ok(Err(error)) => error,
            Err(panic) => {
                let said = panic.downcast_ref::<&str>().copied().map(str::to_owned);
                let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                Diagnostic { error_type: "panic".into(), error_message: said }
            }
        };
        for text in [&mut error.error_type, &mut error.error_message] {
            if let Some((end, _)) = text.char_indices().nth(ERROR_CHARACTERS) {
                text.truncate(end);
            }
        }
        self.failed(message, &error).await
    }

    /// Decides the outcome of a message whose record failed, and dead-letters the message if it gets no retry.
    async fn failed(&self, message: &ReceivedMessage, error: &Diagnostic) -> Ending {
        let Shared { options, now, draw, .. } = self.shared;
        let now = now();
        let (decided, ignored) = options.decide(message.sent, error, now, draw);
        let level = if ignored.is_some() { LogLevel::Warn } else { LogLevel::Info };
        let line = ConsumerLine {
            message_id: Some(&message.id),
            target: Some(&self.context.invoked_function_arn),
            retry: Some(message.sent.receives),
            error_type: Some(&error.error_type),
            error_message: Some(&error.error_message),
            retry_after_ignored: ignored,
            ..self.line(level, "defer")
        };
        let end = match decided {
            Ok(retry) => {
                self.log(&ConsumerLine { due: Some(retry.due), due_by: Some(retry.due_by), ..line });
                return Ending::Due(retry.due);
            }
            Err(end) => end,
        };
        let line = ConsumerLine {
            level: LogLevel::Warn,
            action: "dead_letter",
            reason: Some(end.reason),
            detail: Some(end.detail.clone()),
            ..line
        };
        let Err(refused) = self.dead_letter(message, &Last { error, end: &end, at: now }).await else {
            self.log(&line);
            return Ending::Settled;
        };
        let fifo = message.sent.fifo;
        let backoff = match options.dead_letter_queue_url {
            Some(_) => options.draw(message.sent.receives, fifo, draw),
            None => options.cap(fifo),
        };
        let due = now.saturating_add(backoff);
        let (problem, remedy) = (Some(refused.problem), refused.remedy);
        self.log(&ConsumerLine { level: LogLevel::Error, due: Some(due), problem, remedy, ..line });
        Ending::Due(due)
    }

    async fn dead_letter(&self, message: &ReceivedMessage, last: &Last<'_>) -> Result<(), Refused> {
        let refused = |problem: &str, remedy: &str| {
            Err(Refused { problem: problem.into(), remedy: Some(remedy.into()) })
        };
        let Some(url) = &self.shared.options.dead_letter_queue_url else {
            let remedy = "set dead_letter_queue_url, or give the queue a redrive policy";
            return refused("nothing ends its retries", remedy);
        };
        if url.rsplit('/').take(2).eq(self.queue_arn.rsplit(':').take(2)) {
            return refused("dead_letter_queue_url is the queue itself", "set another queue");
        }
        let Some(time) = self.time_for_a_call() else {
            return refused("no time was left to send it", MORE_TIME);
        };
        let target = &self.context.invoked_function_arn;
        let mut dead_letter = DeadLetter::of(&message.record, message.sent, last, target);
        if url.ends_with(".fifo") {
            dead_letter = dead_letter.in_order(message.group.as_deref().unwrap_or(&message.id), &message.id);
        }
        within(time, self.shared.sqs.send(url, dead_letter)).await
    }

    /// Hides the failed messages until they are due.
    async fn hide(&self, messages: &[ReceivedMessage]) {
        let url = queue_url(&self.queue_arn);
        let failed: Vec<&ReceivedMessage> =
            messages.iter().filter(|message| message.is_to_be_hidden()).collect();
        for (done, part) in (0..).step_by(MOST_ENTRIES).zip(failed.chunks(MOST_ENTRIES)) {
            let Some(time) = self.time_to_tell("hide", failed.len() - done) else { return };
            let now = (self.shared.now)();
            let hiding = |message: &&ReceivedMessage| Hiding {
                receipt_handle: message.record.receipt_handle.clone().unwrap_or_default(),
                visibility_timeout: match *message.end() {
                    Ending::Due(due) => message.sent.hiding(due, now),
                    _ => Duration::ZERO,
                },
            };
            let hidings: Vec<Hiding> = part.iter().map(hiding).collect();
            self.told(part, within(time, self.shared.sqs.hide(&url, &hidings)).await);
        }
    }

    /// Deletes the messages that were processed successfully, as the event source mapping does at the end of a batch.
    async fn delete(&self, messages: &[ReceivedMessage]) {
        let url = queue_url(&self.queue_arn);
        let settled: Vec<&ReceivedMessage> =
            messages.iter().filter(|message| message.is_to_be_deleted()).collect();
        for (done, part) in (0..).step_by(MOST_ENTRIES).zip(settled.chunks(MOST_ENTRIES)) {
            let Some(time) = self.time_to_tell("delete", settled.len() - done) else { return };
            let handle =
                |message: &&ReceivedMessage| message.record.receipt_handle.clone().unwrap_or_default();
            let handles: Vec<String> = part.iter().map(handle).collect();
            self.told(part, within(time, self.shared.sqs.delete(&url, &handles)).await);
        }
    }

    fn time_to_tell(&self, verb: &str, left: usize) -> Option<Duration> {
        let time = self.time_for_a_call();
        if time.is_none() {
            let problem = Some(format!("messages that no time was left to {verb}: {left}"));
            let remedy = Some(MORE_TIME.into());
            self.log(&ConsumerLine { problem, remedy, ..self.line(LogLevel::Error, "keep") });
        }
        time
    }

    /// Records which messages SQS hid or deleted in one call. Logs an error for each of the others.
    fn told(&self, part: &[&ReceivedMessage], answer: Result<Vec<(usize, String)>, Refused>) {
        let (refused, remedy) = match answer {
            Ok(failed) => (failed, None),
            Err(Refused { problem, remedy }) => {
                ((0..part.len()).map(|position| (position, problem.clone())).collect(), remedy)
            }
        };
        for (position, message) in part.iter().enumerate() {
            message.told.store(refused.iter().all(|(it, _)| *it != position), Ordering::Relaxed);
        }
        for (position, problem) in refused {
            let message_id = part.get(position).map(|message| message.id.as_str());
            let (problem, remedy) = (Some(problem), remedy.clone());
            let line = self.line(LogLevel::Error, "keep");
            self.log(&ConsumerLine { message_id, problem, remedy, ..line });
        }
    }

    fn line(&self, level: LogLevel, action: &'static str) -> ConsumerLine<'static> {
        ConsumerLine::new((self.shared.now)(), level, action)
    }

    fn log(&self, line: &ConsumerLine<'_>) {
        (self.shared.log)(line);
    }
}

async fn within<T>(time: Duration, call: BoxFuture<'_, Result<T, Refused>>) -> Result<T, Refused> {
    let late = |_| {
        let problem = "SQS did not answer before the function's time was up".into();
        Err(Refused { problem, remedy: None })
    };
    tokio::time::timeout(time, call).await.unwrap_or_else(late)
}

/// Splits the messages into lists to process in order: one for each group, and one for each message without a group.
fn lanes(messages: &[ReceivedMessage]) -> Vec<Vec<&ReceivedMessage>> {
    let mut lanes: Vec<Vec<&ReceivedMessage>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for message in messages {
        let lane = message.group.as_ref().unwrap_or(&message.id);
        let place = *places.entry(lane).or_insert(lanes.len());
        if place == lanes.len() {
            lanes.push(Vec::new());
        }
        lanes[place].push(message);
    }
    lanes
}

#[cfg(test)]
mod tests;
