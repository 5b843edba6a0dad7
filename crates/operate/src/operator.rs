//! An operator at work: in which account, on which deployment, watched by whom, until when.

use std::fmt;
use std::rc::Rc;

use comeback_engine::Timestamp;
use tokio::sync::watch;

use crate::aws::Aws;
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::function::FunctionName;
use crate::text::Text;

/// Where an operator works, and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The account's number.
    pub account: String,
    /// The region.
    pub region: String,
    /// The caller's ARN.
    pub caller: String,
    /// The flags that lead a suggested command there, such as ` --region eu-west-1`.
    pub flags: String,
}

impl Place {
    /// The caller's name: the last part of the ARN of a user, or of a role's session.
    pub fn user(&self) -> &str {
        user_name(&self.caller)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of account {}", self.region, self.account)
    }
}

/// The last part of the ARN of a user or of a role's session.
pub fn user_name(arn: &str) -> &str {
    arn.rsplit(['/', ':']).next().unwrap_or(arn)
}

/// An account, and the operator's place in it.
#[derive(Clone, Debug)]
pub struct Account {
    /// The calls.
    pub aws: Rc<dyn Aws>,
    /// Where they go, and as whom.
    pub place: Place,
}

impl Account {
    /// The time of the account.
    pub fn now(&self) -> Timestamp {
        self.aws.now()
    }
}

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

/// An operator's request to stop. Long work checks it between two calls, gives back what it holds, and sums up.
#[derive(Clone, Debug)]
pub struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// An interrupt, and the sender that raises it with `true`.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (raise, raised) = watch::channel(false);
        (raise, Self(raised))
    }

    /// Another interrupt that this sender raises.
    pub fn of(raise: &watch::Sender<bool>) -> Self {
        Self(raise.subscribe())
    }

    /// An interrupt that nobody raises.
    pub fn never() -> Self {
        Self::new().1
    }

    /// Returns true once it is raised.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is raised; for ever if nothing is left that could raise it.
    pub async fn raised(&self) {
        if self.0.clone().wait_for(|raised| *raised).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Does work that may be dropped at any moment, because it changes nothing.
    ///
    /// # Errors
    ///
    /// Those of the work, or [`Failure::Interrupted`].
    pub async fn or<T, E: From<Failure>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        tokio::select! {
            result = work => result,
            () = self.raised() => Err(Failure::interrupted("nothing was changed").into()),
        }
    }
}

/// The one who watches a question or a change that takes a while.
pub trait Follow: fmt::Debug {
    /// Hears how far the work is. Work of another unit has begun when the unit changes.
    fn progress(&self, progress: Progress);

    /// Hears what the work is about to do, such as what it hides from others meanwhile.
    fn remark(&self, text: &Text);
}

/// How far a work is.
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
