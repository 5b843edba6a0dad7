//! The retry handler's rules, and the code that applies them to a batch of messages.
//!
//! An [`Environment`] is one running handler. [`Environment::handle`] takes a [`BatchEvent`], calls [`decide()`] for
//! each [`Record`], carries out the actions through an [`Account`], and returns a [`BatchReport`].
//!
//! This crate never reads the clock or environment variables, and does not depend on an AWS SDK. All its random
//! numbers come from generators that are seeded with the id of a message or the key of an event.
//!
//! | file | holds |
//! |---|---|
//! | `environment`, `message` | [`Environment`], which handles a batch; the states of the batch's messages |
//! | `decide` | [`decide()`]: the numbered rules, in their order |
//! | `waits`, `room` | the waits after failures, and the waits of moved messages; [`Room`] for hidden messages |
//! | `known_pauses` | the pauses that an environment has read, and when it reads them again |
//! | `account` | [`Account`]: the AWS account as the handler sees it |
//! | `outcome`, `report` | [`Outcome`] for one message; [`BatchReport`], the outcomes for a batch |
//! | `log_line`, `log_fold` | [`LogLine`], written for each outcome; [`LogFold`], the state of each message according to the log |
//! | `batch_event`, `record` | [`BatchEvent`] and its messages: [`Record`], [`Attribute`], [`Moved`] |
//! | `failed_event`, `invocation_record`, `directive` | the [`FailedEvent`] in a message, read from an [`InvocationRecord`], with its [`Directive`] |
//! | `stray` | recognizes messages that are not failure records |
//! | `dead_letter`, `received_dead_letter` | the format of a dead-letter, with its [`Reason`]; [`ReceivedDeadLetter`], a message read from the dead-letter queue |
//! | `settings`, `setting` | [`SETTINGS`], the table of environment variables, and the [`Settings`] generated from it; the type of a table entry; the reason for refusing a value |
//! | `policy`, `policies` | [`Policy`], checked when built from [`Settings`] or environment variables; [`Policies`], which adds policies for individual functions |
//! | `arn` | ARNs and patterns for them |
//! | `pauses`, `requests` | [`Pauses`], the document of operators' pauses and requests; [`Request`], an operator's request to retry or cancel events |
//! | `recall` | [`Recall`]: the waiting messages that an operator's request brings back early |
//! | `timing` | durations that several rules share, such as [`HOLD`] |
//! | `json`, `seed`, `time` | lenient JSON; seeded generators; [`Timestamp`] |

mod account;
mod arn;
mod batch_event;
mod dead_letter;
mod decide;
mod directive;
mod environment;
mod failed_event;
mod invocation_record;
mod json;
mod known_pauses;
mod log_fold;
mod log_line;
mod message;
mod outcome;
mod pauses;
mod policies;
mod policy;
mod recall;
mod received_dead_letter;
mod record;
mod report;
mod requests;
mod room;
mod seed;
mod setting;
mod settings;
mod stray;
mod time;
mod timing;
mod waits;

pub use comeback_backoff::{Backoff, Jitter};
pub use comeback_envelope::{Envelope, Style};

pub use account::{
    Account, CALL_TIMEOUT, COUNT_TIMEOUT, CallFailure, DeadLettered, HANDLER_TIMEOUT, INVOKE_RESERVE,
    INVOKE_TIMEOUT, InFlightCount, InvokeFailure, Move, MoveFailure, PAUSES_TIMEOUT, RESERVE, SqsBatchCalls,
    VisibilityChange,
};
pub use arn::{BadArn, FunctionArn, FunctionPattern, HandlerFunction, PauseTarget, QueueArn, short_name};
pub use batch_event::{BatchEvent, IncompleteMessage, NO_MESSAGE_ID};
pub use dead_letter::{ATTRIBUTE_CHARACTERS, DeadLetter, Reason, ReasonCode, SQS_MESSAGE_BYTES};
pub use decide::{Action, decide};
pub use directive::{Directive, error_matches, error_names, simple_name};
pub use environment::Environment;
pub use failed_event::{FailedEvent, logged};
pub use invocation_record::InvocationRecord;
pub use json::LossyText;
pub use known_pauses::LONG_PAUSE;
pub use log_fold::{Handle, LogFold, MessageKind, MessageState, WaitingMessage, WaitsFor};
pub use log_line::{LOG_VERSION, LogLevel, LogLine, LoggedEvent, NotALine};
pub use outcome::{Cause, DueBy, Early, Location, Outcome, What};
pub use pauses::{GarbledPauses, LONGEST_PAUSES, LONGEST_SPREAD, Pause, Pauses, TooLarge};
pub use policies::{Policies, PolicyEntry};
pub use policy::Policy;
pub use recall::{NotRecalled, RETURNS_SOON, Recall, Rules};
pub use received_dead_letter::{DeadLetterKind, ReceivedDeadLetter};
pub use record::{Attribute, LONGEST_UNANSWERED, MOVED_ATTRIBUTE, Moved, Record};
pub use report::{BatchReport, Moves, PausesRead};
pub use requests::{LONGEST_REQUEST, LONGEST_WITHIN, MOST_KEYS, Request, RequestKind};
pub use room::Room;
pub use setting::{HideUpTo, Kind, Scope, Setting, SettingError, Unset};
pub use settings::{
    BACKOFF_RANGE, HIDE_UP_TO_RANGE, MAX_AGE_RANGE, MAX_RETRIES_RANGE, MAXIMUM_CONCURRENCY_RANGE, SETTINGS,
    Settings,
};
pub use time::{Timestamp, ceil_secs, duration, seconds};
pub use timing::{HOLD, LONGEST_VISIBILITY, QUEUE_VISIBILITY_TIMEOUT, RETENTION, longest_between_reads};
pub use waits::LONGEST_HOP;
