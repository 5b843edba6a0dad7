//! Reading the state of a deployment.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_cloudwatch::primitives::DateTime;
use aws_sdk_cloudwatch::types::{Dimension, Metric, MetricDataQuery, MetricStat};
use aws_sdk_sqs::types::MessageSystemAttributeName;
use comeback_engine::{HideUpTo, Timestamp};
use serde::Serialize;

use crate::operate::account::{Account, Failure, Or as _};
use crate::operate::alarms::Alarm;
use crate::operate::deployment::{Deployment, Depth};
use crate::operate::pauses::OpenPause;

/// The state of a deployment. Every count of SQS's is approximate, and right only a minute after the last change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Status {
    pub(crate) handler: String,
    pub(crate) stack: Option<String>,
    pub(crate) retry_queue: Depth,
    /// `HIDE_UP_TO`; `None` without a limit, or if the handler refuses its settings.
    pub(crate) hide_up_to: Option<u64>,
    pub(crate) dead_letters: Depth,
    pub(crate) oldest_dead_letter: Option<OldestLetter>,
    pub(crate) mapping: Option<MappingState>,
    /// The pauses that are not over; `None` if the handler reads none.
    pub(crate) pauses: Option<Vec<OpenPause>>,
    pub(crate) last_hour: LastHour,
    pub(crate) alarms: Vec<Alarm>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct MappingState {
    /// `Enabled`, `Disabled`, or a state on the way to one of them.
    pub(crate) state: String,
    pub(crate) maximum_concurrency: Option<i32>,
}

impl Status {
    /// Reads the state of a deployment. `before` is the state that was read last, if there is one: the dead-letters are
    /// looked at again only if their number has changed since.
    pub(crate) async fn read(
        account: &Account,
        deployment: &Deployment,
        before: Option<&Self>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let dead_letters = Depth::read(account, &deployment.dead_letter_queue).await?;
        let oldest = match before.filter(|before| before.dead_letters == dead_letters) {
            Some(before) => before.oldest_dead_letter.map(|oldest| oldest.aged(now)),
            None => OldestLetter::find(account, deployment, &dead_letters, now).await?,
        };
        let hide_up_to = match deployment.policy().map(|policy| policy.hide_up_to()) {
            Ok(HideUpTo::UpTo(limit)) => Some(limit),
            Ok(HideUpTo::Always) | Err(_) => None,
        };
        Ok(Self {
            handler: deployment.handler.clone(),
            stack: deployment.stack.clone(),
            retry_queue: Depth::read(account, &deployment.retry_queue).await?,
            hide_up_to,
            dead_letters,
            oldest_dead_letter: oldest,
            mapping: deployment.mapping.as_ref().map(|mapping| MappingState {
                state: mapping.state.clone(),
                maximum_concurrency: mapping.maximum_concurrency,
            }),
            pauses: OpenPause::all(account, deployment, now).await?,
            last_hour: LastHour::read(account, deployment, now).await?,
            alarms: Alarm::all(account, deployment).await?,
        })
    }
}

/// Each receives ten letters at most.
const RECEIVES: usize = 10;

/// The oldest dead-letter seen. CloudWatch's own age leaves out letters that were received three
/// times, so it is taken from the letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct OldestLetter {
    /// When it was sent to the queue. SQS deletes it 14 days later.
    pub(crate) sent: Timestamp,
    pub(crate) age_seconds: u64,
    /// Every letter was seen; if not, there may be an older one.
    pub(crate) is_exact: bool,
}

impl OldestLetter {
    /// Looks at up to a hundred letters, and hides none of them.
    pub(crate) async fn find(
        account: &Account,
        deployment: &Deployment,
        depth: &Depth,
        now: Timestamp,
    ) -> Result<Option<Self>, Failure> {
        let mut seen = BTreeSet::new();
        let mut oldest: Option<Timestamp> = None;
        for _ in 0..RECEIVES {
            if seen.len() as u64 >= depth.total() {
                break;
            }
            let call = account
                .sqs
                .receive_message()
                .queue_url(&deployment.dead_letter_queue.url)
                .max_number_of_messages(10)
                .visibility_timeout(0)
                .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
            let answer =
                call.send().await.or_failure("sqs:ReceiveMessage", deployment.dead_letter_queue.name())?;
            for message in answer.messages() {
                let attributes = message.attributes();
                let sent = attributes
                    .and_then(|it| it.get(&MessageSystemAttributeName::SentTimestamp)?.parse().ok());
                let sent = sent.map(Timestamp::from_millis);
                oldest = oldest.into_iter().chain(sent).min();
                seen.insert(message.message_id().unwrap_or_default().to_owned());
            }
        }
        let is_exact = seen.len() as u64 >= depth.total();
        Ok(oldest.map(|sent| Self { sent, age_seconds: 0, is_exact }.aged(now)))
    }

    pub(crate) fn aged(self, now: Timestamp) -> Self {
        Self { age_seconds: now.since(self.sent).as_secs(), ..self }
    }
}

const HOUR_MILLIS: u64 = 3_600_000;
/// SQS writes a point each minute. Sums of five minutes cost the same call and are there sooner.
const PERIOD_SECONDS: i32 = 300;

/// What CloudWatch counted in the last hour; `None` where it has no data. Its points come some minutes late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct LastHour {
    /// Messages sent to the retry queue: failures, and moves.
    pub(crate) arrived: Option<f64>,
    pub(crate) dead_lettered: Option<f64>,
    pub(crate) invocations: Option<f64>,
    pub(crate) errors: Option<f64>,
    pub(crate) throttles: Option<f64>,
    /// The age of the oldest message that was due, at most, in seconds.
    pub(crate) oldest_due_seconds: Option<f64>,
}

impl LastHour {
    pub(crate) async fn read(
        account: &Account,
        deployment: &Deployment,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let retry_queue = ("AWS/SQS", "QueueName", deployment.retry_queue.name());
        let dead_letter_queue = ("AWS/SQS", "QueueName", deployment.dead_letter_queue.name());
        let handler = ("AWS/Lambda", "FunctionName", deployment.handler.as_str());
        let queries = [
            query("arrived", retry_queue, "NumberOfMessagesSent", "Sum"),
            query("dead_lettered", dead_letter_queue, "NumberOfMessagesSent", "Sum"),
            query("invocations", handler, "Invocations", "Sum"),
            query("errors", handler, "Errors", "Sum"),
            query("throttles", handler, "Throttles", "Sum"),
            query("oldest_due", retry_queue, "ApproximateAgeOfOldestMessage", "Maximum"),
        ];
        let millis = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let call = account
            .cloudwatch
            .get_metric_data()
            .start_time(DateTime::from_millis(millis.saturating_sub_unsigned(HOUR_MILLIS)))
            .end_time(DateTime::from_millis(millis))
            .set_metric_data_queries(Some(queries.to_vec()));
        let answer = call.send().await.or_failure("cloudwatch:GetMetricData", &deployment.handler)?;
        let points: BTreeMap<&str, &[f64]> =
            answer.metric_data_results().iter().filter_map(|it| Some((it.id()?, it.values()))).collect();
        let of = |id: &str| points.get(id).copied().filter(|values| !values.is_empty());
        let sum = |id: &str| of(id).map(|values| values.iter().sum());
        Ok(Self {
            arrived: sum("arrived"),
            dead_lettered: sum("dead_lettered"),
            invocations: sum("invocations"),
            errors: sum("errors"),
            throttles: sum("throttles"),
            // The last hour's most would hide that it is over: CloudWatch gives the newest first.
            oldest_due_seconds: of("oldest_due").and_then(|values| values.first().copied()),
        })
    }
}

fn query(id: &str, of: (&str, &str, &str), metric: &str, statistic: &str) -> MetricDataQuery {
    let (namespace, dimension, value) = of;
    let dimension = Dimension::builder().name(dimension).value(value).build();
    let metric = Metric::builder().namespace(namespace).metric_name(metric).dimensions(dimension).build();
    let metric = MetricStat::builder().metric(metric).period(PERIOD_SECONDS).stat(statistic).build();
    MetricDataQuery::builder().id(id).metric_stat(metric).build()
}
