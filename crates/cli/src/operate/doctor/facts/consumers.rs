//! Functions that read SQS themselves, with `comeback-sqs`. They need no deployment.

use std::time::Duration;

use comeback_engine::{RETENTION, seconds};

use crate::account::{Account, Failure};
use crate::operate::deployment::mapping::Mapping;
use crate::operate::deployment::queue::Queue;
use crate::operate::doctor::diagnosis::seen;
use crate::operate::doctor::facts::queues::QueueSettings;
use crate::operate::doctor::facts::rights::{Rights, SEND, ask};
use crate::operate::function::{FunctionName, find_function, variables};

/// Variables of a function, from which docs/consumer.md has it take its options: only its code knows them otherwise.
pub(crate) const MAX_AGE: &str = "MAX_AGE";
pub(crate) const DEAD_LETTER_QUEUE_URL: &str = "DEAD_LETTER_QUEUE_URL";
/// Of the package.
const SHORTEST_AGE: Duration = Duration::from_secs(60);
const HIDE: [&str; 1] = ["sqs:ChangeMessageVisibility"];

/// A function, and one queue that it reads by an event source mapping.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    /// As an operator names it; with the queue, if it reads several.
    pub(crate) name: String,
    /// Without a qualifier.
    pub(crate) arn: String,
    pub(crate) timeout: Duration,
    pub(crate) mapping: Mapping,
    pub(crate) queue: Result<ReadQueue, Failure>,
    pub(crate) max_age: MaxAge,
    /// `None` if its variables name none.
    pub(crate) dead_letter_queue: Option<Result<ReadQueue, Failure>>,
    /// Rights of its role: to hide messages of the queue, and to send to its dead-letter queue, if that is known.
    pub(crate) hide: Rights,
    pub(crate) send: Rights,
    /// The flags that lead a suggested command to its account and region.
    pub(crate) place_flags: String,
}

#[derive(Clone, Debug)]
pub(crate) struct ReadQueue {
    pub(crate) queue: Queue,
    pub(crate) settings: QueueSettings,
}

/// How long a consumer retries a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MaxAge {
    /// By its variable.
    Set(Duration),
    /// The package's default: the variable is not set.
    Default,
    /// The variable's text, with which the package does not start.
    Refused(String),
}

impl Consumer {
    /// The queues that the named functions read.
    pub(crate) async fn all(account: &Account, named: &[FunctionName]) -> Result<Vec<Self>, Failure> {
        let mut consumers = Vec::new();
        for function in named {
            let qualifier = function.qualifier.as_deref();
            let name = qualifier.iter().fold(function.unqualified(), |name, it| format!("{name}:{it}"));
            let mappings = Mapping::all(account, &name).await?;
            if mappings.is_empty() {
                continue;
            }
            let found = find_function(account, &function.unqualified(), qualifier).await?;
            let Some(configuration) = found.and_then(|it| it.configuration) else { continue };
            let is_one = mappings.len() == 1;
            for mapping in mappings {
                let queue_name = mapping.queue_arn.rsplit(':').next().unwrap_or_default();
                let name = if is_one { function.to_string() } else { format!("{function} of {queue_name}") };
                let arn = configuration.function_arn().unwrap_or_default();
                let arn: FunctionName = arn.parse().map_err(Failure::CouldNot)?;
                let variables = variables(&configuration);
                let role = configuration.role().unwrap_or_default();
                let queue = ReadQueue::read(account, Queue::of_arn(account, &mapping.queue_arn).await).await;
                let dead_letter_queue = match variables.get(DEAD_LETTER_QUEUE_URL) {
                    Some(url) => Some(ReadQueue::read(account, Queue::of_url(account, url).await).await),
                    None => None,
                };
                let dead = dead_letter_queue.iter().map(seen);
                let dead = dead.map(|dead| Ok(&*dead?.queue.arn)).collect::<Result<Vec<&str>, Failure>>();
                consumers.push(Self {
                    name,
                    arn: arn.unqualified(),
                    timeout: Duration::from_secs(
                        configuration.timeout().unwrap_or_default().unsigned_abs().into(),
                    ),
                    hide: ask(account, role, &HIDE, [&*mapping.queue_arn]).await,
                    send: match dead {
                        Ok(dead) => ask(account, role, &SEND, dead).await,
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
    async fn read(account: &Account, queue: Result<Queue, Failure>) -> Result<Self, Failure> {
        let queue = queue?;
        Ok(Self { settings: QueueSettings::read(account, &queue).await?, queue })
    }
}

impl MaxAge {
    fn of(variable: Option<&String>) -> Self {
        let Some(text) = variable else { return Self::Default };
        let read = seconds(text).ok().map(Duration::from_secs);
        let taken = read.filter(|it| (SHORTEST_AGE..=RETENTION).contains(it));
        taken.map_or_else(|| Self::Refused(text.clone()), Self::Set)
    }

    /// What the consumer reckons with, as far as that is known.
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
    fn an_age_is_read_as_the_consumer_reads_it() {
        let of = |text: &str| MaxAge::of(Some(&text.to_owned()));
        assert_eq!(of("2d"), MaxAge::Set(Duration::from_secs(172_800)));
        assert_eq!(of("3600"), MaxAge::Set(Duration::from_secs(3_600)));
        for text in ["soon", "59", "15d"] {
            assert_eq!(of(text), MaxAge::Refused(text.into()));
        }
        assert_eq!((MaxAge::of(None), MaxAge::Default.duration()), (MaxAge::Default, RETENTION));
    }
}
