//! Contracts for SQS, the event source mapping and asynchronous invocations.
//!
//! Each is checked on MiniStack. Some are also checked on the queue that the engine's tests use. Unit tests of
//! `comeback-timelapse` check all of them on the simulations' model of SQS.

#[path = "../../../crates/engine/tests/engine/account/queue.rs"]
mod engine;
#[path = "../../../crates/timelapse/src/aws/tests/mapping.rs"]
mod mapping;
#[path = "../../../crates/timelapse/src/aws/tests/queue.rs"]
mod queue;
mod real;
#[path = "../../../crates/timelapse/src/aws/tests/stand.rs"]
mod stand;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use comeback_engine::{Record, Timestamp};
use comeback_timelapse::Depth;
use libtest_mimic::Trial;

use crate::world::{RUNTIME, World};
use real::Real;
use stand::{Difference, LONG, Queue, contracts};

/// The attributes of a message that the contracts use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct QueuedAttributes {
    comeback: Option<Box<str>>,
    trace_header: Option<Box<str>>,
}

/// Returns the trials of all contracts. Each contract has the trial `contract::ministack::…`; some also have
/// `contract::engine::…`.
pub(crate) fn trials(world: &Arc<World>) -> Vec<Trial> {
    let mut trials = Vec::new();
    macro_rules! trials {
        ($($stand:ident: ($module:ident::$name:ident, $visibility_timeout:expr)),* $(,)?) => {
            $(trials!(@ $stand $module $name $visibility_timeout);)*
        };
        (@ queue $module:ident $name:ident $visibility_timeout:expr) => {
            trials!(@ stand $module $name $visibility_timeout);
            trials.push(Trial::test(concat!("contract::engine::", stringify!($name)), move || {
                RUNTIME.block_on($module::$name(&EngineQueue::new($visibility_timeout)));
                Ok(())
            }));
        };
        (@ stand $module:ident $name:ident $visibility_timeout:expr) => {
            let world = Arc::clone(world);
            trials.push(Trial::test(concat!("contract::ministack::", stringify!($name)), move || {
                RUNTIME.block_on(async {
                    let ministack = world.contract().await;
                    let real = Real::new(ministack, stringify!($name), $visibility_timeout).await;
                    $module::$name(&real).await;
                });
                Ok(())
            }));
        };
    }
    contracts!(trials);
    trials
}

/// The queue that the engine's tests use, on a clock that advances by a millisecond with each call.
struct EngineQueue(RefCell<(Timestamp, engine::Queue<()>)>);

impl EngineQueue {
    fn new(visibility_timeout: u64) -> Self {
        let queue = engine::Queue::new(Duration::from_secs(visibility_timeout));
        Self(RefCell::new((Timestamp::from_secs(1_000_000_000), queue)))
    }

    fn call<T>(&self, call: impl FnOnce(Timestamp, &mut engine::Queue<()>) -> T) -> T {
        let (now, queue) = &mut *self.0.borrow_mut();
        *now = now.saturating_add(Duration::from_millis(1));
        call(*now, queue)
    }

    fn receive_visible(&self) -> Option<Record> {
        self.call(|now, queue| {
            let place = queue.messages().iter().position(|message| message.visible <= now)?;
            Some(queue.receive(now, place).record())
        })
    }
}

impl Queue for EngineQueue {
    fn differs(&self, _: Difference) -> bool {
        false
    }

    async fn send(&self, body: &str) -> String {
        self.call(|now, queue| queue.send(now, body.to_owned(), ()))
    }

    async fn receive(&self) -> Vec<Record> {
        std::iter::from_fn(|| self.receive_visible()).take(10).collect()
    }

    async fn next(&self) -> Record {
        self.receive_visible().unwrap_or_else(|| {
            let next = self.0.borrow().1.next_visible().expect("no message will ever be visible");
            self.0.borrow_mut().0 = next;
            self.receive_visible().expect("it is visible by now")
        })
    }

    async fn hide(&self, entries: &[(&str, u64)]) -> Vec<bool> {
        let hide = |(handle, seconds): &(&str, u64)| {
            self.call(|now, queue| queue.hide(now, handle, Duration::from_secs(*seconds)))
        };
        entries.iter().map(hide).collect()
    }

    async fn delete(&self, handle: &str) -> bool {
        self.call(|_, queue| queue.delete(handle));
        true
    }

    async fn held(&self) -> usize {
        self.call(|_, queue| queue.messages().len())
    }
}
