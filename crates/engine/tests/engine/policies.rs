//! Tests of `POLICIES`.

use std::collections::HashMap;

use comeback_engine::{BatchEvent, Environment, Policies, Policy, Record, Setting, SettingError, Timestamp};
use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::sample::select;

use crate::account::{Call, Invoke, World, run};
use crate::support::{NOW, ORDERS, T0, TARGET, after, body, enveloped, received_again, record, replaced};

const ALL: &str = "arn:aws:lambda:eu-west-1:123456789012:function:*";

type Variables = HashMap<&'static str, String>;

fn read(variables: &Variables) -> Result<Policies, Vec<SettingError>> {
    Policies::from_variables(|name| match name {
        "TARGET_FUNCTIONS" => Some(ALL.into()),
        "HIDE_UP_TO" => Some("always".into()),
        _ => variables.get(name).cloned(),
    })
}

fn with(text: &str) -> Result<Policies, Vec<String>> {
    read(&[("POLICIES", text.to_owned())].into())
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// Returns the `MAX_RETRIES` that applies to the function. These tests use it to tell policies apart.
fn of(policies: &Policies, function: &str) -> u64 {
    policies.of(&format!("arn:aws:lambda:eu-west-1:123456789012:function:{function}")).settings().max_retries
}

#[test]
fn only_the_first_matching_entry_counts() {
    let policies = with(
        "orders:live MAX_RETRIES=1; orders MAX_RETRIES=2 ;;\n orders* MAX_RETRIES=3 MAX_AGE=1h; \
         arn:aws:lambda:eu-west-1:123456789012:function:export-*:$LATEST\tMAX_RETRIES=4;",
    )
    .unwrap();
    for (function, retries) in [
        ("orders:live", 1),
        ("orders", 2),
        ("orders:$LATEST", 2),
        ("orders-eu:live", 3),
        ("export-eu:$LATEST", 4),
        ("export-eu", 1_000),
        ("export-eu:live", 1_000),
        ("my-orders", 1_000),
    ] {
        assert_eq!(of(&policies, function), retries, "{function}");
    }
    assert_eq!(policies.of(TARGET).max_age(), policies.stack().max_age(), "not that of the third entry");
    assert_eq!(policies.of("orders").settings().max_retries, 1_000, "not an ARN");
}

#[test]
fn a_bare_name_means_the_queues_account_and_region() {
    let elsewhere = ["eu-west-1:999999999999", "eu-west-2:123456789012"]
        .map(|place| format!("arn:aws:lambda:{place}:function:orders"));
    let mut environment = Environment::new(with("orders MAX_RETRIES=2").unwrap());
    assert_eq!(elsewhere.each_ref().map(|arn| environment.policies().of(arn).settings().max_retries), [2, 2]);
    let queue_arn = Some("arn:aws:sqs:eu-west-1:123456789012:retries".into());
    let batch = BatchEvent { queue_arn, ..BatchEvent::default() };
    run(environment.handle(&batch, NOW, &|| false, &World::default()));
    assert_eq!(
        elsewhere.each_ref().map(|arn| environment.policies().of(arn).settings().max_retries),
        [1_000, 1_000]
    );
    assert_eq!(of(environment.policies(), "orders:live"), 2);
}

#[test]
fn an_entrys_backoff_replaces_the_stacks() {
    let ceilings = |stack: &[(&'static str, &str)], entry: &str| {
        let mut variables: Variables = stack.iter().map(|(name, value)| (*name, (*value).into())).collect();
        variables.insert("POLICIES", format!("orders {entry}"));
        let policies = read(&variables).unwrap();
        [1, 2, 3, 4].map(|retry| policies.of(TARGET).backoff().ceiling(retry).as_secs())
    };
    let list = [("BACKOFFS", "20s, 5m,30m")];
    assert_eq!(ceilings(&list, "MAX_AGE=2h"), [20, 300, 1_800, 1_800]);
    assert_eq!(ceilings(&list, "BACKOFFS=7,7"), [7, 7, 7, 7]);
    assert_eq!(ceilings(&list, "MAX_BACKOFF=30"), [10, 20, 30, 30]);
    assert_eq!(ceilings(&list, "BASE_BACKOFF=1m"), [60, 120, 240, 480]);
    let grown = [("BASE_BACKOFF", "10"), ("MAX_BACKOFF", "40")];
    assert_eq!(ceilings(&grown, "BACKOFFS=1,2"), [1, 2, 2, 2]);
    assert_eq!(ceilings(&grown, "MAX_BACKOFF=20"), [10, 20, 20, 20]);
}

#[test]
fn a_mistake_in_the_stack_is_reported_once() {
    let variables = [
        ("MAX_AGE", "30".to_owned()),
        ("POLICIES", "orders MAX_RETRIES=2; payments MAX_RETRIES=10001".to_owned()),
    ];
    let errors: Vec<String> = read(&variables.into()).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "MAX_AGE is 30 s; it must be 60 s to 1209600 s (14 days)",
            r#"POLICIES entry "payments MAX_RETRIES=10001" is refused: MAX_RETRIES is 10001; it must be 0 to 10000"#
        ]
    );
}

/// An entry's `ENVELOPE` and `MAX_AGE` apply to the re-invocation and to the visibility timeout before it.
#[test]
fn a_functions_policy_applies_to_call_and_guard() {
    let policies = with("orders ENVELOPE=inline MAX_AGE=2h").unwrap();
    for (function, style, guarded, policy) in [
        ("orders", r#"{"_retry_metadata":"#, 3_300..3_600, Some("orders")),
        ("payments", r#""_original_payload""#, 3_600..7_260, None),
    ] {
        let world = World::default();
        let record = received_again(replaced(&body(r#"{"n":1}"#), "orders", function));
        let records = [record];
        let report = world.handle_in(&mut Environment::new(policies.clone()), &records, NOW, 9);
        assert_eq!(report.outcomes[0].policy.as_deref(), policy);
        let calls = world.calls.borrow();
        let [Call::Hide(hidden), Call::Invoke(_, payload)] = calls.as_slice() else { panic!("{calls:?}") };
        assert!(guarded.contains(&hidden[0].1), "{function}: {hidden:?}");
        assert!(payload.contains(style) && payload.contains("style") == (function == "orders"), "{payload}");
    }
}

fn some_pauses() -> impl Strategy<Value = fn(Timestamp) -> String> {
    let texts: [fn(Timestamp) -> String; 4] = [
        |_| r#""pauses":[]"#.into(),
        |now| format!(r#""pauses":[{{"target":"*","from":{},"until":null,"spread":0}}]"#, now.as_secs() - 60),
        |now| {
            let (from, until) = (T0.as_secs(), now.as_secs() - 60);
            format!(r#""pauses":[{{"target":"*","from":{from},"until":{until},"spread":7200}}]"#)
        },
        |now| {
            format!(r#""pauses":[],"retries":[{{"target":"*","at":{},"within":3600}}]"#, now.as_secs() - 60)
        },
    ];
    select(texts.to_vec())
}

/// Generates values for some of a policy's variables; most combinations are valid.
fn some_settings() -> impl Strategy<Value = Variables> {
    let setting = select(Setting::of_functions().map(|setting| setting.name).collect::<Vec<_>>())
        .prop_flat_map(|name| {
            let values = match name {
                "MAX_AGE" => &["60", "90s", "2h", "14d"][..],
                "MAX_RETRIES" => &["0", "3", "185"],
                "BASE_BACKOFF" => &["1", "20", "7m"],
                "MAX_BACKOFF" => &["60", "1h", "43170"],
                "BACKOFFS" => &["5", "20s,5m,30m,2h"],
                "JITTER" => &["full", "equal", "decorrelated", "none"],
                "ENVELOPE" => &["wrap", "inline"],
                "NON_RETRYABLE_ERRORS" => &["", "Fatal*,Oops"],
                _ => &["on", "off"],
            };
            (Just(name), select(values).prop_map(ToOwned::to_owned))
        });
    btree_map(any::<u8>(), setting, 0..5).prop_map(|settings| settings.into_values().collect())
}

fn some_record() -> impl Strategy<Value = Record> {
    let error = select(&["Timeout", "FatalError", "RetryAfter", "NonRetryable"][..]);
    let function = select(&["orders", "payments"][..]);
    (0..30u64, error, function, 0..4u32, 0..100_000_000u64).prop_map(
        |(attempt, error, function, receive_count, later)| {
            let payload = r#"{"n":1}"#;
            let text = if attempt == 0 { body(payload) } else { body(&enveloped(attempt, payload)) };
            let text = replaced(&replaced(&text, "Timeout", error), "too slow", "900");
            let first_receive = after(T0, 1_000 + later);
            Record { receive_count, first_receive, ..record(replaced(&text, "orders", function)) }
        },
    )
}

/// Merges the settings of `entry` into the stack's variables, as the handler does for an entry in `POLICIES`.
fn merged(stack: &Variables, entry: &Variables) -> Variables {
    let mut merged = stack.clone();
    if entry.contains_key("BACKOFFS") {
        merged.retain(|name, _| !name.ends_with("_BACKOFF"));
    }
    if entry.keys().any(|name| name.ends_with("_BACKOFF")) {
        merged.remove("BACKOFFS");
    }
    merged.extend(entry.clone());
    merged
}

/// Handles a message twice, once with answered and once with unanswered `Invoke` calls. Returns all outcomes and
/// calls.
fn performed(policies: &Policies, record: &Record, pauses: fn(Timestamp) -> String, later: u64) -> String {
    let mut all = Vec::new();
    let now = after(record.first_receive, later);
    for invoke in [Invoke::Works, Invoke::AnswerLost] {
        let world = World {
            invoke: Box::new(move || invoke),
            read_pauses: Box::new(move || Ok(Some(format!(r#"{{"v":1,{}}}"#, pauses(now))))),
            ..World::default()
        };
        let mut environment = Environment::new(policies.clone()).reading_pauses();
        let mut report = world.handle_in(&mut environment, std::slice::from_ref(record), now, 9);
        // The field `policy` names the entry that applied. A stack that has the settings itself has no such entry.
        report.outcomes.iter_mut().for_each(|outcome| outcome.policy = None);
        all.push(format!("{:?} {:?}", report.outcomes, world.calls.borrow()));
    }
    all.join("\n")
}

proptest! {
    #[test]
    fn empty_policies_change_nothing(
        stack in some_settings(),
        record in some_record(),
        pauses in some_pauses(),
        later in 0..200_000_000u64,
        text in select(&["", " ;\n; "][..]),
    ) {
        let empty = read(&merged(&stack, &[("POLICIES", text.to_owned())].into()));
        let plain = Policy::from_variables(|name| match name {
            "TARGET_FUNCTIONS" => Some(ALL.into()),
            "HIDE_UP_TO" => Some("always".into()),
            _ => stack.get(name).cloned(),
        });
        match (empty, plain) {
            (Ok(empty), Ok(plain)) => {
                let performed = |policies| performed(policies, &record, pauses, later);
                prop_assert_eq!(performed(&empty), performed(&plain.into()));
            }
            (empty, plain) => prop_assert_eq!(empty.err(), plain.err()),
        }
    }

    /// An entry affects only matching functions, as if its settings were the stack's.
    #[test]
    fn an_entry_is_a_stacks_policy_for_its_functions(
        stack in some_settings(),
        entry in some_settings(),
        record in some_record(),
        pauses in some_pauses(),
        later in 0..200_000_000u64,
    ) {
        prop_assume!(!entry.is_empty() && read(&stack).is_ok());
        let settings: Vec<String> = entry.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text = format!("{ORDERS} {}", settings.join(" "));
        let both = read(&merged(&stack, &[("POLICIES", text)].into()));
        let alone = read(&merged(&stack, &entry));
        let (both, alone) = match (both, alone) {
            (Ok(both), Ok(alone)) => (both, alone),
            (both, alone) => {
                prop_assert_eq!(both.is_err(), alone.is_err());
                return Ok(());
            }
        };
        let is_its = record.body.contains(TARGET);
        let own = if is_its { alone } else { read(&stack).unwrap() };
        let performed = |policies| performed(policies, &record, pauses, later);
        prop_assert_eq!(performed(&both), performed(&own));
    }
}
