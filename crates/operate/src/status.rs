//! The state of a deployment on one screen.
//!
//! | file | holds |
//! |---|---|
//! | `depth` | how many messages a queue has |
//! | `letters` | the oldest dead-letter |
//! | `metrics` | the last hour, and the oldest message that is due |
//! | `paused` | the pauses that are open |
//! | `alarms` | the alarms on the queues, on the handler and on what is lost on the way |

mod alarms;
mod depth;
mod letters;
mod metrics;
mod paused;

use comeback_engine::{HideUpTo, Timestamp};
use serde::Serialize;

pub use alarms::Alarm;
pub(crate) use alarms::is_of;
#[cfg(test)]
pub(crate) use alarms::tests;
pub use depth::Depth;
pub use letters::OldestLetter;
pub use metrics::LastHour;
pub use paused::OpenPause;

use crate::{Account, Deployment, Failure};

/// The state of a deployment. Every count of SQS's is approximate, and right only a minute after the last change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// The handler's name.
    pub handler: String,
    /// The handler's stack.
    pub stack: Option<String>,
    /// The messages of the retry queue.
    pub retry_queue: Depth,
    /// `HIDE_UP_TO`: how many of them may be hidden at once before the others wait as delayed messages; `None` without a
    /// limit, or if the handler refuses its settings.
    pub hide_up_to: Option<u64>,
    /// The messages of the dead-letter queue.
    pub dead_letters: Depth,
    /// The oldest dead-letter that was seen; `None` if there is none.
    pub oldest_dead_letter: Option<OldestLetter>,
    /// What feeds the handler.
    pub mapping: Option<MappingState>,
    /// The pauses that are not over; `None` if the handler reads none.
    pub pauses: Option<Vec<OpenPause>>,
    /// What was counted in the last hour.
    pub last_hour: LastHour,
    /// The alarms on the queues and on the handler.
    pub alarms: Vec<Alarm>,
}

/// The event source mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MappingState {
    /// `Enabled`, `Disabled`, or a state on the way to one of them.
    pub state: String,
    /// The most invocations of the handler at a time.
    pub maximum_concurrency: Option<i32>,
}

impl Status {
    /// Reads the state of a deployment. `before` is the state that was read last, if there is one: the dead-letters are
    /// looked at again only if their number has changed since.
    ///
    /// # Errors
    ///
    /// A call that did not work.
    pub async fn read(
        account: &Account,
        deployment: &Deployment,
        before: Option<&Self>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let dead_letters = Depth::read(account, &deployment.dead_letter_queue).await?;
        let oldest = match before.filter(|before| before.dead_letters == dead_letters) {
            Some(before) => before.oldest_dead_letter.map(|oldest| oldest.aged(now)),
            None => OldestLetter::find(account, deployment, &dead_letters, now).await?,
        };
        let hide_up_to = match deployment.policy().map(|policy| policy.hide_up_to()) {
            Ok(HideUpTo::UpTo(limit)) => Some(limit),
            Ok(HideUpTo::Always) | Err(_) => None,
        };
        Ok(Self {
            handler: deployment.handler.clone(),
            stack: deployment.stack.clone(),
            retry_queue: Depth::read(account, &deployment.retry_queue).await?,
            hide_up_to,
            dead_letters,
            oldest_dead_letter: oldest,
            mapping: deployment.mapping.as_ref().map(|mapping| MappingState {
                state: mapping.state.clone(),
                maximum_concurrency: mapping.maximum_concurrency,
            }),
            pauses: OpenPause::all(account, deployment, now).await?,
            last_hour: LastHour::read(account, deployment, now).await?,
            alarms: Alarm::all(account, deployment).await?,
        })
    }
}
