//! What the alarms watch, whom they tell, and what they cost.

use std::collections::BTreeMap;

use comeback_tests::{pages, template};
use serde_json::{Value, json};

use crate::evaluation::period;

const HOUR: usize = 60;
const DAY: usize = 24 * HOUR;

fn alarms() -> BTreeMap<&'static str, &'static Value> {
    let resources = template()["Resources"].as_object().expect("resources").iter();
    let alarms = resources.filter(|(_, resource)| resource["Type"] == "AWS::CloudWatch::Alarm");
    alarms.map(|(name, alarm)| (name.as_str(), alarm)).collect()
}

#[test]
fn each_alarm_watches_its_own_queue_or_function() {
    let [retry, dead] =
        ["RetryQueue", "DeadLetterQueue"].map(|queue| json!({"Fn::GetAtt": [queue, "QueueName"]}));
    let [handler, example] = ["RetryHandler", "ExampleTarget"].map(|function| json!({"Ref": function}));
    let expected = BTreeMap::from([
        ("CrowdedAlarm", Some(&retry)),
        ("DeadLettersAlarm", Some(&dead)),
        ("DeadLettersExpireAlarm", Some(&dead)),
        ("HandlerErrorsAlarm", Some(&handler)),
        ("LateAlarm", Some(&retry)),
        ("LostOnTheWayAlarm", Some(&example)),
        // The handler's name is in its namespace.
        ("NeedsAnOperatorAlarm", None),
        ("StalledAlarm", Some(&retry)),
        ("ThrottledAlarm", Some(&handler)),
    ]);
    assert_eq!(alarms().keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, alarm) in alarms() {
        let alarm = &alarm["Properties"];
        let of_queries = alarm["Metrics"].as_array().into_iter().flatten();
        let metrics = of_queries.filter_map(|query| query["MetricStat"].get("Metric"));
        let values: Vec<_> =
            metrics.chain([alarm]).filter_map(|metric| metric["Dimensions"][0].get("Value")).collect();
        assert_eq!(values.first().copied(), expected[name], "{name}");
        assert!(values.iter().all(|value| Some(*value) == expected[name]), "{name}: {values:?}");
    }
}

#[test]
fn the_alarm_on_the_log_counts_what_its_filter_finds() {
    let resources = &template()["Resources"];
    let filter = &resources["NeedsAnOperatorFilter"]["Properties"];
    assert_eq!(filter["FilterPattern"], r#"{ $.level = "ERROR" }"#);
    assert_eq!(filter["LogGroupName"], json!({"Ref": "RetryHandlerLogs"}));
    let alarm = &resources["NeedsAnOperatorAlarm"]["Properties"];
    let counted = &filter["MetricTransformations"][0];
    assert_eq!(
        (&counted["MetricNamespace"], &counted["MetricName"]),
        (&alarm["Namespace"], &alarm["MetricName"])
    );
    assert_eq!(
        alarm["Namespace"],
        json!({"Fn::Sub": "Comeback/${RetryHandler}"}),
        "`status` finds it by that"
    );
}

/// CloudWatch refuses an alarm that looks back further.
#[test]
fn no_alarm_looks_back_on_more_than_cloudwatch_does() {
    for (name, alarm) in alarms() {
        let minutes =
            alarm["Properties"]["EvaluationPeriods"].as_u64().unwrap() * u64::try_from(period(name)).unwrap();
        let most = if period(name) >= HOUR { 7 * DAY } else { DAY };
        assert!(minutes <= u64::try_from(most).unwrap(), "{name}");
    }
}

#[test]
fn each_alarm_can_be_left_out_tells_the_topic_and_names_its_section() {
    let page = pages::read("docs/alarms.md");
    for (name, alarm) in alarms() {
        let condition = if name == "LostOnTheWayAlarm" { "WithExampleAlarm" } else { "WithAlarms" };
        assert_eq!(alarm["Condition"], condition, "{name}");
        let topic =
            json!({"Fn::If": ["WithAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]});
        let properties = &alarm["Properties"];
        assert_eq!([&properties["AlarmActions"], &properties["OKActions"]], [&topic, &topic], "{name}");
        let description = properties["AlarmDescription"].as_str().expect("text");
        assert!(description.len() <= 1_024, "{name}");
        assert!(description.to_lowercase().contains("comeback "), "{name} names a command: {description}");
        let (_, anchor) =
            description.rsplit_once("/docs/alarms.md#").unwrap_or_else(|| panic!("{description}"));
        let section = page
            .lines()
            .filter_map(|line| line.strip_prefix("### "))
            .any(|title| title.to_lowercase().replace(' ', "-") == anchor);
        assert!(section, "docs/alarms.md has no section {anchor}");
    }
    let parameters = &template()["Parameters"];
    let of = |name: &str| (parameters[name]["Default"].clone(), parameters[name]["AllowedValues"].clone());
    assert_eq!(of("Alarms"), (json!("on"), json!(["on", "off"])));
    assert_eq!(of("Dashboard"), (json!("off"), json!(["on", "off"])));
    assert_eq!(parameters["AlarmTopicArn"]["Default"], "");
}

/// The page's prices follow from the metrics that the alarms are on.
#[test]
fn the_page_repeats_the_price_of_the_alarms() {
    let metrics = |alarm: &Value| {
        let queries = alarm["Properties"]["Metrics"].as_array();
        queries.map_or(1, |all| all.iter().filter(|query| query.get("MetricStat").is_some()).count())
    };
    let (of_functions, of_stack): (Vec<_>, Vec<_>) =
        alarms().into_iter().partition(|(name, _)| *name == "LostOnTheWayAlarm");
    let cents =
        |alarms: Vec<(&str, &Value)>| 10 * alarms.iter().map(|(_, alarm)| metrics(alarm)).sum::<usize>();
    let page = pages::read("docs/alarms.md");
    assert_eq!(of_stack.len(), 8, "the page says eight");
    for (row, cents) in
        [("| the eight alarms ", cents(of_stack)), ("| *lost on the way*, ", cents(of_functions))]
    {
        let line = page.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("no row {row}"));
        assert!(line.ends_with(&format!("| {}.{:02} |", cents / 100, cents % 100)), "{line}");
    }
}
