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
//! | `status` | [`Status`]: the state of a deployment on one screen |
//! | `dead` | [`dead::DeadLetters`]: the letters of the dead-letter queue |
//! | `failure` | [`Failure`]: why a command did not do its work, by exit code |
//! | `interrupt` | [`Interrupt`]: whether the operator has pressed Ctrl-C |

mod account;
pub mod dead;
mod deployment;
mod failure;
mod function;
mod interrupt;
mod status;

pub use account::Account;
pub use deployment::mapping::Mapping;
pub use deployment::{Deployment, Queue};
pub use failure::Failure;
pub use function::{BadFunctionName, FunctionName};
pub use interrupt::Interrupt;
pub use status::Status;
