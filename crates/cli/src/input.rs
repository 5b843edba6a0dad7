//! Reads the files given to a command: UTF-8 text, with or without a byte-order mark.

use std::io::Read as _;
use std::path::Path;

use comeback_operate::Failure;
use comeback_operate::text::without_mark;

use crate::failure::{bad_content, inaccessible};

/// Reads text from a file, or from standard input if the path is `-`.
pub(crate) fn text_of(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = match path.to_str() {
        // As bytes, so that a wrong encoding is named, as it is in a file.
        Some("-") => std::io::stdin().lock().read_to_end(&mut bytes).map(drop),
        _ => std::fs::read(path).map(|file| bytes = file),
    };
    read.map_err(|error| inaccessible(path, error))?;
    let text = without_mark(&bytes).map_err(ToOwned::to_owned);
    let text = text.and_then(|text| str::from_utf8(text).map_err(|error| format!("not UTF-8: {error}")));
    Ok(text.map_err(|problem| bad_content(path, problem))?.to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Encodes a string in UTF-16 in both byte orders, each with and without a byte-order mark.
    pub(crate) fn in_utf16(text: &str) -> [Vec<u8>; 4] {
        let bytes = |mark: &str, of: fn(u16) -> [u8; 2]| -> Vec<u8> {
            format!("{mark}{text}").encode_utf16().flat_map(of).collect()
        };
        [
            ("\u{feff}", u16::to_le_bytes as fn(u16) -> [u8; 2]),
            ("\u{feff}", u16::to_be_bytes),
            ("", u16::to_le_bytes),
            ("", u16::to_be_bytes),
        ]
        .map(|(mark, of)| bytes(mark, of))
    }

    fn read(bytes: &[u8]) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        let place = format!("{}: ", path.display());
        text_of(&path).map_err(|failure| failure.to_string().replace(&place, ""))
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_other_encodings_are_named() {
        for text in ["", "7", "\n", "{\"é\": 7}"] {
            assert_eq!(read(text.as_bytes()).as_deref(), Ok(text));
            assert_eq!(read(format!("\u{feff}{text}").as_bytes()).as_deref(), Ok(text));
        }
        let utf16 = "it is UTF-16, as Windows PowerShell's `>` writes; save it as UTF-8";
        for bytes in in_utf16("{}") {
            assert_eq!(read(&bytes), Err(utf16.to_owned()));
        }
        let latin1 = "not UTF-8: invalid utf-8 sequence of 1 bytes from index 2".to_owned();
        assert_eq!(read(b"{\"\xe9\"}"), Err(latin1));
    }
}
