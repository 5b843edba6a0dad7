use std::time::Duration;

use comeback_engine::{Record, Retry, Step};

use crate::fakes::{Call, World};
use crate::support::*;

#[test]
fn an_empty_batch_calls_nothing() {
    let world = World::default();
    let report = world.handle(&[], &policy(|_| ()), NOW);
    assert!(report.outcomes.is_empty() && world.calls.borrow().is_empty());
}

#[test]
fn ten_first_receives_are_one_visibility_call_and_all_kept() {
    let world = World::default();
    let records = first_receives(10);
    let report = world.handle(&records, &policy(|settings| settings.base_backoff = 9), NOW);
    let hidden = (0..10).map(|n| (format!("h-{n}"), 9)).collect();
    assert_eq!(*world.calls.borrow(), [Call::Hide(hidden)]);
    assert_eq!(kept(&report), ids(0..10));
    for outcome in &report.outcomes {
        let (due, visibility_timeout) = (after(NOW, 9_000), Duration::from_secs(9));
        assert_eq!(outcome.step, Some(Step::Defer { due, visibility_timeout }));
        let retry = Retry {
            function_arn: TARGET.into(),
            number: 1,
            key: "r-1".into(),
            request_id: Some("r-1".into()),
            error_type: Some("Timeout".into()),
            directive: None,
            first_failure: T0,
        };
        assert_eq!(outcome.retry, Some(retry));
        assert_eq!((outcome.problem.as_ref(), outcome.hidden_for), (None, None));
    }
}

#[test]
fn any_number_of_deferrals_go_to_the_queue_at_once_in_order() {
    let world = World::default();
    world.handle(&first_receives(25), &policy(|_| ()), NOW);
    let calls = world.calls.borrow();
    let [Call::Hide(entries)] = calls.as_slice() else { panic!("{calls:?}") };
    let handles: Vec<&str> = entries.iter().map(|(handle, _)| handle.as_str()).collect();
    assert_eq!(handles, (0..25).map(|n| format!("h-{n}")).collect::<Vec<_>>());
}

#[test]
fn ten_due_messages_are_ten_concurrent_invokes_of_the_arn_as_it_stands() {
    let world = World { invoke_steps: 100, ..World::default() };
    let records = due(10);
    let report = world.handle(&records, &policy(|_| ()), NOW);
    let payload = |n| enveloped(1, &format!("{n}")).replace("r-0", "r-1");
    let expected: Vec<Call> = (0..10).map(|n| Call::Invoke(TARGET.into(), payload(n))).collect();
    assert_eq!(*world.calls.borrow(), expected);
    assert_eq!(world.most_in_flight.get(), 10, "all at once");
    assert!(kept(&report).is_empty());
    assert!(report.outcomes.iter().all(|outcome| outcome.settled() && outcome.problem.is_none()));
    let mut made: Vec<_> = report.outcomes.iter().filter_map(|it| it.invoke_request_id.clone()).collect();
    made.sort();
    assert_eq!(made.len(), 10, "each has the request id that its invoke was answered with");
    made.dedup();
    assert_eq!(made.len(), 10);
}

#[test]
fn concurrency_is_bounded() {
    let world = World { invoke_steps: 100, ..World::default() };
    let report = world.handle(&due(35), &policy(|_| ()), NOW).batch_item_failures().count();
    assert_eq!((world.most_in_flight.get(), world.invoked.borrow().len(), report), (10, 35, 0));
}

#[test]
fn deferrals_go_out_first_then_invokes_then_dead_letters() {
    let mut records = [garbage(1), due(1), first_receives(1)].concat();
    for (n, record) in records.iter_mut().enumerate() {
        record.message_id = format!("m-{n}");
    }
    let world = World::default();
    let report = world.handle(&records, &policy(|_| ()), NOW);
    assert!(matches!(world.calls.borrow()[..], [Call::Hide(_), Call::Invoke(..), Call::Send(_)]));
    assert_eq!(kept(&report), ["m-2"]);
    // The report keeps the order of the batch.
    let steps: Vec<_> = report.outcomes.iter().filter_map(|outcome| outcome.step.as_ref()).collect();
    assert_eq!(steps.into_iter().map(Step::name).collect::<Vec<_>>(), ["dead_letter", "reinvoke", "defer"]);
}

#[test]
fn any_number_of_dead_letters_go_to_the_queue_at_once_in_order() {
    let world = World::default();
    world.handle(&garbage(23), &policy(|_| ()), NOW);
    assert_eq!(world.calls.borrow().len(), 1);
    let bodies: Vec<String> = world.sent.borrow().iter().map(|letter| letter.body.clone()).collect();
    assert_eq!(bodies, (0..23).map(|n| format!("garbage {n}")).collect::<Vec<_>>());
}

#[test]
fn copies_of_one_message_are_handled_once_by_the_later_receipt() {
    let copy = |handle: &str, receive_count| Record {
        receipt_handle: handle.into(),
        receive_count,
        ..record(body("7"))
    };
    let policy = policy(|settings| settings.base_backoff = 2_000);
    let early = after(FIRST_RECEIVE, 1_000);
    for (records, handle) in [
        ([copy("a", 2), copy("b", 3)], "b"),
        ([copy("a", 3), copy("b", 2)], "a"),
        ([copy("a", 2), copy("b", 2)], "b"),
    ] {
        let world = World::default();
        let report = world.handle(&records, &policy, early);
        assert_eq!(*world.calls.borrow(), [Call::Hide(vec![(handle.into(), 1_999)])]);
        assert_eq!(kept(&report), ["m-1"]);
    }
    let world = World::default();
    let report = world.handle(&[copy("a", 2), copy("b", 3)], &policy, NOW).batch_item_failures().count();
    assert_eq!((world.invoked.borrow().len(), report), (1, 0));
}

#[test]
fn a_re_invocation_goes_on_with_its_events_trace() {
    let headers = ["Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1", "Root=1"];
    let mut records = due(3);
    for (record, header) in records.iter_mut().zip(headers) {
        record.trace_header = Some(header.into());
    }
    let world = World::default();
    let report = world.handle(&records, &policy(|_| ()), NOW);
    assert_eq!(*world.traces.borrow(), [Some(headers[0].to_owned()), None, None]);
    let roots: Vec<Option<&str>> = report.outcomes.iter().map(|outcome| outcome.trace).collect();
    assert_eq!(roots, [Some("1-5759e988-bd862e3fe1be46a994272793"), None, None]);
}
