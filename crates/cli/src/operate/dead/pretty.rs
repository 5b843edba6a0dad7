/// JSON over several lines, two spaces a level. Each value stays as it is written, and where it is: parsing would
/// change large numbers, and the order of keys.
pub(crate) fn pretty(json: &str) -> String {
    let mut text = String::new();
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        if in_string {
            text.push(character);
            in_string = escaped || character != '"';
            escaped = character == '\\' && !escaped;
            continue;
        }
        match character {
            ' ' | '\n' | '\r' | '\t' => {}
            '{' | '[' => {
                text.push(character);
                while characters.next_if(char::is_ascii_whitespace).is_some() {}
                match characters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => text.push(end),
                    None => {
                        depth += 1;
                        new_line(&mut text, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut text, depth);
                text.push(character);
            }
            ',' => {
                text.push(',');
                new_line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ => {
                in_string = character == '"';
                text.push(character);
            }
        }
    }
    text
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_text_and_their_place() {
        let json = r#"{"z":1E400,"a":[ ],"b":[1,-0.0,{}],"s":"\"{,:\\","z":null}"#;
        let expected = r#"{
  "z": 1E400,
  "a": [],
  "b": [
    1,
    -0.0,
    {}
  ],
  "s": "\"{,:\\",
  "z": null
}"#;
        assert_eq!(pretty(json), expected);
        assert_eq!(pretty(expected), expected);
        assert_eq!(pretty(" \"a b\" "), "\"a b\"");
    }
}
