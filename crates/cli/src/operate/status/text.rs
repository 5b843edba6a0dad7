//! The state of a deployment in words: a line for each topic.

use anstyle::AnsiColor;
use comeback_engine::LONG_PAUSE;
use indicatif::HumanCount;

use crate::account::Failure;
use crate::operate::alarms::Alarm;
use crate::operate::dead::HIDDEN_FOR;
use crate::operate::deployment::Stopped;
use crate::operate::history::History;
use crate::operate::metrics::LastHour;
use crate::operate::pauses::OpenPause;
use crate::operate::session::coloured;
use crate::operate::status::state::{ALARMS, LAST_HOUR, MappingState, OldestDeadLetter, OwnPolicy, Status};
use crate::text::durations::{self, short};
use crate::text::numbers::{counted, rounded};
use crate::text::terminal::shown;

pub(crate) const WAITING: &str = "Waiting";
pub(crate) const DUE: &str = "Due";
pub(crate) const DEAD_LETTERS: &str = "Dead-letters";
/// SQS deletes a dead-letter after 14 days. Four days before, somebody should act.
const OLD_DEAD_LETTER_SECONDS: u64 = 10 * 86_400;

impl Status {
    /// A line for each topic: its title and its text. `place` are the flags of commands that it suggests.
    pub(crate) fn lines(&self, place: &str) -> Vec<(&'static str, String)> {
        let mut lines = vec![
            (WAITING, waiting(self)),
            (DUE, due(self)),
            (DEAD_LETTERS, dead_letters(self)),
            (LAST_HOUR, last_hour(&self.last_hour)),
            ("Handler", handler(self, place)),
            ("Version", version(self)),
            ("Policies", policies(self)),
            ("Pauses", pauses(self)),
            ("Retry now", retries(self)),
            (ALARMS, alarms(&self.alarms)),
        ];
        lines.retain(|(title, line)| !line.is_empty() && !self.unread.contains_key(title));
        let unread = |(title, why): (&&'static str, &Failure)| {
            (*title, coloured(AnsiColor::Red, &shown(&format!("not read: {why}"))))
        };
        lines.extend(self.unread.iter().map(unread));
        lines
    }
}

/// The screen.
pub(super) fn text(status: &Status, place: &str) -> String {
    let of_stack = status.stack.as_ref().map(|stack| format!(" of stack {stack}")).unwrap_or_default();
    let lines = status.lines(place).into_iter();
    let lines: String = lines.map(|(title, line)| format!("{title:<13} {line}\n")).collect();
    let history = status.history.as_ref().map(History::text).unwrap_or_default();
    format!(
        "{}{of_stack}\n\n{lines}{history}\nMessage counts are approximate and up to a minute old. `comeback \
         waiting{place}` lists waiting events.\n",
        status.handler
    )
}

fn waiting(status: &Status) -> String {
    let queue = &status.retry_queue;
    let limit = status.hide_up_to.map(|limit| format!(" (HIDE_UP_TO {})", HumanCount(limit)));
    let limit = limit.unwrap_or_default();
    let (total, hidden) = (HumanCount(queue.in_flight + queue.delayed), HumanCount(queue.in_flight));
    format!("{total}: {hidden} hidden{limit}, {} delayed", HumanCount(queue.delayed))
}

fn due(status: &Status) -> String {
    let oldest = status.last_hour.oldest_due_seconds.filter(|_| status.retry_queue.visible > 0);
    let oldest = oldest.map(|age| format!(", the oldest message {} old", short(age))).unwrap_or_default();
    format!("{}{oldest}", HumanCount(status.retry_queue.visible))
}

fn dead_letters(status: &Status) -> String {
    let dead_letters = HumanCount(status.dead_letters.total()).to_string();
    let dead_letters = match status.dead_letters.in_flight {
        0 => dead_letters,
        locked => {
            let longest = durations::text(HIDDEN_FOR);
            format!(
                "{dead_letters} ({} hidden by a command, for up to {longest} after it ends)",
                HumanCount(locked)
            )
        }
    };
    let Some(OldestDeadLetter { age_seconds, is_exact, .. }) = status.oldest_dead_letter else {
        return dead_letters;
    };
    let at_least = if is_exact { "" } else { "at least " };
    let age = format!("{dead_letters}, the oldest {at_least}{} old", short(age_seconds as f64));
    match age_seconds {
        // "At least a second" says nothing of dead-letters that may be days old.
        0..OLD_DEAD_LETTER_SECONDS if !is_exact => return coloured(AnsiColor::Yellow, &dead_letters),
        0..OLD_DEAD_LETTER_SECONDS => return coloured(AnsiColor::Yellow, &age),
        OLD_DEAD_LETTER_SECONDS.. => {}
    }
    coloured(AnsiColor::Red, &format!("{age}; SQS deletes it after 14 days"))
}

/// A count that CloudWatch does not know is left out.
fn last_hour(hour: &LastHour) -> String {
    let known = |counts: &[(Option<f64>, &str)]| {
        let count = |(count, what): &(Option<f64>, &str)| Some(format!("{} {what}", rounded((*count)?)));
        counts.iter().filter_map(count).collect::<Vec<_>>().join(", ")
    };
    let queues = known(&[(hour.arrived, "arrived"), (hour.dead_lettered, "dead-lettered")]);
    let handler =
        known(&[(hour.invocations, "invocations"), (hour.errors, "errors"), (hour.throttles, "throttles")]);
    match (&*queues, &*handler) {
        ("", "") => "CloudWatch has no data".into(),
        (queues, "") => format!("{queues}; CloudWatch has no data on the handler"),
        ("", handler) => format!("handler: {handler}; CloudWatch has no data on the queues"),
        (queues, handler) => format!("{queues}; handler: {handler}"),
    }
}

fn version(status: &Status) -> String {
    let unknown = "unknown: the handler has no tag comeback:version that you may read; the newest `the retry \
                   handler starts` line in its log has it";
    shown(status.version.as_deref().unwrap_or(unknown)).into_owned()
}

fn handler(status: &Status, place: &str) -> String {
    let why = match (status.stopped, &status.mapping) {
        (Some(Stopped::RefusesSettings), _) => {
            let refused = shown(&status.refused_settings.join("; ")).into_owned();
            let fix = format!("`comeback doctor --only CB020{place}` names the fix");
            format!("it does not start, so nothing is retried: {refused}; {fix}")
        }
        (Some(Stopped::NoConcurrency), _) => {
            let fix = format!("`comeback doctor --only CB023{place}` names the fix");
            format!("its reserved concurrency is 0, so nothing is retried; {fix}")
        }
        (_, None) => "no event source mapping feeds it: nothing is retried".into(),
        (Some(Stopped::NotFed), Some(mapping)) => {
            format!("its mapping is {}: nothing is retried", mapping.state)
        }
        (None, Some(MappingState { state, maximum_concurrency })) => {
            let limit = maximum_concurrency.map_or("without a limit of".into(), |most| format!("for {most}"));
            return format!("its mapping is {}, {limit} invocations at a time", state.to_lowercase());
        }
    };
    coloured(AnsiColor::Red, &why)
}

fn policies(status: &Status) -> String {
    if !status.refused_settings.is_empty() {
        return "unknown: the handler refuses its settings".into();
    }
    let line = |OwnPolicy { functions, settings }: &OwnPolicy| {
        let settings: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        shown(&format!("{functions}: {}", settings.join(" "))).into_owned()
    };
    match &*status.policies {
        [] => "the stack's, for every function".into(),
        policies => policies.iter().map(line).collect::<Vec<_>>().join(&format!("\n{:14}", "")),
    }
}

fn pauses(status: &Status) -> String {
    let full = status.pauses_nearly_full.iter();
    let full: String = full.map(|full| format!("\n{:14}{}", "", coloured(AnsiColor::Yellow, full))).collect();
    open_pauses(status) + &full
}

fn open_pauses(status: &Status) -> String {
    match (&status.pauses_problem, status.pauses.as_deref()) {
        (Some(problem), _) => coloured(AnsiColor::Red, &shown(&format!("unknown: {problem}"))),
        (None, None) => "the handler reads none, because its variable PAUSES is not set".into(),
        (None, Some([])) => "none".into(),
        (None, Some(pauses)) => pauses.iter().map(pause).collect::<Vec<_>>().join(&format!("\n{:14}", "")),
    }
}

/// Empty without a request: few deployments have one.
fn retries(status: &Status) -> String {
    let lines = status.retries.iter().flatten().map(|request| shown(&request.line()).into_owned());
    lines.collect::<Vec<_>>().join(&format!("\n{:14}", ""))
}

fn pause(pause: &OpenPause) -> String {
    let part = |part: Option<String>| part.unwrap_or_default();
    let text = format!(
        "{} paused {} ago{}, until {}{}",
        pause.name(),
        short(pause.open_seconds as f64),
        part(pause.by.as_ref().map(|by| format!(" by {by}"))),
        pause.until.map_or_else(|| "resumed".to_owned(), |until| until.to_string()),
        part(pause.why.as_ref().map(|why| format!(": {why}"))),
    );
    let colour = if pause.open_seconds > LONG_PAUSE.as_secs() { AnsiColor::Red } else { AnsiColor::Yellow };
    coloured(colour, &shown(&text))
}

fn alarms(alarms: &[Alarm]) -> String {
    let ringing: Vec<&str> =
        alarms.iter().filter(|alarm| alarm.state == "ALARM").map(|alarm| alarm.name.as_str()).collect();
    let all = counted(alarms.len() as u64, "alarm", "alarms");
    match ringing.as_slice() {
        [] if alarms.is_empty() => "none set".into(),
        [] => format!("{all}, none in state ALARM"),
        ringing => coloured(
            AnsiColor::Red,
            &format!("{} of {all} in state ALARM: {}", ringing.len(), shown(&ringing.join(", "))),
        ),
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::Timestamp;

    use super::*;
    use crate::operate::alarms::Watched;
    use crate::operate::deployment::queue::Depth;
    use crate::operate::pauses::requests::RetryRequest;
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    #[test]
    fn what_could_not_be_read_is_said_beside_the_rest() {
        let denied = Failure::CouldNot("cloudwatch:DescribeAlarms of retry: denied".into());
        let status = Status { unread: [(ALARMS, denied)].into(), ..Status::quiet() };
        let text = plain(&status);
        assert!(
            text.contains("\nPauses        none\nAlarms        not read: cloudwatch:DescribeAlarms"),
            "{text}"
        );
        assert!(!text.contains("none set"), "{text}");
    }

    fn plain(status: &Status) -> String {
        anstream::adapter::strip_str(&text(status, "")).to_string()
    }

    #[test]
    fn a_quiet_deployment_claims_nothing_that_is_not_known() {
        let expected = "\
retry of stack comeback

Waiting       0: 0 hidden (HIDE_UP_TO 50,000), 0 delayed
Due           0
Dead-letters  0
Last hour     CloudWatch has no data
Handler       its mapping is enabled, for 10 invocations at a time
Version       0.1.0
Policies      the stack's, for every function
Pauses        none
Alarms        none set

Message counts are approximate and up to a minute old. `comeback waiting` lists waiting events.
";
        assert_eq!(plain(&Status::quiet()), expected);
    }

    #[test]
    fn a_handler_that_refuses_its_settings_does_not_start() {
        let refused_settings = vec!["BASE_BACKOFF is 60 s; it must be 1 s to MAX_BACKOFF (30 s)".to_owned()];
        let text = text(
            &Status { refused_settings, stopped: Some(Stopped::RefusesSettings), ..Status::quiet() },
            " --stack shop",
        );
        for command in ["doctor --only CB020 --stack shop", "waiting --stack shop"] {
            assert!(text.contains(&format!("`comeback {command}`")), "{text}");
        }
        let text = anstream::adapter::strip_str(&text).to_string();
        let said = "Handler       it does not start, so nothing is retried: BASE_BACKOFF is 60 s; it must be";
        assert!(text.contains(said), "{text}");
        assert!(text.contains("\nPolicies      unknown: the handler refuses its settings\n"), "{text}");
    }

    #[test]
    fn a_setting_cannot_command_the_terminal() {
        let hostile = || HOSTILE.to_owned();
        let settings = [("MAX_AGE".to_owned(), hostile())].into();
        let policies = vec![OwnPolicy { functions: hostile(), settings }];
        let alarms = vec![Alarm { state: "ALARM".into(), ..Alarm::sample(HOSTILE, Watched::DeadLetters) }];
        let status = Status { version: Some(hostile()), policies, alarms, ..Status::quiet() };
        let refusing = Status {
            refused_settings: vec![hostile()],
            stopped: Some(Stopped::RefusesSettings),
            ..Status::quiet()
        };
        let text = text(&status, "") + &text(&refusing, "");
        assert!(text.matches("\\u{9b}2J").count() == 5 && !is_obeyed_anywhere(&text), "{text}");
    }

    #[test]
    fn a_deployment_that_retries_nothing_is_broken() {
        let stopped = Status { stopped: Some(Stopped::NoConcurrency), ..Status::quiet() };
        assert_eq!(stopped.why_stopped(), Some(Stopped::NoConcurrency.to_string()));
        let said = "Handler       its reserved concurrency is 0, so nothing is retried; `comeback doctor --only CB023`";
        assert!(plain(&stopped).contains(said), "{}", plain(&stopped));
    }

    #[test]
    fn a_sample_of_young_dead_letters_says_nothing_of_the_oldest() {
        let line = |age_seconds, is_exact| {
            let oldest = OldestDeadLetter { sent: Timestamp::from_secs(0), age_seconds, is_exact };
            let dead_letters = Depth { visible: 200, ..Depth::default() };
            let status = Status { dead_letters, oldest_dead_letter: Some(oldest), ..Status::quiet() };
            plain(&status)
                .lines()
                .find_map(|line| Some(line.strip_prefix("Dead-letters  ")?.to_owned()))
                .unwrap()
        };
        assert_eq!(line(1, true), "200, the oldest 1s old");
        assert_eq!(line(1, false), "200");
    }

    #[test]
    fn pauses_that_cannot_be_read_leave_the_rest_to_be_seen() {
        let problem = "parameter /comeback/pauses: the pauses are unreadable: not a JSON object";
        let status = Status { pauses: None, pauses_problem: Some(problem.into()), ..Status::quiet() };
        let (expected, text) = (format!("\nPauses        unknown: {problem}\n"), plain(&status));
        assert!(text.contains(&expected) && text.contains("\nAlarms        none set\n"), "{text}");
        assert_eq!(
            status.why_stopped().as_deref(),
            Some("the pauses are unreadable"),
            "its mapping is enabled"
        );
    }

    fn busy() -> Status {
        let alarm = |name: &str, state: &str| Alarm {
            state: state.into(),
            ..Alarm::sample(name, Watched::DeadLetters)
        };
        Status {
            stack: None,
            version: None,
            retry_queue: Depth { visible: 3, in_flight: 1_200, delayed: 34 },
            hide_up_to: None,
            policies: [("orders", ("MAX_AGE", "2h")), ("export-*", ("BACKOFFS", "5m,2h"))]
                .map(|(functions, (name, value))| OwnPolicy {
                    functions: functions.into(),
                    settings: [(name.to_owned(), value.to_owned())].into(),
                })
                .into(),
            dead_letters: Depth { visible: 5, in_flight: 2, delayed: 0 },
            oldest_dead_letter: Some(OldestDeadLetter {
                sent: Timestamp::from_secs(0),
                age_seconds: 11 * 86_400,
                is_exact: false,
            }),
            mapping: Some(MappingState { state: "Disabled".into(), maximum_concurrency: None }),
            stopped: Some(Stopped::NotFed),
            pauses: Some(vec![
                OpenPause {
                    open_seconds: 90_000,
                    by: Some("anna".into()),
                    why: Some("deploy 4711".into()),
                    ..OpenPause::sample("arn:aws:lambda:eu-west-1:123456789012:function:orders:live")
                },
                OpenPause {
                    until: Some(Timestamp::from_secs(1_700_000_000)),
                    open_seconds: 60,
                    ..OpenPause::sample("*")
                },
            ]),
            retries: Some(vec![RetryRequest {
                target: "*".into(),
                at: Timestamp::from_secs(1_700_000_000),
                within_seconds: 600,
                errors: vec!["Timeout*".into()],
                until: Timestamp::from_secs(1_700_004_200),
                by: Some("anna".into()),
                why: None,
            }]),
            last_hour: LastHour {
                arrived: Some(1_500.0),
                oldest_due_seconds: Some(75.0),
                ..LastHour::default()
            },
            alarms: vec![alarm("dead-letters", "ALARM"), alarm("errors", "OK")],
            ..Status::quiet()
        }
    }

    #[test]
    fn a_busy_deployment_says_what_is_wrong_with_it() {
        let expected = "\
retry

Waiting       1,234: 1,200 hidden, 34 delayed
Due           3, the oldest message 1m 15s old
Dead-letters  7 (2 hidden by a command, for up to 15m after it ends), the oldest at least 11d old; SQS deletes it after 14 days
Last hour     1,500 arrived; CloudWatch has no data on the handler
Handler       its mapping is Disabled: nothing is retried
Version       unknown: the handler has no tag comeback:version that you may read; the newest `the retry handler starts` line in its log has it
Policies      orders: MAX_AGE=2h
              export-*: BACKOFFS=5m,2h
Pauses        orders:live paused 25h ago by anna, until resumed: deploy 4711
              every function paused 1m ago, until 2023-11-14T22:13:20.000Z
Retry now     every function (Timeout*), requested at 2023-11-14T22:13:20.000Z by anna, ends at 2023-11-14T23:23:20.000Z
Alarms        1 of 2 alarms in state ALARM: dead-letters

Message counts are approximate and up to a minute old. `comeback waiting` lists waiting events.
";
        assert_eq!(plain(&busy()), expected);
    }
}
