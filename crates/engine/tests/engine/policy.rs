//! Tests of the settings.

use std::collections::HashMap;

use comeback_engine::{FunctionPattern, HandlerFunction, Policy, SettingError, seconds};

use crate::support::*;

#[test]
fn error_type_globs() {
    let policy = policy(|settings| {
        settings.non_retryable_errors = vec!["Validation*".into(), "E40?".into(), "Runtime.ExitError".into()];
    });
    for (error_type, matches) in [
        ("ValidationError", true),
        ("Validation", true),
        ("MyValidationError", false),
        ("validationerror", false),
        ("E404", true),
        ("E40", false),
        ("E4040", false),
        ("Runtime.ExitError", true),
        ("RuntimeXExitError", false),
    ] {
        let record = record(replaced(&body("7"), "Timeout", error_type));
        let dead_lettered = decided(&record, &policy, SENT) == Seen::DeadLetter("non_retryable_error");
        assert_eq!(dead_lettered, matches, "{error_type}");
    }
}

fn read(variables: &[(&str, &str)]) -> Result<Policy, Vec<SettingError>> {
    let mut all = HashMap::from([("TARGET_FUNCTIONS", ORDERS)]);
    all.extend(variables.iter().copied());
    Policy::from_variables(|name| all.get(name).map(ToString::to_string))
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
    assert!(!policy.settings().directives);
    assert!(read(&[("DIRECTIVES", " on ")]).unwrap().settings().directives);
}

#[test]
fn no_target_functions() {
    for nothing in ["", " , ,"] {
        assert!(read(&[("TARGET_FUNCTIONS", nothing)]).unwrap().keeps_everything(), "{nothing:?}");
    }
}

fn allows(pattern: &str, arn: &str) -> bool {
    let pattern: FunctionPattern = pattern.parse().expect("the test's pattern is valid");
    pattern.allows(arn)
}

#[test]
fn an_entry_allows_its_qualifier_or_any() {
    for qualifier in ["", ":$LATEST", ":$LATEST.PUBLISHED", ":7", ":live", ":a-b_C"] {
        assert!(allows(ORDERS, &format!("{ORDERS}{qualifier}")), "{qualifier}");
    }
    for only in ["$LATEST", "$LATEST.PUBLISHED", "7", "live"] {
        let pattern = format!("{ORDERS}:{only}");
        for qualifier in ["", ":$LATEST", ":$LATEST.PUBLISHED", ":7", ":77", ":live", ":Live"] {
            let allowed = qualifier.strip_prefix(':') == Some(only);
            assert_eq!(allows(&pattern, &format!("{ORDERS}{qualifier}")), allowed, "{only} {qualifier}");
        }
    }
}

#[test]
fn every_field_must_be_the_same() {
    for (field, other) in [
        ("arn:", "ARN:"),
        ("aws:", "aws-cn:"),
        ("lambda", "sqs"),
        ("eu-west-1", "eu-west-2"),
        ("123456789012", "123456789013"),
        ("function:", "layer:"),
        ("orders", "Orders"),
        ("orders", "orders2"),
        ("orders", "order"),
    ] {
        assert!(!allows(ORDERS, &replaced(ORDERS, field, other)), "{other}");
    }
}

#[test]
fn wildcards_in_the_name() {
    for (name, allowed, refused) in [
        ("*", &["a", "orders"][..], &[][..]),
        ("orders-*", &["orders-", "orders-eu", "orders-eu-2"], &["orders", "my-orders-eu"]),
        ("*-orders", &["eu-orders"], &["orders", "eu-orders-2"]),
        ("a*c*e", &["ace", "abcde", "a-c-c-e"], &["abc", "aec", "xace"]),
        ("**", &["orders"], &[]),
    ] {
        let pattern = replaced(ORDERS, "orders", name);
        for other in allowed {
            assert!(allows(&pattern, &replaced(ORDERS, "orders", other)), "{name} {other}");
        }
        for other in refused {
            assert!(!allows(&pattern, &replaced(ORDERS, "orders", other)), "{name} {other}");
        }
    }
}

#[test]
fn hostile_arns_are_never_allowed() {
    let any = replaced(ORDERS, "orders", "*");
    for arn in [
        "",
        "orders",
        "*",
        "123456789012:function:orders",
        "arn:aws:lambda:eu-west-1:123456789012:function",
        "arn:aws:lambda:eu-west-1:123456789012:function:",
        "arn:aws:lambda:eu-west-1:123456789012:function::live",
        "arn:aws:lambda:eu-west-1:123456789012:function:orders:",
        "arn:aws:lambda:eu-west-1:123456789012:function:orders:live:more",
        "arn:aws:lambda:eu-west-1:123456789012:function:orders:$",
        "arn:aws:lambda:eu-west-1:123456789012:function:orders:$OTHER",
        "arn:aws:lambda:eu-west-1:123456789012:function:orders:li/ve",
        "arn:aws:lambda:eu-west-1:123456789012:function:*",
        "arn:aws:lambda:eu-west-1:123456789012:function:or?ers",
        "arn:aws:lambda:eu-west-1:123456789012:function:orders/../x",
        "arn:aws:lambda:eu-west-1:123456789012:function:orders ",
        " arn:aws:lambda:eu-west-1:123456789012:function:orders",
        "arn:aws:lambda:eu-west-1:123456789012:function:orders\n",
        "arn:aws:lambda:eu-west-1:123456789012:function:orders\0",
        "arn:aws:lambda:eu-west-1:123456789012:function:ordérs",
        "arn:aws:lambda:eu-west-1:*:function:orders",
        "arn:aws:lambda:eu-west-1::function:orders",
        "arn:aws:lambda::123456789012:function:orders",
        "arn::lambda:eu-west-1:123456789012:function:orders",
        "arn:aws:lambda:eu-west-1:123456789012:function:x:arn:aws:lambda:eu-west-1:123456789012:function:orders",
    ] {
        assert!(!allows(&any, arn), "{arn:?}");
    }
}

#[test]
fn patterns_that_are_refused() {
    let no_arn =
        "is not a function ARN (arn:aws:lambda:REGION:ACCOUNT:function:NAME, with or without :QUALIFIER)";
    let wildcard = "has a * outside the function's name";
    let character = "has a character that is not allowed in a function's name or qualifier";
    for (from, to, refusal) in [
        (ORDERS, "", no_arn),
        (ORDERS, "*", no_arn),
        (ORDERS, "orders", no_arn),
        ("orders", "", no_arn),
        ("orders", "orders:", no_arn),
        ("orders", "orders:live:more", no_arn),
        ("123456789012", "12345678901", no_arn),
        ("123456789012", "12345678901x", no_arn),
        ("eu-west-1", "", no_arn),
        ("lambda", "sqs", no_arn),
        ("aws", "*", wildcard),
        ("eu-west-1", "*", wildcard),
        ("123456789012", "*", wildcard),
        ("orders", "orders:*", wildcard),
        ("orders", "or?ers", character),
        ("orders", "ord.ers", character),
        ("orders", "ord ers", character),
        ("orders", "orders:li?e", character),
        ("orders", "orders:$OTHER", character),
        ("orders", "ordérs", character),
    ] {
        let pattern = replaced(ORDERS, from, to);
        assert_eq!(pattern.parse::<FunctionPattern>().unwrap_err().to_string(), refusal, "{pattern}");
    }
}

#[test]
fn patterns_print_as_they_were_written() {
    for pattern in [ORDERS, "arn:aws-cn:lambda:cn-north-1:123456789012:function:a*b:live"] {
        assert_eq!(pattern.parse::<FunctionPattern>().unwrap().to_string(), pattern);
    }
}

#[test]
fn any_entry_may_allow_but_never_the_handler() {
    let policy = policy(|settings| {
        settings.target_functions = vec![
            "arn:aws:lambda:eu-west-1:123456789012:function:payments".into(),
            "arn:aws:lambda:eu-west-1:123456789012:function:*".into(),
        ];
        settings.handler = Some(HandlerFunction { name: "orders".into(), region: "eu-west-1".into() });
    });
    assert!(policy.allows(&replaced(ORDERS, "orders", "payments")));
    assert!(policy.allows(&replaced(ORDERS, "orders", "orders-2")));
    assert!(!policy.allows(ORDERS));
    assert!(!policy.allows(&format!("{ORDERS}:live")));
    assert_eq!(decided(&record(body("7")), &policy, SENT), Seen::DeadLetter("target_not_allowed"));
    let elsewhere = HandlerFunction { name: "orders".into(), region: "eu-west-2".into() };
    assert!(self::policy(|settings| settings.handler = Some(elsewhere)).allows(ORDERS));
}
