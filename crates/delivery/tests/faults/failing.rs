use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use comeback_delivery::{Cause, ErrorKind, Retries};

use crate::apis::{Api, accounted, code, texts};
use crate::service::{Answer, Service, draw};

const ENTRIES: usize = 100;
const RETRIES: u64 = 5;

crate::for_every_api!(
    partial_failures_at_any_rate,
    partial_failures_and_failed_calls_together,
    a_storm_of_throttles_passes,
    a_failure_that_never_heals_hands_everything_back,
    what_can_never_work_is_sent_once,
    one_bad_entry_of_a_call_refused_whole_harms_no_other,
    what_is_refused_whole_ends_entry_by_entry,
    halves_end_with_the_deadline,
    what_is_the_senders_fault_is_not_sent_again,
    an_answer_that_is_lost_is_asked_for_again,
    lists_that_are_absent,
);

async fn partial_failures_at_any_rate<A: Api>() {
    for rate in [1, 10, 30, 60, 90] {
        let drawn = AtomicU64::new(0);
        let service = Service::start(move |call| {
            let fails = || draw(rate, drawn.fetch_add(1, Ordering::Relaxed), 100) < rate;
            Answer::Entries(call.entries.iter().map(|_| fails().then_some(A::PASSING)).collect())
        })
        .await;
        let outcome = A::sender(&service).send(A::entries(ENTRIES)).await;
        let causes = accounted::<A>(&service, &texts(ENTRIES), outcome);
        for cause in causes.values() {
            assert!(matches!(cause, Cause::Exhausted(_)), "{cause}");
            assert_eq!(code(cause), A::PASSING);
        }
        // 0.01⁶ and 0.9⁶ of them, if the draws are fair.
        match rate {
            1 => assert!(causes.is_empty()),
            90 => assert!((30..80).contains(&causes.len()), "{} left", causes.len()),
            _ => {}
        }
        assert!(service.log().calls.len() > ENTRIES.div_ceil(A::LIMITS.entries), "something failed");
    }
}

async fn partial_failures_and_failed_calls_together<A: Api>() {
    for seed in 0..8 {
        let drawn = AtomicU64::new(0);
        let service = Service::start(move |call| {
            let next = |bound| draw(seed, drawn.fetch_add(1, Ordering::Relaxed), bound);
            match next(10) {
                0 => Answer::Error(500, "InternalFailure"),
                1 => Answer::Error(400, "ThrottlingException"),
                2 => Answer::Error(503, ""),
                3 => Answer::Lost,
                4 => Answer::Closed,
                _ => Answer::Entries(
                    call.entries.iter().map(|_| (next(100) < 30).then_some(A::PASSING)).collect(),
                ),
            }
        })
        .await;
        let outcome = A::sender(&service).send(A::entries(ENTRIES)).await;
        let causes = accounted::<A>(&service, &texts(ENTRIES), outcome);
        let is_right = |cause: &Cause| matches!(cause, Cause::Exhausted(_) | Cause::Halted(_));
        assert!(causes.values().all(is_right), "{causes:?}");
    }
}

async fn a_storm_of_throttles_passes<A: Api>() {
    // As many calls as an entry may be sent again, whichever they carry.
    let mut storm = RETRIES;
    let service = Service::start(move |call| {
        if storm == 0 {
            return Answer::done(call);
        }
        storm -= 1;
        Answer::Error(400, "ThrottlingException")
    })
    .await;
    let delivered = A::sender(&service).send(A::entries(ENTRIES)).await.expect("the storm is over in time");
    assert_eq!(delivered.count(), ENTRIES);
    let calls = u64::try_from(ENTRIES.div_ceil(A::LIMITS.entries)).unwrap();
    assert!(delivered.calls > calls && delivered.retries > 0, "{delivered:?}");
    assert!(accounted::<A>(&service, &texts(ENTRIES), Ok(delivered)).is_empty());
}

async fn a_failure_that_never_heals_hands_everything_back<A: Api>() {
    let fully = |code| Answer::Error(503, code);
    for (answer, kind) in [
        (fully("ServiceUnavailable"), ErrorKind::Transient),
        (fully("SlowDown"), ErrorKind::Throttled),
        (Answer::Closed, ErrorKind::Transient),
        (Answer::Lost, ErrorKind::Transient),
        (Answer::Error(404, ""), ErrorKind::Unknown),
    ] {
        let always = answer.clone();
        let service = Service::start(move |_| always.clone()).await;
        let undelivered = A::sender(&service).send(A::entries(ENTRIES)).await.unwrap_err();
        assert!(undelivered.entries.iter().all(|left| left.calls <= 1 + RETRIES), "{undelivered}");
        assert_eq!(undelivered.entries.len(), ENTRIES);
        let causes = accounted::<A>(&service, &texts(ENTRIES), Err(undelivered));
        assert!(causes.values().any(|cause| matches!(cause, Cause::Exhausted(_))), "{causes:?}");
        for cause in causes.values() {
            assert!(matches!(cause, Cause::Exhausted(_) | Cause::Halted(_)), "{cause}");
            assert_eq!(cause.error().map(|error| error.kind), Some(kind), "{answer:?}: {cause}");
        }
    }
}

async fn what_can_never_work_is_sent_once<A: Api>() {
    for (status, code, kind) in [
        (403, "AccessDeniedException", ErrorKind::Denied),
        (403, "ExpiredToken", ErrorKind::Denied),
        (400, "ResourceNotFoundException", ErrorKind::Missing),
    ] {
        let service = Service::start(move |_| Answer::Error(status, code)).await;
        let undelivered = A::sender(&service).send(A::entries(ENTRIES)).await.unwrap_err();
        assert_eq!(undelivered.retries, 0);
        let causes = accounted::<A>(&service, &texts(ENTRIES), Err(undelivered));
        assert_eq!(causes.len(), ENTRIES);
        for cause in causes.values() {
            let (Cause::Refused(error) | Cause::Halted(error)) = cause else { panic!("{cause}") };
            assert_eq!((error.kind, error.to_string()), (kind, format!("{code}: as asked")));
        }
    }
}

async fn one_bad_entry_of_a_call_refused_whole_harms_no_other<A: Api>() {
    for (status, code, kind) in
        [(400, A::REFUSING_WHOLE, ErrorKind::Refused), (413, "RequestEntityTooLarge", ErrorKind::TooLarge)]
    {
        let service = Service::start(move |call| {
            let bad = call.texts().iter().any(|text| text == "3");
            if bad { Answer::Error(status, code) } else { Answer::done(call) }
        })
        .await;
        let sender = A::sender(&service).retries(Retries::none());
        let undelivered = sender.send(A::entries(ENTRIES)).await.unwrap_err();
        let most = A::LIMITS.entries.min(ENTRIES).next_power_of_two().ilog2() as usize;
        assert!(undelivered.entries[0].calls <= 1 + most as u64, "{undelivered:?}");
        let causes = accounted::<A>(&service, &texts(ENTRIES), Err(undelivered));
        let [("3", Cause::Refused(error))] =
            causes.iter().map(|(text, cause)| (text.as_str(), cause)).collect::<Vec<_>>()[..]
        else {
            panic!("{causes:?}")
        };
        assert_eq!((error.kind, error.code.as_str()), (kind, code));
        assert!(service.log().calls.len() <= ENTRIES.div_ceil(A::LIMITS.entries) + 2 * most);
    }
}

async fn what_is_refused_whole_ends_entry_by_entry<A: Api>() {
    let service = Service::start(|_| Answer::Error(400, A::REFUSING_WHOLE)).await;
    let undelivered = A::sender(&service).send(A::entries(20)).await.unwrap_err();
    assert!(undelivered.calls < 40, "{undelivered:?}");
    let causes = accounted::<A>(&service, &texts(20), Err(undelivered));
    assert_eq!(causes.len(), 20);
    assert!(causes.values().all(|cause| matches!(cause, Cause::Refused(_))), "{causes:?}");
}

async fn halves_end_with_the_deadline<A: Api>() {
    let calls = Arc::new(AtomicU64::new(0));
    let seen = calls.clone();
    let service = Service::start(move |_| {
        seen.fetch_add(1, Ordering::SeqCst);
        Answer::Error(400, A::REFUSING_WHOLE)
    })
    .await;
    let over = || calls.load(Ordering::SeqCst) >= 3;
    let sender = A::sender(&service).concurrency(1);
    let undelivered = sender.send_while(A::entries(8), || !over()).await.unwrap_err();
    assert_eq!(undelivered.calls, 3);
    let causes = accounted::<A>(&service, &texts(8), Err(undelivered));
    assert_eq!(causes.len(), 8);
    for cause in causes.values() {
        assert!(matches!(cause, Cause::Stopped(Some(error)) if error.code == A::REFUSING_WHOLE), "{cause}");
    }
}

async fn what_is_the_senders_fault_is_not_sent_again<A: Api>() {
    let Some(code) = A::FINAL else { return };
    // The third and the fifth entry of each first call; nothing else is sent again.
    let service = Service::start(move |call| {
        let refused = |place| [2, 4].contains(&place).then_some(code);
        Answer::Entries((0..call.entries.len()).map(refused).collect())
    })
    .await;
    let outcome = A::sender(&service).send(A::entries(20)).await;
    let causes = accounted::<A>(&service, &texts(20), outcome);
    let mut left: Vec<&str> = causes.keys().map(String::as_str).collect();
    left.sort_unstable();
    assert_eq!(left, ["12", "14", "2", "4"]);
    assert!(causes.values().all(|cause| matches!(cause, Cause::Refused(_))), "{causes:?}");
    assert_eq!(service.log().calls.len(), 2);
}

async fn an_answer_that_is_lost_is_asked_for_again<A: Api>() {
    let mut calls = 0;
    let service = Service::start(move |call| {
        calls += 1;
        if calls == 1 { Answer::Lost } else { Answer::done(call) }
    })
    .await;
    let count = 2 * A::LIMITS.entries;
    let delivered = A::sender(&service).concurrency(1).send(A::entries(count)).await.expect("it heals");
    assert_eq!((delivered.count(), delivered.calls, delivered.retries), (count, 3, 1));
    // Only what the lost call carried is done twice.
    assert_eq!(service.log().done.len(), count + A::LIMITS.entries);
    accounted::<A>(&service, &texts(count), Ok(delivered));
}

async fn lists_that_are_absent<A: Api>() {
    let service = Service::start(|_| Answer::Text("{}".into())).await;
    let outcome = A::sender(&service).send(A::entries(3)).await;
    assert_eq!(outcome.is_err(), A::ABSENT_IS_NO_ANSWER);
    let causes = accounted::<A>(&service, &texts(3), outcome);
    let unanswered = "no retries left: the service gave no answer for this entry";
    assert!(causes.values().all(|cause| cause.to_string() == unanswered), "{causes:?}");
}

/// What the services say of records, one by one: the shapes that no count of failures helps with.
#[tokio::test]
async fn what_is_said_of_an_entry_counts_and_not_the_counts() {
    use crate::apis::{PutEvents, PutRecordBatch, PutRecords};

    async fn causes<A: Api>(answer: &'static str) -> Vec<Option<String>> {
        let service = Service::start(|_| Answer::Text(answer.into())).await;
        let outcome = A::sender(&service).retries(Retries::none()).send(A::entries(3)).await;
        let Err(undelivered) = outcome else { return vec![None; 3] };
        undelivered.by_entry().into_iter().map(|outcome| outcome.err().map(|it| it.to_string())).collect()
    }
    let unanswered = Some("no retries left: the service gave no answer for this entry".to_owned());
    let throttled = |text: &str| Some(format!("no retries left: {text}"));
    // No count; the third record is not answered.
    assert_eq!(
        causes::<PutRecords>(
            r#"{"Records": [{"SequenceNumber": "1", "ShardId": "s"},
                {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "slower"}]}"#
        )
        .await,
        [None, throttled("ProvisionedThroughputExceededException: slower"), unanswered.clone()]
    );
    // A count of 0, and yet a failure; a record with neither id nor code.
    assert_eq!(
        causes::<PutRecordBatch>(
            r#"{"FailedPutCount": 0, "RequestResponses":
                [{"ErrorCode": "InternalFailure"}, {}, {"RecordId": "r"}]}"#
        )
        .await,
        [throttled("InternalFailure: no message"), unanswered.clone(), None]
    );
    // A count without its failures is not believed; a code beside an id is.
    assert_eq!(
        causes::<PutEvents>(
            r#"{"FailedEntryCount": 3, "Entries":
                [{"EventId": "e"}, {"EventId": "e", "ErrorCode": "ThrottlingException"}, {"EventId": "e"}]}"#
        )
        .await,
        [None, throttled("ThrottlingException: no message"), None]
    );
    // More answers than entries.
    assert_eq!(
        causes::<PutEvents>(
            r#"{"Entries": [{"EventId": "e"}, {"EventId": "e"}, {"EventId": "e"}, {"EventId": "e"}]}"#
        )
        .await,
        [None, None, None]
    );
    // The limits are those of the one table.
    let service = Service::obliging().await;
    assert_eq!(PutEvents::sender(&service).send(PutEvents::entries(21)).await.unwrap().calls, 3);
}
