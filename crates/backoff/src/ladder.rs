//! The macro `ladder!`, which declares a list of waits as a type, so that the compiler can check the waits.

/// Declares a list of waits as a type, which compiles only if each wait is longer than the previous one. Each wait is
/// a whole number of `ms`, `s`, `m` or `h`.
///
/// No rung can be climbed twice: `climb()` consumes it. The top rung has only `give_up()`.
///
/// | item of the type | meaning |
/// |---|---|
/// | `RUNGS: usize` | the number of rungs, which is the maximum number of retries |
/// | `LONGEST_TOTAL_WAIT: Duration` | the sum of all rungs' waits |
/// | `start()` | the first rung: the first call, and no wait yet |
/// | `climb(self)` | the wait before the next call, and the next rung |
/// | `climb_jittered(self, &mut rng)` | the same, but with a wait drawn from {1 ms … rung} |
/// | `give_up(self, error)` | a [`RetryError`](crate::RetryError) with the calls made and the time waited |
/// | `ceilings()` | every rung's wait, shortest first, for [`retry`](crate::retry()) |
/// | `backoff()` | the same waits as a [`Backoff`](crate::Backoff) |
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
/// Each wait must be longer than the one before it, so this is an error of the compiler:
///
/// ```compile_fail
/// comeback_backoff::ladder! { Writes: 100ms, 100ms }
/// ```
///
/// Source: Mike Solomon, "Exponential backoff with indexed monads" (2021).
#[macro_export]
macro_rules! ladder {
    ($(#[$meta:meta])* $vis:vis $name:ident: $($rung:tt),+ $(,)?) => {
        $(#[$meta])*
        #[derive(Debug)]
        #[must_use = "climb a rung, or give up"]
        $vis struct $name<const RUNG: usize = 0>(::core::time::Duration);

        #[allow(dead_code)]
        impl $name {
            const MILLIS: &'static [u64] = &[$($crate::__ladder::millis(::core::stringify!($rung))),+];
            /// The number of rungs, which is the maximum number of retries.
            $vis const RUNGS: usize = Self::MILLIS.len();
            /// The sum of all rungs, which is the longest total wait.
            $vis const LONGEST_TOTAL_WAIT: ::core::time::Duration = $crate::__ladder::total(Self::MILLIS);

            /// Returns the first rung, before any wait.
            $vis fn start() -> Self {
                Self(::core::time::Duration::ZERO)
            }

            /// The waits of all rungs, shortest first.
            $vis fn ceilings() -> impl Iterator<Item = ::core::time::Duration> + Clone + Unpin {
                Self::MILLIS.iter().copied().map(::core::time::Duration::from_millis)
            }

            /// Returns a `Backoff` that lists the rungs' waits, without jitter.
            $vis fn backoff() -> $crate::Backoff {
                $crate::Backoff::list(Self::ceilings()).expect("the compiler has checked the rungs")
            }
        }

        #[allow(dead_code)]
        impl<const RUNG: usize> $name<RUNG> {
            /// Ends the retries at this rung. `error` is the error from the last call.
            $vis fn give_up<E>(self, error: E) -> $crate::RetryError<E> {
                $crate::__ladder::give_up(RUNG, self.0, error)
            }
        }

        $crate::ladder!(@climb $vis $name 0usize; $($rung),+);
        // `cargo check` evaluates this constant even if the ladder is not used.
        const _: () = $crate::__ladder::check($name::<0>::MILLIS);
    };
    (@climb $vis:vis $name:ident $at:expr; $rung:tt $(, $above:tt)*) => {
        #[allow(dead_code)]
        impl $name<{ $at }> {
            /// Returns the wait before the next call, together with the next rung.
            $vis fn climb(self) -> (::core::time::Duration, $name<{ $at + 1 }>) {
                let wait = ::core::time::Duration::from_millis($name::<0>::MILLIS[$at]);
                (wait, $name(self.0 + wait))
            }

            /// Like `climb`, but draws the wait uniformly from 1 ms to the rung's wait.
            $vis fn climb_jittered(
                self,
                rng: &mut (impl $crate::__ladder::Rng + ?Sized),
            ) -> (::core::time::Duration, $name<{ $at + 1 }>) {
                let wait = $crate::__ladder::jittered($name::<0>::MILLIS[$at], rng);
                (wait, $name(self.0 + wait))
            }
        }
        $crate::ladder!(@climb $vis $name $at + 1; $($above),*);
    };
    (@climb $vis:vis $name:ident $at:expr;) => {};
}

/// Functions for the code that `ladder!` expands to.
pub mod private {
    use core::time::Duration;

    pub use rand::Rng;
    use rand::RngExt;

    use crate::RetryError;

    /// The error for an operation that was abandoned after `rungs` waits, which took `waited` in total.
    pub fn give_up<E>(rungs: usize, waited: Duration, error: E) -> RetryError<E> {
        RetryError { error, attempts: rungs as u64 + 1, waited }
    }

    /// Draws a wait uniformly from {1 … millis}, in milliseconds.
    pub fn jittered(millis: u64, rng: &mut (impl Rng + ?Sized)) -> Duration {
        Duration::from_millis(rng.random_range(1..=millis))
    }

    /// Panics at compile time unless the first rung is at least 1 ms and each rung is longer than the previous one.
    #[track_caller]
    pub const fn check(rungs: &[u64]) {
        require(rungs[0] > 0, "a rung must wait at least 1 ms");
        let mut next = 1;
        while next < rungs.len() {
            require(rungs[next] > rungs[next - 1], "a rung must wait longer than the one before it");
            next += 1;
        }
        let _ = total(rungs);
    }

    /// The sum of `rungs`, which are in milliseconds.
    #[track_caller]
    pub const fn total(rungs: &[u64]) -> Duration {
        let (mut total, mut next) = (0, 0);
        while next < rungs.len() {
            total = within(rungs[next].checked_add(total));
            next += 1;
        }
        Duration::from_millis(total)
    }

    /// Converts a rung of a `ladder!`, such as `100ms`, `1_500ms`, `1s`, `2m` or `1h`, into milliseconds.
    #[track_caller]
    pub const fn millis(rung: &str) -> u64 {
        let bytes = rung.as_bytes();
        let (mut number, mut length) = (0u64, 0);
        while length < bytes.len() && (bytes[length].is_ascii_digit() || bytes[length] == b'_') {
            if bytes[length] != b'_' {
                let tens = within(number.checked_mul(10));
                number = within(tens.checked_add((bytes[length] - b'0') as u64));
            }
            length += 1;
        }
        let unit = match bytes.split_at(length).1 {
            b"ms" => 1,
            b"s" => 1_000,
            b"m" => 60_000,
            b"h" => 3_600_000,
            _ => 0,
        };
        require(length > 0 && unit > 0, "a rung must be a whole number of ms, s, m or h, such as 100ms");
        within(number.checked_mul(unit))
    }

    #[track_caller]
    const fn within(millis: Option<u64>) -> u64 {
        // The duration must also fit in 64 bits as nanoseconds.
        match millis {
            Some(millis) if millis <= u64::MAX / 1_000_000 => millis,
            _ => panic!("a ladder must be shorter than 584 years"),
        }
    }

    /// Panics with the message `what` unless the condition holds.
    #[track_caller]
    const fn require(holds: bool, what: &'static str) {
        assert!(holds, "{}", what);
    }
}

#[cfg(test)]
mod tests {
    use super::private::millis;

    fn refusal(rung: &'static str) -> String {
        let panic = std::panic::catch_unwind(|| millis(rung)).unwrap_err();
        panic
            .downcast_ref::<&str>()
            .map_or_else(|| panic.downcast_ref::<String>().unwrap().clone(), ToString::to_string)
    }

    #[test]
    fn rungs_are_read_in_four_units() {
        assert_eq!(
            ["100ms", "1_500ms", "2s", "3m", "1h"].map(millis),
            [100, 1_500, 2_000, 180_000, 3_600_000]
        );
    }

    #[test]
    fn anything_else_is_refused() {
        for rung in ["100", "1.5s", "100us", "ms", "1 s", "0x10ms"] {
            let expected = "a rung must be a whole number of ms, s, m or h, such as 100ms";
            assert_eq!(refusal(rung), expected, "{rung}");
        }
        for rung in ["184467440737095516160ms", "18446744073709551616ms", "18446744073709551615s"] {
            assert_eq!(refusal(rung), "a ladder must be shorter than 584 years", "{rung}");
        }
    }
}
