//! The operators of a simulated run. They act on the deployment while events wait.

use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use comeback_engine::{Policies, Timestamp};

use crate::aws::agenda::START;
use crate::aws::queue::Depth;

/// The operators of one run. They act whenever the run lets them.
pub trait Operators {
    /// Lets the operators act at the current virtual time. Returns when they want to act next; `None` if they are done.
    fn act(&mut self) -> Option<Timestamp>;
}

/// The deployment of a run, as operators see and change it.
pub trait OperatedDeployment {
    /// The current virtual time.
    fn now(&self) -> Timestamp;

    /// The policies of handlers that start now.
    fn policies(&self) -> Arc<Policies>;

    /// Takes the lines that the handler has logged since the last call, each with its time. The first call returns no
    /// lines, because the run keeps lines only after that call.
    fn take_log(&self) -> Vec<(Timestamp, String)>;

    /// Counts the messages of the retry queue.
    fn depth(&self) -> Depth;

    /// Replaces the value of the pauses parameter.
    fn write_pauses(&self, text: &str);

    /// Recalls a message: replaces its visibility timeout with `timeout`, counted from now.
    ///
    /// # Errors
    ///
    /// Fails when `ChangeMessageVisibility` would fail, with SQS's code and message.
    fn recall(&self, receipt_handle: &str, timeout: Duration) -> Result<(), String>;

    /// Ends the run because a command has failed, and neither a fault nor another operator explains the failure.
    fn command_failed(&self, what: String);
}

/// Tasks of a run's operators, as the arguments of a simulation set them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorTasks {
    /// If set, the operators run `comeback retry` when the first duration has passed since the run's start. The retries
    /// are spread over the second duration.
    pub retry_now: Option<(Duration, Duration)>,
    /// If set, the operators run random commands, drawn from the seed for a run of the given length.
    pub chaos: Option<(u64, Duration)>,
}

type Make = dyn Fn(Rc<dyn OperatedDeployment>) -> Box<dyn Operators> + Send + Sync;

/// Makes the operators for each run of a [`Scenario`](crate::Scenario). Given the same policies, they must do the same
/// in every run.
#[derive(Clone)]
pub struct MakeOperators(Arc<Make>);

impl MakeOperators {
    /// Wraps a function that makes the operators of one run. The function is called once for each run.
    pub fn new(
        make: impl Fn(Rc<dyn OperatedDeployment>) -> Box<dyn Operators> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(make))
    }

    /// Makes operators who only write these values to the pauses parameter. The time of each value counts from the
    /// run's start; the earliest comes first.
    pub fn writing(texts: Vec<(Duration, String)>) -> Self {
        Self::new(move |deployment| {
            Box::new(Writing { deployment, left: texts.clone().into_iter().collect() })
        })
    }

    /// Makes the operators of one run.
    pub fn of(&self, deployment: Rc<dyn OperatedDeployment>) -> Box<dyn Operators> {
        (self.0)(deployment)
    }
}

impl fmt::Debug for MakeOperators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MakeOperators").finish_non_exhaustive()
    }
}

/// Two values are equal only if one is a clone of the other, whatever their operators do.
impl PartialEq for MakeOperators {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

struct Writing {
    deployment: Rc<dyn OperatedDeployment>,
    left: VecDeque<(Duration, String)>,
}

impl Operators for Writing {
    fn act(&mut self) -> Option<Timestamp> {
        loop {
            let at = START.saturating_add(self.left.front()?.0);
            if at > self.deployment.now() {
                return Some(at);
            }
            let (_, text) = self.left.pop_front()?;
            self.deployment.write_pauses(&text);
        }
    }
}
