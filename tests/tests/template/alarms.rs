//! Tests that each alarm fires for its problem, clears when the problem is over, and ignores similar situations.

use std::collections::{BTreeMap, BTreeSet};

use comeback_engine::{HIDE_UP_TO_RANGE, InvocationRecord, ReasonCode};
use comeback_tests::{pages, template};
use serde_json::{Value, json};

use crate::cloudwatch::{Recorded, Series, is_raised, period};

/// A metric over time: each value, and the number of minutes for which it lasts. `None` means that there is no data
/// point.
type Runs<'a> = &'a [(Option<f64>, usize)];

const VISIBLE: &str = "ApproximateNumberOfMessagesVisible";
const HIDDEN: &str = "ApproximateNumberOfMessagesNotVisible";
const HOUR: usize = 60;
const DAY: usize = 24 * HOUR;

fn minutes(runs: Runs<'_>) -> Series {
    runs.iter().flat_map(|(value, minutes)| vec![*value; *minutes]).collect()
}

/// Returns the times when the alarm's state changes, in minutes from the start. The alarm's first state is `OK`.
fn changes(alarm: &str, recorded: &[(&'static str, Runs<'_>)]) -> Vec<usize> {
    let recorded: Recorded = recorded.iter().map(|(name, runs)| (*name, minutes(runs))).collect();
    let lengths: BTreeSet<_> = recorded.values().map(Vec::len).collect();
    assert_eq!(lengths.len(), 1, "all metrics are recorded for the same time");
    let raised = is_raised(alarm, &recorded);
    let before = [false].iter().chain(&raised);
    let at = raised.iter().zip(before).enumerate().filter(|(_, (now, before))| now != before);
    at.map(|(index, _)| (index + 1) * period(alarm)).collect()
}

fn held(alarm: &str, visible: Runs<'_>, hidden: Runs<'_>) -> Vec<usize> {
    changes(alarm, &[(VISIBLE, visible), (HIDDEN, hidden)])
}

#[test]
fn dead_letters_for_five_minutes_even_while_being_read() {
    let visible = [(Some(0.0), 10), (Some(2.0), 10), (Some(0.0), 10), (Some(2.0), 5), (Some(0.0), 10)];
    let hidden = [(Some(0.0), 20), (Some(2.0), 10), (Some(0.0), 15)];
    assert_eq!(held("DeadLettersAlarm", &visible, &hidden), [15, 36], "raised once, until they are gone");
    let redriven_at_once = [(None, 10), (Some(1.0), 4), (Some(0.0), 10), (None, 10)];
    let hidden = [(None, 10), (Some(0.0), 14), (None, 10)];
    assert_eq!(held("DeadLettersAlarm", &redriven_at_once, &hidden), [0; 0]);
}

#[test]
fn dead_letters_expire_after_seven_days() {
    // On the fifth day, an operator reads the dead-letters, which hides them for two hours, but does nothing about
    // them.
    let forgotten = [
        (Some(0.0), HOUR),
        (Some(1.0), 4 * DAY),
        (Some(0.0), 2 * HOUR),
        (Some(1.0), 4 * DAY),
        (Some(0.0), HOUR),
    ];
    let hidden = [(Some(0.0), HOUR + 4 * DAY), (Some(1.0), 2 * HOUR), (Some(0.0), 4 * DAY + HOUR)];
    let expected = [HOUR + 7 * DAY, 4 * HOUR + 8 * DAY];
    assert_eq!(held("DeadLettersExpireAlarm", &forgotten, &hidden), expected);
    let emptied_every_day = [(Some(5.0), 23 * HOUR), (Some(0.0), HOUR)].repeat(9);
    assert_eq!(held("DeadLettersExpireAlarm", &emptied_every_day, &[(Some(0.0), 9 * DAY)]), [0; 0]);
}

#[test]
fn event_that_lambda_drops() {
    let lost = [(None, 10), (Some(1.0), 1), (None, 14)];
    assert_eq!(changes("LostOnTheWayAlarm", &[("DestinationDeliveryFailures", &lost)]), [15, 20]);
}

#[test]
fn event_whose_payload_lambda_leaves_out() {
    let lost = [(None, 10), (Some(1.0), 1), (None, 14)];
    assert_eq!(changes("LostPayloadAlarm", &[("LostPayload", &lost)]), [15, 20]);
}

#[test]
fn handler_errors_in_two_of_five_minutes() {
    let alarm = |errors: Runs<'_>| changes("HandlerErrorsAlarm", &[("Errors", errors)]);
    assert_eq!(
        alarm(&[(Some(0.0), 5), (Some(1.0), 1), (Some(0.0), 9)]),
        [0; 0],
        "its batch is delivered again"
    );
    assert_eq!(alarm(&[(None, 5), (Some(3.0), 1), (Some(0.0), 3), (Some(1.0), 1), (Some(0.0), 5)]), [10, 11]);
}

#[test]
fn throttled_without_a_single_invocation() {
    let alarm = |throttles: Runs<'_>, invocations: Runs<'_>| {
        changes("ThrottledAlarm", &[("Throttles", throttles), ("Invocations", invocations)])
    };
    let no_concurrency = [(None, 20), (Some(4.0), 1), (None, 24)];
    assert_eq!(alarm(&no_concurrency, &[(Some(9.0), 15), (None, 30)]), [30, 45]);
    assert_eq!(alarm(&[(Some(40.0), 45)], &[(Some(9.0), 45)]), [0; 0], "throttled pollers try again");
    assert_eq!(alarm(&[(None, 45)], &[(None, 45)]), [0; 0], "it is idle");
}

#[test]
fn error_in_the_log() {
    let denied = [(None, 7), (Some(1.0), 20), (None, 80)];
    assert_eq!(changes("NeedsAnOperatorAlarm", &[("NeedsAnOperator", &denied)]), [10, 95]);
    let one_event =
        [(None, 7), (Some(1.0), 1), (None, 54), (Some(1.0), 1), (None, 54), (Some(1.0), 1), (None, 80)];
    assert_eq!(
        changes("NeedsAnOperatorAlarm", &[("NeedsAnOperator", &one_event)]),
        [10, 185],
        "it does not flap"
    );
}

#[test]
fn stalled_while_nobody_takes_due_messages() {
    let alarm = |visible: Runs<'_>, received: Runs<'_>| {
        changes("StalledAlarm", &[(VISIBLE, visible), ("NumberOfMessagesReceived", received)])
    };
    let off = [(Some(3.0), 10), (Some(0.0), 10), (None, 20), (Some(7.0), 5)];
    assert_eq!(alarm(&[(Some(0.0), 10), (Some(7.0), 30), (Some(0.0), 5)], &off), [25, 41]);
    let slow = [(Some(0.0), 14), (Some(1.0), 1)].repeat(3);
    assert_eq!(alarm(&[(Some(7.0), 45)], &slow), [0; 0], "one is received every 15 minutes");
    assert_eq!(alarm(&[(Some(0.0), 45)], &[(Some(0.0), 45)]), [0; 0], "everything is hidden");
}

#[test]
fn late_with_a_thousand_due_for_fifteen_minutes() {
    let alarm = |visible: Runs<'_>| changes("LateAlarm", &[(VISIBLE, visible)]);
    assert_eq!(alarm(&[(Some(1_000.0), 20), (Some(1_001.0), 20), (Some(900.0), 5)]), [35, 41]);
    assert_eq!(alarm(&[(Some(50_000.0), 14), (Some(0.0), 20)]), [0; 0], "a burst");
}

#[test]
fn crowded_with_hidden_messages() {
    let crowded = [(Some(104_999.0), 10), (Some(105_000.0), 10), (Some(90_000.0), 5)];
    assert_eq!(changes("CrowdedAlarm", &[(HIDDEN, &crowded)]), [15, 21]);
    let (_, most) = HIDE_UP_TO_RANGE.into_inner();
    assert!(2.0 * f64::from(u32::try_from(most).unwrap()) >= 105_000.0, "the highest HIDE_UP_TO reaches it");
    let default = template()["Parameters"]["HideUpTo"]["Default"].as_str().unwrap().parse::<u32>().unwrap();
    assert!(2 * default < 105_000, "and the default does not");
}

fn alarms() -> BTreeMap<&'static str, &'static Value> {
    let resources = template()["Resources"].as_object().expect("resources").iter();
    let alarms = resources.filter(|(_, resource)| resource["Type"] == "AWS::CloudWatch::Alarm");
    alarms.map(|(name, alarm)| (name.as_str(), alarm)).collect()
}

#[test]
fn each_alarm_watches_its_queue_or_function() {
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
        // These two alarms have no dimension, because their namespace contains the handler's name.
        ("LostPayloadAlarm", None),
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
fn alarms_on_the_log_count_the_lines_of_their_filters() {
    let reason = InvocationRecord::read(r#"{"requestContext": {"functionArn": "arn"}}"#).unwrap_err();
    let lost = format!(r#"{{ $.reason = "{}" }}"#, reason.code);
    assert_eq!(reason.code, ReasonCode::PayloadLost);
    for (name, pattern) in [("NeedsAnOperator", r#"{ $.level = "ERROR" }"#), ("LostPayload", &lost)] {
        let properties = |of: &str| &template()["Resources"][format!("{name}{of}")]["Properties"];
        let (filter, alarm) = (properties("Filter"), properties("Alarm"));
        assert_eq!(filter["FilterPattern"], pattern);
        assert_eq!(filter["LogGroupName"], json!({"Ref": "RetryHandlerLogs"}));
        let counted = &filter["MetricTransformations"][0];
        assert_eq!(
            (&counted["MetricNamespace"], &counted["MetricName"]),
            (&alarm["Namespace"], &alarm["MetricName"])
        );
        let namespace = json!({"Fn::Sub": "Comeback/${RetryHandler}"});
        assert_eq!(alarm["Namespace"], namespace, "`status` finds it by this");
    }
}

/// CloudWatch refuses evaluation over more than a week or, with periods shorter than an hour, over more than a day.
#[test]
fn no_alarm_looks_back_too_far() {
    for (name, alarm) in alarms() {
        let minutes =
            alarm["Properties"]["EvaluationPeriods"].as_u64().unwrap() * u64::try_from(period(name)).unwrap();
        let most = if period(name) >= HOUR { 7 * DAY } else { DAY };
        assert!(minutes <= u64::try_from(most).unwrap(), "{name}");
    }
}

#[test]
fn each_alarm_is_optional_notifies_the_topic_and_names_its_section() {
    let page = pages::read("docs/alarms.md");
    for (name, alarm) in alarms() {
        let condition = if name == "LostOnTheWayAlarm" { "WithExampleAlarm" } else { "WithAlarms" };
        assert_eq!(alarm["Condition"], condition, "{name}");
        let topic =
            json!({"Fn::If": ["WithAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]});
        let properties = &alarm["Properties"];
        assert_eq!([&properties["AlarmActions"], &properties["OKActions"]], [&topic, &topic], "{name}");
        let description = &properties["AlarmDescription"];
        let description = description.as_str().or(description["Fn::Sub"].as_str()).expect("text");
        // A stack's name may have up to 128 characters.
        let length = description.len() + 128 * description.matches("${").count();
        assert!(length <= 1_024, "{name}: {length}");
        let commands: Vec<_> = description.split("comeback ").skip(1).collect();
        assert!(!commands.is_empty(), "{name} names a command: {description}");
        for command in commands {
            let verbs = ["doctor", "status", "dead list", "waiting"];
            let flag = verbs.map(|verb| format!("{verb} --stack ${{AWS::StackName}}"));
            assert!(flag.iter().any(|flag| command.starts_with(flag)), "{name} names its stack: {command}");
        }
        if name == "LostOnTheWayAlarm" {
            assert!(
                description.contains("doctor --stack ${AWS::StackName} ${ExampleTarget}."),
                "{description}"
            );
        }
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

/// docs/alarms.md gives the correct price of the alarms. CloudWatch charges for each metric in an alarm.
#[test]
fn page_gives_the_price_of_the_alarms() {
    let metrics = |alarm: &Value| {
        let queries = alarm["Properties"]["Metrics"].as_array();
        queries.map_or(1, |all| all.iter().filter(|query| query.get("MetricStat").is_some()).count())
    };
    let (of_functions, of_stack): (Vec<_>, Vec<_>) =
        alarms().into_iter().partition(|(name, _)| *name == "LostOnTheWayAlarm");
    let cents =
        |alarms: Vec<(&str, &Value)>| 10 * alarms.iter().map(|(_, alarm)| metrics(alarm)).sum::<usize>();
    let page = pages::read("docs/alarms.md");
    assert_eq!(of_stack.len(), 9, "the page says nine");
    for (row, cents) in
        [("| the nine alarms ", cents(of_stack)), ("| *lost on the way*, ", cents(of_functions))]
    {
        let line = page.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("no row {row}"));
        assert!(line.ends_with(&format!("| {}.{:02} |", cents / 100, cents % 100)), "{line}");
    }
}
