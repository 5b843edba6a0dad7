//! The demonstration: a simulated account and its fast clock. A bar at the top of every page controls them.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use async_trait::async_trait;
use comeback_engine::Timestamp;
use comeback_operate::aws::simulated::{Clock, Demo, DemoFunction};
use comeback_operate::clock::now;
use comeback_operate::{Account, Text};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Possible paces of the demonstration's clock, as multiples of real time.
const PACES: [u32; 6] = [1, 10, 60, 300, 600, 1_800];
const FIRST_PACE: usize = 2;
/// The clock stops after this time without a request, so that a returning user does not find weeks of traffic.
const UNWATCHED: Duration = Duration::from_secs(60);
const SEED: u64 = 1;

#[derive(Clone, Debug)]
pub(super) struct Demonstration {
    demo: Demo,
    clock: Rc<FastClock>,
}

impl Demonstration {
    pub(super) fn new() -> Self {
        let clock = Rc::new(FastClock::new(now()));
        let demo = Demo::new(SEED, Rc::<FastClock>::clone(&clock));
        // The clock starts only now, so that it does not run while the account is built.
        clock.begin();
        Self { demo, clock }
    }

    pub(super) fn account(&self) -> Account {
        self.demo.account()
    }
}

/// A clock that runs at a multiple of real time, and stops if nobody reads it for [`UNWATCHED`].
#[derive(Debug)]
struct FastClock {
    set: Cell<Set>,
    /// Real time when the clock was last read.
    read_at: Cell<Instant>,
    changed: Notify,
}

/// A clock's setting: the real time when it was set, the time to which it was set, and its pace since then.
#[derive(Clone, Copy, Debug)]
struct Set {
    at: Instant,
    time: Timestamp,
    pace: usize,
    stands: bool,
}

impl FastClock {
    /// A clock that is stopped until [`begin`](Self::begin) is called.
    fn new(time: Timestamp) -> Self {
        let at = Instant::now();
        let set = Set { at, time, pace: FIRST_PACE, stands: true };
        Self { set: Cell::new(set), read_at: Cell::new(at), changed: Notify::new() }
    }

    fn begin(&self) {
        self.change(|set| set.stands = false);
    }

    fn change(&self, change: impl FnOnce(&mut Set)) {
        let mut set = self.read();
        set.at = Instant::now();
        change(&mut set);
        self.set.set(set);
        self.changed.notify_waiters();
    }

    /// Returns the clock's setting, with `time` brought up to date.
    fn read(&self) -> Set {
        let (mut set, at) = (self.set.get(), Instant::now());
        // If nobody has read the clock for longer than `UNWATCHED`, the clock ignores the time beyond that.
        let skipped = at.duration_since(self.read_at.replace(at)).saturating_sub(UNWATCHED);
        set.at += skipped;
        self.set.set(set);
        if !set.stands {
            set.time = set.time.saturating_add(at.duration_since(set.at) * PACES[set.pace]);
        }
        set
    }
}

#[async_trait(?Send)]
impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        self.read().time
    }

    /// Sleeps until the clock shows `time`, or sets a stopped clock to `time`.
    async fn sleep_until(&self, time: Timestamp) {
        loop {
            let changed = self.changed.notified();
            let Set { time: now, pace, stands, .. } = self.read();
            if stands {
                tokio::task::yield_now().await;
                return self.change(|set| set.time = set.time.max(time));
            }
            if now >= time {
                return;
            }
            let left = time.since(now) / PACES[pace];
            tokio::select! {
                () = tokio::time::sleep(left.min(UNWATCHED / 2).max(Duration::from_millis(1))) => {}
                () = changed => {}
            }
        }
    }
}

/// State of the demonstration, for the bar at the top of every page.
#[derive(Clone)]
pub(super) struct Bar {
    pub(super) time: Text,
    pub(super) pace: String,
    pub(super) can_be_faster: bool,
    pub(super) can_be_slower: bool,
    pub(super) stands: bool,
    pub(super) functions: Vec<DemoFunction>,
    /// Path of the page that the browser shows after a press of one of the bar's buttons.
    pub(super) back: String,
}

impl Demonstration {
    pub(super) fn bar(&self, back: String) -> Bar {
        let Set { time, pace, stands, .. } = self.clock.read();
        Bar {
            time: Timestamp::from_secs(time.as_secs()).into(),
            pace: match (stands, PACES[pace]) {
                (true, _) => "stopped".to_owned(),
                (false, 1) => "in real time".to_owned(),
                (false, times) => format!("{times} times as fast"),
            },
            can_be_faster: pace + 1 < PACES.len(),
            can_be_slower: pace > 0,
            stands,
            functions: self.demo.functions(),
            back,
        }
    }

    /// Performs the action of one of the demonstration's buttons. Returns false for an unknown button or function.
    pub(super) fn press(&self, button: &str, function: &str) -> bool {
        match button {
            "faster" => self.clock.change(|set| set.pace = (set.pace + 1).min(PACES.len() - 1)),
            "slower" => self.clock.change(|set| set.pace = set.pace.saturating_sub(1)),
            "stop" => self.clock.change(|set| set.stands = true),
            "go" => self.clock.change(|set| set.stands = false),
            "fix" => return self.demo.set_broken(function, false),
            "break" => return self.demo.set_broken(function, true),
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_secs(1_000);

    fn shown(clock: &FastClock) -> u64 {
        clock.now().since(START).as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn clock_runs_at_its_pace_and_stands_still_in_between() {
        let clock = FastClock::new(START);
        let passes = async |millis| tokio::time::advance(Duration::from_millis(millis)).await;
        passes(1_000).await;
        assert_eq!(shown(&clock), 0, "it has not begun");
        clock.begin();
        for _ in 0..1_000 {
            passes(1).await;
            shown(&clock);
        }
        assert_eq!(shown(&clock), 60, "however often somebody looks");
        clock.change(|set| set.pace += 1);
        passes(1_000).await;
        assert_eq!(shown(&clock), 60 + 300);
        clock.change(|set| set.stands = true);
        passes(1_000).await;
        assert_eq!(shown(&clock), 360);
    }

    #[tokio::test(start_paused = true)]
    async fn clock_stops_while_nobody_looks() {
        let clock = FastClock::new(START);
        clock.begin();
        tokio::time::advance(8 * 60 * UNWATCHED).await;
        assert_eq!(shown(&clock), 60 * UNWATCHED.as_secs());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(shown(&clock), 60 * UNWATCHED.as_secs() + 60);
    }

    #[tokio::test(start_paused = true)]
    async fn sleep_ends_when_the_clock_shows_its_end() {
        let (clock, begin) = (FastClock::new(START), Instant::now());
        clock.sleep_until(START.saturating_add(Duration::from_secs(30))).await;
        assert_eq!((shown(&clock), begin.elapsed()), (30, Duration::ZERO), "a stopped clock is moved on");
        clock.begin();
        let wakes = clock.sleep_until(START.saturating_add(Duration::from_secs(6 * 3_600)));
        let hurries = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            clock.change(|set| set.pace = PACES.len() - 1);
        };
        tokio::join!(wakes, hurries);
        let hours = shown(&clock) / 3_600;
        assert!(hours == 6 && begin.elapsed() < Duration::from_secs(70), "{hours} h, {:?}", begin.elapsed());
    }
}
