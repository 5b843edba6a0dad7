//! A policy as it is pasted: the names are those of `template.yaml` and of `infra/src/policy.ts`, to which a test
//! holds them.

use comeback_engine::Settings;
use comeback_timelapse::Candidate;
use serde::Serialize;

/// A setting under both names, with the text of its value for each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Setting {
    parameter: &'static str,
    value: String,
    property: &'static str,
    property_value: String,
}

/// What the plan has chosen, and what else must not have its default then.
pub(super) fn settings(policy: &Candidate, other: &Settings) -> Vec<Setting> {
    let default = Settings::default();
    let seconds = |parameter, property, seconds: u64| Setting {
        parameter,
        value: seconds.to_string(),
        property,
        property_value: format!("Duration.seconds({seconds})"),
    };
    let number = |parameter, property, number: u64| Setting {
        parameter,
        value: number.to_string(),
        property,
        property_value: number.to_string(),
    };
    let jitter = Setting {
        parameter: "Jitter",
        value: policy.jitter.to_owned(),
        property: "jitter",
        property_value: format!("Jitter.{}", policy.jitter.to_uppercase()),
    };
    let mut settings = vec![
        seconds("BaseBackoff", "baseBackoff", policy.base_backoff),
        seconds("MaxBackoff", "maxBackoff", policy.max_backoff),
        jitter,
    ];
    if other.max_age != default.max_age {
        settings.push(seconds("MaxAge", "maxAge", other.max_age));
    }
    if other.max_retries != default.max_retries {
        settings.push(number("MaxRetries", "maxRetries", other.max_retries));
    }
    if policy.maximum_concurrency > default.maximum_concurrency {
        settings.push(number("MaximumConcurrency", "maxConcurrency", policy.maximum_concurrency));
    }
    settings
}

/// `sam deploy --parameter-overrides BaseBackoff=1 …`
pub(super) fn overrides(settings: &[Setting]) -> String {
    let parameters = settings.iter().map(|setting| format!("{}={}", setting.parameter, setting.value));
    format!("sam deploy --parameter-overrides {}", parameters.collect::<Vec<_>>().join(" "))
}

/// `baseBackoff: Duration.seconds(1),` and so on, a line each.
pub(super) fn properties(settings: &[Setting]) -> String {
    let lines = settings.iter().map(|setting| format!("{}: {},", setting.property, setting.property_value));
    lines.collect::<Vec<_>>().join("\n")
}
