//! The alarms of a deployment, and the alarm on events that Lambda loses on their way to the retry queue.

use std::collections::BTreeSet;

use aws_sdk_cloudwatch::types::{ComparisonOperator, Dimension, MetricAlarm, Statistic};
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

/// The same as that of the template and the construct.
pub(crate) fn description(deployment: &Deployment, function: &str) -> String {
    format!(
        "Lambda could not send failed events of this function to the retry queue, and has dropped them. Run comeback \
         doctor {} {function}. https://github.com/comeback-retries/comeback/blob/main/docs/alarms.md#lost-on-the-way",
        deployment.name().flag()
    )
}

/// Alarms on the events of a function that Lambda loses on their way to the retry queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Losses {
    pub(crate) alarm: String,
    pub(crate) ours: bool,
    /// Our alarm has no action.
    pub(crate) is_silent: bool,
    /// Whether another alarm is on these losses, such as the construct's.
    pub(crate) others: bool,
    /// The topics of the deployment's own alarms; `None` if it has no alarms, and then wants none here either.
    pub(crate) topics: Option<BTreeSet<String>>,
}

impl Losses {
    pub(crate) async fn read(
        account: &Account,
        deployment: &Deployment,
        function: &str,
    ) -> Result<Self, Failure> {
        let alarm = lost_alarm(deployment, function);
        let mut losses = Self { alarm, ours: false, is_silent: false, others: false, topics: None };
        let alarms = describe(account, function).await?;
        alarms.iter().for_each(|alarm| losses.see(alarm, deployment, function));
        Ok(losses)
    }

    fn see(&mut self, alarm: &MetricAlarm, deployment: &Deployment, function: &str) {
        if alarm.metric_name() == Some(METRIC) {
            let is_on = |it: &Dimension| it.name() == Some("FunctionName") && it.value() == Some(function);
            if alarm.dimensions().iter().any(is_on) {
                let name = alarm.alarm_name().unwrap_or_default();
                let is_ours = name == self.alarm;
                if is_ours {
                    (self.ours, self.is_silent) = (true, alarm.alarm_actions().is_empty());
                }
                // Another deployment's goes when that detaches the function.
                self.others |= !is_ours && !name.ends_with(&lost_suffix(function));
            }
        } else if watched(alarm, deployment).is_some() {
            // Others do something, perhaps when the alarm is over too.
            let topics = alarm.alarm_actions().iter().filter(|action| action.contains(":sns:"));
            self.topics.get_or_insert_default().extend(topics.cloned());
        }
    }

    /// The topics that our alarm should notify, if it is missing or notifies nobody; `None` if it stays as it is.
    pub(crate) fn topics_to_set(&self) -> Option<&BTreeSet<String>> {
        let topics = self.topics.as_ref().filter(|_| !self.others)?;
        (!self.ours || self.is_silent && !topics.is_empty()).then_some(topics)
    }
}

/// Actions of an alarm for one state. Source: "PutMetricAlarm", Amazon CloudWatch API Reference.
const MOST_ACTIONS: usize = 5;

/// An alarm on the events of a function that Lambda loses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostAlarm {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) topics: BTreeSet<String>,
}

pub(crate) async fn watch(account: &Account, function: &str, alarm: &LostAlarm) -> Result<(), Failure> {
    let LostAlarm { name, description, topics } = alarm;
    let topics: Vec<String> = topics.iter().take(MOST_ACTIONS).cloned().collect();
    let call = account
        .cloudwatch
        .put_metric_alarm()
        .alarm_name(name)
        .alarm_description(description)
        .namespace("AWS/Lambda")
        .metric_name(METRIC)
        .dimensions(Dimension::builder().name("FunctionName").value(function).build())
        .statistic(Statistic::Sum)
        .period(300)
        .evaluation_periods(1)
        .comparison_operator(ComparisonOperator::GreaterThanOrEqualToThreshold)
        .threshold(1.0)
        .treat_missing_data("notBreaching")
        .set_alarm_actions(Some(topics.clone()))
        .set_ok_actions(Some(topics));
    let answer = call.send().await;
    answer.map(drop).or_failure("cloudwatch:PutMetricAlarm", name)
}

/// Deletes the alarm, unless it is gone.
pub(crate) async fn unwatch(account: &Account, alarm: &str) -> Result<(), Failure> {
    match account.cloudwatch.delete_alarms().alarm_names(alarm).send().await {
        Err(error) if error.as_service_error().is_some_and(|error| error.is_resource_not_found()) => Ok(()),
        answer => answer.map(drop).or_failure("cloudwatch:DeleteAlarms", alarm),
    }
}

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
            // Another deployment's, which deletes it.
            (vec![on("others-lost-orders", "orders")], false, false),
            (vec![alarm("errors", "Errors", ("FunctionName", "orders"))], false, false),
        ] {
            let losses = seen(&alarms);
            assert_eq!((losses.ours, losses.others, losses.topics), (ours, others, None), "{alarms:?}");
        }
    }

    #[test]
    fn whoever_hears_of_the_deployment_hears_of_this() {
        let telling = |queue, topics: &[&str]| {
            let actions = topics.iter().map(ToString::to_string).collect();
            let alarm = alarm(queue, "ApproximateNumberOfMessagesVisible", ("QueueName", queue));
            MetricAlarm::builder()
                .set_dimensions(Some(alarm.dimensions().to_vec()))
                .set_alarm_actions(Some(actions))
                .build()
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
