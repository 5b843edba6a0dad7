use aws_sdk_cloudwatch::types::MetricAlarm;
use serde::Serialize;

use crate::{Account, Deployment, Failure};

/// A metric alarm on one of the queues, or on the handler.
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
    /// Every alarm whose metric is of one of the deployment's queues or of its handler.
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

/// An alarm on a single metric has dimensions of its own; one on an expression has metrics.
fn is_of(alarm: &MetricAlarm, deployment: &Deployment) -> bool {
    let names =
        [deployment.retry_queue.name(), deployment.dead_letter_queue.name(), deployment.handler.as_str()];
    let of_metrics = alarm.metrics().iter().filter_map(|query| query.metric_stat()?.metric());
    let dimensions = alarm.dimensions().iter().chain(of_metrics.flat_map(|metric| metric.dimensions()));
    let mut values = dimensions.filter(|it| matches!(it.name(), Some("QueueName" | "FunctionName")));
    values.any(|dimension| dimension.value().is_some_and(|value| names.contains(&value)))
}
