use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, Write as _};

/// The receipt handles of letters that must be given back. They are some 400 bytes each, and there may be 100,000 of
/// them, so they are kept in a temporary file without a name, which is gone with the process.
#[derive(Debug)]
pub(super) struct Held {
    file: BufWriter<File>,
    count: u64,
}

impl Held {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(tempfile::tempfile()?), count: 0 })
    }

    /// How many handles there are.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Keeps a handle. SQS's are one line of Base64.
    pub(super) fn hold(&mut self, receipt_handle: &str) -> io::Result<()> {
        self.count += 1;
        writeln!(self.file, "{receipt_handle}")
    }

    /// Takes every handle out, in the order in which they were held.
    pub(super) fn handles(self) -> io::Result<impl Iterator<Item = io::Result<String>>> {
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(BufReader::new(file).lines())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_held_comes_back_in_order() {
        let mut held = Held::new().unwrap();
        for handle in ["one==", "two", "three"] {
            held.hold(handle).unwrap();
        }
        assert_eq!(held.count(), 3);
        let handles: Vec<_> = held.handles().unwrap().map(Result::unwrap).collect();
        assert_eq!(handles, ["one==", "two", "three"]);
    }
}
