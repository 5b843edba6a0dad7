use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use comeback_engine::{CallFailure, HideUpTo, Policy, Record, What};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::account::{Batch, Call, Invoke, World, failure, with_room};
use crate::support::*;

/// The body contains the id, so that the test can find the message wherever it ends up.
fn message(id: usize, kind: usize) -> Record {
    let payload = format!(r#"{{"id":"<m-{id}>"}}"#);
    let (receive_count, body) = match kind {
        0 => (1, body(&payload)),
        1 | 2 => (2, body(&payload)),
        3 => (9, body(&enveloped(4, &payload))),
        4 => (2, replaced(&body(&payload), "orders", "payments")),
        5 => (2, replaced(&body(&payload), "Timeout", "Fatal")),
        6 => (2, body(&enveloped(100, &payload))),
        7 => (2, body(&format!(r#"{{"_retry_metadata":"<m-{id}>"}}"#))),
        8 => (1, format!("<m-{id}>{}", "x".repeat(400_000))),
        _ => (0, format!("<m-{id}>")),
    };
    // A message of kind 2 was received before, and still has to wait.
    let first_receive = if kind == 2 { NOW } else { FIRST_RECEIVE };
    let (message_id, receipt_handle) = (format!("m-{id}"), format!("<m-{id}>"));
    Record { message_id, receipt_handle, receive_count, first_receive, ..record(body) }
}

fn batch() -> impl Strategy<Value = Vec<Record>> {
    let message = (0..30usize, 0..10usize).prop_map(|(id, kind)| message(id, kind));
    vec(message, 0..40).prop_map(|mut records| {
        // All deliveries of one message have the same body.
        let mut bodies: HashMap<String, Record> = HashMap::new();
        for (n, record) in records.iter_mut().enumerate() {
            let original = bodies.entry(record.message_id.clone()).or_insert_with(|| record.clone()).clone();
            *record = Record { receipt_handle: format!("{} {n}", original.receipt_handle), ..original };
        }
        records
    })
}

fn batch_plan() -> impl Strategy<Value = Vec<Batch>> {
    let any = select(vec![
        Batch::Works,
        Batch::Fails,
        Batch::FailsFor(0),
        Batch::FailsFor(3),
        Batch::AnswersOnly(0),
        Batch::AnswersOnly(2),
        Batch::AnswersTooMuch,
        Batch::Panics,
        Batch::PanicsBeforeItsFuture,
    ]);
    vec(prop_oneof![2 => Just(Batch::Works), 1 => any], 1..8)
}

fn invoke_plan() -> impl Strategy<Value = Vec<Invoke>> {
    let any = select(vec![
        Invoke::Works,
        Invoke::Later,
        Invoke::NotFound,
        Invoke::TooLarge,
        Invoke::Refused,
        Invoke::Panics,
        Invoke::PanicsBeforeItsFuture,
    ]);
    vec(prop_oneof![1 => Just(Invoke::Works), 1 => any], 1..30)
}

/// Generates a result of reading the pauses parameter; `None` means that `PAUSES` is not set.
fn pauses_plan() -> impl Strategy<Value = Option<Result<Option<String>, CallFailure>>> {
    let open =
        |target| format!(r#"{{"v":1,"pauses":[{{"target":"{target}","from":1,"until":null,"spread":9}}]}}"#);
    let answers = vec![Ok(None), Ok(Some(open("*"))), Ok(Some("garbage".into())), Err(failure())];
    proptest::option::of(select(answers))
}

fn follow<B: Copy>(plan: Vec<B>) -> impl Fn() -> B {
    let calls = Cell::new(0);
    move || plan[calls.replace(calls.get() + 1) % plan.len()]
}

fn id_in(text: &str) -> String {
    let start = text.find('<').expect("an id") + 1;
    text[start..start + text[start..].find('>').expect("its end")].to_owned()
}

/// Returns the ids of the messages that may leave the retry queue because of this call.
fn ids_of(call: &Call) -> Vec<String> {
    match call {
        Call::Invoke(_, payload) => vec![id_in(payload)],
        Call::SendAgain(copies) => copies.iter().map(|copy| copy.message_id.clone()).collect(),
        _ => Vec::new(),
    }
}

fn unanswered_batch_plan() -> impl Strategy<Value = Vec<Batch>> {
    let any = select(vec![Batch::Fails, Batch::FailsFor(0), Batch::AnswersOnly(2), Batch::AnswerLost]);
    vec(prop_oneof![2 => Just(Batch::Works), 1 => any], 1..8)
}

fn unanswered_invoke_plan() -> impl Strategy<Value = Vec<Invoke>> {
    let any = select(vec![Invoke::Later, Invoke::AnswerLost, Invoke::NotFound, Invoke::Refused]);
    vec(prop_oneof![1 => Just(Invoke::Works), 2 => any], 1..30)
}

fn rule(backoff: u64) -> Policy {
    policy(|settings| {
        settings.max_retries = 50;
        settings.hide_up_to = HideUpTo::UpTo(1_000);
        settings.base_backoff = backoff;
        settings.max_backoff = backoff;
        settings.non_retryable_errors = vec!["Fatal".into()];
    })
}

fn set(ids: Vec<String>) -> HashSet<String> {
    let count = ids.len();
    let set: HashSet<String> = ids.into_iter().collect();
    assert_eq!(set.len(), count, "an id appears twice: {set:?}");
    set
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn each_message_has_exactly_one_end(
        records in batch(),
        hide in batch_plan(),
        invoke in invoke_plan(),
        send in batch_plan(),
        send_again in batch_plan(),
        left in 0..20u64,
        pauses in pauses_plan(),
        deadline in prop_oneof![3 => Just(usize::MAX), 2 => 0..30usize],
    ) {
        let world = World {
            hide: Box::new(follow(hide)),
            invoke: Box::new(follow(invoke)),
            send: Box::new(follow(send)),
            send_again: Box::new(follow(send_again)),
            read_pauses: Box::new(|| pauses.clone().expect("only a handler with a parameter reads")),
            ..World::default()
        };
        let mut environment = with_room(&rule(60), left);
        if pauses.is_some() {
            environment = environment.reading_pauses();
        }
        let report = world.handle_in(&mut environment, &records, NOW, deadline);

        let all: HashSet<String> = records.iter().map(|record| record.message_id.clone()).collect();
        let kept = set(report.batch_item_failures().map(Into::into).collect());
        let invoked = set(world.invoked.borrow().iter().map(|payload| id_in(payload)).collect());
        let sent = set(world.sent.borrow().iter().map(|dead_letter| id_in(&dead_letter.body)).collect());
        prop_assert!(invoked.is_disjoint(&sent), "both: {:?}", invoked.intersection(&sent));
        let moved = set(world.copies.borrow().iter().map(|copy| copy.message_id.clone()).collect());
        prop_assert!(moved.is_disjoint(&invoked) && moved.is_disjoint(&sent), "moved too: {moved:?}");
        let settled: HashSet<String> = invoked.union(&sent).chain(&moved).cloned().collect();
        prop_assert!(kept.is_disjoint(&settled), "settled and kept: {:?}", kept.intersection(&settled));
        prop_assert_eq!(&kept.union(&settled).cloned().collect::<HashSet<_>>(), &all);

        prop_assert_eq!(set(report.outcomes.iter().map(|o| o.message_id().to_owned()).collect()), all);
        for outcome in &report.outcomes {
            prop_assert_eq!(outcome.settled(), settled.contains(outcome.message_id()));
            prop_assert_eq!(outcome.delay().is_some(), moved.contains(outcome.message_id()));
            if !outcome.settled() || outcome.delay().is_some() {
                continue;
            }
            prop_assert_eq!(outcome.problem(), None);
            let ends_in = if invoked.contains(outcome.message_id()) { "reinvoke" } else { "dead_letter" };
            prop_assert_eq!(outcome.step(), Some(ends_in));
        }

        let calls = world.calls.borrow();
        prop_assert!(calls.len() <= deadline, "{} calls, deadline after {deadline}", calls.len());
        prop_assert!(world.most_in_flight.get() <= 10);
        let may_invoke = matches!(pauses, None | Some(Ok(None)));
        prop_assert!(may_invoke || invoked.is_empty(), "invoked {invoked:?}, with {pauses:?}");
        let tried = calls.iter().filter_map(|call| match call {
            Call::Invoke(_, payload) => Some(id_in(payload)),
            _ => None,
        });
        set(tried.collect()); // panics if a message was invoked twice
        let mut guarded = HashSet::new();
        for call in calls.iter() {
            match call {
                Call::Hide(entries) => {
                    prop_assert!(!entries.is_empty());
                    for (handle, secs) in entries {
                        let for_hours = (3_660..=43_170).contains(secs);
                        prop_assert!(for_hours || kept.contains(&id_in(handle)) && *secs > 0, "{handle}: {secs} s");
                        if for_hours {
                            guarded.insert(id_in(handle));
                        }
                    }
                }
                Call::SendAgain(copies) => {
                    prop_assert!(!copies.is_empty());
                    for copy in copies {
                        prop_assert!(guarded.contains(&copy.message_id), "moved without a guard: {copy:?}");
                        prop_assert_eq!(&id_in(&copy.body), &copy.message_id);
                        prop_assert!((1..=900).contains(&copy.delay));
                    }
                }
                Call::Count | Call::ReadPauses => {}
                Call::Invoke(function_arn, payload) => {
                    prop_assert_eq!(function_arn, TARGET);
                    prop_assert!(guarded.contains(&id_in(payload)), "invoked without a guard: {payload}");
                }
                Call::Send(dead_letters) => {
                    prop_assert!(!dead_letters.is_empty());
                    prop_assert!(dead_letters.iter().all(|dead_letter| dead_letter.size() <= 1_048_576));
                }
            }
        }
    }

    /// If a log line has a receipt handle, its message is hidden, and no copy of the event is in flight.
    #[test]
    fn only_recallable_messages_have_a_handle(
        records in batch(),
        hide in unanswered_batch_plan(),
        invoke in unanswered_invoke_plan(),
        send in unanswered_batch_plan(),
        send_again in unanswered_batch_plan(),
        left in 0..20u64,
        backoff in select(vec![60, 120, 121, 600, 43_000]),
        deadline in prop_oneof![3 => Just(usize::MAX), 2 => 0..30usize],
    ) {
        let world = World {
            hide: Box::new(follow(hide)),
            invoke: Box::new(follow(invoke)),
            send: Box::new(follow(send)),
            send_again: Box::new(follow(send_again)),
            ..World::default()
        };
        let report = world.handle_in(&mut with_room(&rule(backoff), left), &records, NOW, deadline);

        let accepted = world.invoked.borrow().iter().map(|payload| id_in(payload)).collect::<HashSet<_>>();
        let copied: HashSet<_> = world.copies.borrow().iter().map(|copy| copy.message_id.clone()).collect();
        let hidden: HashMap<_, _> = world.hidden.borrow().iter().cloned().collect();
        let handles: HashMap<_, _> = report
            .log_lines(NOW)
            .filter_map(|line| Some((line.message_id.into_owned(), line.receipt_handle?.into_owned())))
            .collect();
        let calls = world.calls.borrow();
        let called: HashSet<String> = calls.iter().flat_map(ids_of).collect();
        for outcome in &report.outcomes {
            let id = outcome.message_id();
            let is_on_its_way = accepted.contains(id) || copied.contains(id);
            let stays_hidden = outcome.visibility_timeout().filter(|timeout| timeout.as_secs() > 120);
            let Some(handle) = handles.get(id) else {
                let may_return = matches!(outcome.what, What::Defer { .. }) && !called.contains(id);
                prop_assert!(!may_return || stays_hidden.is_none(), "no handle: {outcome:?}");
                continue;
            };
            prop_assert!(!is_on_its_way && !outcome.settled(), "a handle: {outcome:?}");
            prop_assert_eq!(handle, &outcome.record.receipt_handle);
            prop_assert_eq!(hidden.get(handle).copied(), stays_hidden.map(|timeout| timeout.as_secs()));
            prop_assert!(stays_hidden.is_some());
        }
    }

    /// If every call succeeds, a message's outcome does not depend on the other messages in its batch.
    #[test]
    fn no_record_harms_another(records in batch()) {
        let ends = |records: &[Record]| {
            let world = World::default();
            let report = world.handle(records, &rule(60), NOW);
            let outcomes = report.outcomes.iter();
            let what = |what: &What| match what.clone() {
                What::Reinvoke { due, early, .. } => What::Reinvoke { due, invoke_request_id: None, early },
                other => other,
            };
            outcomes.map(|o| (o.message_id().to_owned(), (what(&o.what), o.location))).collect::<HashMap<_, _>>()
        };
        let together = ends(&records);
        for record in &records {
            let alone = ends(std::slice::from_ref(record));
            prop_assert_eq!(alone.get(&record.message_id), together.get(&record.message_id));
        }
    }
}
