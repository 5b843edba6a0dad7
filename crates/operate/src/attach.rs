//! Attaches functions to a deployment, which then retries their failed events. Also detaches functions.
//!
//! An `Attachment` holds all the facts that a plan needs about one function. No progress is saved: after an
//! interruption, the next run makes a new plan.

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

pub use plan::{AttachPlan, Route, RouteFailures};
pub use step::Difference;
