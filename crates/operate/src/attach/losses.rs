use std::collections::BTreeSet;

use aws_sdk_cloudwatch::types::{ComparisonOperator, Dimension, MetricAlarm, Statistic};

use crate::status::is_of;
use crate::{Account, Deployment, Failure, Queue};

const METRIC: &str = "DestinationDeliveryFailures";

/// The same as that of the template and the construct.
const DESCRIPTION: &str = "Lambda could not send failed events of this function to the retry queue, and has dropped \
                           them. Run comeback doctor FUNCTION. \
                           https://github.com/comeback-retries/comeback/blob/main/docs/alarms.md#lost-on-the-way";

/// What tells of the events of a function that Lambda loses on their way to the retry queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Losses {
    /// The name of the alarm that `attach` makes.
    pub alarm: String,
    /// Whether that alarm is there.
    pub ours: bool,
    /// Whether another alarm is on these losses, such as the construct's.
    pub others: bool,
    /// Whom the deployment's own alarms tell; `None` if it has none, so that none is wanted here either.
    pub tell: Option<BTreeSet<String>>,
}

impl Losses {
    pub(super) async fn read(
        account: &Account,
        deployment: &Deployment,
        function: &str,
    ) -> Result<Self, Failure> {
        let alarm = name(&deployment.retry_queue, function);
        let mut losses = Self { alarm, ours: false, others: false, tell: None };
        let mut alarms = account.cloudwatch.describe_alarms().into_paginator().send();
        while let Some(page) = alarms.next().await {
            let page =
                page.map_err(|error| Failure::of_call("cloudwatch:DescribeAlarms", function, &error))?;
            page.metric_alarms().iter().for_each(|alarm| losses.see(alarm, deployment, function));
        }
        Ok(losses)
    }

    fn see(&mut self, alarm: &MetricAlarm, deployment: &Deployment, function: &str) {
        if alarm.metric_name() == Some(METRIC) {
            let is_on = |it: &Dimension| it.name() == Some("FunctionName") && it.value() == Some(function);
            if alarm.dimensions().iter().any(is_on) {
                let name = alarm.alarm_name().unwrap_or_default();
                let is_ours = name == self.alarm;
                self.ours |= is_ours;
                // Another deployment's goes when that detaches the function.
                self.others |= !is_ours && !name.ends_with(&format!("-lost-{function}"));
            }
        } else if is_of(alarm, deployment) {
            // Others do something, perhaps when the alarm is over too.
            let topics =
                alarm.alarm_actions().iter().filter(|action| action.split(':').nth(2) == Some("sns"));
            self.tell.get_or_insert_default().extend(topics.cloned());
        }
    }
}

/// Two deployments may each have an alias of one function.
fn name(queue: &Queue, function: &str) -> String {
    format!("{}-lost-{function}", queue.name())
}

/// Actions of an alarm for one state. Source: "PutMetricAlarm", Amazon CloudWatch API Reference.
const MOST_ACTIONS: usize = 5;

/// Makes the alarm.
pub(super) async fn watch(
    account: &Account,
    function: &str,
    alarm: &str,
    tell: &BTreeSet<String>,
) -> Result<(), Failure> {
    let tell: Vec<String> = tell.iter().take(MOST_ACTIONS).cloned().collect();
    let call = account
        .cloudwatch
        .put_metric_alarm()
        .alarm_name(alarm)
        .alarm_description(DESCRIPTION)
        .namespace("AWS/Lambda")
        .metric_name(METRIC)
        .dimensions(Dimension::builder().name("FunctionName").value(function).build())
        .statistic(Statistic::Sum)
        .period(300)
        .evaluation_periods(1)
        .comparison_operator(ComparisonOperator::GreaterThanOrEqualToThreshold)
        .threshold(1.0)
        .treat_missing_data("notBreaching")
        .set_alarm_actions(Some(tell.clone()))
        .set_ok_actions(Some(tell));
    let answer = call.send().await;
    answer.map(drop).map_err(|error| Failure::of_call("cloudwatch:PutMetricAlarm", alarm, &error))
}

/// Deletes the alarm. One that is gone already is no failure.
pub(super) async fn unwatch(account: &Account, alarm: &str) -> Result<(), Failure> {
    match account.cloudwatch.delete_alarms().alarm_names(alarm).send().await {
        Err(error) if error.as_service_error().is_some_and(|error| error.is_resource_not_found()) => Ok(()),
        answer => {
            answer.map(drop).map_err(|error| Failure::of_call("cloudwatch:DeleteAlarms", alarm, &error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::tests::deployment;

    fn alarm(name: &str, metric: &str, dimension: (&str, &str)) -> MetricAlarm {
        let dimension = Dimension::builder().name(dimension.0).value(dimension.1).build();
        MetricAlarm::builder().alarm_name(name).metric_name(metric).dimensions(dimension).build()
    }

    fn seen(alarms: &[MetricAlarm]) -> Losses {
        let deployment = deployment();
        let alarm = name(&deployment.retry_queue, "orders");
        let mut losses = Losses { alarm, ours: false, others: false, tell: None };
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
            assert_eq!((losses.ours, losses.others, losses.tell), (ours, others, None), "{alarms:?}");
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
        assert_eq!(seen(&alarms).tell, Some(BTreeSet::from([a, b])), "topics only");
        assert_eq!(seen(&[telling("dead", &[])]).tell, Some(BTreeSet::new()), "it has alarms");
        assert_eq!(seen(&[telling("others", &[&c])]).tell, None);
    }
}
