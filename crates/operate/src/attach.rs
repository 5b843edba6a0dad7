//! Attach and detach: send the failures of functions to a deployment, or leave them to Lambda again.
//!
//! An `Attachment` holds all facts about one function. From it, the steps that attach or detach the function are
//! planned, in a safe order, without any call. No other state is kept: to resume an interrupted run, plan again.

pub(crate) mod attaching;
pub(crate) mod attachment;
mod detaching;
mod grant;
pub mod kept;
mod leaving;
mod plan;
pub(crate) mod step;
#[cfg(test)]
mod tests;

pub use plan::{AttachPlan, Attached, Route, RouteFailures};
pub use step::Difference;
