//! Text files that operators write.

/// Removes a byte-order mark, which some Windows editors write, from the start of a file.
///
/// # Errors
///
/// Fails if the file is UTF-16.
pub fn without_mark(bytes: &[u8]) -> Result<&[u8], &'static str> {
    match bytes {
        // UTF-16, with or without a byte-order mark: JSON always begins with an ASCII character.
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, 1..=0xff, ..] | [1..=0xff, 0, ..] => {
            Err("it is UTF-16, as Windows PowerShell's `>` writes; save it as UTF-8")
        }
        _ => Ok(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)),
    }
}
