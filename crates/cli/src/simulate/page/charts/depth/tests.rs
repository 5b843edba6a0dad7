use comeback_timelapse::{Schedule, TARGET_ARN, run};

use super::*;
use crate::flags::PolicyFlags;

/// A run of ten events, the queue of which had so many messages delayed in its second minute.
fn side(name: &str, delayed: u32) -> (Scenario, Side) {
    let scenario = Scenario { events: 10, ..Scenario::default() };
    let flags = PolicyFlags::default();
    let policy = flags.policy(TARGET_ARN).expect("a valid policy");
    let mut summary = run(&scenario, &policy, &mut ()).expect("a valid scenario");
    summary.minutes[1].delayed = delayed;
    summary.peak_delayed = delayed as usize;
    let schedule = Schedule::of(&policy, 1, 10, &|| {});
    (scenario, Side { name: name.into(), colour: BLUE, flags, policy, summary, schedule })
}

fn labels(chart: &Chart) -> Vec<&str> {
    chart.keys.iter().map(|key| key.label.as_str()).collect()
}

fn stroke(colour: RGBColor) -> String {
    let RGBColor(red, green, blue) = colour;
    format!("stroke=\"#{red:02X}{green:02X}{blue:02X}\"")
}

#[test]
fn what_is_delayed_has_a_line_and_figures() {
    let (scenario, side) = side("", 3_000_000);
    assert!(
        story(&side)
            .ends_with(" messages were in flight. At most 3,000,000 were delayed, which have no limit.")
    );
    let chart = chart(&scenario, &[side]);
    assert_eq!(labels(&chart), ["in flight", "delayed", "visible", "the limit of those in flight"]);
    for colour in [BLUE, GREEN, ORANGE, PURPLE] {
        assert!(chart.svg.inner.contains(&stroke(colour)), "{colour:?}");
    }
    assert!(chart.svg.inner.contains("1,000,000"), "the axis is long enough");
    let table = chart.table.expect("a table");
    assert_eq!(table.head, ["from", "in flight", "delayed", "visible"]);
    assert_eq!(table.rows[0][2], "3,000,000");
}

#[test]
fn nothing_is_said_of_delays_where_there_are_none() {
    let (scenario, side) = side("", 0);
    assert!(!story(&side).contains("delayed"));
    let chart = chart(&scenario, &[side]);
    assert_eq!(labels(&chart), ["in flight", "visible", "the limit of those in flight"]);
    assert!(!chart.svg.inner.contains(&stroke(GREEN)));
    assert_eq!(chart.table.expect("a table").head, ["from", "in flight", "visible"]);
}

#[test]
fn compared_runs_have_their_own_colours_and_the_same_lines() {
    let ((scenario, one), (_, other)) = (side("one", 0), side("other", 7));
    let chart = chart(&scenario, &[one, Side { colour: ORANGE, ..other }]);
    let keys: Vec<_> = chart.keys.iter().map(|key| (key.label.as_str(), key.colour, key.symbol)).collect();
    let expected = [
        ("one, in flight", BLUE, "━━"),
        ("one, delayed", BLUE, "╍╍"),
        ("one, visible", BLUE, "──"),
        ("other, in flight", ORANGE, "━━"),
        ("other, delayed", ORANGE, "╍╍"),
        ("other, visible", ORANGE, "──"),
        ("the limit of those in flight", PURPLE, "━━"),
    ];
    assert_eq!(keys, expected);
}
