//! [`Operator`]: the account and the deployment that a command works on, and the means to follow and stop its work.

use std::fmt;
use std::rc::Rc;

use comeback_engine::Timestamp;

use crate::account::Account;
use crate::deployment::Deployment;
use crate::deployment::find::Which;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::text::Text;

/// The account and deployment that an operator works on, with ways to stop the work and to show its progress.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The AWS account and region.
    pub account: Account,
    /// The deployment to work on.
    pub which: Which,
    /// Stops long-running work.
    pub interrupt: Interrupt,
    /// Shows the progress of long-running work.
    pub follow: Rc<dyn Follow>,
}

impl Operator {
    /// An operator who can neither interrupt the work nor follow its progress, as in a deploy pipeline.
    pub fn new(account: Account, which: Which) -> Self {
        Self { account, which, interrupt: Interrupt::default(), follow: Rc::new(Unwatched) }
    }

    /// The account's current time.
    pub fn now(&self) -> Timestamp {
        self.account.now()
    }

    /// Looks up the deployment.
    ///
    /// # Errors
    ///
    /// Fails if the deployment does not exist or cannot be read, or if the operator interrupts the lookup.
    pub async fn deployment(&self) -> Result<Deployment, Failure> {
        self.interrupt.or(Deployment::find(&self.account, &self.which)).await
    }

    /// The first line of every command's output.
    pub fn headline(&self) -> String {
        format!("{} in {}", self.which, self.account.place)
    }
}

/// Shows the progress of work that takes a long time.
pub trait Follow: fmt::Debug {
    /// Shows the progress of one stage of the work. A new [unit](Progress::unit) means that a new stage has begun.
    fn progress(&self, progress: Progress);

    /// Announces the next action, such as hiding dead-letters from other consumers.
    fn remark(&self, text: &Text);
}

/// The progress of one stage of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of items, such as dead-letters, that have been processed so far.
    pub done: u64,
    /// The total number of items in this stage of the work, if known.
    pub of: Option<u64>,
    /// The unit in which `done` and `of` are counted, such as `dead-letters`.
    pub unit: &'static str,
}

/// Ignores all reports of progress, for work that nobody follows.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Follow for Unwatched {
    fn progress(&self, _: Progress) {}

    fn remark(&self, _: &Text) {}
}
