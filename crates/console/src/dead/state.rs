//! The console's view of dead-letters: the newest snapshot, the action that reads the queue, and the console's files.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use comeback_operate::dead::Snapshot;
use comeback_operate::{Fact, Failure, Interrupt, Text};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::access::token;

#[derive(Default)]
pub(crate) struct Dead {
    snapshot: RefCell<Option<Rc<Snapshot>>>,
    /// The lock that an action holds while it reads the queue.
    queue: Arc<Mutex<()>>,
    /// Path of the page about the action that last locked the queue. The path is empty if the action has no page.
    action: RefCell<String>,
    /// The interrupt of actions without a Stop button. It is raised when the server stops.
    pub(super) interrupt: Interrupt,
    files: RefCell<Vec<String>>,
    /// The dead-letter that the console last read again from the queue, and the random name in its page's URL.
    read: RefCell<Option<(String, Rc<ReadAgain>)>>,
}

/// A dead-letter that the console has read again from the queue, at the operator's request.
pub(super) struct ReadAgain {
    pub(super) facts: Vec<Fact>,
    /// A heading and the requested text: the payload, or the message's body if no event was found in it.
    pub(super) text: Option<(&'static str, String)>,
    /// The formatted payload, if the operator asked to edit it.
    pub(super) editable: Option<String>,
    pub(super) problem: Option<Text>,
}

/// Reserves the dead-letter queue for one action until this value is dropped.
pub(crate) type Turn = OwnedMutexGuard<()>;

impl Dead {
    pub(crate) fn snapshot(&self) -> Option<Rc<Snapshot>> {
        self.snapshot.borrow().clone()
    }

    pub(crate) fn set_snapshot(&self, snapshot: Option<Snapshot>) {
        self.read.replace(None);
        self.snapshot.replace(snapshot.map(Rc::new));
    }

    /// Stores a dead-letter that was read again, in place of the previous one. Returns a random name for its URL.
    pub(super) fn has_read(&self, read: ReadAgain) -> String {
        let name = token();
        self.read.replace(Some((name.clone(), Rc::new(read))));
        name
    }

    pub(super) fn read_again(&self, name: &str) -> Option<Rc<ReadAgain>> {
        self.read.borrow().as_ref().filter(|(known, _)| known == name).map(|(_, read)| Rc::clone(read))
    }

    /// Returns the newest snapshot. Fails unless `scan` is its id.
    pub(super) fn snapshot_of(&self, scan: Option<&str>) -> Result<Rc<Snapshot>, Failure> {
        let same = self.snapshot().filter(|snapshot| scan == Some(&scan_id(snapshot)));
        same.ok_or_else(|| {
            Failure::could_not("this belongs to an earlier scan; go back and choose from the latest")
        })
    }

    /// Reserves the dead-letter queue for the action at `path`, unless another action has reserved it.
    pub(crate) fn turn(&self, path: &str) -> Option<Turn> {
        let turn = Arc::clone(&self.queue).try_lock_owned().ok()?;
        self.action.replace(path.to_owned());
        Some(turn)
    }

    /// Stops the action that reads the queue, and waits until the action has made the messages visible again.
    pub(crate) async fn stop(&self) {
        self.interrupt.raise();
        drop(self.queue.lock().await);
    }

    /// Returns the path of the page about the action that is reading the queue, or `None` if no action is reading it.
    pub(super) fn under_way(&self) -> Option<String> {
        self.queue.try_lock().is_err().then(|| self.action.borrow().clone())
    }

    /// Names of the files that this server has written.
    pub(crate) fn files(&self) -> Vec<String> {
        self.files.borrow().clone()
    }

    pub(crate) fn has_written(&self, name: &str) {
        let mut files = self.files.borrow_mut();
        if !files.iter().any(|known| known == name) {
            files.push(name.to_owned());
        }
    }

    /// The folder where the server was started.
    pub(crate) fn folder(&self) -> PathBuf {
        std::env::current_dir().unwrap_or_default()
    }
}

/// The id of a snapshot, for use in forms: the time of the scan, in milliseconds since 1970.
pub(crate) fn scan_id(snapshot: &Snapshot) -> String {
    snapshot.at.as_millis().to_string()
}
