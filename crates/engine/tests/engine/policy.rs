use comeback_engine::{HandlerFunction, HideUpTo, Jitter, Policy, SettingError, Settings, Style};

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
fn max_age() {
    assert_eq!(refusals(|s| s.max_age = 59), ["MAX_AGE is 59 s; it must be 60 s to 1209600 s (14 days)"]);
    assert_eq!(
        refusals(|s| s.max_age = 1_209_601),
        ["MAX_AGE is 1209601 s; it must be 60 s to 1209600 s (14 days)"]
    );
    assert!(refusals(|s| s.max_age = 60).is_empty());
    assert!(refusals(|s| s.max_age = 1_209_600).is_empty());
}

#[test]
fn max_retries() {
    assert_eq!(refusals(|s| s.max_retries = 10_001), ["MAX_RETRIES is 10001; it must be 0 to 10000"]);
    assert!(refusals(|s| s.max_retries = 10_000).is_empty());
    assert!(refusals(|s| s.max_retries = 0).is_empty());
}

#[test]
fn hide_up_to() {
    assert_eq!(
        refusals(|s| s.hide_up_to = HideUpTo::UpTo(55_001)),
        ["HIDE_UP_TO is 55001; it must be 0 to 55000, or always"]
    );
    for accepted in [HideUpTo::Always, HideUpTo::UpTo(0), HideUpTo::UpTo(55_000)] {
        assert!(refusals(|s| s.hide_up_to = accepted).is_empty());
    }
}

#[test]
fn maximum_concurrency() {
    for (refused, accepted) in [(1, 2), (1_001, 1_000)] {
        assert_eq!(
            refusals(|s| s.maximum_concurrency = refused),
            [format!("MAXIMUM_CONCURRENCY is {refused}; it must be 2 to 1000")]
        );
        assert!(refusals(|s| s.maximum_concurrency = accepted).is_empty());
    }
}

#[test]
fn max_backoff() {
    // The base of 1 s is not to blame.
    assert_eq!(
        refusals(|s| s.max_backoff = 0),
        ["MAX_BACKOFF is 0 s; it must be 1 s to 43170 s (12 hours less 30 s)"]
    );
    assert_eq!(
        refusals(|s| s.max_backoff = 43_171),
        ["MAX_BACKOFF is 43171 s; it must be 1 s to 43170 s (12 hours less 30 s)"]
    );
    assert!(refusals(|s| s.max_backoff = 1).is_empty());
}

#[test]
fn base_backoff() {
    assert_eq!(
        refusals(|s| s.base_backoff = 0),
        ["BASE_BACKOFF is 0 s; it must be 1 s to MAX_BACKOFF (43170 s)"]
    );
    assert_eq!(
        refusals(|s| (s.base_backoff, s.max_backoff) = (11, 10)),
        ["BASE_BACKOFF is 11 s; it must be 1 s to MAX_BACKOFF (10 s)"]
    );
    assert!(refusals(|s| (s.base_backoff, s.max_backoff) = (10, 10)).is_empty());
}

#[test]
fn no_target_functions() {
    assert!(policy(|settings| settings.target_functions.clear()).keeps_everything());
    assert!(!policy(|_| ()).keeps_everything());
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
