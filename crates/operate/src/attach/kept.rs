//! The settings that a function had before it was attached, kept in the function's tags.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use comeback_engine::Timestamp;

use crate::aws::InvokeSettings;
use crate::function::Target;

/// The key of the tag that records when the function's last qualifier stopped sending failures to the retry queue.
pub const DETACHED: &str = "comeback:detached";
/// The key of the tag that records when the function was moved to another deployment.
pub const MOVED: &str = "comeback:moved";
/// The key of the tag that stores the function's earlier recursion setting.
pub const RECURSION: &str = "comeback:recursion";
/// The tag value that records that a setting had Lambda's default value before the function was attached.
const DEFAULT: &str = "default";
/// The tag value that records that a function had no on-failure destination before it was attached.
const NONE: &str = "none";

/// The tags that store the target's current settings.
pub fn tags_of(target: &Target) -> Vec<(String, String)> {
    let InvokeSettings { retries, event_age, on_failure, on_success: _ } = target.settings();
    let number = |number: Option<i32>| number.map_or(DEFAULT.into(), |number| number.to_string());
    let values = [number(retries), number(event_age), on_failure.unwrap_or_else(|| NONE.to_owned())];
    keys(target.qualifier.as_deref()).into_iter().zip(values).collect()
}

/// The keys of the tags that store a qualifier's settings, such as `comeback:retries` or, for alias `live`,
/// `comeback:live:retries`.
pub fn keys(qualifier: Option<&str>) -> [String; 3] {
    ["retries", "event-age", "on-failure"].map(|setting| match qualifier {
        Some(qualifier) => format!("comeback:{qualifier}:{setting}"),
        None => format!("comeback:{setting}"),
    })
}

/// Returns the function's settings from before `attach`, and whether all their tags are present and valid. An invalid
/// value becomes Lambda's default. The on-success destination is the current one, because `attach` never changes it.
pub fn settings(target: &Target) -> (InvokeSettings, bool) {
    let [retries, event_age, on_failure] =
        keys(target.qualifier.as_deref()).map(|key| target.tags.get(&key).map(String::as_str));
    let retries = retries.and_then(|text| number(text, 0..=2));
    let event_age = event_age.and_then(|text| number(text, 60..=21_600));
    let on_failure = on_failure.filter(|arn| *arn == NONE || is_destination(arn));
    let all = retries.is_some() && event_age.is_some() && on_failure.is_some();
    let settings = InvokeSettings {
        retries: retries.flatten(),
        event_age: event_age.flatten(),
        on_failure: on_failure.filter(|arn| *arn != NONE).map(ToOwned::to_owned),
        on_success: target.settings().on_success,
    };
    (settings, all)
}

/// Parses the number in a tag's value. `Some(None)` stands for Lambda's default, and `None` for an invalid number.
fn number(text: &str, range: RangeInclusive<i32>) -> Option<Option<i32>> {
    if text == DEFAULT {
        return Some(None);
    }
    text.parse().ok().filter(|number| range.contains(number)).map(Some)
}

/// Returns true if Lambda can send failed events to a resource with this ARN.
fn is_destination(arn: &str) -> bool {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let [scheme, partition, service, region, account, resource] = parts[..] else { return false };
    let has_place =
        !region.is_empty() && account.len() == 12 && account.bytes().all(|it| it.is_ascii_digit());
    scheme == "arn"
        && partition.starts_with("aws")
        && !resource.is_empty()
        && match service {
            "s3" => region.is_empty(),
            "sqs" | "sns" | "lambda" | "events" => has_place,
            _ => false,
        }
}

/// The on-failure destination in the settings, unless its ARN shows that it is in this account.
pub fn destination_outside(settings: &InvokeSettings, account: &str) -> Option<String> {
    let arn = settings.on_failure.as_deref()?;
    (arn.split(':').nth(4) != Some(account)).then(|| arn.to_owned())
}

/// Returns true if recursive loops were allowed before the function was attached, or `None` if no tag stores this.
pub fn recursion_allowed(target: &Target) -> Option<bool> {
    target.tags.get(RECURSION).map(|setting| setting == recursion(true))
}

/// The value that Lambda's API uses for a recursion setting.
pub const fn recursion(allowed: bool) -> &'static str {
    if allowed { "Allow" } else { "Terminate" }
}

/// Reads the time in the tag [`DETACHED`] or [`MOVED`]; `None` if the tag is missing or invalid.
pub fn time(tags: &BTreeMap<String, String>, key: &str) -> Option<Timestamp> {
    tags.get(key).and_then(|text| Timestamp::from_rfc3339(text))
}

/// Returns true if Lambda would accept the tag.
pub fn fits((key, value): &(String, String)) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || " _.:/=+-@".contains(c);
    key.chars().count() <= 128
        && value.chars().count() <= 256
        && key.chars().chain(value.chars()).all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qualifier_has_tags_of_its_own() {
        let expected = ["comeback:live:retries", "comeback:live:event-age", "comeback:live:on-failure"];
        assert_eq!(keys(Some("live")), expected);
        assert_eq!(keys(None), ["comeback:retries", "comeback:event-age", "comeback:on-failure"]);
        // An alias may have the same name as a setting.
        assert!(keys(Some("retries")).iter().all(|key| !keys(None).contains(key)));
    }

    #[test]
    fn tag_fits_lambdas_limits() {
        let fits = |key: &str, value: &str| fits(&(key.to_owned(), value.to_owned()));
        assert!(fits("comeback:retries", "arn:aws:sqs:eu-west-1:123456789012:failed_orders"));
        assert!(fits(&"k".repeat(128), &"v".repeat(256)));
        assert!(!fits(&"k".repeat(129), "v") && !fits("k", &"v".repeat(257)));
        assert!(!fits("k", "arn:aws:lambda:eu-west-1:123456789012:function:f:$LATEST"));
    }

    #[test]
    fn invalid_tag_counts_as_not_kept() {
        let queue = "arn:aws:sqs:eu-west-1:123456789012:failed";
        let kept = |values: [&str; 3]| {
            let tags = keys(None).into_iter().zip(values.map(ToOwned::to_owned)).collect();
            let (settings, all) = settings(&Target { tags, ..Target::sample() });
            (settings.retries, settings.event_age, settings.on_failure, all)
        };
        assert_eq!(kept(["1", "600", queue]), (Some(1), Some(600), Some(queue.into()), true));
        assert_eq!(kept(["default", "default", "none"]), (None, None, None, true));
        for bad in ["3", "-1", "1.5", ""] {
            assert_eq!(kept([bad, "600", queue]), (None, Some(600), Some(queue.into()), false), "{bad}");
        }
        for bad in ["59", "21601"] {
            assert_eq!(kept(["1", bad, "none"]), (Some(1), None, None, false), "{bad}");
        }
        for bad in [
            "failed",
            "arn:aws:iam::123456789012:role/x",
            "arn:aws:sqs:eu-west-1:12:failed",
            "arn:aws:sqs:::",
        ] {
            assert_eq!(kept(["1", "60", bad]), (Some(1), Some(60), None, false), "{bad}");
        }
        let outside = |arn: &str| {
            let settings = InvokeSettings { on_failure: Some(arn.into()), ..InvokeSettings::default() };
            destination_outside(&settings, "123456789012").is_some()
        };
        assert!(!outside(queue) && outside("arn:aws:s3:::bucket"));
        assert!(outside("arn:aws:sqs:eu-west-1:999999999999:failed"));
    }

    #[test]
    fn missing_tags_mean_the_defaults() {
        assert_eq!(settings(&Target::sample()), (InvokeSettings::default(), false));
        assert_eq!(recursion_allowed(&Target::sample()), None);
        assert_eq!(time(&BTreeMap::from([(DETACHED.to_owned(), "soon".to_owned())]), DETACHED), None);
    }
}
