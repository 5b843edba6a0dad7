//! Attaches and detaches functions. The failed events of an attached function go to a deployment's retry queue. After a
//! function is detached, Lambda alone handles the function's failed events.
//!
//! An `Attachment` holds all facts about one function. A plan is made from these facts alone, and its steps are in a
//! safe order. No progress is saved: after an interruption, the next run makes a new plan.

pub(crate) mod attaching;
pub(crate) mod attachment;
pub mod attachments;
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
