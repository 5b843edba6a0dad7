//! Facts about functions that read from SQS directly with `comeback-sqs`, with or without a Comeback deployment.

use std::time::{Duration, UNIX_EPOCH};

use comeback_backoff::requested_wait;
use comeback_engine::RETENTION;

use crate::account::Account;
use crate::aws::{Mapping, qualified};
use crate::deployment::queue::Queue;
use crate::doctor::facts::queues::QueueSettings;
use crate::failure::{Failure, seen};
use crate::function::FunctionName;
use crate::rights::{HIDE, Rights, SEND, ask};

/// The environment variable for `max_age`, by the convention in `docs/consumer.md`.
pub(crate) const MAX_AGE: &str = "MAX_AGE";
pub(crate) const DEAD_LETTER_QUEUE_URL: &str = "DEAD_LETTER_QUEUE_URL";
/// The shortest `max_age` that `comeback-sqs` accepts.
const SHORTEST_AGE: Duration = Duration::from_secs(60);

/// A function that reads SQS directly, and one of its queues.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    /// The function's name as an operator types it, followed by the queue's name if the function reads several
    /// queues.
    pub(crate) name: String,
    /// The function's ARN, without a qualifier.
    pub(crate) arn: String,
    pub(crate) timeout: Duration,
    pub(crate) mapping: Mapping,
    pub(crate) queue: Result<Named, Failure>,
    pub(crate) max_age: MaxAge,
    /// The dead-letter queue that the function's environment variables name; `None` if they do not name one.
    pub(crate) dead_letter_queue: Option<Result<Named, Failure>>,
    /// The permissions that the function's role needs to hide messages, and whether IAM grants them.
    pub(crate) hide: Rights,
    pub(crate) send: Rights,
    /// The flags that select the function's region and the operator's profile in a suggested command.
    pub(crate) place_flags: String,
}

/// A queue that a mapping or a variable names, or the reason why the queue cannot be read.
pub(crate) type Named = Result<ReadQueue, String>;

#[derive(Clone, Debug)]
pub(crate) struct ReadQueue {
    pub(crate) queue: Queue,
    pub(crate) settings: QueueSettings,
}

/// The value of `MAX_AGE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MaxAge {
    Set(Duration),
    /// The environment variable `MAX_AGE` is not set, so `comeback-sqs` uses its default.
    Default,
    /// The environment variable has this invalid value, so `comeback-sqs` refuses to start.
    Refused(String),
}

impl Consumer {
    /// Returns a `Consumer` for each named function and each queue from which the function receives messages.
    pub(crate) async fn all(account: &Account, named: &[FunctionName]) -> Result<Vec<Self>, Failure> {
        let mut consumers = Vec::new();
        for function in named {
            let qualifier = function.qualifier.as_deref();
            let name = qualified(&function.unqualified(), qualifier);
            let mappings = account.aws.mappings_of_function(&name).await?;
            if mappings.is_empty() {
                continue;
            }
            let Some(found) = account.aws.function(&function.unqualified(), qualifier).await? else {
                continue;
            };
            let configuration = found.configuration;
            let is_one = mappings.len() == 1;
            for mapping in mappings {
                let queue_name = mapping.queue_arn.rsplit(':').next().unwrap_or_default();
                let name = if is_one { function.to_string() } else { format!("{function} of {queue_name}") };
                let arn: FunctionName =
                    configuration.arn.parse().map_err(|problem: String| Failure::could_not(problem))?;
                let (variables, role) = (&configuration.variables, &configuration.role_arn);
                let queue = ReadQueue::of_arn(account, &mapping.queue_arn).await;
                let dead_letter_queue = match variables.get(DEAD_LETTER_QUEUE_URL) {
                    Some(url) => Some(ReadQueue::of_url(account, url).await),
                    None => None,
                };
                let dead = dead_letter_queue.as_ref().map(seen).transpose();
                let dead = dead.map(|named| named.and_then(|it| it.as_ref().ok()).map(|it| &*it.queue.arn));
                consumers.push(Self {
                    name,
                    arn: arn.unqualified(),
                    timeout: configuration.timeout,
                    hide: ask(account, role, HIDE, [&*mapping.queue_arn]).await,
                    send: match dead {
                        Ok(dead) => ask(account, role, SEND, dead).await,
                        Err(failure) => Err(failure),
                    },
                    mapping,
                    queue,
                    max_age: MaxAge::of(variables.get(MAX_AGE)),
                    dead_letter_queue,
                    place_flags: account.place.flags.clone(),
                });
            }
        }
        Ok(consumers)
    }
}

impl ReadQueue {
    async fn of_arn(account: &Account, arn: &str) -> Result<Named, Failure> {
        let Some(queue) = Queue::of_arn(account, arn).await? else {
            return Ok(Err(format!("queue {arn} does not exist")));
        };
        Ok(Ok(Self { settings: QueueSettings::read(account, &queue).await?, queue }))
    }

    async fn of_url(account: &Account, url: &str) -> Result<Named, Failure> {
        if !["https://", "http://"].iter().any(|it| url.starts_with(it)) {
            return Ok(Err(format!("{url:?} is not the URL of a queue")));
        }
        let Some(queue) = Queue::of_url(account, url).await? else {
            return Ok(Err(format!("queue {url} does not exist")));
        };
        Ok(Ok(Self { settings: QueueSettings::read(account, &queue).await?, queue }))
    }
}

impl MaxAge {
    fn of(variable: Option<&String>) -> Self {
        let Some(text) = variable else { return Self::Default };
        // `max_age` accepts fewer formats than `RetryAfter`: no dates, no ISO 8601 durations, no comments and no
        // fractions of a second.
        let begins = text.starts_with(|it: char| it.is_ascii_digit()) && !text.contains([';', ':']);
        let ends = text.trim_ascii_end().ends_with(|it: char| it.is_ascii_alphabetic());
        let is_plain = begins && (ends || text.bytes().all(|it| it.is_ascii_digit()));
        let read = requested_wait(text, UNIX_EPOCH).ok().filter(|it| is_plain && it.subsec_nanos() == 0);
        let taken = read.filter(|it| (SHORTEST_AGE..=RETENTION).contains(it));
        taken.map_or_else(|| Self::Refused(text.clone()), Self::Set)
    }

    pub(crate) fn duration(&self) -> Duration {
        match self {
            Self::Set(duration) => *duration,
            Self::Default | Self::Refused(_) => RETENTION,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_read_as_the_consumers_read_it() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/directives/max-age.json");
        let cases: Vec<serde_json::Value> =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for case in cases {
            let text = case["text"].as_str().unwrap().to_owned();
            let seconds = case["seconds"].as_u64().map(Duration::from_secs);
            let expected = seconds.map_or_else(|| MaxAge::Refused(text.clone()), MaxAge::Set);
            assert_eq!(MaxAge::of(Some(&text)), expected);
        }
        assert_eq!((MaxAge::of(None), MaxAge::Default.duration()), (MaxAge::Default, RETENTION));
    }
}
