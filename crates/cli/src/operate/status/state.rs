//! The state of a deployment, read from SQS, the pauses and CloudWatch.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_sqs::types::MessageSystemAttributeName;
use comeback_engine::{HideUpTo, Policies, PolicyEntry, Timestamp};
use serde::Serialize;

use crate::account::{Account, Failure, Or as _};
use crate::clock::now;
use crate::operate::alarms::Alarm;
use crate::operate::deployment::queue::{Depth, Queue};
use crate::operate::deployment::{Deployment, Stopped};
use crate::operate::history::History;
use crate::operate::metrics::LastHour;
use crate::operate::pauses::OpenPause;
use crate::operate::pauses::parameter::{nearly_full, read_pauses};
use crate::operate::pauses::requests::RetryRequest;
use crate::operate::session::Session;

/// CloudWatch has a new point each minute, and bills each read.
const METRICS_AGAIN_AFTER: Duration = Duration::from_secs(60);
// Titles of what may be denied alone.
const OLDEST: &str = "Oldest";
pub(super) const LAST_HOUR: &str = "Last hour";
pub(super) const ALARMS: &str = "Alarms";
const HISTORY: &str = "History";

/// The state of a deployment. Every count of SQS's is approximate, and right only a minute after the last change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Status {
    pub(super) handler: String,
    pub(super) stack: Option<String>,
    /// The version of Comeback, if the handler's tags have it and may be read.
    pub(super) version: Option<String>,
    /// The settings with which the handler does not start.
    pub(super) refused_settings: Vec<String>,
    pub(crate) retry_queue: Depth,
    /// `HIDE_UP_TO`; `None` without a limit, or if the handler refuses its settings.
    pub(super) hide_up_to: Option<u64>,
    /// The entries of `POLICIES`; empty if the handler refuses its settings.
    pub(super) policies: Vec<OwnPolicy>,
    pub(crate) dead_letters: Depth,
    pub(super) oldest_dead_letter: Option<OldestDeadLetter>,
    pub(super) mapping: Option<MappingState>,
    #[serde(skip)]
    pub(super) stopped: Option<Stopped>,
    /// The pauses that are not over; `None` if the handler reads none, or if they could not be read.
    pub(crate) pauses: Option<Vec<OpenPause>>,
    /// The requests to retry now that are in force; `None` as for the pauses.
    pub(super) retries: Option<Vec<RetryRequest>>,
    /// Why they could not be read.
    pub(super) pauses_problem: Option<String>,
    /// How full the pauses' parameter is, if it is nearly full.
    pub(super) pauses_nearly_full: Option<String>,
    pub(super) last_hour: LastHour,
    /// `None` unless it was asked for.
    pub(crate) history: Option<History>,
    pub(super) alarms: Vec<Alarm>,
    /// What could not be read: during an incident, the rest still matters.
    #[serde(skip)]
    pub(super) unread: Unread,
    /// When CloudWatch was asked.
    #[serde(skip)]
    pub(super) metrics_read: Timestamp,
}

/// A policy that functions have instead of the stack's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct OwnPolicy {
    /// The functions as the entry names them.
    pub(super) functions: String,
    /// What it sets, by variable. Everything else is the stack's.
    pub(super) settings: BTreeMap<String, String>,
}

impl OwnPolicy {
    fn of(entry: &PolicyEntry) -> Self {
        let settings = entry.settings().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { functions: entry.pattern().to_owned(), settings: settings.collect() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct MappingState {
    /// `Enabled`, `Disabled`, or a state on the way to one of them.
    pub(super) state: String,
    pub(super) maximum_concurrency: Option<i32>,
}

impl Status {
    /// Reads the state of a deployment. `before` is the state that was read last, if there is one. The dead-letters are
    /// received again only if their number has changed since, and CloudWatch's metrics are read only after a minute.
    pub(crate) async fn read(
        session: &Session,
        before: Option<&Self>,
        with_history: bool,
    ) -> Result<Self, Failure> {
        // Settings and mappings change while one watches.
        let deployment = session.deployment().await?;
        let (account, now) = (&session.account, now());
        let mut unread = Unread::new();
        let dead_letters = Depth::read(account, &deployment.dead_letter_queue).await?;
        let oldest = match before.filter(|before| before.dead_letters == dead_letters) {
            Some(before) => before.oldest_dead_letter.map(|oldest| (oldest.sent, oldest.is_exact)),
            None => {
                let oldest = oldest_dead_letter(account, &deployment.dead_letter_queue, &dead_letters).await;
                or_unread(oldest, OLDEST, &mut unread)
            }
        };
        let (policies, refused) = match deployment.policies() {
            Ok(policies) => (Some(policies), Vec::new()),
            Err(refused) => (None, refused),
        };
        let hide_up_to =
            policies.as_ref().and_then(|policies| match policies.stack().settings().hide_up_to {
                HideUpTo::UpTo(limit) => Some(limit),
                HideUpTo::Always => None,
            });
        let (read, pauses_problem) = match read_pauses(account, &deployment).await {
            Ok(read) => (read, None),
            Err(failure) => (None, Some(failure.to_string())),
        };
        let metrics = match before.filter(|before| before.has_recent_metrics(now)) {
            Some(before) => before.metrics(),
            None => Metrics::read(account, &deployment, with_history, now).await,
        };
        unread.extend(metrics.unread);
        Ok(Self {
            retry_queue: Depth::read(account, &deployment.retry_queue).await?,
            refused_settings: refused.iter().map(ToString::to_string).collect(),
            version: deployment.version.clone(),
            hide_up_to,
            policies: policies.iter().flat_map(Policies::entries).map(OwnPolicy::of).collect(),
            dead_letters,
            oldest_dead_letter: oldest.map(|(sent, is_exact)| {
                let age_seconds = now.since(sent).as_secs();
                OldestDeadLetter { sent, age_seconds, is_exact }
            }),
            pauses: read.as_ref().map(|pauses| OpenPause::all_of(pauses, now)),
            retries: read.as_ref().map(|pauses| RetryRequest::in_force(pauses, now)),
            pauses_problem,
            pauses_nearly_full: read.as_ref().and_then(nearly_full),
            metrics_read: metrics.at,
            last_hour: metrics.last_hour,
            history: metrics.history,
            alarms: metrics.alarms,
            unread,
            stopped: deployment.stopped(),
            mapping: deployment.mapping.map(|mapping| MappingState {
                state: mapping.state,
                maximum_concurrency: mapping.maximum_concurrency,
            }),
            handler: deployment.handler,
            stack: deployment.stack,
        })
    }

    fn has_recent_metrics(&self, now: Timestamp) -> bool {
        now.since(self.metrics_read) < METRICS_AGAIN_AFTER
    }

    fn metrics(&self) -> Metrics {
        let of_metrics = |(title, _): &(&&str, &Failure)| [LAST_HOUR, HISTORY, ALARMS].contains(title);
        let unread = self.unread.iter().filter(of_metrics).map(|(title, why)| (*title, why.clone()));
        Metrics {
            at: self.metrics_read,
            last_hour: self.last_hour,
            history: self.history.clone(),
            alarms: self.alarms.clone(),
            unread: unread.collect(),
        }
    }

    /// Why nothing is retried, or why nobody knows what is paused; `None` if retries run.
    pub(super) fn why_stopped(&self) -> Option<String> {
        match (self.stopped, &self.pauses_problem) {
            (Some(why), _) => Some(why.to_string()),
            (None, Some(_)) => Some("the pauses are unreadable".into()),
            (None, None) => None,
        }
    }
}

/// CloudWatch's answers. A refusal is kept for as long as an answer.
struct Metrics {
    at: Timestamp,
    last_hour: LastHour,
    history: Option<History>,
    alarms: Vec<Alarm>,
    unread: Unread,
}

impl Metrics {
    async fn read(account: &Account, deployment: &Deployment, with_history: bool, now: Timestamp) -> Self {
        let mut unread = Unread::new();
        let history = match with_history {
            true => History::read(account, deployment, now).await.map(Some),
            false => Ok(None),
        };
        Self {
            at: now,
            last_hour: or_unread(LastHour::read(account, deployment, now).await, LAST_HOUR, &mut unread),
            history: or_unread(history, HISTORY, &mut unread),
            alarms: or_unread(Alarm::all(account, deployment).await, ALARMS, &mut unread),
            unread,
        }
    }
}

/// Why something could not be read, by the title of its line.
pub(super) type Unread = BTreeMap<&'static str, Failure>;

/// The value. If it could not be read: the default, and why in `unread`.
fn or_unread<T: Default>(value: Result<T, Failure>, title: &'static str, unread: &mut Unread) -> T {
    value.unwrap_or_else(|failure| {
        unread.insert(title, failure);
        T::default()
    })
}

/// The oldest dead-letter seen. CloudWatch's own age leaves out dead-letters that were received three
/// times, so it is taken from the dead-letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct OldestDeadLetter {
    /// When it was sent to the queue. SQS deletes it 14 days later.
    pub(super) sent: Timestamp,
    pub(super) age_seconds: u64,
    /// Every dead-letter was seen; if not, there may be an older one.
    pub(super) is_exact: bool,
}

/// Each receives ten dead-letters at most.
const RECEIVES: usize = 10;

/// Receives up to a hundred dead-letters, and hides none of them. Returns when the oldest was sent, and whether all were
/// seen.
async fn oldest_dead_letter(
    account: &Account,
    queue: &Queue,
    depth: &Depth,
) -> Result<Option<(Timestamp, bool)>, Failure> {
    let sent_at = MessageSystemAttributeName::SentTimestamp;
    let mut seen = BTreeSet::new();
    let mut oldest: Option<Timestamp> = None;
    for _ in 0..RECEIVES {
        if seen.len() as u64 >= depth.total() {
            break;
        }
        let call = account.sqs.receive_message().queue_url(&queue.url).max_number_of_messages(10);
        let call = call.visibility_timeout(0).message_system_attribute_names(sent_at.clone());
        let answer = call.send().await.or_failure("sqs:ReceiveMessage", queue.name())?;
        for message in answer.messages.unwrap_or_default() {
            let sent = message.attributes.and_then(|it| it.get(&sent_at)?.parse().ok());
            oldest = oldest.into_iter().chain(sent.map(Timestamp::from_millis)).min();
            seen.insert(message.message_id);
        }
    }
    Ok(oldest.map(|sent| (sent, seen.len() as u64 >= depth.total())))
}

#[cfg(test)]
impl Status {
    /// A deployment without events, pauses and alarms.
    pub(super) fn quiet() -> Self {
        Self {
            handler: "retry".into(),
            stack: Some("comeback".into()),
            version: Some("0.1.0".into()),
            refused_settings: Vec::new(),
            retry_queue: Depth { visible: 0, in_flight: 0, delayed: 0 },
            hide_up_to: Some(50_000),
            policies: Vec::new(),
            dead_letters: Depth { visible: 0, in_flight: 0, delayed: 0 },
            oldest_dead_letter: None,
            mapping: Some(MappingState { state: "Enabled".into(), maximum_concurrency: Some(10) }),
            stopped: None,
            pauses: Some(Vec::new()),
            retries: Some(Vec::new()),
            pauses_problem: None,
            pauses_nearly_full: None,
            last_hour: LastHour::default(),
            history: None,
            alarms: Vec::new(),
            unread: BTreeMap::new(),
            metrics_read: Timestamp::from_secs(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cloudwatch_is_asked_once_a_minute() {
        let denied = || Failure::CouldNot("denied".into());
        let unread = Unread::from([(ALARMS, denied()), (OLDEST, denied())]);
        let status = Status { unread, metrics_read: Timestamp::from_secs(100), ..Status::quiet() };
        assert!([100, 159].iter().all(|now| status.has_recent_metrics(Timestamp::from_secs(*now))));
        assert!(!status.has_recent_metrics(Timestamp::from_secs(160)));
        let kept = status.metrics();
        assert_eq!(kept.unread, Unread::from([(ALARMS, denied())]), "a refusal is an answer too");
        assert_eq!(kept.at, Timestamp::from_secs(100));
    }
}
