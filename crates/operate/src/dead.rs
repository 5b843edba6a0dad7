//! The letters of the dead-letter queue: read, sent back to the retry queue, and thrown away, a whole filter at a time.
//!
//! SQS has no way to look at a queue: a letter must be received, and is then hidden from everybody. So each of these
//! receives every letter once, hides it for [`HIDDEN_FOR`], and gives back at its end what it did not delete. A
//! letter is deleted only once it is accepted elsewhere. Whoever kills the command at any moment loses nothing: what
//! was hidden comes back by itself, and the most there can be is a second copy of the letters at hand, with their keys.
//!
//! | file | holds |
//! |---|---|
//! | `filter` | [`Filter`]: which letters |
//! | `groups` | [`Group`]: letters alike in reason, target and error |
//! | `described` | [`Described`]: a letter as an operator sees it |
//! | `queue`, `sqs` | the port to the two queues; its implementation on SQS |
//! | `held`, `seen` | what must be given back; what was looked at |
//! | `scan` | receiving every letter once, and giving it back |
//! | `read` | [`Read`]: what was read, and why no more |
//! | `survey` | [`Survey`]: letters counted by group, and whether they can be acted on |
//! | `pace` | [`Pace`]: letters a second |
//! | `work` | [`Work`], [`Worked`]: acting on letters, and deleting them once they are safe |
//! | `deed` | what can be done with a letter, and why it cannot |
//! | `redrive`, `discard` | the two deeds: sent to the retry queue, or written to a file |
//! | `export`, `import` | a letter as a line of JSON, and its way back |
//! | `move_task` | SQS's own redrive of a whole queue |

mod deed;
mod described;
mod discard;
mod export;
mod filter;
mod groups;
mod held;
mod import;
mod move_task;
mod pace;
mod queue;
mod read;
mod redrive;
mod scan;
mod seen;
mod sqs;
mod survey;
mod work;

#[cfg(test)]
mod tests;

use std::path::Path;

use comeback_engine::{Policy, Timestamp};

use crate::status::Depth;
use crate::{Account, Deployment, Failure, Interrupt, Queue};
use deed::Deed as _;
use redrive::Redrive;
use sqs::SqsQueues;

pub use described::{Described, Whole};
pub use filter::{BadPayloadTest, BadReason, BadRetriesTest, Filter, PayloadTest, ReasonName, RetriesTest};
pub use groups::Group;
pub use import::{Imported, Importing};
pub use move_task::Moved;
pub use pace::Pace;
pub use queue::HIDDEN_FOR;
pub use read::{End, MOST_HIDDEN, Progress, Read};
pub use survey::Survey;
pub use work::{Work, Worked};

/// The dead-letter queue of a deployment, and the retry queue that its letters can be sent back to.
#[derive(Debug)]
pub struct DeadLetters {
    account: Account,
    dead_letter_queue: Queue,
    retry_queue: Queue,
    queues: SqsQueues,
    policy: Policy,
}

/// How many letters SQS says there are. Right only a minute after the last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Letters that can be received.
    pub visible: u64,
    /// Letters that somebody has received: they come back, or are deleted.
    pub hidden: u64,
}

impl DeadLetters {
    /// The dead-letters of a deployment.
    ///
    /// # Errors
    ///
    /// The handler's environment is refused, so that nobody can say which functions it would re-invoke.
    pub fn of(account: &Account, deployment: &Deployment) -> Result<Self, Failure> {
        let policy = deployment.policy().map_err(|errors| {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            let handler = &deployment.handler;
            Failure::CouldNot(format!("the environment of {handler} is refused: {}", errors.join("; ")))
        })?;
        let (dead_letter_queue, retry_queue) =
            (deployment.dead_letter_queue.clone(), deployment.retry_queue.clone());
        let queues = SqsQueues::new(&account.sqs, &dead_letter_queue.url, &retry_queue.url);
        Ok(Self { account: account.clone(), dead_letter_queue, retry_queue, queues, policy })
    }

    /// The dead-letter queue.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.dead_letter_queue
    }

    /// The retry queue.
    #[must_use]
    pub fn retry_queue(&self) -> &Queue {
        &self.retry_queue
    }

    /// Asks SQS how many letters there are.
    ///
    /// # Errors
    ///
    /// The call did not work.
    pub async fn about(&self) -> Result<About, Failure> {
        let depth = Depth::read(&self.account, &self.dead_letter_queue).await?;
        Ok(About { visible: depth.visible, hidden: depth.in_flight })
    }

    /// Reads every letter that was sent until `now`, and describes up to `most` of those that the filter takes.
    ///
    /// # Errors
    ///
    /// It could not begin.
    pub async fn list(
        &self,
        filter: &Filter,
        most: usize,
        now: Timestamp,
        interrupt: &Interrupt,
        tell: &dyn Fn(Progress),
    ) -> Result<Survey, Failure> {
        survey::survey(&self.queues, filter, &|_| Ok(()), most, now, interrupt, tell).await
    }

    /// Looks for the letter of an event, by its key or by the message's id, until it is found.
    ///
    /// # Errors
    ///
    /// It could not begin.
    pub async fn show(
        &self,
        key: &str,
        now: Timestamp,
        interrupt: &Interrupt,
        tell: &dyn Fn(Progress),
    ) -> Result<(Option<Whole>, Read), Failure> {
        survey::find(&self.queues, key, now, interrupt, tell).await
    }

    /// Reads every letter, and says which of them a redrive would send, and why it would leave the others.
    ///
    /// # Errors
    ///
    /// It could not begin, or `retarget` may not be re-invoked.
    pub async fn plan_redrive(
        &self,
        filter: &Filter,
        retarget: Option<&str>,
        now: Timestamp,
        interrupt: &Interrupt,
        tell: &dyn Fn(Progress),
    ) -> Result<Survey, Failure> {
        let redrive = self.redrive_to(retarget, now)?;
        let judge = |received: &_| redrive.prepare(received).map(drop);
        survey::survey(&self.queues, filter, &judge, 0, now, interrupt, tell).await
    }

    /// Sends letters to the retry queue, and deletes those that were accepted.
    ///
    /// # Errors
    ///
    /// It could not begin, or `retarget` may not be re-invoked.
    pub async fn redrive(
        &self,
        work: &Work,
        retarget: Option<&str>,
        interrupt: &Interrupt,
        tell: &dyn Fn(Progress),
    ) -> Result<Worked, Failure> {
        let mut redrive = self.redrive_to(retarget, work.until)?;
        work::work(&self.queues, &mut redrive, work, interrupt, tell).await
    }

    /// Writes letters to a new file, and deletes those that are on disk.
    ///
    /// # Errors
    ///
    /// It could not begin, or the file is there already.
    pub async fn discard(
        &self,
        work: &Work,
        export: &Path,
        interrupt: &Interrupt,
        tell: &dyn Fn(Progress),
    ) -> Result<Worked, Failure> {
        let mut discard = discard::Discard::to(export)?;
        work::work(&self.queues, &mut discard, work, interrupt, tell).await
    }

    /// Sends the letters of a file that [`discard`](Self::discard) wrote to the dead-letter queue.
    ///
    /// # Errors
    ///
    /// The file or its record of what was imported cannot be read or written.
    pub async fn import(
        &self,
        importing: Importing,
        pace: Pace,
        interrupt: &Interrupt,
        tell: &dyn Fn(Progress),
    ) -> Result<Imported, Failure> {
        importing.run(&self.queues, pace, interrupt, tell).await
    }

    fn redrive_to<'a>(&'a self, retarget: Option<&'a str>, now: Timestamp) -> Result<Redrive<'a>, Failure> {
        Redrive::new(&self.policy, retarget, now)
    }
}
