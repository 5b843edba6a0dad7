//! The CloudWatch alarms for a deployment, including those for failed events that Lambda drops.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use comeback_engine::FunctionArn;
use serde::Serialize;

use crate::account::Account;
use crate::aws::{MetricAlarm, NewAlarm, WatchedMetric};
use crate::deployment::Deployment;
use crate::failure::Failure;

/// A CloudWatch alarm for a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alarm {
    /// The alarm's name.
    pub name: String,
    /// The alarm's state: `OK`, `ALARM` or `INSUFFICIENT_DATA`.
    pub state: String,
    /// True if the alarm has an action and its actions are enabled.
    pub notifies: bool,
    /// True if the alarm has an action, enabled or not.
    #[serde(skip)]
    pub has_action: bool,
    /// The alarm's description, or a note that it has none.
    #[serde(skip)]
    pub description: String,
    /// The part of the deployment that the alarm monitors.
    #[serde(skip)]
    pub watched: Watched,
}

/// The part of a deployment that an alarm monitors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// The number of dead-letters in the dead-letter queue.
    DeadLetters,
    /// Dead-letters whose event payloads were lost.
    LostPayloads,
    /// A function's failed events that Lambda dropped because it could not send them to the retry queue. Contains the
    /// function's name.
    Lost(String),
    /// Failed invocations of the handler, or error lines in its log.
    Errors,
    /// Throttled invocations of the handler.
    Throttles,
    /// The number of messages received from the retry queue.
    Receives,
    /// The number of hidden messages in the retry queue.
    Hidden,
    /// The number of due messages in the retry queue.
    Due,
}

impl Alarm {
    /// Reads all the alarms for a deployment.
    ///
    /// # Errors
    ///
    /// Fails if the alarms cannot be read.
    pub async fn all(account: &Account, deployment: &Deployment) -> Result<Vec<Self>, Failure> {
        let alarms = account.aws.alarms(&deployment.handler).await?;
        Ok(alarms.iter().filter_map(|alarm| Some(Self::read(alarm, watched(alarm, deployment)?))).collect())
    }

    fn read(alarm: &MetricAlarm, watched: Watched) -> Self {
        let has_action = !alarm.actions.is_empty();
        let description = match &*alarm.description {
            "" => "it has no description",
            description => description,
        };
        Self {
            description: description.to_owned(),
            watched,
            name: alarm.name.clone(),
            state: alarm.state.clone(),
            notifies: has_action && alarm.actions_enabled,
            has_action,
        }
    }

    /// Returns the function whose dropped events this alarm monitors, or `None` if `attach` did not create the alarm.
    pub fn made_by_attach(&self, deployment: &Deployment) -> Option<&str> {
        match &self.watched {
            Watched::Lost(function) if self.name == lost_alarm(deployment, function) => Some(function),
            _ => None,
        }
    }
}

/// Returns which part of this deployment an alarm monitors, or `None` if the alarm monitors something else.
fn watched(alarm: &MetricAlarm, deployment: &Deployment) -> Option<Watched> {
    let watched = alarm.metrics.iter().filter_map(|metric| {
        let WatchedMetric { namespace, name, dimensions } = metric;
        if namespace.strip_prefix("Comeback/") == Some(&deployment.handler) {
            return Some(if name == "LostPayload" { Watched::LostPayloads } else { Watched::Errors });
        }
        match (dimensions.get("QueueName"), dimensions.get("FunctionName")) {
            (Some(queue), _) if queue == deployment.dead_letter_queue.name() => Some(Watched::DeadLetters),
            (Some(queue), _) if queue == deployment.retry_queue.name() => Some(match &**name {
                "NumberOfMessagesReceived" => Watched::Receives,
                "ApproximateNumberOfMessagesNotVisible" => Watched::Hidden,
                _ => Watched::Due,
            }),
            (_, Some(function)) if *function == deployment.handler => {
                Some(if name == "Throttles" { Watched::Throttles } else { Watched::Errors })
            }
            (_, Some(function)) if name == METRIC && !is_of_another(alarm, deployment, function) => {
                let arn = FunctionArn { name: function.clone(), ..deployment.handler_arn.clone() };
                deployment.retries(&arn).then(|| Watched::Lost(function.clone()))
            }
            _ => None,
        }
    });
    // If an alarm has several metrics, the number of receives or throttles takes precedence.
    let rank = |it: &Watched| matches!(it, Watched::Receives | Watched::Throttles);
    watched.max_by_key(rank)
}

/// Returns the name of the alarm that `attach` creates for a function's dropped events. It begins with the retry
/// queue's name, because two deployments may retry different aliases of one function.
fn lost_alarm(deployment: &Deployment, function: &str) -> String {
    format!("{}{}", deployment.retry_queue.name(), lost_suffix(function))
}

fn lost_suffix(function: &str) -> String {
    format!("-lost-{function}")
}

/// Returns true if `attach` created the alarm for another deployment.
fn is_of_another(alarm: &MetricAlarm, deployment: &Deployment, function: &str) -> bool {
    let name = &alarm.name;
    name.ends_with(&lost_suffix(function)) && *name != lost_alarm(deployment, function)
}

const METRIC: &str = "DestinationDeliveryFailures";

/// Maximum number of actions for each state of an alarm. Source: "PutMetricAlarm", Amazon CloudWatch API Reference.
const MOST_ACTIONS: usize = 5;

/// Returns the description of a function's alarm. The template and the CDK construct use the same text for their
/// alarms.
fn description(deployment: &Deployment, function: &str) -> String {
    format!(
        "Lambda could not send failed events of this function to the retry queue, and has dropped them. Run comeback \
         doctor {} {function}. https://github.com/comeback-retries/comeback/blob/main/docs/alarms.md#lost-on-the-way",
        deployment.name().flag()
    )
}

/// The alarms that already monitor a function's dropped events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The name of the alarm that `attach` creates for the function.
    pub alarm: String,
    /// True if `attach` has already created an alarm for the function.
    pub ours: bool,
    /// True if the alarm that `attach` created has no action.
    pub is_silent: bool,
    /// True if another alarm, such as one that the CDK construct created, also monitors the function's dropped events.
    pub others: bool,
    /// The SNS topics that the deployment's own alarms notify; `None` if the deployment has no alarms. In that case,
    /// `attach` does not create one for the function.
    pub topics: Option<BTreeSet<String>>,
}

impl Losses {
    /// Reads the alarms that monitor a function's dropped events.
    ///
    /// # Errors
    ///
    /// Fails if the alarms cannot be read.
    pub async fn read(account: &Account, deployment: &Deployment, function: &str) -> Result<Self, Failure> {
        let alarm = lost_alarm(deployment, function);
        let mut losses = Self { alarm, ..Self::default() };
        let alarms = account.aws.alarms(function).await?;
        alarms.iter().for_each(|alarm| losses.see(alarm, deployment, function));
        Ok(losses)
    }

    fn see(&mut self, alarm: &MetricAlarm, deployment: &Deployment, function: &str) {
        if let [metric] = &*alarm.metrics
            && metric.name == METRIC
        {
            if metric.dimensions.get("FunctionName").is_some_and(|it| it == function) {
                let is_ours = alarm.name == self.alarm;
                if is_ours {
                    (self.ours, self.is_silent) = (true, alarm.actions.is_empty());
                }
                // Ignores an alarm that another deployment's `attach` created, because that deployment deletes the
                // alarm when it detaches the function.
                self.others |= !is_ours && !alarm.name.ends_with(&lost_suffix(function));
            }
        } else if watched(alarm, deployment).is_some() {
            // Keeps only SNS topics: the new alarm would run any other action, such as scaling, not only when it fires
            // but also when it returns to `OK`.
            let topics = alarm.actions.iter().filter(|action| action.contains(":sns:"));
            self.topics.get_or_insert_default().extend(topics.cloned());
        }
    }

    /// The alarm that `attach` must create for the function; `None` if `attach` leaves the alarms unchanged.
    pub fn missing(&self, deployment: &Deployment, function: &str) -> Option<NewAlarm> {
        let topics = self.topics.as_ref().filter(|_| !self.others)?;
        let dimensions = BTreeMap::from([("FunctionName".to_owned(), function.to_owned())]);
        (!self.ours || self.is_silent && !topics.is_empty()).then(|| NewAlarm {
            name: self.alarm.clone(),
            description: description(deployment, function),
            metric: WatchedMetric { namespace: "AWS/Lambda".into(), name: METRIC.into(), dimensions },
            actions: topics.iter().take(MOST_ACTIONS).cloned().collect(),
        })
    }
}

/// The ARN of an SNS topic that a deployment's alarms can notify. It needs no quotes in a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicArn(String);

impl TopicArn {
    /// Parses the ARN of a topic in the region of `handler`. An alarm can notify only topics in its own region.
    ///
    /// # Errors
    ///
    /// Fails if `text` is not the ARN of a topic in that region.
    pub fn read(text: &str, handler: &FunctionArn) -> Result<Self, String> {
        let is_word = |word: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            !word.is_empty() && word.chars().all(is_plain)
        };
        match *text.split(':').collect::<Vec<_>>() {
            ["arn", partition, "sns", region, account, name]
                if [partition, region, account, name].into_iter().all(is_word) =>
            {
                if region != handler.region {
                    let here = &handler.region;
                    return Err(format!("is in {region}: the alarms can only notify a topic in {here}"));
                }
                Ok(Self(text.to_owned()))
            }
            _ => {
                let FunctionArn { partition, region, account, .. } = handler;
                Err(format!(
                    "is not the ARN of a topic, such as arn:{partition}:sns:{region}:{account}:on-call"
                ))
            }
        }
    }
}

impl fmt::Display for TopicArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Alarm {
        pub(crate) fn sample(name: &str, watched: Watched) -> Self {
            let description = format!("{name} should be empty.");
            let (notifies, has_action) = (true, true);
            Self { name: name.into(), state: "OK".into(), notifies, has_action, description, watched }
        }
    }

    const PLACE: &str = "arn:aws:lambda:eu-west-1:123456789012:function";

    fn deployment() -> Deployment {
        let mut deployment = Deployment::sample();
        let entries = format!("{PLACE}:orders:live,{PLACE}:billing-*, not an ARN");
        deployment.variables.insert("TARGET_FUNCTIONS".into(), entries);
        deployment
    }

    fn metric(namespace: &str, name: &str, of: &[(&str, &str)]) -> WatchedMetric {
        let dimensions = of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        WatchedMetric { namespace: namespace.into(), name: name.into(), dimensions: dimensions.collect() }
    }

    fn on(namespace: &str, name: &str, of: &[(&str, &str)]) -> MetricAlarm {
        MetricAlarm { metrics: vec![metric(namespace, name, of)], ..MetricAlarm::default() }
    }

    #[test]
    fn alarm_is_assigned_to_what_it_watches() {
        let lost = |function| on("AWS/Lambda", "DestinationDeliveryFailures", &[("FunctionName", function)]);
        let errors = |function| on("AWS/Lambda", "Errors", &[("FunctionName", function)]);
        let visible = |queue| on("AWS/SQS", "ApproximateNumberOfMessagesVisible", &[("QueueName", queue)]);
        for (alarm, expected) in [
            (visible("retries"), Some(Watched::Due)),
            (visible("dead"), Some(Watched::DeadLetters)),
            (visible("others"), None),
            (errors("retry-handler"), Some(Watched::Errors)),
            (errors("orders"), None),
            (lost("orders"), Some(Watched::Lost("orders".into()))),
            (lost("billing-eu"), Some(Watched::Lost("billing-eu".into()))),
            (lost("shop"), None),
            (on("Comeback/retry-handler", "NeedsAnOperator", &[]), Some(Watched::Errors)),
            (on("Comeback/retry-handler", "LostPayload", &[]), Some(Watched::LostPayloads)),
            (on("Comeback/retry-handler-2", "NeedsAnOperator", &[]), None),
            (on("Comeback", "NeedsAnOperator", &[]), None),
        ] {
            assert_eq!(watched(&alarm, &deployment()), expected, "{alarm:?}");
        }
    }

    #[test]
    fn only_a_topic_that_the_alarms_can_notify_is_taken() {
        let handler = &Deployment::sample().handler_arn;
        let topic = "arn:aws:sns:eu-west-1:999999999999:on-call_2";
        assert_eq!(TopicArn::read(topic, handler).unwrap().to_string(), topic);
        for (wrong, why) in [
            (
                "arn:aws:sns:eu-west-2:123456789012:on-call",
                "is in eu-west-2: the alarms can only notify a topic in eu-west-1",
            ),
            ("on-call", "is not the ARN of a topic, such as arn:aws:sns:eu-west-1:123456789012:on-call"),
            ("arn:aws:sqs:eu-west-1:123456789012:on-call", "is not the ARN of a topic"),
            ("arn:aws:sns:eu-west-1:123456789012:a'b", "is not the ARN of a topic"),
            ("arn:$(id):sns:eu-west-1:123456789012:on-call", "is not the ARN of a topic"),
            ("arn:aws:sns:eu-west-1:123456789012:on-call:subscription", "is not the ARN of a topic"),
            ("arn:aws:sns:eu-west-1:123456789012:", "is not the ARN of a topic"),
        ] {
            let refused = TopicArn::read(wrong, handler).unwrap_err();
            assert!(refused.starts_with(why), "{wrong}: {refused}");
        }
    }

    #[test]
    fn an_alarm_without_a_description_says_so() {
        let described = |text: &str| {
            let alarm = MetricAlarm { description: text.into(), ..MetricAlarm::default() };
            Alarm::read(&alarm, Watched::Errors).description
        };
        assert_eq!([described("It fails."), described("")], ["It fails.", "it has no description"]);
    }

    #[test]
    fn alarm_notifies_by_an_enabled_action() {
        let read = |action: Option<&str>, actions_enabled: bool| {
            let actions = action.map(ToOwned::to_owned).into_iter().collect();
            let alarm = MetricAlarm { actions, actions_enabled, ..MetricAlarm::default() };
            let alarm = Alarm::read(&alarm, Watched::Errors);
            (alarm.has_action, alarm.notifies)
        };
        assert_eq!(read(Some("arn:topic"), true), (true, true));
        assert_eq!(read(Some("arn:topic"), false), (true, false));
        assert_eq!(read(None, true), (false, false));
    }

    #[test]
    fn expression_alarm_is_known_by_any_metric() {
        let of = |metrics: &[(&str, &str)]| {
            let metrics =
                metrics.iter().map(|(name, queue)| metric("AWS/SQS", name, &[("QueueName", queue)]));
            watched(&MetricAlarm { metrics: metrics.collect(), ..MetricAlarm::default() }, &deployment())
        };
        let visible = "ApproximateNumberOfMessagesVisible";
        assert_eq!(of(&[(visible, "dead")]), Some(Watched::DeadLetters));
        assert_eq!(of(&[(visible, "others")]), None);
        let stalled = [(visible, "retries"), ("NumberOfMessagesReceived", "retries")];
        assert_eq!(of(&stalled), Some(Watched::Receives));
        assert_eq!(of(&[("ApproximateNumberOfMessagesNotVisible", "retries")]), Some(Watched::Hidden));
    }

    fn alarm(name: &str, metric: &str, dimension: (&str, &str)) -> MetricAlarm {
        MetricAlarm { name: name.into(), ..on("", metric, &[dimension]) }
    }

    #[test]
    fn a_lost_alarm_of_another_deployment_is_not_ours() {
        let watched = |name| watched(&alarm(name, METRIC, ("FunctionName", "orders")), &deployment());
        let lost = Some(Watched::Lost("orders".into()));
        assert_eq!(watched("others-lost-orders"), None);
        assert_eq!([watched("retries-lost-orders"), watched("shop-OrdersLost")], [lost.clone(), lost]);
    }

    fn seen(alarms: &[MetricAlarm]) -> Losses {
        let deployment = deployment();
        let mut losses = Losses {
            alarm: "retries-lost-orders".into(),
            ours: false,
            is_silent: false,
            others: false,
            topics: None,
        };
        alarms.iter().for_each(|alarm| losses.see(alarm, &deployment, "orders"));
        losses
    }

    #[test]
    fn our_alarm_is_known_from_anothers() {
        let on = |name, function| alarm(name, METRIC, ("FunctionName", function));
        for (alarms, ours, others) in [
            (vec![on("retries-lost-orders", "orders")], true, false),
            (vec![on("shop-OrdersLost", "orders"), on("retries-lost-orders", "orders")], true, true),
            (vec![on("shop-OrdersLost", "orders")], false, true),
            (vec![on("retries-lost-invoices", "invoices")], false, false),
            // Another deployment created this alarm, and will delete it when it detaches the function.
            (vec![on("others-lost-orders", "orders")], false, false),
            (vec![alarm("errors", "Errors", ("FunctionName", "orders"))], false, false),
        ] {
            let losses = seen(&alarms);
            assert_eq!((losses.ours, losses.others, losses.topics), (ours, others, None), "{alarms:?}");
        }
    }

    #[test]
    fn lost_alarm_notifies_the_deployments_topics() {
        let telling = |queue, topics: &[&str]| {
            let actions = topics.iter().map(ToString::to_string).collect();
            let alarm = alarm(queue, "ApproximateNumberOfMessagesVisible", ("QueueName", queue));
            MetricAlarm { actions, ..alarm }
        };
        let [a, b, c] = ["a", "b", "c"].map(|topic| format!("arn:aws:sns:eu-west-1:123456789012:{topic}"));
        let scaling = "arn:aws:autoscaling:eu-west-1:123456789012:scalingPolicy:p";
        let alarms =
            [telling("dead", &[&a, scaling]), telling("retries", &[&b, &a]), telling("others", &[&c])];
        assert_eq!(seen(&alarms).topics, Some(BTreeSet::from([a, b])), "topics only");
        assert_eq!(seen(&[telling("dead", &[])]).topics, Some(BTreeSet::new()), "it has alarms");
        assert_eq!(seen(&[telling("others", &[&c])]).topics, None);
    }
}
