//! Settings: every refusal with its text, defaults, durations; and `TARGET_FUNCTIONS`, field by field.

use std::collections::HashMap;

use comeback_engine::{
    FunctionPattern, HandlerFunction, HideUpTo, Jitter, Policy, SettingError, Settings, Style, seconds,
};

use crate::support::*;

/// What is said of settings with one change.
fn refusals(change: impl FnOnce(&mut Settings)) -> Vec<String> {
    let mut settings = settings();
    change(&mut settings);
    texts(Policy::new(settings))
}

pub(crate) fn texts(result: Result<Policy, Vec<SettingError>>) -> Vec<String> {
    let errors = result.err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn the_defaults() {
    let expected = Settings {
        hide_up_to: HideUpTo::UpTo(50_000),
        maximum_concurrency: 10,
        max_age: 86_400,
        max_retries: 185,
        base_backoff: 1,
        max_backoff: 43_170,
        jitter: Jitter::Full,
        envelope: Style::Wrap,
        directives: true,
        non_retryable_errors: Vec::new(),
        target_functions: Vec::new(),
        handler: None,
    };
    assert_eq!(Settings::default(), expected);
}

#[test]
fn numbers_are_held_to_their_ranges() {
    let max_age = "it must be 60 s to 1209600 s (14 days)";
    let max_backoff = "it must be 1 s to 43170 s (12 hours less 30 s)";
    type Set = fn(&mut Settings, u64);
    let cases: [(Set, u64, String); 11] = [
        (|s, n| s.max_age = n, 59, format!("MAX_AGE is 59 s; {max_age}")),
        (|s, n| s.max_age = n, 1_209_601, format!("MAX_AGE is 1209601 s; {max_age}")),
        (|s, n| s.max_retries = n, 10_001, "MAX_RETRIES is 10001; it must be 0 to 10000".into()),
        (
            |s, n| s.hide_up_to = HideUpTo::UpTo(n),
            55_001,
            "HIDE_UP_TO is 55001; it must be 0 to 55000, or always".into(),
        ),
        (|s, n| s.maximum_concurrency = n, 1, "MAXIMUM_CONCURRENCY is 1; it must be 2 to 1000".into()),
        (|s, n| s.maximum_concurrency = n, 1_001, "MAXIMUM_CONCURRENCY is 1001; it must be 2 to 1000".into()),
        // The base of 1 s is not to blame.
        (|s, n| s.max_backoff = n, 0, format!("MAX_BACKOFF is 0 s; {max_backoff}")),
        (|s, n| s.max_backoff = n, 43_171, format!("MAX_BACKOFF is 43171 s; {max_backoff}")),
        (|s, n| s.base_backoff = n, 0, "BASE_BACKOFF is 0 s; it must be 1 s to MAX_BACKOFF (43170 s)".into()),
        (
            |s, n| (s.base_backoff, s.max_backoff) = (n, 10),
            11,
            "BASE_BACKOFF is 11 s; it must be 1 s to MAX_BACKOFF (10 s)".into(),
        ),
        (
            |s, n| s.base_backoff = n,
            43_171,
            "BASE_BACKOFF is 43171 s; it must be 1 s to MAX_BACKOFF (43170 s)".into(),
        ),
    ];
    for (set, refused, text) in cases {
        assert_eq!(refusals(|s| set(s, refused)), [text]);
    }
    let accepted: [fn(&mut Settings); 10] = [
        |s| s.max_age = 60,
        |s| s.max_age = 1_209_600,
        |s| s.max_retries = 0,
        |s| s.max_retries = 10_000,
        |s| s.hide_up_to = HideUpTo::UpTo(0),
        |s| s.hide_up_to = HideUpTo::UpTo(55_000),
        |s| s.maximum_concurrency = 2,
        |s| s.maximum_concurrency = 1_000,
        |s| s.max_backoff = 1,
        |s| (s.base_backoff, s.max_backoff) = (10, 10),
    ];
    for set in accepted {
        assert!(refusals(set).is_empty());
    }
}

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
        ("com.acme.Orders$ValidationException", true),
        ("Function<Acme::E404>", true),
        ("com.acme.MyValidation", false),
    ] {
        let record = record(replaced(&body("7"), "Timeout", error_type));
        let given_up = decided(&record, &policy, SENT) == Seen::DeadLetter("non_retryable_error");
        assert_eq!(given_up, matches, "{error_type}");
    }
}

#[test]
fn the_handler_as_a_target() {
    let handler = |region: &str| Some(HandlerFunction { name: "orders".into(), region: region.into() });
    assert_eq!(
        refusals(|s| s.handler = handler("eu-west-1")),
        [
            "TARGET_FUNCTIONS entry \"arn:aws:lambda:eu-west-1:123456789012:function:orders\" is the retry handler itself, which must never be its own target"
        ]
    );
    assert!(refusals(|s| s.handler = handler("eu-west-2")).is_empty());
}

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

fn allows(pattern: &str, arn: &str) -> bool {
    let pattern: FunctionPattern = pattern.parse().expect("the test's pattern is valid");
    pattern.allows(arn)
}

fn refusal(pattern: &str) -> String {
    pattern.parse::<FunctionPattern>().expect_err("the test's pattern is refused").to_string()
}

#[test]
fn an_entry_without_a_qualifier_allows_any() {
    for qualifier in ["", ":$LATEST", ":$LATEST.PUBLISHED", ":7", ":live", ":a-b_C"] {
        assert!(allows(ORDERS, &format!("{ORDERS}{qualifier}")), "{qualifier}");
    }
}

#[test]
fn an_entry_with_a_qualifier_allows_only_that_one() {
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
fn entries_that_are_no_function_arns() {
    let text =
        "is not a function ARN (arn:aws:lambda:REGION:ACCOUNT:function:NAME, with or without :QUALIFIER)";
    for pattern in [
        "",
        "*",
        "orders",
        "arn:aws:lambda:eu-west-1:123456789012:function:",
        "arn:aws:lambda:eu-west-1:123456789012:function:orders:",
        "arn:aws:lambda:eu-west-1:123456789012:function:orders:live:more",
        "arn:aws:lambda:eu-west-1:12345678901:function:orders",
        "arn:aws:lambda:eu-west-1:12345678901x:function:orders",
        "arn:aws:lambda::123456789012:function:orders",
        "arn:aws:sqs:eu-west-1:123456789012:function:orders",
    ] {
        assert_eq!(refusal(pattern), text, "{pattern}");
    }
}

#[test]
fn a_wildcard_stands_in_the_name_only() {
    for pattern in [
        "arn:*:lambda:eu-west-1:123456789012:function:orders",
        "arn:aws:lambda:*:123456789012:function:orders",
        "arn:aws:lambda:eu-west-1:*:function:orders",
        "arn:aws:lambda:eu-west-1:123456789012:function:orders:*",
    ] {
        assert_eq!(refusal(pattern), "has a * outside the function's name", "{pattern}");
    }
}

#[test]
fn characters_that_no_function_has() {
    for name in ["or?ers", "ord.ers", "ord ers", "orders:li?e", "orders:$OTHER", "ordérs"] {
        let text = "has a character that no function's name or qualifier has";
        assert_eq!(refusal(&replaced(ORDERS, "orders", name)), text, "{name}");
    }
}

#[test]
fn patterns_print_as_they_were_written() {
    for pattern in [ORDERS, "arn:aws-cn:lambda:cn-north-1:123456789012:function:a*b:live"] {
        assert_eq!(pattern.parse::<FunctionPattern>().unwrap().to_string(), pattern);
    }
}

#[test]
fn any_entry_may_allow_and_never_the_handler_itself() {
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
}

#[test]
fn the_handlers_name_in_another_region_is_another_function() {
    let policy = policy(|settings| {
        settings.handler = Some(HandlerFunction { name: "orders".into(), region: "eu-west-2".into() });
    });
    assert!(policy.allows(ORDERS));
}
