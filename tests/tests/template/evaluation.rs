//! How CloudWatch evaluates an alarm of the template, over recorded minutes. Its limits: periods begin with the recording and
//! do not slide, and missing data points are not replaced by older ones; every alarm takes them for not breaching.

use std::collections::BTreeMap;

use comeback_tests::template;
use serde_json::Value;

use crate::expression::{Series, evaluate};

/// A metric's value in each minute, by the metric's name.
pub(crate) type Recorded = BTreeMap<&'static str, Series>;

/// Whether the alarm is raised at the end of each of its periods.
pub(crate) fn is_raised(alarm: &str, recorded: &Recorded) -> Vec<bool> {
    let alarm = &template()["Resources"][alarm]["Properties"];
    assert_eq!(alarm["TreatMissingData"], "notBreaching");
    let values = values(alarm, recorded);
    let threshold = alarm["Threshold"].as_f64().expect("a number");
    let is_breaching = |value: &Option<f64>| match alarm["ComparisonOperator"].as_str() {
        Some("GreaterThanThreshold") => value.is_some_and(|value| value > threshold),
        Some("GreaterThanOrEqualToThreshold") => value.is_some_and(|value| value >= threshold),
        other => panic!("{other:?} is not known"),
    };
    let breaching: Vec<bool> = values.iter().map(is_breaching).collect();
    let evaluated = whole(&alarm["EvaluationPeriods"]);
    let enough = alarm.get("DatapointsToAlarm").map_or(evaluated, whole);
    let looks = |end: usize| &breaching[(end + 1).saturating_sub(evaluated)..=end];
    (0..breaching.len()).map(|end| looks(end).iter().filter(|it| **it).count() >= enough).collect()
}

/// The minutes of one of the alarm's periods.
pub(crate) fn period(alarm: &str) -> usize {
    let alarm = &template()["Resources"][alarm]["Properties"];
    let mut queries = alarm["Metrics"].as_array().into_iter().flatten();
    let of_query = queries.find_map(|query| query["MetricStat"].get("Period"));
    whole(of_query.unwrap_or(&alarm["Period"])) / 60
}

fn values(alarm: &Value, recorded: &Recorded) -> Series {
    let Some(queries) = alarm["Metrics"].as_array() else {
        return aggregate(&alarm["MetricName"], &alarm["Period"], &alarm["Statistic"], recorded);
    };
    let metrics = queries.iter().filter_map(|query| {
        let stat = query.get("MetricStat")?;
        assert_eq!(query["ReturnData"], false);
        let series = aggregate(&stat["Metric"]["MetricName"], &stat["Period"], &stat["Stat"], recorded);
        Some((query["Id"].as_str()?.to_owned(), series))
    });
    let metrics = metrics.collect();
    let [returned] = queries.iter().filter(|query| query["ReturnData"] == true).collect::<Vec<_>>()[..]
    else {
        panic!("an alarm has one expression: {alarm}")
    };
    evaluate(returned["Expression"].as_str().expect("text"), &metrics)
}

/// A metric by the period and the statistic of an alarm.
fn aggregate(name: &Value, period: &Value, statistic: &Value, recorded: &Recorded) -> Series {
    let name = name.as_str().expect("text");
    let minutes = recorded.get(name).unwrap_or_else(|| panic!("{name} was not recorded"));
    let of_period = |minutes: &[Option<f64>]| {
        let values = minutes.iter().flatten().copied();
        match statistic.as_str() {
            Some("Sum") => values.reduce(|sum, value| sum + value),
            Some("Maximum") => values.reduce(f64::max),
            other => panic!("{other:?} is not known"),
        }
    };
    minutes.chunks(whole(period) / 60).map(of_period).collect()
}

fn whole(value: &Value) -> usize {
    value.as_u64().and_then(|number| number.try_into().ok()).unwrap_or_else(|| panic!("{value} is no number"))
}
