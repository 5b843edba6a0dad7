//! What waits, in words and as JSON.

use comeback_engine::Timestamp;
use comfy_table::{ContentArrangement, Table, presets};
use indicatif::HumanCount;
use serde::Serialize;

use crate::operate::deployment::Depth;
use crate::operate::function::short_name;
use crate::operate::pauses::orders::RetryOrder;
use crate::operate::waiting::events::{Group, WaitingEvent, Why};
use crate::text::durations::short;
use crate::text::numbers::counted;
use crate::text::terminal::{align_right, shown, unwrapped_table};

/// What waits, as far as the log shows it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report<'r> {
    /// The log was read from here on.
    pub(super) since: Timestamp,
    /// Lines about the events that the filter takes.
    pub(super) lines: u64,
    /// Events that wait, and that the filter takes.
    pub(super) found: u64,
    /// Nothing was filtered, so `found` can be compared with the queue.
    pub(super) is_everything: bool,
    /// SQS's own counts: approximate, and a minute old.
    pub(super) retry_queue: Depth,
    pub(super) groups: Vec<Group<'r>>,
    /// `None` without `--each`.
    pub(super) events: Option<Vec<WaitingEvent<'r>>>,
    /// The orders to retry now that are in force; `None` if they are not known.
    pub(super) retries: Option<Vec<RetryOrder>>,
    /// What is not known, and why.
    pub(super) notes: Vec<String>,
}

pub(super) fn text(report: &Report<'_>, now: Timestamp) -> String {
    let Report { since, found, groups, events, .. } = report;
    let mut text = match found {
        0 => format!("No waiting event was found in the handler's log since {since}\n"),
        _ => format!(
            "{} found in the handler's log since {since}\n",
            counted(*found, "waiting event", "waiting events")
        ),
    };
    if !groups.is_empty() {
        text += &format!("{}\n", groups_table(groups, now));
    }
    if let Some(events) = events.as_deref().filter(|events| !events.is_empty()) {
        text += &format!("\n{}\n", lines_of(events, now));
        let listed = events.len() as u64;
        if listed < *found {
            text += &format!("{} listed; --limit {found} lists all\n", HumanCount(listed));
        }
    }
    text += "\n";
    let all = HumanCount(report.retry_queue.total());
    text += &if report.is_everything {
        format!("Found in the log: {} of about {all} in the retry queue.\n", HumanCount(*found))
    } else {
        format!("In the retry queue, of all functions: about {all}.\n")
    };
    let retries = report.retries.iter().flatten().map(|order| format!("Retry now: {}.", order.line()));
    let notes = retries.chain(report.notes.iter().cloned());
    notes.fold(text, |text, note| text + &shown(&note) + "\n")
}

fn groups_table(groups: &[Group<'_>], now: Timestamp) -> Table {
    let mut table = unwrapped_table();
    table.set_header(["events", "function", "error", "first failed", "next due", "last due"]);
    for group in groups {
        let last_due = if group.held > 0 { None } else { group.last_due };
        let otherwise = if group.held > 0 { Why::Pause } else { Why::FailedCall };
        let row: [&str; 6] = [
            &HumanCount(group.count).to_string(),
            function(group.target),
            error(group.target, group.error_type),
            &age(group.oldest_first_failure, now),
            &due(group.next_due, otherwise, now),
            &due(last_due, otherwise, now),
        ];
        table.add_row(row.map(shown));
    }
    align_right(&mut table, [0]);
    table
}

/// One line an event, however long: a key is to be copied whole.
fn lines_of(events: &[WaitingEvent<'_>], now: Timestamp) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["key", "function", "retry", "error", "first failed", "due", "waits for"]);
    for event in events {
        let row: [&str; 7] = [
            event.key,
            function(event.target),
            &event.retry.to_string(),
            error(event.target, event.error_type),
            &age(event.first_failure, now),
            &match event.paused_until {
                Some(until) => format!("paused until {until}"),
                None => due(event.due, event.why, now),
            },
            event.why.in_words(),
        ];
        table.add_row(row.map(shown));
    }
    table.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>().join("\n")
}

fn function(target: Option<&str>) -> &str {
    target.map_or("others", short_name)
}

fn error<'e>(target: Option<&str>, error_type: Option<&'e str>) -> &'e str {
    error_type.unwrap_or(if target.is_some() { "unknown" } else { "others" })
}

fn age(moment: Option<Timestamp>, now: Timestamp) -> String {
    moment
        .map_or_else(|| "unknown".into(), |it| format!("{} ago", short(now.since(it).as_secs_f64().floor())))
}

fn due(due: Option<Timestamp>, why: Why, now: Timestamp) -> String {
    match due {
        Some(due) if due > now => {
            let soon = if why == Why::Resumed { "within" } else { "in" };
            format!("{soon} {}", short(due.since(now).as_secs_f64().ceil()))
        }
        Some(due) => format!("{} ago", short(now.since(due).as_secs_f64().floor())),
        None if why == Why::Pause => "paused".into(),
        None => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comeback_engine::Pauses;

    use super::*;
    use crate::operate::waiting::tests::{NOW, ORDERS, reading};
    use crate::operate::waiting::{LONGEST_HIDDEN, before};
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    fn after(seconds: u64) -> Option<Timestamp> {
        Some(NOW.saturating_add(Duration::from_secs(seconds)))
    }

    fn event(
        key: &'static str,
        error_type: &'static str,
        due: Option<Timestamp>,
        why: Why,
    ) -> WaitingEvent<'static> {
        let first_failure = Some(before(NOW, Duration::from_secs(4_000)));
        WaitingEvent {
            key,
            target: Some(ORDERS),
            retry: 7,
            error_type: Some(error_type),
            first_failure,
            due,
            why,
            paused_until: None,
            next_look: NOW,
        }
    }

    fn report(events: Vec<WaitingEvent<'_>>) -> Report<'_> {
        let retry_queue = Depth { visible: 2, in_flight: 1_200, delayed: 4 };
        let groups = Group::all(events.iter().cloned());
        let notes = reading(retry_queue).notes(&groups, NOW);
        let found = events.len() as u64;
        let since = before(NOW, LONGEST_HIDDEN);
        let is_everything = true;
        let (events, retries) = (Some(events), Some(Vec::new()));
        Report { since, lines: 9, found, is_everything, retry_queue, groups, events, retries, notes }
    }

    #[test]
    fn a_table_counts_and_a_line_is_one_event() {
        let events = vec![
            event("5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11", "TargetDown", after(65), Why::RetryAfter),
            event("k-2", "TargetDown", Some(before(NOW, Duration::from_secs(3))), Why::UnansweredCall),
            event("k-3", "Timeout", None, Why::Pause),
        ];
        let expected = "\
3 waiting events found in the handler's log since 2026-09-14T03:12:50.000Z
┌────────┬──────────┬────────────┬──────────────┬──────────┬──────────┐
│ events ┆ function ┆ error      ┆ first failed ┆ next due ┆ last due │
╞════════╪══════════╪════════════╪══════════════╪══════════╪══════════╡
│      2 ┆ orders   ┆ TargetDown ┆ 1h 7m ago    ┆ 3s ago   ┆ in 1m 5s │
│      1 ┆ orders   ┆ Timeout    ┆ 1h 7m ago    ┆ paused   ┆ paused   │
└────────┴──────────┴────────────┴──────────────┴──────────┴──────────┘

key                                   function  retry  error       first failed  due       waits for
5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11  orders    7      TargetDown  1h 7m ago     in 1m 5s  RetryAfter
k-2                                   orders    7      TargetDown  1h 7m ago     3s ago    unanswered call
k-3                                   orders    7      Timeout     1h 7m ago     paused    pause

Found in the log: 3 of about 1,206 in the retry queue.
Due, and not yet received by the handler: about 2. `comeback status --stack shop` says whether it runs.
1 event is held by a pause, and due when it ends: `comeback pause --list --stack shop`.
";
        let text = text(&report(events), NOW);
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), expected);
    }

    #[test]
    fn an_order_to_retry_has_a_line() {
        let mut report = report(Vec::new());
        let order = r#"{"target":"*","at":1789400000,"within":300,"by":"anna"}"#;
        let pauses = Pauses::read(&format!(r#"{{"v":1,"pauses":[],"retries":[{order}]}}"#)).unwrap();
        report.retries = Some(RetryOrder::in_force(&pauses, NOW));
        let line = "\nRetry now: every function, ordered at 2026-09-14T15:33:20.000Z by anna, ends at \
                    2026-09-15T03:33:20.000Z.\n";
        assert!(text(&report, NOW).contains(line), "{}", text(&report, NOW));
    }

    #[test]
    fn a_name_is_never_broken() {
        let long = "com.acme.orders.".repeat(8).leak();
        let table =
            groups_table(&report(vec![event("k-1", long, None, Why::Backoff)]).groups, NOW).to_string();
        assert!(table.contains(&*long), "{table}");
    }

    #[test]
    fn a_pause_in_force_says_until_when() {
        let paused = WaitingEvent { paused_until: after(3_600), ..event("k-1", "Down", None, Why::Pause) };
        let lines = lines_of(&[paused, event("k-2", "Down", after(1_300), Why::Resumed)], NOW);
        let ends: Vec<&str> =
            lines.lines().skip(1).map(|line| line.split_once(" ago ").unwrap().1.trim()).collect();
        assert_eq!(
            ends,
            [
                "paused until 2026-09-14T16:33:20.000Z  pause",
                "within 21m 40s                         resumed"
            ]
        );
    }

    #[test]
    fn an_event_cannot_command_the_terminal() {
        let report = report(vec![event(HOSTILE, HOSTILE, None, Why::Backoff)]);
        let text = text(&report, NOW);
        assert!(text.contains("\\u{1b}]") && !is_obeyed_anywhere(&text), "{text}");
    }
}
