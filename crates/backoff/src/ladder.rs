mod millis;
mod rungs;

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::time::Duration;

use rand_core::Rng;

use crate::strategy::{Growth, Plan};
use crate::{Delays, Jitter, Tick};

pub use millis::millis;
pub use rungs::{Rung, Rungs, Top};

/// Declares a [`Ladder`]: waits in whole `ms`, `s`, `m` or `h`, each strictly longer than the one
/// before, or it does not compile.
///
/// ```
/// use comeback_backoff::{RetryError, ladder};
/// use std::time::Duration;
///
/// ladder! {
///     /// How long a write is retried before its caller gets the error.
///     pub Writes: 100ms, 300ms, 1s
/// }
/// assert_eq!(Writes::RUNGS, 3);
/// assert_eq!(Writes::LONGEST_TOTAL_WAIT, Duration::from_millis(1_400));
///
/// # async fn sleep(_: Duration) {}
/// # async fn write() -> Result<(), &'static str> { Err("busy") }
/// async fn write_patiently() -> Result<(), RetryError<&'static str>> {
///     let rung = Writes::start();
///     let Err(_) = write().await else { return Ok(()) };
///     let (wait, rung) = rung.climb();
///     sleep(wait).await;
///     let Err(_) = write().await else { return Ok(()) };
///     let (wait, rung) = rung.climb();
///     sleep(wait).await;
///     let Err(_) = write().await else { return Ok(()) };
///     let (wait, top) = rung.climb();
///     sleep(wait).await;
///     write().await.map_err(|error| top.give_up(error)) // nothing else is possible at the top
/// }
/// ```
///
/// `cargo check` already refuses a ladder that does not rise:
///
/// ```compile_fail
/// comeback_backoff::ladder! { Writes: 100ms, 100ms }
/// ```
#[macro_export]
macro_rules! ladder {
    (@rungs $rung:tt) => {
        $crate::Rung<{ $crate::__millis(::core::stringify!($rung)) }, $crate::Top>
    };
    (@rungs $rung:tt, $($above:tt),+) => {
        $crate::Rung<{ $crate::__millis(::core::stringify!($rung)) }, $crate::ladder!(@rungs $($above),+)>
    };
    ($(#[$meta:meta])* $vis:vis $name:ident: $($rung:tt),+ $(,)?) => {
        $(#[$meta])*
        $vis type $name = $crate::Ladder<$crate::ladder!(@rungs $($rung),+)>;
        // Not generic, so that it is evaluated by `cargo check` and not only where it is used.
        const _: () = <$name>::RISES;
    };
}

/// A sequence of waits, each strictly longer than the one before. Declared by [`ladder!`].
///
/// Climbing consumes a handle: [`start`](Self::start) gives the first rung, and each
/// [`climb`](Rung::climb) gives that rung's wait and the next rung. There is no way back, no rung is
/// climbed twice, and from the [`Top`] there is only giving up. Or feed [`retry`](crate::retry()) with its
/// [`ceilings`](Self::ceilings).
///
/// The idea of letting the compiler check that backoff grows is Mike Solomon's, "Exponential backoff
/// with indexed monads" (2021).
pub struct Ladder<First>(PhantomData<First>);

impl<First: Rungs> Ladder<First> {
    /// The number of rungs, and so of retries.
    pub const RUNGS: usize = First::COUNT;

    /// The sum of all rungs: no climb waits longer.
    pub const LONGEST_TOTAL_WAIT: Duration = Duration::from_millis(First::TOTAL_MILLIS);

    #[doc(hidden)]
    pub const RISES: () = First::RISES;

    /// The first rung. No wait has been served, one call may have been made.
    pub fn start() -> First {
        let () = Self::RISES;
        First::reached(0, Duration::ZERO)
    }

    /// Every rung's wait, for a retry loop.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// comeback_backoff::ladder! { Writes: 100ms, 1s }
    /// assert!(Writes::ceilings().eq([100, 1_000].map(Duration::from_millis)));
    /// ```
    pub fn ceilings() -> impl Iterator<Item = Duration> + Clone + Send + Sync + Unpin + use<First> {
        let () = Self::RISES;
        let rungs: Vec<u64> = First::millis().collect();
        rungs.into_iter().map(Duration::from_millis)
    }

    /// Waits drawn with [full jitter](Jitter::Full) under each rung: {1 ms … rung}, mean half of it. Only
    /// the ceilings rise; a wait may be shorter than the one before.
    ///
    /// ```
    /// use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
    ///
    /// comeback_backoff::ladder! { Writes: 100ms, 1s }
    /// let delays = Writes::jittered(Xoshiro256PlusPlus::seed_from_u64(7));
    /// assert!(delays.zip(Writes::ceilings()).all(|(delay, ceiling)| delay <= ceiling));
    /// ```
    pub fn jittered<R: Rng>(rng: R) -> Delays<R> {
        let () = Self::RISES;
        let rungs = First::millis().collect();
        let (growth, cap) = (Growth::List(rungs), u64::MAX);
        Delays::new(Plan { growth, cap, jitter: Jitter::Full, tick: Tick::Millisecond, retries: None }, rng)
    }
}
