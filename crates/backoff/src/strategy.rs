mod delays;
mod growth;
mod plan;
mod refused;
mod streams;

use alloc::vec::Vec;
use core::time::Duration;

use crate::{Jitter, Tick};

pub use delays::Delays;
pub(crate) use growth::Growth;
pub(crate) use plan::Plan;
pub use refused::{Part, StrategyError};
pub use streams::Streams;

/// Which waits to make: a growth, a cap, a jitter, a tick and a number of retries.
///
/// This is a description; `streams`, [`seeded`](Self::seeded) and [`with_rng`](Self::with_rng) check it. By default
/// growing strategies have [full jitter](Jitter::Full) and lists none, waits are whole milliseconds,
/// and only a list limits the number of retries.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    shape: Shape,
    jitter: Jitter,
    tick: Tick,
    retries: Option<u64>,
}

/// A growth as described: not yet in ticks, not yet checked.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Exponential { base: Duration, cap: Duration },
    Powers { base: Duration, factor: f64, cap: Duration },
    Constant { delay: Duration },
    Linear { step: Duration, cap: Duration },
    Squared { step: Duration, cap: Duration },
    List { delays: Vec<Duration> },
}

impl Strategy {
    /// Ceilings min(cap, base · 2ⁿ⁻¹): base, 2·base, 4·base, … for n = 1, 2, 3, …
    ///
    /// With full jitter the nth wait is uniform over {1 … c} ticks of its ceiling c; mean (c + 1) / 2.
    /// Only this growth takes [decorrelated jitter](Jitter::Decorrelated).
    ///
    /// Source: "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015).
    ///
    /// ```
    /// use comeback_backoff::{Jitter, Strategy};
    /// use std::time::Duration;
    ///
    /// # #[cfg(feature = "entropy")] {
    /// let strategy = Strategy::exponential(Duration::from_millis(100), Duration::from_secs(1));
    /// let delays: Vec<u128> =
    ///     strategy.jitter(Jitter::None).retries(5).streams()?.delays().map(|delay| delay.as_millis()).collect();
    /// assert_eq!(delays, [100, 200, 400, 800, 1_000]);
    /// # }
    /// # Ok::<(), comeback_backoff::StrategyError>(())
    /// ```
    pub fn exponential(base: Duration, cap: Duration) -> Self {
        Self::new(Shape::Exponential { base, cap }, Jitter::default())
    }

    /// Ceilings min(cap, base · factorⁿ⁻¹), each to the nearest tick: a growth that is gentler or steeper than
    /// doubling. `factor` is at least 1.
    ///
    /// ```
    /// use comeback_backoff::{Jitter, Strategy};
    /// use std::time::Duration;
    ///
    /// # #[cfg(feature = "entropy")] {
    /// let strategy = Strategy::exponential_by(1.5, Duration::from_millis(100), Duration::from_secs(1));
    /// let delays: Vec<u128> =
    ///     strategy.jitter(Jitter::None).retries(4).streams()?.delays().map(|delay| delay.as_millis()).collect();
    /// assert_eq!(delays, [100, 150, 225, 338]);
    /// # }
    /// # Ok::<(), comeback_backoff::StrategyError>(())
    /// ```
    pub fn exponential_by(factor: f64, base: Duration, cap: Duration) -> Self {
        Self::new(Shape::Powers { base, factor, cap }, Jitter::default())
    }

    /// Ceilings that are all `delay`, which is also the cap.
    ///
    /// With full jitter each wait is uniform over {1 … d} ticks of `delay` d; mean (d + 1) / 2. For
    /// waits of exactly `delay`, ask for [`Jitter::None`].
    ///
    /// ```
    /// use comeback_backoff::{Jitter, Strategy};
    /// use std::time::Duration;
    ///
    /// # #[cfg(feature = "entropy")] {
    /// let second = Duration::from_secs(1);
    /// let delays = Strategy::constant(second).jitter(Jitter::Equal).retries(3).streams()?.delays();
    /// assert!(delays.into_iter().all(|delay| second / 2 <= delay && delay <= second));
    /// # }
    /// # Ok::<(), comeback_backoff::StrategyError>(())
    /// ```
    pub fn constant(delay: Duration) -> Self {
        Self::new(Shape::Constant { delay }, Jitter::default())
    }

    /// Ceilings min(cap, step · n): step, 2·step, 3·step, …
    ///
    /// With full jitter the nth wait is uniform over {1 … c} ticks of its ceiling c; mean (c + 1) / 2.
    ///
    /// ```
    /// use comeback_backoff::{Jitter, Strategy};
    /// use std::time::Duration;
    ///
    /// # #[cfg(feature = "entropy")] {
    /// let strategy = Strategy::linear(Duration::from_millis(100), Duration::from_secs(1));
    /// let delays: Vec<u128> =
    ///     strategy.jitter(Jitter::None).retries(3).streams()?.delays().map(|delay| delay.as_millis()).collect();
    /// assert_eq!(delays, [100, 200, 300]);
    /// # }
    /// # Ok::<(), comeback_backoff::StrategyError>(())
    /// ```
    pub fn linear(step: Duration, cap: Duration) -> Self {
        Self::new(Shape::Linear { step, cap }, Jitter::default())
    }

    /// Ceilings min(cap, step · n²): step, 4·step, 9·step, …
    ///
    /// With full jitter the nth wait is uniform over {1 … c} ticks of its ceiling c; mean (c + 1) / 2.
    ///
    /// ```
    /// use comeback_backoff::{Jitter, Strategy};
    /// use std::time::Duration;
    ///
    /// # #[cfg(feature = "entropy")] {
    /// let strategy = Strategy::squared(Duration::from_millis(100), Duration::from_secs(1));
    /// let delays: Vec<u128> =
    ///     strategy.jitter(Jitter::None).retries(4).streams()?.delays().map(|delay| delay.as_millis()).collect();
    /// assert_eq!(delays, [100, 400, 900, 1_000]);
    /// # }
    /// # Ok::<(), comeback_backoff::StrategyError>(())
    /// ```
    pub fn squared(step: Duration, cap: Duration) -> Self {
        Self::new(Shape::Squared { step, cap }, Jitter::default())
    }

    /// These waits and no more. They are exact unless jitter is asked for, which makes them ceilings. An
    /// empty list means no retries.
    ///
    /// ```
    /// use comeback_backoff::Strategy;
    /// use std::time::Duration;
    ///
    /// # #[cfg(feature = "entropy")] {
    /// let list = [50, 50, 100].map(Duration::from_millis);
    /// assert!(Strategy::list(list).streams()?.delays().eq(list));
    /// # }
    /// # Ok::<(), comeback_backoff::StrategyError>(())
    /// ```
    pub fn list(delays: impl IntoIterator<Item = Duration>) -> Self {
        Self::new(Shape::List { delays: delays.into_iter().collect() }, Jitter::None)
    }

    /// How each wait is drawn under its ceiling.
    #[must_use]
    pub fn jitter(self, jitter: Jitter) -> Self {
        Self { jitter, ..self }
    }

    /// The unit of waits: each is a whole number of ticks.
    ///
    /// ```
    /// use comeback_backoff::{Strategy, Tick};
    /// use std::time::Duration;
    ///
    /// # #[cfg(feature = "entropy")] {
    /// let strategy = Strategy::exponential(Duration::from_secs(1), Duration::from_secs(43_170));
    /// let delays = strategy.tick(Tick::Second).retries(20).streams()?.delays();
    /// assert!(delays.into_iter().all(|delay| delay.as_secs() >= 1 && delay.subsec_nanos() == 0));
    /// # }
    /// # Ok::<(), comeback_backoff::StrategyError>(())
    /// ```
    #[must_use]
    pub fn tick(self, tick: Tick) -> Self {
        Self { tick, ..self }
    }

    /// At most this many retries, and so one call more. 0 means no retries.
    #[must_use]
    pub fn retries(self, retries: u64) -> Self {
        Self { retries: Some(retries), ..self }
    }

    fn new(shape: Shape, jitter: Jitter) -> Self {
        Self { shape, jitter, tick: Tick::default(), retries: None }
    }
}
