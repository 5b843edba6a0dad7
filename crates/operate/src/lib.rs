//! The questions that an operator can ask about a [Comeback](https://github.com/comeback-retries/comeback)
//! deployment, and the changes that an operator can make to it.
//!
//! A *question* is a function that reads an [`Account`] and returns an [`Answer`]: a serializable value that
//! describes its own layout. A *change* is a [`Change`], which makes a plan and performs the plan. The `comeback`
//! command and its console both draw answers and changes. A deploy pipeline can use this crate too:
//! `examples/redrive.rs` redrives a function's dead-letters after a fix.
//!
//! This crate does not depend on a terminal or a web page. Only [`aws::sdk`] depends on the AWS SDK.
//!
//! | file | holds |
//! |---|---|
//! | [`aws`] | the port to an account, and its implementations |
//! | [`operator`], [`address`], [`account`], [`interrupt`], [`clock`] | a command's deployment, account and clock; how to follow its progress, and how to stop it |
//! | [`change`] | how every change is planned, performed and recorded |
//! | [`operator_line`], [`mod@activity`] | the log line that records a change, and the output of `comeback history` |
//! | [`status`], [`history`] | the state of a deployment, and its recent counts |
//! | [`pause`], [`resume`], [`request`] | pausing and resuming functions, and retrying or cancelling waiting events |
//! | [`recall`] | recalling hidden messages that a request or the end of a pause has made due |
//! | [`waiting`], [`trace`] | which events are waiting, why, and until when; what happened to one event |
//! | [`dead`] | listing, showing, redriving, discarding and importing dead-letters |
//! | [`mod@doctor`] | numbered checks, and the command that fixes each problem found |
//! | [`function_policy`] | where each value of a function's policy comes from |
//! | [`attach`] | attaching functions to a deployment, detaching them, and listing them |
//! | [`mod@text`], [`layout`], [`command`] | how an answer is laid out |
//! | [`durations`], [`numbers`], [`shown`] | formatting durations and counts, and escaping text that others wrote |
//! | [`failure`] | why a question or a change failed |

pub mod account;
pub mod activity;
pub mod address;
pub mod alarms;
pub mod attach;
pub mod aws;
pub mod change;
pub mod clock;
pub mod command;
pub mod dead;
pub mod deployment;
pub mod doctor;
pub mod durations;
pub mod failure;
pub mod function;
pub mod function_policy;
pub mod handler_setting;
pub mod history;
pub mod interrupt;
pub mod layout;
pub mod log;
pub mod metrics;
pub mod numbers;
pub mod operator;
pub mod operator_line;
pub mod pause;
pub mod pauses;
pub mod recall;
pub mod request;
pub mod resume;
mod rights;
pub mod shown;
pub mod status;
pub mod text;
pub mod trace;
pub mod waiting;

pub use account::{Account, Place};
pub use address::Address;
pub use change::{Answer, Change, Performed, Plan, Question};
pub use command::{Command, CommandName};
pub use deployment::find::Which;
pub use failure::Failure;
pub use interrupt::Interrupt;
pub use layout::{Block, Column, Fact, Layout, Series, Table, TimelineEntry};
pub use operator::{Follow, Operator, Progress, Unwatched};
pub use text::{Piece, Quotes, Span, Text, Tone, quoted, shell};
