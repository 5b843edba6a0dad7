use std::path::Path;

use comeback_engine::Reason;

use super::deed::{Deed, Trouble};
use super::export::{Export, Line};
use super::queue::{LetterQueue, Received};
use crate::Failure;

/// Writing letters to a file.
#[derive(Debug)]
pub(super) struct Discard(Export);

impl Discard {
    pub(super) fn to(path: &Path) -> Result<Self, Failure> {
        Export::create(path).map(Self)
    }
}

impl Deed for Discard {
    type Prepared = Line;

    fn prepare(&self, received: &Received) -> Result<Line, Reason> {
        Ok(Line::of(received))
    }

    async fn perform<Q: LetterQueue>(&mut self, _: &Q, lines: Vec<Line>) -> Vec<Result<(), Trouble>> {
        let written = self.0.write(&lines).map_err(|why| Trouble { why, of_all: true });
        vec![written; lines.len()]
    }
}
