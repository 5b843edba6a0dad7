//! An in-memory account for tests and demonstrations.
//!
//! [`SimulatedAws`] implements [`Aws`](crate::aws::Aws) on an [`AccountState`], which may be changed between calls. A
//! hook can inject a [`Fault`] into any call.
//!
//! - A [`Sample`] account has a deployment, but nothing runs.
//! - In a [`Demo`], functions fail and the retry handler retries them.
//! - [`SimulatedOperators`] run commands while the simulator, `comeback-timelapse`, runs the handler.

mod calls;
mod clock;
mod demo;
mod function;
mod logs;
mod metrics;
mod operators;
mod parameter;
mod port;
mod queue;
mod role;
mod running;
mod sample;
mod stack;

use std::cell::{OnceCell, RefCell, RefMut};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use comeback_engine::Timestamp;

use crate::account::{Account, Place};
use crate::aws::{self, Executions, KmsKey, Mapping, MetricAlarm};
use crate::function::FunctionName;
use running::Running;

pub use calls::{Call, Fault};
pub use clock::{Clock, ManualClock};
pub use demo::{Demo, DemoFunction};
pub use function::{Function, Invocation, function_arn, role_arn};
pub use logs::LogGroup;
pub use metrics::Metrics;
pub use operators::{Circumstances, EventSelection, SimulatedChange, SimulatedCommand, SimulatedOperators};
pub use parameter::Parameter;
pub use queue::{SimulatedQueue, Stored};
pub use role::{Role, policy};
pub use sample::Sample;
pub use stack::Stack;

/// The account id of the simulated account.
pub const ACCOUNT: &str = "123456789012";
/// The region of the simulated account.
pub const REGION: &str = "eu-west-1";
const CALLER: &str = "arn:aws:iam::123456789012:user/ops";

/// An in-memory AWS account, as seen by one caller; a clone has the same account and caller.
#[derive(Clone)]
pub struct SimulatedAws {
    world: Rc<World>,
    caller: Rc<calls::Caller>,
}

/// The state that all callers in an account share.
struct World {
    state: RefCell<AccountState>,
    /// The account's clock until `clock` is set.
    manual: Rc<ManualClock>,
    clock: OnceCell<Rc<dyn Clock>>,
    running: OnceCell<Rc<Running>>,
}

/// The state of a simulated account.
#[derive(Clone, Debug, Default)]
pub struct AccountState {
    /// Functions by name.
    pub functions: BTreeMap<String, Function>,
    /// Roles by name.
    pub roles: BTreeMap<String, Role>,
    /// Event source mappings.
    pub mappings: Vec<Mapping>,
    /// The account's limits on concurrent executions.
    pub executions: Option<Executions>,
    /// Queues by name.
    pub queues: BTreeMap<String, SimulatedQueue>,
    /// KMS keys by ARN, id or alias.
    pub keys: BTreeMap<String, KmsKey>,
    /// SSM parameters by name.
    pub parameters: BTreeMap<String, Parameter>,
    /// Log groups by name.
    pub log_groups: BTreeMap<String, LogGroup>,
    /// The account's metrics and their data points.
    pub metrics: Metrics,
    /// Metric alarms by name; their states change automatically only while a deployment runs.
    pub alarms: BTreeMap<String, MetricAlarm>,
    /// Stacks by name.
    pub stacks: BTreeMap<String, Stack>,
    /// The time until a role's new permission takes effect in Lambda.
    pub permissions_take: Duration,
    /// The time of the last access to the account.
    looked_at: Option<Timestamp>,
    requests: u64,
}

impl fmt::Debug for SimulatedAws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedAws")
            .field("now", &self.time())
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

impl SimulatedAws {
    /// Creates an empty account with a clock that shows `now`.
    pub fn new(now: Timestamp) -> Self {
        let world = World {
            state: RefCell::default(),
            manual: Rc::new(ManualClock::new(now)),
            clock: OnceCell::new(),
            running: OnceCell::new(),
        };
        Self { world: Rc::new(world), caller: Rc::new(calls::Caller::new(CALLER)) }
    }

    /// Creates another caller in the same account, with its own permissions and its own call hook.
    #[must_use]
    pub fn called_by(&self, arn: &str) -> Self {
        Self { world: Rc::clone(&self.world), caller: Rc::new(calls::Caller::new(arn)) }
    }

    /// A connection to the simulated account, for commands.
    pub fn account(&self) -> Account {
        let (account, region) = (ACCOUNT.to_owned(), REGION.to_owned());
        let place = Place { account, region, caller: self.caller.arn.clone(), flags: String::new() };
        Account { aws: Rc::new(self.clone()), place }
    }

    /// The state of the simulated account at the current time. Drop the returned value before the next call to the
    /// account.
    ///
    /// # Panics
    ///
    /// Panics if the value from an earlier call has not been dropped.
    pub fn state(&self) -> RefMut<'_, AccountState> {
        let mut state = self.world.state.borrow_mut();
        let now = self.time();
        state.settle(now);
        if let Some(running) = self.world.running.get() {
            running.run(&mut state, now);
        }
        state
    }

    /// Adds a running deployment to the simulated account, and makes `clock` the account's clock.
    fn runs(&self, running: Rc<Running>, clock: Rc<dyn Clock>) {
        self.runs_by(clock);
        assert!(self.world.running.set(running).is_ok(), "BUG: a deployment already runs");
    }

    /// Makes this clock the account's clock from now on.
    fn runs_by(&self, clock: Rc<dyn Clock>) {
        assert!(self.world.clock.set(clock).is_ok(), "BUG: the account already has a clock");
    }

    /// Returns the queue with this name.
    ///
    /// # Panics
    ///
    /// Panics if the queue does not exist.
    pub fn queue(&self, name: &str) -> RefMut<'_, SimulatedQueue> {
        RefMut::map(self.state(), |state| state.named(name))
    }

    /// Returns the function with this name.
    ///
    /// # Panics
    ///
    /// Panics if the function does not exist.
    pub fn function_named(&self, name: &str) -> RefMut<'_, Function> {
        RefMut::map(self.state(), |state| {
            state.functions.get_mut(name).unwrap_or_else(|| panic!("BUG: no function {name}"))
        })
    }

    fn clock(&self) -> &dyn Clock {
        self.world.clock.get().map_or(&*self.world.manual, |clock| &**clock)
    }

    /// The current time in the account.
    pub fn time(&self) -> Timestamp {
        self.clock().now()
    }

    /// Moves the manual clock forward by a duration.
    pub fn advance(&self, duration: Duration) {
        self.world.manual.advance(duration);
    }
}

impl AccountState {
    /// The time of the last access to the account; the epoch before the first access.
    pub fn now(&self) -> Timestamp {
        self.looked_at.unwrap_or(Timestamp::from_secs(0))
    }

    /// Applies every change that is due by `now`.
    fn settle(&mut self, now: Timestamp) {
        self.looked_at = Some(now);
        let updated: Vec<_> = self.stacks.values_mut().filter_map(|stack| stack.settle(now)).collect();
        updated.iter().for_each(|stack| sample::deploy(self, stack));
    }

    /// Adds a function, or replaces the function with the same name.
    pub fn add_function(&mut self, function: Function) {
        self.functions.insert(function.configuration.name.clone(), function);
    }

    /// Adds an empty queue and returns its URL.
    pub fn add_queue(&mut self, name: &str) -> String {
        self.queues.insert(name.to_owned(), SimulatedQueue::new(queue_arn(name)));
        queue_url(name)
    }

    /// Writes a line to a log group, and creates the group if necessary.
    pub fn log(&mut self, group: &str, stream: &str, message: impl Into<String>) {
        let now = self.now();
        self.log_groups.entry(group.to_owned()).or_default().write(now, stream, message);
    }

    /// Finds the function that a call names, and the qualifier in the name.
    fn function(&mut self, name: &str) -> Option<(&mut Function, Option<String>)> {
        let named: FunctionName = name.parse().ok()?;
        let here = function_arn(&named.name);
        if named.place.as_ref().is_some_and(|place| place.to_string() != here) {
            return None;
        }
        let qualifier = if named.is_latest { Some("$LATEST".to_owned()) } else { named.qualifier };
        Some((self.functions.get_mut(&named.name)?, qualifier))
    }

    fn role(&mut self, name: &str) -> Result<&mut Role, String> {
        let gone = || format!("NoSuchEntity: The role with name {name} cannot be found.");
        self.roles.get_mut(name).ok_or_else(gone)
    }

    fn stack(&mut self, name: &str) -> Result<&mut Stack, String> {
        let gone = || format!("ValidationError: Stack [{name}] does not exist");
        self.stacks.get_mut(name).ok_or_else(gone)
    }

    fn named(&mut self, name: &str) -> &mut SimulatedQueue {
        self.queues.get_mut(name).unwrap_or_else(|| panic!("BUG: no queue {name}"))
    }

    fn queue_of(&mut self, url: &str) -> Result<&mut SimulatedQueue, String> {
        let queue = self.queues.values_mut().find(|queue| queue_url(queue.name()) == url);
        queue.ok_or_else(|| format!("{NO_QUEUE}: {NO_QUEUE_MESSAGE}"))
    }

    /// Simulates `ReceiveMessage`, including the move to the dead-letter queue of a message that was received too many
    /// times.
    ///
    /// # Errors
    ///
    /// Fails with SQS's error code and message if the queue does not exist.
    pub fn receive(
        &mut self,
        url: &str,
        most: usize,
        visibility: Duration,
    ) -> Result<Vec<aws::Received>, String> {
        let now = self.now();
        let queue = self.queue_of(url)?;
        let (received, moved) = queue.receive(now, most, visibility);
        let to = queue.redrive().map(|(to, _)| to);
        if let Some(to) = self.queues.values_mut().find(|queue| Some(&queue.arn) == to.as_ref()) {
            moved.into_iter().for_each(|message| to.take_in(message));
        }
        Ok(received)
    }
}

const NO_QUEUE: &str = "AWS.SimpleQueueService.NonExistentQueue";
const NO_QUEUE_MESSAGE: &str = "The specified queue does not exist.";

/// The ARN of a queue in the simulated account.
pub fn queue_arn(name: &str) -> String {
    format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{name}")
}

/// The URL of a queue in the simulated account.
pub fn queue_url(name: &str) -> String {
    format!("https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name}")
}

#[cfg(test)]
mod tests;
