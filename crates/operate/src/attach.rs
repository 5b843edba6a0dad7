//! Attach and detach: send the failures of functions to a deployment, or leave them to Lambda again.
//!
//! An `Attachment` is everything there is of one function. From it, the steps that attach or
//! detach the function are planned, in a safe order, without any call. There is no other state: an interrupted run is
//! resumed by planning again.

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

use crate::change::{Change, Performed};
use crate::failure::Failure;
use crate::function::FunctionName;
use crate::operator::Operator;

pub use plan::{AttachPlan, Attached};
use plan::{Request, Verb};
pub use step::Difference;

/// Sends the failures of functions to a deployment.
#[derive(Clone, Debug)]
pub struct AttachFunctions {
    /// The operator.
    pub operator: Operator,
    /// The functions.
    pub functions: Vec<FunctionName>,
    /// They may be taken over from another deployment.
    pub may_move: bool,
}

impl AttachFunctions {
    fn request(&self) -> Request<'_> {
        let Self { operator, functions, may_move } = self;
        Request { operator, functions, verb: Verb::Attach { may_move: *may_move } }
    }
}

impl Change for AttachFunctions {
    type Plan = AttachPlan;
    type Done = Attached;

    async fn plan(&self) -> Result<AttachPlan, Failure> {
        self.request().plan().await
    }

    async fn perform(&self, plan: &AttachPlan) -> Performed<AttachPlan, Attached> {
        self.request().perform(plan).await
    }
}

/// Leaves the failures of functions to Lambda again.
#[derive(Clone, Debug)]
pub struct DetachFunctions {
    /// The operator.
    pub operator: Operator,
    /// The functions.
    pub functions: Vec<FunctionName>,
    /// Their events are not waited for: those that still wait are dead-lettered, unless another alias or version stays
    /// attached.
    pub at_once: bool,
}

impl DetachFunctions {
    fn request(&self) -> Request<'_> {
        let Self { operator, functions, at_once } = self;
        Request { operator, functions, verb: Verb::Detach { at_once: *at_once } }
    }
}

impl Change for DetachFunctions {
    type Plan = AttachPlan;
    type Done = Attached;

    async fn plan(&self) -> Result<AttachPlan, Failure> {
        self.request().plan().await
    }

    async fn perform(&self, plan: &AttachPlan) -> Performed<AttachPlan, Attached> {
        self.request().perform(plan).await
    }
}
