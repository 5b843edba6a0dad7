//! The courses of functions that one environment of the handler knows of, and when it reads their minutes.

use std::collections::HashMap;
use std::str::FromStr;
use std::time::Duration;

use rand::RngExt;

use crate::account::CallFailure;
use crate::failed_event::FailedEvent;
use crate::recovery::{Health, MetricMinute, Recovery, SERIES_MINUTES};
use crate::report::MinutesRead;
use crate::seed::generator;
use crate::timing::BETWEEN_READS_AT_MOST;
use crate::waits::isolated;
use crate::{FunctionArn, Policies, QueueArn, Record, Timestamp};

/// The least time between two reads of a function's minutes in one environment.
const BETWEEN_READS: Duration = Duration::from_secs(60);
/// An event that has not failed more often is not worth a read: its waits are seconds.
const FAILURES: u64 = 2;
/// Functions that one environment knows of, at most. Further ones are retried as their policies say.
const MOST_FUNCTIONS: usize = 100;

/// The metrics must include a failed invocation this long after its end.
const PUBLISHED_AFTER: Duration = Duration::from_secs(300);
/// Longest run of an invocation; it counts in the minute when it began.
const LONGEST_RUN: Duration = Duration::from_secs(900);

/// What the handler does when a function recovers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryMode {
    /// Nothing. It reads no minutes.
    #[default]
    Off,
    /// It reads the minutes, and reports what it would do.
    Watch,
    /// The clocks of waiting events run faster.
    On,
}

impl RecoveryMode {
    /// All, from the least.
    pub const ALL: [Self; 3] = [Self::Off, Self::Watch, Self::On];

    /// As `RECOVERY` says it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Watch => "watch",
            Self::On => "on",
        }
    }
}

impl FromStr for RecoveryMode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        Self::ALL.into_iter().find(|mode| mode.name() == text).ok_or("must be off, watch or on")
    }
}

/// The courses of functions, as one environment of the handler knows them. It reads a function's minutes when messages are
/// at hand that have failed more than twice, at most once a minute. A failed read changes nothing: what was known ages.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownMinutes {
    mode: RecoveryMode,
    functions: HashMap<FunctionArn, Known>,
}

#[derive(Clone, Debug)]
struct Known {
    recovery: Recovery,
    next_read: Timestamp,
    /// The last read failed, and was reported.
    failing: bool,
    /// As it was reported last.
    reported: Health,
}

/// A read of a function's minutes.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) function: FunctionArn,
    pub(crate) since: Timestamp,
    /// The newest failure in this batch that the metrics must already include.
    failed_at: Option<Timestamp>,
}

impl KnownMinutes {
    /// Those of an environment that has read nothing yet.
    pub(crate) fn new(mode: RecoveryMode) -> Self {
        Self { mode, functions: HashMap::new() }
    }

    /// The course of a function by its ARN, with or without a qualifier; `None` if nothing is known, or nothing may follow
    /// from it.
    pub(crate) fn of(&self, function_arn: &str) -> Option<&Recovery> {
        if self.acts() { self.known(function_arn) } else { None }
    }

    /// The same where nothing follows from it.
    pub(crate) fn watched(&self, function_arn: &str) -> Option<&Recovery> {
        if self.acts() { None } else { self.known(function_arn) }
    }

    fn known(&self, function_arn: &str) -> Option<&Recovery> {
        if self.functions.is_empty() {
            return None;
        }
        let function: FunctionArn = function_arn.parse().ok()?;
        self.functions.get(&function.unqualified()).map(|known| &known.recovery)
    }

    /// The reads for a batch that starts now: one for each allowed function, in the queue's own account and region, that is
    /// due.
    pub(crate) fn due(
        &self,
        records: &[Record],
        policies: &Policies,
        queue: Option<&QueueArn>,
        now: Timestamp,
    ) -> Vec<Read> {
        if self.mode == RecoveryMode::Off {
            return Vec::new();
        }
        let since = Timestamp::from_secs((now.as_secs() / 60).saturating_sub(SERIES_MINUTES) * 60);
        let mut due: Vec<Read> = Vec::new();
        for record in records {
            let Ok(Some(event)) = isolated(|| FailedEvent::read(record).ok()) else { continue };
            let Ok(function) = event.function_arn.parse::<FunctionArn>() else { continue };
            let function = function.unqualified();
            let is_allowed = policies.of(&event.function_arn).allows(&event.function_arn);
            let is_near =
                queue.is_none_or(|it| it.account == function.account && it.region == function.region);
            let is_due = match self.functions.get(&function) {
                Some(known) => known.next_read <= now,
                None => self.functions.len() + due.len() < MOST_FUNCTIONS,
            };
            if event.retry <= FAILURES || !is_allowed || !is_near || !is_due {
                continue;
            }
            // An event that Lambda gave up without an invocation has no error.
            let must_be_known =
                event.error_type().is_some() && event.failed_at.saturating_add(PUBLISHED_AFTER) <= now;
            let failed_at = must_be_known.then_some(event.failed_at);
            match due.iter_mut().find(|read| read.function == function) {
                Some(read) => read.failed_at = read.failed_at.max(failed_at),
                None => due.push(Read { function, since, failed_at }),
            }
        }
        due
    }

    /// Takes the answer to a read. The message seeds the time until the next. Returns what there is to report.
    pub(crate) fn read(
        &mut self,
        read: Read,
        answer: Result<Vec<MetricMinute>, CallFailure>,
        now: Timestamp,
        message_id: &str,
    ) -> Vec<MinutesRead> {
        let more: f64 = generator(message_id, now.as_millis()).random_range(1.0..BETWEEN_READS_AT_MOST);
        let function = read.function.clone();
        let known = self.functions.entry(function.clone()).or_insert_with(Known::nothing);
        known.next_read = now.saturating_add(BETWEEN_READS.mul_f64(more));
        let unusable = |cause| CallFailure { cause, remedy: None };
        let read = answer.and_then(|mut minutes| {
            minutes.retain(|minute| minute.is_possible() || minute.has_settled(now));
            let gap = read.gap(&minutes).map(unusable);
            Ok((Recovery::of(minutes).map_err(|wrong| unusable(wrong.to_string()))?, gap))
        });
        let (recovery, problem) = match read {
            Ok((recovery, gap)) => (Some(recovery), gap),
            Err(problem) => (None, Some(problem)),
        };
        let failed_before = std::mem::replace(&mut known.failing, problem.is_some());
        let failed = problem.filter(|_| !failed_before);
        let failed = failed.map(|problem| MinutesRead::Failed { function: function.clone(), problem });
        let changed = recovery.and_then(|recovery| {
            known.recovery = recovery;
            let health = known.recovery.health(now);
            let before = std::mem::replace(&mut known.reported, health);
            (!health.is_like(before)).then_some(MinutesRead::Changed { function, health })
        });
        failed.into_iter().chain(changed).collect()
    }

    /// Whether something follows from what is read.
    pub(crate) fn acts(&self) -> bool {
        self.mode == RecoveryMode::On
    }
}

impl Read {
    /// What the minutes lack, if they must have a newer one: they are late, or CloudWatch has none.
    fn gap(&self, minutes: &[MetricMinute]) -> Option<String> {
        let failed_at = self.failed_at.filter(|at| at.since(self.since) > LONGEST_RUN)?;
        let newest = minutes
            .iter()
            .map(|minute| Timestamp::from_secs(minute.number.saturating_add(1).saturating_mul(60)))
            .max();
        let newest = newest.unwrap_or(self.since);
        let is_late = newest.saturating_add(LONGEST_RUN) <= failed_at;
        is_late.then(|| {
            format!("CloudWatch has no data after {newest}, but one of its events failed at {failed_at}")
        })
    }
}

impl Known {
    fn nothing() -> Self {
        Self {
            recovery: Recovery::default(),
            next_read: Timestamp::from_secs(0),
            failing: false,
            reported: Health::Well,
        }
    }
}

impl Health {
    /// Whether only the speed differs.
    fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}
