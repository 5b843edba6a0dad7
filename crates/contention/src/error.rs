use std::fmt;

use crate::point::{MAX_CLIENTS, MAX_CLIENTS_WITHOUT_BACKOFF, Point};
use crate::strategy::Strategy;

/// Why a study cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StudyError {
    /// There is no point to run.
    NoPoints,
    /// A point without clients.
    NoClients,
    /// A point without runs: there is no mean of nothing.
    NoRuns,
    /// More than [`MAX_CLIENTS`] clients.
    TooManyClients(u32),
    /// More than [`MAX_CLIENTS_WITHOUT_BACKOFF`] clients that never wait.
    TooManyWithoutBackoff(u32),
    /// The same clients and strategy, twice.
    Twice(u32, Strategy),
}

impl StudyError {
    pub(crate) fn check(points: &[Point]) -> Result<(), Self> {
        if points.is_empty() {
            return Err(Self::NoPoints);
        }
        for (i, point) in points.iter().enumerate() {
            let Point { clients, strategy, runs } = *point;
            if clients == 0 {
                return Err(Self::NoClients);
            }
            if runs == 0 {
                return Err(Self::NoRuns);
            }
            if clients > MAX_CLIENTS {
                return Err(Self::TooManyClients(clients));
            }
            if strategy == Strategy::None && clients > MAX_CLIENTS_WITHOUT_BACKOFF {
                return Err(Self::TooManyWithoutBackoff(clients));
            }
            if points[..i].iter().any(|other| (other.clients, other.strategy) == (clients, strategy)) {
                return Err(Self::Twice(clients, strategy));
            }
        }
        Ok(())
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPoints => {
                f.write_str("nothing to run: name at least one number of clients and one strategy")
            }
            Self::NoClients => write!(f, "0 clients: must be 1 to {MAX_CLIENTS}"),
            Self::NoRuns => f.write_str("0 runs: must be at least 1"),
            Self::TooManyClients(clients) => write!(f, "{clients} clients: must be 1 to {MAX_CLIENTS}"),
            Self::TooManyWithoutBackoff(clients) => write!(
                f,
                "{clients} clients with strategy none: must be at most {MAX_CLIENTS_WITHOUT_BACKOFF}, because \
                 without backoff the calls grow with the square of the clients"
            ),
            Self::Twice(clients, strategy) => {
                write!(f, "{clients} clients with strategy {strategy} are named twice")
            }
        }
    }
}

impl std::error::Error for StudyError {}
