//! `comeback status`: the state of a deployment on one screen.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use anstyle::AnsiColor;
use aws_sdk_sqs::types::MessageSystemAttributeName;
use clap::Args;
use comeback_engine::{HideUpTo, LONG_PAUSE, Policies, PolicyEntry, Timestamp};
use indicatif::HumanCount;
use serde::Serialize;

use crate::account::{Account, Failure, Or as _};
use crate::clock::now;
use crate::failure;
use crate::operate::alarms::Alarm;
use crate::operate::dead::HIDDEN_FOR;
use crate::operate::deployment::{Deployment, Depth, Queue, Stopped};
use crate::operate::history::History;
use crate::operate::metrics::LastHour;
use crate::operate::pauses::requests::RetryRequest;
use crate::operate::pauses::{self, OpenPause, nearly_full};
use crate::operate::session::{Common, Session, coloured};
use crate::text::durations::{self, short};
use crate::text::numbers::{counted, rounded};
use crate::text::terminal::shown;

/// Between two screens of `--watch`. SQS's counts are a minute old anyway.
const INTERVAL: Duration = Duration::from_secs(5);
/// CloudWatch has a new point each minute, and bills each read.
const METRICS_AGAIN_AFTER: Duration = Duration::from_secs(60);
pub(crate) const WAITING: &str = "Waiting";
pub(crate) const DUE: &str = "Due";
pub(crate) const DEAD_LETTERS: &str = "Dead-letters";
// What may be denied alone.
const OLDEST: &str = "Oldest";
const LAST_HOUR: &str = "Last hour";
const ALARMS: &str = "Alarms";
const HISTORY: &str = "History";
/// Clears a terminal, and begins at its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback status
  comeback status --watch
  comeback status --history
  comeback status --handler my-retry-handler --json";

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Refresh every five seconds until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Also show what arrived, was retried and was dead-lettered in the last 3 and 24 hours
    #[arg(long)]
    history: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(
    arguments: &StatusArguments,
    session: Session,
) -> Result<(), failure::CommandFailure> {
    let mut before = None;
    let mut out = anstream::stdout();
    loop {
        let status = session.interrupt.or(Status::read(&session, before.as_ref(), arguments.history)).await?;
        session.answer(&status);
        if !session.common.json {
            if arguments.watch && std::io::stdout().is_terminal() {
                write!(std::io::stdout(), "{CLEAR}{}\n\n", session.headline())?;
            }
            write!(out, "{}", text(&status, &session.common.place_flags()))?;
        }
        out.flush()?;
        if !arguments.watch {
            let place = session.common.place_flags();
            let fix = format!("`comeback doctor --short{place}` names the fix");
            if let Some(failure) = status.unread.values().next().cloned() {
                return Err(failure.into());
            }
            return is_running(&status).map_err(|why| Failure::Undone(format!("{why}; {fix}")).into());
        }
        before = Some(status);
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = session.interrupt.raised() => return Ok(()),
        }
    }
}

/// The state of a deployment. Every count of SQS's is approximate, and right only a minute after the last change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Status {
    handler: String,
    stack: Option<String>,
    /// The version of Comeback, if the handler's tags have it and may be read.
    version: Option<String>,
    /// The settings with which the handler does not start.
    refused_settings: Vec<String>,
    pub(crate) retry_queue: Depth,
    /// `HIDE_UP_TO`; `None` without a limit, or if the handler refuses its settings.
    hide_up_to: Option<u64>,
    /// The entries of `POLICIES`; empty if the handler refuses its settings.
    policies: Vec<OwnPolicy>,
    pub(crate) dead_letters: Depth,
    oldest_dead_letter: Option<OldestDeadLetter>,
    mapping: Option<MappingState>,
    #[serde(skip)]
    stopped: Option<Stopped>,
    /// The pauses that are not over; `None` if the handler reads none, or if they could not be read.
    pub(crate) pauses: Option<Vec<OpenPause>>,
    /// The requests to retry now that are in force; `None` as for the pauses.
    retries: Option<Vec<RetryRequest>>,
    /// Why they could not be read.
    pauses_problem: Option<String>,
    /// How full the pauses' parameter is, if it is nearly full.
    pauses_nearly_full: Option<String>,
    last_hour: LastHour,
    /// `None` unless it was asked for.
    pub(crate) history: Option<History>,
    alarms: Vec<Alarm>,
    /// What could not be read: during an incident, the rest still matters.
    #[serde(skip)]
    unread: Unread,
    /// When CloudWatch was asked.
    #[serde(skip)]
    metrics_read: Timestamp,
}

/// A policy that functions have instead of the stack's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct OwnPolicy {
    /// The functions as the entry names them.
    functions: String,
    /// What it sets, by variable. Everything else is the stack's.
    settings: BTreeMap<String, String>,
}

impl OwnPolicy {
    fn of(entry: &PolicyEntry) -> Self {
        let settings = entry.settings().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { functions: entry.pattern().to_owned(), settings: settings.collect() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct MappingState {
    /// `Enabled`, `Disabled`, or a state on the way to one of them.
    state: String,
    maximum_concurrency: Option<i32>,
}

impl Status {
    /// Reads the state of a deployment. `before` is the state that was read last, if there is one: the dead-letters are
    /// looked at again only if their number has changed since, and CloudWatch's metrics only after a minute.
    pub(crate) async fn read(
        session: &Session,
        before: Option<&Self>,
        with_history: bool,
    ) -> Result<Self, Failure> {
        // Settings and mappings change while one watches.
        let deployment = session.deployment().await?;
        let (account, now) = (&session.account, now());
        let mut unread = Unread::new();
        let dead_letters = Depth::read(account, &deployment.dead_letter_queue).await?;
        let oldest = match before.filter(|before| before.dead_letters == dead_letters) {
            Some(before) => before.oldest_dead_letter.map(|oldest| (oldest.sent, oldest.is_exact)),
            None => {
                let oldest = oldest_dead_letter(account, &deployment.dead_letter_queue, &dead_letters).await;
                or_unread(oldest, OLDEST, &mut unread)
            }
        };
        let (policies, refused) = match deployment.policies() {
            Ok(policies) => (Some(policies), Vec::new()),
            Err(refused) => (None, refused),
        };
        let hide_up_to =
            policies.as_ref().and_then(|policies| match policies.stack().settings().hide_up_to {
                HideUpTo::UpTo(limit) => Some(limit),
                HideUpTo::Always => None,
            });
        let (read, pauses_problem) = match pauses::read(account, &deployment).await {
            Ok(read) => (read, None),
            Err(failure) => (None, Some(failure.to_string())),
        };
        let metrics = match before.filter(|before| before.has_recent_metrics(now)) {
            Some(before) => before.metrics(),
            None => Metrics::read(account, &deployment, with_history, now).await,
        };
        unread.extend(metrics.unread);
        Ok(Self {
            retry_queue: Depth::read(account, &deployment.retry_queue).await?,
            refused_settings: refused.iter().map(ToString::to_string).collect(),
            version: deployment.version.clone(),
            hide_up_to,
            policies: policies.iter().flat_map(Policies::entries).map(OwnPolicy::of).collect(),
            dead_letters,
            oldest_dead_letter: oldest.map(|(sent, is_exact)| {
                let age_seconds = now.since(sent).as_secs();
                OldestDeadLetter { sent, age_seconds, is_exact }
            }),
            pauses: read.as_ref().map(|pauses| OpenPause::all_of(pauses, now)),
            retries: read.as_ref().map(|pauses| RetryRequest::in_force(pauses, now)),
            pauses_problem,
            pauses_nearly_full: read.as_ref().and_then(nearly_full),
            metrics_read: metrics.at,
            last_hour: metrics.last_hour,
            history: metrics.history,
            alarms: metrics.alarms,
            unread,
            stopped: deployment.stopped(),
            mapping: deployment.mapping.map(|mapping| MappingState {
                state: mapping.state,
                maximum_concurrency: mapping.maximum_concurrency,
            }),
            handler: deployment.handler,
            stack: deployment.stack,
        })
    }
}

/// What CloudWatch says. What it refuses is refused for as long as its answers are kept.
struct Metrics {
    at: Timestamp,
    last_hour: LastHour,
    history: Option<History>,
    alarms: Vec<Alarm>,
    unread: Unread,
}

impl Metrics {
    async fn read(account: &Account, deployment: &Deployment, with_history: bool, now: Timestamp) -> Self {
        let mut unread = Unread::new();
        let history = match with_history {
            true => History::read(account, deployment, now).await.map(Some),
            false => Ok(None),
        };
        Self {
            at: now,
            last_hour: or_unread(LastHour::read(account, deployment, now).await, LAST_HOUR, &mut unread),
            history: or_unread(history, HISTORY, &mut unread),
            alarms: or_unread(Alarm::all(account, deployment).await, ALARMS, &mut unread),
            unread,
        }
    }
}

impl Status {
    fn has_recent_metrics(&self, now: Timestamp) -> bool {
        now.since(self.metrics_read) < METRICS_AGAIN_AFTER
    }

    fn metrics(&self) -> Metrics {
        let of_metrics = |(title, _): &(&&str, &Failure)| [LAST_HOUR, HISTORY, ALARMS].contains(title);
        let unread = self.unread.iter().filter(of_metrics).map(|(title, why)| (*title, why.clone()));
        Metrics {
            at: self.metrics_read,
            last_hour: self.last_hour,
            history: self.history.clone(),
            alarms: self.alarms.clone(),
            unread: unread.collect(),
        }
    }
}

/// Why something could not be read, by the title of its line.
type Unread = BTreeMap<&'static str, Failure>;

/// A value, or nothing and why.
fn or_unread<T: Default>(value: Result<T, Failure>, title: &'static str, unread: &mut Unread) -> T {
    value.unwrap_or_else(|failure| {
        unread.insert(title, failure);
        T::default()
    })
}

/// The oldest dead-letter seen. CloudWatch's own age leaves out dead-letters that were received three
/// times, so it is taken from the dead-letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct OldestDeadLetter {
    /// When it was sent to the queue. SQS deletes it 14 days later.
    sent: Timestamp,
    age_seconds: u64,
    /// Every dead-letter was seen; if not, there may be an older one.
    is_exact: bool,
}

/// Each receives ten dead-letters at most.
const RECEIVES: usize = 10;

/// Looks at up to a hundred dead-letters, and hides none of them. Gives when the oldest was sent, and whether all were
/// seen.
async fn oldest_dead_letter(
    account: &Account,
    queue: &Queue,
    depth: &Depth,
) -> Result<Option<(Timestamp, bool)>, Failure> {
    let sent_at = MessageSystemAttributeName::SentTimestamp;
    let mut seen = BTreeSet::new();
    let mut oldest: Option<Timestamp> = None;
    for _ in 0..RECEIVES {
        if seen.len() as u64 >= depth.total() {
            break;
        }
        let call = account.sqs.receive_message().queue_url(&queue.url).max_number_of_messages(10);
        let call = call.visibility_timeout(0).message_system_attribute_names(sent_at.clone());
        let answer = call.send().await.or_failure("sqs:ReceiveMessage", queue.name())?;
        for message in answer.messages.unwrap_or_default() {
            let sent = message.attributes.and_then(|it| it.get(&sent_at)?.parse().ok());
            oldest = oldest.into_iter().chain(sent.map(Timestamp::from_millis)).min();
            seen.insert(message.message_id);
        }
    }
    Ok(oldest.map(|sent| (sent, seen.len() as u64 >= depth.total())))
}

/// SQS deletes a dead-letter after 14 days. Four days before, somebody should look.
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
fn text(status: &Status, place: &str) -> String {
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

fn last_hour(hour: &LastHour) -> String {
    let counts = [hour.arrived, hour.dead_lettered, hour.invocations, hour.errors, hour.throttles];
    if counts.iter().all(Option::is_none) {
        return "CloudWatch has no data".into();
    }
    let [arrived, dead, invocations, errors, throttles] =
        counts.map(|count| count.map_or_else(|| "?".into(), rounded));
    format!(
        "{arrived} arrived, {dead} dead-lettered; handler: {invocations} invocations, {errors} errors, {throttles} throttles"
    )
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

/// Fails if nothing is retried, or if nobody knows what is paused, and says why.
fn is_running(status: &Status) -> Result<(), String> {
    if let Some(why) = status.stopped {
        return Err(why.to_string());
    }
    if status.pauses_problem.is_some() {
        return Err("the pauses are unreadable".into());
    }
    Ok(())
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
    let lines = status.retries.iter().flatten().map(|order| shown(&order.line()).into_owned());
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
    use super::*;
    use crate::operate::alarms::Watched;
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    fn quiet() -> Status {
        Status {
            handler: "retry".into(),
            stack: Some("comeback".into()),
            version: Some("0.1.0".into()),
            refused_settings: Vec::new(),
            retry_queue: Depth { visible: 0, in_flight: 0, delayed: 0 },
            hide_up_to: Some(50_000),
            policies: Vec::new(),
            dead_letters: Depth { visible: 0, in_flight: 0, delayed: 0 },
            oldest_dead_letter: None,
            mapping: Some(MappingState { state: "Enabled".into(), maximum_concurrency: Some(10) }),
            stopped: None,
            pauses: Some(Vec::new()),
            retries: Some(Vec::new()),
            pauses_problem: None,
            pauses_nearly_full: None,
            last_hour: LastHour::default(),
            history: None,
            alarms: Vec::new(),
            unread: BTreeMap::new(),
            metrics_read: Timestamp::from_secs(0),
        }
    }

    #[test]
    fn what_could_not_be_read_is_said_beside_the_rest() {
        let denied = Failure::CouldNot("cloudwatch:DescribeAlarms of retry: denied".into());
        let status = Status { unread: [(ALARMS, denied)].into(), ..quiet() };
        let text = plain(&status);
        assert!(
            text.contains("\nPauses        none\nAlarms        not read: cloudwatch:DescribeAlarms"),
            "{text}"
        );
        assert!(!text.contains("none set"), "{text}");
    }

    #[test]
    fn cloudwatch_is_asked_once_a_minute() {
        let denied = || Failure::CouldNot("denied".into());
        let unread = Unread::from([(ALARMS, denied()), (OLDEST, denied())]);
        let status = Status { unread, metrics_read: Timestamp::from_secs(100), ..quiet() };
        assert!([100, 159].iter().all(|now| status.has_recent_metrics(Timestamp::from_secs(*now))));
        assert!(!status.has_recent_metrics(Timestamp::from_secs(160)));
        let kept = status.metrics();
        assert_eq!(kept.unread, Unread::from([(ALARMS, denied())]), "a refusal is an answer too");
        assert_eq!(kept.at, Timestamp::from_secs(100));
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
        assert_eq!(plain(&quiet()), expected);
    }

    #[test]
    fn a_handler_that_refuses_its_settings_does_not_start() {
        let refused_settings = vec!["BASE_BACKOFF is 60 s; it must be 1 s to MAX_BACKOFF (30 s)".to_owned()];
        let text = text(
            &Status { refused_settings, stopped: Some(Stopped::RefusesSettings), ..quiet() },
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
        let status = Status { version: Some(hostile()), policies, alarms, ..quiet() };
        let refusing =
            Status { refused_settings: vec![hostile()], stopped: Some(Stopped::RefusesSettings), ..quiet() };
        let text = text(&status, "") + &text(&refusing, "");
        assert!(text.matches("\\u{9b}2J").count() == 5 && !is_obeyed_anywhere(&text), "{text}");
    }

    #[test]
    fn a_deployment_that_retries_nothing_is_broken() {
        let stopped = Status { stopped: Some(Stopped::NoConcurrency), ..quiet() };
        assert_eq!(is_running(&stopped), Err(Stopped::NoConcurrency.to_string()));
        let said = "Handler       its reserved concurrency is 0, so nothing is retried; `comeback doctor --only CB023`";
        assert!(plain(&stopped).contains(said), "{}", plain(&stopped));
    }

    #[test]
    fn a_sample_of_young_dead_letters_says_nothing_of_the_oldest() {
        let line = |age_seconds, is_exact| {
            let oldest = OldestDeadLetter { sent: Timestamp::from_secs(0), age_seconds, is_exact };
            let dead_letters = Depth { visible: 200, ..Depth::default() };
            let status = Status { dead_letters, oldest_dead_letter: Some(oldest), ..quiet() };
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
        let status = Status { pauses: None, pauses_problem: Some(problem.into()), ..quiet() };
        let (expected, text) = (format!("\nPauses        unknown: {problem}\n"), plain(&status));
        assert!(text.contains(&expected) && text.contains("\nAlarms        none set\n"), "{text}");
        assert_eq!(
            is_running(&status),
            Err("the pauses are unreadable".to_owned()),
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
            alarms: vec![alarm("letters", "ALARM"), alarm("errors", "OK")],
            ..quiet()
        }
    }

    #[test]
    fn a_busy_deployment_says_what_is_wrong_with_it() {
        let expected = "\
retry

Waiting       1,234: 1,200 hidden, 34 delayed
Due           3, the oldest message 1m 15s old
Dead-letters  7 (2 hidden by a command, for up to 15m after it ends), the oldest at least 11d old; SQS deletes it after 14 days
Last hour     1,500 arrived, ? dead-lettered; handler: ? invocations, ? errors, ? throttles
Handler       its mapping is Disabled: nothing is retried
Version       unknown: the handler has no tag comeback:version that you may read; the newest `the retry handler starts` line in its log has it
Policies      orders: MAX_AGE=2h
              export-*: BACKOFFS=5m,2h
Pauses        orders:live paused 25h ago by anna, until resumed: deploy 4711
              every function paused 1m ago, until 2023-11-14T22:13:20.000Z
Retry now     every function (Timeout*), requested at 2023-11-14T22:13:20.000Z by anna, ends at 2023-11-14T23:23:20.000Z
Alarms        1 of 2 alarms in state ALARM: letters

Message counts are approximate and up to a minute old. `comeback waiting` lists waiting events.
";
        assert_eq!(plain(&busy()), expected);
    }
}
