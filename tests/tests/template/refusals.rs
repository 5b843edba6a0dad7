use std::fs;

use comeback_engine::HIDE_UP_TO_RANGE;
use comeback_tests::{root, template};
use regex::Regex;
use serde_json::{Value, json};

/// The tests of the handler and of the construct read the same list, which marks what the template cannot refuse.
#[test]
fn what_the_handler_refuses_the_deployment_refuses() {
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

/// A pattern, because a number could not be `always` too.
#[test]
fn hide_up_to_takes_each_number_of_its_range_in_one_spelling() {
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

/// The variables whose value CloudFormation would refuse; `None` if the template takes none of them.
fn refused_parameters(variables: &Value) -> Option<Vec<&str>> {
    let variables = variables.as_object().expect("variables");
    let given = variables.iter().filter_map(|(name, value)| {
        let parameter = template()["Parameters"].get(parameter_of(name))?;
        Some((name.as_str(), parameter, value.as_str().expect("text")))
    });
    let given: Vec<_> = given.collect();
    let refused = given.iter().filter(|(_, parameter, value)| is_refused(parameter, value));
    (!given.is_empty()).then(|| refused.map(|(name, ..)| *name).collect())
}

/// `MaxAge` for `MAX_AGE`.
fn parameter_of(variable: &str) -> String {
    variable.split('_').map(|word| format!("{}{}", &word[..1], word[1..].to_lowercase())).collect()
}

/// As CloudFormation reads a parameter: a pattern is for the whole value, and a number may have a fraction.
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
