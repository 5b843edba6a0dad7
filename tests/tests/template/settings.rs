//! The handler's defaults and ranges are in `Settings`; docs/settings.md and template.yaml repeat them. CloudFormation
//! refuses what the handler refuses.

use std::fs;
use std::ops::RangeInclusive;

use comeback_engine::{
    BACKOFF_RANGE, HIDE_UP_TO_RANGE, Jitter, MAX_AGE_RANGE, MAX_RETRIES_RANGE, MAXIMUM_CONCURRENCY_RANGE,
    Settings, Style,
};
use comeback_tests::{pages, root, template};
use regex::Regex;
use serde_json::{Map, Value, json};

const PAGE: &str = "docs/settings.md";

/// A variable of the policy, as every place must describe it.
struct Variable {
    name: &'static str,
    default: Value,
    range: Option<RangeInclusive<u64>>,
    values: Option<Vec<&'static str>>,
}

fn variables() -> Vec<Variable> {
    let settings = Settings::default();
    let text = |name, default: String| Variable { name, default: json!(default), range: None, values: None };
    let number = |name, default: u64, range| Variable {
        name,
        default: json!(default),
        range: Some(range),
        values: None,
    };
    let choice = |name, default: &str, values| Variable {
        name,
        default: json!(default),
        range: None,
        values: Some(values),
    };
    let directives = if settings.directives { "on" } else { "off" };
    vec![
        number("MAX_AGE", settings.max_age, MAX_AGE_RANGE),
        number("MAX_RETRIES", settings.max_retries, MAX_RETRIES_RANGE),
        number("BASE_BACKOFF", settings.base_backoff, BACKOFF_RANGE),
        number("MAX_BACKOFF", settings.max_backoff, BACKOFF_RANGE),
        number("MAXIMUM_CONCURRENCY", settings.maximum_concurrency, MAXIMUM_CONCURRENCY_RANGE),
        choice("JITTER", settings.jitter.name(), Jitter::ALL.map(Jitter::name).to_vec()),
        choice("ENVELOPE", settings.envelope.name(), Style::ALL.map(Style::name).to_vec()),
        choice("DIRECTIVES", directives, vec!["on", "off"]),
        choice("METRICS", "off", vec!["off", "stack", "target"]),
        // A string in the template, because it may also be `always`.
        text("HIDE_UP_TO", settings.hide_up_to.to_string()),
        text("BACKOFFS", String::new()),
        text("POLICIES", String::new()),
        text("NON_RETRYABLE_ERRORS", settings.non_retryable_errors.join(",")),
        text("TARGET_FUNCTIONS", settings.target_functions.join(",")),
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
fn page_repeats_the_defaults() {
    let page = pages::read(PAGE);
    for Variable { name, default, .. } in variables() {
        let expected = match &default {
            _ if name == "TARGET_FUNCTIONS" => "required, may be empty".to_owned(),
            _ if name == "BACKOFFS" => "none".to_owned(),
            Value::String(text) if text.is_empty() => "empty".to_owned(),
            Value::String(text) => format!("`{text}`"),
            number => format!("`{number}`"),
        };
        assert_eq!(row(&page, name)[1], expected, "the page's default of {name}");
    }
}

#[test]
fn page_repeats_the_ranges() {
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
fn template_repeats_defaults_and_ranges() {
    let template = template();
    for Variable { name, default, range, values } in variables() {
        let parameter = &parameter_of(name);
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
fn template_passes_the_variables_that_the_handler_reads() {
    let template = template();
    let passed = &template["Resources"]["RetryHandler"]["Properties"]["Environment"]["Variables"];
    let mut known: Vec<_> = variables().iter().map(|variable| variable.name).collect();
    known.extend(["RETRY_QUEUE_URL", "DEAD_LETTER_QUEUE_URL", "PAUSES"]);
    let mut names: Vec<_> = passed.as_object().unwrap().keys().map(String::as_str).collect();
    known.sort_unstable();
    names.sort_unstable();
    assert_eq!(names, known);
}

/// The handler's tests and the construct's read the same list. It marks what the template cannot refuse.
#[test]
fn template_refuses_what_the_handler_refuses() {
    let list = fs::read_to_string(root().join("tests/golden/refusals.json")).expect("the list can be read");
    let list: Value = serde_json::from_str(&list).expect("the list is JSON");
    let cases = |key: &str| list[key].as_array().expect("a list").clone();
    for variables in cases("accepted") {
        assert_eq!(refused_parameters(&variables).unwrap_or_default(), Vec::<&str>::new(), "{variables}");
    }
    let mut compared = 0;
    for case in cases("refused") {
        let Some(refused) = refused_parameters(&case["variables"]) else { continue };
        let let_through = case["let_through_by"].as_array().is_some_and(|by| by.contains(&json!("template")));
        assert_eq!(refused.is_empty(), let_through, "{}: {refused:?}", case["variables"]);
        compared += 1;
    }
    assert!(compared > 25, "{compared}");
}

/// The parameters that are not variables of the handler.
#[test]
fn template_refuses_odd_parameters() {
    for (name, value) in [
        ("Example", "maybe"),
        ("Alarms", "yes"),
        ("AlarmTopicArn", "on-call"),
        ("AlarmTopicArn", "arn:aws:sns:eu-west-1:123456789012:on-call.fifo"),
        ("Dashboard", "maybe"),
        // A policy cannot allow the use of a key by the name of an alias.
        ("KmsKeyArn", "alias/orders"),
        ("KmsKeyArn", "arn:aws:kms:eu-west-1:123456789012:alias/orders"),
        ("KmsKeyArn", "1234abcd-12ab-34cd-56ef-1234567890ab"),
        ("TargetFunctions", "orders"),
        ("TargetFunctions", "arn:aws:lambda:eu-west-1:123456789012:function:orders:$latest"),
    ] {
        assert!(is_refused(&template()["Parameters"][name], value), "{name}={value}");
    }
}

/// Its type is a pattern, because a number could not also be `always`.
#[test]
fn hide_up_to_takes_one_spelling_of_each_number() {
    let pattern = whole_value(&template()["Parameters"]["HideUpTo"]).expect("a pattern");
    let taken: Vec<u64> = (0..=100_000).filter(|number| pattern.is_match(&number.to_string())).collect();
    assert!(taken.iter().copied().eq(HIDE_UP_TO_RANGE), "{} numbers, up to {:?}", taken.len(), taken.last());
    assert!(pattern.is_match("always"));
    for text in
        ["", " ", "-0", "+1", "00", "007", "1.0", "5e4", " 5", "5 ", "550000", "alway", "always0", "Always"]
    {
        assert!(!pattern.is_match(text), "{text:?}");
    }
}

/// The variables whose values CloudFormation would refuse, and the rules that they break; `None` if the template has no
/// such parameters.
fn refused_parameters(variables: &Value) -> Option<Vec<&str>> {
    let variables = variables.as_object().expect("variables");
    let given = variables.iter().filter_map(|(name, value)| {
        let parameter = template()["Parameters"].get(parameter_of(name))?;
        Some((name.as_str(), parameter, value.as_str().expect("text")))
    });
    let given: Vec<_> = given.collect();
    let refused = given.iter().filter(|(_, parameter, value)| is_refused(parameter, value));
    let refused = refused.map(|(name, ..)| *name).chain(broken_rules(variables));
    (!given.is_empty()).then(|| refused.collect())
}

/// The names of the template's rules that these variables break. As CloudFormation does it, with the functions that they
/// use.
fn broken_rules(variables: &Map<String, Value>) -> Vec<&'static str> {
    let value = |parameter: &str| {
        let given = variables.iter().find(|(name, _)| parameter_of(name) == parameter);
        let default = &template()["Parameters"][parameter]["Default"];
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), Into::into);
        text(given.map_or(default, |(_, value)| value))
    };
    let broken = |rule: &Value| {
        let mut assertions = rule["Assertions"].as_array().expect("assertions").iter();
        holds(&rule["RuleCondition"], &value) && !assertions.all(|it| holds(&it["Assert"], &value))
    };
    let rules = template()["Rules"].as_object().expect("rules");
    rules.iter().filter(|(_, rule)| broken(rule)).map(|(name, _)| name.as_str()).collect()
}

fn holds(condition: &Value, value: &impl Fn(&str) -> String) -> bool {
    let (function, arguments) = condition.as_object().and_then(|it| it.iter().next()).expect("a function");
    let arguments = arguments.as_array().expect("arguments");
    match function.as_str() {
        "Fn::Not" => !holds(&arguments[0], value),
        "Fn::And" => arguments.iter().all(|argument| holds(argument, value)),
        "Fn::Equals" => json!(value(arguments[0]["Ref"].as_str().expect("a parameter"))) == arguments[1],
        other => panic!("{other}"),
    }
}

/// `MaxAge` for `MAX_AGE`.
fn parameter_of(variable: &str) -> String {
    if variable == "POLICIES" {
        return "FunctionPolicies".to_owned();
    }
    variable.split('_').map(|word| format!("{}{}", &word[..1], word[1..].to_lowercase())).collect()
}

/// As CloudFormation does it: a pattern must match the whole value, and a number may have a fraction.
fn is_refused(parameter: &Value, value: &str) -> bool {
    let limit = |name: &str| parameter[name].as_f64();
    let off_list =
        parameter["AllowedValues"].as_array().is_some_and(|values| !values.contains(&json!(value)));
    let off_pattern = whole_value(parameter).is_some_and(|pattern| !pattern.is_match(value));
    let off_range = parameter["Type"] == "Number"
        && value.parse::<f64>().map_or(true, |number| {
            limit("MinValue").is_some_and(|min| number < min)
                || limit("MaxValue").is_some_and(|max| number > max)
        });
    off_list || off_pattern || off_range
}

fn whole_value(parameter: &Value) -> Option<Regex> {
    let pattern = parameter["AllowedPattern"].as_str()?;
    Some(Regex::new(&format!("^(?:{pattern})$")).expect("a pattern"))
}
