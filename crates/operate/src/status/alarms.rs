use aws_sdk_cloudwatch::types::{Dimension, MetricAlarm};
use comeback_engine::FunctionPattern;
use serde::Serialize;

use crate::{Account, Deployment, Failure};

/// A metric alarm on one of the queues, on the handler or its log, or on what Lambda loses of a retried function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alarm {
    /// Its name.
    pub name: String,
    /// `OK`, `ALARM` or `INSUFFICIENT_DATA`.
    pub state: String,
    /// Whether somebody hears of it: it has an action, and its actions are on.
    pub notifies: bool,
}

impl Alarm {
    /// Every alarm of the deployment.
    ///
    /// # Errors
    ///
    /// A call that did not work.
    pub async fn all(account: &Account, deployment: &Deployment) -> Result<Vec<Self>, Failure> {
        let mut pages = account.cloudwatch.describe_alarms().into_paginator().send();
        let mut alarms = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| {
                Failure::of_call("cloudwatch:DescribeAlarms", &deployment.handler, &error)
            })?;
            alarms
                .extend(page.metric_alarms().iter().filter(|alarm| is_of(alarm, deployment)).map(Self::read));
        }
        Ok(alarms)
    }

    fn read(alarm: &MetricAlarm) -> Self {
        Self {
            name: alarm.alarm_name().unwrap_or_default().to_owned(),
            state: alarm.state_value().map(|state| state.as_str().to_owned()).unwrap_or_default(),
            notifies: !alarm.alarm_actions().is_empty() && alarm.actions_enabled().unwrap_or(true),
        }
    }
}

/// An alarm on a single metric names it itself; one on an expression names it in its queries.
pub(crate) fn is_of(alarm: &MetricAlarm, deployment: &Deployment) -> bool {
    let single = (alarm.namespace(), alarm.metric_name(), alarm.dimensions());
    let of_queries = alarm.metrics().iter().filter_map(|query| query.metric_stat()?.metric());
    let of_queries = of_queries.map(|metric| (metric.namespace(), metric.metric_name(), metric.dimensions()));
    std::iter::once(single).chain(of_queries).any(|(namespace, name, dimensions)| {
        let dimension =
            |wanted: &str| dimensions.iter().find(|it| it.name() == Some(wanted)).and_then(Dimension::value);
        let queues = [deployment.retry_queue.name(), deployment.dead_letter_queue.name()];
        let of_log = namespace.and_then(|it| it.strip_prefix("Comeback/")) == Some(&deployment.handler);
        let of_queue = dimension("QueueName").is_some_and(|queue| queues.contains(&queue));
        let of_function = dimension("FunctionName").is_some_and(|function| {
            function == deployment.handler
                || name == Some("DestinationDeliveryFailures") && retries(deployment, function)
        });
        of_log || of_queue || of_function
    })
}

/// Whether `TARGET_FUNCTIONS` has an entry for the function, or for one of its versions or aliases.
fn retries(deployment: &Deployment, function: &str) -> bool {
    let (place, _) = deployment.handler_arn.rsplit_once(':').unwrap_or_default();
    let arn = format!("{place}:{function}");
    let unqualified = |entry: &str| entry.split(':').take(7).collect::<Vec<_>>().join(":");
    let mut patterns =
        deployment.target_functions().filter_map(|entry| unqualified(entry).parse::<FunctionPattern>().ok());
    patterns.any(|pattern| pattern.allows(&arn))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use aws_sdk_cloudwatch::types::{Metric, MetricDataQuery, MetricStat};

    use super::*;
    use crate::Queue;

    const PLACE: &str = "arn:aws:lambda:eu-west-1:123456789012:function";

    pub(crate) fn deployment() -> Deployment {
        let queue = |name: &str| Queue {
            url: format!("https://sqs.example/{name}"),
            arn: format!("arn:aws:sqs:eu-west-1:123456789012:{name}"),
        };
        let entries = format!("{PLACE}:orders:live,{PLACE}:billing-*, not an ARN");
        Deployment {
            stack: None,
            handler: "retry-handler".into(),
            handler_arn: format!("{PLACE}:retry-handler"),
            role_arn: "arn:aws:iam::123456789012:role/retry-handler".into(),
            timeout: Duration::from_secs(60),
            log_group: "/aws/lambda/retry-handler".into(),
            log_level: None,
            variables: BTreeMap::from([("TARGET_FUNCTIONS".into(), entries)]),
            mapping: None,
            retry_queue: queue("retries"),
            dead_letter_queue: queue("dead"),
        }
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
            (visible("retries"), true),
            (visible("dead"), true),
            (visible("others"), false),
            (errors("retry-handler"), true),
            (errors("orders"), false),
            (lost("orders"), true),
            (lost("billing-eu"), true),
            (lost("shop"), false),
            (on("Comeback/retry-handler", "NeedsAnOperator", &[]), true),
            (on("Comeback/retry-handler-2", "NeedsAnOperator", &[]), false),
            (on("Comeback", "NeedsAnOperator", &[]), false),
        ] {
            assert_eq!(is_of(&alarm, &deployment()), expected, "{alarm:?}");
        }
    }

    #[test]
    fn an_alarm_on_an_expression_is_known_by_any_of_its_metrics() {
        let query = |queue| {
            let metric =
                Metric::builder().namespace("AWS/SQS").dimensions(dimension(("QueueName", queue))).build();
            let stat = MetricStat::builder().metric(metric).period(60).stat("Maximum").build();
            MetricDataQuery::builder().id("visible").metric_stat(stat).build()
        };
        let sum = MetricDataQuery::builder().id("sum").expression("visible + hidden").build();
        let of = |queue| MetricAlarm::builder().metrics(sum.clone()).metrics(query(queue)).build();
        assert!(is_of(&of("dead"), &deployment()));
        assert!(!is_of(&of("others"), &deployment()));
    }
}
