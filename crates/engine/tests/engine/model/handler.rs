//! The retry handler of the model: `Environment::handle` itself, with an account that does what a fault says; and how it is
//! made to do without one rule at a time.

use comeback_engine::{
    Action, MAX_AGE_RANGE, MAX_RETRIES_RANGE, Outcome, Policy, ReasonCode, Record, Settings, Step, Timestamp,
};

use crate::fakes::{Batch, Call, Invoke, World};
use crate::support::decide;

/// Not on the allow-list.
pub(super) const PAYMENTS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:payments:$LATEST";

/// What goes wrong while a message is in the handler's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fault {
    /// Pollers are throttled, or the process dies first: only the receive count has risen.
    NeverHandled,
    /// It dies once its calls are made: the queue never hears that the message is settled.
    DiesAfterwards,
    HideFails,
    InvokeFails,
    InvokeAnswerLost,
    SendFails,
    SendAnswerLost,
}

impl Fault {
    pub(super) const ALL: [Self; 7] = [
        Self::NeverHandled,
        Self::DiesAfterwards,
        Self::HideFails,
        Self::InvokeFails,
        Self::InvokeAnswerLost,
        Self::SendFails,
        Self::SendAnswerLost,
    ];

    /// Whether there was anything for it to strike.
    fn struck(self, calls: &[Call]) -> bool {
        calls.iter().any(|call| match self {
            Self::NeverHandled => false,
            Self::DiesAfterwards => true,
            Self::HideFails => matches!(call, Call::Hide(_)),
            Self::InvokeFails | Self::InvokeAnswerLost => matches!(call, Call::Invoke(..)),
            Self::SendFails | Self::SendAnswerLost => matches!(call, Call::Send(_)),
        })
    }
}

/// What came of a message.
#[derive(Debug)]
pub(super) struct Performed {
    /// Seconds of the visibility call that worked.
    pub(super) hidden: Option<u64>,
    /// Function and payload of the invoke that was accepted.
    pub(super) invoked: Option<(String, String)>,
    pub(super) dead_lettered: bool,
    /// The response lets SQS delete the message.
    pub(super) settled: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Handler {
    pub(super) settings: Settings,
    policy: Policy,
    without: Option<Rule>,
}

impl Handler {
    pub(super) fn new(settings: Settings) -> Self {
        Self { policy: checked(&settings), settings, without: None }
    }

    pub(super) fn without(&self, rule: Rule) -> Self {
        Self { without: Some(rule), ..self.clone() }
    }

    /// Handles a batch of one; `None` if the fault had nothing to strike.
    pub(super) fn handle(&self, record: Record, now: Timestamp, fault: Option<Fault>) -> Option<Performed> {
        let question = (self.policy.clone(), record, now);
        let (policy, record, now) = match self.without {
            Some(rule) => rule.pass_by(&self.settings, question),
            None => question,
        };
        let is = |it| fault == Some(it);
        let world = World {
            hide: Box::new(|| if is(Fault::HideFails) { Batch::Fails } else { Batch::Works }),
            invoke: Box::new(|| match fault {
                Some(Fault::InvokeFails) => Invoke::Later,
                Some(Fault::InvokeAnswerLost) => Invoke::AnswerLost,
                _ => Invoke::Works,
            }),
            send: Box::new(|| match fault {
                Some(Fault::SendFails) => Batch::Fails,
                Some(Fault::SendAnswerLost) => Batch::AnswerLost,
                _ => Batch::Works,
            }),
            ..World::default()
        };
        let records = [record];
        let report = world.handle(&records, &policy, now);
        let calls = world.calls.borrow();
        if fault.is_some_and(|fault| !fault.struck(&calls)) {
            return None;
        }
        let kept = report.batch_item_failures().next().is_some();
        let let_go = self.without.is_some_and(|rule| rule.lets_go(&report.outcomes[0]));
        let hidden = calls.iter().find_map(|call| match call {
            Call::Hide(entries) if !is(Fault::HideFails) => Some(entries[0].1),
            _ => None,
        });
        let invoked = calls.iter().find_map(|call| match call {
            Call::Invoke(function, payload) if !world.invoked.borrow().is_empty() => {
                Some((function.clone(), payload.clone()))
            }
            _ => None,
        });
        let dead_lettered = !world.sent.borrow().is_empty();
        Some(Performed {
            hidden,
            invoked,
            dead_lettered,
            settled: (!kept || let_go) && !is(Fault::DiesAfterwards),
        })
    }
}

pub(super) fn checked(settings: &Settings) -> Policy {
    Policy::new(settings.clone()).expect("the model's settings are valid")
}

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
