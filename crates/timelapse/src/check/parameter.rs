//! The oracle's own parser for the pauses parameter, and the check that compares each value of the parameter with the
//! previous one.

use std::time::Duration;

use comeback_engine::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{HOLD, UNHIDDEN};

/// Maximum length of the parameter's text, in bytes.
const LONGEST_TEXT: usize = 4_096;
/// Time within which edits lost to concurrent writes are restored.
const SETTLES: Duration = Duration::from_secs(120);
/// Longest time that SQS keeps a message.
const RETENTION: Duration = Duration::from_secs(14 * 86_400);
const LONGEST_REQUEST: Duration = Duration::from_secs(25 * 3_600);
/// Maximum visibility timeout in SQS.
const LONGEST_HIDING: Duration = Duration::from_secs(12 * 3_600);
/// Longest time that the handler hides a message after a refused call.
const LONGEST_AFTER_REFUSAL: Duration = Duration::from_secs(3_600);

/// The parsed pauses parameter, without the requests that cannot be parsed.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// The pauses, ordered by start time.
    pub(super) pauses: Vec<WrittenPause>,
    /// The operators' requests: retries first, then cancellations.
    pub(super) requests: Vec<WrittenRequest>,
    bytes: usize,
}

#[derive(Debug, Deserialize)]
pub(super) struct WrittenPause {
    pub(super) target: String,
    from: u64,
    #[serde(deserialize_with = "Option::deserialize")]
    until: Option<u64>,
    spread: u64,
    #[serde(skip)]
    bytes: usize,
}

#[derive(Debug, Deserialize)]
pub(super) struct WrittenRequest {
    pub(super) target: String,
    at: u64,
    #[serde(default)]
    millis: u64,
    /// Seconds within which the events are to be retried; `None` if the request cancels events.
    pub(super) within: Option<u64>,
    #[serde(default)]
    pub(super) errors: Vec<String>,
    #[serde(default)]
    pub(super) keys: Vec<String>,
    until: Option<u64>,
    #[serde(default)]
    pub(super) withdrawn: bool,
    /// Time of the write that withdrew the request; `None` if the request is in force.
    #[serde(skip)]
    withdrawn_at: Option<Timestamp>,
    #[serde(skip)]
    bytes: usize,
}

/// The times that determine how long a request must last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongestWaits {
    pub(super) longest_backoff: Duration,
    pub(super) between_reads: Duration,
}

impl Document {
    /// Parses the text of the pauses parameter. Fails if handlers cannot parse it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))?;
        if value["v"] != 1 {
            return Err(format!("its version is not 1: {text}"));
        }
        let pauses = value["pauses"].as_array().ok_or_else(|| format!("it has no list of pauses: {text}"))?;
        let pause = |value: &Value| {
            let read = WrittenPause::deserialize(value).map_err(|error| format!("{error}: {value}"))?;
            Ok(WrittenPause { bytes: value.to_string().len(), ..read })
        };
        let requests = ["retries", "cancels"].into_iter().flat_map(|kind| {
            let read = value[kind].as_array().into_iter().flatten().filter_map(|value| {
                let read = WrittenRequest::deserialize(value).ok()?;
                Some(WrittenRequest { bytes: value.to_string().len(), ..read })
            });
            read.filter(move |request| request.within.is_some() == (kind == "retries"))
        });
        let mut pauses = pauses.iter().map(pause).collect::<Result<Vec<_>, String>>()?;
        pauses.sort_by_key(|pause| pause.from);
        Ok(Self { pauses, requests: requests.collect(), bytes: text.len() })
    }

    /// Returns this document's entry for `request`, withdrawn or not.
    pub(super) fn find(&self, request: &WrittenRequest) -> Option<&WrittenRequest> {
        self.requests.iter().find(|it| it.is(request))
    }

    /// Checks that no entry of the earlier version `before` is lost, reopened or put back in force. An entry that has
    /// ended may be missing if the parameter has no room for it.
    pub(super) fn keeps(&self, before: &Self, now: Timestamp) -> Result<(), String> {
        let mut dropped = Vec::new();
        for pause in &before.pauses {
            if self.reopens(pause, now) {
                return Err(format!("a pause that had ended is open again: {pause:?}"));
            }
            if !self.has(pause, now) {
                if !pause.is_over(now) {
                    return Err(format!("an open pause is lost: {pause:?}"));
                }
                dropped.push((pause.bytes, format!("{pause:?}")));
            }
        }
        for request in before.requests.iter().filter(|request| request.is_settled(now)) {
            match self.find(request) {
                Some(kept) if kept.withdrawn || !request.is_long_withdrawn(now) => {}
                None if request.withdrawn => dropped.push((request.bytes, format!("{request:?}"))),
                Some(_) => return Err(format!("a request is no longer withdrawn: {request:?}")),
                None => return Err(format!("a request is lost: {request:?}")),
            }
        }
        let with_these = self.bytes + dropped.iter().map(|(bytes, _)| bytes + 1).sum::<usize>();
        match dropped.pop() {
            Some((_, lost)) if with_these <= LONGEST_TEXT => Err(format!("there was room for {lost}")),
            _ => Ok(()),
        }
    }

    /// Sets `withdrawn_at` of each withdrawn request to the time in `before`, or to `now` for a new withdrawal.
    pub(super) fn date_withdrawals(&mut self, before: &Self, now: Timestamp) {
        for request in self.requests.iter_mut().filter(|request| request.withdrawn) {
            request.withdrawn_at = before.find(request).and_then(|it| it.withdrawn_at).or(Some(now));
        }
    }

    /// Returns true if a pause in this value covers all of `pause`, or if `pause` is too new or too old to matter.
    fn has(&self, pause: &WrittenPause, now: Timestamp) -> bool {
        let settled = now.before(SETTLES).as_secs();
        let end = pause.until.unwrap_or(settled).min(settled);
        let is_old =
            pause.until.is_some_and(|until| until + (RETENTION - SETTLES).as_secs() <= now.as_secs());
        let covers = |it: &WrittenPause| {
            it.target == pause.target && it.from <= pause.from && it.until.is_none_or(|until| until >= end)
        };
        pause.from >= end || is_old || self.pauses.iter().any(covers)
    }

    fn reopens(&self, pause: &WrittenPause, now: Timestamp) -> bool {
        let is_open = |it: &WrittenPause| {
            it.target == pause.target && it.from == pause.from && !it.is_over(now.saturating_add(SETTLES))
        };
        pause.is_over(now.before(SETTLES)) && self.pauses.iter().any(is_open)
    }
}

impl WrittenPause {
    pub(super) const fn from(&self) -> Timestamp {
        Timestamp::from_secs(self.from)
    }

    pub(super) fn until(&self) -> Option<Timestamp> {
        self.until.map(Timestamp::from_secs)
    }

    pub(super) const fn spread(&self) -> Duration {
        Duration::from_secs(self.spread)
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.until().is_some_and(|until| until <= now)
    }
}

impl WrittenRequest {
    pub(super) fn at(&self) -> Timestamp {
        Timestamp::from_secs(self.at)
    }

    pub(super) fn until(&self) -> Timestamp {
        let latest = self.at().saturating_add(LONGEST_REQUEST);
        self.until.map_or(latest, |until| Timestamp::from_secs(until).min(latest))
    }

    /// Returns true if `other` is the same request, whether withdrawn or not.
    fn is(&self, other: &Self) -> bool {
        let parts = |it: &Self| (it.at, it.millis, it.within, it.until);
        let texts = |it: &Self| (it.target.clone(), it.errors.clone(), it.keys.clone());
        parts(self) == parts(other) && texts(self) == texts(other)
    }

    /// Returns true if the request was withdrawn at least `SETTLES` ago.
    fn is_long_withdrawn(&self, now: Timestamp) -> bool {
        self.withdrawn_at.is_some_and(|at| at.saturating_add(SETTLES) <= now)
    }

    fn is_settled(&self, now: Timestamp) -> bool {
        self.at().saturating_add(SETTLES) <= now && now.saturating_add(SETTLES) <= self.until()
    }

    /// Returns the earliest and the latest allowed end of the request. The request must outlast the wait of a message
    /// that is hidden just before the handler reads the request, then a throttled receive, and then a refused call.
    pub(super) fn ends(
        &self,
        LongestWaits { longest_backoff, between_reads }: LongestWaits,
    ) -> [Timestamp; 2] {
        let end = |hidden: Duration| {
            let within = Duration::from_secs(self.within.unwrap_or_default());
            let lasts = within + hidden.max(HOLD) + UNHIDDEN + LONGEST_AFTER_REFUSAL + between_reads;
            self.at().saturating_add(lasts.min(LONGEST_REQUEST))
        };
        [end(longest_backoff), end(LONGEST_HIDING).rounded_up_to_secs()]
    }
}

#[cfg(test)]
mod tests {
    use super::super::Invariant;
    use super::super::invariants::{kept_edits, lasting_requests};
    use super::super::oracle::write;
    use super::super::pauses::WrittenValues;
    use super::*;

    const NOW: u64 = 1_800_000_000;
    const WAITS: LongestWaits =
        LongestWaits { longest_backoff: Duration::from_secs(3_600), between_reads: Duration::from_secs(38) };

    fn written(before: [&str; 3], after: [&str; 3]) -> Option<Invariant> {
        let text = |[pauses, retries, cancels]: [&str; 3]| {
            format!(r#"{{"v":1,"pauses":[{pauses}],"retries":[{retries}],"cancels":[{cancels}]}}"#)
        };
        let mut before = Document::read(&text(before)).unwrap();
        before.date_withdrawals(&Document::default(), Timestamp::from_secs(NOW - 240));
        let checked = kept_edits(&text(after), &before, Timestamp::from_secs(NOW))
            .and_then(|after| lasting_requests(&after, &before, WAITS));
        checked.err().map(|broken| broken.invariant)
    }

    fn pause(from: u64, until: Option<u64>) -> String {
        let until = until.map_or("null".to_owned(), |ago| (NOW - ago).to_string());
        format!(r#"{{"target":"*","from":{},"until":{until},"spread":60}}"#, NOW - from)
    }

    fn request(ago: u64, more: &str) -> String {
        let at = NOW - ago;
        format!(r#"{{"target":"*","at":{at},"until":{}{more}}}"#, at + 3_600 + 1_230 + 3_600 + 38)
    }

    #[test]
    fn text_that_no_handler_can_read_is_refused() {
        for text in ["", "{}", r#"{"v":2,"pauses":[]}"#, r#"{"v":1}"#, r#"{"v":1,"pauses":[{"from":1}]}"#] {
            assert!(Document::read(text).is_err(), "{text}");
        }
        let garbled = r#"{"v":1,"pauses":[],"retries":[{"target":"*","at":"soon"}],"cancels":7}"#;
        assert!(Document::read(garbled).is_ok_and(|read| read.requests.is_empty()));
    }

    #[test]
    fn a_pause_may_end_and_merge_and_is_never_lost() {
        let pauses = |before: &str, after: &str| written([before, "", ""], [after, "", ""]);
        let (open, ended) = (pause(3_600, None), pause(3_600, Some(600)));
        assert_eq!(pauses(&open, &pause(3_600, Some(0))), None, "resumed");
        assert_eq!(pauses(&open, ""), Some(Invariant::KeptEdits));
        assert_eq!(pauses(&open, &ended), Some(Invariant::KeptEdits), "it was open until now");
        assert_eq!(pauses(&ended, &open), Some(Invariant::KeptEdits), "it is open again");
        assert_eq!(pauses(&ended, &pause(7_200, Some(300))), None, "it became a part of another");
        assert_eq!(pauses(&ended, ""), Some(Invariant::KeptEdits), "there is room");
        assert_eq!(pauses(&pause(60, None), ""), None, "another operator writes at once");
        let many = vec![pause(90_000, Some(80_000)); 63].join(",");
        assert_eq!(pauses(&format!("{many},{ended}"), &many), None, "it does not fit");
    }

    #[test]
    fn a_request_may_be_withdrawn_and_is_never_lost() {
        let cancels = |before: &str, after: &str| written(["", "", before], ["", "", after]);
        let (given, withdrawn) = (request(300, ""), request(300, r#","withdrawn":true"#));
        assert_eq!(cancels(&given, &withdrawn), None);
        assert_eq!(cancels(&withdrawn, &given), Some(Invariant::KeptEdits));
        let mut written = WrittenValues::default();
        let mut add = |cancel: &str, at| {
            let text = format!(r#"{{"v":1,"pauses":[],"cancels":[{cancel}]}}"#);
            write(&mut written, &text, WAITS, Timestamp::from_secs(at)).err().map(|broken| broken.invariant)
        };
        assert_eq!([add(&given, NOW - 300), add(&withdrawn, NOW - 60), add(&withdrawn, NOW)], [None; 3]);
        assert_eq!(add(&given, NOW), None, "another operator writes at once");
        assert_eq!(cancels(&given, ""), Some(Invariant::KeptEdits));
        assert_eq!(cancels(&request(30_000, ""), ""), None, "it has ended");
        assert_eq!(cancels(&request(60, ""), ""), None, "another operator writes at once");
    }

    #[test]
    fn a_request_lasts_until_the_handler_has_checked_every_message() {
        let (given, more) = (request(0, ""), |until: u64| format!(r#","until":{}"#, NOW + until));
        assert_eq!(written(["", "", ""], ["", "", &given]), None);
        let retry = |within: u64, until: u64| {
            let request = format!(r#"{{"target":"*","at":{NOW},"within":{within}{}}}"#, more(until));
            written(["", "", ""], ["", &request, ""])
        };
        let lasts = 600 + 3_600 + 1_230 + 3_600 + 38;
        assert_eq!([retry(600, lasts), retry(600, 600 + 43_200 + 1_230 + 3_600 + 38)], [None, None]);
        assert_eq!(retry(600, lasts - 1), Some(Invariant::LastingRequests));
        assert_eq!(retry(600, 50_000), Some(Invariant::LastingRequests));
    }
}
