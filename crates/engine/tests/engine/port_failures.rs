use std::cell::Cell;

use comeback_engine::{Policy, Record, Step, Timestamp};
use proptest::prelude::*;

use crate::fakes::{Batch, Call, Invoke, World, failure};
use crate::support::*;

#[test]
fn a_deferral_is_kept_whether_its_call_worked_or_not_and_not_hidden_again() {
    use Batch::*;
    for hide in [Works, Fails, FailsFor(1), AnswersOnly(1), AnswersTooMuch, Panics, PanicsBeforeItsFuture] {
        let world = World { hide: Box::new(move || hide), ..World::default() };
        let records = first_receives(3);
        let report = world.handle(&records, &policy(|_| ()), NOW);
        assert_eq!(kept(&report), ids(0..3), "{hide:?}");
        assert_eq!(world.calls.borrow().len(), 1, "{hide:?}");
        let failed = report.outcomes.iter().map(|outcome| outcome.problem.is_some());
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
        // Only the second of three fails.
        let fails = || if next.replace(next.get() + 1) == 1 { invoke } else { Invoke::Works };
        let world = World { invoke: Box::new(fails), ..World::default() };
        let records = due(3);
        let report = world.handle(&records, &policy(|_| ()), NOW);
        assert_eq!(kept(&report), ["m-1"], "{invoke:?}");
        let outcome = &report.outcomes[1];
        let delay = outcome.hidden_for.unwrap().as_secs();
        assert_eq!(world.calls.borrow().last(), Some(&Call::Hide(vec![("h-1".into(), delay)])));
        assert!(matches!(outcome.step, Some(Step::Reinvoke { .. })));
        match invoke {
            Invoke::Later => {
                assert_eq!(outcome.problem, Some(failure()));
                assert!((1..=4).contains(&delay), "full jitter under 2^2 s: {delay}");
            }
            Invoke::AnswerLost => assert_eq!(problem(outcome), "no answer"),
            _ => assert_eq!(problem(outcome), "internal error (a panic; see the log above)"),
        }
        if invoke != Invoke::Later {
            assert!((3_600..=7_200).contains(&delay), "it may have been accepted: {delay}");
            assert!(outcome.problem.as_ref().unwrap().remedy.is_some(), "an ERROR in the log");
        }
    }
}

/// How long a message is hidden whose invoke at `now` was not answered.
fn hidden_unanswered(record: Record, policy: &Policy, now: Timestamp) -> u64 {
    let world = World { invoke: Box::new(|| Invoke::AnswerLost), ..World::default() };
    let records = [record];
    let report = world.handle(&records, policy, now);
    assert!(!report.outcomes[0].settled());
    report.outcomes[0].hidden_for.expect("it was hidden").as_secs()
}

#[test]
fn unanswered_invokes_are_hidden_evenly_between_one_and_two_hours() {
    let hidden: Vec<u64> = (0..2_000)
        .map(|n| {
            let record = Record { message_id: format!("m-{n}"), ..received_again(body("7")) };
            hidden_unanswered(record, &policy(|_| ()), NOW)
        })
        .collect();
    assert!(hidden.iter().all(|secs| (3_600..=7_200).contains(secs)));
    let mean = hidden.iter().sum::<u64>() / 2_000;
    assert!((5_350..=5_450).contains(&mean), "{mean} s on average");
    let quarters =
        [0, 1, 2, 3].map(|n| hidden.iter().filter(|&&secs| (secs - 3_600).min(3_599) / 900 == n).count());
    assert!(quarters.iter().all(|count| (430..570).contains(count)), "{quarters:?} of 2,000 in each quarter");
    let again = |receive_count| {
        let record = Record { receive_count, ..received_again(body("7")) };
        hidden_unanswered(record, &policy(|_| ()), NOW)
    };
    assert_ne!(again(3), again(4), "each receive draws anew");
}

#[test]
fn an_unanswered_invoke_leaves_time_for_a_last_try() {
    // The invoke took 20 s, and the last try comes `margin` before the end.
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
        assert!(hidden >= 3_600, "no last try is left: what comes back is given up");
    }
}

#[test]
fn a_message_that_could_not_be_hidden_says_no_delay() {
    let world =
        World { invoke: Box::new(|| Invoke::Later), hide: Box::new(|| Batch::Fails), ..World::default() };
    let records = due(1);
    let report = world.handle(&records, &policy(|_| ()), NOW);
    assert_eq!((report.outcomes[0].hidden_for, kept(&report)), (None, ids(0..1)));
    assert_eq!(report.outcomes[0].problem, Some(failure()));
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
        for (n, letter) in world.sent.borrow().iter().enumerate() {
            let body: serde_json::Value = serde_json::from_str(&letter.body).unwrap();
            assert_eq!(
                (&body["reason"], &body["detail"], &body["payload"]),
                (&code.into(), &detail.into(), &n.into())
            );
            assert_eq!(body["retries_made"], 0, "the retry that was refused was not made");
        }
        let outcome = &report.outcomes[0];
        assert!(matches!(outcome.step, Some(Step::DeadLetter { due: Some(_), .. })));
        assert_eq!(outcome.reason().unwrap().to_string(), format!("{code}: {detail}"));
        assert_eq!(world.sent.borrow().len(), 2);
    }
}

#[test]
fn a_dead_letter_that_could_not_be_sent_is_kept_and_hidden() {
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
        let failed = report.outcomes.iter().filter(|outcome| outcome.problem.is_some());
        assert!(failed.clone().all(|outcome| outcome.reason().is_some() && outcome.hidden_for.is_some()));
        match send {
            AnswersOnly(_) => {
                assert!(failed.clone().all(|o| problem(o) == "the service gave no answer for this entry"),)
            }
            Fails | FailsFor(_) => assert!(failed.clone().all(|o| o.problem == Some(failure()))),
            _ => {}
        }
    }
}

#[test]
fn a_refused_target_whose_dead_letter_fails_is_kept() {
    let world =
        World { invoke: Box::new(|| Invoke::NotFound), send: Box::new(|| Batch::Fails), ..World::default() };
    assert_eq!(kept(&world.handle(&due(2), &policy(|_| ()), NOW)), ids(0..2));
}

/// How long a message is hidden whose dead-letter cannot be sent.
fn hidden(message_id: &str, receive_count: u32) -> u64 {
    let world = World { send: Box::new(|| Batch::Fails), ..World::default() };
    let record = Record { message_id: message_id.into(), receive_count, ..record("garbage") };
    let report = world.handle(&[record], &policy(|_| ()), NOW).outcomes[0].hidden_for;
    report.expect("it was hidden").as_secs()
}

#[test]
fn a_thousand_failed_receives_outlast_the_retention() {
    let total: u64 = (1..=1_000).map(|receive_count| hidden("m-1", receive_count)).sum();
    assert!(total > 14 * 86_400, "{total} s");
}

#[test]
fn messages_that_failed_together_do_not_come_back_together() {
    let delays: std::collections::HashSet<u64> = (0..200).map(|n| hidden(&format!("m-{n}"), 11)).collect();
    assert!(delays.len() > 150, "{} of 200 delays within 2,048 s", delays.len());
}

proptest! {
    #[test]
    fn hiding_is_jittered_under_two_to_the_receive_count(id in "[a-z0-9]{1,9}", receive_count: u32, low in 0..14u32) {
        prop_assert!((1..=3_600).contains(&hidden(&id, receive_count)));
        prop_assert!((1..=3_600.min(1 << low)).contains(&hidden(&id, low)));
    }
}
