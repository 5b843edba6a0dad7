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
use crate::waits::isolated;
use crate::{FunctionArn, Policies, QueueArn, Record, Timestamp};

/// The least time between two reads of a function's minutes in one environment.
const BETWEEN_READS: Duration = Duration::from_secs(60);
/// How much longer it may be, so that environments do not read together.
const LONGEST: f64 = 1.25;
/// An event that has not failed more often is not worth a read: its waits are seconds.
const FAILURES: u64 = 2;
/// Functions that one environment knows of, at most. Further ones are retried as their policies say.
const MOST_FUNCTIONS: usize = 100;

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
        let modes = [Self::Off, Self::Watch, Self::On];
        modes.into_iter().find(|mode| mode.name() == text).ok_or("must be off, watch or on")
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

impl KnownMinutes {
    /// Those of an environment that has read nothing yet.
    pub(crate) fn new(mode: RecoveryMode) -> Self {
        Self { mode, functions: HashMap::new() }
    }

    /// The course of a function by its ARN, with or without a qualifier; `None` if nothing is known, or nothing may follow
    /// from it.
    pub(crate) fn of(&self, function_arn: &str) -> Option<&Recovery> {
        if self.mode != RecoveryMode::On || self.functions.is_empty() {
            return None;
        }
        let function: FunctionArn = function_arn.parse().ok()?;
        self.functions.get(&function.unqualified()).map(|known| &known.recovery)
    }

    /// The functions whose minutes a batch that starts now reads: of those that may be retried, the ones in the queue's own
    /// account and region.
    pub(crate) fn due(
        &self,
        records: &[Record],
        policies: &Policies,
        queue: Option<&QueueArn>,
        now: Timestamp,
    ) -> Vec<FunctionArn> {
        if self.mode == RecoveryMode::Off {
            return Vec::new();
        }
        let mut due: Vec<FunctionArn> = Vec::new();
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
            if event.retry > FAILURES && is_allowed && is_near && is_due && !due.contains(&function) {
                due.push(function);
            }
        }
        due
    }

    /// The beginning of the minutes to be read now.
    pub(crate) fn since(now: Timestamp) -> Timestamp {
        Timestamp::from_secs((now.as_secs() / 60).saturating_sub(SERIES_MINUTES) * 60)
    }

    /// Takes the answer to a read. The message seeds the time until the next. Returns what there is to report.
    pub(crate) fn read(
        &mut self,
        function: FunctionArn,
        answer: Result<Vec<MetricMinute>, CallFailure>,
        now: Timestamp,
        message_id: &str,
    ) -> Option<MinutesRead> {
        let more: f64 = generator(message_id, now.as_millis()).random_range(1.0..LONGEST);
        let known = self.functions.entry(function.clone()).or_insert_with(Known::nothing);
        known.next_read = now.saturating_add(BETWEEN_READS.mul_f64(more));
        let answer = answer.and_then(|minutes| {
            Recovery::of(minutes).map_err(|wrong| CallFailure { cause: wrong.to_string(), remedy: None })
        });
        let failed_before = known.failing;
        known.failing = answer.is_err();
        match answer {
            Ok(recovery) => {
                known.recovery = recovery;
                let health = known.recovery.health(now);
                let before = std::mem::replace(&mut known.reported, health);
                (!health.is_like(before)).then_some(MinutesRead::Changed { function, health })
            }
            Err(problem) => (!failed_before).then_some(MinutesRead::Failed { function, problem }),
        }
    }

    /// Whether something follows from what is read.
    pub(crate) fn acts(&self) -> bool {
        self.mode == RecoveryMode::On
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
