//! `comeback waiting`: which events wait, for what, and until when.
//!
//! SQS cannot list a queue, and shows nothing of a hidden message. The handler's log is the only index: its last line about
//! a message says whether it waits.

mod events;
mod wanted;

pub(crate) use events::{WaitingEvent, Waits, Why};
pub(crate) use wanted::Wanted;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use comeback_engine::{Pauses, Policies, QUEUE_VISIBILITY_TIMEOUT, Timestamp};
use comfy_table::{ContentArrangement, Table, presets};
use indicatif::HumanCount;
use serde::Serialize;

use crate::clock;
use crate::failure;
use crate::operate::account::{Account, Failure, Or as _};
use crate::operate::deployment::{Deployment, Depth};
use crate::operate::function::{FunctionName, short_name};
use crate::operate::log::{HandlerLine, LogEvent, Search};
use crate::operate::pauses::{self, in_force::InForce, noticed_within};
use crate::operate::session::{Common, Session};
use crate::operate::waiting::events::Group;
use crate::text::durations::{self, short};
use crate::text::numbers::counted;
use crate::text::terminal::{Progress, align_right, shown, unwrapped_table};

/// SQS hides a message for 12 hours at most. Then the handler receives it, and writes a line about it; if it was throttled,
/// after another visibility timeout of the queue.
const LONGEST_HIDDEN: Duration = Duration::from_secs(12 * 3_600 + QUEUE_VISIBILITY_TIMEOUT.as_secs());
/// SQS keeps no message for longer.
const RETENTION: Duration = Duration::from_secs(14 * 86_400);
const DAY: Duration = Duration::from_secs(86_400);
/// The log levels that hide lines of level INFO.
const HIDING: [&str; 3] = ["WARN", "ERROR", "FATAL"];

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback waiting
  comeback waiting orders --error 'Timeout*' --each
  comeback waiting --due-within 1h --each --limit 20
  comeback waiting --json";

#[derive(Debug, Args)]
pub(crate) struct WaitingArguments {
    #[command(flatten)]
    wanted: Wanted,
    /// Only events whose next retry is due within this time
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    due_within: Option<Duration>,
    /// List the events one by one too, the first due first
    #[arg(long)]
    each: bool,
    /// Events that --each lists, at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// How far back to read the log [default: as long as a wait can last]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    since: Option<Duration>,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &WaitingArguments, session: Session) -> Result<(), failure::Failure> {
    let now = clock::now();
    let read = async {
        let deployment = session.deployment().await?;
        Reading::read(&session, deployment, &arguments.wanted, arguments.since, now).await
    };
    let mut reading = session.interrupt.or(read).await?;
    reading.heed_pauses(now);
    let report = reading.report(arguments, now);
    session.answer(&report);
    if !session.common.json {
        write!(anstream::stdout(), "{}", text(&report, now))?;
    }
    Ok(reading.unknown_functions(&arguments.wanted)?)
}

/// What a deployment's queue and log say.
pub(crate) struct Reading {
    deployment: Deployment,
    /// The flags of commands that it suggests.
    place: String,
    retry_queue: Depth,
    /// `None` if the handler reads none.
    pauses: Result<Option<Pauses>, Failure>,
    since: Timestamp,
    /// How long ago the last line about an event that waits may have been written.
    reach: Duration,
    /// How long the log group keeps a line; `None` if that is no shorter.
    kept_for: Option<Duration>,
    has_log: bool,
    pub(crate) waits: Waits,
    /// Lines about the events that the filter takes.
    lines: u64,
    /// Functions of the filter of which there are lines.
    logged: BTreeSet<usize>,
}

impl Reading {
    /// `since`: how far back to read the log; `None`: as long as a wait can last.
    pub(crate) async fn read(
        session: &Session,
        deployment: Deployment,
        wanted: &Wanted,
        since: Option<Duration>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let account = &session.account;
        let retry_queue = Depth::read(account, &deployment.retry_queue).await?;
        let pauses = pauses::read(account, &deployment).await;
        let reach = reach(&deployment, &retry_queue, &pauses, now);
        let since = before(now, since.unwrap_or(reach).min(RETENTION));
        let group = deployment.log_group.as_str();
        // No log group keeps lines for less than a day.
        let kept_for = if reach > DAY { kept_for(account, group).await? } else { None };
        let kept_for = kept_for.filter(|kept_for| *kept_for < reach);
        let search = Search { group, term: "", since, until: Some(now), stream: None };
        let progress = Progress::endless("reading the handler's log: {pos} lines");
        let (mut waits, mut lines, mut logged) = (Waits::default(), 0, BTreeSet::new());
        let functions = || wanted.functions.iter().enumerate();
        let take = |event: LogEvent| {
            let Some(line) = HandlerLine::read(&event.message) else { return };
            logged.extend(functions().filter(|(_, it)| it.names(&line.target)).map(|(index, _)| index));
            if wanted.takes(&line) {
                waits.take(&line);
                lines += 1;
                progress.set(lines);
            }
        };
        let has_log = search.each_by_pattern(account, Some(wanted.pattern()), take).await?;
        let place = session.common.place_flags();
        Ok(Self {
            deployment,
            place,
            retry_queue,
            pauses,
            since,
            reach,
            kept_for,
            has_log,
            waits,
            lines,
            logged,
        })
    }

    /// Lets the pauses in force count, and not those that the handler knew when it wrote its lines.
    fn heed_pauses(&mut self, now: Timestamp) {
        let Ok(pauses) = &self.pauses else { return };
        let none = Pauses::default();
        let pauses = pauses.as_ref().unwrap_or(&none);
        let noticed = noticed_within(&self.deployment).unwrap_or_default();
        self.waits.heed(|target| InForce::of(pauses, target, noticed, now));
    }

    fn report(&self, arguments: &WaitingArguments, now: Timestamp) -> Report<'_> {
        let by = arguments.due_within.map(|within| now.saturating_add(within));
        let groups = Group::all(self.waits.due_by(by));
        let events = arguments.each.then(|| self.waits.first_due_by(by, arguments.limit as usize));
        let is_everything =
            arguments.wanted.takes_everything() && by.is_none() && before(now, self.reach) >= self.since;
        Report {
            since: self.since,
            lines: self.lines,
            found: groups.iter().map(|group| group.count).sum(),
            is_everything,
            retry_queue: self.retry_queue,
            notes: self
                .notes(&groups, now)
                .into_iter()
                .chain(self.unlogged_qualifiers(&arguments.wanted))
                .collect(),
            groups,
            events,
        }
    }

    /// What the log does not show of everything that waits.
    pub(crate) fn notes_on_all(&self, now: Timestamp) -> Vec<String> {
        self.notes(&Group::all(self.waits.due_by(None)), now)
    }

    /// What the log does not show, and why.
    fn notes(&self, groups: &[Group<'_>], now: Timestamp) -> Vec<String> {
        let unknown = |failure: &Failure| format!("Whether a function is paused now is not known: {failure}");
        let mut notes: Vec<String> = self.pauses.as_ref().err().map(unknown).into_iter().collect();
        let mut note = |is_so: bool, text: String| notes.extend(is_so.then_some(text));
        let Self { deployment, place, retry_queue, since, reach, .. } = self;
        let group = &deployment.log_group;
        note(
            !self.has_log,
            format!("There is no log group {group}: the handler has never run, or it was deleted."),
        );
        let level = deployment.log_level.as_deref().unwrap_or_default();
        note(
            HIDING.contains(&level),
            format!("The handler's log level is {level}, which hides most of what waits: set it to INFO."),
        );
        let visible = retry_queue.visible;
        note(
            visible > 0,
            format!(
                "Due, and not yet received by the handler: about {}. `comeback status{place}` says whether it runs.",
                HumanCount(visible)
            ),
        );
        note(
            *since > before(now, *reach),
            format!(
                "An event may wait for {} without a line: some may be missing that have none since {since}.",
                durations::text(*reach)
            ),
        );
        note(
            self.kept_for.is_some(),
            format!(
                "{group} keeps lines for only {}, and an event may wait for {} without one: some may be missing.",
                durations::text(self.kept_for.unwrap_or_default()),
                durations::text(*reach)
            ),
        );
        let held: u64 = groups.iter().map(|group| group.held).sum();
        note(
            held > 0,
            format!(
                "{} held by a pause, and due when it ends: `comeback pause --list{place}`.",
                if held == 1 { "1 event is".into() } else { format!("{} events are", HumanCount(held)) }
            ),
        );
        notes
    }

    /// The functions of the filter of which there are no lines, and whether the handler retries each.
    fn unlogged<'w>(&self, wanted: &'w Wanted) -> impl Iterator<Item = (&'w FunctionName, bool)> {
        let unlogged = wanted.functions.iter().enumerate().filter(|(index, _)| !self.logged.contains(index));
        unlogged.map(|(_, function)| (function, self.deployment.retries(&self.deployment.arn_of(function))))
    }

    /// The allow-list usually allows every alias, also one that does not exist.
    fn unlogged_qualifiers(&self, wanted: &Wanted) -> impl Iterator<Item = String> {
        let unlogged =
            self.unlogged(wanted).filter(|(function, is_known)| *is_known && function.qualifier.is_some());
        unlogged.map(|(function, _)| {
            format!("No line names {function} since {}: its alias or version may be misspelt.", self.since)
        })
    }

    /// Fails for the functions that the handler does not retry, and of which it has logged nothing.
    fn unknown_functions(&self, wanted: &Wanted) -> Result<(), Failure> {
        let name = |function: &FunctionName| match function.place {
            Some(_) => self.deployment.arn_of(function).to_string(),
            None => function.to_string(),
        };
        let unknown = self.unlogged(wanted).filter(|(_, is_known)| !is_known);
        let unknown: Vec<_> = unknown.map(|(function, _)| name(function)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        Err(Failure::Undone(format!(
            "{} retries no function {}, and has logged none of its events since {}: check the name, or attach it",
            self.deployment.handler,
            unknown.join(", "),
            self.since
        )))
    }
}

/// How long ago the last line about an event that waits may have been written.
///
/// A hidden message comes back to the handler, which writes a line. A message that is sent again with a delay comes back
/// too, but only its first move and its end have lines. So its wait may be as long as the longest `MAX_AGE` allows. That clock stops
/// while the function is paused, so then only SQS's retention ends it.
fn reach(
    deployment: &Deployment,
    queue: &Depth,
    pauses: &Result<Option<Pauses>, Failure>,
    now: Timestamp,
) -> Duration {
    if queue.delayed == 0 {
        return LONGEST_HIDDEN;
    }
    let Ok(policies) = deployment.policies() else { return RETENTION };
    let Ok(pauses) = pauses else { return RETENTION };
    let longest = longest_age(&policies);
    let begin = before(now, longest);
    let is_recent = |until: Option<Timestamp>| until.is_none_or(|until| until > begin);
    if pauses.iter().flat_map(Pauses::iter).any(|pause| is_recent(pause.until)) {
        return RETENTION;
    }
    longest.clamp(LONGEST_HIDDEN, RETENTION)
}

/// The longest `MAX_AGE` of any function.
fn longest_age(policies: &Policies) -> Duration {
    let of_functions = policies.entries().iter().map(|entry| entry.policy().max_age());
    of_functions.fold(policies.stack().max_age(), Duration::max)
}

/// How long a log group keeps a line; `None` if for ever, or if there is no such group.
async fn kept_for(account: &Account, group: &str) -> Result<Option<Duration>, Failure> {
    let pages = account.logs.describe_log_groups().log_group_name_prefix(group).into_paginator();
    let groups = pages.items().send().try_collect().await.or_failure("logs:DescribeLogGroups", group)?;
    let days =
        groups.iter().find(|it| it.log_group_name() == Some(group)).and_then(|it| it.retention_in_days());
    Ok(days.map(|days| DAY * days.unsigned_abs()))
}

fn before(now: Timestamp, duration: Duration) -> Timestamp {
    let back = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(back))
}

/// What waits, as far as the log shows it.
#[derive(Clone, Debug, Serialize)]
struct Report<'r> {
    /// The log was read from here on.
    since: Timestamp,
    /// Lines about the events that the filter takes.
    lines: u64,
    /// Events that wait, and that the filter takes.
    found: u64,
    /// Nothing was filtered, so `found` can be compared with the queue.
    is_everything: bool,
    /// SQS's own counts: approximate, and a minute old.
    retry_queue: Depth,
    groups: Vec<Group<'r>>,
    /// `None` without `--each`.
    events: Option<Vec<WaitingEvent<'r>>>,
    /// What is not known, and why.
    notes: Vec<String>,
}

fn text(report: &Report<'_>, now: Timestamp) -> String {
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
    report.notes.iter().fold(text, |text, note| text + &shown(note) + "\n")
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
    use super::*;
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    const NOW: Timestamp = Timestamp::from_secs(1_789_400_000);
    const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";

    #[test]
    fn a_functions_own_age_reaches_as_far_back() {
        let mut deployment = Deployment::sample();
        let mut longest = |text: &str| {
            deployment.variables.insert("POLICIES".into(), text.into());
            longest_age(&deployment.policies().unwrap()).as_secs() / 3_600
        };
        assert_eq!(longest(""), 24);
        assert_eq!(longest("orders MAX_AGE=2h"), 24);
        assert_eq!(longest("orders MAX_AGE=2h; export MAX_AGE=3d; x JITTER=none"), 72);
    }

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
            logged: NOW,
        }
    }

    fn reading(retry_queue: Depth) -> Reading {
        Reading {
            deployment: Deployment::sample(),
            place: " --stack shop".into(),
            retry_queue,
            pauses: Ok(None),
            since: before(NOW, LONGEST_HIDDEN),
            reach: LONGEST_HIDDEN,
            kept_for: None,
            has_log: true,
            waits: Waits::default(),
            lines: 0,
            logged: BTreeSet::new(),
        }
    }

    fn report(events: Vec<WaitingEvent<'_>>) -> Report<'_> {
        let retry_queue = Depth { visible: 2, in_flight: 1_200, delayed: 4 };
        let groups = Group::all(events.iter().cloned());
        let notes = reading(retry_queue).notes(&groups, NOW);
        let found = events.len() as u64;
        let since = before(NOW, LONGEST_HIDDEN);
        let is_everything = true;
        Report { since, lines: 9, found, is_everything, retry_queue, groups, events: Some(events), notes }
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
    fn each_thing_that_is_not_known_is_said() {
        let notes = |change: &dyn Fn(&mut Reading)| {
            let mut reading = reading(Depth::default());
            change(&mut reading);
            reading.notes(&[], NOW)
        };
        assert_eq!(notes(&|_| ()), [] as [&str; 0]);
        let log = "/aws/lambda/retry-handler";
        type Change<'c> = &'c dyn Fn(&mut Reading);
        let denied = Failure::CouldNot("ssm:GetParameter of p: denied".into());
        let cases: [(Change<'_>, String); 6] = [
            (
                &|it| it.pauses = Err(denied.clone()),
                "Whether a function is paused now is not known: ssm:GetParameter of p: denied".into(),
            ),
            (&|it| it.has_log = false, format!("There is no log group {log}: the handler has never run, or it was deleted.")),
            (
                &|it| it.deployment.log_level = Some("WARN".into()),
                "The handler's log level is WARN, which hides most of what waits: set it to INFO.".into(),
            ),
            (
                &|it| it.retry_queue.visible = 2,
                "Due, and not yet received by the handler: about 2. `comeback status --stack shop` says whether it runs.".into(),
            ),
            (
                &|it| it.since = before(NOW, Duration::from_secs(3_600)),
                "An event may wait for 12h 20m 30s without a line: some may be missing that have none since 2026-09-14T14:33:20.000Z.".into(),
            ),
            (
                &|it| (it.reach, it.kept_for) = (RETENTION, Some(DAY)),
                format!("{log} keeps lines for only 24h, and an event may wait for 14d without one: some may be missing."),
            ),
        ];
        for (change, note) in cases {
            assert!(notes(change).contains(&note), "{note}: {:?}", notes(change));
        }
    }

    #[test]
    fn a_function_that_nobody_knows_is_an_error() {
        let reading = reading(Depth::default());
        let unknown = |names: &[&str]| {
            let functions = names.iter().map(|name| name.parse().unwrap()).collect();
            reading.unknown_functions(&Wanted { functions, ..Wanted::default() })
        };
        assert_eq!(unknown(&["orders"]), Ok(()));
        let elsewhere = ORDERS.replace("eu-west-1", "eu-west-2");
        let error = unknown(&[&elsewhere]).unwrap_err().to_string();
        assert!(error.contains(&format!("retries no function {elsewhere},")), "{error}");
        let functions = ["orders", "orders:lvie"].map(|name| name.parse().unwrap()).into();
        let notes: Vec<String> =
            reading.unlogged_qualifiers(&Wanted { functions, ..Wanted::default() }).collect();
        let note =
            "No line names orders:lvie since 2026-09-14T03:12:50.000Z: its alias or version may be misspelt.";
        assert_eq!(notes, [note]);
        let error = unknown(&["orders", "order"]).unwrap_err();
        assert!(
            matches!(&error, Failure::Undone(text) if text.contains("retries no function order,")),
            "{error}"
        );
    }

    #[test]
    fn an_event_cannot_command_the_terminal() {
        let report = report(vec![event(HOSTILE, HOSTILE, None, Why::Backoff)]);
        let text = text(&report, NOW);
        assert!(text.contains("\\u{1b}]") && !is_obeyed_anywhere(&text), "{text}");
    }
}
