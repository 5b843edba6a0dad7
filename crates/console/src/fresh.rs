//! Caches for data read from the account. All tabs share them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use comeback_engine::Timestamp;
use comeback_operate::Failure;
use tokio::sync::{Mutex, watch};

use crate::work::panicked;

/// Maximum age of a fresh value.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// Maximum age of a value that pages show while the next one is being read.
const SHOWN_FOR: Duration = Duration::from_secs(60);
/// Maximum time that a page waits for a slow read.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) struct Read<T> {
    pub(super) at: Timestamp,
    pub(super) value: Result<Rc<T>, Failure>,
}

impl<T> Read<T> {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.at) < FRESH_FOR
    }

    /// Returns true if pages may show this value while the next one is being read.
    fn is_shown(&self, now: Timestamp) -> bool {
        self.value.is_ok() && now.since(self.at) < SHOWN_FOR
    }
}

impl<T> Clone for Read<T> {
    fn clone(&self) -> Self {
        Self { at: self.at, value: self.value.clone() }
    }
}

/// A cached value that all tabs share. A stale value is read from the account again.
pub(super) struct Fresh<T> {
    // Locked during a read, so that other tabs wait for the same read.
    last: Mutex<Option<Read<T>>>,
    /// True if the account has been changed since the last read.
    is_outdated: Cell<bool>,
}

impl<T> Default for Fresh<T> {
    fn default() -> Self {
        Self { last: Mutex::new(None), is_outdated: Cell::new(false) }
    }
}

impl<T> Fresh<T> {
    /// The cached value if it is fresh; otherwise the result of `read`, which receives the previous value.
    pub(super) async fn get(
        &self,
        now: impl Fn() -> Timestamp,
        read: impl AsyncFnOnce(Option<Rc<T>>) -> Result<T, Failure>,
    ) -> Read<T> {
        let mut last = self.last.lock().await;
        let is_outdated = self.is_outdated.take();
        if let Some(fresh) = last.as_ref().filter(|last| !is_outdated && last.is_fresh(now())) {
            return fresh.clone();
        }
        let before = last.as_ref().and_then(|last| last.value.as_ref().ok().cloned());
        let value = read(before).await.map(Rc::new);
        last.insert(Read { at: now(), value }).clone()
    }

    /// Marks the value as outdated, so that the next request reads it again, no matter how recently it was read.
    pub(super) fn outdate(&self) {
        self.is_outdated.set(true);
    }
}

/// A cache for a value that may take minutes to read. Pages show the last value while a background task reads the
/// next.
pub(super) struct Behind<T> {
    last: RefCell<Option<Read<T>>>,
    /// The last value that was read successfully, from which the next read continues.
    known: RefCell<Option<Rc<T>>>,
    is_reading: watch::Sender<bool>,
    /// Number of changes to the account so far.
    changes: Cell<u64>,
    /// The value of `changes` when the last completed read began.
    changes_read: Cell<u64>,
}

impl<T> Default for Behind<T> {
    fn default() -> Self {
        Self {
            last: RefCell::default(),
            known: RefCell::default(),
            is_reading: watch::Sender::new(false),
            changes: Cell::default(),
            changes_read: Cell::default(),
        }
    }
}

impl<T: 'static> Behind<T> {
    /// Returns the last value, or `None` if the first read has not ended. Starts `read` in the background if the value
    /// is not fresh and no read is in progress.
    pub(super) async fn get<F>(
        self: &Rc<Self>,
        now: impl Fn() -> Timestamp + 'static,
        read: impl FnOnce(Option<Rc<T>>) -> F,
    ) -> Option<Read<T>>
    where
        F: Future<Output = Result<Rc<T>, Failure>> + 'static,
    {
        if !self.is_current() {
            self.settled().await;
        }
        let is_current = self.is_current();
        let last = self.last.borrow().clone();
        if is_current && last.as_ref().is_some_and(|last| last.is_fresh(now())) {
            return last;
        }
        let is_shown = is_current && last.as_ref().is_some_and(|last| last.is_shown(now()));
        if !*self.is_reading.borrow() {
            // The read runs as a separate task, so that a panic fails only the read.
            let reading = tokio::task::spawn_local(read(self.known.borrow().clone()));
            let (shared, changes) = (Rc::clone(self), self.changes.get());
            self.is_reading.send_replace(true);
            tokio::task::spawn_local(async move {
                let value = reading.await.unwrap_or_else(|panic| Err(panicked(panic)));
                if let Ok(value) = &value {
                    shared.known.replace(Some(Rc::clone(value)));
                }
                shared.last.replace(Some(Read { at: now(), value }));
                shared.changes_read.set(changes);
                shared.is_reading.send_replace(false);
            });
        }
        if is_shown {
            return last;
        }
        self.settled().await;
        self.last.borrow().clone()
    }

    async fn settled(&self) {
        let mut is_reading = self.is_reading.subscribe();
        let _ = tokio::time::timeout(PATIENCE, is_reading.wait_for(|is_reading| !is_reading)).await;
    }

    /// Returns true if the last read began after the last change.
    fn is_current(&self) -> bool {
        self.changes_read.get() == self.changes.get()
    }

    /// Marks the value as outdated, so that pages wait up to [`PATIENCE`] for the next read.
    pub(super) fn outdate(&self) {
        self.changes.set(self.changes.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join;

    use super::*;

    /// Returns the number of reads when two tabs request the value at each second in `looks`.
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
            reads(&[100, 104, 105], Err(Failure::could_not("denied"))).await,
            2,
            "a failure counts too"
        );
    }

    #[tokio::test]
    async fn a_changed_value_is_read_again() {
        let (fresh, count) = (Fresh::<u64>::default(), Cell::new(0));
        let look = async || {
            let read = async |_| {
                count.set(count.get() + 1);
                Ok(count.get())
            };
            *fresh.get(|| Timestamp::from_secs(100), read).await.value.unwrap()
        };
        assert_eq!((look().await, look().await), (1, 1));
        fresh.outdate();
        assert_eq!((look().await, look().await), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_fails_the_read_and_the_next_works() {
        let looks = async {
            let behind = Rc::new(Behind::<u64>::default());
            let look = async |second, value: Option<u64>| {
                let read = |_| async move { Ok(Rc::new(value.expect("a bug"))) };
                let read = behind.get(move || Timestamp::from_secs(second), read).await;
                read.expect("the reading has ended").value.map_err(|failure| failure.to_string())
            };
            let failure = look(100, None).await.unwrap_err();
            assert!(failure.starts_with("this is a bug in `comeback`"), "{failure}");
            assert_eq!(look(105, Some(7)).await, Ok(Rc::new(7)));
        };
        tokio::task::LocalSet::new().run_until(looks).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_value_is_shown_while_the_next_is_read() {
        let locally = tokio::task::LocalSet::new();
        let looks = async {
            let (behind, begin) = (Rc::new(Behind::<u64>::default()), tokio::time::Instant::now());
            let now = move || Timestamp::from_secs(1_000 + begin.elapsed().as_secs());
            let look = async |takes: u64| {
                let before = begin.elapsed();
                let read = |known: Option<Rc<u64>>| async move {
                    tokio::time::sleep(Duration::from_secs(takes)).await;
                    let next = known.map_or(1, |known| *known + 1);
                    // A failed read does not discard the last value.
                    if next == 4 && takes == 2 { Err(Failure::could_not("late")) } else { Ok(Rc::new(next)) }
                };
                let seen = behind.get(now, read).await;
                let seen = seen.map(|read| read.value.map(|value| *value).map_err(|_| read.at.as_secs()));
                ((begin.elapsed() - before).as_secs(), seen)
            };
            let wait = async |seconds| tokio::time::sleep(Duration::from_secs(seconds)).await;
            assert_eq!(look(10).await, (3, None), "it is read for the first time");
            wait(3).await;
            assert_eq!(look(0).await, (3, None), "by the same reading");
            wait(2).await;
            assert_eq!(look(0).await, (0, Some(Ok(1))));
            wait(5).await;
            assert_eq!(look(7).await, (0, Some(Ok(1))), "the next is read behind it");
            wait(8).await;
            assert_eq!(look(0).await, (0, Some(Ok(2))));
            behind.outdate();
            let both = join(look(1), look(1)).await;
            assert_eq!(
                both,
                ((1, Some(Ok(3))), (1, Some(Ok(3)))),
                "whoever has changed something sees that, in every tab"
            );
            wait(60).await;
            assert_eq!(look(2).await, (2, Some(Err(1_087))), "who comes back waits for the next");
            wait(5).await;
            assert_eq!(look(1).await, (1, Some(Ok(4))), "and so does who saw a failure");
            wait(60).await;
            assert_eq!(look(9).await, (3, Some(Ok(4))), "but not for long");
        };
        locally.run_until(looks).await;
    }
}
