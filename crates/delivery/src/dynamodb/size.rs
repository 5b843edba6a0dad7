//! The two sizes of an item: as stored (at most 400 KB), and as JSON in a call (at most 16 MB for all items in the
//! call).

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

/// The attributes of an item or a key, by name.
pub type Attributes = HashMap<String, AttributeValue>;

/// Size of an item as DynamoDB counts it. Source: DynamoDB Developer Guide, "DynamoDB item sizes and formats".
pub(super) fn stored(item: &Attributes) -> usize {
    item.iter().map(|(name, value)| name.len() + stored_value(value)).sum()
}

/// Size of an empty list or map, in bytes; each member adds `MEMBER` bytes.
const CONTAINER: usize = 3;
const MEMBER: usize = 1;

fn stored_value(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(number) => stored_number(number),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::Bool(_) | AttributeValue::Null(_) => 1,
        AttributeValue::Ss(texts) => texts.iter().map(String::len).sum(),
        AttributeValue::Ns(numbers) => numbers.iter().map(|number| stored_number(number)).sum(),
        AttributeValue::Bs(blobs) => blobs.iter().map(|bytes| bytes.as_ref().len()).sum(),
        AttributeValue::L(values) => {
            CONTAINER + values.iter().map(|value| MEMBER + stored_value(value)).sum::<usize>()
        }
        AttributeValue::M(values) => CONTAINER + stored(values) + MEMBER * values.len(),
        // The attribute type is newer than the SDK; DynamoDB itself checks its size.
        _ => 0,
    }
}

/// Lower bound on the stored size of a number, in bytes: one for every two significant digits, plus one.
fn stored_number(number: &str) -> usize {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').len().div_ceil(2) + 1
}

/// Upper bound on the number of bytes that a write adds to a request's JSON.
pub(super) fn sent(table: &str, attributes: &Attributes) -> usize {
    // The JSON around a write: `"table":[…],` and `{"DeleteRequest":{"Item":…}},`.
    const AROUND: usize = r#""":[],{"DeleteRequest":{"Item":}},"#.len();
    AROUND + table.len() + sent_attributes(attributes)
}

/// Size of an item's attributes as JSON in a request: `{"name":value,…}`.
fn sent_attributes(attributes: &Attributes) -> usize {
    2 + attributes.iter().map(|(name, value)| quoted(name) + 2 + sent_value(value)).sum::<usize>()
}

/// Upper bound on the size of an attribute value as JSON, such as `{"S":…}`.
fn sent_value(value: &AttributeValue) -> usize {
    const AROUND: usize = r#"{"NULL":}"#.len();
    const LITERAL: usize = "false".len();
    AROUND
        + match value {
            AttributeValue::S(text) => quoted(text),
            AttributeValue::N(number) => quoted(number),
            AttributeValue::B(bytes) => base64(bytes.as_ref()),
            AttributeValue::Bool(_) | AttributeValue::Null(_) => LITERAL,
            AttributeValue::Ss(texts) | AttributeValue::Ns(texts) => sent_list(texts, |text| quoted(text)),
            AttributeValue::Bs(blobs) => sent_list(blobs, |bytes| base64(bytes.as_ref())),
            AttributeValue::L(values) => sent_list(values, sent_value),
            AttributeValue::M(values) => sent_attributes(values),
            _ => 0,
        }
}

/// Size of a JSON array in a request: the elements, a comma for each, and the brackets.
fn sent_list<T>(members: &[T], size: impl Fn(&T) -> usize) -> usize {
    2 + members.iter().map(|member| size(member) + 1).sum::<usize>()
}

/// Size of `text` as a JSON string, with quotes and escapes.
fn quoted(text: &str) -> usize {
    let escaped = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => r"\u0000".len(),
        _ => 1,
    };
    2 + text.bytes().map(escaped).sum::<usize>()
}

/// Size of these bytes as a quoted base64 string.
fn base64(bytes: &[u8]) -> usize {
    2 + bytes.len().div_ceil(3) * 4
}

#[cfg(test)]
mod tests {
    use AttributeValue::{B, Bool, Bs, L, M, N, Ns, Null, S, Ss};

    use super::*;

    fn of(value: AttributeValue) -> usize {
        stored(&Attributes::from([("né".into(), value)])) - "né".len()
    }

    #[test]
    fn values_count_as_in_dynamodb() {
        let two = || vec![S("a".into()), Null(true)];
        for (value, bytes) in [
            (S("é".into()), 2),
            (S(String::new()), 0),
            (B(vec![0; 5].into()), 5),
            (Bool(false), 1),
            (Null(true), 1),
            (Ss(vec!["a".into(), "bc".into()]), 3),
            (Ns(vec!["1".into(), "123".into()]), 5),
            (Bs(vec![vec![0; 2].into(), vec![0; 3].into()]), 5),
            (L(vec![]), 3),
            (L(two()), 3 + 2 + 2),
            (L(vec![L(two())]), 3 + 1 + 7),
            (M(Attributes::new()), 3),
            (M(Attributes::from([("ab".into(), S("cd".into()))])), 3 + 1 + 4),
        ] {
            assert_eq!(of(value.clone()), bytes, "{value:?}");
        }
    }

    #[test]
    fn numbers_count_by_significant_digits() {
        for (number, bytes) in [
            ("0", 1),
            ("7", 2),
            ("-7", 2),
            ("42", 2),
            ("123", 3),
            ("1200", 2),
            ("0.0012", 2),
            ("12e100", 2),
            ("12345678901234567890123456789012345678", 20),
        ] {
            assert_eq!(of(N(number.into())), bytes, "{number}");
        }
    }
}
