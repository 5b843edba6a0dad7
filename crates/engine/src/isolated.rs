//! One record cannot harm another: a panic over one of them ends there.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::account::{CallFailure, panicked};

/// Runs what handles one record, so that a bug in it harms no other.
pub(crate) fn isolated<O>(work: impl FnOnce() -> O) -> Result<O, CallFailure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| panicked())
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;

    use super::*;

    #[test]
    fn a_panic_is_a_failed_call() {
        assert_eq!(isolated(|| 7), Ok(7));
        // Without the message that a panic prints.
        assert_eq!(isolated::<()>(|| resume_unwind(Box::new("planned"))), Err(panicked()));
    }
}
