//! Whether the service refuses some entries, or every one for a mistake that no entry is to blame for.

use crate::{ErrorKind, ServiceError};

/// This many calls must be refused whole for one code, two halves among them, before every other is taken to be.
const CALLS: u32 = 6;
const HALVES: u32 = 2;
/// As few open entries are tried to the last: it takes at most twice as many calls, and the good ones go through.
const FEW: usize = 50;

/// The calls of a delivery that were refused whole, as long as the service has taken nothing.
#[derive(Default)]
pub(crate) struct Refusals {
    code: Option<String>,
    calls: u32,
    halves: u32,
    /// The service took an entry, or refused calls for different reasons.
    differ: bool,
    is_certain: bool,
}

impl Refusals {
    /// A call was refused whole; whether every other would be. A call that is too large says nothing of smaller ones.
    pub(crate) fn refused(&mut self, error: &ServiceError, is_half: bool, open: usize) -> bool {
        let code = self.code.get_or_insert_with(|| error.code.clone());
        self.differ |= *code != error.code || error.kind != ErrorKind::Refused || error.is_of_some;
        self.calls += 1;
        self.halves += u32::from(is_half);
        self.is_certain |= self.calls >= CALLS && self.halves >= HALVES && open > FEW;
        self.is_certain && !self.differ
    }

    pub(crate) fn taken(&mut self) {
        self.differ = true;
    }

    /// Whether halves should go first, because they tell.
    pub(crate) fn may_be_of_every_entry(&self, open: usize) -> bool {
        self.calls > 1 && !self.differ && open > FEW
    }
}
