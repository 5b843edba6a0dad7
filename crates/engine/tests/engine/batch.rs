//! Tests of the AWS calls that the handler makes for a batch.

use std::cell::Cell;
use std::collections::HashSet;

use comeback_engine::{
    BatchEvent, Cause, DueBy, Environment, HideUpTo, IncompleteMessage, Location, Policies, Policy, Record,
    Timestamp, What,
};
use proptest::prelude::*;

use crate::account::{Batch, Call, Invoke, World, failure, run, with_room};
use crate::support::*;

#[test]
fn first_receives_are_one_visibility_call_and_all_kept() {
    let world = World::default();
    let records = first_receives(25);
    let report = world.handle(&records, &policy(|settings| settings.base_backoff = 9), NOW);
    let hidden = (0..25).map(|n| (format!("h-{n}"), 9)).collect();
    assert_eq!(*world.calls.borrow(), [Call::Hide(hidden)]);
    assert_eq!(kept(&report), ids(0..25));
    for outcome in &report.outcomes {
        let (due, due_by) = (after(NOW, 9_000), DueBy::Policy);
        let deferred = What::Defer { due, due_by, delay: 9, early: None, failure: None };
        assert_eq!((&outcome.what, outcome.location), (&deferred, Location::Hidden));
        let event = outcome.event.as_ref().expect("it was parsed");
        assert_eq!((&*event.function_arn, event.retry, event.first_failure), (TARGET, 1, T0));
        assert_eq!((&*event.origin_request_id, event.error_type()), ("r-1", Some("Timeout")));
    }
}

#[test]
fn due_messages_are_invoked_concurrently() {
    let world = World { invoke_steps: 100, ..World::default() };
    let records = due(10);
    let report = world.handle(&records, &policy(|_| ()), NOW);
    let payload = |n| enveloped(1, &format!("{n}")).replace("r-0", "r-1");
    let expected: Vec<Call> = (0..10).map(|n| Call::Invoke(TARGET.into(), payload(n))).collect();
    let calls = world.calls.borrow();
    assert!(matches!(calls[0], Call::Hide(_)) && calls[1..] == expected, "{calls:?}");
    assert_eq!(world.most_in_flight.get(), 10, "all at once");
    assert!(kept(&report).is_empty());
    assert!(report.outcomes.iter().all(|outcome| outcome.settled() && outcome.problem().is_none()));
    let made = report.outcomes.iter().filter_map(|outcome| match &outcome.what {
        What::Reinvoke { invoke_request_id, .. } => invoke_request_id.clone(),
        _ => None,
    });
    let made: HashSet<_> = made.collect();
    assert_eq!(made.len(), 10, "each has the request id that its invoke was answered with");
}

#[test]
fn the_first_call_guards_invokes() {
    let policy = policy(|settings| settings.hide_up_to = HideUpTo::UpTo(1_000));
    let world = World { invoke: Box::new(|| Invoke::Later), ..World::default() };
    let mut environment = with_room(&policy, 2);
    let records = [first_receives(1), due(2).split_off(1)].concat();
    let report = world.handle_in(&mut environment, &records, NOW, usize::MAX);
    let calls = world.calls.borrow();
    let [Call::Hide(first), Call::Invoke(..), Call::Hide(anew), ..] = calls.as_slice() else {
        panic!("{calls:?}")
    };
    let handles: Vec<&str> = first.iter().map(|(handle, _)| handle.as_str()).collect();
    assert_eq!(handles, ["h-0", "h-1"], "one call for both");
    assert!(
        (3_660..=7_260).contains(&first[1].1),
        "an hour from the end of the batch at the latest: {first:?}"
    );
    assert!(
        anew[0].0 == "h-1" && (1..=4).contains(&anew[0].1),
        "refused, so its own time is restored: {anew:?}"
    );
    assert_eq!((report.moves.made, kept(&report)), (0, ids(0..2)), "a guard takes no room");
    assert_eq!(report.unguarded, None);
}

/// Asserts that 2,000 times, in seconds, are spread evenly over the hour that begins at `least`.
fn assert_even_over_an_hour(times: &[u64], least: u64) {
    assert!(times.iter().all(|secs| (least..=least + 3_600).contains(secs)));
    let quarters =
        [0, 1, 2, 3].map(|n| times.iter().filter(|&&secs| (secs - least).min(3_599) / 900 == n).count());
    assert!(quarters.iter().all(|count| (430..570).contains(count)), "{quarters:?} of 2,000 in each quarter");
}

#[test]
fn guards_are_spread_and_leave_time_for_a_last_try() {
    let guard = |record: Record, policy: &Policy, now| {
        let world = World::default();
        world.handle(&[record], policy, now);
        let calls = world.calls.borrow();
        let [Call::Hide(hidden), Call::Invoke(..)] = calls.as_slice() else { panic!("{calls:?}") };
        hidden[0].1
    };
    let guards: Vec<u64> = (0..2_000)
        .map(|n| {
            let record = Record { message_id: format!("m-{n}"), ..received_again(body("7")) };
            guard(record, &policy(|_| ()), NOW)
        })
        .collect();
    assert_even_over_an_hour(&guards, 3_660);
    for (max_age, margin) in [(86_400, 60), (100, 10)] {
        let policy = policy(|settings| settings.max_age = max_age);
        let before_the_end = |secs| Timestamp::from_secs(T0.as_secs() + max_age - secs);
        let left = 60 + 2 * margin;
        if left < max_age {
            assert_eq!(guard(received_again(body("7")), &policy, before_the_end(left)), left - margin);
        }
        let too_late = before_the_end((left - 1).min(max_age - 5));
        assert!(guard(received_again(body("7")), &policy, too_late) >= 3_660, "no last try is left");
    }
}

#[test]
fn without_a_guard_a_retry_is_made_and_a_move_is_not() {
    for hide in [Batch::Fails, Batch::Panics, Batch::PanicsBeforeItsFuture, Batch::AnswersOnly(0)] {
        let world = World { hide: Box::new(move || hide), ..World::default() };
        let records = [due(2), first_receives(3).split_off(2)].concat();
        let policy = policy(|settings| settings.hide_up_to = HideUpTo::UpTo(0));
        let report = world.handle(&records, &policy, NOW);
        assert_eq!((world.invoked.borrow().len(), world.copies.borrow().len()), (2, 0), "{hide:?}");
        assert!(report.unguarded.is_some() && kept(&report) == [records[2].message_id.as_str()], "{hide:?}");
        let problems = report.outcomes.iter().map(|outcome| outcome.problem().is_some());
        assert_eq!(problems.collect::<Vec<_>>(), [false, false, true], "{hide:?}");
    }
}

/// If the call to hide a message before its move fails, the message is not moved. A second call hides it for its
/// wait, even though `HIDE_UP_TO` is 0.
#[test]
fn an_unguarded_move_is_hidden_for_its_wait() {
    let failures = Cell::new(1);
    let hide = move || if failures.replace(0) > 0 { Batch::Fails } else { Batch::Works };
    let world = World { hide: Box::new(hide), ..World::default() };
    let records = first_receives(1);
    let policy = policy(|settings| settings.hide_up_to = HideUpTo::UpTo(0));
    let report = world.handle(&records, &policy, NOW);
    let calls = world.calls.borrow();
    let [Call::Hide(guarded), Call::Hide(hidden)] = calls.as_slice() else { panic!("{calls:?}") };
    assert!(guarded[0].1 >= 3_660 && hidden[0].1 <= 20, "{calls:?}");
    assert_eq!((kept(&report).len(), report.moves.made), (1, 0));
}

/// Two messages could not be hidden before their re-invocations, so they must not be moved, and take all the room for
/// hidden messages.
#[test]
fn messages_whose_guard_failed_take_the_room_first() {
    let failures = Cell::new(1);
    let hide = move || if failures.replace(0) > 0 { Batch::Fails } else { Batch::Works };
    let world = World {
        hide: Box::new(hide),
        invoke: Box::new(|| Invoke::Later),
        send: Box::new(|| Batch::Fails),
        ..World::default()
    };
    // The unreadable message is longer than the other messages, so it would be moved last.
    let mut unreadable = record("[".repeat(9_000));
    unreadable.message_id = "unreadable".into();
    let records = [due(2), vec![unreadable]].concat();
    let policy = policy(|settings| settings.hide_up_to = HideUpTo::UpTo(1_000));
    let report = world.handle_in(&mut with_room(&policy, 2), &records, NOW, usize::MAX);
    let copies: Vec<String> = world.copies.borrow().iter().map(|copy| copy.message_id.clone()).collect();
    assert_eq!((copies, kept(&report).len()), (vec!["unreadable".into()], 2));
}

#[test]
fn a_duplicate_is_handled_by_its_later_receipt() {
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
fn a_reinvocation_continues_the_trace() {
    let headers = ["Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1", "Root=1"];
    let mut records = due(3);
    for (record, header) in records.iter_mut().zip(headers) {
        record.trace_header = Some(header.into());
    }
    let world = World::default();
    let report = world.handle(&records, &policy(|_| ()), NOW);
    assert_eq!(*world.traces.borrow(), [Some(headers[0].to_owned()), None, None]);
    let traces = report.log_lines(NOW).map(|line| line.trace);
    let root = "1-5759e988-bd862e3fe1be46a994272793".into();
    assert_eq!(traces.collect::<Vec<_>>(), [Some(root), None, None]);
}

/// Nine messages that need one call to hide messages, three `Invoke` calls, and one call to send dead-letters.
fn mixed() -> Vec<Record> {
    let mut records = [garbage(3), due(3), first_receives(3)].concat();
    for (n, record) in records.iter_mut().enumerate() {
        (record.message_id, record.receipt_handle) = (format!("m-{n}"), format!("h-{n}"));
    }
    records
}

#[test]
fn after_the_deadline_no_call_starts() {
    for (calls, settled, passed) in [
        (0, 0, &[][..]),
        (1, 0, &[true]),
        (2, 1, &[false]),
        (3, 2, &[false]),
        (4, 3, &[false]),
        (5, 6, &[false, true]),
        (6, 6, &[false, false]),
    ] {
        let world = World::default();
        let report = world.handle_until(&mixed(), &policy(|_| ()), NOW, calls);
        assert_eq!(world.calls.borrow().len(), calls.min(5));
        assert_eq!(kept(&report).len(), 9 - settled, "after {calls} calls");
        assert_eq!(world.invoked.borrow().len() + world.sent.borrow().len(), settled);
        assert_eq!(*world.passed.borrow(), passed, "the queues are given the deadline, after {calls} calls");
        let in_order: Vec<String> =
            report.outcomes.iter().map(|outcome| outcome.message_id().into()).collect();
        assert_eq!(in_order, ids(0..9));
        let not_started = |it| problem(it) == "not started: too close to the function's deadline";
        assert!(calls > 0 || report.outcomes.iter().all(not_started));
        assert_eq!(report.unguarded, None, "no call that needs a guard");
    }
}

#[test]
fn a_deferral_is_kept_even_if_hiding_fails() {
    use Batch::*;
    for hide in [Works, Fails, FailsFor(1), AnswersOnly(1), AnswersTooMuch, Panics, PanicsBeforeItsFuture] {
        let world = World { hide: Box::new(move || hide), ..World::default() };
        let records = first_receives(3);
        let report = world.handle(&records, &policy(|_| ()), NOW);
        assert_eq!(kept(&report), ids(0..3), "{hide:?}");
        assert_eq!(world.calls.borrow().len(), 1, "{hide:?}");
        let failed = report.outcomes.iter().map(|outcome| outcome.problem().is_some());
        let expected = match hide {
            Works | AnswersTooMuch => [false; 3],
            FailsFor(_) => [false, true, false],
            AnswersOnly(_) => [false, true, true],
            _ => [true; 3],
        };
        assert_eq!(failed.collect::<Vec<_>>(), expected, "{hide:?}");
    }
}

#[test]
fn an_invoke_that_may_work_later_is_kept_and_hidden() {
    for invoke in [Invoke::Later, Invoke::AnswerLost, Invoke::Panics, Invoke::PanicsBeforeItsFuture] {
        let next = Cell::new(0);
        // Only the second of the three calls fails.
        let fails = || if next.replace(next.get() + 1) == 1 { invoke } else { Invoke::Works };
        let world = World { invoke: Box::new(fails), ..World::default() };
        let records = due(3);
        let report = world.handle(&records, &policy(|_| ()), NOW);
        assert_eq!(kept(&report), ["m-1"], "{invoke:?}");
        let outcome = &report.outcomes[1];
        let delay = outcome.visibility_timeout().unwrap().as_secs();
        assert_eq!(world.calls.borrow().last(), Some(&Call::Hide(vec![("h-1".into(), delay)])));
        let What::Keep { cause, due: Some(_), .. } = outcome.what else { panic!("{outcome:?}") };
        assert_eq!(
            cause,
            if invoke == Invoke::Later { Cause::Refused } else { Cause::Unanswered },
            "{invoke:?}"
        );
        match invoke {
            Invoke::Later => {
                assert_eq!(outcome.problem(), Some(&failure()));
                assert!((1..=4).contains(&delay), "full jitter under 2^2 s: {delay}");
            }
            Invoke::AnswerLost => assert_eq!(problem(outcome), "no answer"),
            _ => assert_eq!(problem(outcome), "internal error (a panic; see the log above)"),
        }
        if invoke != Invoke::Later {
            assert!((3_600..=7_200).contains(&delay), "it may have been accepted: {delay}");
            assert!(outcome.problem().unwrap().remedy.is_some(), "an ERROR in the log");
        }
    }
}

/// Returns the visibility timeout, in seconds, that the handler sets after an `Invoke` call without a response.
fn hidden_unanswered(record: Record, policy: &Policy, now: Timestamp) -> u64 {
    let world = World { invoke: Box::new(|| Invoke::AnswerLost), ..World::default() };
    let records = [record];
    let report = world.handle(&records, policy, now);
    assert!(!report.outcomes[0].settled());
    report.outcomes[0].visibility_timeout().expect("it was hidden").as_secs()
}

#[test]
fn unanswered_invokes_are_hidden_one_to_two_hours() {
    let hidden: Vec<u64> = (0..2_000)
        .map(|n| {
            let record = Record { message_id: format!("m-{n}"), ..received_again(body("7")) };
            hidden_unanswered(record, &policy(|_| ()), NOW)
        })
        .collect();
    assert_even_over_an_hour(&hidden, 3_600);
    let again = |receive_count| {
        let record = Record { receive_count, ..received_again(body("7")) };
        hidden_unanswered(record, &policy(|_| ()), NOW)
    };
    assert_ne!(again(3), again(4), "each receive draws anew");
}

#[test]
fn an_unanswered_invoke_leaves_time_for_a_last_try() {
    // The invoke takes 20 s, and the last retry comes `margin` before the event reaches `MAX_AGE`.
    for (max_age, margin) in [(86_400, 60), (7_200, 60), (100, 10), (60, 6)] {
        let policy = policy(|settings| settings.max_age = max_age);
        let before_the_end = |secs| Timestamp::from_secs(T0.as_secs() + max_age - secs);
        for left in [3_660, 3_600, 20 + 2 * margin + 1, 20 + 2 * margin] {
            if left < max_age {
                let hidden = hidden_unanswered(received_again(body("7")), &policy, before_the_end(left));
                assert_eq!(hidden, left - 20 - margin, "{left} s before {max_age} s end");
            }
        }
        let too_late = before_the_end(20 + 2 * margin - 1);
        let hidden = hidden_unanswered(received_again(body("7")), &policy, too_late);
        assert!(hidden >= 3_600, "no last try is left: what comes back is dead-lettered");
    }
}

#[test]
fn an_unhidden_message_reports_no_delay() {
    let world =
        World { invoke: Box::new(|| Invoke::Later), hide: Box::new(|| Batch::Fails), ..World::default() };
    let records = due(1);
    let report = world.handle(&records, &policy(|_| ()), NOW);
    assert_eq!((report.outcomes[0].visibility_timeout(), kept(&report)), (None, ids(0..1)));
    assert_eq!(report.outcomes[0].problem(), Some(&failure()));
}

#[test]
fn an_invoke_that_never_works_is_dead_lettered() {
    for (invoke, code, detail) in [
        (Invoke::NotFound, "target_not_found", "gone"),
        (Invoke::TooLarge, "payload_too_large", "too much"),
        (Invoke::Refused, "target_refused", "never"),
    ] {
        let world = World { invoke: Box::new(move || invoke), ..World::default() };
        let records = due(2);
        let report = world.handle(&records, &policy(|_| ()), NOW);
        assert!(kept(&report).is_empty());
        for (n, dead_letter) in world.sent.borrow().iter().enumerate() {
            let body: serde_json::Value = serde_json::from_str(&dead_letter.body).unwrap();
            assert_eq!(
                (&body["reason"], &body["detail"], &body["payload"]),
                (&code.into(), &detail.into(), &n.into())
            );
            assert_eq!(body["retries_made"], 0, "the retry that was refused was not made");
        }
        let outcome = &report.outcomes[0];
        assert!(matches!(outcome.what, What::DeadLetter { due: Some(_), .. }));
        assert_eq!(outcome.reason().unwrap().to_string(), format!("{code}: {detail}"));
        assert_eq!(world.sent.borrow().len(), 2);
    }
}

#[test]
fn an_unsent_dead_letter_is_kept_and_hidden() {
    use Batch::*;
    for send in [Fails, FailsFor(1), AnswersOnly(1), Panics, PanicsBeforeItsFuture] {
        let world = World { send: Box::new(move || send), ..World::default() };
        let records = garbage(3);
        let report = world.handle(&records, &policy(|_| ()), NOW);
        let expected = match send {
            FailsFor(_) => ids(1..2),
            AnswersOnly(_) => ids(1..3),
            _ => ids(0..3),
        };
        assert_eq!(kept(&report), expected, "{send:?}");
        assert_eq!(world.sent.borrow().len(), 3 - expected.len());
        let Some(Call::Hide(hidden)) = world.calls.borrow().last().cloned() else { panic!("not hidden") };
        let handles: Vec<String> = hidden.iter().map(|(handle, _)| handle.replace('h', "m")).collect();
        assert_eq!(handles, expected, "{send:?}");
        let failed = report.outcomes.iter().filter(|outcome| outcome.problem().is_some());
        assert!(
            failed
                .clone()
                .all(|outcome| outcome.reason().is_some() && outcome.visibility_timeout().is_some())
        );
        match send {
            AnswersOnly(_) => {
                assert!(failed.clone().all(|o| problem(o) == "the service gave no answer for this entry"),)
            }
            Fails | FailsFor(_) => assert!(failed.clone().all(|o| o.problem() == Some(&failure()))),
            _ => {}
        }
    }
}

/// Returns the visibility timeout, in seconds, that a message gets if its dead-letter cannot be sent.
fn hidden(message_id: &str, receive_count: u32) -> u64 {
    let world = World { send: Box::new(|| Batch::Fails), ..World::default() };
    let record = Record { message_id: message_id.into(), receive_count, ..record("garbage") };
    let report = world.handle(&[record], &policy(|_| ()), NOW).outcomes[0].visibility_timeout();
    report.expect("it was hidden").as_secs()
}

#[test]
fn a_thousand_failed_receives_outlast_the_retention() {
    let total: u64 = (1..=1_000).map(|receive_count| hidden("m-1", receive_count)).sum();
    assert!(total > 14 * 86_400, "{total} s");
}

#[test]
fn messages_that_failed_together_come_back_apart() {
    let delays: HashSet<u64> = (0..200).map(|n| hidden(&format!("m-{n}"), 11)).collect();
    assert!(delays.len() > 150, "{} of 200 delays within 2,048 s", delays.len());
}

proptest! {
    #[test]
    fn waits_after_failures_double_with_each_receive(id in "[a-z0-9]{1,9}", receive_count: u32, low in 0..14u32) {
        prop_assert!((1..=3_600).contains(&hidden(&id, receive_count)));
        prop_assert!((1..=3_600.min(1 << low)).contains(&hidden(&id, low)));
    }
}

fn nothing_attached() -> Policy {
    policy(|settings| settings.target_functions.clear())
}

/// Returns the visibility timeout, in seconds, that the handler sets for this message while no function is attached.
fn kept_hidden(record: Record) -> u64 {
    let world = World::default();
    let report = world.handle(std::slice::from_ref(&record), &nothing_attached(), NOW);
    report.outcomes[0].visibility_timeout().expect("it was hidden").as_secs()
}

#[test]
fn without_targets_every_message_is_kept() {
    let (world, records) = (World::default(), mixed());
    let report = world.handle(&records, &nothing_attached(), NOW);
    assert_eq!(kept(&report), ids(0..9));
    let hidden: Vec<_> = (0..9).map(|n| (format!("h-{n}"), kept_hidden(records[n].clone()))).collect();
    assert_eq!(*world.calls.borrow(), [Call::Hide(hidden)]);
    for outcome in &report.outcomes {
        assert_eq!(outcome.step(), Some("keep"));
        assert_eq!((outcome.retry(), outcome.problem(), outcome.due()), (None, None, None));
    }
}

/// Without attached functions, the handler keeps every message, but dead-letters one that SQS would soon delete.
#[test]
fn without_targets_messages_are_dead_lettered_in_time() {
    let world = World::default();
    let limit = after(SENT, (13 * 24 + 12) * 3_600_000);
    for record in [record(body("7")), record("garbage")] {
        let records = [record];
        assert_eq!(kept(&world.handle(&records, &nothing_attached(), limit)), ["m-1"]);
        let report = world.handle(&records, &nothing_attached(), after(limit, 1));
        assert!(kept(&report).is_empty());
        assert_eq!(report.outcomes[0].reason().map(|reason| reason.code.name()), Some("max_age"));
    }
    let sent = world.sent.borrow();
    assert!(sent[0].body.contains(r#""payload":7"#) && sent[1].body == "garbage", "{sent:?}");
}

#[test]
fn incomplete_messages_are_kept() {
    let world = World::default();
    let incomplete = vec![IncompleteMessage { message_id: "m-9".into(), what: "body" }];
    let records = [due(1), first_receives(2).split_off(1)].concat();
    let batch = BatchEvent { records, incomplete, ..BatchEvent::default() };
    let mut environment = Environment::new(Policies::from(policy(|_| ())));
    let report = run(environment.handle(&batch, NOW, &|| false, &world));
    assert_eq!((kept(&report), world.invoked.borrow().len()), (vec!["m-1".into(), "m-9".into()], 1));
}

/// Lambda deletes every message that is not reported as failed, and a message without an id cannot be reported.
#[test]
fn a_message_without_an_id_keeps_its_batch() {
    let world = World::default();
    let incomplete = vec![IncompleteMessage { message_id: String::new(), what: "messageId" }];
    let batch = BatchEvent { records: due(1), incomplete, ..BatchEvent::default() };
    let mut environment = Environment::new(Policies::from(policy(|_| ()))).reading_pauses();
    let report = run(environment.handle(&batch, NOW, &|| false, &world));
    assert_eq!((kept(&report), report.kept_whole), (vec!["m-0".into(), String::new()], true));
    assert!(report.outcomes.is_empty() && world.calls.borrow().is_empty());
}

#[test]
fn the_room_of_another_queue_is_unknown() {
    let world = World::default();
    let mut environment =
        Environment::new(Policies::from(policy(|settings| settings.hide_up_to = HideUpTo::UpTo(1_000))));
    for (queue, counts) in [("a", 1), ("a", 1), ("b", 2), ("b", 2)] {
        let queue_arn = Some(format!("arn:aws:sqs:eu-west-1:123456789012:{queue}"));
        let batch = BatchEvent { records: first_receives(1), queue_arn, ..BatchEvent::default() };
        run(environment.handle(&batch, NOW, &|| false, &world));
        assert_eq!(
            world.calls.borrow().iter().filter(|call| **call == Call::Count).count(),
            counts,
            "{queue}"
        );
    }
}
