//! What a deployment's queue, pauses and log say of the events that wait.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use comeback_engine::{
    LONGEST_VISIBILITY, LogLine, NotALine, Pauses, Policies, QUEUE_VISIBILITY_TIMEOUT, RETENTION, Timestamp,
};

use crate::account::{Account, Failure, Or as _};
use crate::operate::deployment::queue::Depth;
use crate::operate::deployment::{Deployment, Unlisted};
use crate::operate::log::{LogEvent, Search};
use crate::operate::pauses::in_force::InForce;
use crate::operate::pauses::noticed_within;
use crate::operate::pauses::parameter::read_pauses;
use crate::operate::session::Session;
use crate::operate::waiting::events::Waits;
use crate::operate::waiting::wanted::Wanted;

/// SQS hides a message for 12 hours at most. Then the handler receives it, and writes a line about it; if it was throttled,
/// after another visibility timeout of the queue.
pub(crate) const LONGEST_HIDDEN: Duration = LONGEST_VISIBILITY.saturating_add(QUEUE_VISIBILITY_TIMEOUT);
pub(super) const DAY: Duration = Duration::from_secs(86_400);
/// A handler may write a line late, and CloudWatch may show it later.
const LATE: Duration = Duration::from_secs(120);

/// What a deployment's queue and log say.
pub(crate) struct Reading {
    pub(super) deployment: Deployment,
    /// The flags of commands that it suggests.
    pub(super) place: String,
    /// Nothing was filtered.
    pub(super) is_everything: bool,
    pub(super) retry_queue: Depth,
    /// `None` if the handler reads none.
    pub(super) pauses: Result<Option<Pauses>, Failure>,
    /// When the first line was read.
    pub(super) begun: Timestamp,
    pub(super) since: Timestamp,
    /// The log was read up to here; `None` if it was not read yet.
    pub(super) until: Option<Timestamp>,
    /// How long ago the last line about an event that waits may have been written.
    pub(super) reach: Duration,
    /// How long the log group keeps a line; `None` if at least as long as `reach`.
    pub(super) kept_for: Option<Duration>,
    pub(super) has_log: bool,
    pub(crate) waits: Waits,
    /// Lines about the events that the filter takes.
    pub(super) lines: u64,
    /// Lines of a later version than this command knows.
    pub(super) newer: u64,
    /// The filter's functions that the log mentions, by their places in it.
    pub(super) logged: BTreeSet<usize>,
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

    /// Reads what is new since the last time, without a filter. The reading can be used meanwhile. If this is dropped midway,
    /// the next call goes on from there.
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
        // Settled messages take memory, so everything is read anew once a day; and if waits may be longer than before.
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
        let pauses = read_pauses(account, &deployment).await;
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

    /// Applies the allow-list in force. A handler that refuses its settings dead-letters nothing.
    pub(super) fn heed_allow_list(&mut self) {
        if let Ok(policies) = self.deployment.policies() {
            let dead_letters = |target: &str| Unlisted::of(&policies, target) == Some(Unlisted::DeadLettered);
            self.waits.heed_allow_list(dead_letters);
        }
    }

    /// Applies the pauses in force instead of those that the handler knew when it wrote its lines.
    pub(crate) fn heed_pauses(&mut self, now: Timestamp) {
        let Ok(pauses) = &self.pauses else { return };
        let none = Pauses::default();
        let pauses = pauses.as_ref().unwrap_or(&none);
        let noticed = noticed_within(&self.deployment).unwrap_or_default();
        self.waits.heed(|target| InForce::of(pauses, target, noticed, now));
    }

    pub(crate) fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    /// Whether a function is paused, if that is known.
    pub(crate) fn in_force(&self, target: &str, now: Timestamp) -> Option<InForce> {
        let pauses = self.pauses.as_ref().ok()?.as_ref()?;
        Some(InForce::of(pauses, target, noticed_within(&self.deployment).unwrap_or_default(), now))
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
}

/// How long ago the last line about an event that waits may have been written.
///
/// A hidden message comes back to the handler, which writes a line. A message that is sent again with a delay comes back
/// too, but only its first move and its end have lines. So its wait may be as long as the longest `MAX_AGE` allows. That
/// clock stops while the function is paused, so then only SQS's retention ends it.
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
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::*;
    use crate::operate::deployment::mapping::Mapping;
    use crate::operate::log::tests::test_line;
    use crate::operate::session::{Common, DeploymentFlags};

    pub(crate) const NOW: Timestamp = Timestamp::from_secs(1_789_400_000);
    pub(crate) const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";

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

    pub(crate) fn reading(retry_queue: Depth) -> Reading {
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
}
