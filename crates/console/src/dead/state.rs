//! The console's state of dead-letters: the snapshot, the reader of the queue, and the files that were written.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use comeback_operate::dead::Snapshot;
use comeback_operate::{Fact, Failure, Interrupt, Text};
use tokio::sync::{Notify, watch};

use crate::access::token;

/// The console's state of dead-letters.
#[derive(Default)]
pub(crate) struct Dead {
    snapshot: RefCell<Option<Rc<Snapshot>>>,
    /// The page of the action that reads the queue now; empty if it has none.
    under_way: Rc<RefCell<Option<String>>>,
    freed: Rc<Notify>,
    /// Raised when the server stops.
    stop: watch::Sender<bool>,
    files: RefCell<Vec<String>>,
    /// The dead-letter that was read again last, under a one-time name.
    read: RefCell<Option<(String, Rc<ReadAgain>)>>,
}

/// A dead-letter as it was read again when somebody asked.
pub(super) struct ReadAgain {
    pub(super) facts: Vec<Fact>,
    /// The payload or, if no event was found, the body. `None` unless it was requested.
    pub(super) text: Option<(&'static str, String)>,
    pub(super) problem: Option<Text>,
}

/// Holds the queue until it is dropped.
pub(super) struct Turn {
    under_way: Rc<RefCell<Option<String>>>,
    freed: Rc<Notify>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.under_way.replace(None);
        self.freed.notify_one();
    }
}

impl Dead {
    pub(crate) fn snapshot(&self) -> Option<Rc<Snapshot>> {
        self.snapshot.borrow().clone()
    }

    pub(crate) fn set_snapshot(&self, snapshot: Option<Snapshot>) {
        self.read.replace(None);
        self.snapshot.replace(snapshot.map(Rc::new));
    }

    /// Keeps a dead-letter that was read again until the next one is. Returns its name.
    pub(super) fn has_read(&self, read: ReadAgain) -> String {
        let name = token();
        self.read.replace(Some((name.clone(), Rc::new(read))));
        name
    }

    pub(super) fn read_again(&self, name: &str) -> Option<Rc<ReadAgain>> {
        self.read.borrow().as_ref().filter(|(known, _)| known == name).map(|(_, read)| Rc::clone(read))
    }

    /// The snapshot that a form is about.
    pub(super) fn snapshot_of(&self, scan: Option<&str>) -> Result<Rc<Snapshot>, Failure> {
        let same = self.snapshot().filter(|snapshot| scan == Some(&scan_id(snapshot)));
        same.ok_or_else(|| {
            Failure::could_not("this belongs to an earlier scan; go back and choose from the latest")
        })
    }

    /// Reserves the queue for an action with this page. `None` if another action has it.
    pub(super) fn turn(&self, path: &str) -> Option<Turn> {
        if self.under_way.borrow().is_some() {
            return None;
        }
        self.under_way.replace(Some(path.to_owned()));
        Some(Turn { under_way: Rc::clone(&self.under_way), freed: Rc::clone(&self.freed) })
    }

    /// Raised when the server stops, for an action that has no page to stop it.
    pub(super) fn interrupt(&self) -> Interrupt {
        Interrupt::of(&self.stop)
    }

    /// Stops the action that reads the queue, and waits until it has given back its dead-letters.
    pub(crate) async fn stop(&self) {
        self.stop.send_replace(true);
        while self.under_way.borrow().is_some() {
            self.freed.notified().await;
        }
    }

    /// The page of the action that reads the queue now.
    pub(super) fn under_way(&self) -> Option<String> {
        self.under_way.borrow().clone()
    }

    /// The names of the files with dead-letters that this server has written.
    pub(crate) fn files(&self) -> Vec<String> {
        self.files.borrow().clone()
    }

    pub(crate) fn has_written(&self, name: &str) {
        self.files.borrow_mut().push(name.to_owned());
    }

    /// The folder of these files, where the server was started.
    pub(super) fn folder(&self) -> PathBuf {
        std::env::current_dir().unwrap_or_default()
    }
}

/// Names a snapshot in forms.
pub(super) fn scan_id(snapshot: &Snapshot) -> String {
    snapshot.at.as_millis().to_string()
}
