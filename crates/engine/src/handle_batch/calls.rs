use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::future::{FutureExt, Shared};

use crate::dead_letter::DeadLetter;
use crate::ports::{
    CallFailure, DeadLetterQueue, InvokeFailure, Ports, RetryQueue, Target, VisibilityChange,
};
use crate::{Envelope, Style};

/// Invokes under way at once. A batch of ten due messages costs ten concurrent invokes.
pub(super) const CONCURRENT_INVOKES: usize = 10;

type Answer = Result<(), CallFailure>;

/// The ports as the batch uses them: none is asked past the deadline, and each entry has an answer,
/// whatever the port does.
pub(super) struct Calls<'p, Q, T, D, F: Future> {
    ports: Ports<'p, Q, T, D>,
    deadline: Shared<F>,
}

impl<'p, Q: RetryQueue, T: Target, D: DeadLetterQueue, F: Future<Output = ()>> Calls<'p, Q, T, D, F> {
    pub(super) fn new(ports: Ports<'p, Q, T, D>, deadline: F) -> Self {
        Self { ports, deadline: deadline.shared() }
    }

    pub(super) async fn change_visibility(&self, entries: &[VisibilityChange<'_>]) -> Vec<Answer> {
        let ask = || self.ports.retry_queue.change_visibility(entries, self.deadline.clone());
        self.answers(entries.len(), ask).await
    }

    pub(super) async fn send(&self, letters: &[DeadLetter]) -> Vec<Answer> {
        let ask = || self.ports.dead_letter_queue.send(letters, self.deadline.clone());
        self.answers(letters.len(), ask).await
    }

    pub(super) async fn invoke(
        &self,
        function_arn: &str,
        envelope: &Envelope<'_>,
        style: Style,
    ) -> Result<(), InvokeFailure> {
        let call = async { self.ports.target.invoke(function_arn, envelope.seal(style)).await };
        self.started_in_time(call).await.unwrap_or_else(|failure| Err(InvokeFailure::Later(failure)))
    }

    async fn answers<C: Future<Output = Vec<Answer>>>(
        &self,
        entries: usize,
        ask: impl FnOnce() -> C,
    ) -> Vec<Answer> {
        if entries == 0 {
            return Vec::new();
        }
        let answers = self.started_in_time(async { ask().await }).await;
        let mut answers = answers.unwrap_or_else(|failure| vec![Err(failure); entries]);
        answers.resize(entries, Err(failure("the service gave no answer for this entry")));
        answers
    }

    /// `call` does nothing until it is polled: so the port is not even asked once the deadline has
    /// passed, and a panic anywhere in it is caught.
    async fn started_in_time<O>(&self, call: impl Future<Output = O>) -> Result<O, CallFailure> {
        if self.deadline.clone().now_or_never().is_some() {
            return Err(failure("not started: too close to the function's deadline"));
        }
        AssertUnwindSafe(call).catch_unwind().await.map_err(|_| panicked())
    }
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
