//! A batch: which of its records run, and what becomes of those that fail.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, SystemTime};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use comeback_engine::{LogLevel, Timestamp};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use lambda_runtime::{Context, Diagnostic, LambdaEvent};
use rand::RngExt as _;
use tower_service::Service;

use crate::calls::{Aws, Hiding, MOST_ENTRIES, Refused, Sqs, queue_url};
use crate::dead_letter::{DeadLetter, Last, redriven};
use crate::line::Line;
use crate::policy::{BadOptions, Options, Sent};

/// Lambda's maximum.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(900);
/// The last of the function's time, in which no record starts; a tenth of what is left at the start, if that is less.
const RESERVE: Duration = Duration::from_secs(5);
/// This part of it is left when the last call to SQS ends. If one outlasted the function's time, Lambda would deliver the
/// whole batch again, with all that succeeded.
const KEPT_FREE: u32 = 5;
/// Of a number that SQS states: milliseconds up to the year 2286.
const MOST_DIGITS: usize = 13;
const MORE_TIME: &str = "raise the function's timeout, or lower the batch size";

/// The service that [`consumer()`] makes.
#[derive(Clone)]
pub struct Consumer<F> {
    shared: Arc<Shared<F>>,
}

struct Shared<F> {
    options: Options,
    handler: F,
    sqs: Box<dyn Sqs>,
    now: fn() -> Timestamp,
    /// The function's time that is left.
    time_left: Box<dyn Fn(&Context) -> Duration + Send + Sync>,
    draw: Box<dyn Fn(u64, u64) -> u64 + Send + Sync>,
    /// Takes each line of the log.
    log: Box<dyn Fn(&Line<'_>) + Send + Sync>,
}

/// Makes a function that handles one record into the Lambda function of an SQS event source mapping, for
/// [`lambda_runtime::run`].
///
/// The function's error may be anything that Lambda can report. [`diagnostic`](crate::diagnostic) makes one from a
/// boxed error, in which a [`RetryAfter`](crate::RetryAfter) or [`NonRetryable`](crate::NonRetryable) keeps its name.
///
/// # Errors
///
/// Everything that is wrong with the options.
pub fn consumer<F, Fut, E>(options: Options, handler: F) -> Result<Consumer<F>, BadOptions>
where
    F: Fn(SqsMessage, Context) -> Fut,
    Fut: Future<Output = Result<(), E>>,
    E: Into<Diagnostic>,
{
    options.check()?;
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
            sqs: Box::new(Aws::default()),
            now,
            time_left: Box::new(time_left),
            draw: Box::new(draw),
            log: Box::new(|line| println!("{}", line.json())),
        }),
    })
}

#[expect(clippy::disallowed_methods, reason = "the shell is where the time comes from")]
fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}

/// `cargo lambda watch` hands out a deadline in 1970. One more than a day away is bogus.
fn time_left(deadline: Timestamp, now: Timestamp) -> Duration {
    let left = deadline.since(now);
    if left.max(now.since(deadline)) < Duration::from_secs(86_400) { left } else { LONGEST_TIMEOUT }
}

impl<F, Fut, E> Service<LambdaEvent<SqsEvent>> for Consumer<F>
where
    F: Fn(SqsMessage, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send,
    E: Into<Diagnostic> + Send,
{
    type Response = SqsBatchResponse;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<SqsBatchResponse, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, event: LambdaEvent<SqsEvent>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let records = event.payload.records;
            Ok(Batch::new(&shared, event.context, &records).handle(records).await)
        })
    }
}

/// A record on its way through the batch.
struct Message {
    record: SqsMessage,
    id: String,
    sent: Sent,
    /// Of a FIFO queue. In a standard queue, a group orders nothing.
    group: Option<String>,
    end: Ending,
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It was not run: it returns after the queue's own visibility timeout.
    Untouched,
    /// It succeeded, or the dead-letter queue has it.
    Settled,
    /// It failed, and comes back at this time.
    Due(Timestamp),
    /// The message before it in its FIFO group failed: it is shown again at once.
    Blocked,
}

impl Message {
    fn of(record: SqsMessage, fifo: bool, now: Timestamp) -> Self {
        let attribute = |name: &str| record.attributes.get(name);
        let number = |name: &str| -> Option<u64> {
            let text = attribute(name)?;
            let holds = text.len() <= MOST_DIGITS && text.bytes().all(|it| it.is_ascii_digit());
            text.parse().ok().filter(|_| holds)
        };
        let millis = |name| number(name).map_or(now, Timestamp::from_millis);
        let receives = number("ApproximateReceiveCount").unwrap_or(1).max(1);
        let sent = Sent {
            receives: receives.try_into().unwrap_or(u32::MAX),
            sent: millis("SentTimestamp"),
            first_receive: millis("ApproximateFirstReceiveTimestamp"),
            fifo,
        };
        let group = attribute("MessageGroupId").filter(|_| fifo).cloned();
        let id = record.message_id.clone().unwrap_or_default();
        Self { record, id, sent, group, end: Ending::Untouched }
    }
}

struct Batch<'a, F> {
    shared: &'a Shared<F>,
    context: Context,
    queue_arn: String,
    reserve: Duration,
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
        let reserve = RESERVE.min((shared.time_left)(&context) / 10);
        let started = AtomicBool::new(false);
        Self { shared, context, queue_arn: queue_arn.unwrap_or_default(), reserve, started }
    }

    async fn handle(&self, records: Vec<SqsMessage>) -> SqsBatchResponse {
        let mut response = SqsBatchResponse::default();
        if !records.iter().all(|record| record.message_id.as_ref().is_some_and(|id| !id.is_empty())) {
            let problem = "a record has no messageId, so none of the batch was run".to_owned();
            self.log(&Line { problem: Some(problem), ..self.line(LogLevel::Error, "keep") });
            // An empty identifier makes Lambda keep the whole batch.
            response.set_failures([""]);
            return response;
        }
        let fifo = self.queue_arn.ends_with(".fifo");
        let now = (self.shared.now)();
        let messages = records.into_iter().map(|record| Message::of(record, fifo, now)).collect();
        let messages = self.run(messages).await;
        self.hide(&messages).await;
        let kept = messages.iter().filter(|message| message.end != Ending::Settled);
        response.set_failures(kept.map(|message| message.id.as_str()));
        response
    }

    /// Runs the records: one after another, or as many at once as `concurrency` says.
    async fn run(&self, messages: Vec<Message>) -> Vec<Message> {
        if self.shared.options.concurrency == 1 {
            return self.run_in_order(messages).await;
        }
        let lanes = stream::iter(lanes(messages)).map(|lane| self.run_in_order(lane));
        let lanes: Vec<Vec<Message>> =
            lanes.buffer_unordered(self.shared.options.concurrency).collect().await;
        lanes.into_iter().flatten().collect()
    }

    async fn run_in_order(&self, mut messages: Vec<Message>) -> Vec<Message> {
        let mut blocked: Vec<String> = Vec::new();
        for message in &mut messages {
            if message.group.as_ref().is_some_and(|group| blocked.contains(group)) {
                message.end = Ending::Blocked; // even without time left
            } else if self.has_time() {
                message.end = self.run_one(message).await;
                if message.end != Ending::Settled {
                    blocked.extend(message.group.clone());
                }
            }
        }
        messages
    }

    /// The first record always starts.
    fn has_time(&self) -> bool {
        !self.started.swap(true, Ordering::Relaxed) || (self.shared.time_left)(&self.context) > self.reserve
    }

    /// How long a call to SQS may take now; `None` if it must not begin.
    fn time_for_a_call(&self) -> Option<Duration> {
        let left = (self.shared.time_left)(&self.context).saturating_sub(self.reserve / KEPT_FREE);
        (!left.is_zero()).then_some(left)
    }

    async fn run_one(&self, message: &Message) -> Ending {
        let running = AssertUnwindSafe(async {
            let running = (self.shared.handler)(redriven(&message.record), self.context.clone());
            running.await.map_err(Into::<Diagnostic>::into) // its own code again, which may panic
        });
        let error = match running.catch_unwind().await {
            Ok(Ok(())) => return Ending::Settled,
            Ok(Err(error)) => error,
            Err(panic) => {
                let said = panic.downcast_ref::<&str>().copied().map(str::to_owned);
                let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                Diagnostic { error_type: "panic".into(), error_message: said }
            }
        };
        self.failed(message, &error).await
    }

    /// Decides what becomes of a message whose function failed, and dead-letters it if that is its end.
    async fn failed(&self, message: &Message, error: &Diagnostic) -> Ending {
        let Shared { options, now, draw, .. } = self.shared;
        let now = now();
        let (decided, ignored) = options.decide(message.sent, error, now, draw);
        let level = if ignored.is_some() { LogLevel::Warn } else { LogLevel::Info };
        let line = Line {
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
                self.log(&Line { due: Some(retry.due), due_by: Some(retry.due_by), ..line });
                return Ending::Due(retry.due);
            }
            Err(end) => end,
        };
        let line = Line {
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
        self.log(&Line { level: LogLevel::Error, due: Some(due), problem, remedy, ..line });
        Ending::Due(due)
    }

    async fn dead_letter(&self, message: &Message, last: &Last<'_>) -> Result<(), Refused> {
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

    /// One call for ten messages. What is not hidden returns after the queue's own timeout.
    async fn hide(&self, messages: &[Message]) {
        let url = queue_url(&self.queue_arn);
        let failed: Vec<&Message> =
            messages.iter().filter(|it| matches!(it.end, Ending::Due(_) | Ending::Blocked)).collect();
        for (done, part) in (0..).step_by(MOST_ENTRIES).zip(failed.chunks(MOST_ENTRIES)) {
            let Some(time) = self.time_for_a_call() else {
                let problem = format!("messages that no time was left to hide: {}", failed.len() - done);
                let (problem, remedy) = (Some(problem), Some(MORE_TIME.into()));
                self.log(&Line { problem, remedy, ..self.line(LogLevel::Error, "keep") });
                return;
            };
            let now = (self.shared.now)();
            let hidings: Vec<Hiding> = part
                .iter()
                .map(|message| Hiding {
                    receipt_handle: message.record.receipt_handle.clone().unwrap_or_default(),
                    visibility_timeout: match message.end {
                        Ending::Due(due) => message.sent.hiding(due, now),
                        _ => Duration::ZERO,
                    },
                })
                .collect();
            let (refused, remedy) = match within(time, self.shared.sqs.hide(&url, &hidings)).await {
                Ok(failed) => (failed, None),
                Err(Refused { problem, remedy }) => {
                    ((0..part.len()).map(|position| (position, problem.clone())).collect(), remedy)
                }
            };
            for (position, problem) in refused {
                let message_id = part.get(position).map(|message| message.id.as_str());
                let (problem, remedy) = (Some(problem), remedy.clone());
                let line = self.line(LogLevel::Error, "keep");
                self.log(&Line { message_id, problem, remedy, ..line });
            }
        }
    }

    fn line(&self, level: LogLevel, action: &'static str) -> Line<'static> {
        Line::new((self.shared.now)(), level, action)
    }

    fn log(&self, line: &Line<'_>) {
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

/// What must run one after another: the messages of a FIFO group.
fn lanes(messages: Vec<Message>) -> Vec<Vec<Message>> {
    let mut lanes: Vec<Vec<Message>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for message in messages {
        let lane = message.group.as_ref().unwrap_or(&message.id).clone();
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
