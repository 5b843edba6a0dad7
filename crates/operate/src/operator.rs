//! An operator at work: in which account, on which deployment, watched by whom, until when.

use std::fmt;
use std::rc::Rc;

use comeback_engine::Timestamp;

use crate::account::Account;
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::function::FunctionName;
use crate::interrupt::Interrupt;
use crate::text::Text;

/// Who asks or changes something, of which deployment, and how the work is watched and stopped.
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
    /// By its retry handler.
    Handler(FunctionName),
    /// By its stack.
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
    /// An operator whom nobody watches or interrupts, as in a pipeline.
    pub fn new(account: Account, which: Which) -> Self {
        Self { account, which, interrupt: Interrupt::never(), follow: Rc::new(Unwatched) }
    }

    /// The time of the account.
    pub fn now(&self) -> Timestamp {
        self.account.now()
    }

    /// Finds the deployment, unless it is interrupted.
    ///
    /// # Errors
    ///
    /// If it does not exist, or cannot be read.
    pub async fn deployment(&self) -> Result<Deployment, Failure> {
        let (handler, stack) = match &self.which {
            Which::Handler(handler) => (Some(handler), ""),
            Which::Stack(stack) => (None, &**stack),
        };
        self.interrupt.or(Deployment::find(&self.account, handler, stack)).await
    }

    /// The first line of every command: where it works.
    pub fn headline(&self) -> String {
        format!("{} in {}", self.which, self.account.place)
    }
}

/// The one who watches a question or a change that takes a while.
pub trait Follow: fmt::Debug {
    /// Hears how far the work is. Work of another unit has begun when the unit changes.
    fn progress(&self, progress: Progress);

    /// Hears what the work is about to do, such as what it hides from others meanwhile.
    fn remark(&self, text: &Text);
}

/// The progress of a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Units done.
    pub done: u64,
    /// Units in all, if that is known.
    pub of: Option<u64>,
    /// The units, such as `dead-letters`.
    pub unit: &'static str,
}

/// Watches nothing.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Follow for Unwatched {
    fn progress(&self, _: Progress) {}

    fn remark(&self, _: &Text) {}
}
