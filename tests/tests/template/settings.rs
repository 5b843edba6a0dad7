//! Tests that docs/settings.md and template.yaml describe the settings as `comeback_engine::SETTINGS` declares them.

use std::fs;
use std::ops::RangeInclusive;

use comeback_engine::{HIDE_UP_TO_RANGE, Kind, SETTINGS, Setting, Unset, seconds};
use comeback_tests::{pages, root, template};
use regex::Regex;
use serde_json::{Map, Value, json};

const PAGE: &str = "docs/settings.md";

/// The start of a variable's row in docs/settings.md, up to the variable's meaning.
fn row(setting: &Setting) -> String {
    let words = |text: &str| text.replace("eventSourceARN", "`eventSourceARN`");
    let default = match (setting.default, &setting.kind) {
        (Unset::Means(text), _) => words(text),
        (Unset::Is(""), _) => "empty".to_owned(),
        (Unset::Is(text), Kind::Seconds { .. } | Kind::SecondsUpTo { .. }) => {
            format!("`{}`", seconds(text).expect("a duration"))
        }
        (Unset::Is(text), _) => format!("`{text}`"),
    };
    let of = |range: &RangeInclusive<u64>| format!("{} to {}", range.start(), range.end());
    let range = match &setting.kind {
        Kind::Seconds { range, .. } | Kind::Number(range) => of(range),
        Kind::SecondsUpTo { range, most } => format!("{} to `{most}`", range.start()),
        Kind::SecondsList { range, entries, .. } => {
            format!("up to {entries} durations of {}, none shorter than the one before", of(range))
        }
        Kind::NumberOrAlways(range) => format!("{}, or `always`", of(range)),
        Kind::Choice(values) => {
            values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
        }
        Kind::Globs => "`errorType` globs".to_owned(),
        Kind::Functions => "function ARNs, `*` in the name".to_owned(),
        Kind::Policies => "entries separated by `;`".to_owned(),
        Kind::Queue if setting.name == "DEAD_LETTER_QUEUE_URL" => {
            "a standard queue, not the retry queue".to_owned()
        }
        Kind::Queue => "a standard queue".to_owned(),
        Kind::Parameter => "the name of an SSM parameter".to_owned(),
    };
    format!("| `{}` | {default} | {range} | {}", setting.name, setting.meaning)
}

/// Rows of the first table in docs/settings.md. The settings' meanings have no links or backticks.
fn rows() -> Vec<String> {
    let page = pages::read(PAGE);
    let rows = page.lines().skip_while(|line| !line.starts_with("| variable |")).skip(2);
    let link = Regex::new(r"\[([^]]*)\]\([^)]*\)").expect("a pattern");
    let plain = |row: &str| {
        let (cells, meaning) = row.trim_end_matches(" |").rsplit_once(" | ").expect("cells");
        format!("{cells} | {}", link.replace_all(meaning, "$1").replace('`', ""))
    };
    rows.take_while(|line| line.starts_with('|')).map(plain).collect()
}

#[test]
fn page_has_a_row_for_each_setting() {
    let rows = rows();
    for (index, setting) in SETTINGS.iter().enumerate() {
        let expected = row(setting);
        let said = rows.get(index).map_or("", String::as_str);
        assert!(said.starts_with(&expected), "{PAGE} says\n{said}\nand needs this row there:\n{expected} |");
    }
    assert_eq!(rows.len(), SETTINGS.len());
}

/// The settings that are parameters of the template.
fn with_parameter() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(|setting| !matches!(setting.kind, Kind::Queue | Kind::Parameter))
}

#[test]
fn template_repeats_defaults_and_ranges() {
    let template = template();
    for Setting { name, kind, default, .. } in with_parameter() {
        let parameter = &parameter_of(name);
        let said = &template["Parameters"][parameter];
        let default = match default {
            Unset::Is(text) => *text,
            Unset::Means(_) => "",
        };
        let expected = match kind {
            Kind::Seconds { range, .. } | Kind::SecondsUpTo { range, .. } | Kind::Number(range) => {
                assert_eq!(said["MinValue"], json!(range.start()), "{parameter}");
                assert_eq!(said["MaxValue"], json!(range.end()), "{parameter}");
                json!(seconds(default).expect("a number"))
            }
            Kind::Choice(values) => {
                assert_eq!(said["AllowedValues"], json!(values), "{parameter}");
                json!(default)
            }
            _ => json!(default),
        };
        assert_eq!(said["Default"], expected, "the template's default of {parameter}");
        let passed = &template["Resources"]["RetryHandler"]["Properties"]["Environment"]["Variables"][name];
        assert!(passed.to_string().contains(&format!("\"{parameter}\"")), "{name} is passed as {passed}");
    }
}

#[test]
fn template_passes_the_variables_that_the_handler_reads() {
    let template = template();
    let passed = &template["Resources"]["RetryHandler"]["Properties"]["Environment"]["Variables"];
    let mut known: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
    let mut names: Vec<_> = passed.as_object().unwrap().keys().map(String::as_str).collect();
    known.sort_unstable();
    names.sort_unstable();
    assert_eq!(names, known);
}

/// Tests that the template's pattern, the CDK construct and docs/settings.md all let an entry of `POLICIES` contain any
/// per-function setting.
#[test]
fn policies_entry_may_set_every_function_setting() {
    let page = pages::read(PAGE);
    let listed = page.split("- An entry may set ").nth(1).and_then(|text| text.split(". ").next());
    let listed = listed.expect("the page's list");
    let construct = pages::read("infra/src/function-policy.ts");
    let pattern = whole_value(&template()["Parameters"]["FunctionPolicies"]).expect("a pattern");
    for Setting { name, kind, default, .. } in Setting::of_functions() {
        assert!(listed.contains(&format!("`{name}`")), "{PAGE} lists {listed}, not {name}");
        assert!(
            construct.contains(&format!(": '{name}',")),
            "the construct's FunctionPolicy does not set {name}"
        );
        let value = match (default, kind) {
            (Unset::Is(text), _) => *text,
            (Unset::Means(_), Kind::SecondsList { .. }) => "20s,5m",
            (Unset::Means(text), kind) => panic!("{name}: a value is needed for {kind:?}, not {text}"),
        };
        let takes = |value: &str| pattern.is_match(&format!("orders {name}={value}"));
        assert!(takes(value), "the pattern of FunctionPolicies refuses {name}={value}");
        if let Kind::Choice(values) = kind {
            let refused: Vec<_> = values.iter().filter(|value| !takes(value)).collect();
            assert!(refused.is_empty() && !takes("other"), "{name}={refused:?}");
        }
    }
}

#[test]
fn template_takes_as_many_backoffs_as_the_handler() {
    let pattern = whole_value(&template()["Parameters"]["Backoffs"]).expect("a pattern");
    let Kind::SecondsList { entries, .. } = Setting::named("BACKOFFS").kind else { panic!("it is a list") };
    let takes = |count: usize| pattern.is_match(&vec!["20s"; count].join(","));
    assert_eq!([takes(entries), takes(entries + 1)], [true, false]);
}

/// Uses the list of refused values that the handler and the CDK construct are tested with.
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

/// Tests that the template refuses invalid values for parameters that it uses itself, for example in conditions and IAM
/// policies.
#[test]
fn template_refuses_odd_parameters() {
    for (name, value) in [
        ("Example", "maybe"),
        ("Alarms", "yes"),
        ("AlarmTopicArn", "on-call"),
        ("AlarmTopicArn", "arn:aws:sns:eu-west-1:123456789012:on-call.fifo"),
        ("Dashboard", "maybe"),
        // An IAM policy cannot name a key by its alias.
        ("KmsKeyArn", "alias/orders"),
        ("KmsKeyArn", "arn:aws:kms:eu-west-1:123456789012:alias/orders"),
        ("KmsKeyArn", "1234abcd-12ab-34cd-56ef-1234567890ab"),
        ("TargetFunctions", "orders"),
        ("TargetFunctions", "arn:aws:lambda:eu-west-1:123456789012:function:orders:$latest"),
    ] {
        assert!(is_refused(&template()["Parameters"][name], value), "{name}={value}");
    }
}

/// `HideUpTo` is a string with a pattern, because a parameter of type `Number` would not accept `always`.
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

/// The variables that CloudFormation would refuse, with the rules they break. `None` if no variable has a parameter.
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

/// Names of the template's rules that these variables break.
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

/// Name of a variable's parameter in the template, such as `MaxAge` for `MAX_AGE`.
fn parameter_of(variable: &str) -> String {
    if variable == "POLICIES" {
        return "FunctionPolicies".to_owned();
    }
    variable.split('_').map(|word| format!("{}{}", &word[..1], word[1..].to_lowercase())).collect()
}

/// Returns true if CloudFormation would refuse the value. CloudFormation matches a pattern against the whole value, and
/// accepts decimals in a number.
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
