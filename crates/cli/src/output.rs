//! Where results go: standard output, and files with their folders.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::failure::Failure;
use crate::text::terminal::shown_json;

/// Prints a result as JSON: the same result gives the same bytes.
pub(crate) fn print_json(result: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(result).expect("BUG: a result is plain JSON");
    writeln!(anstream::stdout().lock(), "{}", shown_json(&json))?;
    Ok(())
}

/// A result as one line of JSON.
#[cfg(feature = "operate")]
pub(crate) fn json_line(result: &impl Serialize) -> String {
    shown_json(&serde_json::to_string(result).expect("BUG: a result is plain JSON"))
}

/// Creates a file, and its folder if it is missing.
pub(crate) fn create(path: &Path) -> Result<File, Failure> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|problem| Failure::write(folder, problem))?;
    File::create(path).map_err(|problem| Failure::write(path, problem))
}

/// Writes a page or a picture to its file, and says so.
pub(crate) fn fill(mut file: File, path: &Path, text: &str) -> Result<(), Failure> {
    file.write_all(text.as_bytes()).map_err(|problem| Failure::write(path, problem))?;
    anstream::eprintln!("wrote {}", path.display());
    Ok(())
}
