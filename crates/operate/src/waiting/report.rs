//! The report that `comeback waiting` prints.

use std::ops::Range;

use comeback_engine::Timestamp;
use serde::Serialize;

use crate::change::Answer;
use crate::deployment::Deployment;
use crate::deployment::queue::Depth;
use crate::durations;
use crate::failure::Failure;
use crate::function::shown_name;
use crate::layout::{Block, Layout, Table};
use crate::numbers::{counted, grouped};
use crate::pauses::requests::RequestInForce;
use crate::text;
use crate::text::{Piece, Text};
use crate::waiting::events::{DueRange, Selected, WaitingEvent, WaitingGroup, Why};
use crate::waiting::filter::WaitingFilter;
use crate::waiting::reading::Reading;
use crate::waiting::returns::Returns;

/// Selects the waiting events to report.
#[derive(Clone, Debug, Default)]
pub struct ReportQuery {
    /// Only events that match this filter are reported.
    pub wanted: WaitingFilter,
    /// Only events that are due in this range are reported.
    pub due: DueRange,
    /// The range of events to list, in order of due time, or `None` to only count events.
    pub events: Option<Range<usize>>,
}

/// A report on the waiting events in the handler's log.
#[derive(Clone, Debug, Serialize)]
pub struct WaitingReport<'r> {
    /// The time from which the handler's log was read.
    pub since: Timestamp,
    /// The number of log lines about events that match the filter.
    pub lines: u64,
    /// The number of waiting events that match the filter.
    pub found: u64,
    /// True if no filter was used, so `found` can be compared with `retry_queue`.
    pub is_everything: bool,
    /// True if no waiting event seems to be missing; see [`Reading::is_complete`].
    pub is_complete: bool,
    /// The message counts of the retry queue, approximate and up to a minute old.
    pub retry_queue: Depth,
    /// The waiting events, grouped by function and error.
    pub groups: Vec<WaitingGroup<'r>>,
    /// The numbers of waiting events by function and due time.
    pub returns: Returns<'r>,
    /// The listed events, in order of due time, or `None` if no list was requested.
    pub events: Option<Selected<'r>>,
    /// The retry and cancel requests in force, or `None` if they are unknown.
    pub requests: Option<Vec<RequestInForce>>,
    /// Notes on gaps in the log, and on reasons why events are not retried.
    pub notes: Vec<Text>,
    /// If the filter's error glob matches none of the waiting events, a note on their errors; otherwise `None`.
    #[serde(skip)]
    pub unmatched: Option<Text>,
    /// The command's result: an error if the filter names functions that the handler does not retry and that no log
    /// line mentions.
    #[serde(skip)]
    pub end: Result<(), Failure>,
    /// True if `found` counts only the events that match a filter.
    #[serde(skip)]
    is_filtered: bool,
    #[serde(skip)]
    deployment: &'r Deployment,
    #[serde(skip)]
    now: Timestamp,
}

impl Reading {
    /// Reports the waiting events that `listing` selects.
    pub fn report(&self, listing: &ReportQuery, now: Timestamp) -> WaitingReport<'_> {
        let ReportQuery { wanted, due, events } = listing;
        let selected = self.waits.selected(wanted, *due);
        let groups = selected.groups();
        let is_filtered = !self.is_everything || !wanted.takes_everything() || !due.is_everything();
        let is_everything = !is_filtered && self.is_all_read(now);
        // The notes count all held events. With a range of due times, `groups` lacks held events, because they have no
        // due time.
        let all = (!due.is_everything()).then(|| self.waits.selected(wanted, DueRange::default()).groups());
        let mut notes = self.notes(all.as_ref().unwrap_or(&groups), now);
        notes.extend(self.unlogged_note(now).filter(|_| due.is_everything()));
        let pauses = self.pauses.as_ref().ok().and_then(Option::as_ref);
        WaitingReport {
            since: self.since,
            lines: self.lines,
            found: groups.iter().map(|group| group.count).sum(),
            is_everything,
            is_complete: self.is_complete(now),
            retry_queue: self.retry_queue,
            returns: Returns::of(selected.iter(), &groups, now),
            groups,
            events: events.clone().map(|range| selected.in_order(range)),
            requests: pauses.map(|pauses| RequestInForce::all_of(pauses, now)),
            notes,
            unmatched: None,
            end: Ok(()),
            is_filtered,
            deployment: &self.deployment,
            now,
        }
    }
}

/// A note to show while a request is in force.
const REQUEST_NOT_COUNTED: &str =
    "Due times do not reflect a request until the handler has checked the event.";

impl Answer for WaitingReport<'_> {
    fn layout(&self) -> Layout {
        let Self { found, groups, events, .. } = self;
        let mut layout = Layout::default();
        layout.line(self.heading());
        if !groups.is_empty() {
            layout.table(self.groups_table());
        }
        if let Some(events) = events.as_ref().filter(|events| !events.is_empty()) {
            layout.line("");
            layout.0.push(Block::Rows(EVENT_HEADS.into()));
            let listed = events.len() as u64;
            if listed < *found {
                layout.line(format!("{} listed; --limit {found} lists all", grouped(listed)));
            }
        }
        layout.line("");
        layout.line(self.in_queue());
        self.remarks().into_iter().for_each(|remark| layout.line(remark));
        self.unmatched.iter().for_each(|errors| layout.note(errors));
        layout
    }

    fn rows(&self) -> Box<dyn Iterator<Item = Vec<Text>> + '_> {
        Box::new(self.events.iter().flat_map(Selected::iter).map(|event| self.row(&event)))
    }

    fn end(&self) -> Result<(), Failure> {
        self.end.clone()
    }
}

/// The column headings of the list of events.
pub const EVENT_HEADS: [&str; 7] = ["key", "function", "retry", "error", "first failed", "due", "waits for"];

impl WaitingReport<'_> {
    /// The number of events found, and the time from which the log was read.
    pub fn heading(&self) -> Text {
        let count = match self.found {
            0 if self.is_filtered => "No waiting event matches the filter".to_owned(),
            0 => "No waiting event".to_owned(),
            found => counted(found, "waiting event", "waiting events"),
        };
        text![format!("{count} (the handler's log was read back to "), self.since, ")"]
    }

    /// The number of messages in the retry queue, compared with the number of events found if no filter was used.
    pub fn in_queue(&self) -> Text {
        let all = grouped(self.retry_queue.total());
        match self.is_everything {
            true => format!("Found in the log: {} of about {all} in the retry queue.", grouped(self.found)),
            false => format!("In the retry queue, for all functions: about {all}."),
        }
        .into()
    }

    /// The requests in force, and the [notes](Self::notes).
    pub fn remarks(&self) -> Vec<Text> {
        let requests = self.requests.iter().flatten();
        let requests =
            requests.map(|request| text![format!("In force: {} ", request.title()), request.line(), "."]);
        let mut remarks: Vec<Text> = requests.collect();
        if self.found > 0 && !remarks.is_empty() {
            remarks.push(REQUEST_NOT_COUNTED.into());
        }
        remarks.extend(self.notes.iter().cloned());
        remarks
    }

    /// A table of the groups, with a row for each function and error.
    pub fn groups_table(&self) -> Table {
        let heads = ["events", "function", "error", "first failed", "next due", "last due", "waits for"];
        let mut table = Table::new(heads);
        table.columns[0].is_number = true;
        for group in &self.groups {
            let last_due = if group.held > 0 { None } else { group.last_due };
            let otherwise = if group.held > 0 { Why::Pause } else { Why::FailedCall };
            let why = group.why.iter().map(|(why, count)| format!("{} {}", grouped(*count), why.in_words()));
            table.row([
                grouped(group.count).into(),
                self.function(group.target),
                shown_error(group.target, group.error_type).into(),
                moment(age(group.oldest_first_failure, self.now), group.oldest_first_failure),
                moment(due(group.next_due, otherwise, self.now), group.next_due),
                moment(due(last_due, otherwise, self.now), last_due),
                why.collect::<Vec<_>>().join(", ").into(),
            ]);
        }
        table
    }

    fn row(&self, event: &WaitingEvent<'_>) -> Vec<Text> {
        vec![
            Piece::Event(event.key.to_owned()).into(),
            self.function(event.target),
            event.retry.to_string().into(),
            shown_error(event.target, event.error_type).into(),
            moment(age(Some(event.first_failure), self.now), Some(event.first_failure)),
            match event.paused_until {
                Some(until) => text!["paused until ", until],
                None => moment(due(event.due, event.why, self.now), event.due),
            },
            event.why.in_words().into(),
        ]
    }

    fn function(&self, target: Option<&str>) -> Text {
        let shown = shown_target(target);
        target.map_or_else(|| shown.into(), |target| self.deployment.function(target, shown))
    }
}

pub(super) fn moment(shown: String, at: Option<Timestamp>) -> Text {
    match at {
        Some(at) => Piece::Moment { shown, at }.into(),
        None => shown.into(),
    }
}

/// A function's name for display, or `others` for several functions.
pub fn shown_target(target: Option<&str>) -> &str {
    target.map_or("others", shown_name)
}

/// An error type for display. It may be unknown, or stand for the errors of several functions.
pub fn shown_error<'e>(target: Option<&str>, error_type: Option<&'e str>) -> &'e str {
    error_type.unwrap_or(if target.is_some() { "unknown" } else { "others" })
}

/// Formats the time since `moment` for a table: `5m ago`.
pub(super) fn age(moment: Option<Timestamp>, now: Timestamp) -> String {
    moment.map_or_else(|| "unknown".into(), |at| format!("{} ago", durations::since(at, now)))
}

/// Formats a retry's due time for a table, such as `in 5m`.
fn due(due: Option<Timestamp>, why: Why, now: Timestamp) -> String {
    match due {
        Some(due) if due > now => {
            let soon = if matches!(why, Why::Resumed | Why::NotAllowed) { "within" } else { "in" };
            format!("{soon} {}", durations::until(due, now))
        }
        Some(_) => age(due, now),
        None if why == Why::Pause => "paused".into(),
        None => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comeback_engine::Pauses;
    use serde_json::{Value, json};

    use super::*;
    use crate::change::tests::plain;
    use crate::log::test_line;
    use crate::pauses::in_force::InForce;
    use crate::waiting::events::Waits;
    use crate::waiting::reading::tests::{NOW, ORDERS, reading};

    fn after(seconds: u64) -> Timestamp {
        NOW.saturating_add(Duration::from_secs(seconds))
    }

    /// Builds a reading of waiting events. Each event is given as its key, its error and its other log fields.
    fn reading_of(events: &[(&str, &str, Value)]) -> Reading {
        let mut waits = Waits::default();
        for (key, error_type, more) in events {
            let mut line = json!({
                "timestamp": NOW, "key": key, "target": ORDERS, "retry": 7, "error_type": error_type,
                "first_failure": NOW.before(Duration::from_secs(4_000)),
            });
            line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            waits.take(&test_line(line));
        }
        Reading { waits, ..reading(Depth { visible: 2, in_flight: 1_200, delayed: 4 }) }
    }

    fn holds() -> Value {
        json!({"action": "hold", "due": NOW, "delay": 1_344})
    }

    fn text(reading: &Reading) -> String {
        plain(&reading.report(&ReportQuery { events: Some(0..10), ..ReportQuery::default() }, NOW))
    }

    #[test]
    fn a_table_counts_and_a_line_is_one_event() {
        let unanswered = json!({
            "action": "keep", "cause": "unanswered", "problem": "no answer",
            "not_before": NOW.before(Duration::from_secs(3)),
        });
        let asked = json!({"action": "defer", "due_by": "retry_after", "due": after(65), "delay": 65});
        let mut reading = reading_of(&[
            ("5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11", "TargetDown", asked),
            ("k-2", "TargetDown", unanswered),
            ("größe-注文", "Timeout", holds()),
        ]);
        // If the log were complete, a note would count the hidden messages without a line.
        reading.has_log = false;
        let expected = "\
3 waiting events (the handler's log was read back to 2026-09-14T03:12:50.000Z)
events | function | error | first failed | next due | last due | waits for
2 | orders | TargetDown | 1h 7m ago | 3s ago | in 1m 5s | 1 RetryAfter, 1 unanswered call
1 | orders | Timeout | 1h 7m ago | paused | paused | 1 pause

key | function | retry | error | first failed | due | waits for
k-2 | orders | 7 | TargetDown | 1h 7m ago | 3s ago | unanswered call
5e2c1a9b-6a8e-4a41-9d0e-0d0f4f0c8a11 | orders | 7 | TargetDown | 1h 7m ago | in 1m 5s | RetryAfter
größe-注文 | orders | 7 | Timeout | 1h 7m ago | paused | pause

Found in the log: 3 of about 1,206 in the retry queue.
Log group /aws/lambda/retry-handler does not exist: the handler has never run, or the log was deleted.
Due but not yet received by the handler: about 2. `comeback status --stack shop` says whether it runs.
1 event is held by a pause until it ends: `comeback pause --list --stack shop`.
";
        assert_eq!(text(&reading), expected);
    }

    #[test]
    fn a_log_read_with_a_filter_is_filtered() {
        let heading = |is_everything: bool| {
            let reading = Reading { is_everything, ..reading(Depth::default()) };
            reading.report(&ReportQuery::default(), NOW).heading().to_string()
        };
        assert!(heading(false).starts_with("No waiting event matches the filter ("), "{}", heading(false));
        assert!(heading(true).starts_with("No waiting event ("), "{}", heading(true));
    }

    #[test]
    fn functions_events_and_moments_are_values() {
        let reading = reading_of(&[(
            "k-1",
            "Down",
            json!({"action": "defer", "due": after(65), "due_by": "policy", "delay": 65}),
        )]);
        let report = reading.report(&ReportQuery { events: Some(0..1), ..ReportQuery::default() }, NOW);
        let row = report.rows().next().unwrap();
        let pieces: Vec<_> = row.iter().map(|cell| cell.spans()[0].piece.clone()).collect();
        assert_eq!(pieces[0], Piece::Event("k-1".into()));
        assert_eq!(pieces[1], Piece::Function { shown: "orders".into(), name: "orders".into() });
        assert_eq!(pieces[5], Piece::Moment { shown: "in 1m 5s".into(), at: after(65) });
    }

    #[test]
    fn a_retry_request_has_a_line() {
        let request = r#"{"target":"*","at":1789400000,"within":300,"by":"anna"}"#;
        let pauses = |requests: &str| {
            Ok(Some(Pauses::read(&format!(r#"{{"v":1,"pauses":[],"retries":[{requests}]}}"#)).unwrap()))
        };
        let line = "\nIn force: retry now every function, requested at 2026-09-14T15:33:20.000Z by anna, ends at \
                    2026-09-15T16:33:20.000Z.\n";
        let none = text(&Reading { pauses: pauses(request), ..reading_of(&[]) });
        assert!(none.contains(line) && !none.contains(REQUEST_NOT_COUNTED), "no times are shown: {none}");
        let one = reading_of(&[("k-1", "Down", holds())]);
        let shown = text(&Reading { pauses: pauses(request), ..one });
        assert!(shown.contains(&format!("{line}{REQUEST_NOT_COUNTED}\n")), "{shown}");
        let one = reading_of(&[("k-1", "Down", holds())]);
        let shown = text(&Reading { pauses: pauses(""), ..one });
        assert!(!shown.contains(REQUEST_NOT_COUNTED), "no request is in force");
    }

    #[test]
    fn a_pause_in_force_says_until_when() {
        for (in_force, expected) in [
            (InForce::Paused { until: Some(after(3_600)) }, "paused until 2026-09-14T16:33:20.000Z | pause"),
            (InForce::NotPaused { back_by: Some(after(1_300)) }, "within 21m 40s | resumed"),
        ] {
            let mut reading = reading_of(&[("k-1", "Down", holds())]);
            reading.waits.apply_pauses(|_| in_force);
            let text = text(&reading);
            assert!(text.contains(&format!(" ago | {expected}\n")), "{text}");
        }
    }

    #[test]
    fn a_list_that_was_cut_says_how_to_see_all() {
        let reading = reading_of(&[("k-1", "Down", holds()), ("k-2", "Down", holds())]);
        let text = plain(&reading.report(&ReportQuery { events: Some(0..1), ..ReportQuery::default() }, NOW));
        assert!(text.contains("\n1 listed; --limit 2 lists all\n"), "{text}");
    }
}
