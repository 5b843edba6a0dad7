//! What must hold of every run, and the [`Oracle`](oracle::Oracle) that checks it. The oracle is told what happens, call
//! by call, and does its own arithmetic; it never asks the handler or the engine.

pub(crate) mod books;
pub(crate) mod bounds;
pub(crate) mod invariants;
pub(crate) mod ledger;
pub(crate) mod oracle;
pub(crate) mod pauses;
pub(crate) mod room;
