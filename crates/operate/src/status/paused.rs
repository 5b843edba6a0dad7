use comeback_engine::{Concurrency, Pause, Timestamp};
use serde::Serialize;

use crate::trace::story::{optional_text, text};
use crate::{Account, Deployment, Failure, pauses};

/// A pause that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenPause {
    /// The ARN of its function, or `*` for every function.
    pub target: String,
    /// Its first moment.
    #[serde(serialize_with = "text")]
    pub from: Timestamp,
    /// Its end, if it has a planned one.
    #[serde(serialize_with = "optional_text")]
    pub until: Option<Timestamp>,
    /// How long it has been open.
    pub open_seconds: u64,
    /// Who opened it.
    pub by: Option<String>,
    /// The reason they gave.
    pub why: Option<String>,
    /// Whether its function's reserved concurrency is 0 meanwhile.
    pub is_hard: bool,
}

impl OpenPause {
    /// The pauses that are not over; `None` if the handler reads none.
    ///
    /// # Errors
    ///
    /// The parameter cannot be read, or its text is no list of pauses.
    pub async fn all(
        account: &Account,
        deployment: &Deployment,
        now: Timestamp,
    ) -> Result<Option<Vec<Self>>, Failure> {
        let pauses = pauses::read(account, deployment).await?;
        Ok(pauses.map(|pauses| {
            pauses.iter().filter(|pause| !pause.is_over(now)).map(|pause| Self::of(pause, now)).collect()
        }))
    }

    /// A pause as it is now.
    pub(crate) fn of(pause: &Pause, now: Timestamp) -> Self {
        Self {
            target: pause.target.to_string(),
            from: pause.from,
            until: pause.until,
            open_seconds: now.since(pause.from).as_secs(),
            by: pause.by.clone(),
            why: pause.why.clone(),
            is_hard: pause.concurrency != Concurrency::Untouched,
        }
    }
}
