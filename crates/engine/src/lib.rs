//! The retry handler's rules. One direction, no way back:
//!
//! [`BatchEvent`] → [`handle_batch`] → per [`Record`] [`decide()`] → perform in the [`Account`] →
//! [`BatchReport`]
//!
//! This crate never asks the time, draws only from generators it seeds by message, reads no
//! environment and knows no AWS SDK. The Lambda and the virtual-clock replay run this same code.
//!
//! | file | holds |
//! |---|---|
//! | `batch_event` | [`BatchEvent`]: the event's JSON, read message by message |
//! | `record` | [`Record`]: a message of the retry queue |
//! | `invocation_record` | [`InvocationRecord`]: what Lambda wrote into its body |
//! | `event` | [`FailedEvent`]: which retry of what comes next |
//! | `variables`, `settings`, `policy`, `function_arn` | [`Policy`]: how retries are made, checked when built |
//! | `decide` | [`decide()`]: the rules, numbered |
//! | `action` | [`Action`]: what it answers |
//! | `due`, `seed` | the moment a retry is due; the generator that a message seeds |
//! | `handle_batch` | [`handle_batch`]: performing, grouped |
//! | `handle_batch/decided`, `answered` | a message on its way: its steps, and what may follow each |
//! | `handle_batch/guarded` | no call past the deadline, an answer for each entry |
//! | `handle_batch/hiding` | how long a message is hidden whose step did not work |
//! | `account` | [`Account`]: the AWS account as the handler sees it |
//! | `reason`, `dead_letter` | why an event is given up, and its dead-letter on the wire |
//! | `report` | what became of each message |
//! | `json` | reading JSON leniently, part by part |
//! | `time` | [`Timestamp`] |

mod account;
mod action;
mod batch_event;
mod dead_letter;
mod decide;
mod due;
mod event;
mod function_arn;
mod handle_batch;
mod invocation_record;
mod json;
mod policy;
mod reason;
mod record;
mod report;
mod seed;
mod settings;
mod time;
mod variables;

pub use comeback_backoff::{Backoff, Jitter};
pub use comeback_envelope::{Envelope, Style};

pub use account::{
    Account, CALL_TIMEOUT, CallFailure, InvokeFailure, RESERVE, SqsBatchCalls, VisibilityChange,
};
pub use action::Action;
pub use batch_event::{BatchEvent, IncompleteMessage, MissingMessageId, NotABatch};
pub use dead_letter::{Attribute, DeadLetter, SQS_MESSAGE_BYTES};
pub use decide::decide;
pub use event::FailedEvent;
pub use function_arn::{BadPattern, FunctionPattern, HandlerFunction};
pub use handle_batch::handle_batch;
pub use invocation_record::{InvocationError, InvocationRecord};
pub use policy::Policy;
pub use reason::{Reason, ReasonCode};
pub use record::Record;
pub use report::{BatchReport, Outcome, Retry, Step};
pub use settings::{BACKOFF_RANGE, MAX_AGE_RANGE, MAX_RETRIES_RANGE, SettingError, Settings};
pub use time::Timestamp;
pub use variables::seconds;
