//! The retry handler's rules. One direction, no way back:
//!
//! [`BatchEvent`] → [`handle_batch()`] → per [`Record`] [`decide()`] → perform in the [`Account`] →
//! [`BatchReport`]
//!
//! This crate never asks the time, draws only from generators it seeds by message, reads no
//! environment and knows no AWS SDK. The Lambda and the simulation run this same code.
//!
//! | file | holds |
//! |---|---|
//! | `message` | the event, read message by message: [`BatchEvent`], [`Record`], [`InvocationRecord`], [`FailedEvent`] |
//! | `policy` | [`Policy`]: how retries are made, checked when built from [`Settings`] |
//! | `decide` | [`decide()`]: the rules, numbered |
//! | `directive` | [`Directive`]: what a function says of its own retries |
//! | `handle_batch` | [`handle_batch()`]: performing, grouped |
//! | `room` | [`Room`]: how many messages one environment may still hide |
//! | `pauses` | [`Pauses`]: the functions that are not invoked for a while |
//! | `account` | [`Account`]: the AWS account as the handler sees it |
//! | `reason`, `dead_letter` | why an event is given up, and its dead-letter on the wire |
//! | `letter` | [`Letter`]: a message of the dead-letter queue, read back |
//! | `report` | what became of each message |
//! | `time` | [`Timestamp`] |

mod account;
mod dead_letter;
mod decide;
mod directive;
mod handle_batch;
mod letter;
mod message;
mod pauses;
mod policy;
mod reason;
mod report;
mod room;
mod time;

pub use comeback_backoff::{Backoff, Jitter};
pub use comeback_envelope::{Envelope, Style};

pub use account::{
    Account, CALL_TIMEOUT, CallFailure, HANDLER_TIMEOUT, INVOKE_RESERVE, INVOKE_TIMEOUT, InvokeFailure,
    LOOK_TIMEOUT, Look, Move, MoveFailure, PAUSES_TIMEOUT, RESERVE, SqsBatchCalls, VisibilityChange,
};
pub use dead_letter::{Attribute, DeadLetter, SQS_MESSAGE_BYTES};
pub use decide::action::Action;
pub use decide::paused::HOLD;
pub use decide::{QUEUE_VISIBILITY_TIMEOUT, decide};
pub use directive::Directive;
pub use directive::simple_name::simple_name;
pub use handle_batch::handle_batch;
pub use letter::{Letter, LetterKind};
pub use message::batch_event::{BatchEvent, GarbledMessage, IncompleteMessage, MissingMessageId, NotABatch};
pub use message::event::FailedEvent;
pub use message::invocation_record::{InvocationError, InvocationRecord};
pub use message::moved::{GarbledAttribute, MOVED_ATTRIBUTE, Moved};
pub use message::record::Record;
pub use message::trace::TraceHeader;
pub use pauses::editing::{EditError, LONGEST_PAUSES};
pub use pauses::known::{KnownPauses, LONG_PAUSE};
pub use pauses::{Concurrency, GarbledPauses, LONGEST_SPREAD, Pause, PauseTarget, Pauses};
pub use policy::Policy;
pub use policy::function_arn::{BadPattern, FunctionPattern, HandlerFunction};
pub use policy::settings::{
    BACKOFF_RANGE, HIDE_UP_TO_RANGE, HideUpTo, MAX_AGE_RANGE, MAX_RETRIES_RANGE, MAXIMUM_CONCURRENCY_RANGE,
    SettingError, Settings,
};
pub use policy::variables::seconds;
pub use reason::{Reason, ReasonCode};
pub use report::{BatchReport, Moves, Outcome, PausesRead, Retry, Step};
pub use room::Room;
pub use time::Timestamp;
