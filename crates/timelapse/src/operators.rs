//! Operators of a simulated run: whoever acts on the deployment while its events wait.

use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use comeback_engine::{Policies, Timestamp};

use crate::aws::agenda::START;
use crate::aws::queue::Depth;

/// Operators at work.
pub trait Operators {
    /// Lets them do everything that they do now. Returns when they want to act again; `None` if they are done.
    fn act(&mut self) -> Option<Timestamp>;
}

/// The deployment of a run, as operators see and change it.
pub trait OperatedDeployment {
    /// The current virtual time.
    fn now(&self) -> Timestamp;

    /// The policies of handlers that start now.
    fn policies(&self) -> Arc<Policies>;

    /// Takes the lines that the handler has logged since the last call, each with its time. The run keeps lines from the
    /// first call on.
    fn take_log(&self) -> Vec<(Timestamp, String)>;

    /// Counts the messages of the retry queue.
    fn depth(&self) -> Depth;

    /// Replaces the text of the pauses parameter.
    fn write_pauses(&self, text: &str);

    /// Recalls a message: hides it anew, for this long from now on.
    ///
    /// # Errors
    ///
    /// Fails as SQS does, with its code and message.
    fn recall(&self, receipt_handle: &str, timeout: Duration) -> Result<(), String>;

    /// Ends the run: a command has failed, and neither a fault nor another operator explains it.
    fn command_failed(&self, what: String);
}

/// Tasks of a run's operators, as the arguments of a simulation set them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorTasks {
    /// Runs `comeback retry` at this time of the run, with its events spread over this time.
    pub retry_now: Option<(Duration, Duration)>,
    /// Runs commands at random, drawn from this seed for a run of this length.
    pub chaos: Option<(u64, Duration)>,
}

type Make = dyn Fn(Rc<dyn OperatedDeployment>) -> Box<dyn Operators> + Send + Sync;

/// Makes the operators for each run of a [`Scenario`](crate::Scenario). Given the same policies, they must do the same in
/// every run.
#[derive(Clone)]
pub struct MakeOperators(Arc<Make>);

impl MakeOperators {
    /// Makes operators with this function, anew for each run.
    pub fn new(
        make: impl Fn(Rc<dyn OperatedDeployment>) -> Box<dyn Operators> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(make))
    }

    /// Makes operators who only write these texts to the pauses parameter, each at its time from the run's start. The
    /// earliest comes first.
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

/// The same operators are equal; others are not, even if they do the same.
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
