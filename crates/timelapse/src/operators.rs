//! The operators in a simulated run, who act on the deployment while events wait.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use comeback_engine::{Policies, Timestamp};

use crate::aws::queue::Depth;

/// The simulated operators in one run. A call makes them act at the current virtual time, and returns the time of the
/// next call; `None` if they are done. The first call is at the run's start.
pub type Operators = Box<dyn FnMut() -> Option<Timestamp>>;

/// The parts of a run's deployment that operators can read and change.
pub trait OperatedDeployment {
    /// The current virtual time.
    fn now(&self) -> Timestamp;

    /// The policies that a handler environment uses if it starts now.
    fn policies(&self) -> Arc<Policies>;

    /// Removes and returns the handler's log lines since the previous call, each with its time. The first call returns
    /// none, because the run keeps log lines only from then on.
    fn take_log(&self) -> Vec<(Timestamp, String)>;

    /// Number of messages in the retry queue, by state.
    fn depth(&self) -> Depth;

    /// Replaces the value of the pauses parameter.
    fn write_pauses(&self, text: &str);

    /// Replaces a message's visibility timeout with `timeout`, counted from now.
    ///
    /// # Errors
    ///
    /// Fails with SQS's error code and message if SQS refuses `ChangeMessageVisibility`.
    fn recall(&self, receipt_handle: &str, timeout: Duration) -> Result<(), String>;

    /// Reports a command's failure, which violates [`WorkingCommands`](crate::Invariant::WorkingCommands) unless a
    /// fault or another operator excuses it.
    fn command_failed(&self, what: String, excused: bool);
}

impl fmt::Debug for dyn OperatedDeployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatedDeployment").finish_non_exhaustive()
    }
}

type Make = dyn Fn(Rc<dyn OperatedDeployment>) -> Operators + Send + Sync;

/// Creates the operators for each run of a [`Scenario`](crate::Scenario). Under the same policies, the operators must
/// act in the same way.
#[derive(Clone)]
pub struct MakeOperators(Arc<Make>);

impl MakeOperators {
    /// Wraps a function that creates the operators for one run.
    pub fn new(make: impl Fn(Rc<dyn OperatedDeployment>) -> Operators + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// Creates the operators for one run.
    pub fn of(&self, deployment: Rc<dyn OperatedDeployment>) -> Operators {
        (self.0)(deployment)
    }
}

impl fmt::Debug for MakeOperators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MakeOperators").finish_non_exhaustive()
    }
}
