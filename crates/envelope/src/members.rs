//! The members of a JSON object, with their byte ranges, so that one can be removed and the rest stays
//! as it was. serde_json does the parsing.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// One member of an object.
pub(crate) struct Member<'a> {
    /// The key, unescaped; bytes, because a key may hold a lone surrogate, which no `str` can.
    pub(crate) key: Cow<'a, [u8]>,
    /// From the key's opening quote to the value's last byte.
    pub(crate) span: Range<usize>,
    pub(crate) value: &'a RawValue,
}

/// Whether the value is an object. A raw value has no white space before it.
pub(crate) fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

/// Calls `visit` for each member of `object` in order, and never if it is no object.
pub(crate) fn for_each_member<'a>(object: &'a RawValue, visit: impl FnMut(Member<'a>)) {
    if !is_object(object) {
        return;
    }
    let mut json = serde_json::Deserializer::from_str(object.get());
    json.deserialize_map(Members { text: object.get(), visit })
        .expect("BUG: a raw value is valid JSON, and any key can be read as bytes");
}

struct Members<'a, F> {
    text: &'a str,
    visit: F,
}

impl<'a, F: FnMut(Member<'a>)> Visitor<'a> for Members<'a, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut previous_end = 1; // past the opening brace
        while let Some((Key(key), value)) = map.next_entry::<Key<'a>, &'a RawValue>()? {
            // The value borrows from the text, so its address gives its position. Between two values there
            // are only white space, one comma and the key.
            let end = value.get().as_ptr() as usize - self.text.as_ptr() as usize + value.get().len();
            let gap = &self.text[previous_end..end];
            let quote = gap.bytes().position(|byte| byte == b'"').expect("BUG: a member starts with a quote");
            let start = previous_end + quote;
            (self.visit)(Member { key, span: start..end, value });
            previous_end = end;
        }
        Ok(())
    }
}

struct Key<'a>(Cow<'a, [u8]>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object key")
    }

    fn visit_borrowed_bytes<E>(self, key: &'de [u8]) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Borrowed(key)))
    }

    fn visit_bytes<E>(self, key: &[u8]) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Owned(key.to_vec())))
    }
}
