use std::str::FromStr;
use std::time::Duration;

use comeback_engine::{Letter, LetterKind, ReasonCode, Timestamp};
use serde_json::Value;
use wildmatch::WildMatch;

use crate::FunctionName;

/// The reason of a record that SQS's own redrive took from the retry queue.
const MAX_RECEIVE_COUNT: &str = "max_receive_count";

/// Which letters. All that is set must hold; where nothing is set, every letter is taken. A message that is none of
/// Comeback's is taken only then.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Of this reason.
    pub reason: Option<ReasonName>,
    /// Of this function; without a qualifier, of any of its versions and aliases.
    pub target: Option<FunctionName>,
    /// With an error type that matches; `*` stands for any text, `?` for one character.
    pub error: Option<String>,
    /// Given up longer ago than this.
    pub older: Option<Duration>,
    /// Given up more recently than this.
    pub newer: Option<Duration>,
    /// After so many retries.
    pub retries: Option<RetriesTest>,
    /// Of this event.
    pub key: Option<String>,
    /// With all of these in its payload.
    pub payload: Vec<PayloadTest>,
}

/// The name of a reason: one of the handler's, or `max_receive_count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonName(&'static str);

/// A number of retries to compare with: `>5`, `>=5`, `<5`, `<=5`, `=5` or `5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetriesTest(Comparison, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    More,
    Least,
    Less,
    Most,
    Equal,
}

/// A value at a place of the payload: `/customer/id=42`. A string and a JSON value are both found: `42` and `"42"`.
#[derive(Clone, Debug, PartialEq)]
pub struct PayloadTest {
    pointer: String,
    text: String,
    json: Option<Value>,
}

/// What names no reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no reason; the reasons are {all}", all = reasons().join(", "))]
pub struct BadReason(String);

/// What compares with no number of retries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no number of retries; give '>5', '>=5', '<5', '<=5' or '5'")]
pub struct BadRetriesTest(String);

/// What is no pointer and value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no JSON pointer and value; give them as in '/customer/id=42'")]
pub struct BadPayloadTest(String);

impl Filter {
    /// Whether nothing is set.
    #[must_use]
    pub fn takes_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it takes a letter, at a moment that ages count from.
    pub(super) fn takes(&self, letter: &Letter<'_>, now: Timestamp) -> bool {
        let age = now.since(letter.given_up);
        self.takes_everything()
            || letter.kind != LetterKind::Unknown
                && self.reason.is_none_or(|reason| reason == ReasonName::of(letter))
                && holds(&self.target, &letter.function_arn, |target, arn| target.names(arn))
                && holds(&self.error, &letter.error_type, |glob, error| WildMatch::new(glob).matches(error))
                && self.older.is_none_or(|older| age > older)
                && self.newer.is_none_or(|newer| age < newer)
                && holds(&self.retries, &letter.retries_made, |test, &retries| test.holds(retries))
                && holds(&self.key, &letter.key, |key, other| key == other)
                && self.has_payload(letter)
    }

    fn has_payload(&self, letter: &Letter<'_>) -> bool {
        if self.payload.is_empty() {
            return true;
        }
        let payload = letter.payload.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
        payload.is_some_and(|payload| self.payload.iter().all(|test| test.holds(&payload)))
    }
}

/// Whether a test that is set holds of a fact. It does not of a fact that is not known.
fn holds<T, F>(test: &Option<T>, fact: &Option<F>, of: impl Fn(&T, &F) -> bool) -> bool {
    test.as_ref().is_none_or(|test| fact.as_ref().is_some_and(|fact| of(test, fact)))
}

fn reasons() -> Vec<&'static str> {
    ReasonCode::ALL.iter().map(|code| code.name()).chain([MAX_RECEIVE_COUNT]).collect()
}

impl ReasonName {
    /// Of a message that is none of ours: `unknown`, which no filter can name.
    pub(super) fn of(letter: &Letter<'_>) -> Self {
        Self(match (letter.reason, letter.kind) {
            (Some(reason), _) => reason.name(),
            (None, LetterKind::Unknown) => "unknown",
            (None, _) => MAX_RECEIVE_COUNT,
        })
    }

    pub(super) const fn name(self) -> &'static str {
        self.0
    }
}

impl FromStr for ReasonName {
    type Err = BadReason;

    fn from_str(text: &str) -> Result<Self, BadReason> {
        reasons().into_iter().find(|name| *name == text).map(Self).ok_or_else(|| BadReason(text.to_owned()))
    }
}

impl RetriesTest {
    const fn holds(self, retries: u64) -> bool {
        match self.0 {
            Comparison::More => retries > self.1,
            Comparison::Least => retries >= self.1,
            Comparison::Less => retries < self.1,
            Comparison::Most => retries <= self.1,
            Comparison::Equal => retries == self.1,
        }
    }
}

impl FromStr for RetriesTest {
    type Err = BadRetriesTest;

    fn from_str(text: &str) -> Result<Self, BadRetriesTest> {
        let comparisons = [
            (">=", Comparison::Least),
            (">", Comparison::More),
            ("<=", Comparison::Most),
            ("<", Comparison::Less),
            ("=", Comparison::Equal),
            ("", Comparison::Equal),
        ];
        let trimmed = text.trim();
        let mut found = comparisons.iter().filter_map(|(sign, it)| Some((*it, trimmed.strip_prefix(sign)?)));
        let (comparison, number) = found.next().expect("BUG: everything begins with nothing");
        let number = number.trim().parse().map_err(|_| BadRetriesTest(text.to_owned()))?;
        Ok(Self(comparison, number))
    }
}

impl PayloadTest {
    fn holds(&self, payload: &Value) -> bool {
        let found = payload.pointer(&self.pointer);
        found.is_some_and(|found| found.as_str() == Some(&self.text) || self.json.as_ref() == Some(found))
    }
}

impl FromStr for PayloadTest {
    type Err = BadPayloadTest;

    fn from_str(text: &str) -> Result<Self, BadPayloadTest> {
        let bad = || BadPayloadTest(text.to_owned());
        let (pointer, value) = text.split_once('=').ok_or_else(bad)?;
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Err(bad());
        }
        let json = serde_json::from_str(value).ok();
        Ok(Self { pointer: pointer.to_owned(), text: value.to_owned(), json })
    }
}
