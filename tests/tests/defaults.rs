//! The handler's defaults and ranges stand in `Settings`; docs/settings.md and template.yaml repeat them.

use std::ops::RangeInclusive;

use comeback_engine::{
    BACKOFF_RANGE, HIDE_UP_TO_RANGE, Jitter, MAX_AGE_RANGE, MAX_RETRIES_RANGE, MAXIMUM_CONCURRENCY_RANGE,
    Settings, Style,
};
use comeback_tests::{pages, template};
use serde_json::{Value, json};

const PAGE: &str = "docs/settings.md";

/// A policy variable as every place must describe it.
struct Variable {
    name: &'static str,
    parameter: &'static str,
    default: Value,
    range: Option<RangeInclusive<u64>>,
    values: Option<Vec<&'static str>>,
}

fn variables() -> Vec<Variable> {
    let settings = Settings::default();
    let number = |name, parameter, default: u64, range| Variable {
        name,
        parameter,
        default: json!(default),
        range: Some(range),
        values: None,
    };
    let choice = |name, parameter, default: &str, values| Variable {
        name,
        parameter,
        default: json!(default),
        range: None,
        values: Some(values),
    };
    let list = |name, parameter, default: Vec<String>| Variable {
        name,
        parameter,
        default: json!(default.join(",")),
        range: None,
        values: None,
    };
    // A text to the template, because it may be `always` too.
    let hide_up_to = Variable {
        name: "HIDE_UP_TO",
        parameter: "HideUpTo",
        default: json!(settings.hide_up_to.to_string()),
        range: None,
        values: None,
    };
    vec![
        number("MAX_AGE", "MaxAge", settings.max_age, MAX_AGE_RANGE),
        number("MAX_RETRIES", "MaxRetries", settings.max_retries, MAX_RETRIES_RANGE),
        number("BASE_BACKOFF", "BaseBackoff", settings.base_backoff, BACKOFF_RANGE),
        number("MAX_BACKOFF", "MaxBackoff", settings.max_backoff, BACKOFF_RANGE),
        choice("JITTER", "Jitter", settings.jitter.name(), Jitter::ALL.map(Jitter::name).to_vec()),
        choice("ENVELOPE", "Envelope", settings.envelope.name(), Style::ALL.map(Style::name).to_vec()),
        choice("DIRECTIVES", "Directives", if settings.directives { "on" } else { "off" }, vec!["on", "off"]),
        hide_up_to,
        number(
            "MAXIMUM_CONCURRENCY",
            "MaximumConcurrency",
            settings.maximum_concurrency,
            MAXIMUM_CONCURRENCY_RANGE,
        ),
        list("NON_RETRYABLE_ERRORS", "NonRetryableErrors", settings.non_retryable_errors),
        list("TARGET_FUNCTIONS", "TargetFunctions", settings.target_functions),
    ]
}

/// The cells of the page's row for a variable.
fn row(page: &str, name: &str) -> Vec<String> {
    let start = format!("| `{name}` |");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with(&start)).collect();
    let [row] = rows.as_slice() else { panic!("{PAGE} has {} rows for {name}", rows.len()) };
    row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn the_page_repeats_the_defaults() {
    let page = pages::read(PAGE);
    for Variable { name, default, .. } in variables() {
        let expected = match &default {
            _ if name == "TARGET_FUNCTIONS" => "required, may be empty".to_owned(),
            Value::String(text) if text.is_empty() => "empty".to_owned(),
            Value::String(text) => format!("`{text}`"),
            number => format!("`{number}`"),
        };
        assert_eq!(row(&page, name)[1], expected, "the page's default of {name}");
    }
}

#[test]
fn the_page_repeats_the_ranges() {
    let page = pages::read(PAGE);
    for Variable { name, range, values, .. } in variables() {
        let cell = row(&page, name)[2].clone();
        if name == "BASE_BACKOFF" {
            assert_eq!(cell, "1 to `MAX_BACKOFF`");
        } else if name == "HIDE_UP_TO" {
            let (least, most) = HIDE_UP_TO_RANGE.into_inner();
            assert_eq!(cell, format!("{least} to {most}, or `always`"));
        } else if let Some(range) = range {
            assert_eq!(cell, format!("{} to {}", range.start(), range.end()), "the page's range of {name}");
        }
        if let Some(values) = values {
            let listed = values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
            assert_eq!(cell, listed, "the page's values of {name}");
        }
    }
}

#[test]
fn the_template_repeats_defaults_and_ranges() {
    let template = template();
    for Variable { name, parameter, default, range, values } in variables() {
        let said = &template["Parameters"][parameter];
        assert_eq!(said["Default"], default, "the template's default of {parameter}");
        if let Some(range) = range {
            assert_eq!(said["MinValue"], json!(range.start()), "{parameter}");
            assert_eq!(said["MaxValue"], json!(range.end()), "{parameter}");
        }
        if let Some(values) = values {
            assert_eq!(said["AllowedValues"], json!(values), "{parameter}");
        }
        let passed = &template["Resources"]["RetryHandler"]["Properties"]["Environment"]["Variables"][name];
        assert!(passed.to_string().contains(&format!("\"{parameter}\"")), "{name} is passed as {passed}");
    }
}

#[test]
fn the_template_passes_no_variable_that_the_handler_does_not_read() {
    let template = template();
    let passed = &template["Resources"]["RetryHandler"]["Properties"]["Environment"]["Variables"];
    let mut known: Vec<_> = variables().iter().map(|variable| variable.name).collect();
    known.extend(["RETRY_QUEUE_URL", "DEAD_LETTER_QUEUE_URL", "PAUSES", "METRICS"]);
    let mut names: Vec<_> = passed.as_object().unwrap().keys().map(String::as_str).collect();
    known.sort_unstable();
    names.sort_unstable();
    assert_eq!(names, known);
}
