use comeback_engine::{EditError, Pauses};

use crate::Failure;

/// How often an edit is written before it is given up.
const WRITES: u32 = 8;

/// A change to the pauses.
pub(crate) trait Edit {
    /// The pauses with the change made.
    fn make(&self, pauses: &Pauses) -> Result<Pauses, EditError>;
    /// Whether they hold the change.
    fn is_in(&self, pauses: &Pauses) -> bool;
}

/// Writes an edit so that neither it nor another operator's is lost.
///
/// Every write of SSM's replaces the whole text and has the next version. So a write whose version is not the one after
/// what was read has replaced somebody's: the replaced version is read, and written again with our edit. A write that
/// replaced ours is repaired by its writer in the same way, and by us, who look again after a while. Two operators at once
/// so lose neither's edit, however their calls interleave. More than two may have to try again.
pub(crate) struct Writing<'e> {
    edit: &'e dyn Edit,
    /// The version that the next write follows, as far as we know.
    version: i64,
    writes: u32,
    /// Our edit came too late, and what it replaced is brought back.
    refused: Option<EditError>,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    /// Read the text and its version.
    Read,
    /// Read an earlier version.
    ReadVersion(i64),
    /// Write the text; create the parameter if it is new.
    Write { pauses: Pauses, is_new: bool },
    /// Wait a while.
    Settle,
    /// Nothing: the edit is there.
    Done(Pauses),
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The text, and its version; 0 if there is no parameter.
    Read(Pauses, i64),
    /// The earlier version's text.
    ReadVersion(Pauses),
    /// The version that was written.
    Written(i64),
    /// The parameter was created meanwhile, or somebody else writes at this moment.
    NotWritten,
    /// The while is over.
    Settled,
}

impl<'e> Writing<'e> {
    /// The first request is [`Request::Read`].
    pub(crate) fn new(edit: &'e dyn Edit) -> Self {
        Self { edit, version: 0, writes: 0, refused: None }
    }

    pub(crate) fn next(&mut self, answer: Answer) -> Result<Request, Failure> {
        match answer {
            Answer::Read(pauses, version) => {
                if self.writes > 0 && self.edit.is_in(&pauses) {
                    return Ok(Request::Done(pauses));
                }
                self.version = version;
                let edited = self.edit.make(&pauses)?;
                self.write(edited)
            }
            Answer::ReadVersion(replaced) => {
                let edited = if self.refused.is_some() || self.edit.is_in(&replaced) {
                    replaced
                } else {
                    self.edit.make(&replaced).unwrap_or_else(|refused| {
                        self.refused = Some(refused);
                        replaced
                    })
                };
                self.write(edited)
            }
            // A parameter that somebody has deleted begins anew.
            Answer::Written(version) if version == self.version + 1 || version <= self.version => {
                match self.refused.take() {
                    Some(refused) => Err(refused.into()),
                    None => Ok(Request::Settle),
                }
            }
            Answer::Written(version) => {
                self.version = version;
                Ok(Request::ReadVersion(version - 1))
            }
            Answer::NotWritten | Answer::Settled => Ok(Request::Read),
        }
    }

    fn write(&mut self, pauses: Pauses) -> Result<Request, Failure> {
        if self.writes == WRITES {
            return Err(Failure::CouldNot(format!(
                "others write the pauses all the time, and {WRITES} writes of ours did not stay: see pause --list, and try again"
            )));
        }
        can_be_read_back(&pauses)?;
        self.writes += 1;
        Ok(Request::Write { pauses, is_new: self.version == 0 })
    }
}

/// A text that the handler does not understand would end every pause.
fn can_be_read_back(pauses: &Pauses) -> Result<(), Failure> {
    let text = pauses.write();
    match Pauses::read(&text) {
        Ok(read) if read == *pauses => Ok(()),
        Ok(_) => Err(Failure::CouldNot(format!(
            "nothing was written: the handler would read other pauses in {text}"
        ))),
        Err(garbled) => Err(Failure::CouldNot(format!("nothing was written: in {text}, {garbled}"))),
    }
}

#[cfg(test)]
mod tests;
