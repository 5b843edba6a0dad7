//! Pauses: an operator's order not to invoke a function for a while. All of them are one document, the SSM parameter that
//! `PAUSES` names; the commands edit and write it, and the handler reads it. The orders of `retry_now` are in it too.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::object;
use crate::retry_now::RetryEntry;
use crate::time::LATEST;
use crate::{LONGEST_WITHIN, PauseTarget, RETENTION, RetryNow, Timestamp};

/// All pauses: open ones, and those that ended within the last 14 days; and the orders to retry now. None by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pauses {
    pauses: Vec<Pause>,
    pub(crate) retries: Vec<RetryEntry>,
    /// Members of the document that only a later version knows, as JSON.
    others: BTreeMap<String, String>,
}

/// The parameter's text is unreadable, and where. Quotes nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pauses are unreadable: {0}")]
pub struct GarbledPauses(String);

/// A time in which functions are not invoked.
#[derive(Clone, Debug, PartialEq)]
pub struct Pause {
    /// The functions.
    pub target: PauseTarget,
    /// The first moment, in whole seconds.
    pub from: Timestamp,
    /// The end, in whole seconds, at which it is over; `None` if it lasts until an operator ends it.
    pub until: Option<Timestamp>,
    /// Events due in the pause come back spread over this time after its end: whole seconds, at most
    /// [`LONGEST_SPREAD`].
    pub spread: Duration,
    /// Who opened it. Only while it is open.
    pub by: Option<String>,
    /// The reason they gave. Only while it is open.
    pub why: Option<String>,
    /// The function's reserved concurrency before it. Only while it is open.
    pub concurrency: Concurrency,
}

/// What is to be changed of an open pause; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PauseChange {
    /// Its end.
    pub until: Option<Timestamp>,
    /// Its spread.
    pub spread: Option<Duration>,
    /// The reason.
    pub why: Option<String>,
}

/// The reserved concurrency that a function had before its pause set it to 0 (`pause --hard`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concurrency {
    /// It was not changed.
    #[default]
    Untouched,
    /// None was reserved; to be removed again.
    WasUnreserved,
    /// This much was reserved; to be restored.
    Was(u32),
}

/// The longest spread of a pause, 14 days: SQS keeps no message for longer.
pub const LONGEST_SPREAD: Duration = RETENTION;

/// The longest time after which a pause can be planned to end, 14 days: SQS keeps no message for longer.
pub const LONGEST_PAUSE: Duration = LONGEST_SPREAD;

/// No function is paused.
pub(crate) static NO_PAUSES: Pauses =
    Pauses { pauses: Vec::new(), retries: Vec::new(), others: BTreeMap::new() };

impl Pauses {
    /// Only pauses.
    #[cfg(test)]
    pub(crate) fn of(pauses: Vec<Pause>) -> Self {
        Self::default().with(pauses)
    }

    /// The same document with other pauses. Sorts them by their beginning. Those that begin together have an order too,
    /// which does not depend on how they are written.
    fn with(&self, mut pauses: Vec<Pause>) -> Self {
        pauses.sort_by_cached_key(|pause| (pause.from, pause.is_bare(), pause.target.to_string()));
        Self { pauses, ..self.clone() }
    }

    /// All pauses, by their beginning.
    pub fn iter(&self) -> impl Iterator<Item = &Pause> {
        self.pauses.iter()
    }

    /// The pauses of a function, by their beginning.
    pub fn of_function<'p>(&'p self, function_arn: &'p str) -> impl Iterator<Item = &'p Pause> {
        self.pauses.iter().filter(|pause| pause.target.covers(function_arn))
    }

    /// The pauses that have been open for longer than this.
    pub(crate) fn open_for(&self, longer_than: Duration, now: Timestamp) -> impl Iterator<Item = &Pause> {
        self.pauses.iter().filter(move |pause| pause.is_active(now) && now.since(pause.from) > longer_than)
    }
}

impl Pauses {
    /// Adds an order to retry. Its moment is rounded up to a second, and so is `within`.
    ///
    /// # Errors
    ///
    /// It makes no sense, or there is no room for it.
    pub fn retry(&self, mut retry: RetryNow) -> Result<Self, EditError> {
        if retry.within > LONGEST_WITHIN {
            return Err(EditError::WithinTooLong(retry.within.as_secs()));
        }
        // Rounded down it would miss the latest events that have failed.
        retry.at = retry.at.rounded_up_to_secs();
        let mut all = self.clone();
        all.retries.retain(|entry| !entry.is_over(retry.at));
        let first_end = all.retries.iter().filter_map(|entry| entry.end).min();
        all.retries.push(RetryEntry::of(&retry));
        let bytes = all.retries.iter().map(|entry| entry.text.len() + 1).sum();
        if bytes > LONGEST_RETRIES { Err(EditError::ManyRetries { bytes, first_end }) } else { Ok(all) }
    }

    /// The orders to retry.
    pub fn retries(&self) -> impl Iterator<Item = &RetryNow> {
        self.retries.iter().filter_map(|entry| entry.retry.as_ref().ok())
    }

    /// What is wrong with the entries of `retries` that cannot be read, unless they have ended. They count as absent.
    pub fn unreadable_retries(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        let in_force = self.retries.iter().filter(move |entry| entry.end.is_none_or(|end| now <= end));
        in_force.filter_map(|entry| entry.retry.as_ref().err()).map(String::as_str)
    }
}

impl Pause {
    /// Whether it has begun and is not over.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.from <= now && !self.is_over(now)
    }

    /// Whether its end has come.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

// The document: {"v":1,"pauses":[{"target":"arn:…","from":1700000000,"until":null,"spread":1800,"by":"…","why":"…"}]}. Times
// are in seconds since the epoch. An unknown `v` is refused. Other members are left to later versions: the commands write
// them back as they were. If the document would be too long, ended pauses go into one more member, `past`, as start, length
// and spread, under the two halves of their targets: "past":{"arn:…:function:":{"orders":[[1700000000,3600,1800]]}}.

const VERSION: u64 = 1;
/// Bytes that orders to retry may take of the parameter. The rest is left to pauses.
const LONGEST_RETRIES: usize = 1_024;
#[derive(Deserialize)]
struct Versioned {
    v: u64,
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    pauses: Vec<&'a RawValue>,
    #[serde(default)]
    past: Past,
}

const MEMBERS: [&str; 4] = ["v", "pauses", "past", "retries"];
/// Ends the half of a target that many share.
const OF_FUNCTION: &str = ":function:";

#[derive(Serialize)]
struct Written<'a> {
    v: u64,
    pauses: Vec<Wire<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    past: Past,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retries: Vec<&'a RawValue>,
    #[serde(flatten)]
    others: BTreeMap<&'a str, &'a RawValue>,
}

/// The beginning, the length and the spread of each pause, by the halves of its target.
type Past = BTreeMap<String, BTreeMap<String, Vec<(u64, u64, u64)>>>;

#[derive(Deserialize, Serialize)]
struct Wire<'a> {
    target: String,
    from: u64,
    /// `null` is written; only a member that is missing is refused.
    #[serde(deserialize_with = "Option::deserialize")]
    until: Option<u64>,
    spread: u64,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    by: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    why: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Concurrency::is_untouched")]
    concurrency: Concurrency,
}

impl Pauses {
    /// Reads the parameter's text.
    ///
    /// # Errors
    ///
    /// It is not such a document, it has an unknown version, or a time, a target or a spread in it makes no sense. Then
    /// none of its pauses counts. An unreadable order to retry is no error: it alone does not count.
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
        let Document { pauses, past } = object(text).map_err(GarbledPauses)?;
        let past = past.iter().flat_map(|(place, names)| names.iter().map(move |of_name| (place, of_name)));
        let past = past.flat_map(|(place, (name, all))| {
            all.iter().map(move |times| Wire::past(format!("{place}{name}"), *times))
        });
        let all = pauses.into_iter().map(|pause| object(pause.get())).chain(past.map(Ok));
        let read = |(wire, number): (Result<Wire<'_>, String>, u32)| {
            wire.and_then(Pause::read).map_err(|what| GarbledPauses(format!("pause {number}: {what}")))
        };
        let pauses = all.zip(1..).map(read).collect::<Result<_, _>>()?;
        // If a member appears twice, the last one counts: that must not make the pauses unreadable.
        let members: BTreeMap<String, &RawValue> = object(text).map_err(GarbledPauses)?;
        let retries = members.get("retries").map_or_else(Vec::new, |retries| entries(retries));
        let others = members.into_iter().filter(|(name, _)| !MEMBERS.contains(&name.as_str()));
        let others = others.map(|(name, value)| (name, value.get().to_owned())).collect();
        Ok(Self { pauses: Vec::new(), retries, others }.with(pauses))
    }

    /// The parameter's text. If it is too long for the parameter, bare pauses are written short.
    pub fn write(&self) -> String {
        let long = self.text(self.iter().map(Wire::of).collect(), Past::new());
        if long.len() <= LONGEST_PAUSES { long } else { self.write_short() }
    }

    fn write_short(&self) -> String {
        let (mut pauses, mut past) = (Vec::new(), Past::new());
        for pause in self.iter() {
            let mut wire = Wire::of(pause);
            match wire.until {
                Some(until) if pause.is_bare() => {
                    let half = wire.target.find(OF_FUNCTION).map_or(0, |at| at + OF_FUNCTION.len());
                    let name = wire.target.split_off(half);
                    let of_name = past.entry(wire.target).or_default().entry(name).or_default();
                    of_name.push((wire.from, until.saturating_sub(wire.from), wire.spread));
                }
                _ => pauses.push(wire),
            }
        }
        self.text(pauses, past)
    }

    /// In as few bytes as JSON allows.
    fn text(&self, pauses: Vec<Wire<'_>>, past: Past) -> String {
        let raw = |text| {
            serde_json::from_str::<&RawValue>(text).expect("BUG: it was read as JSON, or written as JSON")
        };
        let retries = self.retries.iter().map(|entry| raw(entry.text.as_str())).collect();
        let others = self.others.iter().map(|(name, value)| (name.as_str(), raw(value))).collect();
        let written = Written { v: VERSION, pauses, past, retries, others };
        serde_json::to_string(&written).expect("BUG: strings and numbers are JSON")
    }
}

/// The entries of `retries`. Anything but a list or `null` counts as a single unreadable entry.
fn entries(retries: &RawValue) -> Vec<RetryEntry> {
    let entries: Option<Vec<&RawValue>> =
        serde_json::from_str(retries.get()).unwrap_or_else(|_| Some(vec![retries]));
    let entries = entries.unwrap_or_default();
    entries.into_iter().map(|entry| RetryEntry::read(entry.get())).collect()
}

impl Pause {
    /// Whether it has an end, and nothing that only an open pause has.
    fn is_bare(&self) -> bool {
        self.until.is_some() && self.by.is_none() && self.why.is_none() && self.concurrency.is_untouched()
    }

    fn read(wire: Wire<'_>) -> Result<Self, String> {
        let Wire { target, from, until, spread, by, why, concurrency } = wire;
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

    fn past(target: String, (from, length, spread): (u64, u64, u64)) -> Self {
        let (until, concurrency) = (Some(from.saturating_add(length)), Concurrency::Untouched);
        Self { target, from, until, spread, by: None, why: None, concurrency }
    }
}

impl Concurrency {
    // serde calls it with a reference.
    const fn is_untouched(&self) -> bool {
        matches!(self, Self::Untouched)
    }
}

/// A number, or `null` for a function that had none.
impl<'de> Deserialize<'de> for Concurrency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::WasUnreserved, Self::Was))
    }
}

impl Serialize for Concurrency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Was(reserved) => serializer.serialize_some(reserved),
            // `Untouched` is not written at all.
            Self::WasUnreserved | Self::Untouched => serializer.serialize_none(),
        }
    }
}

// Edits. `now` is the command's own clock.

/// Bytes of a String parameter in SSM's standard tier. Source: "Managing parameter tiers", AWS Systems Manager User
/// Guide.
pub const LONGEST_PAUSES: usize = 4_096;

/// Why an edit of the pauses is refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EditError {
    /// The same target has an open pause.
    #[error("{} has been paused since {}{}: change that pause with pause --change, or end it with resume", .0.target, .0.from, shown(.0))]
    AlreadyPaused(Box<Pause>),
    /// It would be over when it begins.
    #[error("the pause would end at {until}, which is not after its start at {from}: give a later end")]
    EndsTooSoon {
        /// Its start.
        from: Timestamp,
        /// Its end.
        until: Timestamp,
    },
    /// Over [`LONGEST_PAUSE`].
    #[error(
        "the pause would end at {until}, more than 14 days after {from}, and SQS keeps no event for longer: give an earlier end"
    )]
    TooLong {
        /// Its start, or now, whichever is later.
        from: Timestamp,
        /// Its end.
        until: Timestamp,
    },
    /// Nobody would restore the function's reserved concurrency at that end.
    #[error("a hard pause has no planned end: open it without one, and end it with resume")]
    HardWithEnd,
    /// Over [`LONGEST_SPREAD`].
    #[error("the spread is {0} s; it must be at most 1209600 s (14 days)")]
    SpreadTooLong(u64),
    /// The target has no open pause.
    #[error("{0} is not paused: pauses are listed by pause --list")]
    NotPaused(Box<PauseTarget>),
    /// Over [`LONGEST_WITHIN`](crate::LONGEST_WITHIN).
    #[error("--within is {0} s; it must be at most 39600 s (11 hours)")]
    WithinTooLong(u64),
    /// The orders to retry would leave too little of the parameter to pauses.
    #[error(
        "the orders to retry would take {bytes} bytes of the 1024 they have: shorten --why{}",
        .first_end.map(|end| format!(", or wait until {end}, when the first of them is forgotten")).unwrap_or_default()
    )]
    ManyRetries {
        /// What they would take.
        bytes: usize,
        /// When the first of the others is forgotten.
        first_end: Option<Timestamp>,
    },
    /// Over [`LONGEST_PAUSES`].
    #[error("the pauses would take {bytes} bytes; the parameter holds 4096: {}", .remedies.join(", or "))]
    TooLarge {
        /// What they would take.
        bytes: usize,
        /// What alone would make room.
        remedies: Vec<String>,
    },
}

fn shown(Pause { by, why, .. }: &Pause) -> String {
    let by = by.iter().map(|by| format!(" by {by}"));
    by.chain(why.iter().map(|why| format!(" ({why})"))).collect()
}

impl Pauses {
    /// Opens a pause.
    ///
    /// # Errors
    ///
    /// The same target has an open pause, or the pause makes no sense.
    pub fn open(&self, pause: Pause, now: Timestamp) -> Result<Self, EditError> {
        if let Some(open) = self.iter().find(|other| other.target == pause.target && !other.is_over(now)) {
            return Err(EditError::AlreadyPaused(Box::new(open.clone())));
        }
        pause.check(now)?;
        Ok(self.with(self.iter().cloned().chain([pause]).collect()))
    }

    /// Changes the open pause of a target: what `change` does not name stays. Returns the pause as it is then, too.
    ///
    /// # Errors
    ///
    /// None is open, its new end has come already, or it would make no sense.
    pub fn change(
        &self,
        target: &PauseTarget,
        change: &PauseChange,
        now: Timestamp,
    ) -> Result<(Self, Pause), EditError> {
        let mut pauses = self.pauses.clone();
        let open = pauses.iter_mut().find(|pause| pause.target == *target && !pause.is_over(now));
        let open = open.ok_or_else(|| EditError::NotPaused(Box::new(target.clone())))?;
        let PauseChange { until, spread, why } = change.clone();
        open.until = until.or(open.until);
        open.spread = spread.map_or(open.spread, |spread| Duration::from_secs(spread.as_secs()));
        open.why = why.or_else(|| open.why.take());
        open.check(now)?;
        let changed = open.clone();
        Ok((self.with(pauses), changed))
    }

    /// Closes the open pauses of a target now, rounded up to a second: events due in them come back over `spread`. One
    /// that has not begun is removed. Also returns the pauses as they were, for the concurrency that is to be restored.
    ///
    /// # Errors
    ///
    /// None is open, or the spread is too long.
    pub fn close(
        &self,
        target: &PauseTarget,
        spread: Duration,
        now: Timestamp,
    ) -> Result<(Self, Vec<Pause>), EditError> {
        check_spread(spread)?;
        let (mut open, mut others) = (Vec::new(), Vec::new());
        for pause in self.iter().cloned() {
            let closes = pause.target == *target && !pause.is_over(now);
            if closes { &mut open } else { &mut others }.push(pause);
        }
        if open.is_empty() {
            return Err(EditError::NotPaused(Box::new(target.clone())));
        }
        // Rounded down it would end before the latest event that it has held.
        let end = now.rounded_up_to_secs();
        let begun = open.iter().filter(|pause| pause.from < end);
        others.extend(begun.map(|pause| {
            let spread = Duration::from_secs(spread.as_secs());
            Pause { until: Some(end), spread, ..pause.clone() }.closed()
        }));
        Ok((self.with(others), open))
    }

    /// Drops the orders to retry that are over, the pauses that ended over 14 days ago, and everything from closed ones that no longer counts. Closed pauses of
    /// one target that overlap or adjoin become one.
    #[must_use]
    pub fn tidied(&self, now: Timestamp) -> Self {
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
        document.retries.retain(|entry| !entry.is_over(now));
        document
    }

    /// Takes back these orders to retry. Everything else stays.
    #[must_use]
    pub fn without_retries(&self, orders: &[RetryNow]) -> Self {
        let mut document = self.clone();
        document.retries.retain(|entry| !entry.retry.as_ref().is_ok_and(|order| orders.contains(order)));
        document
    }

    /// Whether the parameter can hold them.
    ///
    /// # Errors
    ///
    /// [`EditError::TooLarge`].
    pub fn check_size(&self) -> Result<(), EditError> {
        let bytes = self.write().len();
        if bytes <= LONGEST_PAUSES {
            return Ok(());
        }
        Err(EditError::TooLarge { bytes, remedies: self.remedies() })
    }

    /// What alone would make the parameter hold them.
    fn remedies(&self) -> Vec<String> {
        let fits = |pauses: Vec<Pause>| self.with(pauses).write().len() <= LONGEST_PAUSES;
        let mut remedies = Vec::new();
        if fits(self.iter().map(|pause| Pause { why: None, ..pause.clone() }).collect()) {
            remedies.push("shorten the reasons".to_owned());
        }
        let is_open = |pause: &&Pause| pause.until.is_none();
        let resumed =
            |pause: &Pause| Pause { until: pause.until.or(Some(pause.from)), ..pause.clone() }.closed();
        if self.iter().filter(is_open).count() > 1 && fits(self.iter().map(resumed).collect()) {
            remedies.push("resume functions".to_owned());
        }
        let mut ends: Vec<_> = self.iter().filter_map(|pause| pause.until).collect();
        ends.sort_unstable();
        let lasts = |end, pause: &&Pause| pause.until.is_none_or(|until| until > end);
        let is_enough =
            |end: &Timestamp| fits(self.iter().filter(|pause| lasts(*end, pause)).cloned().collect());
        if let Some(forgotten) = ends.into_iter().find(is_enough).map(|end| end.saturating_add(RETENTION)) {
            remedies.push(format!("wait until {forgotten}: pauses are forgotten 14 days after their end"));
        }
        if remedies.is_empty() {
            remedies.push("shorten the reasons and resume functions".to_owned());
        }
        remedies
    }
}

impl Pause {
    /// Whether it makes sense, opened or changed at `now`.
    fn check(&self, now: Timestamp) -> Result<(), EditError> {
        check_spread(self.spread)?;
        let from = self.from.max(now);
        match self.until {
            Some(until) if until <= from => Err(EditError::EndsTooSoon { from, until }),
            // An end counted from now is rounded up too.
            Some(until) if until.since(from.rounded_up_to_secs()) > LONGEST_PAUSE => {
                Err(EditError::TooLong { from, until })
            }
            Some(_) if self.concurrency != Concurrency::Untouched => Err(EditError::HardWithEnd),
            _ => Ok(()),
        }
    }

    fn closed(self) -> Self {
        Self { by: None, why: None, concurrency: Concurrency::Untouched, ..self }
    }

    /// Whether both are over, of one target, and nothing lies between them. The other begins later.
    fn adjoins(&self, other: &Self, now: Timestamp) -> bool {
        let both_over = self.is_over(now) && other.is_over(now);
        both_over && self.target == other.target && self.until.is_some_and(|until| other.from <= until)
    }

    /// Events due in either come back after the later end, as that pause says.
    fn absorb(&mut self, other: &Self) {
        if other.until >= self.until {
            (self.until, self.spread) = (other.until, other.spread);
        }
    }
}

fn check_spread(spread: Duration) -> Result<(), EditError> {
    if spread <= LONGEST_SPREAD { Ok(()) } else { Err(EditError::SpreadTooLong(spread.as_secs())) }
}

#[cfg(test)]
pub(crate) mod tests;
