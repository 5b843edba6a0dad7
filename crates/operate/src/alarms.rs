//! The alarms of a deployment, and the alarm on events that Lambda loses on their way to the retry queue.

use std::collections::{BTreeMap, BTreeSet};

use comeback_engine::FunctionArn;
use serde::Serialize;

use crate::account::Account;
use crate::aws::{MetricAlarm, NewAlarm, WatchedMetric};
use crate::deployment::Deployment;
use crate::failure::Failure;

/// A metric alarm on one of the queues, on the handler or its log, or on a retried function's events that Lambda loses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alarm {
    /// Its name.
    pub name: String,
    /// `OK`, `ALARM` or `INSUFFICIENT_DATA`.
    pub state: String,
    /// It has an action, and its actions are enabled.
    pub notifies: bool,
    /// It has an action.
    #[serde(skip)]
    pub has_action: bool,
    /// Its description, or a remark that it has none.
    #[serde(skip)]
    pub description: String,
    /// The part of the deployment that it watches.
    #[serde(skip)]
    pub watched: Watched,
}

/// The part of a deployment that an alarm watches: the place to look for a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Dead-letters in the dead-letter queue.
    DeadLetters,
    /// Dead-letters without their event's payload.
    LostPayloads,
    /// The failed events of this function that Lambda drops.
    Lost(String),
    /// Errors of the handler, or in its log.
    Errors,
    /// Throttles of the handler.
    Throttles,
    /// Receives from the retry queue.
    Receives,
    /// Messages that are hidden.
    Hidden,
    /// Messages that are due.
    Due,
}

impl Alarm {
    /// The alarms of a deployment.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
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

    /// The function whose lost events it counts, if `attach` made this alarm.
    pub fn made_by_attach(&self, deployment: &Deployment) -> Option<&str> {
        match &self.watched {
            Watched::Lost(function) if self.name == lost_alarm(deployment, function) => Some(function),
            _ => None,
        }
    }
}

#[cfg(test)]
impl Alarm {
    /// An alarm that is not raised.
    pub fn sample(name: &str, watched: Watched) -> Self {
        let description = format!("{name} should be empty.");
        let (notifies, has_action) = (true, true);
        Self { name: name.into(), state: "OK".into(), notifies, has_action, description, watched }
    }
}

/// The part of the deployment that an alarm watches; `None` if the alarm is not the deployment's.
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
    // If an alarm has several metrics, receives and throttles take precedence.
    let rank = |it: &Watched| matches!(it, Watched::Receives | Watched::Throttles);
    watched.max_by_key(rank)
}

/// The name of the alarm that `attach` makes. It begins with the retry queue's name: two deployments may each have an
/// alias of one function.
fn lost_alarm(deployment: &Deployment, function: &str) -> String {
    format!("{}{}", deployment.retry_queue.name(), lost_suffix(function))
}

fn lost_suffix(function: &str) -> String {
    format!("-lost-{function}")
}

/// Returns true if `attach` made the alarm for another deployment.
fn is_of_another(alarm: &MetricAlarm, deployment: &Deployment, function: &str) -> bool {
    let name = &alarm.name;
    name.ends_with(&lost_suffix(function)) && *name != lost_alarm(deployment, function)
}

const METRIC: &str = "DestinationDeliveryFailures";

/// The alarm's description, the same as in the template and the construct.
pub fn description(deployment: &Deployment, function: &str) -> String {
    format!(
        "Lambda could not send failed events of this function to the retry queue, and has dropped them. Run comeback \
         doctor {} {function}. https://github.com/comeback-retries/comeback/blob/main/docs/alarms.md#lost-on-the-way",
        deployment.name().flag()
    )
}

/// Alarms on the events of a function that Lambda loses on their way to the retry queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The name of the alarm that `attach` makes.
    pub alarm: String,
    /// The alarm that `attach` makes exists.
    pub ours: bool,
    /// It has no action.
    pub is_silent: bool,
    /// Another alarm is on these losses, such as the construct's.
    pub others: bool,
    /// The topics of the deployment's own alarms; `None` if it has no alarms, and so wants none here either.
    pub topics: Option<BTreeSet<String>>,
}

impl Losses {
    /// Reads the alarms on the events of a function that Lambda loses.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
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
                // Another deployment deletes its own alarm when it detaches the function.
                self.others |= !is_ours && !alarm.name.ends_with(&lost_suffix(function));
            }
        } else if watched(alarm, deployment).is_some() {
            // Other actions do something, perhaps also when the alarm is over.
            let topics = alarm.actions.iter().filter(|action| action.contains(":sns:"));
            self.topics.get_or_insert_default().extend(topics.cloned());
        }
    }

    /// The topics that our alarm should notify, if it is missing or notifies nobody; `None` if it stays as it is.
    pub fn topics_to_set(&self) -> Option<&BTreeSet<String>> {
        let topics = self.topics.as_ref().filter(|_| !self.others)?;
        (!self.ours || self.is_silent && !topics.is_empty()).then_some(topics)
    }
}

/// Actions of an alarm for one state. Source: "PutMetricAlarm", Amazon CloudWatch API Reference.
const MOST_ACTIONS: usize = 5;

/// An alarm on the events of a function that Lambda loses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostAlarm {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The topics that it notifies; the first five of them.
    pub topics: BTreeSet<String>,
}

impl LostAlarm {
    /// Makes the alarm on a function, or replaces it with one that notifies its topics.
    ///
    /// # Errors
    ///
    /// If CloudWatch refuses it.
    pub async fn put(&self, account: &Account, function: &str) -> Result<(), Failure> {
        let dimensions = BTreeMap::from([("FunctionName".to_owned(), function.to_owned())]);
        let metric = WatchedMetric { namespace: "AWS/Lambda".into(), name: METRIC.into(), dimensions };
        let actions = self.topics.iter().take(MOST_ACTIONS).cloned().collect();
        let (name, description) = (self.name.clone(), self.description.clone());
        account.aws.put_alarm(&NewAlarm { name, description, metric, actions }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            // The other deployment deletes it.
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
