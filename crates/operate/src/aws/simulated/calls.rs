//! Calls to a simulated account, their callers, and their faults.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use comeback_engine::Timestamp;
use tokio::sync::Notify;

use super::SimulatedAws;
use crate::aws::{EntryFailure, EntryFailureKind};

/// A call that is about to be made, as passed to a caller's hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// The IAM action of the call, such as `sqs:SendMessage`.
    pub action: &'a str,
    /// The resource that an error from this call names, such as a queue's URL.
    pub of: &'a str,
    /// The number of entries in a batch call; 0 for any other call.
    pub entries: usize,
}

/// A simulated fault in a call, such as a failure that outlasts the SDK's own retries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call has no effect and fails with a transient error.
    CallFails,
    /// The entries with these indexes in a batch call have no effect and fail with a transient error.
    EntriesFail(BTreeSet<usize>),
    /// The call takes effect, but the caller gets no response.
    AnswerLost,
    /// The caller is killed before it makes the call.
    CallerKilled,
}

type Latency = Box<dyn FnMut() -> Duration>;
type Hook = Box<dyn FnMut(Call<'_>) -> Option<Fault>>;

/// A caller in the simulated account, such as an operator, with its own permissions and faults.
#[derive(Default)]
pub(super) struct Caller {
    pub(super) arn: String,
    hook: RefCell<Option<Hook>>,
    denied: RefCell<BTreeSet<String>>,
    latency: RefCell<Option<Latency>>,
    /// The caller's time minus the account's time, in milliseconds.
    clock_ahead: Cell<i64>,
    calls: Cell<u64>,
    /// The number of calls that the caller may still make before it is killed; `None` means no limit.
    lives_for: Cell<Option<u64>>,
    killed: RefCell<Rc<Notify>>,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { arn, denied, calls, .. } = self;
        f.debug_struct("Caller").field("arn", arn).field("denied", denied).field("calls", calls).finish()
    }
}

impl Caller {
    pub(super) fn new(arn: &str) -> Self {
        Self { arn: arn.to_owned(), ..Self::default() }
    }
}

impl SimulatedAws {
    /// Denies this caller an IAM action, such as `sqs:ReceiveMessage`.
    pub fn deny(&self, action: &str) {
        self.caller.denied.borrow_mut().insert(action.to_owned());
    }

    /// Stops denying this caller an IAM action.
    pub fn allow(&self, action: &str) {
        self.caller.denied.borrow_mut().remove(action);
    }

    pub(super) fn is_denied(&self, action: &str) -> bool {
        self.caller.denied.borrow().contains(action)
    }

    /// Sets a hook that runs before each of this caller's calls and returns the fault to simulate, if any.
    pub fn on_call(&self, hook: impl FnMut(Call<'_>) -> Option<Fault> + 'static) {
        self.caller.hook.replace(Some(Box::new(hook)));
    }

    pub(super) fn calls_take(&self, latency: impl FnMut() -> Duration + 'static) {
        self.caller.latency.replace(Some(Box::new(latency)));
    }

    /// Sets how far this caller's clock is ahead of the account's, in milliseconds; negative means behind.
    pub(super) fn set_clock_ahead(&self, millis: i64) {
        self.caller.clock_ahead.set(millis);
    }

    pub(super) fn callers_time(&self) -> Timestamp {
        let millis = self.time().as_millis().saturating_add_signed(self.caller.clock_ahead.get());
        Timestamp::from_millis(millis)
    }

    /// The number of calls that this caller has made.
    pub fn calls(&self) -> u64 {
        self.caller.calls.get()
    }

    /// Performs `work` as this caller, and kills the caller at call number `calls` + 1. The result is then `None`.
    pub async fn killed_after<T>(&self, calls: u64, work: impl Future<Output = T>) -> Option<T> {
        self.caller.lives_for.set(Some(calls));
        self.until_killed(work).await
    }

    /// Performs `work` as this caller. Returns `None` if the caller is killed first (see [`Fault::CallerKilled`]).
    pub async fn until_killed<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let killed = Rc::new(Notify::new());
        self.caller.killed.replace(Rc::clone(&killed));
        let ended = tokio::select! {
            biased;
            ended = work => Some(ended),
            () = killed.notified() => None,
        };
        self.caller.lives_for.set(None);
        ended
    }

    /// Waits for the time that a call takes to reach the account.
    pub(super) async fn travel(&self) {
        let latency = self.caller.latency.borrow_mut().as_mut().map(|draw| draw());
        if let Some(latency) = latency {
            self.clock().sleep_until(self.time().saturating_add(latency)).await;
        }
    }

    /// Begins a call: yields to other callers, and returns the fault to simulate, if any. Fails if the caller is not
    /// allowed to make the call.
    pub(super) async fn begin(
        &self,
        action: &str,
        of: &str,
        entries: usize,
    ) -> Result<Option<Fault>, EntryFailure> {
        yield_now().await;
        let Caller { arn, hook, calls, lives_for, killed, .. } = &*self.caller;
        let hooked = hook.borrow_mut().as_mut().map(|hook| hook(Call { action, of, entries }));
        let fault = match lives_for.get() {
            Some(0) => Some(Fault::CallerKilled),
            left => {
                lives_for.set(left.map(|calls| calls - 1));
                hooked.flatten()
            }
        };
        if fault == Some(Fault::CallerKilled) {
            // The concurrent calls of a killed caller are not made either.
            lives_for.set(Some(0));
            killed.borrow().notify_one();
            std::future::pending::<()>().await;
        }
        calls.set(calls.get() + 1);
        if self.is_denied(action) {
            let message = format!("User: {arn} is not authorized to perform: {action}");
            return Err(entry(EntryFailureKind::Denied, code(action), &message));
        }
        Ok(fault)
    }
}

/// Returns the error code of a denied call, which depends on the action's service.
fn code(action: &str) -> &'static str {
    match action.split(':').next() {
        Some("lambda" | "logs" | "ssm" | "kms") => "AccessDeniedException",
        _ => "AccessDenied",
    }
}

pub(super) fn entry(kind: EntryFailureKind, code: &str, message: &str) -> EntryFailure {
    EntryFailure { kind, code: code.to_owned(), text: format!("{code}: {message}") }
}

pub(super) async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
