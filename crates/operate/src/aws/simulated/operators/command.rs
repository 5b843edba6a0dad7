//! The commands that simulated operators run, and the outcomes of these commands.

use std::time::Duration;

use comeback_engine::RequestKind;
use serde_json::Value;

use crate::change::{Change, Performed, Plan as _, perform};
use crate::failure::Failure;
use crate::operator::Operator;
use crate::pause::{PauseEnd, PauseRetries};
use crate::request::RequestEvents;
use crate::request::withdraw::WithdrawRequests;
use crate::resume::ResumeRetries;

/// A command that a simulated operator runs and confirms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedCommand {
    /// The time when the operator runs the command, counted from the start of the simulated run.
    pub at: Duration,
    /// The change that the command makes.
    pub change: SimulatedChange,
    /// The number of calls that the command makes before it is killed; `None` if the command is not killed.
    pub killed_after: Option<u64>,
}

/// A change that a simulated operator makes to every function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SimulatedChange {
    /// The command `pause`, with a planned end if a duration is given.
    Pause(Option<Duration>),
    /// The command `resume`, which spreads the retries of held events over this duration (`--spread`).
    Resume(Duration),
    /// The command `retry --within` or `cancel`, for the selected events. A cancel ignores the duration.
    Request(RequestKind, Duration, EventSelection),
    /// The command `retry --withdraw` or `cancel --withdraw`.
    Withdraw(RequestKind),
}

/// The events that a retry or cancel request selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSelection {
    /// All events.
    All,
    /// Events with this error type.
    Error(&'static str),
    /// This number of events, chosen at random from the log and named by their keys.
    Keys(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The command made a change of the kind `what`, and recalled `recalled` messages.
    Done {
        what: String,
        recalled: u64,
    },
    NothingToDo,
    Failed(Failure),
    Killed,
}

impl SimulatedChange {
    /// The number of events that the change selects by key; 0 if it selects none by key.
    pub(super) const fn keys(self) -> usize {
        match self {
            Self::Request(_, _, EventSelection::Keys(count)) => count,
            _ => 0,
        }
    }

    /// Makes the change as the given operator; `keys` are the event keys for [`EventSelection::Keys`].
    pub(super) async fn make(self, operator: Operator, keys: Vec<String>) -> Ending {
        let function = None;
        let ending = match self {
            Self::Pause(length) => {
                let end = length.map(PauseEnd::After);
                let why = Some("chaos".into());
                confirmed(&operator, PauseRetries { function, end, spread: None, why }).await
            }
            Self::Resume(spread) => {
                confirmed(&operator, ResumeRetries { function, spread: Some(spread) }).await
            }
            Self::Request(kind, within, selection) => {
                let error = match selection {
                    EventSelection::Error(error) => Some(error.to_owned()),
                    EventSelection::All | EventSelection::Keys(_) => None,
                };
                confirmed(&operator, RequestEvents { kind, within, function, error, keys, why: None }).await
            }
            Self::Withdraw(kind) => confirmed(&operator, WithdrawRequests { function, kind }).await,
        };
        ending.unwrap_or_else(Ending::Failed)
    }
}

/// Plans a change and carries it out. Whenever the plan is out of date, continues with a new one.
async fn confirmed(operator: &Operator, change: impl Change) -> Result<Ending, Failure> {
    let mut plan = change.plan(operator).await?;
    while plan.question().is_some() {
        let (performed, recorded) = perform(&change, operator, &plan).await?;
        match performed {
            Performed::Outdated(new) => plan = new,
            Performed::Done(done, result) => {
                result.and(recorded)?;
                let Some(activity) = change.activity(&done) else { break };
                let done = serde_json::to_value(done).expect("BUG: an answer is plain JSON");
                let recalled = done["result"].get("recalled").and_then(Value::as_u64).unwrap_or_default();
                return Ok(Ending::Done { what: activity.what, recalled });
            }
        }
    }
    Ok(Ending::NothingToDo)
}
