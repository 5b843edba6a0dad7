//! Commands of simulated operators, and how they end.

use std::time::Duration;

use serde_json::Value;

use crate::change::{Change, Performed, Plan as _, perform};
use crate::failure::Failure;
use crate::operator::Operator;
use crate::pause::PauseRetries;
use crate::pauses::edits::{End, Wanted};
use crate::request::withdraw::WithdrawRequests;
use crate::request::{Ask, Kind, RequestEvents};
use crate::resume::ResumeRetries;

/// A command that an operator runs and confirms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedCommand {
    /// The time of the command, counted from the start of the simulated run.
    pub at: Duration,
    /// The change that the command makes.
    pub change: SimulatedChange,
    /// The number of calls that the command makes before it is killed; `None` if nobody kills it.
    pub killed_after: Option<u64>,
}

/// A change to every function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SimulatedChange {
    /// `pause`, perhaps with a planned length.
    Pause(Option<Duration>),
    /// `resume`, with this spread.
    Resume(Duration),
    /// `retry --within`.
    Retry(Duration, Selection),
    /// `cancel`.
    Cancel(Selection),
    /// `retry --withdraw` or `cancel --withdraw`.
    Withdraw(Kind),
}

/// The events that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All events.
    All,
    /// Events with this error type.
    Error(&'static str),
    /// This many events from the log, by their keys.
    Keys(usize),
}

/// The end of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The command made a change, recorded under the name `what`, and recalled `recalled` messages.
    Done {
        what: String,
        recalled: u64,
    },
    /// There was nothing to change.
    NothingToDo,
    Failed(Failure),
    Killed,
}

impl SimulatedChange {
    /// The number of keys that the command names.
    pub(super) const fn keys(self) -> usize {
        match self {
            Self::Retry(_, Selection::Keys(count)) | Self::Cancel(Selection::Keys(count)) => count,
            _ => 0,
        }
    }

    /// Makes the change. A request by key names `keys`.
    pub(super) async fn make(self, operator: Operator, keys: Vec<String>) -> Ending {
        let function = None;
        let request = |operator, ask, selection| {
            let error = match selection {
                Selection::Error(error) => Some(error.to_owned()),
                Selection::All | Selection::Keys(_) => None,
            };
            RequestEvents { operator, ask, function: None, error, keys, why: None }
        };
        match self {
            Self::Pause(length) => {
                let end = length.map(End::After);
                let wanted = Wanted { end, spread: None, why: Some("chaos".into()) };
                confirmed(PauseRetries { operator, function, wanted }).await
            }
            Self::Resume(spread) => {
                confirmed(ResumeRetries { operator, function, spread: Some(spread) }).await
            }
            Self::Retry(within, selection) => {
                confirmed(request(operator, Ask::Retry { within }, selection)).await
            }
            Self::Cancel(selection) => confirmed(request(operator, Ask::Cancel, selection)).await,
            Self::Withdraw(kind) => confirmed(WithdrawRequests { operator, function, kind }).await,
        }
    }
}

/// Plans a change, performs it and records it. If another operator was faster, agrees to the new plan.
async fn confirmed(change: impl Change) -> Ending {
    let mut plan = match change.plan().await {
        Ok(plan) => plan,
        Err(failure) => return Ending::Failed(failure),
    };
    while plan.question().is_some() {
        let (performed, recorded) = perform(&change, &plan).await;
        match performed {
            Performed::Outdated(new) => plan = new,
            Performed::Failed(failure) => return Ending::Failed(failure),
            Performed::Done(done, result) => {
                if let Err(failure) = result.and(recorded) {
                    return Ending::Failed(failure);
                }
                let Some(activity) = change.activity(&done) else { break };
                let done = serde_json::to_value(done).expect("BUG: an answer is plain JSON");
                let recalled = done["result"].get("recalled").and_then(Value::as_u64).unwrap_or_default();
                return Ending::Done { what: activity.what, recalled };
            }
        }
    }
    Ending::NothingToDo
}
