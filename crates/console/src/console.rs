//! The state that all pages share: the deployment, its AWS account, and the data last read from the account.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use comeback_engine::{RETENTION, Timestamp};
use comeback_operate::activity::{RecordedChanges, recorded};
use comeback_operate::deployment::Deployment;
use comeback_operate::doctor::diagnosis::{Diagnosis, Examination};
use comeback_operate::doctor::doctor;
use comeback_operate::function::FunctionName;
use comeback_operate::status::{Status, status};
use comeback_operate::trace::{LinesOf, Trace, TraceOptions, trace};
use comeback_operate::waiting::filter::WaitingFilter;
use comeback_operate::waiting::reading::{LogQuery, Reading};
use comeback_operate::{
    Account, Address, Command, CommandName, Failure, Follow, Interrupt, Operator, Progress, Text, Unwatched,
};
use send_wrapper::SendWrapper;
use tokio::sync::OnceCell;

use crate::dead::state::Dead;
use crate::demonstration::Demonstration;
use crate::fresh::{Behind, Fresh, Read};
use crate::rehearsal::Labs;
use crate::work::Works;
use comeback_operate::clock::now;

/// The console's state, which every page receives. All pages run on one thread, as `SendWrapper` requires.
#[derive(Clone)]
pub(super) struct Console(SendWrapper<Rc<Shared>>);

pub(super) struct Shared {
    pub(super) address: Address,
    pub(super) read_only: bool,
    pub(super) works: Works,
    pub(super) dead: Dead,
    account: OnceCell<Account>,
    /// The demonstration that the console shows, or `None` for a real deployment.
    pub(super) demo: Option<Demonstration>,
    status: Fresh<Status>,
    activity: Fresh<RecordedChanges>,
    /// The latest counts for the navigation, which every page shows.
    pub(super) counts: Cell<Option<NavigationCounts>>,
    /// Traces of events, by id. The flag is true if the trace includes the function's log lines from every attempt.
    traces: Cached<(String, bool), Trace>,
    deployment: Fresh<Deployment>,
    /// Results of `doctor`, by function; `None` stands for the whole deployment.
    checks: Cached<Option<String>, Diagnosis>,
    pub(super) labs: Labs,
    log: Rc<Behind<RefCell<Reading>>>,
    /// Progress of the first read of the handler's log.
    log_progress: Rc<PagesRead>,
}

#[derive(Clone, Copy)]
pub(super) struct NavigationCounts {
    pub(super) waiting: u64,
    pub(super) dead_letters: u64,
}

type Cached<K, T> = RefCell<BTreeMap<K, Rc<Fresh<T>>>>;

/// A result computed from the waiting events, or the progress of the first read of the handler's log.
pub(super) enum LogRead<T> {
    /// The time when the log was read, and the result.
    Read { at: Timestamp, value: Result<T, Failure> },
    /// The number of log pages read so far.
    Reading(u64),
}

impl<T> LogRead<T> {
    /// The time when the handler's log was last read, or `None` during the first read.
    pub(super) fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Read { at, .. } => Some(*at),
            Self::Reading(_) => None,
        }
    }

    /// The value from the last read of the handler's log. `None` during the first read, or if the log could not be
    /// read.
    pub(super) fn known(self) -> Option<T> {
        match self {
            Self::Read { value, .. } => value.ok(),
            Self::Reading(_) => None,
        }
    }
}

impl std::ops::Deref for Console {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Console {
    pub(super) fn new(address: Address, read_only: bool, demo: Option<Demonstration>) -> Self {
        Self(SendWrapper::new(Rc::new(Shared {
            address,
            read_only,
            works: Works::default(),
            dead: Dead::default(),
            account: OnceCell::new_with(demo.as_ref().map(Demonstration::account)),
            demo,
            status: Fresh::default(),
            activity: Fresh::default(),
            counts: Cell::default(),
            deployment: Fresh::default(),
            checks: RefCell::default(),
            labs: Labs::default(),
            traces: RefCell::default(),
            log: Rc::default(),
            log_progress: Rc::default(),
        })))
    }

    /// Sets the account that the pages use.
    #[cfg(test)]
    pub(super) fn reach(&self, account: Account) {
        self.account.set(account).expect("no page has reached another");
    }

    /// The deployment's AWS account, or `None` until a page has connected to it.
    pub(super) fn account(&self) -> Option<&Account> {
        self.account.get()
    }

    /// The current time according to the account's clock or, until a page has connected to the account, this machine's
    /// clock.
    pub(super) fn now(&self) -> Timestamp {
        self.account().map_or_else(now, Account::now)
    }

    /// Connects to the account, unless an earlier call has done so, and returns an [`Operator`] for this deployment.
    pub(super) async fn operator(
        &self,
        follow: Rc<dyn Follow>,
        interrupt: Interrupt,
    ) -> Result<Operator, Failure> {
        let account = self.account.get_or_try_init(|| connect(&self.address)).await?.clone();
        Ok(Operator { account, which: self.address.which.clone(), interrupt, follow })
    }

    /// Returns an [`Operator`] for a page that only reads. It needs no interrupt, because a read ends when its future
    /// is dropped.
    pub(super) async fn asking(&self) -> Result<Operator, Failure> {
        self.operator(Rc::new(Unwatched), Interrupt::default()).await
    }

    /// A command line for this deployment, for the operator to copy.
    pub(super) fn command<W: Into<String>>(
        &self,
        name: CommandName,
        words: impl IntoIterator<Item = W>,
    ) -> String {
        Command::new(name, words, self.address.flags()).to_string()
    }

    /// Calls `look` with the waiting events from the last read of the handler's log, and with the current pauses
    /// applied.
    pub(super) async fn waiting<T>(&self, look: impl FnOnce(&Reading, Timestamp) -> T) -> LogRead<T> {
        let console = self.clone();
        let clock = self.clone();
        let read =
            self.log.get(move || clock.now(), |known| async move { console.read_log(known).await }).await;
        let Some(Read { at, value }) = read else {
            return LogRead::Reading(self.log_progress.count());
        };
        let look = |reading: Rc<RefCell<Reading>>| {
            let mut reading = reading.borrow_mut();
            if let Some(counts) = self.counts.get() {
                self.counts.set(Some(NavigationCounts { waiting: reading.retry_queue.total(), ..counts }));
            }
            let now = self.now();
            reading.apply_pauses(now);
            look(&reading, now)
        };
        LogRead::Read { at, value: value.map(look) }
    }

    /// Marks every cached value as outdated after a change, so that no page shows the old state.
    pub(super) fn has_changed(&self) {
        self.log.outdate();
        self.status.outdate();
        self.activity.outdate();
        self.deployment.outdate();
        self.checks.borrow_mut().clear();
        self.traces.borrow_mut().clear();
    }

    async fn read_log(&self, known: Option<Rc<RefCell<Reading>>>) -> Result<Rc<RefCell<Reading>>, Failure> {
        let operator = self.operator(self.log_progress.clone(), Interrupt::default()).await?;
        let deployment = operator.deployment().await?;
        if let Some(reading) = known {
            Reading::go_on(&reading, &operator, deployment, operator.now()).await?;
            return Ok(reading);
        }
        let wanted = WaitingFilter::default();
        let scope = LogQuery::of(&wanted);
        let reading = Reading::read(&operator, deployment, scope, operator.now()).await?;
        Ok(Rc::new(RefCell::new(reading)))
    }

    /// Returns the trace of the event with this id. The trace includes the function's log lines from the last failed
    /// attempt or, if `logs` is true, from every attempt.
    pub(super) async fn trace(&self, id: &str, logs: bool) -> Read<Trace> {
        let lines = if logs { LinesOf::All } else { LinesOf::LastFailure };
        let options = TraceOptions { id: id.to_owned(), lines, since: RETENTION };
        let known = cached(&self.traces, (id.to_owned(), logs));
        known.get(|| self.now(), async |_| trace(&self.asking().await?, &options).await).await
    }

    pub(super) async fn activity(&self) -> Read<RecordedChanges> {
        self.activity.get(|| self.now(), async |_| recorded(&self.asking().await?, None).await).await
    }

    pub(super) async fn deployment(&self) -> Read<Deployment> {
        self.deployment.get(|| self.now(), async |_| self.asking().await?.deployment().await).await
    }

    /// Returns the doctor's diagnosis of the function, or of the whole deployment if `function` is `None`.
    pub(super) async fn checks(&self, function: Option<&FunctionName>) -> Read<Diagnosis> {
        let known = cached(&self.checks, function.map(FunctionName::to_string));
        let functions = function.cloned().into_iter().collect();
        let examination = Examination { functions, ..Examination::default() };
        known.get(|| self.now(), async |_| doctor(&self.asking().await?, &examination).await).await
    }

    pub(super) async fn status(&self) -> Read<Status> {
        let read =
            async |before: Option<Rc<Status>>| status(&self.asking().await?, true, before.as_deref()).await;
        let read = self.status.get(|| self.now(), read).await;
        let counts = |status: &Rc<Status>| NavigationCounts {
            waiting: status.retry_queue.total(),
            dead_letters: status.dead_letters.total(),
        };
        self.counts.set(read.value.as_ref().ok().map(counts));
        read
    }
}

#[cfg(feature = "sdk")]
async fn connect(address: &Address) -> Result<Account, Failure> {
    address.connect().await
}

#[cfg(not(feature = "sdk"))]
async fn connect(_: &Address) -> Result<Account, Failure> {
    Err(Failure::could_not("this program was built without the AWS SDK, and has only the demonstration"))
}

/// Maximum number of values in a cache of traces or diagnoses.
const KEPT: usize = 32;

/// Returns the cached value for a key, or adds an empty value if the key is new. A full cache is cleared first.
fn cached<K: Ord, T>(values: &Cached<K, T>, key: K) -> Rc<Fresh<T>> {
    let mut values = values.borrow_mut();
    if values.len() == KEPT && !values.contains_key(&key) {
        values.clear();
    }
    Rc::clone(values.entry(key).or_default())
}

/// Counts the pages of the handler's log that have been read.
#[derive(Debug, Default)]
pub(super) struct PagesRead(Cell<u64>);

impl PagesRead {
    fn count(&self) -> u64 {
        self.0.get()
    }
}

impl Follow for PagesRead {
    fn progress(&self, progress: Progress) {
        self.0.set(progress.done);
    }

    fn remark(&self, _: &Text) {}
}
