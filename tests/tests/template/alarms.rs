//! Each alarm is raised by the situation it is for, and not by what resembles it; and it ends with it.

use std::collections::BTreeSet;

use comeback_engine::HIDE_UP_TO_RANGE;
use comeback_tests::template;

use crate::evaluation::{Recorded, is_raised, period};
use crate::expression::Series;

/// What a metric is for so many minutes, one after the other; `None` where CloudWatch has no data point.
type Runs<'a> = &'a [(Option<f64>, usize)];

const VISIBLE: &str = "ApproximateNumberOfMessagesVisible";
const HIDDEN: &str = "ApproximateNumberOfMessagesNotVisible";
const HOUR: usize = 60;
const DAY: usize = 24 * HOUR;

fn minutes(runs: Runs<'_>) -> Series {
    runs.iter().flat_map(|(value, minutes)| vec![*value; *minutes]).collect()
}

/// The first minutes after which the alarm's state is another, from when it is not raised.
fn changes(alarm: &str, recorded: &[(&'static str, Runs<'_>)]) -> Vec<usize> {
    let recorded: Recorded = recorded.iter().map(|(name, runs)| (*name, minutes(runs))).collect();
    let lengths: BTreeSet<_> = recorded.values().map(Vec::len).collect();
    assert_eq!(lengths.len(), 1, "the metrics are recorded for as long");
    let raised = is_raised(alarm, &recorded);
    let before = [false].iter().chain(&raised);
    let at = raised.iter().zip(before).enumerate().filter(|(_, (now, before))| now != before);
    at.map(|(index, _)| (index + 1) * period(alarm)).collect()
}

fn held(alarm: &str, visible: Runs<'_>, hidden: Runs<'_>) -> Vec<usize> {
    changes(alarm, &[(VISIBLE, visible), (HIDDEN, hidden)])
}

#[test]
fn dead_letters_for_five_minutes_also_while_somebody_reads_them() {
    let visible = [(Some(0.0), 10), (Some(2.0), 10), (Some(0.0), 10), (Some(2.0), 5), (Some(0.0), 10)];
    let hidden = [(Some(0.0), 20), (Some(2.0), 10), (Some(0.0), 15)];
    assert_eq!(held("DeadLettersAlarm", &visible, &hidden), [15, 36], "raised once, until they are gone");
    let redriven_at_once = [(None, 10), (Some(1.0), 4), (Some(0.0), 10), (None, 10)];
    let hidden = [(None, 10), (Some(0.0), 14), (None, 10)];
    assert_eq!(held("DeadLettersAlarm", &redriven_at_once, &hidden), [0; 0]);
}

#[test]
fn dead_letters_that_nobody_has_taken_for_seven_days_expire() {
    // On the fifth day somebody reads it for two hours, and does nothing.
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
fn an_event_that_lambda_drops_raises_its_alarm_at_once() {
    let lost = [(None, 10), (Some(1.0), 1), (None, 14)];
    assert_eq!(changes("LostOnTheWayAlarm", &[("DestinationDeliveryFailures", &lost)]), [15, 20]);
}

#[test]
fn the_handlers_errors_in_two_of_five_minutes() {
    let alarm = |errors: Runs<'_>| changes("HandlerErrorsAlarm", &[("Errors", errors)]);
    assert_eq!(alarm(&[(Some(0.0), 5), (Some(1.0), 1), (Some(0.0), 9)]), [0; 0], "its batch comes again");
    assert_eq!(alarm(&[(None, 5), (Some(3.0), 1), (Some(0.0), 3), (Some(1.0), 1), (Some(0.0), 5)]), [10, 11]);
}

#[test]
fn throttled_without_a_single_invocation() {
    let alarm = |throttles: Runs<'_>, invocations: Runs<'_>| {
        changes("ThrottledAlarm", &[("Throttles", throttles), ("Invocations", invocations)])
    };
    let no_concurrency = [(None, 20), (Some(4.0), 1), (None, 24)];
    assert_eq!(alarm(&no_concurrency, &[(Some(9.0), 15), (None, 30)]), [30, 45]);
    assert_eq!(alarm(&[(Some(40.0), 45)], &[(Some(9.0), 45)]), [0; 0], "throttled pollers come again");
    assert_eq!(alarm(&[(None, 45)], &[(None, 45)]), [0; 0], "it is idle");
}

#[test]
fn an_error_in_the_log() {
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
fn stalled_while_messages_are_due_and_nobody_takes_any() {
    let alarm = |visible: Runs<'_>, received: Runs<'_>| {
        changes("StalledAlarm", &[(VISIBLE, visible), ("NumberOfMessagesReceived", received)])
    };
    let off = [(Some(3.0), 10), (Some(0.0), 10), (None, 20), (Some(7.0), 5)];
    assert_eq!(alarm(&[(Some(0.0), 10), (Some(7.0), 30), (Some(0.0), 5)], &off), [25, 41]);
    let slow = [(Some(0.0), 14), (Some(1.0), 1)].repeat(3);
    assert_eq!(alarm(&[(Some(7.0), 45)], &slow), [0; 0], "one is received every quarter of an hour");
    assert_eq!(alarm(&[(Some(0.0), 45)], &[(Some(0.0), 45)]), [0; 0], "what waits is hidden");
}

#[test]
fn late_with_a_thousand_due_for_fifteen_minutes() {
    let alarm = |visible: Runs<'_>| changes("LateAlarm", &[(VISIBLE, visible)]);
    assert_eq!(alarm(&[(Some(1_000.0), 20), (Some(1_001.0), 20), (Some(900.0), 5)]), [35, 41]);
    assert_eq!(alarm(&[(Some(50_000.0), 14), (Some(0.0), 20)]), [0; 0], "a burst");
}

#[test]
fn crowded_over_the_budget_of_hidden_messages() {
    let crowded = [(Some(104_999.0), 10), (Some(105_000.0), 10), (Some(90_000.0), 5)];
    assert_eq!(changes("CrowdedAlarm", &[(HIDDEN, &crowded)]), [15, 21]);
    let (_, most) = HIDE_UP_TO_RANGE.into_inner();
    assert!(2.0 * f64::from(u32::try_from(most).unwrap()) >= 105_000.0, "the highest HIDE_UP_TO reaches it");
    let default = template()["Parameters"]["HideUpTo"]["Default"].as_str().unwrap().parse::<u32>().unwrap();
    assert!(2 * default < 105_000, "and the default does not");
}
