//! What the checks look at, read once and all at a time. Each fact is there, or is the failure to read it.
//!
//! | file | holds |
//! |---|---|
//! | `queue` | a queue's attributes |
//! | `log` | the ERRORs of the handler's log |
//! | `rights` | what a role must be allowed, and whether it is |
//! | `functions` | the functions to be checked |
//! | `dropped` | how often Lambda could not deliver a record of a failure |

pub(super) mod dropped;
pub(super) mod functions;
pub(super) mod log;
pub(super) mod queue;
pub(super) mod rights;

use comeback_engine::{Pauses, Timestamp};

use crate::doctor::diagnosis::seen;
use crate::{Account, Alarm, Deployment, Failure, FunctionName, Mapping, Target, pauses};
use functions::Functions;
use log::LoggedErrors;
use queue::QueueSettings;
use rights::HandlerRights;

#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) deployment: Deployment,
    pub(super) now: Timestamp,
    /// The handler as a function.
    pub(super) handler: Result<Target, Failure>,
    /// All that feed the handler from queues.
    pub(super) mappings: Result<Vec<Mapping>, Failure>,
    pub(super) retry_queue: Result<QueueSettings, Failure>,
    pub(super) dead_letter_queue: Result<QueueSettings, Failure>,
    pub(super) errors: Result<LoggedErrors, Failure>,
    pub(super) alarms: Result<Vec<Alarm>, Failure>,
    pub(super) pauses: Result<Option<Pauses>, Failure>,
    pub(super) rights: HandlerRights,
    pub(super) functions: Functions,
}

impl Facts {
    pub(super) async fn read(
        account: &Account,
        deployment: &Deployment,
        named: &[FunctionName],
        now: Timestamp,
    ) -> Self {
        let handler: FunctionName =
            deployment.handler_arn.parse().expect("BUG: Lambda's ARN of a function names it");
        let (retry_queue, dead_letter_queue) = tokio::join!(
            QueueSettings::read(account, &deployment.retry_queue),
            QueueSettings::read(account, &deployment.dead_letter_queue),
        );
        // Their rights to the queues' keys need the queues.
        let (handler, mappings, errors, alarms, pauses, rights, functions) = tokio::join!(
            Target::read(account, &handler),
            Mapping::all(account, &deployment.handler),
            LoggedErrors::read(account, &deployment.log_group, now),
            Alarm::all(account, deployment),
            pauses::read(account, deployment),
            HandlerRights::read(account, deployment, &retry_queue, &dead_letter_queue),
            Functions::read(account, deployment, &retry_queue, named, now),
        );
        Self {
            deployment: deployment.clone(),
            now,
            handler,
            mappings,
            retry_queue,
            dead_letter_queue,
            errors,
            alarms,
            pauses,
            rights,
            functions,
        }
    }

    /// The mapping that hands the retry queue to the handler, if there is one.
    pub(super) fn mapping(&self) -> Result<Option<&Mapping>, Failure> {
        let mappings = seen(&self.mappings)?;
        Ok(mappings.iter().find(|mapping| mapping.queue_arn == self.deployment.retry_queue.arn))
    }
}
