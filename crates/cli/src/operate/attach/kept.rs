//! A function's earlier settings, kept in its tags.

use std::collections::BTreeMap;

use comeback_engine::Timestamp;
use siphasher::sip::SipHasher13;

use crate::operate::function::{InvokeSettings, Target};

/// When the function's last destination was removed. Its events leave the retry queue from then on.
pub(crate) const DETACHED: &str = "comeback:detached";
/// When the function was moved to another deployment. Its events leave the one before from then on.
pub(crate) const MOVED: &str = "comeback:moved";
/// The recursion setting, which all qualifiers share.
pub(crate) const RECURSION: &str = "comeback:recursion";
/// Stands for a destination that was not set.
const NONE: &str = "none";

/// Lambda's limit of a function's tags.
pub(crate) const TAGS: usize = 50;

pub(crate) fn tags_of(target: &Target) -> Vec<(String, String)> {
    let InvokeSettings { retries, event_age, on_failure, on_success: _ } = target.settings();
    let number = |number: Option<i32>| number.map_or("default".into(), |number| number.to_string());
    let values = [number(retries), number(event_age), on_failure.unwrap_or_else(|| NONE.to_owned())];
    keys(target.qualifier.as_deref()).into_iter().zip(values).collect()
}

/// The keys of those tags: `comeback:retries`, and for a qualifier `comeback:live:retries`.
pub(crate) fn keys(qualifier: Option<&str>) -> [String; 3] {
    ["retries", "event-age", "on-failure"].map(|setting| match qualifier {
        Some(qualifier) => format!("comeback:{qualifier}:{setting}"),
        None => format!("comeback:{setting}"),
    })
}

/// The settings that the tags keep, and whether they keep all. The others are Lambda's defaults, but the destination of
/// successes stays as it is: `attach` never changes it.
pub(crate) fn settings(target: &Target) -> (InvokeSettings, bool) {
    let [retries, event_age, on_failure] =
        keys(target.qualifier.as_deref()).map(|key| target.tags.get(&key).map(String::as_str));
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
    let settings = InvokeSettings {
        retries: number(retries),
        event_age: number(event_age),
        on_failure: on_failure.filter(|arn| *arn != NONE).map(ToOwned::to_owned),
        on_success: target.settings().on_success,
    };
    let all = [retries, event_age, on_failure].iter().all(Option::is_some);
    (settings, all)
}

/// Whether recursion was allowed before, if the tags say so.
pub(crate) fn recursion_allowed(target: &Target) -> Option<bool> {
    target.tags.get(RECURSION).map(|setting| setting == recursion(true))
}

pub(crate) const fn recursion(allowed: bool) -> &'static str {
    if allowed { "Allow" } else { "Terminate" }
}

/// The time that a tag keeps: [`DETACHED`] or [`MOVED`].
pub(crate) fn time(tags: &BTreeMap<String, String>, key: &str) -> Option<Timestamp> {
    tags.get(key).and_then(|text| Timestamp::from_rfc3339(text))
}

/// Key of the tag that keeps which entries of `POLICIES` `attach` wrote for a qualifier.
pub(crate) fn policies_key(qualifier: Option<&str>) -> String {
    qualifier.map_or_else(|| "comeback:policy".into(), |qualifier| format!("comeback:{qualifier}:policy"))
}

pub(crate) fn is_policies_key(key: &str) -> bool {
    key.starts_with("comeback:") && key.ends_with(":policy")
}

/// The most entries that the tag keeps: with more, it would not fit.
const POLICIES: usize = 8;

/// The value of that tag once `attach` has written this entry into the deployment of this retry queue.
pub(crate) fn policies_with(before: Option<&String>, queue_arn: &str, entry: &str) -> String {
    let new = digest(queue_arn, entry);
    let before = before.map_or("", String::as_str).split(' ').filter(|it| !it.is_empty() && *it != new);
    std::iter::once(&*new).chain(before).take(POLICIES).collect::<Vec<_>>().join(" ")
}

/// The same once none of that deployment's is left; `None` if the tag keeps nothing then.
pub(crate) fn policies_without(before: &str, queue_arn: &str) -> Option<String> {
    let of_deployment = format!("{}:", short_digest(queue_arn));
    let others = before.split(' ').filter(|it| !it.starts_with(&of_deployment)).collect::<Vec<_>>().join(" ");
    (!others.is_empty()).then_some(others)
}

/// Whether `attach` wrote this entry of the deployment's `POLICIES`, according to the tags.
pub(crate) fn wrote(
    tags: &BTreeMap<String, String>,
    qualifier: Option<&str>,
    queue_arn: &str,
    entry: &str,
) -> bool {
    let digests = tags.get(&policies_key(qualifier));
    digests.is_some_and(|digests| digests.split(' ').any(|it| it == digest(queue_arn, entry)))
}

/// A tag has no room for an entry.
fn digest(queue_arn: &str, entry: &str) -> String {
    let words = entry.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}:{:016x}", short_digest(queue_arn), SipHasher13::new().hash(words.as_bytes()))
}

fn short_digest(queue_arn: &str) -> String {
    format!("{:08x}", SipHasher13::new().hash(queue_arn.as_bytes()) as u32)
}

/// Whether Lambda accepts a tag: the length of its key and value, and their characters.
pub(crate) fn fits((key, value): &(String, String)) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || " _.:/=+-@".contains(c);
    key.chars().count() <= 128
        && value.chars().count() <= 256
        && key.chars().chain(value.chars()).all(is_allowed)
}

#[cfg(test)]
mod tests {
    use crate::operate::attach::model::target;

    use super::*;

    #[test]
    fn a_qualifier_has_tags_of_its_own() {
        let expected = ["comeback:live:retries", "comeback:live:event-age", "comeback:live:on-failure"];
        assert_eq!(keys(Some("live")), expected);
        assert_eq!(keys(None), ["comeback:retries", "comeback:event-age", "comeback:on-failure"]);
        // An alias may be called like a setting.
        assert!(keys(Some("retries")).iter().all(|key| !keys(None).contains(key)));
    }

    #[test]
    fn a_tag_keeps_the_last_entries_of_each_deployment() {
        let (a, b) = ("arn:aws:sqs:eu-west-1:123456789012:a", "arn:aws:sqs:eu-west-1:123456789012:b");
        let mut value = policies_with(None, a, "orders MAX_AGE=1h");
        for hours in 2..20 {
            value = policies_with(Some(&value), b, &format!("orders MAX_AGE={hours}h"));
        }
        assert!(fits(&(policies_key(Some("live")), value.clone())), "{value}");
        assert_eq!((value.split(' ').count(), policies_without(&value, a)), (POLICIES, Some(value.clone())));
        let both = policies_with(Some(&value), a, "orders  MAX_AGE=2h");
        let tags = BTreeMap::from([(policies_key(None), both.clone())]);
        let wrote = |queue, entry| wrote(&tags, None, queue, entry);
        assert!(wrote(a, "orders MAX_AGE=2h") && wrote(b, "orders MAX_AGE=19h"));
        assert!(!wrote(b, "orders MAX_AGE=2h") && !wrote(a, "orders MAX_AGE=19h"), "each has its own");
        assert_eq!(policies_without(&policies_without(&both, a).unwrap(), b), None);
    }

    #[test]
    fn what_does_not_fit_into_a_tag_is_known() {
        let fits = |key: &str, value: &str| fits(&(key.to_owned(), value.to_owned()));
        assert!(fits("comeback:retries", "arn:aws:sqs:eu-west-1:123456789012:failed_orders"));
        assert!(fits(&"k".repeat(128), &"v".repeat(256)));
        assert!(!fits(&"k".repeat(129), "v") && !fits("k", &"v".repeat(257)));
        assert!(!fits("k", "arn:aws:lambda:eu-west-1:123456789012:function:f:$LATEST"));
    }

    #[test]
    fn tags_that_say_nothing_stand_for_the_defaults() {
        assert_eq!(settings(&target()), (InvokeSettings::default(), false));
        assert_eq!(recursion_allowed(&target()), None);
        assert_eq!(time(&BTreeMap::from([(DETACHED.to_owned(), "soon".to_owned())]), DETACHED), None);
    }
}
