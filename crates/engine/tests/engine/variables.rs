use std::collections::HashMap;

use comeback_engine::{Policy, SettingError, seconds};

use crate::policy::texts;
use crate::support::*;

/// What is said of these variables, with a valid `TARGET_FUNCTIONS` unless it is among them.
fn refused(variables: &[(&str, &str)]) -> Vec<String> {
    texts(read(variables))
}

fn read(variables: &[(&str, &str)]) -> Result<Policy, Vec<SettingError>> {
    let mut all = HashMap::from([("TARGET_FUNCTIONS", ORDERS)]);
    all.extend(variables.iter().copied());
    Policy::from_variables(|name| all.get(name).map(ToString::to_string))
}

#[test]
fn variables_that_cannot_be_read() {
    let duration = "it must be whole seconds, or a duration such as 90s, 24h or 14d";
    for (name, value, text) in [
        ("MAX_AGE", "a day", format!("MAX_AGE is \"a day\"; {duration}")),
        ("BASE_BACKOFF", "", format!("BASE_BACKOFF is \"\"; {duration}")),
        ("MAX_BACKOFF", "1.5s", format!("MAX_BACKOFF is \"1.5s\"; {duration}")),
        ("MAX_RETRIES", "1.5", "MAX_RETRIES is \"1.5\"; it must be a whole number".into()),
        ("MAX_RETRIES", "-1", "MAX_RETRIES is \"-1\"; it must be a whole number".into()),
        ("JITTER", "Full", "JITTER is \"Full\"; it must be full, equal, decorrelated or none".into()),
        ("HIDE_UP_TO", "many", "HIDE_UP_TO is \"many\"; it must be 0 to 55000, or always".into()),
        ("HIDE_UP_TO", "", "HIDE_UP_TO is \"\"; it must be 0 to 55000, or always".into()),
        ("MAXIMUM_CONCURRENCY", "10.5", "MAXIMUM_CONCURRENCY is \"10.5\"; it must be a whole number".into()),
        ("ENVELOPE", "", "ENVELOPE is \"\"; it must be wrap or inline".into()),
        ("DIRECTIVES", "true", "DIRECTIVES is \"true\"; it must be on or off".into()),
        ("DIRECTIVES", "", "DIRECTIVES is \"\"; it must be on or off".into()),
    ] {
        assert_eq!(refused(&[(name, value)]), [text]);
    }
}

#[test]
fn every_bad_variable_is_reported_at_once() {
    let errors = refused(&[
        ("MAX_AGE", "10"),
        ("MAX_RETRIES", "many"),
        ("BASE_BACKOFF", "2h"),
        ("MAX_BACKOFF", "1h"),
        ("JITTER", "some"),
        ("ENVELOPE", "paper"),
        ("TARGET_FUNCTIONS", "orders"),
    ]);
    let names: Vec<&str> = errors.iter().filter_map(|error| error.split(' ').next()).collect();
    let expected = ["MAX_RETRIES", "JITTER", "ENVELOPE", "MAX_AGE", "BASE_BACKOFF", "TARGET_FUNCTIONS"];
    assert_eq!(names, expected);
}

#[test]
fn a_variable_that_cannot_be_read_does_not_hide_or_blame_another() {
    let errors = refused(&[("MAX_BACKOFF", "soon"), ("BASE_BACKOFF", "600"), ("MAX_AGE", "1s")]);
    assert_eq!(errors.len(), 2, "{errors:?}");
}

#[test]
fn durations() {
    for (text, expected) in [
        ("86400", 86_400),
        ("24h", 86_400),
        ("14d", 1_209_600),
        ("90s", 90),
        ("1h 30m", 5_400),
        ("1h30m", 5_400),
        ("2000ms", 2),
        ("0", 0),
    ] {
        assert_eq!(seconds(text), Ok(expected), "{text}");
    }
    for text in [
        "",
        " ",
        "1.5",
        "1.5s",
        "500ms",
        "-1",
        "-1s",
        "1x",
        "h",
        "99999999999999999999",
        "99999999999999999d",
    ] {
        let refusal = "must be whole seconds, or a duration such as 90s, 24h or 14d".to_owned();
        assert_eq!(seconds(text), Err(refusal), "{text:?}");
    }
}

#[test]
fn variables_reach_the_rules() {
    let variables = [
        ("MAX_AGE", " 10m "),
        ("MAX_RETRIES", "5"),
        ("BASE_BACKOFF", "7"),
        ("MAX_BACKOFF", "20s"),
        ("JITTER", "none"),
        ("ENVELOPE", "inline"),
        ("DIRECTIVES", "off"),
        ("NON_RETRYABLE_ERRORS", "Fatal*, ,Oops"),
    ];
    let policy = read(&variables).unwrap();
    let delay = |attempt| decided(&record(body(&enveloped(attempt, "7"))), &policy, SENT);
    assert_eq!(
        [1, 2, 4, 5].map(delay).map(|seen| format!("{seen:?}")),
        ["Defer(14)", "Defer(20)", "Defer(20)", "DeadLetter(\"max_retries\")"]
    );
    assert_eq!(decided(&record(body("7")), &policy, after(T0, 600_001)), Seen::DeadLetter("max_age"));
    let oops = record(replaced(&body("7"), "Timeout", "Oops"));
    assert_eq!(decided(&oops, &policy, SENT), Seen::DeadLetter("non_retryable_error"));
    assert!(!policy.directives());
    assert!(read(&[("DIRECTIVES", " on ")]).unwrap().directives());
}

#[test]
fn target_functions_that_are_none() {
    assert_eq!(
        refused(&[("TARGET_FUNCTIONS", &format!("orders, {ORDERS}, {ORDERS}:*, {ORDERS}?"))]),
        [
            "TARGET_FUNCTIONS entry \"orders\" is not a function ARN (arn:aws:lambda:REGION:ACCOUNT:function:NAME, with or without :QUALIFIER)",
            "TARGET_FUNCTIONS entry \"arn:aws:lambda:eu-west-1:123456789012:function:orders:*\" has a * outside the function's name",
            "TARGET_FUNCTIONS entry \"arn:aws:lambda:eu-west-1:123456789012:function:orders?\" has a character that no function's name or qualifier has",
        ]
    );
}

#[test]
fn no_target_functions() {
    for nothing in ["", " , ,"] {
        assert!(read(&[("TARGET_FUNCTIONS", nothing)]).unwrap().keeps_everything(), "{nothing:?}");
    }
    let text = "TARGET_FUNCTIONS is not set; name the function ARNs that may be re-invoked, or set it to nothing to keep what arrives";
    assert_eq!(texts(Policy::from_variables(|_| None)), [text]);
}

#[test]
fn the_handler_is_known_by_what_its_runtime_says() {
    let runtime = |region| refused(&[("AWS_LAMBDA_FUNCTION_NAME", "orders"), ("AWS_REGION", region)]);
    let itself = format!(
        "TARGET_FUNCTIONS entry \"{ORDERS}\" is the retry handler itself, which must never be its own target"
    );
    assert_eq!(runtime("eu-west-1"), [itself]);
    assert!(runtime("eu-west-2").is_empty());
}
