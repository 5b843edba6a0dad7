//! The dead-letters of a deployment, for a command that works on them.

use comeback_engine::Timestamp;

use crate::account::Failure;
use crate::operate::dead::filter::Filter;
use crate::operate::dead::queue::{HIDDEN_FOR, QueueCalls, Received, SqsQueues};
use crate::operate::dead::scan::{Read, Reader, Scan};
use crate::operate::dead::survey::Survey;
use crate::operate::deployment::Deployment;
use crate::operate::deployment::queue::Depth;
use crate::operate::session::Session;
use crate::text::numbers::counted;

/// The two queues of a deployment, and the command that works on them.
pub(crate) struct DeadLetters<Q = SqsQueues> {
    pub(crate) session: Session,
    pub(crate) deployment: Deployment,
    pub(crate) queues: Q,
}

impl DeadLetters {
    pub(crate) async fn find(session: Session) -> Result<Self, Failure> {
        let deployment = session.interrupt.or(session.deployment()).await?;
        let queues = SqsQueues::new(&session.account, &deployment);
        Ok(Self { session, deployment, queues })
    }
}

impl<Q: QueueCalls> DeadLetters<Q> {
    /// How many dead-letters there are. SQS's counts are right only a minute after the last change.
    pub(crate) async fn depth(&self) -> Result<Depth, Failure> {
        let session = &self.session;
        session.interrupt.or(Depth::read(&session.account, &self.deployment.dead_letter_queue)).await
    }

    /// Shows every dead-letter that was sent until `now` to `show`, until that returns `true`. Says what reading the
    /// dead-letters does to the queue, unless JSON is printed.
    pub(crate) async fn show_each(
        &self,
        now: Timestamp,
        show: impl FnMut(&Received) -> bool,
    ) -> Result<Read, Failure> {
        let depth = self.depth().await?;
        if depth.visible > 0 {
            let count = counted(depth.visible, "dead-letter", "dead-letters");
            let minutes = HIDDEN_FOR.as_secs() / 60;
            self.session.remark(&format!(
                "Reading {count}. Nobody else sees them until this ends (if it is killed, for up to {minutes} \
                 minutes)."
            ));
        }
        let read = Scan::new(&self.reader(depth.visible), now).show_each(show).await?;
        Ok(read.beside_locked(depth, now))
    }

    /// [`Survey::check_target`], and prints its note.
    pub(crate) fn check_target(&self, survey: &Survey, filter: &Filter, read: &Read) -> Result<(), Failure> {
        let note = survey.check_target(filter, read, &self.deployment)?;
        note.iter().for_each(|note| self.session.note(note));
        Ok(())
    }

    /// A reader with a progress bar for this many dead-letters.
    pub(crate) fn reader(&self, dead_letters: u64) -> Reader<'_, Q> {
        let bar = self.session.progress(Some(dead_letters), "{pos}/{len} dead-letters");
        let progress = Box::new(move |dead_letters| bar.set(dead_letters));
        let remark = Box::new(|text: &str| self.session.remark(text));
        Reader { queue: &self.queues, interrupt: &self.session.interrupt, progress, remark }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::operate::session::Common;

    impl DeadLetters {
        pub(crate) fn sample(account: Account, common: &Common) -> Self {
            let (session, deployment) = (Session::sample(account, common), Deployment::sample());
            let queues = SqsQueues::new(&session.account, &deployment);
            Self { session, deployment, queues }
        }
    }
}
