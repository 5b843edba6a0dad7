//! What the pages share: the deployment, one account for all of them, and what was read of it.

use std::rc::Rc;
use std::time::Duration;

use comeback_engine::Timestamp;
use send_wrapper::SendWrapper;
use tokio::sync::{Mutex, OnceCell};

use crate::account::{Account, Failure};
use crate::clock::now;
use crate::operate::session::{Common, DeploymentFlags, Interrupt, Screen, Session};
use crate::operate::status::Status;
use crate::ui::work::Works;

/// A source is read at most once in this time, however many tabs ask.
const FRESH_FOR: Duration = Duration::from_secs(5);

/// The console, for every page. All pages run on one thread, which is why it can go where axum wants `Send`.
#[derive(Clone)]
pub(super) struct Console(SendWrapper<Rc<Shared>>);

pub(super) struct Shared {
    pub(super) common: Common,
    pub(super) read_only: bool,
    pub(super) works: Works,
    account: OnceCell<Account>,
    pub(super) status: Fresh<Status>,
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
            account: OnceCell::new(),
            status: Fresh::default(),
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
        self.session_on(Rc::new(Unseen), never).await
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

    /// What `comeback status` answers.
    pub(super) async fn status(&self) -> Read<Status> {
        self.status
            .get(now, async |before| Status::read(&self.session().await?, before.as_deref(), true).await)
            .await
    }
}

/// The screen of what is only read: its value is what counts.
#[derive(Debug)]
pub(super) struct Unseen;

impl Screen for Unseen {
    fn print(&self, _: &str) {}

    fn note(&self, _: &str) {}

    fn follow(&self, _: indicatif::ProgressBar, _: &'static str) {}

    fn confirm(&self, _: &str, _: Option<&str>) -> Result<(), Failure> {
        Err(Failure::NotConfirmed("nothing was changed".into()))
    }
}

/// A value that was read, or why it was not.
pub(super) struct Read<T> {
    pub(super) at: Timestamp,
    pub(super) value: Result<Rc<T>, Failure>,
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
        if let Some(fresh) = last.as_ref().filter(|last| now().since(last.at) < FRESH_FOR) {
            return fresh.clone();
        }
        let before = last.as_ref().and_then(|last| last.value.as_ref().ok().cloned());
        let value = read(before).await.map(Rc::new);
        last.insert(Read { at: now(), value }).clone()
    }
}
