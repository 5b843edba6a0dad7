//! The random distribution of a wait.

use core::fmt;
use core::str::FromStr;

use crate::error::BackoffError;

/// The random distribution of a wait up to its ceiling c, in [ticks](crate::Backoff::with_tick).
///
/// The cap is applied to c before the draw. No draw is 0.
///
/// | jitter | uniform over | mean |
/// |---|---|---|
/// | full | {1 … c} | (c + 1) / 2 |
/// | equal | {⌈c/2⌉ … c} | about 3c/4 |
/// | decorrelated | {base … min(cap, 3·previous)} | (base + 3·previous) / 2 below the cap |
/// | none | {c} | c |
///
/// Source: "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015). In the article, draws are real numbers and
/// may be zero. The article's decorrelated jitter caps the drawn wait; this one caps the range of the draw.
///
/// ```
/// use comeback_backoff::Jitter;
///
/// assert_eq!("equal".parse(), Ok(Jitter::Equal));
/// assert_eq!(Jitter::Equal.to_string(), "equal");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// Each wait is drawn uniformly from {1 … c}, where c is the ceiling. The default: it spreads retries the most.
    #[default]
    Full,
    /// Each wait is drawn uniformly from {⌈c/2⌉ … c}, where c is the ceiling.
    Equal,
    /// The first wait is drawn uniformly from {base … min(cap, 3·base)}, and each later wait from {base … min(cap,
    /// 3·previous)}. The ceiling c is not used.
    Decorrelated,
    /// Every wait is exactly its ceiling, so operations that fail together retry together.
    None,
}

impl Jitter {
    /// All four kinds of jitter, in the order of the table above.
    pub const ALL: [Self; 4] = [Self::Full, Self::Equal, Self::Decorrelated, Self::None];

    /// The name: `full`, `equal`, `decorrelated` or `none`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Equal => "equal",
            Self::Decorrelated => "decorrelated",
            Self::None => "none",
        }
    }
}

impl FromStr for Jitter {
    type Err = BackoffError;

    /// Parses a [`name`](Self::name), which must be in lower case.
    fn from_str(name: &str) -> Result<Self, BackoffError> {
        let named = Self::ALL.into_iter().find(|jitter| jitter.name() == name);
        named.ok_or_else(|| BackoffError::new("must be full, equal, decorrelated or none"))
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Jitter;

    #[test]
    fn names_parse() {
        for jitter in Jitter::ALL {
            assert_eq!(jitter.name().parse(), Ok(jitter));
        }
        let refused = "Full".parse::<Jitter>().unwrap_err();
        assert_eq!(refused.to_string(), "must be full, equal, decorrelated or none");
    }
}
