//! `comeback waiting`: which events wait, for what, and until when.
//!
//! SQS cannot list a queue, and shows nothing of a hidden message. The handler's log is the only index.

mod events;
mod returns;
mod text;
mod wanted;

pub(crate) use events::{Group, WaitingEvent, Waits, Why};
pub(crate) use returns::Returns;
pub(crate) use text::{Report, age, due};
pub(crate) use wanted::Wanted;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{BufWriter, Write as _};
use std::ops::Range;
use std::time::Duration;

use clap::Args;
use comeback_engine::{
    LONGEST_VISIBILITY, LogLine, NotALine, Pauses, Policies, QUEUE_VISIBILITY_TIMEOUT, RETENTION, Timestamp,
};
use indicatif::HumanCount;

use crate::account::{Account, Failure, Or as _};
use crate::clock;
use crate::failure;
use crate::operate::deployment::{Deployment, Depth, Unlisted};
use crate::operate::function::{FunctionName, attach_commands};
use crate::operate::log::{HIDING_INFO, LogEvent, Search};
use crate::operate::pauses::requests::RetryRequest;
use crate::operate::pauses::{self, in_force::InForce, noticed_within};
use crate::operate::session::{Common, Session};
use crate::operate::waiting::text::write;
use crate::text::durations;
use crate::text::numbers::counted;
use crate::text::terminal::shown;

/// SQS hides a message for 12 hours at most. Then the handler receives it, and writes a line about it; if it was throttled,
/// after another visibility timeout of the queue.
pub(crate) const LONGEST_HIDDEN: Duration = LONGEST_VISIBILITY.saturating_add(QUEUE_VISIBILITY_TIMEOUT);
const DAY: Duration = Duration::from_secs(86_400);

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
    /// Also list each event, the first due first
    #[arg(long)]
    each: bool,
    /// Maximum events that --each lists
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// How far back to read the log [default: as far as an event can wait]
    #[arg(long, value_name = "TIME", value_parser = durations::read)]
    since: Option<Duration>,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(
    arguments: &WaitingArguments,
    session: Session,
) -> Result<(), failure::CommandFailure> {
    let now = clock::now();
    let read = async {
        let deployment = session.deployment().await?;
        Reading::read(&session, deployment, arguments.scope(), now).await
    };
    let mut reading = session.interrupt.or(read).await?;
    reading.heed_pauses(now);
    let mut report = reading.report(&arguments.listing(now), now);
    report.notes.extend(reading.unlogged_qualifiers(&arguments.wanted));
    let result = reading.unknown_functions(&arguments.wanted).map_err(failure::CommandFailure::from);
    if session.common.json {
        session.print(&report, result.as_ref().err())?;
        return result;
    }
    let mut out = BufWriter::new(anstream::stdout().lock());
    write(&report, now, &mut out)?;
    out.flush()?;
    drop(out);
    let unmatched = tokio::select! {
        errors = reading.unmatched(&session, arguments.scope(), now) => errors,
        () = session.interrupt.raised() => None,
    };
    if let Some((glob, errors)) = arguments.wanted.error.as_ref().zip(unmatched) {
        anstream::eprintln!("note: {}", shown(&no_error_matches(glob, &errors)));
    }
    result
}

impl WaitingArguments {
    fn scope(&self) -> Scope<'_> {
        Scope { wanted: &self.wanted, since: self.since }
    }

    /// The log was read with the filter, so that nothing is left to filter but by time.
    fn listing(&self, now: Timestamp) -> Listing {
        let by = self.due_within.map(|within| now.saturating_add(within));
        Listing { wanted: Wanted::default(), by, events: self.each.then_some(0..self.limit as usize) }
    }
}

/// What of a reading is reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) wanted: Wanted,
    /// Only events that are due by then.
    pub(crate) by: Option<Timestamp>,
    /// Which of the events are listed one by one, the first due first; `None`: none.
    pub(crate) events: Option<Range<usize>>,
}

/// A handler may write a line late, and CloudWatch may show it later.
const LATE: Duration = Duration::from_secs(120);

/// What a deployment's queue and log say.
pub(crate) struct Reading {
    deployment: Deployment,
    /// The flags of commands that it suggests.
    place: String,
    /// Nothing was filtered.
    is_everything: bool,
    retry_queue: Depth,
    /// `None` if the handler reads none.
    pauses: Result<Option<Pauses>, Failure>,
    /// When the first line was read.
    begun: Timestamp,
    since: Timestamp,
    /// The log was read up to here; `None` if it was not read yet.
    until: Option<Timestamp>,
    /// How long ago the last line about an event that waits may have been written.
    reach: Duration,
    /// How long the log group keeps a line; `None` if that is no shorter.
    kept_for: Option<Duration>,
    has_log: bool,
    pub(crate) waits: Waits,
    /// Lines about the events that the filter takes.
    lines: u64,
    /// Lines of a later version than this command knows.
    newer: u64,
    /// Functions of the filter of which there are lines.
    logged: BTreeSet<usize>,
}

/// What to read of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) wanted: &'a Wanted,
    /// How far back; `None`: as long as a wait can last.
    pub(crate) since: Option<Duration>,
}

impl Reading {
    pub(crate) async fn read(
        session: &Session,
        deployment: Deployment,
        scope: Scope<'_>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let reading = RefCell::new(Self::begin(session, deployment, scope, now).await?);
        Self::read_log(&reading, session, scope.wanted, now).await?;
        Ok(reading.into_inner())
    }

    /// Reads what is new since the last time, of everything. Others may look at the reading meanwhile. Whoever drops this on
    /// the way may go on later.
    pub(crate) async fn go_on(
        reading: &RefCell<Self>,
        session: &Session,
        deployment: Deployment,
        now: Timestamp,
    ) -> Result<(), Failure> {
        let wanted = Wanted::default();
        let scope = Scope { wanted: &wanted, since: None };
        let next = Self::begin(session, deployment, scope, now).await?;
        let (begun, since) = (reading.borrow().begun, reading.borrow().since);
        // Settled messages are remembered, so once a day all is read anew. So it is if waits may be longer than before.
        if now.since(begun) >= DAY || next.since < since {
            let next = RefCell::new(next);
            Self::read_log(&next, session, &wanted, now).await?;
            reading.replace(next.into_inner());
            return Ok(());
        }
        reading.replace_with(|known| {
            let Self { begun, until, newer, lines, has_log, .. } = *known;
            let waits = std::mem::take(&mut known.waits);
            Self { begun, until, newer, lines, has_log, waits, ..next }
        });
        Self::read_log(reading, session, &wanted, now).await
    }

    /// All but the log.
    async fn begin(
        session: &Session,
        deployment: Deployment,
        Scope { wanted, since }: Scope<'_>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let account = &session.account;
        let retry_queue = Depth::read(account, &deployment.retry_queue).await?;
        let pauses = pauses::read(account, &deployment).await;
        let reach = reach(&deployment, &retry_queue, &pauses, now);
        // No log group keeps lines for less than a day.
        let kept_for = if reach > DAY { kept_for(account, &deployment.log_group).await? } else { None };
        Ok(Self {
            place: session.common.place_flags(),
            deployment,
            is_everything: wanted.takes_everything(),
            retry_queue,
            pauses,
            begun: now,
            since: now.before(since.unwrap_or(reach).min(RETENTION)),
            until: None,
            reach,
            kept_for: kept_for.filter(|kept_for| *kept_for < reach),
            has_log: false,
            waits: Waits::default(),
            lines: 0,
            newer: 0,
            logged: BTreeSet::new(),
        })
    }

    /// Reads the log, from where it was read last.
    async fn read_log(
        reading: &RefCell<Self>,
        session: &Session,
        wanted: &Wanted,
        now: Timestamp,
    ) -> Result<(), Failure> {
        let (group, since) = {
            let Self { deployment, since, until, .. } = &*reading.borrow();
            (deployment.log_group.clone(), until.map_or(*since, |until| until.before(LATE).max(*since)))
        };
        let search = Search { group: &group, term: "", since, until: Some(now), stream: None };
        let progress = session.progress(None, "reading the handler's log: {pos} pages");
        let take_page = |page: Vec<LogEvent>| {
            let mut reading = reading.borrow_mut();
            page.iter().for_each(|event| reading.take(event, wanted));
            progress.advance(1);
        };
        let has_log = search.pages_by_pattern(&session.account, Some(wanted.pattern()), take_page).await?;
        let mut reading = reading.borrow_mut();
        reading.has_log = has_log;
        reading.until = Some(now);
        let since = reading.since;
        reading.waits.forget_before(since);
        reading.heed_allow_list();
        Ok(())
    }

    fn take(&mut self, event: &LogEvent, wanted: &Wanted) {
        // A line may be read again, for the late ones beside it.
        let is_new = self.until.is_none_or(|until| event.at >= until);
        let line = match LogLine::read(&event.message) {
            Ok(line) => line,
            Err(NotALine::Newer) => return self.newer += u64::from(is_new),
            Err(NotALine::Other) => return,
        };
        let Some(about) = &line.event else { return };
        let functions = wanted.functions.iter().enumerate();
        self.logged.extend(functions.filter(|(_, it)| it.names(&about.target)).map(|(index, _)| index));
        if wanted.takes(about) {
            self.waits.take(&line);
            self.lines += u64::from(is_new);
        }
    }

    /// Lets the allow-list in force count. A handler that refuses its settings dead-letters nothing.
    fn heed_allow_list(&mut self) {
        if let Ok(policies) = self.deployment.policies() {
            let gives_up = |target: &str| Unlisted::of(&policies, target) == Some(Unlisted::DeadLettered);
            self.waits.heed_allow_list(gives_up);
        }
    }

    /// Lets the pauses in force count, and not those that the handler knew when it wrote its lines.
    pub(crate) fn heed_pauses(&mut self, now: Timestamp) {
        let Ok(pauses) = &self.pauses else { return };
        let none = Pauses::default();
        let pauses = pauses.as_ref().unwrap_or(&none);
        let noticed = noticed_within(&self.deployment).unwrap_or_default();
        self.waits.heed(|target| InForce::of(pauses, target, noticed, now));
    }

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

    pub(crate) fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    /// Whether a function is paused, if that is known.
    pub(crate) fn in_force(&self, target: &str, now: Timestamp) -> Option<InForce> {
        let pauses = self.pauses.as_ref().ok()?.as_ref()?;
        Some(InForce::of(pauses, target, noticed_within(&self.deployment).unwrap_or_default(), now))
    }

    /// The requests to retry now that are in force; `None` if they are not known.
    fn requests(&self, now: Timestamp) -> Option<Vec<RetryRequest>> {
        let pauses = self.pauses.as_ref().ok().and_then(Option::as_ref);
        pauses.map(|pauses| RetryRequest::in_force(pauses, now))
    }

    fn is_all_read(&self, now: Timestamp) -> bool {
        now.before(self.reach) >= self.since
    }

    /// Whether the log keeps and shows a line of each message that the handler has received.
    fn has_all_lines(&self, now: Timestamp) -> bool {
        self.is_all_read(now)
            && self.has_log
            && self.kept_for.is_none()
            && self.newer == 0
            && !self.hides_lines()
    }

    /// Whether the log has a line of everything that waits. With a filter, hidden messages without a line are not noticed.
    pub(crate) fn is_complete(&self, now: Timestamp) -> bool {
        let is_all_logged = self.retry_queue.visible == 0 && self.unlogged_messages(now) == 0;
        self.retry_queue.total() == 0 || self.has_all_lines(now) && is_all_logged
    }

    /// How many messages are hidden beside those found, if the log should have a line of each.
    fn unlogged_messages(&self, now: Timestamp) -> u64 {
        if !self.is_everything || !self.has_all_lines(now) {
            return 0;
        }
        let hidden = self.retry_queue.in_flight + self.retry_queue.delayed;
        hidden.saturating_sub(self.waits.count() as u64)
    }

    fn unlogged_note(&self, now: Timestamp) -> Option<String> {
        let unlogged = Some(self.unlogged_messages(now)).filter(|unlogged| *unlogged > 0)?;
        Some(format!(
            "About {} hidden messages have no line in the log. SQS's count may be a minute old, and lines \
             reach the log after some seconds. Messages of a handler that failed before it wrote a line \
             return within {}.",
            HumanCount(unlogged),
            durations::text(QUEUE_VISIBILITY_TIMEOUT)
        ))
    }

    /// The errors of the events that wait, if some do and none matches `--error`. This reads the log again, because
    /// CloudWatch passed no line of another error. It is only a hint, so a failure says nothing.
    pub(crate) async fn unmatched(
        &self,
        session: &Session,
        Scope { wanted, since }: Scope<'_>,
        now: Timestamp,
    ) -> Option<String> {
        if wanted.error.is_none() || self.retry_queue.total() == 0 || self.waits.all().next().is_some() {
            return None;
        }
        let wanted = Wanted { error: None, ..wanted.clone() };
        let all = Self::read(session, self.deployment.clone(), Scope { wanted: &wanted, since }, now).await;
        all.ok()?.waits.errors()
    }

    fn hides_lines(&self) -> bool {
        self.deployment.log_level.as_deref().is_some_and(|level| HIDING_INFO.contains(&level))
    }

    /// What the log does not show of everything that waits.
    pub(crate) fn notes_on_all(&self, now: Timestamp) -> Vec<String> {
        self.notes(&self.waits.all_groups(), now)
    }

    /// What the log does not show, and why.
    fn notes(&self, groups: &[Group<'_>], now: Timestamp) -> Vec<String> {
        let unknown = |failure: &Failure| format!("Unknown which functions are paused now: {failure}");
        let mut notes: Vec<String> = self.pauses.as_ref().err().map(unknown).into_iter().collect();
        notes.extend(self.deployment.stopped_note(&self.place));
        notes.extend(self.waits.ignored().into_iter().map(|(target, ignored)| {
            format!("A RetryAfter of {target} was ignored, so its events get the ordinary backoff: {ignored}")
        }));
        let mut note = |is_so: bool, text: String| notes.extend(is_so.then_some(text));
        let Self { deployment, place, retry_queue, since, reach, .. } = self;
        let group = &deployment.log_group;
        note(
            !self.has_log,
            format!("Log group {group} does not exist: the handler has never run, or the log was deleted."),
        );
        let level = deployment.log_level.as_deref().unwrap_or_default();
        note(
            self.hides_lines(),
            format!("The handler's log level is {level}, which hides most waiting events: set it to INFO."),
        );
        note(
            self.newer > 0,
            format!(
                "{} written by a newer handler and unreadable to this command: update the command.",
                counted(self.newer, "line was", "lines were")
            ),
        );
        let visible = retry_queue.visible;
        note(
            visible > 0,
            format!(
                "Due but not yet received by the handler: about {}. `comeback status{place}` says whether it \
                 runs.",
                HumanCount(visible)
            ),
        );
        note(
            *since > now.before(*reach),
            format!(
                "An event may wait {} without a new log line, so events last logged before {since} may be \
                 missing.",
                durations::text(*reach)
            ),
        );
        note(
            self.kept_for.is_some(),
            format!(
                "{group} keeps lines for only {}, but an event may wait {} between two lines, so some may be \
                 missing.",
                durations::text(self.kept_for.unwrap_or_default()),
                durations::text(*reach)
            ),
        );
        note(
            deployment.policies().is_ok_and(|policies| policies.stack().keeps_everything()),
            "The allow-list is empty: the handler keeps waiting events, but retries none until a function is \
             attached.".into(),
        );
        notes.extend(self.not_allowed_note(groups));
        let mut note = |is_so: bool, text: String| notes.extend(is_so.then_some(text));
        let held: u64 = groups.iter().map(|group| group.held).sum();
        note(
            held > 0,
            format!(
                "{} held by a pause until it ends: `comeback pause --list{place}`.",
                if held == 1 { "1 event is".into() } else { format!("{} events are", HumanCount(held)) }
            ),
        );
        notes
    }

    /// Which events the handler will dead-letter, because the allow-list lacks their functions, and how to keep them.
    fn not_allowed_note(&self, groups: &[Group<'_>]) -> Option<String> {
        let given_up = || groups.iter().filter(|group| group.not_allowed > 0);
        let count: u64 = given_up().map(|group| group.not_allowed).sum();
        let what = match count {
            0 => return None,
            1 => "1 event will be dead-lettered (target_not_allowed), because its function is".into(),
            _ => format!(
                "{} events will be dead-lettered (target_not_allowed), because their functions are",
                HumanCount(count)
            ),
        };
        let targets = given_up().filter_map(|group| group.target);
        let commands = attach_commands(targets, &self.deployment.handler_arn, &self.place);
        Some(format!("{what} not on the allow-list. To stop that: {commands}."))
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
            format!(
                "No log line since {} mentions {function}; its alias or version may be misspelled.",
                self.since
            )
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
            "{} does not retry {}, and has logged none of its events since {}; check the name, or attach the \
             function",
            self.deployment.handler,
            unknown.join(", "),
            self.since
        )))
    }
}

/// What is said where events wait, and an error glob takes none. `errors` are theirs.
pub(crate) fn no_error_matches(glob: &str, errors: &str) -> String {
    format!("no event has an error that matches {glob}; the errors are: {errors}")
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
    let begin = now.before(longest);
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::*;
    use crate::operate::deployment::Mapping;
    use crate::operate::log::tests::test_line;
    use crate::operate::session::DeploymentFlags;

    pub(super) const NOW: Timestamp = Timestamp::from_secs(1_789_400_000);
    pub(super) const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";

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

    pub(super) fn reading(retry_queue: Depth) -> Reading {
        Reading {
            deployment: Deployment { mapping: Some(Mapping::sample()), ..Deployment::sample() },
            place: " --stack shop".into(),
            is_everything: true,
            retry_queue,
            pauses: Ok(None),
            begun: NOW,
            until: Some(NOW),
            since: NOW.before(LONGEST_HIDDEN),
            reach: LONGEST_HIDDEN,
            kept_for: None,
            has_log: true,
            waits: Waits::default(),
            lines: 0,
            newer: 0,
            logged: BTreeSet::new(),
        }
    }

    #[tokio::test]
    async fn a_reading_goes_on_from_where_the_log_was_read_last() {
        let begun = Arc::new(Mutex::new(Vec::new()));
        let begins = Arc::clone(&begun);
        let line = |fields| serde_json::to_string(&test_line(fields)).unwrap();
        let waits = line(json!({"action": "hold", "due": NOW, "delay": 60}));
        let account = Account::answering(move |operation, body| match operation {
            "GetQueueAttributes" => json!({"Attributes": {
                "ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "1",
                "ApproximateNumberOfMessagesDelayed": "0",
            }}),
            "FilterLogEvents" => {
                begins.lock().unwrap().push(body["startTime"].as_u64().unwrap() / 1_000);
                // The server returns the same line each time, so it was late or is read again.
                json!({"events": [{"timestamp": NOW.as_millis(), "logStreamName": "s", "message": waits}]})
            }
            _ => panic!("{operation}"),
        });
        let common = Common { deployment: DeploymentFlags::sample(), json: false, yes: false };
        let session = Session::sample(account.await, &common);
        let (deployment, wanted) = (Deployment::sample(), Wanted::default());
        let scope = Scope { wanted: &wanted, since: None };
        let reading = Reading::read(&session, deployment.clone(), scope, NOW).await.unwrap();
        let reading = RefCell::new(reading);
        for seconds in [10, 20, DAY.as_secs()] {
            let now = NOW.saturating_add(Duration::from_secs(seconds));
            Reading::go_on(&reading, &session, deployment.clone(), now).await.unwrap();
        }
        let reach = LONGEST_HIDDEN.as_secs();
        let expected = [NOW.as_secs() - reach, NOW.as_secs() - 120, NOW.as_secs() - 110];
        let begun = begun.lock().unwrap();
        assert_eq!(begun[..3], expected);
        assert_eq!(begun[3], NOW.as_secs() + DAY.as_secs() - reach, "all is read anew once a day");
    }

    #[test]
    fn a_log_without_gaps_shows_everything() {
        let hidden = Depth { in_flight: 2, ..Depth::default() };
        let complete = |change: &dyn Fn(&mut Reading)| {
            // With a filter, the other messages need no lines here.
            let mut reading = Reading { is_everything: false, ..reading(hidden) };
            change(&mut reading);
            reading.is_complete(NOW)
        };
        assert!(complete(&|_| ()));
        assert!(!complete(&|it| it.is_everything = true), "two messages have no line");
        assert!(!complete(&|it| it.has_log = false));
        assert!(!complete(&|it| it.since = NOW.before(DAY / 24)));
        assert!(!complete(&|it| it.kept_for = Some(DAY)));
        assert!(!complete(&|it| it.retry_queue.visible = 1));
        assert!(!complete(&|it| it.newer = 1));
        assert!(!complete(&|it| it.deployment.log_level = Some("WARN".into())));
        assert!(complete(&|it| (it.has_log, it.retry_queue) = (false, Depth::default())), "nothing waits");
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
        let cases: [(Change<'_>, String); 8] = [
            (&|it| it.newer = 2, "2 lines were written by a newer handler and unreadable to this command: \
                                  update the command.".into()),
            (
                &|it| it.deployment.never_runs = true,
                "Now the handler's reserved concurrency is 0, so nothing is retried: `comeback doctor --short --stack shop` names the fix.".into(),
            ),
            (
                &|it| it.pauses = Err(denied.clone()),
                "Unknown which functions are paused now: ssm:GetParameter of p: denied".into(),
            ),
            (&|it| it.has_log = false, format!("Log group {log} does not exist: the handler has never run, or \
                                                the log was deleted.")),
            (
                &|it| it.deployment.log_level = Some("WARN".into()),
                "The handler's log level is WARN, which hides most waiting events: set it to INFO.".into(),
            ),
            (
                &|it| it.retry_queue.visible = 2,
                "Due but not yet received by the handler: about 2. `comeback status --stack shop` says \
                 whether it runs.".into(),
            ),
            (
                &|it| it.since = NOW.before(Duration::from_secs(3_600)),
                "An event may wait 12h 20m 30s without a new log line, so events last logged before \
                 2026-09-14T14:33:20.000Z may be missing.".into(),
            ),
            (
                &|it| (it.reach, it.kept_for) = (RETENTION, Some(DAY)),
                format!("{log} keeps lines for only 24h, but an event may wait 14d between two lines, so some \
                         may be missing."),
            ),
        ];
        for (change, note) in cases {
            assert!(notes(change).contains(&note), "{note}: {:?}", notes(change));
        }
    }

    #[test]
    fn hidden_messages_without_a_line_are_counted_where_the_log_should_have_one() {
        let note = |change: &dyn Fn(&mut Reading)| {
            let mut reading = reading(Depth { visible: 5, in_flight: 8, delayed: 1 });
            change(&mut reading);
            reading.unlogged_note(NOW)
        };
        assert!(note(&|_| ()).unwrap().starts_with("About 9 hidden messages have no line in the log."));
        assert_eq!(note(&|it| it.retry_queue = Depth { visible: 5, ..Depth::default() }), None);
        assert_eq!(note(&|it| it.is_everything = false), None);
        assert_eq!(note(&|it| it.deployment.log_level = Some("WARN".into())), None);
    }

    #[test]
    fn events_that_the_allow_list_gives_up_are_said() {
        let notes = |list: &str, targets: &[&str]| {
            let mut reading = reading(Depth::default());
            reading.deployment.variables.insert("TARGET_FUNCTIONS".into(), list.into());
            for (n, target) in targets.iter().enumerate() {
                let key = format!("k-{n}");
                let fields = json!({"timestamp": NOW, "action": "hold", "due": NOW, "delay": 60, "key": key, "target": target});
                reading.waits.take(&test_line(fields));
            }
            reading.heed_allow_list();
            reading.heed_pauses(NOW);
            reading.notes_on_all(NOW)
        };
        let (orders, live) = (format!("{ORDERS}:$LATEST"), format!("{ORDERS}:live"));
        let other = ORDERS.replace("orders", "invoices");
        let one = "1 event will be dead-lettered (target_not_allowed), because its function is not on the allow-list. \
                   To stop that: `comeback attach orders --stack shop` (if the function moved to another stack, see \
                   docs/attach.md).";
        assert_eq!(notes(&other, &[&orders, &other]), [one]);
        let three = "3 events will be dead-lettered (target_not_allowed), because their functions are not on the \
                     allow-list. To stop that: `comeback attach orders --stack shop`, `comeback attach \
                     orders:live --stack shop` (if the function moved to another stack, see docs/attach.md).";
        assert_eq!(notes(&other, &[&orders, &orders, &live]), [three]);
        assert_eq!(notes(ORDERS, &[&orders, &live]), [] as [&str; 0]);
        let empty = "The allow-list is empty: the handler keeps waiting events, but retries none until a \
                     function is attached.";
        assert_eq!(notes("", &[&orders]), [empty]);
        assert!(notes("not an ARN", &[&orders])[0].starts_with("Now the handler does not start"));
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
        assert!(error.contains(&format!("does not retry {elsewhere},")), "{error}");
        let functions = ["orders", "orders:lvie"].map(|name| name.parse().unwrap()).into();
        let notes: Vec<String> =
            reading.unlogged_qualifiers(&Wanted { functions, ..Wanted::default() }).collect();
        let note = "No log line since 2026-09-14T03:12:50.000Z mentions orders:lvie; its alias or version may be \
             misspelled.";
        assert_eq!(notes, [note]);
        let error = unknown(&["orders", "order"]).unwrap_err();
        assert!(matches!(&error, Failure::Undone(text) if text.contains("does not retry order,")), "{error}");
    }
}
