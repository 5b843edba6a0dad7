//! Attaching a function to a deployment, and detaching it.
//!
//! All that is there is read once, as [`Attachment`]. From it, [`Attachment::attach`] and [`Attachment::detach`] say which
//! changes are to be made and in which order, as an [`AttachPlan`]; they call nothing. [`AttachPlan::perform`] makes the
//! changes. There is no other state: a run that was interrupted is resumed by planning again.
//!
//! | file | holds |
//! |---|---|
//! | `facts` | [`Attachment`]: what is there |
//! | `read` | how it is read |
//! | `plan` | [`AttachPlan`]; what attaching takes |
//! | `detach` | what detaching takes |
//! | `leaving` | [`Leaving`]: whether a function's events have left the retry queue |
//! | `kept` | the settings that a function had before, in its tags |
//! | `losses` | the alarm on what Lambda loses of a function |
//! | `allow_list` | `TARGET_FUNCTIONS`, edited as text |
//! | `change` | [`Change`]: one change, and the [`Difference`]s that it makes |
//! | `policy` | an inline policy, of which only a part is ours |
//! | `perform` | the calls that make a change |
//! | `place` | the calls that change the allow-list, in a stack's parameter or in the handler's environment |

mod allow_list;
pub(crate) mod change;
mod detach;
pub(crate) mod facts;
mod kept;
pub(crate) mod leaving;
mod losses;
pub(crate) mod perform;
mod place;
pub(crate) mod plan;
mod policy;
mod read;
#[cfg(test)]
mod tests;
