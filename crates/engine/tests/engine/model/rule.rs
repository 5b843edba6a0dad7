//! The rules that the handler is made to do without, one at a time.

use comeback_engine::{
    Action, MAX_AGE_RANGE, MAX_RETRIES_RANGE, Outcome, Policy, ReasonCode, Record, Settings, Step, Timestamp,
};

use super::handler::checked;
use super::protocol::PAYMENTS;
use crate::support::decide;

/// What `decide` is asked.
pub(super) type Question = (Policy, Record, Timestamp);

/// A rule to do without. None is written down here a second time: [`decide`]'s own answer, or the
/// report's, says where the rule has spoken, and that answer is passed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Rule {
    /// 2: only what is on the allow-list is invoked.
    AllowList,
    /// 3: some errors are never retried.
    NonRetryable,
    /// 4: so many retries at most.
    MaxRetries,
    /// 4 and 6: no retry after `MAX_AGE`.
    MaxAge,
    /// 5: every look at a message draws the same delay.
    OneDraw,
    /// 8: a first receive only hides the message.
    FirstReceive,
    /// 8: a later receive serves what is left of the backoff.
    LaterReceive,
    /// A deferred message is reported failed, so that SQS keeps it.
    DeferredIsKept,
    /// So is one whose target could not be invoked.
    UninvokedIsKept,
    /// And one whose dead-letter could not be sent.
    UnsentIsKept,
}

impl Rule {
    /// The question to ask instead, where the answer to this one comes from the rule to do without.
    pub(super) fn pass_by(self, settings: &Settings, question: Question) -> Question {
        let (policy, mut record, now) = question;
        let action = decide(&record, &policy, now);
        let due = action.due();
        let code = match &action {
            Action::DeadLetter { reason, .. } => Some(reason.code),
            Action::Defer { .. } | Action::Hold { .. } | Action::Reinvoke { .. } => None,
        };
        let deferred = matches!(action, Action::Defer { .. });
        let first = record.receive_count <= 1;
        let under = |change: &dyn Fn(&mut Settings)| {
            let mut settings = settings.clone();
            change(&mut settings);
            checked(&settings)
        };
        match (self, code) {
            (Self::AllowList, Some(ReasonCode::TargetNotAllowed)) => {
                (under(&|settings| settings.target_functions.push(PAYMENTS.into())), record, now)
            }
            (Self::NonRetryable, Some(ReasonCode::NonRetryableError)) => {
                (under(&|settings| settings.non_retryable_errors.clear()), record, now)
            }
            (Self::MaxRetries, Some(ReasonCode::MaxRetries)) => {
                (under(&|settings| settings.max_retries = *MAX_RETRIES_RANGE.end()), record, now)
            }
            (Self::MaxAge, Some(ReasonCode::MaxAge)) => {
                (under(&|settings| settings.max_age = *MAX_AGE_RANGE.end()), record, now)
            }
            (Self::OneDraw, _) => {
                record.message_id.push_str(&record.receive_count.to_string());
                (policy, record, now)
            }
            (Self::FirstReceive, _) if deferred && first => {
                record.receive_count += 1;
                (policy, record, due.expect("BUG: what is deferred has its due time"))
            }
            (Self::LaterReceive, _) if deferred && !first => {
                (policy, record, due.expect("BUG: what is deferred has its due time"))
            }
            _ => (policy, record, now),
        }
    }

    /// Whether the message is let go of, whatever the handler reports.
    pub(super) fn lets_go(self, outcome: &Outcome<'_>) -> bool {
        match self {
            Self::DeferredIsKept => matches!(outcome.step, Some(Step::Defer { .. })),
            Self::UninvokedIsKept => matches!(outcome.step, Some(Step::Reinvoke { .. })),
            Self::UnsentIsKept => matches!(outcome.step, Some(Step::DeadLetter { .. })),
            _ => false,
        }
    }
}
