use comeback_engine::{FunctionPattern, HandlerFunction};

use crate::support::*;

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
