//! Attaching and detaching functions: attach sends a function's failed events to a deployment, detach returns them to
//! Lambda's own handling.
//!
//! An `Attachment` holds all facts about one function. The steps to attach or detach the function are planned from
//! these facts alone, without further calls, in a safe order. No other state is kept: to resume an interrupted run,
//! plan again.

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
