use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::vec;

use futures_util::future::FutureExt;

use crate::account::{Account, CallFailure, InvokeFailure, Look, Move, MoveFailure, VisibilityChange};
use crate::dead_letter::DeadLetter;
use crate::{Envelope, Style, TraceHeader};

/// Invokes under way at once. A batch of ten due messages costs ten concurrent invokes.
pub(super) const CONCURRENT_INVOKES: usize = 10;

pub(super) type Answer = Result<(), CallFailure>;

/// The account as one batch uses it: it is not asked past the deadline, and each entry has an
/// answer, whatever the account does.
pub(super) struct Guarded<'c, A> {
    pub(super) account: &'c A,
    pub(super) past_deadline: &'c dyn Fn() -> bool,
}

/// Why a call gave no answer.
enum NoAnswer {
    NotStarted,
    Panicked,
}

/// The answers to the entries of a call, in their order.
pub(super) struct Answers<E = CallFailure> {
    given: vec::IntoIter<Result<(), E>>,
    /// Of an entry that was given none.
    otherwise: E,
}

impl<E: Clone> Answers<E> {
    pub(super) fn next_answer(&mut self) -> Result<(), E> {
        self.given.next().unwrap_or_else(|| Err(self.otherwise.clone()))
    }
}

impl<A: Account> Guarded<'_, A> {
    pub(super) async fn change_visibility(&self, changes: &[VisibilityChange<'_>]) -> Answers {
        let call = async { self.account.change_visibility(changes, self.past_deadline).await };
        self.answers(changes.is_empty(), call).await
    }

    pub(super) async fn send_dead_letters(&self, letters: &[&DeadLetter]) -> Answers {
        let call = async { self.account.send_dead_letters(letters, self.past_deadline).await };
        self.answers(letters.is_empty(), call).await
    }

    pub(super) async fn send_again(&self, moves: &[Move<'_>]) -> Answers<MoveFailure> {
        let call = async { self.account.send_again(moves, self.past_deadline).await };
        let unanswered = |failure: CallFailure| MoveFailure::Unanswered(failure.cause);
        let given = if moves.is_empty() { Ok(Vec::new()) } else { self.started_in_time(call).await };
        let (given, otherwise) = match given {
            Ok(given) => (given, unanswered(no_answer())),
            Err(NoAnswer::NotStarted) => (Vec::new(), MoveFailure::NotSent(not_started())),
            Err(NoAnswer::Panicked) => (Vec::new(), unanswered(panicked())),
        };
        Answers { given: given.into_iter(), otherwise }
    }

    /// `None` if it is too late to look.
    pub(super) async fn look(&self) -> Option<Result<Look, CallFailure>> {
        match self.started_in_time(async { self.account.look().await }).await {
            Ok(look) => Some(look),
            Err(NoAnswer::NotStarted) => None,
            Err(NoAnswer::Panicked) => Some(Err(panicked())),
        }
    }

    /// `None` if it is too late to read.
    pub(super) async fn read_pauses(&self) -> Option<Result<Option<String>, CallFailure>> {
        match self.started_in_time(async { self.account.read_pauses().await }).await {
            Ok(answer) => Some(answer),
            Err(NoAnswer::NotStarted) => None,
            Err(NoAnswer::Panicked) => Some(Err(panicked())),
        }
    }

    pub(super) async fn invoke(
        &self,
        function_arn: &str,
        envelope: &Envelope<'_>,
        style: Style,
        trace: Option<TraceHeader<'_>>,
    ) -> Result<Option<String>, InvokeFailure> {
        let call = async { self.account.invoke(function_arn, envelope.seal(style), trace).await };
        match self.started_in_time(call).await {
            Ok(answer) => answer,
            Err(NoAnswer::NotStarted) => Err(InvokeFailure::Later(not_started())),
            // It may have panicked with its request sent.
            Err(NoAnswer::Panicked) => Err(InvokeFailure::Unanswered(panicked().cause)),
        }
    }

    async fn answers(&self, nothing_to_do: bool, call: impl Future<Output = Vec<Answer>>) -> Answers {
        let given = if nothing_to_do { Ok(Vec::new()) } else { self.started_in_time(call).await };
        let (given, otherwise) = match given {
            Ok(given) => (given, no_answer()),
            Err(NoAnswer::NotStarted) => (Vec::new(), not_started()),
            Err(NoAnswer::Panicked) => (Vec::new(), panicked()),
        };
        Answers { given: given.into_iter(), otherwise }
    }

    /// `call` does nothing until it is polled: so the account is not even asked once the deadline has
    /// passed, and a panic anywhere in it is caught.
    async fn started_in_time<O>(&self, call: impl Future<Output = O>) -> Result<O, NoAnswer> {
        if (self.past_deadline)() {
            return Err(NoAnswer::NotStarted);
        }
        AssertUnwindSafe(call).catch_unwind().await.map_err(|_| NoAnswer::Panicked)
    }
}

fn not_started() -> CallFailure {
    failure("not started: too close to the function's deadline")
}

fn no_answer() -> CallFailure {
    failure("the service gave no answer for this entry")
}

fn failure(cause: &str) -> CallFailure {
    CallFailure { cause: cause.into(), remedy: None }
}

pub(super) fn panicked() -> CallFailure {
    CallFailure {
        cause: "internal error (a panic; see the log above)".into(),
        remedy: Some("report it with this message's body"),
    }
}
