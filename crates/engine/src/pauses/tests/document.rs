//! The document on the wire.

use super::*;

const WHOLE: &str = r#"{"v":1,"pauses":[{"target":"*","from":1700000000,"until":1700003600,"spread":0},{"target":"arn:aws:lambda:eu-west-1:123456789012:function:orders","from":1700000001,"until":null,"spread":1800,"by":"ops","why":"a \"bad\" deploy","concurrency":null},{"target":"arn:aws:lambda:eu-west-1:123456789012:function:payments:live","from":1700000002,"until":null,"spread":60,"concurrency":7}]}"#;

fn refused(text: &str) -> String {
    Pauses::read(text).unwrap_err().to_string()
}

/// A document with one pause, of which a member is changed.
fn with(from: &str, to: &str) -> String {
    let text = r#"{"v":1,"pauses":[{"target":"*","from":10,"until":20,"spread":5}]}"#;
    assert!(text.contains(from), "{from} is not in {text}");
    text.replace(from, to)
}

#[test]
fn each_member_is_read_and_written_as_it_stood_on_2026_11_22() {
    let pauses = Pauses::read(WHOLE).unwrap();
    assert_eq!(pauses.write(), WHOLE);
    let [all, orders, payments] = [0, 1, 2].map(|index| pauses.iter().nth(index).unwrap().clone());
    assert_eq!((all.target, all.from, all.until), (PauseTarget::All, at(0), Some(at(3_600))));
    assert_eq!((all.spread, all.by, all.concurrency), (Duration::ZERO, None, Concurrency::Untouched));
    assert_eq!((orders.until, orders.by.as_deref()), (None, Some("ops")));
    assert_eq!(
        (orders.why.as_deref(), orders.concurrency),
        (Some("a \"bad\" deploy"), Concurrency::WasUnreserved)
    );
    assert_eq!((payments.target.to_string().as_str(), payments.concurrency), (PAYMENTS, Concurrency::Was(7)));
}

#[test]
fn what_later_versions_add_is_ignored() {
    let text = with(r#""spread":5"#, r#""spread":5,"until_deploy":[1],"note":{"a":"}"}"#);
    let added = text.replace(r#"{"v":1,"#, r#"{"then":null,"v":1,"#);
    assert_eq!(Pauses::read(&added), Pauses::read(&with("5", "5")));
    assert_eq!(Pauses::read(r#"{"v":1,"pauses":[]}"#), Ok(Pauses::default()));
}

#[test]
fn anything_else_is_garbled_and_says_where() {
    for (text, expected) in [
        ("", "not a JSON object"),
        ("none", "not a JSON object"),
        (r#"{"v":1}"#, "missing field `pauses` at line 1 column 7"),
        (r#"{"pauses":[]}"#, "missing field `v` at line 1 column 13"),
        (r#"{"v":2,"pauses":7}"#, "v is 2, and this version reads 1 only"),
        (r#"{"v":1,"pauses":[7]}"#, "pause 1: not a JSON object"),
        (r#"{"v":1,"v":1,"pauses":[]}"#, "duplicate field `v` at line 1 column 10"),
        (&with(r#""target":"*","#, ""), "pause 1: missing field `target` at line 1 column 33"),
        (&with(r#","until":20"#, ""), "pause 1: missing field `until` at line 1 column 35"),
        (&with(r#","spread":5"#, ""), "pause 1: missing field `spread` at line 1 column 35"),
        (&with("10", "-1"), "pause 1: wrong type, expected u64 at line 1 column 23"),
        (&with("10", r#""ten""#), "pause 1: wrong type, expected u64 at line 1 column 26"),
        (&with("20", "9"), "pause 1: it ends before it begins"),
        (
            &with("20", "1700000000000"),
            "pause 1: from and until must be seconds since the epoch, before the year 10000",
        ),
        (
            &with("10", "1700000000000"),
            "pause 1: from and until must be seconds since the epoch, before the year 10000",
        ),
        (&with(":5", ":1209601"), "pause 1: spread must be seconds, at most 1209600 (14 days)"),
        (
            &with(r#""*""#, r#""orders""#),
            "pause 1: target is not a function ARN (arn:aws:lambda:REGION:ACCOUNT:function:NAME, with or without :QUALIFIER), and is not *",
        ),
        (&with(":5", r#":5,"concurrency":-1"#), "pause 1: wrong type, expected u32 at line 1 column 62"),
        (&with(":5", r#":5,"concurrency":"7""#), "pause 1: wrong type, expected u32 at line 1 column 63"),
    ] {
        assert_eq!(refused(text), format!("the pauses are unreadable: {expected}"), "{text}");
    }
    assert!(!refused(&with(r#""*""#, r#""hunter2""#)).contains("hunter2"), "it is logged");
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(pauses in any_pauses()) {
        prop_assert_eq!(Pauses::read(&pauses.write()), Ok(pauses));
    }

    #[test]
    fn no_text_makes_it_panic(text in r#"[\x00-\x7fé]{0,60}"#, cut in 0..WHOLE.len()) {
        let _ = Pauses::read(&text);
        prop_assert!(Pauses::read(&WHOLE[..cut]).is_err());
    }
}
