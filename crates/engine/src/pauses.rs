//! The JSON document of pauses, retry requests and cancel requests, in the SSM parameter that `PAUSES` names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::arn::PauseTarget;
use crate::json::object;
use crate::requests::{Request, RequestEntry, RequestKind};
use crate::seed::generator;
use crate::time::{LATEST, Timestamp};
use crate::timing::RETENTION;

/// The pauses document: the operators' pauses, including recently ended ones, and their retry and cancel requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pauses {
    pauses: Vec<Pause>,
    /// The retry requests, then the cancel requests, each in the order of the JSON.
    requests: Vec<RequestEntry>,
    /// Names and JSON values of the members that this version of Comeback does not know.
    others: BTreeMap<String, String>,
}

/// Error for a parameter that is not a valid pauses document. The error never quotes the parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GarbledPauses {
    /// The document has this format version, which only a later version of Comeback can read.
    #[error("the pauses are unreadable: v is {0}, but this version reads only {VERSION}")]
    Newer(u64),
    /// The parameter is not a pauses document, for this reason.
    #[error("the pauses are unreadable: {0}")]
    Malformed(String),
}

/// A period during which some functions are not invoked.
#[derive(Clone, Debug, PartialEq)]
pub struct Pause {
    /// The functions that are paused.
    pub target: PauseTarget,
    /// When the pause begins, in whole seconds.
    pub from: Timestamp,
    /// When the pause ends, in whole seconds; `None` if the pause lasts until an operator ends it.
    pub until: Option<Timestamp>,
    /// The time over which the held events are retried, at random times, after the pause ends: whole seconds, at most
    /// [`LONGEST_SPREAD`].
    pub spread: Duration,
    /// The operator who opened the pause; kept only until the pause ends.
    pub by: Option<String>,
    /// The reason that the operator gave; kept only until the pause ends.
    pub why: Option<String>,
}

/// Maximum spread of a pause: 14 days, the longest time that SQS can keep a message.
pub const LONGEST_SPREAD: Duration = RETENTION;

impl Pauses {
    /// Returns the document with its pauses replaced by `pauses`.
    #[must_use]
    pub fn with(&self, pauses: impl IntoIterator<Item = Pause>) -> Self {
        let mut pauses: Vec<Pause> = pauses.into_iter().collect();
        pauses.sort_by_key(|pause| pause.from);
        Self { pauses, ..self.clone() }
    }

    /// Returns the document with this request added. The request's time is rounded up to a whole second.
    #[must_use]
    pub fn with_request(&self, request: &Request) -> Self {
        let mut document = self.clone();
        document.requests.push(RequestEntry::of(request));
        document.requests.sort_by_key(|entry| entry.kind);
        document
    }

    /// Returns a copy of the document in which the requests selected by `is_it` are marked as withdrawn.
    #[must_use]
    pub fn withdrawn(&self, is_it: impl Fn(&Request) -> bool) -> Self {
        let mut document = self.clone();
        for entry in &mut document.requests {
            if entry.request.as_ref().is_ok_and(|request| !request.withdrawn && is_it(request)) {
                *entry = entry.withdrawn();
            }
        }
        document
    }

    /// All pauses, ordered by start time.
    pub fn iter(&self) -> impl Iterator<Item = &Pause> {
        self.pauses.iter()
    }

    /// The pauses that apply to a function, ordered by start time.
    pub fn of_function<'p>(&'p self, function_arn: &'p str) -> impl Iterator<Item = &'p Pause> {
        self.pauses.iter().filter(|pause| pause.target.covers(function_arn))
    }

    /// All readable requests in the document, including withdrawn ones. Retry requests come before cancel requests.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter_map(|entry| entry.request.as_ref().ok())
    }

    /// The readable requests of one kind, including withdrawn requests.
    pub fn requests_to(&self, kind: RequestKind) -> impl Iterator<Item = &Request> {
        self.requests().filter(move |request| request.kind == kind)
    }

    /// The errors in the unreadable requests that have not ended.
    pub fn unreadable_requests(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        self.requests.iter().filter_map(move |entry| entry.problem(now))
    }
}

impl Pause {
    /// Returns true if the pause has begun and has not ended.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.from <= now && !self.is_over(now)
    }

    /// Returns true if the pause has ended.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// Returns the time at which a held event becomes due: a random time between the end of the pause and `spread`
    /// later. `None` if the pause has no end.
    ///
    /// An event with too little of `MAX_AGE` left becomes due sooner. `first_id` is the id that the message had when it
    /// was first sent.
    pub fn returns_at(&self, first_id: &str, retry: u64) -> Option<Timestamp> {
        self.until.map(|until| returns_at(until, self.spread, first_id, retry))
    }

    /// Returns a copy of the pause with this end, and with this spread rounded down to whole seconds.
    #[must_use]
    pub fn ended(&self, end: Timestamp, spread: Duration) -> Self {
        let spread = Duration::from_secs(spread.as_secs());
        Self { until: Some(end), spread, ..self.clone() }.closed()
    }
}

pub(crate) fn returns_at(until: Timestamp, spread: Duration, first_id: &str, retry: u64) -> Timestamp {
    let share: f64 = generator(&format!("{first_id} {retry}"), until.as_secs()).random();
    until.saturating_add(spread.mul_f64(share))
}

// Format of the pauses document:
// {"v":1,"pauses":[{"target":"arn:…","from":1700000000,"until":null,"spread":1800,"by":"…","why":"…"}]}. Times are in
// seconds since the epoch. An unknown `v` is refused. The commands write unknown members back unchanged, for later
// versions.

const VERSION: u64 = 1;

#[derive(Deserialize)]
struct Versioned {
    v: u64,
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    pauses: Vec<&'a RawValue>,
}

const MEMBERS: [&str; 4] = ["v", "pauses", "retries", "cancels"];

#[derive(Serialize)]
struct Written<'a> {
    v: u64,
    pauses: Vec<Wire<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retries: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cancels: Vec<&'a RawValue>,
    #[serde(flatten)]
    others: BTreeMap<&'a str, &'a RawValue>,
}

#[derive(Deserialize, Serialize)]
struct Wire<'a> {
    target: String,
    from: u64,
    /// `null` while the pause is open. A document without this member is refused.
    #[serde(deserialize_with = "Option::deserialize")]
    until: Option<u64>,
    spread: u64,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    by: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    why: Option<Cow<'a, str>>,
}

impl Pauses {
    /// Parses the pauses document, which is the value of an SSM parameter.
    ///
    /// # Errors
    ///
    /// Fails if the value is not a valid pauses document, or if any pause in it is invalid. An unreadable request is
    /// ignored.
    ///
    /// ```
    /// use comeback_engine::Pauses;
    ///
    /// let text = r#"{"v":1,"pauses":[{"target":"*","from":1700000000,"until":null,"spread":1800}]}"#;
    /// assert_eq!(Pauses::read(text).unwrap().write(), text);
    /// let error = Pauses::read(r#"{"v":2}"#).unwrap_err().to_string();
    /// assert_eq!(error, "the pauses are unreadable: v is 2, but this version reads only 1");
    /// ```
    pub fn read(text: &str) -> Result<Self, GarbledPauses> {
        let Versioned { v } = object(text).map_err(GarbledPauses::Malformed)?;
        match v {
            VERSION => {}
            0 => return Err(GarbledPauses::Malformed("v is 0".into())),
            _ => return Err(GarbledPauses::Newer(v)),
        }
        let Document { pauses } = object(text).map_err(GarbledPauses::Malformed)?;
        let read = |(pause, number): (&RawValue, u32)| {
            let read = object(pause.get()).and_then(Pause::read);
            read.map_err(|what| GarbledPauses::Malformed(format!("pause {number}: {what}")))
        };
        let pauses = pauses.into_iter().zip(1..).map(read).collect::<Result<Vec<_>, _>>()?;
        // A member that appears twice must not make the pauses unreadable, so the last occurrence counts.
        let members: BTreeMap<String, &RawValue> = object(text).map_err(GarbledPauses::Malformed)?;
        let lists = [("retries", RequestKind::Retry), ("cancels", RequestKind::Cancel)];
        let read = |(name, kind)| members.get(name).map_or_else(Vec::new, |raw| entries(raw, kind));
        let requests = lists.into_iter().flat_map(read).collect();
        let others = members.into_iter().filter(|(name, _)| !MEMBERS.contains(&name.as_str()));
        let others = others.map(|(name, value)| (name, value.get().to_owned())).collect();
        Ok(Self { pauses: Vec::new(), requests, others }.with(pauses))
    }

    /// Returns the document as compact JSON.
    pub fn write(&self) -> String {
        let raw = |text| {
            serde_json::from_str::<&RawValue>(text).expect("BUG: it was read as JSON, or written as JSON")
        };
        let pauses = self.iter().map(Wire::of).collect();
        let list = |kind| self.requests.iter().filter(move |entry| entry.kind == kind);
        let [retries, cancels] = [RequestKind::Retry, RequestKind::Cancel]
            .map(|kind| list(kind).map(|entry| raw(entry.text.as_str())).collect());
        let others = self.others.iter().map(|(name, value)| (name.as_str(), raw(value))).collect();
        let written = Written { v: VERSION, pauses, retries, cancels, others };
        serde_json::to_string(&written).expect("BUG: strings and numbers are JSON")
    }
}

/// Returns the entries in a JSON array of requests; none for `null`. Any other value becomes one unreadable entry.
fn entries(raw: &RawValue, kind: RequestKind) -> Vec<RequestEntry> {
    let entries: Option<Vec<&RawValue>> = serde_json::from_str(raw.get()).unwrap_or_else(|_| Some(vec![raw]));
    let entries = entries.unwrap_or_default();
    entries.into_iter().map(|entry| RequestEntry::read(entry.get(), kind)).collect()
}

impl Pause {
    fn read(wire: Wire<'_>) -> Result<Self, String> {
        let Wire { target, from, until, spread, by, why } = wire;
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
            target: target
                .parse()
                .map_err(|problem| format!("target {problem}; it must be a function or *"))?,
            from: Timestamp::from_secs(from),
            until: until.map(Timestamp::from_secs),
            spread: Duration::from_secs(spread),
            by: by.map(Into::into),
            why: why.map(Into::into),
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
        }
    }
}

/// Maximum size of the pauses document in bytes. Source: "Managing parameter tiers", AWS Systems Manager User Guide.
pub const LONGEST_PAUSES: usize = 4_096;

/// Error for a pauses document that exceeds [`LONGEST_PAUSES`] even without the entries that may be dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pauses and requests would take {bytes} bytes; the parameter holds 4096")]
pub struct TooLarge {
    /// The document's size in bytes.
    pub bytes: usize,
}

impl Pauses {
    /// Returns the document to write at `now`, and the ended pauses that do not fit into it.
    ///
    /// Entries without effect are dropped. If the document is still too long, withdrawn requests are dropped too. If
    /// that is not enough, ended pauses are dropped in the order in which they ended, until the document fits. The
    /// duration of a dropped pause counts towards `MAX_AGE` again.
    ///
    /// # Errors
    ///
    /// Fails if the document is too long even without ended pauses.
    pub fn fitted(&self, now: Timestamp) -> Result<(Self, Vec<Pause>), TooLarge> {
        let is_withdrawn =
            |entry: &mut RequestEntry| entry.request.as_ref().is_ok_and(|request| request.withdrawn);
        let (mut document, mut forgotten) = (self.tidied(now), Vec::new());
        loop {
            let bytes = document.write().len();
            if bytes <= LONGEST_PAUSES {
                return Ok((document, forgotten));
            }
            if document.requests.extract_if(.., is_withdrawn).count() > 0 {
                continue;
            }
            let ended = document.pauses.iter().enumerate().filter(|(_, pause)| pause.is_over(now));
            let first = ended.min_by_key(|(_, pause)| pause.until).map(|(index, _)| index);
            let Some(first) = first else { return Err(TooLarge { bytes }) };
            forgotten.push(document.pauses.remove(first));
        }
    }

    /// Returns the document without entries that have no effect. Merges ended pauses of the same target if there is no
    /// gap between them.
    fn tidied(&self, now: Timestamp) -> Self {
        let is_kept = |pause: &&Pause| pause.until.is_none_or(|until| now.since(until) <= RETENTION);
        let mut tidied: Vec<Pause> = Vec::new();
        for pause in self.iter().filter(is_kept) {
            let pause = if pause.is_over(now) { pause.clone().closed() } else { pause.clone() };
            match tidied.iter_mut().find(|earlier| earlier.adjoins(&pause, now)) {
                Some(earlier) => earlier.absorb(&pause),
                None => tidied.push(pause),
            }
        }
        let mut document = self.with(tidied);
        document.requests.retain(|entry| !entry.is_over(now));
        document
    }
}

impl Pause {
    fn closed(self) -> Self {
        Self { by: None, why: None, ..self }
    }

    /// Returns true if both pauses are over and have the same target, and this one does not end before `other`
    /// begins. `other` must not begin first.
    fn adjoins(&self, other: &Self, now: Timestamp) -> bool {
        let both_over = self.is_over(now) && other.is_over(now);
        both_over && self.target == other.target && self.until.is_some_and(|until| other.from <= until)
    }

    /// Extends this pause to the end of `other`, with the spread of the pause that ends later.
    fn absorb(&mut self, other: &Self) {
        if other.until >= self.until {
            (self.until, self.spread) = (other.until, other.spread);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
