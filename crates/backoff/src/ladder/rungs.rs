use core::marker::PhantomData;
use core::time::Duration;

use rand_core::Rng;

use super::millis::{require, sum};
use crate::jitter::Step;
use crate::{Jitter, RetryError};

/// A rung of a [`Ladder`](crate::Ladder): wait `MILLIS` milliseconds, once, to reach `Up`. The type
/// spells the rungs that are left: `Rung<300, Rung<1000, Top>>`.
#[derive(Debug)]
#[must_use = "a rung is there to be climbed, or given up on"]
pub struct Rung<const MILLIS: u64, Up> {
    climbed: Climbed,
    up: PhantomData<fn() -> Up>,
}

/// Above the last rung: nothing is left but to give up.
#[derive(Debug)]
#[must_use = "after the last rung, give up"]
pub struct Top {
    climbed: Climbed,
}

/// What has been done so far.
#[derive(Clone, Copy, Debug)]
struct Climbed {
    rungs: u64,
    waited: Duration,
}

impl<const MILLIS: u64, Up: Rungs> Rung<MILLIS, Up> {
    /// The wait to serve before the next call, and the next rung. Uses this one up.
    pub fn climb(self) -> (Duration, Up) {
        self.after(MILLIS)
    }

    /// As [`climb`](Self::climb), but the wait is drawn with [full jitter](Jitter::Full) from
    /// {1 ms … the rung's}: only the ceilings rise.
    pub fn climb_jittered(self, rng: &mut (impl Rng + ?Sized)) -> (Duration, Up) {
        let step = Step { base: MILLIS, cap: MILLIS, ceiling: MILLIS, previous: MILLIS };
        self.after(Jitter::Full.draw(step, rng))
    }

    /// Gives up early, for an error that no retry can help. The call before this rung was the last.
    pub fn give_up<E>(self, error: E) -> RetryError<E> {
        self.climbed.given_up(error)
    }

    fn after(self, millis: u64) -> (Duration, Up) {
        let wait = Duration::from_millis(millis);
        (wait, Up::reached(self.climbed.rungs + 1, self.climbed.waited.saturating_add(wait)))
    }
}

impl Top {
    /// Gives up. `error` is that of the call after the last wait.
    pub fn give_up<E>(self, error: E) -> RetryError<E> {
        self.climbed.given_up(error)
    }
}

impl Climbed {
    fn given_up<E>(self, error: E) -> RetryError<E> {
        RetryError { error, attempts: self.rungs + 1, waited: self.waited }
    }
}

/// The rungs from one of them up to the [`Top`]. No other type can implement it.
pub trait Rungs: sealed::Sealed {
    /// How many there are.
    const COUNT: usize;
    /// Their sum.
    const TOTAL_MILLIS: u64;
    /// The next one; for the top, longer than every rung.
    #[doc(hidden)]
    const NEXT_MILLIS: u64;
    /// Fails to evaluate unless the first is longer than zero, each is longer than the one before, and
    /// their sum is below 2^64 ms.
    #[doc(hidden)]
    const RISES: ();

    /// The waits, lowest first.
    #[doc(hidden)]
    fn millis() -> impl Iterator<Item = u64>;

    #[doc(hidden)]
    fn reached(rungs: u64, waited: Duration) -> Self;
}

impl<const MILLIS: u64, Up: Rungs> Rungs for Rung<MILLIS, Up> {
    const COUNT: usize = 1 + Up::COUNT;
    const TOTAL_MILLIS: u64 = sum(MILLIS, Up::TOTAL_MILLIS);
    const NEXT_MILLIS: u64 = MILLIS;
    const RISES: () = {
        require(MILLIS > 0, "a rung must wait at least 1 ms");
        require(MILLIS < Up::NEXT_MILLIS, "a rung must wait longer than the one before it");
        let _ = Self::TOTAL_MILLIS;
        Up::RISES
    };

    fn millis() -> impl Iterator<Item = u64> {
        core::iter::once(MILLIS).chain(Up::millis())
    }

    fn reached(rungs: u64, waited: Duration) -> Self {
        Self { climbed: Climbed { rungs, waited }, up: PhantomData }
    }
}

impl Rungs for Top {
    const COUNT: usize = 0;
    const TOTAL_MILLIS: u64 = 0;
    const NEXT_MILLIS: u64 = u64::MAX;
    const RISES: () = ();

    fn millis() -> impl Iterator<Item = u64> {
        core::iter::empty()
    }

    fn reached(rungs: u64, waited: Duration) -> Self {
        Self { climbed: Climbed { rungs, waited } }
    }
}

mod sealed {
    pub trait Sealed {}
    impl<const MILLIS: u64, Up> Sealed for super::Rung<MILLIS, Up> {}
    impl Sealed for super::Top {}
}
