//! Escapes control characters in untrusted text, such as error messages, so that the text cannot control the operator's
//! terminal.

use std::borrow::Cow;

/// Returns true for the characters that a terminal obeys: control characters (except tab), and characters that change
/// the direction of text.
fn is_obeyed(character: char) -> bool {
    (character.is_control() && character != '\t')
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Puts `text` on one line, and escapes each character that a terminal would interpret, for example as `\u{1b}`.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return text.into();
    }
    let mut shown = String::new();
    for character in text.chars() {
        if is_obeyed(character) { shown.extend(character.escape_default()) } else { shown.push(character) }
    }
    shown.into()
}

/// Escapes each line of `text` with [`shown`].
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    if !text.contains(|character| is_obeyed(character) && character != '\n') {
        return text.into();
    }
    text.split('\n').map(shown).collect::<Vec<_>>().join("\n").into()
}

/// Escapes the characters in JSON that a terminal would interpret, without changing the JSON's values.
pub fn shown_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            // This line break is between two values, because JSON escapes a line break in a string.
            '\n' => shown.push('\n'),
            '\r' => {}
            _ if is_obeyed(character) => shown.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Text that would set the terminal's title, clear the screen, delete a character, and reverse the direction of
    /// text.
    pub(crate) const HOSTILE: &str =
        "a\u{1b}]0;b\u{7}c\u{9b}2Jd\u{8}e\u{7f}f\u{202e}g\u{2066}h\u{200f}i\u{61c}j\rk\nl\té";

    #[test]
    fn terminal_controls_are_escaped() {
        let expected =
            "a\\u{1b}]0;b\\u{7}c\\u{9b}2Jd\\u{8}e\\u{7f}f\\u{202e}g\\u{2066}h\\u{200f}i\\u{61c}j\\rk\\nl\té";
        assert_eq!(shown(HOSTILE), expected);
        assert_eq!(shown_lines(HOSTILE), expected.replace("\\n", "\n"));
        for end in ['\u{202a}', '\u{2069}', '\u{80}', '\u{9f}', '\u{200e}', '\0'] {
            assert!(shown(&end.to_string()).is_ascii(), "{end:?}");
        }
    }

    #[test]
    fn escaped_json_keeps_its_values() {
        let json = serde_json::to_string_pretty(&[HOSTILE]).unwrap();
        let shown = shown_json(&json);
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).unwrap(), [HOSTILE]);
        assert!(shown.contains("\\u009b2Jd") && shown.contains("f\\u202eg"), "{shown}");
        assert!(!shown.contains(|character| is_obeyed(character) && character != '\n'), "{shown}");
        assert_eq!(shown_json("[1,\r\n\t2]"), "[1,\n\t2]");
    }
}
