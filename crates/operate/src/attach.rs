//! Attaches and detaches functions. The failed events of an attached function go to a deployment's retry queue. After a
//! function is detached, Lambda alone handles the function's failed events.
//!
//! An `Attachment` holds all facts about one function. The plan to attach or detach the function is made from these
//! facts alone, without further calls, and its steps are in a safe order. Comeback does not save its progress: after an
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

pub use plan::{AttachPlan, Attached, Route, RouteFailures};
pub use step::Difference;
