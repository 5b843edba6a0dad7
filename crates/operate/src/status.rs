//! The output of `comeback status`: the state of a deployment, as read from Lambda, SQS, SSM and CloudWatch.

mod facts;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use comeback_engine::{HideUpTo, Policies, PolicyEntry, Timestamp};
use serde::Serialize;

use crate::account::Account;
use crate::alarms::Alarm;
use crate::aws::{Receive, Received};
use crate::change::Answer;
use crate::command::CommandName;
use crate::deployment::Deployment;
use crate::deployment::queue::{Depth, Queue};
use crate::failure::Failure;
use crate::history::History;
use crate::layout::{Block, Layout};
use crate::metrics::LastHour;
use crate::operator::Operator;
use crate::pauses::OpenPause;
use crate::pauses::parameter::{nearly_full, read_pauses};
use crate::pauses::requests::RequestInForce;
use crate::text;
use crate::text::{Text, quoted};

/// The shortest time between two reads of CloudWatch, which has new data only once a minute and charges for each
/// read.
const METRICS_AGAIN_AFTER: Duration = Duration::from_secs(60);
// Titles of the parts that can fail independently, for example because one permission is missing.
const OLDEST: &str = "Oldest";
const LAST_HOUR: &str = "Last hour";
const ALARMS: &str = "Alarms";
const HISTORY: &str = "History";

/// The state of a deployment. SQS's message counts are approximate until a minute after the last change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    handler: String,
    stack: Option<String>,
    /// The version of Comeback, or `None` if the handler's tags lack it or cannot be read.
    version: Option<String>,
    /// The errors in the handler's settings, which prevent it from starting.
    refused_settings: Vec<String>,
    /// The message counts of the retry queue.
    pub retry_queue: Depth,
    /// `HIDE_UP_TO`, or `None` if there is no limit or the handler refuses its settings.
    hide_up_to: Option<u64>,
    /// The entries in `POLICIES`, or none if the handler refuses its settings.
    policies: Vec<OwnPolicy>,
    /// The message counts of the dead-letter queue.
    pub dead_letters: Depth,
    oldest_dead_letter: Option<OldestDeadLetter>,
    mapping: Option<MappingState>,
    /// The open pauses. `None` if they could not be read, or if the handler does not read pauses.
    pub pauses: Option<Vec<OpenPause>>,
    /// The requests in force, or `None` if `pauses` is `None`.
    requests: Option<Vec<RequestInForce>>,
    pauses_problem: Option<Text>,
    pauses_nearly_full: Option<String>,
    /// The part of the state that comes from CloudWatch.
    #[serde(flatten)]
    pub metrics: Metrics,
    #[serde(skip)]
    oldest_unread: Option<Failure>,
    #[serde(skip)]
    deployment: Deployment,
}

/// An entry in `POLICIES`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct OwnPolicy {
    /// The pattern for function names or ARNs, such as `orders-*`.
    functions: String,
    /// The settings in this entry of `POLICIES`, by variable name.
    settings: BTreeMap<String, String>,
}

impl OwnPolicy {
    fn of(entry: &PolicyEntry) -> Self {
        let settings = entry.settings().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { functions: entry.pattern().to_owned(), settings: settings.collect() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct MappingState {
    /// The state of the event source mapping, such as `Enabled` or `Enabling`.
    state: String,
    maximum_concurrency: Option<i32>,
}

/// Reads the state of a deployment. `before` is the previous result, if any. With it, dead-letters are received again
/// only if their number has changed, and CloudWatch is read again only after a minute.
///
/// # Errors
///
/// Fails if the deployment or its queues cannot be read.
pub async fn status(
    operator: &Operator,
    with_history: bool,
    before: Option<&Status>,
) -> Result<Status, Failure> {
    // The deployment is read each time, because its settings and its mapping may change while an operator watches.
    let deployment = operator.deployment().await?;
    let read = Status::read(&operator.account, deployment, with_history, before);
    operator.interrupt.or(read).await
}

impl Status {
    async fn read(
        account: &Account,
        deployment: Deployment,
        with_history: bool,
        before: Option<&Self>,
    ) -> Result<Self, Failure> {
        let now = account.now();
        let dead_letters = Depth::read(account, &deployment.dead_letter_queue).await?;
        let oldest = match before.filter(|before| before.dead_letters == dead_letters) {
            Some(before) => Ok(before.oldest_dead_letter.map(|oldest| oldest.at(now))),
            None => OldestDeadLetter::find(account, &deployment.dead_letter_queue, &dead_letters, now).await,
        };
        let (policies, refused) = match deployment.policies() {
            Ok(policies) => (Some(policies), Vec::new()),
            Err(refused) => (None, refused),
        };
        let (read, pauses_problem) = match read_pauses(account, &deployment).await {
            Ok(read) => (read, None),
            Err(failure) => (None, Some(failure.text())),
        };
        let metrics = match before.map(|before| &before.metrics).filter(|metrics| metrics.are_recent(now)) {
            Some(metrics) => metrics.clone(),
            None => Metrics::read(account, &deployment, with_history, now).await,
        };
        Ok(Self {
            handler: deployment.handler.clone(),
            stack: deployment.stack.clone(),
            version: deployment.version.clone(),
            refused_settings: refused.iter().map(ToString::to_string).collect(),
            retry_queue: Depth::read(account, &deployment.retry_queue).await?,
            hide_up_to: policies.as_ref().and_then(hide_up_to),
            policies: policies.iter().flat_map(Policies::entries).map(OwnPolicy::of).collect(),
            dead_letters,
            oldest_unread: oldest.as_ref().err().cloned(),
            oldest_dead_letter: oldest.unwrap_or_default(),
            mapping: deployment.mapping.as_ref().map(|mapping| MappingState {
                state: mapping.state.clone(),
                maximum_concurrency: mapping.maximum_concurrency,
            }),
            pauses: read.as_ref().map(|pauses| OpenPause::all_of(pauses, now)),
            requests: read.as_ref().map(|pauses| RequestInForce::all_of(pauses, now)),
            pauses_problem,
            pauses_nearly_full: read.as_ref().and_then(nearly_full),
            metrics,
            deployment,
        })
    }

    /// An explanation of the message counts.
    pub fn about_counts(&self) -> Text {
        let waiting = quoted(self.deployment.command(CommandName::Waiting, [""; 0]));
        text!["Message counts are approximate and up to a minute old. ", waiting, " lists waiting events."]
    }

    /// The title and error of each part of the status that could not be read.
    fn unread(&self) -> impl Iterator<Item = (&'static str, &Failure)> {
        let of_metrics = self.metrics.unread.iter().map(|(title, why)| (*title, why));
        of_metrics.chain(self.oldest_unread.as_ref().map(|why| (OLDEST, why)))
    }

    /// Returns the reason why no events are being retried, or why it is unknown whether any are.
    fn why_stopped(&self) -> Option<String> {
        let stopped = self.deployment.stopped().map(|why| why.to_string());
        stopped.or_else(|| self.pauses_problem.as_ref().map(|_| "the pauses are unreadable".into()))
    }
}

impl Answer for Status {
    fn layout(&self) -> Layout {
        let of_stack = self.stack.as_ref().map(|stack| format!(" of stack {stack}")).unwrap_or_default();
        let mut layout = Layout::default();
        layout.line(format!("{}{of_stack}", self.handler));
        layout.line("");
        layout.0.push(Block::Facts(self.counts().into_iter().chain(self.facts()).collect()));
        self.metrics.history.iter().for_each(|history| layout.and(history.layout()));
        layout.line("");
        layout.line(self.about_counts());
        layout
    }

    /// Returns a failure if any part of the status could not be read, or if the handler retries no events.
    fn end(&self) -> Result<(), Failure> {
        if let Some((_, failure)) = self.unread().next() {
            return Err(failure.clone());
        }
        let Some(why) = self.why_stopped() else { return Ok(()) };
        let doctor = quoted(self.deployment.command(CommandName::Doctor, ["--short"]));
        Err(Failure::undone(text![format!("{why}; "), doctor, " names the fix"]))
    }
}

fn hide_up_to(policies: &Policies) -> Option<u64> {
    match policies.stack().settings().hide_up_to {
        HideUpTo::UpTo(limit) => Some(limit),
        HideUpTo::Always => None,
    }
}

/// The part of a deployment's state that comes from CloudWatch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metrics {
    last_hour: LastHour,
    /// Counts of arrivals, retries and dead-letters for the last 3 and 24 hours, if requested.
    pub history: Option<History>,
    alarms: Vec<Alarm>,
    /// The error for each part that could not be read, by the part's title.
    #[serde(skip)]
    unread: BTreeMap<&'static str, Failure>,
    #[serde(skip)]
    at: Timestamp,
}

impl Metrics {
    async fn read(account: &Account, deployment: &Deployment, with_history: bool, now: Timestamp) -> Self {
        let mut unread = BTreeMap::new();
        let history = match with_history {
            true => History::read(account, deployment, now).await.map(Some),
            false => Ok(None),
        };
        Self {
            last_hour: or_unread(LastHour::read(account, deployment, now).await, LAST_HOUR, &mut unread),
            history: or_unread(history, HISTORY, &mut unread),
            alarms: or_unread(Alarm::all(account, deployment).await, ALARMS, &mut unread),
            unread,
            at: now,
        }
    }

    fn are_recent(&self, now: Timestamp) -> bool {
        now.since(self.at) < METRICS_AGAIN_AFTER
    }
}

fn or_unread<T: Default>(
    value: Result<T, Failure>,
    title: &'static str,
    unread: &mut BTreeMap<&'static str, Failure>,
) -> T {
    value.unwrap_or_else(|failure| {
        unread.insert(title, failure);
        T::default()
    })
}

/// The oldest of the received dead-letters. CloudWatch's age metric leaves out messages that were received three or
/// more times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct OldestDeadLetter {
    /// The time when the dead-letter was sent to the queue. SQS deletes it 14 days later.
    sent: Timestamp,
    age_seconds: u64,
    /// True if every dead-letter was received. Otherwise, the queue may contain a dead-letter that is older than this
    /// one.
    is_exact: bool,
}

/// The maximum number of receive calls to find the oldest dead-letter.
const RECEIVES: usize = 10;

impl OldestDeadLetter {
    /// Receives up to a hundred dead-letters without hiding them, and returns the oldest.
    async fn find(
        account: &Account,
        queue: &Queue,
        depth: &Depth,
        now: Timestamp,
    ) -> Result<Option<Self>, Failure> {
        let receive = Receive { visibility: Duration::ZERO, wait: Duration::ZERO };
        let mut seen = BTreeSet::new();
        let mut oldest: Option<Timestamp> = None;
        for _ in 0..RECEIVES {
            if seen.len() as u64 >= depth.total() {
                break;
            }
            for Received { record, .. } in account.aws.receive(&queue.url, 10, receive).await? {
                oldest = oldest.into_iter().chain([record.sent]).min();
                seen.insert(record.message_id);
            }
        }
        let is_exact = seen.len() as u64 >= depth.total();
        Ok(oldest.map(|sent| Self { sent, age_seconds: 0, is_exact }.at(now)))
    }

    /// The same dead-letter with its age at `now`.
    fn at(self, now: Timestamp) -> Self {
        Self { age_seconds: now.since(self.sent).as_secs(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::aws::NewMessage;
    use crate::aws::simulated::{Sample, SimulatedAws, queue_url};
    use crate::deployment::find::Which;

    fn operator(aws: &SimulatedAws) -> Operator {
        Operator::new(aws.account(), Which::Stack(Sample::STACK.into()))
    }

    #[tokio::test]
    async fn denied_part_leaves_the_rest_visible() {
        let aws = Sample::new(Timestamp::from_secs(1_700_000_000)).build();
        assert_eq!(status(&operator(&aws), true, None).await.unwrap().end(), Ok(()));
        aws.deny("cloudwatch:DescribeAlarms");
        let denied = status(&operator(&aws), true, None).await.unwrap();
        assert!(denied.end().unwrap_err().to_string().starts_with("cloudwatch:DescribeAlarms"));
        let json = serde_json::to_value(&denied).unwrap();
        assert_eq!((&json["handler"], &json["pauses"]), (&"retry-handler".into(), &serde_json::json!([])));
    }

    #[tokio::test]
    async fn dead_letters_are_received_again_only_if_their_number_changes() {
        let aws = Sample::new(Timestamp::from_secs(1_700_000_000)).build();
        let send = async || {
            let message = NewMessage { body: "{}".into(), ..NewMessage::default() };
            let url = queue_url(Sample::DEAD_LETTER_QUEUE);
            aws.account().aws.send(&url, vec![message], &|_, _| ()).await.pop().unwrap().unwrap();
        };
        let receives = Rc::new(Cell::new(0));
        let counted = Rc::clone(&receives);
        aws.on_call(move |call| {
            counted.set(counted.get() + u32::from(call.action == "sqs:ReceiveMessage"));
            None
        });
        let mut before: Option<Status> = None;
        let mut read = async || {
            let read = status(&operator(&aws), false, before.as_ref()).await.unwrap();
            (before.insert(read).oldest_dead_letter.is_some(), receives.get())
        };
        assert_eq!(read().await, (false, 0));
        send().await;
        assert_eq!([read().await, read().await], [(true, 1); 2]);
        send().await;
        assert_eq!(read().await, (true, 2));
    }

    #[tokio::test]
    async fn cloudwatch_is_asked_once_a_minute() {
        let aws = Sample::new(Timestamp::from_secs(1_700_000_000)).build();
        aws.deny("cloudwatch:DescribeAlarms");
        let first = status(&operator(&aws), false, None).await.unwrap();
        aws.allow("cloudwatch:DescribeAlarms");
        aws.advance(Duration::from_secs(59));
        let kept = status(&operator(&aws), false, Some(&first)).await.unwrap();
        assert_eq!(kept.metrics, first.metrics);
        assert!(kept.metrics.unread.contains_key(ALARMS), "a refusal is an answer too");
        aws.advance(Duration::from_secs(1));
        let read = status(&operator(&aws), false, Some(&kept)).await.unwrap();
        assert_eq!((read.metrics.at, read.metrics.unread.len()), (aws.time(), 0));
    }
}
