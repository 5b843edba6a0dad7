//! Writes results to standard output and to files.

use std::fs::{self, File};
use std::io::Write;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use comeback_operate::Failure;
use comeback_operate::shown::{shown, shown_json};
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::failure::{CommandFailure, inaccessible};

/// True once this process has printed its only JSON object.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Prints a command's result as indented JSON.
pub(crate) fn print_json(result: &impl Serialize) -> Result<(), CommandFailure> {
    print(&serde_json::to_string_pretty(result).expect("BUG: a result is plain JSON"))
}

/// Prints a command's result as JSON on one line, without holding the line in memory.
pub(crate) fn print_json_line(result: &impl Serialize) -> Result<(), CommandFailure> {
    PRINTED.store(true, Ordering::Relaxed);
    let mut out = BufWriter::new(std::io::stdout().lock());
    result.serialize(&mut Serializer::with_formatter(&mut out, Escaping)).map_err(io::Error::from)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// JSON formatter that escapes strings as [`shown_json`] does, including the strings in a payload.
struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        out.write_all(shown_json(fragment).as_bytes())
    }

    fn write_raw_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        out.write_all(shown_json(fragment).as_bytes())
    }
}

#[cfg(feature = "operate")]
pub(crate) fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// Prints a failed command's JSON object, unless the process has already printed one.
pub(crate) fn print_failure(failure: &CommandFailure) -> Result<(), CommandFailure> {
    if PRINTED.load(Ordering::Relaxed) {
        return Ok(());
    }
    print_json(&serde_json::json!({"error": failure.to_string()}))
}

/// Prints JSON to standard output, with control characters escaped so that a terminal does not obey them.
fn print(json: &str) -> Result<(), CommandFailure> {
    PRINTED.store(true, Ordering::Relaxed);
    writeln!(anstream::stdout().lock(), "{}", shown_json(json))?;
    Ok(())
}

/// Creates a file, and its folder if that is missing.
pub(crate) fn create(path: &Path) -> Result<File, Failure> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|problem| inaccessible(folder, problem))?;
    File::create(path).map_err(|problem| inaccessible(path, problem))
}

/// Writes the text to the file, and prints the file's path on standard error.
pub(crate) fn fill(mut file: File, path: &Path, text: &str) -> Result<(), CommandFailure> {
    file.write_all(text.as_bytes()).map_err(|problem| inaccessible(path, problem))?;
    anstream::eprintln!("wrote {}", shown(&path.display().to_string()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::tables::tests::HOSTILE;

    fn streamed(result: &impl Serialize) -> String {
        let mut streamed = Vec::new();
        result.serialize(&mut Serializer::with_formatter(&mut streamed, Escaping)).unwrap();
        String::from_utf8(streamed).unwrap()
    }

    #[test]
    fn streamed_json_is_the_same_to_the_byte() {
        let result = serde_json::json!({"key": HOSTILE, "list": [1, null, "é\""]});
        let payload = RawValue::from_string(result.to_string()).unwrap();
        for streamed in [streamed(&result), streamed(&payload)] {
            assert_eq!(streamed, shown_json(&result.to_string()));
        }
    }
}
