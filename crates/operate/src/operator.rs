//! An operator at work: the account, the deployment, a follower of the work, and an interrupt.

use std::fmt;
use std::rc::Rc;

use comeback_engine::Timestamp;

use crate::account::Account;
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::function::FunctionName;
use crate::interrupt::Interrupt;
use crate::text::Text;

/// An operator who asks or changes something, with the deployment, and the ways to follow and stop the work.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The account.
    pub account: Account,
    /// The deployment.
    pub which: Which,
    /// Ends long work.
    pub interrupt: Interrupt,
    /// Watches long work.
    pub follow: Rc<dyn Follow>,
}

/// A deployment, as an operator names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The deployment of this retry handler.
    Handler(FunctionName),
    /// The deployment of this stack.
    Stack(String),
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handler(handler) => write!(f, "handler {handler}"),
            Self::Stack(stack) => write!(f, "stack {stack}"),
        }
    }
}

impl Operator {
    /// An operator without a follower or an interrupt, as in a pipeline.
    pub fn new(account: Account, which: Which) -> Self {
        Self { account, which, interrupt: Interrupt::never(), follow: Rc::new(Unwatched) }
    }

    /// The account's current time.
    pub fn now(&self) -> Timestamp {
        self.account.now()
    }

    /// Finds the deployment, unless interrupted.
    ///
    /// # Errors
    ///
    /// If the deployment does not exist, or cannot be read.
    pub async fn deployment(&self) -> Result<Deployment, Failure> {
        let (handler, stack) = match &self.which {
            Which::Handler(handler) => (Some(handler), ""),
            Which::Stack(stack) => (None, &**stack),
        };
        self.interrupt.or(Deployment::find(&self.account, handler, stack)).await
    }

    /// The first line of every command, which names the deployment, the account and the region.
    pub fn headline(&self) -> String {
        format!("{} in {}", self.which, self.account.place)
    }
}

/// A follower of a question or a change that takes a while.
pub trait Follow: fmt::Debug {
    /// Receives the progress of the work. A changed unit means that a new stage has begun.
    fn progress(&self, progress: Progress);

    /// Receives a remark on what the work is about to do, such as to hide dead-letters from others.
    fn remark(&self, text: &Text);
}

/// The progress of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Units done.
    pub done: u64,
    /// The number of all units, if known.
    pub of: Option<u64>,
    /// The units, such as `dead-letters`.
    pub unit: &'static str,
}

/// A follower that ignores everything.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Follow for Unwatched {
    fn progress(&self, _: Progress) {}

    fn remark(&self, _: &Text) {}
}
