//! The alarms of a deployment, and the alarm on events that Lambda loses on their way to the retry queue.

use aws_sdk_cloudwatch::types::{Dimension, MetricAlarm};
use comeback_engine::FunctionArn;
use serde::Serialize;

use crate::account::{Account, Failure, Or as _};
use crate::operate::deployment::Deployment;

/// A metric alarm on one of the queues, on the handler or its log, or on what Lambda loses of a retried function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Alarm {
    pub(crate) name: String,
    /// `OK`, `ALARM` or `INSUFFICIENT_DATA`.
    pub(crate) state: String,
    /// It has an action, and its actions are on.
    pub(crate) notifies: bool,
    #[serde(skip)]
    pub(crate) has_action: bool,
    #[serde(skip)]
    pub(crate) description: String,
    #[serde(skip)]
    pub(crate) watched: Watched,
}

/// What an alarm watches, which tells where to look for the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    DeadLetters,
    /// Dead-letters without their event's payload.
    LostPayloads,
    /// The failed events of this function that Lambda drops.
    Lost(String),
    /// Errors of the handler, or in its log.
    Errors,
    Throttles,
    /// Whether anything is received from the retry queue.
    Receives,
    /// Messages that are hidden.
    Hidden,
    /// Messages that are due.
    Due,
}

impl Alarm {
    pub(crate) async fn all(account: &Account, deployment: &Deployment) -> Result<Vec<Self>, Failure> {
        let alarms = describe(account, &deployment.handler).await?;
        Ok(alarms.iter().filter_map(|alarm| Some(Self::read(alarm, watched(alarm, deployment)?))).collect())
    }

    fn read(alarm: &MetricAlarm, watched: Watched) -> Self {
        let description = alarm.alarm_description().filter(|text| !text.is_empty());
        let has_action = !alarm.alarm_actions().is_empty();
        Self {
            description: description.unwrap_or("it has no description").to_owned(),
            watched,
            name: alarm.alarm_name().unwrap_or_default().to_owned(),
            state: alarm.state_value().map(|state| state.as_str().to_owned()).unwrap_or_default(),
            notifies: has_action && alarm.actions_enabled().unwrap_or(true),
            has_action,
        }
    }

    /// If `attach` made this alarm, the function whose lost events it counts.
    pub(crate) fn made_by_attach(&self, deployment: &Deployment) -> Option<&str> {
        match &self.watched {
            Watched::Lost(function) if self.name == lost_alarm(deployment, function) => Some(function),
            _ => None,
        }
    }
}

#[cfg(test)]
impl Alarm {
    /// An alarm that is not raised.
    pub(crate) fn sample(name: &str, watched: Watched) -> Self {
        let description = format!("{name} should be empty.");
        let (notifies, has_action) = (true, true);
        Self { name: name.into(), state: "OK".into(), notifies, has_action, description, watched }
    }
}

/// All metric alarms of the region.
async fn describe(account: &Account, of: &str) -> Result<Vec<MetricAlarm>, Failure> {
    let pages = account.cloudwatch.describe_alarms().into_paginator().send().try_collect().await;
    let pages = pages.or_failure("cloudwatch:DescribeAlarms", of)?;
    Ok(pages.into_iter().flat_map(|page| page.metric_alarms.unwrap_or_default()).collect())
}

/// What an alarm watches of a deployment; `None` if it is not the deployment's. An alarm on a single metric names it
/// itself; one on an expression names it in its queries.
fn watched(alarm: &MetricAlarm, deployment: &Deployment) -> Option<Watched> {
    let single = (alarm.namespace(), alarm.metric_name(), alarm.dimensions());
    let of_queries = alarm.metrics().iter().filter_map(|query| query.metric_stat()?.metric());
    let of_queries = of_queries.map(|metric| (metric.namespace(), metric.metric_name(), metric.dimensions()));
    let metrics = std::iter::once(single).chain(of_queries);
    let watched = metrics.filter_map(|(namespace, name, dimensions)| {
        let dimension =
            |wanted: &str| dimensions.iter().find(|it| it.name() == Some(wanted)).and_then(Dimension::value);
        if namespace.and_then(|it| it.strip_prefix("Comeback/")) == Some(&deployment.handler) {
            return Some(if name == Some("LostPayload") { Watched::LostPayloads } else { Watched::Errors });
        }
        match (dimension("QueueName"), dimension("FunctionName")) {
            (Some(queue), _) if queue == deployment.dead_letter_queue.name() => Some(Watched::DeadLetters),
            (Some(queue), _) if queue == deployment.retry_queue.name() => Some(match name {
                Some("NumberOfMessagesReceived") => Watched::Receives,
                Some("ApproximateNumberOfMessagesNotVisible") => Watched::Hidden,
                _ => Watched::Due,
            }),
            (_, Some(function)) if function == deployment.handler => {
                Some(if name == Some("Throttles") { Watched::Throttles } else { Watched::Errors })
            }
            (_, Some(function)) if name == Some(METRIC) && !is_of_another(alarm, deployment, function) => {
                let arn = FunctionArn { name: function.to_owned(), ..deployment.handler_arn.clone() };
                deployment.retries(&arn).then(|| Watched::Lost(function.to_owned()))
            }
            _ => None,
        }
    });
    // Of several metrics, the one that makes the alarm special decides.
    let rank = |it: &Watched| matches!(it, Watched::Receives | Watched::Throttles);
    watched.max_by_key(rank)
}

/// The name of the alarm that `attach` makes. Two deployments may each have an alias of one function.
fn lost_alarm(deployment: &Deployment, function: &str) -> String {
    format!("{}{}", deployment.retry_queue.name(), lost_suffix(function))
}

fn lost_suffix(function: &str) -> String {
    format!("-lost-{function}")
}

/// Whether `attach` made the alarm for another deployment.
fn is_of_another(alarm: &MetricAlarm, deployment: &Deployment, function: &str) -> bool {
    let name = alarm.alarm_name().unwrap_or_default();
    name.ends_with(&lost_suffix(function)) && name != lost_alarm(deployment, function)
}

const METRIC: &str = "DestinationDeliveryFailures";

#[cfg(test)]
mod tests {
    use aws_sdk_cloudwatch::types::builders::MetricAlarmBuilder;
    use aws_sdk_cloudwatch::types::{Metric, MetricDataQuery, MetricStat};

    use super::*;

    const PLACE: &str = "arn:aws:lambda:eu-west-1:123456789012:function";

    fn deployment() -> Deployment {
        let mut deployment = Deployment::sample();
        let entries = format!("{PLACE}:orders:live,{PLACE}:billing-*, not an ARN");
        deployment.variables.insert("TARGET_FUNCTIONS".into(), entries);
        deployment
    }

    fn dimension((name, value): (&str, &str)) -> Dimension {
        Dimension::builder().name(name).value(value).build()
    }

    fn on(namespace: &str, name: &str, of: &[(&str, &str)]) -> MetricAlarm {
        let dimensions = of.iter().copied().map(dimension).collect();
        MetricAlarm::builder().namespace(namespace).metric_name(name).set_dimensions(Some(dimensions)).build()
    }

    #[test]
    fn an_alarm_of_the_deployment_watches_its_queues_its_handler_its_log_or_what_it_may_lose() {
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
        let described = |text: Option<&str>| {
            let alarm = MetricAlarm::builder().set_alarm_description(text.map(ToOwned::to_owned)).build();
            Alarm::read(&alarm, Watched::Errors).description
        };
        assert_eq!(described(Some("It fails.")), "It fails.");
        assert_eq!([described(Some("")), described(None)], ["it has no description"; 2]);
    }

    #[test]
    fn an_alarm_notifies_by_an_action_that_is_enabled() {
        let read = |action: Option<&str>, is_enabled: bool| {
            let actions = action.map(|action| vec![action.to_owned()]);
            let alarm = MetricAlarm::builder().set_alarm_actions(actions).actions_enabled(is_enabled).build();
            let alarm = Alarm::read(&alarm, Watched::Errors);
            (alarm.has_action, alarm.notifies)
        };
        assert_eq!(read(Some("arn:topic"), true), (true, true));
        assert_eq!(read(Some("arn:topic"), false), (true, false));
        assert_eq!(read(None, true), (false, false));
    }

    #[test]
    fn an_alarm_on_an_expression_is_known_by_any_of_its_metrics() {
        let query = |name, queue| {
            let metric = Metric::builder().namespace("AWS/SQS").metric_name(name);
            let metric = metric.dimensions(dimension(("QueueName", queue))).build();
            let stat = MetricStat::builder().metric(metric).period(60).stat("Maximum").build();
            MetricDataQuery::builder().id("visible").metric_stat(stat).build()
        };
        let sum = MetricDataQuery::builder().id("sum").expression("visible + hidden").build();
        let of = |name, queue| MetricAlarm::builder().metrics(sum.clone()).metrics(query(name, queue));
        let watched = |alarm: MetricAlarmBuilder| watched(&alarm.build(), &deployment());
        let visible = "ApproximateNumberOfMessagesVisible";
        assert_eq!(watched(of(visible, "dead")), Some(Watched::DeadLetters));
        assert_eq!(watched(of(visible, "others")), None);
        let stalled = of(visible, "retries").metrics(query("NumberOfMessagesReceived", "retries"));
        assert_eq!(watched(stalled), Some(Watched::Receives));
        let crowded = of("ApproximateNumberOfMessagesNotVisible", "retries");
        assert_eq!(watched(crowded), Some(Watched::Hidden));
    }

    fn alarm(name: &str, metric: &str, dimension: (&str, &str)) -> MetricAlarm {
        let dimension = Dimension::builder().name(dimension.0).value(dimension.1).build();
        MetricAlarm::builder().alarm_name(name).metric_name(metric).dimensions(dimension).build()
    }

    #[test]
    fn a_lost_alarm_of_another_deployment_is_not_ours() {
        let watched = |name| watched(&alarm(name, METRIC, ("FunctionName", "orders")), &deployment());
        let lost = Some(Watched::Lost("orders".into()));
        assert_eq!(watched("others-lost-orders"), None);
        assert_eq!([watched("retries-lost-orders"), watched("shop-OrdersLost")], [lost.clone(), lost]);
    }
}
