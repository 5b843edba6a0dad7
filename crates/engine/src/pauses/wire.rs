//! `{"v":1,"pauses":[{"target":"arn:…","from":1700000000,"until":null,"spread":1800,"by":"…","why":"…"}]}`.
//! Times are in seconds since the epoch. Unknown members are left to later versions; an unknown `v` is not.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{Concurrency, GarbledPauses, LONGEST_SPREAD, Pause, Pauses};
use crate::Timestamp;
use crate::message::json::object;

const VERSION: u64 = 1;
/// 9999-12-31T23:59:59Z, in seconds. What is later is no time that anybody means, such as milliseconds.
pub(super) const LATEST: u64 = 253_402_300_799;

#[derive(Deserialize)]
struct Versioned {
    v: u64,
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    pauses: Vec<&'a RawValue>,
}

#[derive(Serialize)]
struct Written<'a> {
    v: u64,
    pauses: Vec<Wire<'a>>,
}

#[derive(Deserialize, Serialize)]
struct Wire<'a> {
    target: String,
    from: u64,
    /// `null` is written; only a member that is missing is refused.
    #[serde(deserialize_with = "Option::deserialize")]
    until: Option<u64>,
    spread: u64,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    by: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    why: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Concurrency::is_untouched")]
    concurrency: Concurrency,
}

impl Pauses {
    /// Reads the parameter's text.
    ///
    /// # Errors
    ///
    /// It is no such document, or of a version that this one does not know, or a time, a target or a spread
    /// in it makes no sense. Then none of its pauses counts.
    ///
    /// ```
    /// use comeback_engine::Pauses;
    ///
    /// let text = r#"{"v":1,"pauses":[{"target":"*","from":1700000000,"until":null,"spread":1800}]}"#;
    /// assert_eq!(Pauses::read(text).unwrap().write(), text);
    /// let error = Pauses::read(r#"{"v":2}"#).unwrap_err().to_string();
    /// assert_eq!(error, "the pauses are unreadable: v is 2, and this version reads 1 only");
    /// ```
    pub fn read(text: &str) -> Result<Self, GarbledPauses> {
        let Versioned { v } = object(text).map_err(GarbledPauses)?;
        if v != VERSION {
            return Err(GarbledPauses(format!("v is {v}, and this version reads {VERSION} only")));
        }
        let Document { pauses } = object(text).map_err(GarbledPauses)?;
        let numbered = pauses.into_iter().zip(1..);
        let read = |(pause, number): (&RawValue, u32)| {
            Pause::read(pause.get()).map_err(|what| GarbledPauses(format!("pause {number}: {what}")))
        };
        numbered.map(read).collect::<Result<_, _>>().map(Self::of)
    }

    /// The parameter's text: what [`read`](Self::read) reads, in as few bytes as JSON allows.
    pub fn write(&self) -> String {
        let document = Written { v: VERSION, pauses: self.iter().map(Wire::of).collect() };
        serde_json::to_string(&document).expect("BUG: strings and numbers are JSON")
    }
}

impl Pause {
    fn read(text: &str) -> Result<Self, String> {
        let Wire { target, from, until, spread, by, why, concurrency } = object(text)?;
        if from > LATEST || until.is_some_and(|until| until > LATEST) {
            return Err("from and until must be seconds since the epoch, before the year 10000".into());
        }
        if until.is_some_and(|until| until < from) {
            return Err("it ends before it begins".into());
        }
        if spread > LONGEST_SPREAD.as_secs() {
            return Err("spread must be seconds, at most 1209600 (14 days)".into());
        }
        Ok(Self {
            target: target.parse().map_err(|problem| format!("target {problem}, and is not *"))?,
            from: Timestamp::from_secs(from),
            until: until.map(Timestamp::from_secs),
            spread: Duration::from_secs(spread),
            by: by.map(Into::into),
            why: why.map(Into::into),
            concurrency,
        })
    }
}

impl<'a> Wire<'a> {
    fn of(pause: &'a Pause) -> Self {
        Self {
            target: pause.target.to_string(),
            from: pause.from.as_secs(),
            until: pause.until.map(Timestamp::as_secs),
            spread: pause.spread.as_secs(),
            by: pause.by.as_deref().map(Into::into),
            why: pause.why.as_deref().map(Into::into),
            concurrency: pause.concurrency,
        }
    }
}

impl Concurrency {
    // serde calls it with a reference.
    const fn is_untouched(&self) -> bool {
        matches!(self, Self::Untouched)
    }
}

/// A member that is there: a number, or `null` for a function that had none.
impl<'de> Deserialize<'de> for Concurrency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::WasUnreserved, Self::Was))
    }
}

impl Serialize for Concurrency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Was(reserved) => serializer.serialize_some(reserved),
            // One that was left as it was is not written at all.
            Self::WasUnreserved | Self::Untouched => serializer.serialize_none(),
        }
    }
}
