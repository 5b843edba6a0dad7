//! Reads a deployment's retry queue, pauses and log to find the waiting events.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use comeback_engine::{
    LONGEST_VISIBILITY, LogLine, NotALine, Pauses, Policies, QUEUE_VISIBILITY_TIMEOUT, RETENTION, Timestamp,
};

use crate::aws::{LogEvent, LogFilter};
use crate::deployment::queue::Depth;
use crate::deployment::{Deployment, Unlisted};
use crate::failure::Failure;
use crate::operator::{Operator, Progress};
use crate::pauses::in_force::InForce;
use crate::pauses::noticed_within;
use crate::pauses::parameter::read_pauses;
use crate::waiting::events::Waits;
use crate::waiting::filter::WaitingFilter;

/// The longest time between two log lines about a hidden message, even if the handler is throttled.
pub const LONGEST_HIDDEN: Duration = LONGEST_VISIBILITY.saturating_add(QUEUE_VISIBILITY_TIMEOUT);
pub(super) const DAY: Duration = Duration::from_secs(86_400);
/// The longest delay until CloudWatch returns a new log line.
const LATE: Duration = Duration::from_secs(120);

/// A deployment's retry queue, pauses and log, as of the last read.
#[derive(Debug)]
pub struct Reading {
    /// The deployment that was read.
    pub deployment: Deployment,
    /// True if the log was read without a filter.
    pub(super) is_everything: bool,
    /// The message counts of the retry queue.
    pub retry_queue: Depth,
    /// The pauses, or `None` if the handler reads no pauses.
    pub(crate) pauses: Result<Option<Pauses>, Failure>,
    /// The time of the last full read of the log.
    pub(super) begun: Timestamp,
    pub(super) since: Timestamp,
    /// The time up to which the log was read, or `None` before the first read.
    pub(super) until: Option<Timestamp>,
    /// Every waiting event has a log line that is at most this old.
    pub(super) reach: Duration,
    /// The log group's retention period, if lines about waiting events may already have been deleted.
    pub(super) kept_for: Option<Duration>,
    pub(super) has_log: bool,
    /// The waiting events.
    pub waits: Waits,
    /// The number of log lines that match the filter; each line is about one event.
    pub(super) lines: u64,
    /// The number of log lines that this command cannot read because a newer version of the handler wrote them.
    pub(super) newer: u64,
    /// The functions in the filter that appear in a log line, as indices into the filter's list of functions.
    pub(super) logged: BTreeSet<usize>,
}

/// Selects the lines to read from the handler's log.
#[derive(Clone, Copy, Debug)]
pub struct LogQuery<'a> {
    /// Only log lines about events that match this filter are read.
    pub wanted: &'a WaitingFilter,
    /// The maximum age of the log lines to read, or `None` for the longest time that an event can wait.
    pub since: Option<Duration>,
    /// True to keep the messages' receipt handles, which are needed to make a message visible early.
    pub handles: bool,
}

impl<'a> LogQuery<'a> {
    /// Selects all log lines about the events that match the filter. Does not keep the messages' receipt handles.
    pub fn of(wanted: &'a WaitingFilter) -> Self {
        Self { wanted, since: None, handles: false }
    }
}

impl Reading {
    /// Reads the queue, the pauses and the log for the first time.
    ///
    /// # Errors
    ///
    /// Fails if the queue or the log cannot be read.
    pub async fn read(
        operator: &Operator,
        deployment: Deployment,
        scope: LogQuery<'_>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let reading = RefCell::new(Self::begin(operator, deployment, scope, now).await?);
        Self::read_log(&reading, operator, scope, now).await?;
        Ok(reading.into_inner())
    }

    /// Updates a reading that was made without a filter. Reads the queue and the pauses again, then the new log lines.
    /// The reading can be used during the update. If the update is dropped, the next one continues where it stopped.
    ///
    /// # Errors
    ///
    /// Fails if the queue or the log cannot be read.
    pub async fn go_on(
        reading: &RefCell<Self>,
        operator: &Operator,
        deployment: Deployment,
        now: Timestamp,
    ) -> Result<(), Failure> {
        let wanted = WaitingFilter::default();
        let scope = LogQuery::of(&wanted);
        let next = Self::begin(operator, deployment, scope, now).await?;
        let (begun, since) = (reading.borrow().begun, reading.borrow().since);
        // Settled messages take memory, so the whole log is read again once a day. The log is read again sooner if
        // waits may now last longer than before.
        if now.since(begun) >= DAY || next.since < since {
            let next = RefCell::new(next);
            Self::read_log(&next, operator, scope, now).await?;
            reading.replace(next.into_inner());
            return Ok(());
        }
        reading.replace_with(|known| {
            let Self { begun, until, newer, lines, has_log, .. } = *known;
            let waits = std::mem::take(&mut known.waits);
            Self { begun, until, newer, lines, has_log, waits, ..next }
        });
        Self::read_log(reading, operator, scope, now).await
    }

    /// Reads the queue, the pauses and the log's retention period, but no log lines yet.
    async fn begin(
        operator: &Operator,
        deployment: Deployment,
        LogQuery { wanted, since, handles }: LogQuery<'_>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let account = &operator.account;
        let retry_queue = Depth::read(account, &deployment.retry_queue).await?;
        let pauses = read_pauses(account, &deployment).await;
        let reach = reach(&deployment, &retry_queue, &pauses, now);
        // The shortest retention of a log group is one day.
        let kept_for = match reach > DAY {
            true => account.aws.log_group(&deployment.log_group).await?.and_then(|group| group.retention),
            false => None,
        };
        Ok(Self {
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
            waits: if handles { Waits::keeping_handles() } else { Waits::default() },
            lines: 0,
            newer: 0,
            logged: BTreeSet::new(),
        })
    }

    async fn read_log(
        reading: &RefCell<Self>,
        operator: &Operator,
        LogQuery { wanted, handles, .. }: LogQuery<'_>,
        now: Timestamp,
    ) -> Result<(), Failure> {
        let (group, since) = {
            let Self { deployment, since, until, .. } = &*reading.borrow();
            (deployment.log_group.clone(), until.map_or(*since, |until| until.before(LATE).max(*since)))
        };
        // A recall needs the newest line about each message, even if this machine's clock is slow.
        let until = (!handles).then_some(now);
        let lines = LogFilter { pattern: Some(wanted.pattern()), until, ..LogFilter::since(&group, since) };
        let pages = Cell::new(0);
        let progress = |of| {
            let unit = "pages of the handler's log";
            operator.follow.progress(Progress { done: pages.get(), of, unit });
        };
        progress(None);
        let take_page = |page: Vec<LogEvent>| {
            let mut reading = reading.borrow_mut();
            page.iter().for_each(|event| reading.take(event, wanted));
            pages.set(pages.get() + 1);
            progress(None);
        };
        let has_log = lines.pages(&operator.account, take_page).await?;
        progress(Some(pages.get()));
        let mut reading = reading.borrow_mut();
        reading.has_log = has_log;
        reading.until = Some(now);
        let since = reading.since;
        reading.waits.forget_before(since);
        reading.apply_allow_list();
        Ok(())
    }

    fn take(&mut self, event: &LogEvent, wanted: &WaitingFilter) {
        // A line may be read twice, because each read searches again for late lines.
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

    /// Applies the current allow-list to the waiting events, unless the handler refuses its settings and cannot start.
    pub(super) fn apply_allow_list(&mut self) {
        if let Ok(policies) = self.deployment.policies() {
            let dead_letters = |target: &str| Unlisted::of(&policies, target) == Some(Unlisted::DeadLettered);
            self.waits.apply_allow_list(dead_letters);
        }
    }

    /// Applies the current pauses to the waiting events, in place of those that applied when the log was written.
    pub fn apply_pauses(&mut self, now: Timestamp) {
        let Ok(pauses) = &self.pauses else { return };
        let none = Pauses::default();
        let pauses = pauses.as_ref().unwrap_or(&none);
        let noticed = noticed_within(&self.deployment).unwrap_or_default();
        self.waits.apply_pauses(|target| InForce::of(pauses, target, noticed, now));
    }

    /// The state of a function's pauses at `now`, or `None` if no pauses were read.
    pub fn in_force(&self, target: &str, now: Timestamp) -> Option<InForce> {
        let pauses = self.pauses.as_ref().ok()?.as_ref()?;
        Some(InForce::of(pauses, target, noticed_within(&self.deployment).unwrap_or_default(), now))
    }

    /// If the filter's error glob matches no waiting event, reads the log again and returns the errors of the waiting
    /// events. Returns `None` in all other cases, and if the log cannot be read.
    pub async fn unmatched(
        &self,
        operator: &Operator,
        scope: LogQuery<'_>,
        now: Timestamp,
    ) -> Option<String> {
        let wanted = scope.wanted;
        if wanted.error.is_none() || self.retry_queue.total() == 0 || self.waits.all().next().is_some() {
            return None;
        }
        let wanted = WaitingFilter { error: None, ..wanted.clone() };
        let all =
            Self::read(operator, self.deployment.clone(), LogQuery { wanted: &wanted, ..scope }, now).await;
        all.ok()?.waits.errors()
    }
}

/// The maximum age of the last log line about an event that is still waiting. A moved message is logged only when it is
/// first moved and when it is settled. Paused time does not count towards `MAX_AGE`, so after a pause, the line may be
/// as old as SQS's retention period.
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

fn longest_age(policies: &Policies) -> Duration {
    let of_functions = policies.entries().iter().map(|entry| entry.policy().max_age());
    of_functions.fold(policies.stack().max_age(), Duration::max)
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::aws::Mapping;
    use crate::aws::simulated::Sample;
    use crate::deployment::find::Which;
    use crate::log::test_line;

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
            deployment: Deployment {
                stack: Some("shop".into()),
                mapping: Some(Mapping::sample()),
                ..Deployment::sample()
            },
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

    /// A line is found even if it reaches the log up to two minutes late.
    #[tokio::test]
    async fn a_reading_goes_on_from_where_the_log_was_read_last() {
        let aws = Sample { is_attached: true, ..Sample::new(NOW) }.build();
        let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
        let arrives = |key: &str, late: u64| {
            let at = aws.time().before(Duration::from_secs(late));
            let line = json!({"timestamp": at, "key": key, "target": ORDERS, "action": "hold", "due": at, "delay": 60});
            let line = serde_json::to_string(&test_line(line)).unwrap();
            aws.state().log_groups.get_mut(Sample::LOG_GROUP).unwrap().write(at, "s", line);
        };
        let deployment = async || operator.deployment().await.unwrap();
        let wanted = WaitingFilter::default();
        let scope = LogQuery::of(&wanted);
        arrives("k-1", 1);
        let reading = RefCell::new(Reading::read(&operator, deployment().await, scope, NOW).await.unwrap());
        let goes_on = async || {
            Reading::go_on(&reading, &operator, deployment().await, aws.time()).await.unwrap();
            let reading = reading.borrow();
            let mut keys: Vec<_> = reading.waits.all().map(|event| event.key.to_owned()).collect();
            keys.sort();
            (keys, reading.lines)
        };
        let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        aws.advance(Duration::from_secs(10));
        arrives("k-2", 129);
        arrives("too late", 131);
        assert_eq!(goes_on().await, (keys(&["k-1", "k-2"]), 1), "a line that was late counts as read before");
        aws.advance(Duration::from_secs(10));
        arrives("k-3", 5);
        assert_eq!(goes_on().await, (keys(&["k-1", "k-2", "k-3"]), 2));
        aws.advance(DAY);
        arrives("k-4", 0);
        arrives("k-5", LONGEST_HIDDEN.as_secs());
        assert_eq!(goes_on().await, (keys(&["k-4", "k-5"]), 2), "all is read anew once a day");
    }
}
