use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::future::{FutureExt, Shared};
use futures_util::stream::{self, StreamExt};

use crate::dead_letter::{DeadLetter, batches};
use crate::ports::{
    CallFailure, DeadLetterQueue, InvokeFailure, Ports, RetryQueue, SQS_BATCH_ENTRIES, Target,
    VisibilityChange,
};
use crate::{Envelope, Style};

/// Calls under way at once. A batch of ten due messages costs ten concurrent invokes.
pub(super) const CONCURRENT_CALLS: usize = 10;

type Answer = Result<(), CallFailure>;

/// The ports as the batch uses them: no call is started past the deadline, and each entry has
/// exactly one answer, whatever the port does.
pub(super) struct Calls<'p, Q, T, D, F: Future> {
    ports: Ports<'p, Q, T, D>,
    deadline: Shared<F>,
}

impl<'p, Q: RetryQueue, T: Target, D: DeadLetterQueue, F: Future<Output = ()>> Calls<'p, Q, T, D, F> {
    pub(super) fn new(ports: Ports<'p, Q, T, D>, deadline: F) -> Self {
        Self { ports, deadline: deadline.shared() }
    }

    /// Hides messages, ten a call.
    pub(super) async fn change_visibility(&self, entries: &[VisibilityChange<'_>]) -> Vec<Answer> {
        let chunks = entries.chunks(SQS_BATCH_ENTRIES);
        self.batch_calls(chunks, |chunk| self.ports.retry_queue.change_visibility(chunk)).await
    }

    pub(super) async fn send(&self, letters: &[DeadLetter]) -> Vec<Answer> {
        let batches = batches(letters, SQS_BATCH_ENTRIES).into_iter();
        self.batch_calls(batches, |batch| self.ports.dead_letter_queue.send(batch)).await
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

    async fn batch_calls<'e, E: 'e, C: Future<Output = Vec<Answer>>>(
        &self,
        batches: impl Iterator<Item = &'e [E]>,
        call: impl Fn(&'e [E]) -> C,
    ) -> Vec<Answer> {
        let call = &call;
        stream::iter(batches)
            .map(|batch| async move {
                let answers = self.started_in_time(async { call(batch).await }).await;
                let mut answers = answers.unwrap_or_else(|failure| vec![Err(failure); batch.len()]);
                answers.resize(batch.len(), Err(failure("the service gave no answer for this entry")));
                answers
            })
            .buffered(CONCURRENT_CALLS)
            .concat()
            .await
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
