//! What the pages share: the deployment, one account for all of them, and what was read of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use comeback_engine::{RETENTION, Timestamp};
use indicatif::ProgressBar;
use send_wrapper::SendWrapper;
use tokio::sync::{Mutex, OnceCell};

use crate::account::{Account, Failure};
use crate::clock::now;
use crate::operate::deployment::Deployment;
use crate::operate::doctor::{Finding, check};
use crate::operate::function::FunctionName;
use crate::operate::session::{Common, DeploymentFlags, Interrupt, Screen, Session};
use crate::operate::status::Status;
use crate::operate::trace::story::{Logs, Trace};
use crate::operate::waiting::{Reading, Wanted};
use crate::ui::dead::state::Dead;
use crate::ui::rehearsal::Labs;
use crate::ui::work::Works;

/// A source is read at most once in this time, however many tabs ask.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// How long a page waits for a log, before it shows how far it is.
const PATIENCE: Duration = Duration::from_secs(3);

/// The console, for every page. All pages run on one thread, which is why it can go where axum wants `Send`.
#[derive(Clone)]
pub(super) struct Console(SendWrapper<Rc<Shared>>);

pub(super) struct Shared {
    pub(super) common: Common,
    pub(super) read_only: bool,
    pub(super) works: Works,
    pub(super) dead: Dead,
    account: OnceCell<Account>,
    status: Fresh<Status>,
    traces: RefCell<Traces>,
    deployment: Fresh<Deployment>,
    checks: RefCell<Checks>,
    pub(super) labs: Labs,
    log: Arc<Mutex<Log>>,
    /// How far the first read of the log is.
    log_progress: Rc<Pages>,
}

/// By the function that was checked; `None` is the deployment.
type Checks = BTreeMap<Option<String>, Rc<Fresh<Vec<Finding>>>>;

/// By the id that was asked for, and whether the function's own lines were.
type Traces = BTreeMap<(String, bool), Rc<Fresh<Trace>>>;

/// What waits, read from the handler's log.
#[derive(Default)]
struct Log {
    reading: Option<Reading>,
    last: Option<Read<()>>,
}

/// What waits, or how far the first read of it is: that of a large log takes minutes.
pub(super) enum Waiting<T> {
    Read(Read<T>),
    /// So many pages of the log.
    Reading(u64),
}

impl std::ops::Deref for Console {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Console {
    pub(super) fn new(deployment: DeploymentFlags, read_only: bool) -> Self {
        let common = Common { deployment, json: false, yes: false };
        Self(SendWrapper::new(Rc::new(Shared {
            common,
            read_only,
            works: Works::default(),
            dead: Dead::default(),
            account: OnceCell::new(),
            status: Fresh::default(),
            deployment: Fresh::default(),
            checks: RefCell::default(),
            labs: Labs::default(),
            traces: RefCell::default(),
            log: Arc::default(),
            log_progress: Rc::default(),
        })))
    }

    /// The account, if a page has reached it yet.
    pub(super) fn account(&self) -> Option<&Account> {
        self.account.get()
    }

    /// A session to read with. It fails without credentials, and tries again next time.
    pub(super) async fn session(&self) -> Result<Session, Failure> {
        // Nobody interrupts what only reads: it ends when the browser hangs up.
        let (_, never) = Interrupt::new();
        self.session_on(Rc::new(Pages::default()), never).await
    }

    /// A session of a command that this screen shows.
    pub(super) async fn session_on(
        &self,
        screen: Rc<dyn Screen>,
        interrupt: Interrupt,
    ) -> Result<Session, Failure> {
        let account = self.account.get_or_try_init(|| self.common.deployment.connect()).await?;
        Ok(Session::on_screen(account.clone(), interrupt, self.common.clone(), screen))
    }

    /// What `comeback waiting` reads, for a page to look at. The log is read from where it was read last, by a task that goes
    /// on if the browser hangs up.
    pub(super) async fn waiting<T>(&self, look: impl FnOnce(&mut Reading, Timestamp) -> T) -> Waiting<T> {
        let lock = async || tokio::time::timeout(PATIENCE, Arc::clone(&self.log).lock_owned()).await;
        let Ok(mut log) = lock().await else { return Waiting::Reading(self.log_progress.count()) };
        if log.last.as_ref().is_none_or(|last| !last.is_fresh(now())) {
            let console = self.clone();
            tokio::task::spawn_local(async move {
                let value = console.read_log(&mut log.reading).await.map(Rc::new);
                log.last = Some(Read { at: now(), value });
            });
            let Ok(read) = lock().await else { return Waiting::Reading(self.log_progress.count()) };
            log = read;
        }
        let Log { reading, last } = &mut *log;
        let last = last.as_ref().expect("BUG: it was just read");
        let look = |()| look(reading.as_mut().expect("BUG: it was just read"), now());
        Waiting::Read(Read { at: last.at, value: last.value.clone().map(|_| Rc::new(look(()))) })
    }

    async fn read_log(&self, reading: &mut Option<Reading>) -> Result<(), Failure> {
        let (_, never) = Interrupt::new();
        let session = self.session_on(self.log_progress.clone(), never).await?;
        let deployment = session.deployment().await?;
        match reading {
            Some(reading) => reading.go_on(&session, deployment, now()).await?,
            None => {
                *reading = Some(Reading::read(&session, deployment, &Wanted::default(), None, now()).await?)
            }
        }
        Ok(())
    }

    /// What `comeback trace` answers, with the function's own lines or without.
    pub(super) async fn trace(&self, id: &str, logs: bool) -> Read<Trace> {
        let known = {
            let mut traces = self.traces.borrow_mut();
            if traces.len() == KEPT {
                traces.clear();
            }
            Rc::clone(traces.entry((id.to_owned(), logs)).or_default())
        };
        let read = async || {
            let session = self.session().await?;
            let deployment = session.deployment().await?;
            let since = now().before(RETENTION);
            let (account, deployment) = (&session.account, &deployment);
            Trace::find(&Logs { account, deployment, since, progress: &|_| () }, id, logs).await
        };
        known.get(now, async |_| read().await).await
    }

    pub(super) async fn deployment(&self) -> Read<Deployment> {
        self.deployment.get(now, async |_| self.session().await?.deployment().await).await
    }

    /// What `comeback doctor` finds, of one function or of all.
    pub(super) async fn checks(&self, function: Option<&FunctionName>) -> Read<Vec<Finding>> {
        let known = {
            let mut checks = self.checks.borrow_mut();
            if checks.len() == KEPT {
                checks.clear();
            }
            Rc::clone(checks.entry(function.map(FunctionName::to_string)).or_default())
        };
        let named: Vec<FunctionName> = function.cloned().into_iter().collect();
        known.get(now, async |_| check(&self.session().await?, &named).await).await
    }

    /// What `comeback status` answers.
    pub(super) async fn status(&self) -> Read<Status> {
        self.status
            .get(now, async |before| Status::read(&self.session().await?, before.as_deref(), true).await)
            .await
    }
}

/// Lives of events, and checks of functions, that are kept for other tabs.
const KEPT: usize = 32;

/// The screen of what is only read: its value is what counts, and how much was read so far.
#[derive(Debug, Default)]
pub(super) struct Pages(RefCell<Option<ProgressBar>>);

impl Pages {
    fn count(&self) -> u64 {
        self.0.borrow().as_ref().map_or(0, ProgressBar::position)
    }
}

impl Screen for Pages {
    fn print(&self, _: &str) {}

    fn note(&self, _: &str) {}

    fn follow(&self, bar: ProgressBar, _: &'static str) {
        self.0.replace(Some(bar));
    }

    fn confirm(&self, _: &str, _: Option<&str>) -> Result<(), Failure> {
        Err(Failure::NotConfirmed("nothing was changed".into()))
    }
}

/// A value that was read, or why it was not.
pub(super) struct Read<T> {
    pub(super) at: Timestamp,
    pub(super) value: Result<Rc<T>, Failure>,
}

impl<T> Read<T> {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.at) < FRESH_FOR
    }
}

impl<T> Clone for Read<T> {
    fn clone(&self) -> Self {
        Self { at: self.at, value: self.value.clone() }
    }
}

/// Something of the account that every tab shares. It is read when a page asks for it, unless it is fresh.
pub(super) struct Fresh<T> {
    // Held while it is read, so that whoever asks meanwhile waits for the same read.
    last: Mutex<Option<Read<T>>>,
}

impl<T> Default for Fresh<T> {
    fn default() -> Self {
        Self { last: Mutex::new(None) }
    }
}

impl<T> Fresh<T> {
    /// The value. `read` may start from the one before.
    pub(super) async fn get(
        &self,
        now: impl Fn() -> Timestamp,
        read: impl AsyncFnOnce(Option<Rc<T>>) -> Result<T, Failure>,
    ) -> Read<T> {
        let mut last = self.last.lock().await;
        if let Some(fresh) = last.as_ref().filter(|last| last.is_fresh(now())) {
            return fresh.clone();
        }
        let before = last.as_ref().and_then(|last| last.value.as_ref().ok().cloned());
        let value = read(before).await.map(Rc::new);
        last.insert(Read { at: now(), value }).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::future::join;

    use super::*;

    /// How often a value was read after these looks, at these seconds, each by two tabs at once.
    async fn reads(looks: &[u64], result: Result<u64, Failure>) -> u64 {
        let (fresh, count) = (Fresh::<u64>::default(), Cell::new(0));
        for second in looks {
            let look = || async {
                let read = async |before: Option<Rc<u64>>| {
                    assert_eq!(before.is_some(), result.is_ok() && count.get() > 0);
                    tokio::task::yield_now().await;
                    count.set(count.get() + 1);
                    result.clone()
                };
                fresh.get(|| Timestamp::from_secs(*second), read).await
            };
            let (one, other) = join(look(), look()).await;
            assert_eq!(one.value, other.value);
        }
        count.get()
    }

    #[tokio::test]
    async fn all_tabs_share_one_read_in_five_seconds() {
        assert_eq!(reads(&[100], Ok(1)).await, 1);
        assert_eq!(reads(&[100, 104], Ok(1)).await, 1);
        assert_eq!(reads(&[100, 105, 107, 111], Ok(1)).await, 3);
        assert_eq!(
            reads(&[100, 104, 105], Err(Failure::CouldNot("denied".into()))).await,
            2,
            "a failure counts too"
        );
    }
}
