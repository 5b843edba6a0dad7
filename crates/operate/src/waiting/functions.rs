//! The state of each function with failed events.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use comeback_engine::Timestamp;

use crate::attach::attachments::none_attached;
use crate::deployment::Deployment;
use crate::durations;
use crate::function::{is_same_function, shown_name};
use crate::numbers::{counted, grouped};
use crate::pauses::in_force::InForce;
use crate::text::{Text, Tone};
use crate::waiting::events::WaitingGroup;
use crate::waiting::reading::Reading;
use crate::waiting::recent::{EventCounts, begin, number};
use crate::waiting::report::{age, moment, shown_error};

/// The number of five-minute periods in three hours.
const STEPS: u64 = 36;
/// The number of complete five-minute periods, before the current one, that show whether a function is recovering.
const NEWEST: usize = 2;
/// A function counts as recovering only if it had at least this many retries in the last two complete five-minute
/// periods.
const FEWEST_RETRIES: u64 = 3;
/// The number of five-minute periods in twelve hours. Every read of the log covers at least twelve hours.
const TWELVE_HOURS: u64 = 144;
/// The number of five-minute periods in an hour.
const AN_HOUR: usize = 12;

/// The possible states of a function, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Events are waiting, and at least half of them have a known error: the function ran and failed.
    Failing,
    /// No event is waiting, but some events were dead-lettered in the last twelve hours.
    DeadLettering,
    /// Events are waiting, and most of them have no error, because Lambda throttled the function or never ran it.
    Throttled,
    /// Events are waiting, but in the last ten to fifteen minutes there were more than twice as many retries as
    /// failures.
    Recovering,
    /// The function is paused.
    Paused,
    /// No event is waiting, and no event was dead-lettered in the last twelve hours.
    Quiet,
}

impl Health {
    /// The state in words, such as `failing`.
    fn text(self) -> Text {
        let (tone, words) = match self {
            Self::Failing => (Tone::Bad, "failing"),
            Self::DeadLettering => (Tone::Bad, "dead-lettering"),
            Self::Throttled => (Tone::Warning, "throttled"),
            Self::Recovering => (Tone::Good, "recovering"),
            Self::Paused => (Tone::Warning, "paused"),
            Self::Quiet => (Tone::Plain, "quiet"),
        };
        Text::toned(tone, words)
    }
}

/// The state of one function, according to the handler's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionState<'r> {
    /// The function's ARN.
    pub target: &'r str,
    /// The state of the function's retries, such as failing or recovering.
    pub state: Health,
    /// The time of the earliest first failure among the waiting events; `None` if no event is waiting.
    since: Option<Timestamp>,
    /// The number of waiting events, including events that are due.
    pub waiting: u64,
    /// The number of due events that the handler has not checked yet.
    due: u64,
    /// The number of events that a pause holds.
    held: u64,
    /// The number of events dead-lettered in the last twelve hours.
    pub dead_lettered: u64,
    /// The error of the largest group of waiting events, if known.
    error: Option<&'r str>,
    /// The latest due time among the waiting events, or `None` if any due time is unknown or no event is waiting.
    pub back_by: Option<Timestamp>,
    /// The counts for each five-minute period of the last three hours, oldest first, including the current period.
    pub steps: Vec<EventCounts>,
}

impl<'r> FunctionState<'r> {
    /// The state of a function without events.
    fn new(target: &'r str) -> Self {
        Self {
            target,
            state: Health::Quiet,
            since: None,
            waiting: 0,
            due: 0,
            held: 0,
            dead_lettered: 0,
            error: None,
            back_by: None,
            steps: vec![EventCounts::default(); STEPS as usize],
        }
    }

    /// Adds up the function's counts for the last 55 to 60 minutes, including the unfinished five-minute period.
    fn last_hour(&self) -> EventCounts {
        EventCounts::sum(self.steps.iter().rev().take(AN_HOUR))
    }

    fn add(&mut self, group: &WaitingGroup<'_>) {
        self.since = self.since.into_iter().chain(group.oldest_first_failure).min();
        self.waiting += group.count;
        self.held += group.held;
        self.back_by = self.back_by.max(group.last_due);
    }

    /// Returns the state of the function. `has_errors` is true if at least half of its waiting events failed with an
    /// error.
    fn judged(&self, in_force: Option<InForce>, has_errors: bool) -> Health {
        let [lately, now] = [(1, NEWEST), (0, 1)]
            .map(|(skipped, steps)| EventCounts::sum(self.steps.iter().rev().skip(skipped).take(steps)));
        // The failure of a retry takes some minutes to arrive, so the current period alone shows no recovery.
        let is_better = |step: EventCounts| step.retried > 2 * step.failed;
        let recovers =
            is_better(lately) && lately.retried >= FEWEST_RETRIES && (now.failed == 0 || is_better(now));
        match in_force {
            Some(InForce::Paused { .. }) => Health::Paused,
            _ if self.waiting == 0 && self.dead_lettered > 0 => Health::DeadLettering,
            _ if self.waiting == 0 => Health::Quiet,
            _ if recovers => Health::Recovering,
            _ if !has_errors => Health::Throttled,
            _ => Health::Failing,
        }
    }
}

/// The functions that the log mentions or the allow-list names, with their states.
#[derive(Clone, Debug)]
pub struct FunctionsReport<'r> {
    /// The functions that the log mentions, worst first, and then the others.
    pub states: Vec<FunctionState<'r>>,
    due_an_hour_ago: u64,
    deployment: &'r Deployment,
    now: Timestamp,
}

impl FunctionsReport<'_> {
    /// The row of a function in a table with the columns [`FUNCTION_HEADS`].
    pub fn row(&self, state: &FunctionState<'_>) -> [Text; FUNCTION_HEADS.len()] {
        let FunctionState { target, waiting, due, dead_lettered, .. } = *state;
        let EventCounts { failed, retried, .. } = EventCounts::sum(&state.steps);
        let recent = [counted(failed, "failure", "failures"), counted(retried, "retry", "retries")];
        [
            self.deployment.function(target, shown_name(target)),
            state.state.text(),
            state.since.map(|at| moment(age(Some(at), self.now), Some(at))).unwrap_or_default(),
            grouped(waiting).into(),
            grouped(due).into(),
            grouped(dead_lettered).into(),
            if waiting > 0 { shown_error(Some(target), state.error) } else { "" }.into(),
            if failed + retried > 0 { recent.join(", ") } else { String::new() }.into(),
            self.back(state),
        ]
    }

    /// The time by which a function's last waiting event is due, in words.
    fn back(&self, state: &FunctionState<'_>) -> Text {
        match state.back_by {
            _ if state.waiting == 0 => Text::default(),
            Some(by) if by > self.now => {
                moment(format!("within {}", durations::until(by, self.now)), Some(by))
            }
            Some(_) => "due now".into(),
            None if state.held > 0 => "after the pause".into(),
            None => "unknown".into(),
        }
    }

    /// Notes on functions that the table lacks.
    pub fn notes(&self) -> Vec<Text> {
        let patterns = self.deployment.target_functions().filter(|entry| entry.contains('*'));
        let listed = "A function that it matches is listed once it fails.";
        let note = |pattern| format!("The allow-list also has the pattern {pattern}. {listed}").into();
        let mut notes: Vec<Text> = patterns.map(note).collect();
        if notes.is_empty() && self.states.is_empty() {
            notes.push(none_attached(self.deployment));
        }
        notes
    }

    /// The changes of the status's [counts](crate::status::Status::counts) in the last hour, in words. For due events,
    /// this is the count an hour ago.
    pub fn last_hour(&self) -> [String; 3] {
        let hours: Vec<_> = self.states.iter().map(FunctionState::last_hour).collect();
        let EventCounts { failed, retried, dead_lettered } = EventCounts::sum(&hours);
        let change = failed as i64 - (retried + dead_lettered) as i64;
        let by = grouped(change.unsigned_abs());
        let waiting = match change {
            0 => "unchanged in the last hour".into(),
            1.. => format!("+{by} in the last hour"),
            _ => format!("−{by} in the last hour"),
        };
        let number = |count: u64| if count == 0 { "none".into() } else { grouped(count) };
        let due = format!("{} an hour ago", number(self.due_an_hour_ago));
        [waiting, due, format!("{} new in the last hour", number(dead_lettered))]
    }
}

/// The column headings of the table of functions.
pub const FUNCTION_HEADS: [&str; 9] = [
    "function",
    "state",
    "failing since",
    "waiting",
    "due",
    "dead-lettered in 12h",
    "most frequent error",
    "last 3h",
    "all back",
];

impl Reading {
    /// Reports the state of each function. Call [`apply_pauses`](Self::apply_pauses) first.
    pub fn functions(&self, now: Timestamp) -> FunctionsReport<'_> {
        let mut states = self.logged_functions(now);
        let is_unlogged = |arn: &&str| {
            !arn.contains('*') && !states.iter().any(|state| is_same_function(state.target, arn))
        };
        let unlogged: Vec<_> = self.deployment.target_functions().filter(is_unlogged).collect();
        states.extend(unlogged.into_iter().map(|arn| self.unlogged_function(arn, now)));
        let (due_an_hour_ago, deployment) = (self.due_an_hour_ago(now), &self.deployment);
        FunctionsReport { states, due_an_hour_ago, deployment, now }
    }

    /// The state of each function that the log mentions, worst first.
    fn logged_functions(&self, now: Timestamp) -> Vec<FunctionState<'_>> {
        let mut functions: BTreeMap<&str, FunctionState<'_>> = BTreeMap::new();
        let first = number(now).saturating_sub(STEPS - 1);
        for (target, steps) in &self.waits.recent.steps {
            let function = functions.entry(target).or_insert_with(|| FunctionState::new(target));
            let twelve_hours = steps.range((number(now) + 1).saturating_sub(TWELVE_HOURS)..);
            function.dead_lettered = EventCounts::sum(twelve_hours.map(|(_, step)| step)).dead_lettered;
            for (number, step) in steps.range(first..first + STEPS) {
                function.steps[(number - first) as usize] = *step;
            }
        }
        // The largest group comes first, so its error is the most frequent one.
        let mut without_error = BTreeMap::<&str, u64>::new();
        let groups = self.waits.all_groups();
        for group in &groups {
            let Some(target) = group.target else { continue };
            let function = functions.entry(target).or_insert_with(|| FunctionState::new(target));
            if function.waiting == 0 {
                function.error = group.error_type;
            }
            if group.error_type.is_none() {
                *without_error.entry(target).or_default() += group.count;
            }
            function.add(group);
        }
        for event in self.waits.all() {
            let function = event.target.and_then(|target| functions.get_mut(target));
            let Some(function) = function else { continue };
            function.due += u64::from(event.due.is_some_and(|due| due <= now));
            if event.due.is_none() {
                function.back_by = None;
            }
        }
        let mut all: Vec<_> = functions.into_values().collect();
        for function in &mut all {
            let without_error = without_error.get(function.target).copied().unwrap_or_default();
            let has_errors = 2 * without_error <= function.waiting;
            function.state = function.judged(self.in_force(function.target, now), has_errors);
        }
        all.sort_by_key(|function| (function.state, Reverse(function.waiting), function.target));
        all
    }

    /// The state of a function that the log does not mention.
    fn unlogged_function<'t>(&self, target: &'t str, now: Timestamp) -> FunctionState<'t> {
        let function = FunctionState::new(target);
        FunctionState { state: function.judged(self.in_force(target, now), false), ..function }
    }

    /// The number of events that were due, but not yet checked, when the [last hour](FunctionState::last_hour) began.
    fn due_an_hour_ago(&self, now: Timestamp) -> u64 {
        let step = (number(now) + 1).saturating_sub(AN_HOUR as u64);
        let at = begin(step);
        let was_due = self
            .waits
            .all_messages()
            .filter(|(event, message, _)| message.at <= at && event.due.is_some_and(|due| due <= at));
        was_due.count() as u64 + self.waits.recent.due_at(step)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comeback_engine::LogLine;
    use serde_json::{Value, json};

    use super::*;
    use crate::deployment::queue::Depth;
    use crate::log::test_line;
    use crate::waiting::events::Waits;
    use crate::waiting::reading::tests::{NOW, ORDERS, reading};
    use crate::waiting::recent::STEP;

    fn before(seconds: u64) -> Timestamp {
        NOW.before(Duration::from_secs(seconds))
    }

    /// Returns log lines for `count` events of a function. `lines` holds each line's age in seconds and its other
    /// fields.
    fn lines(function: &str, count: u64, lines: &[(u64, Value)]) -> Vec<LogLine<'static>> {
        let one = |n: u64| {
            lines.iter().map(move |(age, more)| {
                let mut line = json!({
                    "timestamp": before(*age), "key": format!("{function}-{n}"), "retry": 1, "error_type": "Down",
                    "target": ORDERS.replace("orders", function), "first_failure": before(4_000),
                });
                line.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
                test_line(line)
            })
        };
        (0..count).flat_map(one).collect()
    }

    fn defers(due_in: u64) -> Value {
        json!({"action": "defer", "due": NOW.saturating_add(Duration::from_secs(due_in)), "due_by": "policy", "delay": 9})
    }

    fn reinvokes() -> Value {
        json!({"action": "reinvoke", "due": NOW})
    }

    fn reading_of(lines: &[Vec<LogLine<'static>>]) -> Reading {
        let mut waits = Waits::default();
        lines.iter().flatten().for_each(|line| waits.take(line));
        Reading { waits, ..reading(Depth::default()) }
    }

    #[test]
    fn worst_function_comes_first() {
        let no_error = json!({"error_type": null});
        let mut throttled = defers(5);
        throttled.as_object_mut().unwrap().extend(no_error.as_object().unwrap().clone());
        let dead = json!({"action": "dead_letter", "reason": "max_age", "detail": "too old"});
        let reading = reading_of(&[
            lines("few", 1, &[(50, defers(5))]),
            lines("many", 3, &[(50, defers(600))]),
            lines("slow", 9, &[(40, throttled)]),
            lines("fixed", 1, &[(3_000, defers(5))]),
            lines("fixed-", 3, &[(3_000, defers(5)), (600, reinvokes())])
                .into_iter()
                .map(|mut line| {
                    line.event.as_mut().unwrap().target = ORDERS.replace("orders", "fixed").into();
                    line
                })
                .collect(),
            lines("over", 2, &[(9_000, defers(5)), (2_000, dead)]),
        ]);
        let seen = reading.logged_functions(NOW);
        let seen: Vec<_> = seen
            .iter()
            .map(|it| {
                let name = it.target.rsplit(':').next().unwrap();
                (name, it.state, it.waiting, it.dead_lettered, it.error)
            })
            .collect();
        let down = Some("Down");
        assert_eq!(
            seen,
            [
                ("many", Health::Failing, 3, 0, down),
                ("few", Health::Failing, 1, 0, down),
                ("over", Health::DeadLettering, 0, 2, None),
                ("slow", Health::Throttled, 9, 0, None),
                ("fixed", Health::Recovering, 1, 0, down),
            ]
        );
    }

    #[test]
    fn each_message_counts_once_however_often_its_lines_are_read() {
        let event = lines("orders", 1, &[(700, defers(5)), (600, defers(5)), (400, reinvokes())]);
        let again = event.iter().rev().cloned().collect();
        let reading = reading_of(&[event, again]);
        let [orders] = &reading.logged_functions(NOW)[..] else { panic!("one function") };
        assert_eq!(EventCounts::sum(&orders.steps), EventCounts { failed: 1, retried: 1, dead_lettered: 0 });
        assert_eq!(orders.last_hour(), EventCounts::sum(&orders.steps));
        let at = |age: u64| (number(before(age)) + STEPS - 1 - number(NOW)) as usize;
        assert_eq!((orders.steps[at(700)].failed, orders.steps[at(400)].retried), (1, 1));
    }

    #[test]
    fn times_are_those_of_all_its_events() {
        let two = [lines("orders", 1, &[(50, defers(700))]), lines("orders-", 1, &[(50, defers(0))])];
        let both = two.concat().into_iter().map(|mut line| {
            line.event.as_mut().unwrap().target = ORDERS.into();
            line
        });
        let reading = reading_of(&[both.collect()]);
        let orders = &reading.logged_functions(NOW)[0];
        assert_eq!((orders.waiting, orders.due, orders.since), (2, 1, Some(before(4_000))));
        assert_eq!(orders.back_by, Some(NOW.saturating_add(Duration::from_secs(700))));
        let holds = json!({"action": "hold", "due": NOW, "delay": 1_344});
        let held = reading_of(&[lines("orders", 2, &[(50, holds)])]);
        let orders = &held.logged_functions(NOW)[0];
        assert_eq!(
            (orders.waiting, orders.held, orders.back_by),
            (2, 2, None),
            "nobody knows when it resumes"
        );
    }

    #[test]
    fn row_has_the_state_of_its_function() {
        let reading = reading_of(&[lines("orders", 2, &[(50, defers(700))])]);
        let report = reading.functions(NOW);
        let cells = report.row(&report.states[0]).map(|cell| cell.to_string());
        let expected = "orders|failing|1h 7m ago|2|0|0|Down|2 failures, 0 retries|within 11m 40s";
        assert_eq!(cells.join("|"), expected);
        assert_eq!(
            report.last_hour(),
            ["+2 in the last hour", "none an hour ago", "none new in the last hour"]
        );
    }

    #[test]
    fn unlogged_functions_come_last_and_patterns_are_noted() {
        let said = |list: &str, lines: Vec<LogLine<'static>>| {
            let mut reading = reading_of(&[lines]);
            reading.deployment.variables.insert("TARGET_FUNCTIONS".into(), list.into());
            let report = reading.functions(NOW);
            let names: Vec<_> = report.states.iter().map(|state| shown_name(state.target)).collect();
            (names.join(" "), Text::joined(report.notes(), "\n").to_string())
        };
        let [billing, shop] = ["billing", "shop-*"].map(|name| ORDERS.replace("orders", name));
        let pattern = format!(
            "The allow-list also has the pattern {shop}. A function that it matches is listed once it fails."
        );
        let list = format!("{billing},{ORDERS},{shop}");
        assert_eq!(said(&list, lines("orders", 1, &[(50, defers(5))])), ("orders billing".into(), pattern));
        let attach = "No function is attached. Attach one with `comeback attach FUNCTION --stack shop`.";
        assert_eq!(said("", Vec::new()), (String::new(), attach.into()));
    }

    /// An event counts as due from its due time until the handler's next log line about it.
    #[test]
    fn due_an_hour_ago_is_known_from_the_log() {
        let begun = NOW.since(begin(number(NOW) - 11)).as_secs();
        let due =
            |age: u64| json!({"action": "defer", "due": before(begun + age), "due_by": "policy", "delay": 9});
        let then_deferred = |function, age, checked: u64| {
            lines(function, 1, &[(begun + 900, due(age)), (begun - checked, defers(50))])
        };
        for (logged, expected) in [
            (lines("still", 3, &[(begun + 900, due(60))]), 3),
            (lines("later", 1, &[(begun + 900, due(0)), (begun - 60, reinvokes())]), 1),
            (then_deferred("deferred", 60, 60), 1),
            (lines("before", 1, &[(begun + 900, due(60)), (begun + 1, reinvokes())]), 0),
            (lines("since", 1, &[(begun - 100, defers(0))]), 0),
            (lines("held", 1, &[(begun + 900, json!({"action": "hold", "due": NOW, "delay": 9}))]), 0),
        ] {
            let twice = [logged.clone(), logged];
            assert_eq!(reading_of(&twice[..1]).due_an_hour_ago(NOW), expected, "{twice:?}");
            assert_eq!(reading_of(&twice).due_an_hour_ago(NOW), expected, "read twice: {twice:?}");
        }
    }

    #[test]
    fn old_steps_are_forgotten() {
        let mut reading = reading_of(&[lines("orders", 1, &[(8_000, defers(5)), (50, reinvokes())])]);
        reading.waits.forget_before(before(3_600));
        let step = EventCounts::sum(&reading.logged_functions(NOW)[0].steps);
        assert_eq!(step, EventCounts { failed: 0, retried: 1, dead_lettered: 0 });
        reading.waits.forget_before(NOW.saturating_add(STEP));
        assert!(reading.logged_functions(NOW).is_empty());
    }
}
