//! The retry handler's rules. One direction, no way back:
//!
//! [`handle_batch`] → per [`Record`] [`decide()`] → perform in the [`Account`] → [`BatchReport`]
//!
//! This crate never asks the time, draws only from generators it seeds by message, reads no
//! environment and knows no AWS SDK. The Lambda and the virtual-clock replay run this same code.
//!
//! | file | holds |
//! |---|---|
//! | `record` | [`Record`]: a message of the retry queue; [`read_batch`]: those of one event |
//! | `invocation_record` | [`InvocationRecord`]: what Lambda wrote into its body |
//! | `event` | [`FailedEvent`]: which retry of what comes next |
//! | `variables`, `settings`, `policy`, `function_arn` | [`Policy`]: how retries are made, checked when built |
//! | `decide`, `due` | [`decide()`]: the rules, in order; the moment a retry is due |
//! | `handle_batch` | [`handle_batch`]: performing, grouped; partial failure |
//! | `account` | [`Account`]: the AWS account as the handler sees it |
//! | `reason`, `dead_letter` | why an event is given up, and its dead-letter on the wire |
//! | `report` | what became of each message |
//! | `time` | [`Timestamp`] |

mod account;
mod dead_letter;
mod decide;
mod due;
mod event;
mod function_arn;
mod handle_batch;
mod invocation_record;
mod policy;
mod reason;
mod record;
mod report;
mod settings;
mod time;
mod variables;

pub use comeback_backoff::{Backoff, Jitter};
pub use comeback_envelope::{Envelope, Style};

pub use account::{
    Account, CALL_TIMEOUT, CallFailure, InvokeFailure, RESERVE, SqsBatchCalls, VisibilityChange,
};
pub use dead_letter::{Attribute, DeadLetter, SQS_MESSAGE_BYTES};
pub use decide::{Action, Decision, decide};
pub use event::FailedEvent;
pub use function_arn::{BadPattern, FunctionPattern, HandlerFunction};
pub use handle_batch::handle_batch;
pub use invocation_record::{InvocationError, InvocationRecord};
pub use policy::Policy;
pub use reason::{Reason, ReasonCode};
pub use record::{IncompleteMessage, MissingMessageId, Record, read_batch};
pub use report::{BatchReport, Outcome, Step};
pub use settings::{BACKOFF_RANGE, MAX_AGE_RANGE, MAX_RETRIES_RANGE, SettingError, Settings};
pub use time::Timestamp;
pub use variables::seconds;
