//! Pauses: an operator's word that a function is not to be invoked for a while. They are one document, the
//! SSM parameter that `PAUSES` names; the commands write it, and the handler reads it.
//!
//! | file | holds |
//! |---|---|
//! | `wire` | the document's JSON: [`Pauses::read`], [`Pauses::write`] |
//! | `editing` | what the commands do to it: open a pause, close it, tidy up |
//! | `known` | [`KnownPauses`](known::KnownPauses): what one environment of the handler knows of it, and when it reads again |

pub(crate) mod editing;
pub(crate) mod known;
mod wire;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::{BadPattern, FunctionPattern, Timestamp};

/// All pauses: those that are open, and those that ended within the last 14 days.
///
/// The default is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pauses(Vec<Pause>);

/// The parameter's text is unreadable. Says where, and quotes none of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pauses are unreadable: {0}")]
pub struct GarbledPauses(String);

/// A time in which functions are not invoked.
#[derive(Clone, Debug, PartialEq)]
pub struct Pause {
    /// Which functions.
    pub target: PauseTarget,
    /// The first moment, in whole seconds.
    pub from: Timestamp,
    /// The end, in whole seconds, at which it is over; `None` while only an operator ends it.
    pub until: Option<Timestamp>,
    /// What was due in the pause comes back over this time after its end: whole seconds, at most
    /// [`LONGEST_SPREAD`].
    pub spread: Duration,
    /// Who opened it. Kept while it is open.
    pub by: Option<String>,
    /// The reason they gave. Kept while it is open.
    pub why: Option<String>,
    /// What became of the function's reserved concurrency. Kept while it is open.
    pub concurrency: Concurrency,
}

/// The functions of a pause.
#[derive(Clone, Debug, PartialEq)]
pub enum PauseTarget {
    /// Every function: `*`.
    All,
    /// Those that a pattern names; without a qualifier, each version and alias too.
    Functions(FunctionPattern),
}

/// Whether a pause has set its function's reserved concurrency to 0 (`pause --hard`), and what that was before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concurrency {
    /// It was left as it was.
    #[default]
    Untouched,
    /// There was none; to be removed again.
    WasUnreserved,
    /// So much was reserved; to be restored.
    Was(u32),
}

/// The longest spread of a pause, 14 days: SQS keeps no message for longer.
pub const LONGEST_SPREAD: Duration = Duration::from_secs(14 * 86_400);

/// No function is paused.
pub(crate) static NO_PAUSES: Pauses = Pauses(Vec::new());

impl Pauses {
    /// Keeps them in the order in which they begin.
    fn of(mut pauses: Vec<Pause>) -> Self {
        pauses.sort_by_key(|pause| pause.from);
        Self(pauses)
    }

    /// Each pause, in the order in which they begin.
    pub fn iter(&self) -> impl Iterator<Item = &Pause> {
        self.0.iter()
    }

    /// The pauses of a function, in the order in which they begin.
    pub fn of_function<'p>(&'p self, function_arn: &'p str) -> impl Iterator<Item = &'p Pause> {
        self.0.iter().filter(|pause| pause.target.covers(function_arn))
    }

    /// The pauses that are open for longer than that.
    pub(crate) fn open_for(&self, longer_than: Duration, now: Timestamp) -> impl Iterator<Item = &Pause> {
        self.0.iter().filter(move |pause| pause.is_active(now) && now.since(pause.from) > longer_than)
    }
}

impl Pause {
    /// Whether it has begun, and is not over.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.from <= now && !self.is_over(now)
    }

    /// Whether its end has come.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

impl PauseTarget {
    /// Whether it names the function.
    pub fn covers(&self, function_arn: &str) -> bool {
        match self {
            Self::All => true,
            Self::Functions(pattern) => pattern.allows(function_arn),
        }
    }
}

impl FromStr for PauseTarget {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        if text == "*" { Ok(Self::All) } else { text.parse().map(Self::Functions) }
    }
}

impl fmt::Display for PauseTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Functions(pattern) => pattern.fmt(f),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
