//! The operator's half of Comeback: what the `comeback` command does with a deployment.
//!
//! A [`Deployment`] is found by its handler or its stack, and everything else is read from the handler's environment,
//! event source mapping and role. So it does not matter whether SAM, the CDK or cargo-lambda deployed it.
//!
//! | file | holds |
//! |---|---|
//! | `account` | [`Account`]: the SDK's clients |
//! | `deployment` | [`Deployment`]: a handler and what belongs to it; how it is found |
//! | `function` | [`FunctionName`]: a function as an operator names it |
//! | `target` | [`Target`]: the facts of one function; [`InvokeSettings`]: those of its asynchronous invocations |
//! | `pauses` | [`PauseOrder`], [`ResumeOrder`]: the parameter that holds the pauses, and what operators do to it |
//! | `permission` | [`may()`]: whether a role may do something |
//! | `attach` | [`Attachment`]: a function's attachment to a deployment; [`AttachPlan`]: what it takes to attach or detach it |
//! | `doctor` | [`doctor`]: numbered checks of a deployment and its functions |
//! | `status` | [`Status`]: the state of a deployment on one screen |
//! | `trace` | [`Trace`]: one event's life, from the log |
//! | `dead` | [`dead::DeadLetters`]: the letters of the dead-letter queue |
//! | `failure` | [`Failure`]: why a command did not do its work, by exit code |
//! | `interrupt` | [`Interrupt`]: whether the operator has pressed Ctrl-C |

mod account;
mod attach;
pub mod dead;
mod deployment;
pub mod doctor;
mod failure;
mod function;
mod interrupt;
mod pauses;
mod permission;
mod status;
mod target;
mod trace;

pub use account::Account;
pub use attach::change::{Change, Difference, ListPlace};
pub use attach::facts::{Attachment, Handler, Place};
pub use attach::leaving::{Leaving, Log, Waiting};
pub use attach::perform::settled;
pub use attach::plan::AttachPlan;
pub use deployment::mapping::Mapping;
pub use deployment::{Deployment, Queue};
pub use failure::Failure;
pub use function::{BadFunctionName, FunctionName};
pub use interrupt::Interrupt;
pub use pauses::pause::{PauseOrder, Paused};
pub use pauses::resume::{ResumeOrder, Resumed};
pub use permission::{Verdict, may};
pub use status::{Alarm, Depth, LastHour, MappingState, OldestLetter, OpenPause, Status};
pub use target::Target;
pub use target::invoke_settings::InvokeSettings;
pub use trace::Trace;
pub use trace::invocation::{Invocation, LoggedLine, Report};
pub use trace::story::{End, Step, Story, What};
