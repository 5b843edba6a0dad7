//! What waits, in words and as JSON.

use std::io::{self, Write};
use std::ops::Range;

use crate::operate::deployment::queue::Depth;
use crate::operate::pauses::requests::RetryRequest;
use crate::operate::waiting::events::{Group, Sorted, WaitingEvent, Why};
use crate::operate::waiting::reading::Reading;
use crate::operate::waiting::returns::Returns;
use crate::operate::waiting::wanted::Wanted;
use crate::text::durations::short;
use crate::text::numbers::counted;
use crate::text::terminal::{align_right, shown, unwrapped_table};
use comeback_engine::{Timestamp, short_name};
use comfy_table::Table;
use indicatif::HumanCount;
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

/// What of a reading is reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) wanted: Wanted,
    /// Only events that are due by then.
    pub(crate) by: Option<Timestamp>,
    /// Which of the events are listed one by one, the first due first; `None`: none.
    pub(crate) events: Option<Range<usize>>,
}

/// What waits, as far as the log shows it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report<'r> {
    /// The log was read from here on.
    pub(crate) since: Timestamp,
    /// Lines about the events that the filter takes.
    pub(crate) lines: u64,
    /// Events that wait, and that the filter takes.
    pub(crate) found: u64,
    /// Nothing was filtered, so `found` can be compared with the queue.
    pub(crate) is_everything: bool,
    /// The log has a line of everything that waits.
    pub(crate) is_complete: bool,
    /// SQS's own counts: approximate, and a minute old.
    pub(crate) retry_queue: Depth,
    pub(crate) groups: Vec<Group<'r>>,
    /// When the events come back.
    pub(crate) returns: Returns<'r>,
    /// `None` without `--each`.
    pub(crate) events: Option<Sorted<'r>>,
    /// The requests to retry now that are in force; `None` if they are not known.
    pub(crate) retries: Option<Vec<RetryRequest>>,
    /// What is not known, and why.
    pub(crate) notes: Vec<String>,
}

impl Reading {
    pub(crate) fn report(&self, listing: &Listing, now: Timestamp) -> Report<'_> {
        let Listing { wanted, by, events } = listing;
        let chosen = self.waits.chosen(wanted, *by);
        let groups = self.waits.groups(&chosen);
        let is_everything =
            self.is_everything && wanted.takes_everything() && by.is_none() && self.is_all_read(now);
        let found = groups.iter().map(|group| group.count).sum();
        // Held events have no due time, and are counted even where only those due soon are shown.
        let all = by.map(|_| self.waits.groups(&self.waits.chosen(wanted, None)));
        let mut notes = self.notes(all.as_ref().unwrap_or(&groups), now);
        notes.extend(self.unlogged_note(now).filter(|_| by.is_none()));
        Report {
            since: self.since,
            lines: self.lines,
            found,
            is_everything,
            is_complete: self.is_complete(now),
            retry_queue: self.retry_queue,
            retries: self.requests(now),
            notes,
            returns: Returns::of(self.waits.each(&chosen), &groups, now),
            events: events.clone().map(|range| self.waits.first(&chosen, range)),
            groups,
        }
    }

    /// The requests to retry now that are in force; `None` if they are not known.
    fn requests(&self, now: Timestamp) -> Option<Vec<RetryRequest>> {
        let pauses = self.pauses.as_ref().ok().and_then(Option::as_ref);
        pauses.map(|pauses| RetryRequest::in_force(pauses, now))
    }
}

/// The handler logs a due time that a request has moved when it next checks the event.
const REQUEST_NOT_COUNTED: &str =
    "The due times above do not reflect a request until the handler has checked the event.";

pub(crate) fn write(report: &Report<'_>, now: Timestamp, out: &mut impl Write) -> io::Result<()> {
    let Report { since, found, groups, events, .. } = report;
    match found {
        0 => writeln!(out, "No waiting event (the handler's log was read back to {since})")?,
        _ => {
            let found = counted(*found, "waiting event", "waiting events");
            writeln!(out, "{found} (the handler's log was read back to {since})")?;
        }
    }
    if !groups.is_empty() {
        writeln!(out, "{}", groups_table(groups, now))?;
    }
    if let Some(events) = events.as_ref().filter(|events| events.len() > 0) {
        writeln!(out)?;
        write_events(events, now, out)?;
        let listed = events.len() as u64;
        if listed < *found {
            writeln!(out, "{} listed; --limit {found} lists all", HumanCount(listed))?;
        }
    }
    writeln!(out)?;
    let all = HumanCount(report.retry_queue.total());
    if report.is_everything {
        writeln!(out, "Found in the log: {} of about {all} in the retry queue.", HumanCount(*found))?;
    } else {
        writeln!(out, "In the retry queue, for all functions: about {all}.")?;
    }
    let retries = report.retries.iter().flatten().map(|request| format!("Retry now: {}.", request.line()));
    let has_request = *found > 0 && report.retries.as_ref().is_some_and(|requests| !requests.is_empty());
    let not_counted = has_request.then(|| REQUEST_NOT_COUNTED.to_owned());
    let mut notes = retries.chain(not_counted).chain(report.notes.iter().cloned());
    notes.try_for_each(|note| writeln!(out, "{}", shown(&note)))
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

const HEADER: [&str; 7] = ["key", "function", "retry", "error", "first failed", "due", "waits for"];

/// One line an event, however long: a key is to be copied whole. The events are read twice, for the widths and for the
/// lines, because a table of a hundred thousand would not fit in memory.
fn write_events(events: &Sorted<'_>, now: Timestamp, out: &mut impl Write) -> io::Result<()> {
    let rows = || events.iter().map(|event| row(&event, now));
    let mut widths = HEADER.map(str::len);
    for row in rows() {
        widths.iter_mut().zip(&row).for_each(|(width, cell)| *width = cell.width().max(*width));
    }
    for row in std::iter::once(HEADER.map(Into::into)).chain(rows()) {
        let cells = row.iter().zip(widths).map(|(cell, width)| {
            let padding = width - cell.width();
            format!("{cell}{:padding$}  ", "")
        });
        writeln!(out, "{}", cells.collect::<String>().trim_end())?;
    }
    Ok(())
}

fn row(event: &WaitingEvent<'_>, now: Timestamp) -> [String; 7] {
    let row: [&str; 7] = [
        event.key,
        function(event.target),
        &event.retry.to_string(),
        error(event.target, event.error_type),
        &age(Some(event.first_failure), now),
        &match event.paused_until {
            Some(until) => format!("paused until {until}"),
            None => due(event.due, event.why, now),
        },
        event.why.in_words(),
    ];
    row.map(|cell| shown(cell).into_owned())
}

fn function(target: Option<&str>) -> &str {
    target.map_or("others", short_name)
}

fn error<'e>(target: Option<&str>, error_type: Option<&'e str>) -> &'e str {
    error_type.unwrap_or(if target.is_some() { "unknown" } else { "others" })
}

pub(crate) fn age(moment: Option<Timestamp>, now: Timestamp) -> String {
    moment
        .map_or_else(|| "unknown".into(), |it| format!("{} ago", short(now.since(it).as_secs_f64().floor())))
}

pub(crate) fn due(due: Option<Timestamp>, why: Why, now: Timestamp) -> String {
    match due {
        Some(due) if due > now => {
            let soon = if matches!(why, Why::Resumed | Why::NotAllowed) { "within" } else { "in" };
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

    use clap::{Args as _, FromArgMatches as _};
    use comeback_engine::Pauses;
    use serde_json::{Value, json};

    use super::*;
    use crate::operate::log::tests::test_line;
    use crate::operate::pauses::in_force::InForce;
    use crate::operate::waiting::WaitingArguments;
    use crate::operate::waiting::events::Waits;
    use crate::operate::waiting::reading::LONGEST_HIDDEN;
    use crate::operate::waiting::reading::tests::{NOW, ORDERS, reading};
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    fn after(seconds: u64) -> Timestamp {
        NOW.saturating_add(Duration::from_secs(seconds))
    }

    /// Events, by their keys, their errors and what else their lines say.
    fn waits(events: &[(&str, &str, Value)]) -> Waits {
        let mut waits = Waits::default();
        for (key, error_type, more) in events {
            let mut line = json!({
                "timestamp": NOW, "key": key, "target": ORDERS, "retry": 7, "error_type": error_type,
                "first_failure": NOW.before(Duration::from_secs(4_000)),
            });
            line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            waits.take(&test_line(line));
        }
        waits
    }

    fn holds() -> Value {
        json!({"action": "hold", "due": NOW, "delay": 1_344})
    }

    fn report(waits: &Waits) -> Report<'_> {
        let retry_queue = Depth { visible: 2, in_flight: 1_200, delayed: 4 };
        let groups = waits.all_groups();
        let notes = reading(retry_queue).notes(&groups, NOW);
        let events = waits.first(&waits.chosen(&Wanted::default(), None), 0..usize::MAX);
        Report {
            since: NOW.before(LONGEST_HIDDEN),
            lines: 9,
            found: events.len() as u64,
            is_everything: true,
            is_complete: false,
            retry_queue,
            returns: Returns::of(waits.all(), &groups, NOW),
            groups,
            events: Some(events),
            retries: Some(Vec::new()),
            notes,
        }
    }

    fn text(report: &Report<'_>) -> String {
        let mut text = Vec::new();
        write(report, NOW, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_table_counts_and_a_line_is_one_event() {
        let unanswered = json!({
            "action": "keep", "cause": "unanswered", "problem": "no answer",
            "not_before": NOW.before(Duration::from_secs(3)),
        });
        let asked = json!({"action": "defer", "due_by": "retry_after", "due": after(65), "delay": 65});
        let waits = waits(&[
            ("5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11", "TargetDown", asked),
            ("k-2", "TargetDown", unanswered),
            ("größe-注文", "Timeout", holds()),
        ]);
        let expected = "\
3 waiting events (the handler's log was read back to 2026-09-14T03:12:50.000Z)
┌────────┬──────────┬────────────┬──────────────┬──────────┬──────────┐
│ events ┆ function ┆ error      ┆ first failed ┆ next due ┆ last due │
╞════════╪══════════╪════════════╪══════════════╪══════════╪══════════╡
│      2 ┆ orders   ┆ TargetDown ┆ 1h 7m ago    ┆ 3s ago   ┆ in 1m 5s │
│      1 ┆ orders   ┆ Timeout    ┆ 1h 7m ago    ┆ paused   ┆ paused   │
└────────┴──────────┴────────────┴──────────────┴──────────┴──────────┘

key                                   function  retry  error       first failed  due       waits for
k-2                                   orders    7      TargetDown  1h 7m ago     3s ago    unanswered call
5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11  orders    7      TargetDown  1h 7m ago     in 1m 5s  RetryAfter
größe-注文                            orders    7      Timeout     1h 7m ago     paused    pause

Found in the log: 3 of about 1,206 in the retry queue.
Due but not yet received by the handler: about 2. `comeback status --stack shop` says whether it runs.
1 event is held by a pause until it ends: `comeback pause --list --stack shop`.
";
        let text = text(&report(&waits));
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), expected);
    }

    #[test]
    fn the_page_shows_what_is_printed() {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate.md")).unwrap();
        let (_, shown) = page.split_once("$ comeback waiting ").unwrap();
        let (flags, shown) = shown.split_once('\n').unwrap();
        let (shown, _) = shown.split_once("```").unwrap();
        let command = WaitingArguments::augment_args(clap::Command::new("waiting").no_binary_name(true));
        let arguments = command.get_matches_from(flags.split(' '));
        let arguments = WaitingArguments::from_arg_matches(&arguments).unwrap();
        let now = Timestamp::from_rfc3339("2026-11-23T19:00:00Z").unwrap();
        let mut waits = Waits::default();
        let mut wait = |key: &str, function: &str, retry: u64, error: &str, failed: u64, due: u64| {
            let line = json!({
                "timestamp": now, "key": key, "target": ORDERS.replace("orders", function), "retry": retry,
                "error_type": error, "first_failure": now.before(Duration::from_secs(60 * failed)), "action": "defer",
                "due": now.saturating_add(Duration::from_secs(due)), "due_by": "policy", "delay": due,
            });
            waits.take(&test_line(line));
        };
        wait("155e5584-c6b0-4854-95ed-b368c65838d0", "orders", 9, "TargetDown", 187, 12);
        wait("8f0e21c4-0b5d-4c7e-9f65-2d4f6b0d7c11", "orders", 8, "TargetDown", 179, 17);
        (3..=1_180).for_each(|n| wait(&format!("k-{n}"), "orders", 8, "TargetDown", 60, 10_260));
        wait("k-1181", "billing", 3, "Throttled", 41, 182);
        (1_182..=1_187).for_each(|n| wait(&format!("k-{n}"), "billing", 3, "Throttled", 41, 848));
        let queue = Depth { in_flight: 1_204, ..Depth::default() };
        let reading = Reading { since: now.before(LONGEST_HIDDEN), waits, ..reading(queue) };
        let mut text = Vec::new();
        write(&reading.report(&arguments.listing(now), now), now, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), shown);
    }

    #[test]
    fn a_retry_request_has_a_line() {
        let waits = Waits::default();
        let mut report = report(&waits);
        let request = r#"{"target":"*","at":1789400000,"within":300,"by":"anna"}"#;
        let pauses = Pauses::read(&format!(r#"{{"v":1,"pauses":[],"retries":[{request}]}}"#)).unwrap();
        report.retries = Some(RetryRequest::in_force(&pauses, NOW));
        let line = "\nRetry now: every function, requested at 2026-09-14T15:33:20.000Z by anna, ends at \
                    2026-09-15T16:33:20.000Z.\n";
        assert!(text(&report).contains(line), "{}", text(&report));
        assert!(!text(&report).contains(REQUEST_NOT_COUNTED), "no times are shown");
        report.found = 1;
        let shown = text(&report);
        assert!(shown.contains(&format!("{line}{REQUEST_NOT_COUNTED}\n")), "{shown}");
        report.retries = Some(Vec::new());
        assert!(!text(&report).contains(REQUEST_NOT_COUNTED), "no request is in force");
    }

    #[test]
    fn a_name_is_never_broken() {
        let long = "com.acme.orders.".repeat(8);
        let waits = waits(&[("k-1", &long, holds())]);
        let table = groups_table(&report(&waits).groups, NOW).to_string();
        assert!(table.contains(&long), "{table}");
    }

    #[test]
    fn a_pause_in_force_says_until_when() {
        for (in_force, expected) in [
            (InForce::Paused { until: Some(after(3_600)) }, "paused until 2026-09-14T16:33:20.000Z  pause"),
            (InForce::NotPaused { back_by: Some(after(1_300)) }, "within 21m 40s  resumed"),
        ] {
            let mut waits = waits(&[("k-1", "Down", holds())]);
            waits.heed(|_| in_force);
            let mut lines = Vec::new();
            write_events(&waits.first(&waits.chosen(&Wanted::default(), None), 0..1), NOW, &mut lines)
                .unwrap();
            let lines = String::from_utf8(lines).unwrap();
            assert_eq!(lines.trim_end().rsplit_once(" ago     ").unwrap().1, expected);
        }
    }

    #[test]
    fn an_event_cannot_command_the_terminal() {
        let waits = waits(&[(HOSTILE, HOSTILE, holds())]);
        let text = text(&report(&waits));
        assert!(text.contains("\\u{1b}]") && !is_obeyed_anywhere(&text), "{text}");
    }
}
