//! Primary key of a DynamoDB item, used to keep the writes to one item in order.

use aws_sdk_dynamodb::types::AttributeValue;

use super::size::Attributes;
use crate::lanes::Lane;
use crate::operation::{ErrorKind, ServiceError};

/// A table, and the attributes that form its primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub(super) name: String,
    partition: String,
    sort: Option<String>,
}

impl Table {
    /// Describes an existing table with this partition key and no sort key; writes must use the same `name` or ARN.
    pub fn new(name: impl Into<String>, partition_key: impl Into<String>) -> Self {
        Self { name: name.into(), partition: partition_key.into(), sort: None }
    }

    /// Adds a sort key to the table's primary key.
    #[must_use]
    pub fn sort(self, sort_key: impl Into<String>) -> Self {
        Self { sort: Some(sort_key.into()), ..self }
    }

    /// Returns the lane shared by all writes to the item with this key.
    pub(super) fn key(&self, attributes: &Attributes) -> Result<Lane, ServiceError> {
        let mut parts = vec![self.name.clone().into_bytes()];
        for name in self.names() {
            let value = attributes.get(name).ok_or_else(|| self.refused(format_args!("has no `{name}`")))?;
            let [kind, text] = canonical(value).ok_or_else(|| {
                self.refused(format_args!("has a `{name}` that is neither string, number nor binary"))
            })?;
            parts.extend([kind, text]);
        }
        Ok(Lane::new(parts))
    }

    /// Like [`key`](Self::key), but fails if there are attributes other than the key attributes.
    pub(super) fn key_alone(&self, attributes: &Attributes) -> Result<Lane, ServiceError> {
        let key = self.key(attributes)?;
        match attributes.keys().find(|&name| self.names().all(|key| key != name)) {
            Some(other) => Err(self.refused(format_args!("has `{other}`, which is not part of the key"))),
            None => Ok(key),
        }
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        [Some(&self.partition), self.sort.as_ref()].into_iter().flatten()
    }

    fn refused(&self, what: std::fmt::Arguments<'_>) -> ServiceError {
        ServiceError::new(
            ErrorKind::Refused,
            "",
            format!("the key of a write to table `{}` {what}", self.name),
        )
    }
}

/// Returns an attribute's type and value, normalized so that equal values have equal bytes. Returns `None` for a type
/// that a key cannot have.
fn canonical(value: &AttributeValue) -> Option<[Vec<u8>; 2]> {
    match value {
        AttributeValue::S(text) => Some(["S".into(), text.clone().into_bytes()]),
        AttributeValue::B(bytes) => Some(["B".into(), bytes.as_ref().to_vec()]),
        AttributeValue::N(number) => Some(["N".into(), canonical_number(number).into_bytes()]),
        _ => None,
    }
}

/// Normalizes a number, because `1`, `1.0`, `+01` and `10e-1` identify the same item.
fn canonical_number(text: &str) -> String {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let Ok(exponent) = exponent.parse::<i32>() else { return text.to_owned() };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.to_owned();
    }
    let significant = digits.trim_start_matches('0');
    let shortest = significant.trim_end_matches('0');
    if shortest.is_empty() {
        return "0".to_owned();
    }
    let zeros = significant.len() - shortest.len();
    let exponent = i64::from(exponent) + zeros as i64 - fraction.len() as i64;
    format!("{}{shortest}e{exponent}", if negative { "-" } else { "" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(value: AttributeValue) -> Lane {
        Table::new("t", "pk").key(&Attributes::from([("pk".into(), value)])).expect("a key")
    }

    fn number(text: &str) -> Lane {
        key(AttributeValue::N(text.into()))
    }

    #[test]
    fn equal_numbers_are_one_key() {
        for same in ["1", "1.0", "+1", "01", "10e-1", "0.1E1", "0.10e+1"] {
            assert_eq!(number(same), number("1"), "{same}");
        }
        for zero in ["0", "-0", "0.00", "0e7", "000"] {
            assert_eq!(number(zero), number("0"), "{zero}");
        }
        for other in ["10", "-1", "0.1", "11", "1e1", "0"] {
            assert_ne!(number(other), number("1"), "{other}");
        }
        // Text that is not a number stays unchanged, so the two keys of each pair differ.
        for (one, other) in [("", "-"), ("1e", "1"), ("x", "y"), (".", "0"), ("1e99999999999", "1")] {
            assert_ne!(number(one), number(other));
        }
    }

    proptest! {
        #[test]
        fn number_keeps_its_key_with_any_exponent(digits in 1u64.., shift in 0usize..20) {
            let written = format!("{digits}{}e-{shift}", "0".repeat(shift));
            prop_assert_eq!(number(&written), number(&digits.to_string()));
            prop_assert_ne!(number(&written), number(&format!("-{digits}")));
        }
    }

    #[test]
    fn types_tables_and_sort_keys_distinguish_keys() {
        let text = |text: &str| AttributeValue::S(text.into());
        assert_ne!(key(text("1")), number("1"));
        assert_ne!(key(text("1")), key(AttributeValue::B(b"1".to_vec().into())));
        let both = |sort| Attributes::from([("pk".into(), text("a")), ("sk".into(), text(sort))]);
        let (one, sorted) = (Table::new("t", "pk"), Table::new("t", "pk").sort("sk"));
        assert_eq!(one.key(&both("b")), one.key(&both("c")), "`sk` is not a key of this table");
        assert_ne!(sorted.key(&both("b")), sorted.key(&both("c")));
        assert_ne!(one.key(&both("b")), Table::new("u", "pk").key(&both("b")));
    }

    #[test]
    fn invalid_key_is_refused_with_reason() {
        let table = Table::new("t", "pk").sort("sk");
        let with = |name: &str, value| (name.to_owned(), value);
        let (pk, sk) =
            (|| with("pk", AttributeValue::S("a".into())), || with("sk", AttributeValue::N("1".into())));
        let text = |key: Result<Lane, ServiceError>| key.expect_err("refused").to_string();
        assert_eq!(text(table.key(&Attributes::from([pk()]))), "the key of a write to table `t` has no `sk`");
        assert_eq!(
            text(table.key(&Attributes::from([with("pk", AttributeValue::Bool(true)), sk()]))),
            "the key of a write to table `t` has a `pk` that is neither string, number nor binary"
        );
        let more = Attributes::from([pk(), sk(), with("state", AttributeValue::Null(true))]);
        assert!(table.key(&more).is_ok());
        assert_eq!(
            text(table.key_alone(&more)),
            "the key of a write to table `t` has `state`, which is not part of the key"
        );
        assert!(table.key_alone(&Attributes::from([pk(), sk()])).is_ok());
    }
}
