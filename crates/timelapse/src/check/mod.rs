//! What must hold of every run, and the checks of it.

pub(crate) mod bounds;
pub(crate) mod copies;
pub(crate) mod invariants;
pub(crate) mod ledger;
pub(crate) mod violation;
