//! Converts CloudWatch's responses to our own types.

use std::collections::BTreeMap;

use aws_sdk_cloudwatch::operation::get_metric_data::GetMetricDataOutput;
use aws_sdk_cloudwatch::operation::get_metric_data::builders::GetMetricDataFluentBuilder;
use aws_sdk_cloudwatch::operation::put_metric_alarm::builders::PutMetricAlarmFluentBuilder;
use aws_sdk_cloudwatch::primitives::DateTime;
use aws_sdk_cloudwatch::types::{
    ComparisonOperator, Dimension, Metric, MetricDataQuery, MetricStat, Statistic,
};
use comeback_engine::Timestamp;

use crate::aws::{MetricAlarm, MetricQuery, NewAlarm, WatchedMetric};

/// Returns the id of the query at this index; an id must begin with a lower-case letter.
fn id(index: usize) -> String {
    format!("m{index}")
}

pub(super) fn call(call: GetMetricDataFluentBuilder, query: &MetricQuery<'_>) -> GetMetricDataFluentBuilder {
    let queries = query.series.iter().enumerate().map(|(index, series)| {
        let (name, value) = series.dimension;
        let dimension = Dimension::builder().name(name).value(value).build();
        let metric = Metric::builder().namespace(series.namespace).metric_name(series.name);
        let metric = metric.dimensions(dimension).build();
        let period = query.period.as_secs() as i32;
        let stat = MetricStat::builder().metric(metric).period(period).stat(series.statistic);
        MetricDataQuery::builder().id(id(index)).metric_stat(stat.build()).build()
    });
    let at = |time: Timestamp| DateTime::from_millis(time.as_millis() as i64);
    call.set_metric_data_queries(Some(queries.collect()))
        .start_time(at(query.since))
        .end_time(at(query.until))
}

/// Returns the data points in each of the first `series` series, newest first.
pub(super) fn points(answer: &GetMetricDataOutput, series: usize) -> Vec<Vec<(Timestamp, f64)>> {
    let of = |index| {
        let result = answer.metric_data_results().iter().find(|it| it.id() == Some(&*id(index)));
        let points = result.into_iter().flat_map(|it| it.timestamps().iter().zip(it.values()));
        points.map(|(at, value)| (Timestamp::from_secs(at.secs().unsigned_abs()), *value)).collect()
    };
    (0..series).map(of).collect()
}

/// Converts an alarm from the SDK's type.
pub(super) fn alarm(alarm: aws_sdk_cloudwatch::types::MetricAlarm) -> MetricAlarm {
    let metric = |namespace: Option<&str>, name: Option<&str>, dimensions: &[Dimension]| WatchedMetric {
        namespace: namespace.unwrap_or_default().to_owned(),
        name: name.unwrap_or_default().to_owned(),
        dimensions: dimensions
            .iter()
            .filter_map(|it| Some((it.name.clone()?, it.value.clone()?)))
            .collect::<BTreeMap<_, _>>(),
    };
    let single = alarm
        .metric_name()
        .is_some()
        .then(|| metric(alarm.namespace(), alarm.metric_name(), alarm.dimensions()));
    let of_queries = alarm.metrics().iter().filter_map(|query| query.metric_stat()?.metric());
    let of_queries = of_queries.map(|it| metric(it.namespace(), it.metric_name(), it.dimensions()));
    MetricAlarm {
        metrics: single.into_iter().chain(of_queries).collect(),
        actions_enabled: alarm.actions_enabled.unwrap_or(true),
        name: alarm.alarm_name.unwrap_or_default(),
        description: alarm.alarm_description.unwrap_or_default(),
        state: alarm.state_value.map(|state| state.as_str().to_owned()).unwrap_or_default(),
        actions: alarm.alarm_actions.unwrap_or_default(),
    }
}

pub(super) fn put(call: PutMetricAlarmFluentBuilder, alarm: &NewAlarm) -> PutMetricAlarmFluentBuilder {
    let NewAlarm { name, description, metric, actions } = alarm;
    let dimensions = metric.dimensions.iter();
    let dimensions = dimensions.map(|(name, value)| Dimension::builder().name(name).value(value).build());
    call.alarm_name(name)
        .alarm_description(description)
        .namespace(&metric.namespace)
        .metric_name(&metric.name)
        .set_dimensions(Some(dimensions.collect()))
        .statistic(Statistic::Sum)
        .period(300)
        .evaluation_periods(1)
        .comparison_operator(ComparisonOperator::GreaterThanOrEqualToThreshold)
        .threshold(1.0)
        .treat_missing_data("notBreaching")
        .set_alarm_actions(Some(actions.clone()))
        .set_ok_actions(Some(actions.clone()))
}

#[cfg(test)]
mod tests {
    use aws_sdk_cloudwatch::types::{MetricAlarm as Described, MetricDataResult};

    use super::*;
    use crate::aws::sdk::tests::answering;

    fn dead(name: &str) -> WatchedMetric {
        let dimensions = BTreeMap::from([("QueueName".to_owned(), "dead".to_owned())]);
        WatchedMetric { namespace: "AWS/SQS".into(), name: name.into(), dimensions }
    }

    #[test]
    fn an_alarm_watches_its_metric_or_those_of_its_queries() {
        let dimension = || Dimension::builder().name("QueueName").value("dead").build();
        let single = Described::builder().namespace("AWS/SQS").metric_name("Visible").dimensions(dimension());
        assert_eq!(alarm(single.build()).metrics, [dead("Visible")]);
        let query = |name: &str| {
            let metric = Metric::builder().namespace("AWS/SQS").metric_name(name).dimensions(dimension());
            let stat = MetricStat::builder().metric(metric.build()).period(60).stat("Maximum").build();
            MetricDataQuery::builder().id("visible").metric_stat(stat).build()
        };
        let sum = MetricDataQuery::builder().id("sum").expression("visible + hidden").build();
        let queries = [sum, query("Visible"), query("Hidden")];
        let expression = Described::builder().set_metrics(Some(queries.to_vec()));
        assert_eq!(alarm(expression.build()).metrics, [dead("Visible"), dead("Hidden")]);
    }

    #[test]
    fn actions_are_enabled_unless_they_are_turned_off() {
        let enabled = |set| alarm(Described::builder().set_actions_enabled(set).build()).actions_enabled;
        assert_eq!([None, Some(true), Some(false)].map(enabled), [true, true, false]);
    }

    #[tokio::test]
    async fn a_new_alarm_notifies_in_both_directions() {
        let account = answering(|_| (200, "", String::new())).await;
        let actions = vec!["arn:topic".to_owned()];
        let alarm = NewAlarm {
            name: "lost".into(),
            description: String::new(),
            metric: dead("Visible"),
            actions: actions.clone(),
        };
        let call = put(account.cloudwatch.put_metric_alarm(), &alarm);
        let input = call.as_input();
        assert_eq!(
            [input.get_alarm_actions(), input.get_ok_actions()],
            [&Some(actions.clone()), &Some(actions)]
        );
        assert_eq!(input.get_treat_missing_data().as_deref(), Some("notBreaching"));
    }

    #[test]
    fn points_are_of_the_series_with_their_id() {
        let result = |id: &str, points: &[(i64, f64)]| {
            let times = points.iter().map(|(at, _)| DateTime::from_secs(*at)).collect();
            let values = points.iter().map(|(_, value)| *value).collect();
            MetricDataResult::builder().id(id).set_timestamps(Some(times)).set_values(Some(values)).build()
        };
        let results = [result("m2", &[(60, 7.0)]), result("m0", &[(120, 2.0), (60, 1.0)])];
        let answer = GetMetricDataOutput::builder().set_metric_data_results(Some(results.to_vec())).build();
        let at = Timestamp::from_secs;
        assert_eq!(points(&answer, 3), [vec![(at(120), 2.0), (at(60), 1.0)], vec![], vec![(at(60), 7.0)]]);
    }
}
