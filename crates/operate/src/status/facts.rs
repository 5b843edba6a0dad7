//! The lines that `comeback status` prints: a title and text for each topic.

use comeback_engine::{LONG_PAUSE, Pause, PauseTarget, RequestKind};

use super::{ALARMS, LAST_HOUR, MappingState, OldestDeadLetter, OwnPolicy, Status};
use crate::command::CommandName;
use crate::deployment::Stopped;
use crate::deployment::queue::{Depth, HIDDEN_FOR};
use crate::durations::{self, short};
use crate::layout::Fact;
use crate::metrics::LastHour;
use crate::numbers::{counted, grouped, rounded};
use crate::pauses::OpenPause;
use crate::text;
use crate::text::{Text, Tone, quoted};

/// The age at which `comeback status` warns about a dead-letter, four days before SQS deletes it.
const OLD_DEAD_LETTER_SECONDS: u64 = 10 * 86_400;

impl Status {
    /// Returns the message counts: of waiting events, of due events, and of dead-letters.
    pub fn counts(&self) -> [Fact; 3] {
        [self.waiting(), self.due(), self.dead()]
    }

    /// Returns a [`Fact`] for each other part of the status with something to report, and for each part that could not
    /// be read.
    pub fn facts(&self) -> Vec<Fact> {
        let mut facts = vec![
            Fact::new(LAST_HOUR, vec![last_hour(&self.metrics.last_hour).into()]),
            Fact::new("Handler", vec![self.handler()]),
            Fact::new("Version", vec![self.version().into()]),
            Fact::new("Policies", self.own_policies()),
            Fact::new("Pauses", self.open_pauses()),
            // These lines are shown only while requests are in force, because most deployments have no requests.
            Fact::new("Retry now", self.requests_to(RequestKind::Retry)),
            Fact::new("Cancel", self.requests_to(RequestKind::Cancel)),
            Fact::new(ALARMS, vec![self.ringing()]),
        ];
        facts.retain(|fact| !fact.lines.is_empty() && !self.metrics.unread.contains_key(fact.title));
        let unread = self.unread().map(|(title, why)| {
            Fact::new(title, vec![Text::toned(Tone::Bad, text!["not read: ", why.text()])])
        });
        facts.extend(unread);
        facts
    }

    fn waiting(&self) -> Fact {
        let Depth { in_flight, delayed, .. } = self.retry_queue;
        let limit = self.hide_up_to.map(|limit| format!(" (limit {})", grouped(limit)));
        let (hidden, limit) = (grouped(in_flight), limit.unwrap_or_default());
        let delayed_too = match delayed {
            0 => String::new(),
            _ => format!(", {} sent again with a delay", grouped(delayed)),
        };
        let rest = format!("{hidden} hidden until due{limit}{delayed_too}");
        Fact::counted("Waiting", in_flight + delayed, ": ", rest.into())
    }

    fn due(&self) -> Fact {
        let visible = self.retry_queue.visible;
        let oldest = self.metrics.last_hour.oldest_due_seconds.filter(|_| visible > 0);
        let oldest = oldest.map(|age| format!("the oldest message {} old", short(age))).unwrap_or_default();
        Fact::counted("Due", visible, ", ", oldest.into())
    }

    fn dead(&self) -> Fact {
        let locked = Some(self.dead_letters.in_flight).filter(|locked| *locked > 0).map(|locked| {
            let longest = durations::text(HIDDEN_FOR);
            format!("({} hidden by a command, for up to {longest} after it ends)", grouped(locked))
        });
        let separator = if locked.is_some() { " " } else { ", " };
        let counted = |rest: Text| Fact::counted("Dead-letters", self.dead_letters.total(), separator, rest);
        let Some(OldestDeadLetter { age_seconds, is_exact, .. }) = self.oldest_dead_letter else {
            return counted(locked.unwrap_or_default().into());
        };
        let at_least = if is_exact { "" } else { "at least " };
        let age = format!("the oldest {at_least}{} old", short(age_seconds as f64));
        let is_old = age_seconds >= OLD_DEAD_LETTER_SECONDS;
        // A lower bound such as "at least a second" is useless if the queue may have dead-letters that are days old.
        let age = Some(age).filter(|_| is_old || is_exact);
        let rest = locked.into_iter().chain(age).collect::<Vec<_>>().join(", ");
        counted(match is_old {
            true => Text::toned(Tone::Bad, format!("{rest}; SQS deletes it after 14 days")),
            false => Text::toned(Tone::Warning, rest),
        })
    }

    fn version(&self) -> &str {
        let unknown = "unknown: the handler has no tag comeback:version that you may read; the newest `the retry \
                       handler starts` line in its log has it";
        self.version.as_deref().unwrap_or(unknown)
    }

    fn handler(&self) -> Text {
        let doctor = |check| quoted(self.deployment.command(CommandName::Doctor, ["--only", check]));
        let why = match (self.deployment.stopped(), &self.mapping) {
            (Some(Stopped::RefusesSettings), _) => {
                let refused = self.refused_settings.join("; ");
                let why = format!("it does not start, so nothing is retried: {refused}; ");
                text![why, doctor("CB020"), " names the fix"]
            }
            (Some(Stopped::NoConcurrency), _) => {
                let why = "its reserved concurrency is 0, so nothing is retried; ";
                text![why, doctor("CB023"), " names the fix"]
            }
            (_, None) => "no event source mapping feeds it: nothing is retried".into(),
            (Some(Stopped::NotFed), Some(mapping)) => {
                format!("its mapping is {}: nothing is retried", mapping.state).into()
            }
            (None, Some(MappingState { state, maximum_concurrency })) => {
                let limit =
                    maximum_concurrency.map_or("without a limit of".into(), |most| format!("for {most}"));
                let state = state.to_lowercase();
                return format!("its mapping is {state}, {limit} invocations at a time").into();
            }
        };
        Text::toned(Tone::Bad, why)
    }

    fn requests_to(&self, kind: RequestKind) -> Vec<Text> {
        let requests = self.requests.iter().flatten().filter(|request| request.0.kind == kind);
        requests.map(|request| Text::toned(Tone::Warning, request.line())).collect()
    }

    fn own_policies(&self) -> Vec<Text> {
        if !self.refused_settings.is_empty() {
            return vec!["unknown: the handler refuses its settings".into()];
        }
        let line = |OwnPolicy { functions, settings }: &OwnPolicy| {
            let settings: Vec<String> =
                settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{functions}: {}", settings.join(" ")).into()
        };
        match &*self.policies {
            [] => vec!["the stack's, for every function".into()],
            policies => policies.iter().map(line).collect(),
        }
    }

    fn open_pauses(&self) -> Vec<Text> {
        let mut lines = match (&self.pauses_problem, self.pauses.as_deref()) {
            (Some(problem), _) => vec![Text::toned(Tone::Bad, text!["unknown: ", problem.clone()])],
            (None, None) => vec!["the handler reads none, because its variable PAUSES is not set".into()],
            (None, Some([])) => vec!["none".into()],
            (None, Some(pauses)) => pauses.iter().map(|pause| self.open_pause(pause)).collect(),
        };
        lines.extend(self.pauses_nearly_full.iter().map(|full| Text::toned(Tone::Warning, full)));
        lines
    }

    fn open_pause(&self, open: &OpenPause) -> Text {
        let OpenPause { pause: Pause { target, until, by, why, .. }, open_seconds } = open;
        let name = match target {
            PauseTarget::All => open.name().into(),
            PauseTarget::Functions(function) => self.deployment.function(&function.to_string(), open.name()),
        };
        let part = |part: Option<String>| part.unwrap_or_default();
        let by = part(by.as_ref().map(|by| format!(" by {by}")));
        let since = format!(" paused {} ago{by}, until ", short(*open_seconds as f64));
        let until = until.map_or_else(|| "resumed".into(), Text::from);
        let why = part(why.as_ref().map(|why| format!(": {why}")));
        let tone = if *open_seconds > LONG_PAUSE.as_secs() { Tone::Bad } else { Tone::Warning };
        Text::toned(tone, text![name, since, until, why])
    }

    fn ringing(&self) -> Text {
        let ringing = self.metrics.alarms.iter().filter(|alarm| alarm.state == "ALARM");
        let ringing: Vec<&str> = ringing.map(|alarm| alarm.name.as_str()).collect();
        let all = counted(self.metrics.alarms.len() as u64, "alarm", "alarms");
        match ringing.as_slice() {
            [] if self.metrics.alarms.is_empty() => "none set".into(),
            [] => format!("{all}, none in state ALARM").into(),
            ringing => {
                let names = ringing.join(", ");
                Text::toned(Tone::Bad, format!("{} of {all} in state ALARM: {names}", ringing.len()))
            }
        }
    }
}

/// Describes the counts for the last hour, except those that are missing from CloudWatch.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use comeback_engine::{Request, Timestamp};

    use super::super::Metrics;
    use super::*;
    use crate::alarms::Alarm;
    use crate::alarms::Watched;
    use crate::aws::Mapping;
    use crate::change::Answer as _;
    use crate::change::tests::plain;
    use crate::deployment::Deployment;
    use crate::failure::Failure;
    use crate::pauses::requests::RequestInForce;

    #[test]
    fn unread_part_is_named_beside_the_rest() {
        let denied = Failure::could_not("cloudwatch:DescribeAlarms of retry: denied");
        let mut status = quiet();
        status.metrics.unread.insert(ALARMS, denied);
        let text = plain(&status);
        assert!(text.contains("\nPauses: none\nAlarms: not read: cloudwatch:DescribeAlarms"), "{text}");
        assert!(!text.contains("none set"), "{text}");
    }

    #[test]
    fn quiet_deployment_claims_nothing_unknown() {
        let expected = "\
retry of stack comeback

Waiting: 0: 0 hidden until due (limit 50,000)
Due: 0
Dead-letters: 0
Last hour: CloudWatch has no data
Handler: its mapping is enabled, for 10 invocations at a time
Version: 0.1.0
Policies: the stack's, for every function
Pauses: none
Alarms: none set

Message counts are approximate and up to a minute old. `comeback waiting` lists waiting events.
";
        assert_eq!(plain(&quiet()), expected);
    }

    #[test]
    fn a_handler_that_refuses_its_settings_does_not_start() {
        let refused_settings = vec!["BASE_BACKOFF is 60 s; it must be 1 s to MAX_BACKOFF (30 s)".to_owned()];
        let mut deployment = Deployment { stack: Some("shop".into()), ..quiet().deployment };
        deployment.variables.insert("BASE_BACKOFF".into(), "soon".into());
        let text = plain(&Status { refused_settings, deployment, ..quiet() });
        for command in ["doctor --only CB020 --stack shop", "waiting --stack shop"] {
            assert!(text.contains(&format!("`comeback {command}`")), "{text}");
        }
        let said = "Handler: it does not start, so nothing is retried: BASE_BACKOFF is 60 s; it must be";
        assert!(text.contains(said), "{text}");
        assert!(text.contains("\nPolicies: unknown: the handler refuses its settings\n"), "{text}");
    }

    #[test]
    fn a_deployment_that_retries_nothing_is_broken() {
        let deployment = Deployment { never_runs: true, ..quiet().deployment };
        let stopped = Status { deployment, ..quiet() };
        let failure = "the handler's reserved concurrency is 0, so nothing is retried; `comeback doctor --short` names the \
                       fix";
        let end = stopped.end().unwrap_err();
        assert_eq!((end.exit_code(), &*end.to_string()), (3, failure));
        let said =
            "Handler: its reserved concurrency is 0, so nothing is retried; `comeback doctor --only CB023`";
        assert!(plain(&stopped).contains(said), "{}", plain(&stopped));
    }

    #[test]
    fn young_sample_does_not_date_the_oldest() {
        let line = |age_seconds, is_exact| {
            let oldest = OldestDeadLetter { sent: Timestamp::from_secs(0), age_seconds, is_exact };
            let dead_letters = Depth { visible: 200, ..Depth::default() };
            let status = Status { dead_letters, oldest_dead_letter: Some(oldest), ..quiet() };
            plain(&status)
                .lines()
                .find_map(|line| Some(line.strip_prefix("Dead-letters: ")?.to_owned()))
                .unwrap()
        };
        assert_eq!(line(1, true), "200, the oldest 1s old");
        assert_eq!(line(1, false), "200");
    }

    #[test]
    fn unreadable_pauses_leave_the_rest_visible() {
        let problem = "parameter /comeback/pauses: the pauses are unreadable: not a JSON object";
        let status = Status { pauses: None, pauses_problem: Some(problem.into()), ..quiet() };
        let (expected, text) = (format!("\nPauses: unknown: {problem}\n"), plain(&status));
        assert!(text.contains(&expected) && text.contains("\nAlarms: none set\n"), "{text}");
        let end = status.end().unwrap_err().to_string();
        assert!(end.starts_with("the pauses are unreadable; "), "its mapping is enabled: {end}");
    }

    fn quiet() -> Status {
        Status {
            handler: "retry".into(),
            deployment: Deployment { mapping: Some(Mapping::sample()), ..Deployment::sample() },
            stack: Some("comeback".into()),
            version: Some("0.1.0".into()),
            refused_settings: Vec::new(),
            retry_queue: Depth { visible: 0, in_flight: 0, delayed: 0 },
            hide_up_to: Some(50_000),
            policies: Vec::new(),
            dead_letters: Depth { visible: 0, in_flight: 0, delayed: 0 },
            oldest_dead_letter: None,
            mapping: Some(MappingState { state: "Enabled".into(), maximum_concurrency: Some(10) }),
            pauses: Some(Vec::new()),
            requests: Some(Vec::new()),
            pauses_problem: None,
            pauses_nearly_full: None,
            metrics: Metrics {
                last_hour: LastHour::default(),
                history: None,
                alarms: Vec::new(),
                unread: BTreeMap::new(),
                at: Timestamp::from_secs(0),
            },
            oldest_unread: None,
        }
    }

    fn pause(target: &str) -> Pause {
        Pause {
            target: target.parse().unwrap(),
            from: Timestamp::from_secs(0),
            until: None,
            spread: Duration::ZERO,
            by: None,
            why: None,
        }
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
            deployment: Deployment {
                mapping: Some(Mapping { state: "Disabled".into(), ..Mapping::sample() }),
                ..quiet().deployment
            },
            pauses: Some(vec![
                OpenPause {
                    pause: Pause {
                        by: Some("anna".into()),
                        why: Some("deploy 4711".into()),
                        ..pause("arn:aws:lambda:eu-west-1:123456789012:function:orders:live")
                    },
                    open_seconds: 90_000,
                },
                OpenPause {
                    pause: Pause { until: Some(Timestamp::from_secs(1_700_000_000)), ..pause("*") },
                    open_seconds: 60,
                },
            ]),
            requests: Some(vec![RequestInForce(Request {
                kind: RequestKind::Retry,
                target: PauseTarget::All,
                at: Timestamp::from_secs(1_700_000_000),
                millis: 0,
                within: Duration::from_secs(600),
                errors: vec!["Timeout*".into()],
                keys: Vec::new(),
                by: Some("anna".into()),
                why: None,
                until: Some(Timestamp::from_secs(1_700_004_200)),
                withdrawn: false,
            })]),
            metrics: Metrics {
                last_hour: LastHour {
                    arrived: Some(1_500.0),
                    oldest_due_seconds: Some(75.0),
                    ..LastHour::default()
                },
                alarms: vec![alarm("dead-letters", "ALARM"), alarm("errors", "OK")],
                ..quiet().metrics
            },
            ..quiet()
        }
    }

    #[test]
    fn busy_deployment_names_its_problems() {
        let expected = "\
retry

Waiting: 1,234: 1,200 hidden until due, 34 sent again with a delay
Due: 3, the oldest message 1m 15s old
Dead-letters: 7 (2 hidden by a command, for up to 15m after it ends), the oldest at least 11d old; SQS deletes it after 14 days
Last hour: 1,500 arrived; CloudWatch has no data on the handler
Handler: its mapping is Disabled: nothing is retried
Version: unknown: the handler has no tag comeback:version that you may read; the newest `the retry handler starts` line in its log has it
Policies: orders: MAX_AGE=2h
Policies: export-*: BACKOFFS=5m,2h
Pauses: orders:live paused 25h ago by anna, until resumed: deploy 4711
Pauses: every function paused 1m ago, until 2023-11-14T22:13:20.000Z
Retry now: every function (Timeout*), requested at 2023-11-14T22:13:20.000Z by anna, ends at 2023-11-14T23:23:20.000Z
Alarms: 1 of 2 alarms in state ALARM: dead-letters

Message counts are approximate and up to a minute old. `comeback waiting` lists waiting events.
";
        assert_eq!(plain(&busy()), expected);
    }

    #[test]
    fn line_has_the_tone_of_its_content() {
        let tones = |status: Status| {
            let loudest = |fact: &Fact| fact.lines.iter().map(Text::tone).max().unwrap();
            let facts = status.counts().into_iter().chain(status.facts());
            facts.map(|fact| (fact.title, loudest(&fact))).collect::<Vec<_>>()
        };
        assert!(tones(quiet()).iter().all(|(_, tone)| *tone == Tone::Plain));
        let toned: Vec<_> = tones(busy()).into_iter().filter(|(_, tone)| *tone > Tone::Plain).collect();
        let bad = ["Dead-letters", "Handler", "Pauses", ALARMS].map(|title| (title, Tone::Bad));
        let [dead, handler, pauses, alarms] = bad;
        assert_eq!(toned, [dead, handler, pauses, ("Retry now", Tone::Warning), alarms]);
    }
}
