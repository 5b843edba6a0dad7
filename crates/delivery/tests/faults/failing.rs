//! Tests of failed entries, calls and connections.

use std::sync::atomic::{AtomicU64, Ordering};

use comeback_delivery::{EntryError, ErrorKind, Retries};

use crate::apis::{Api, accounted, config, texts};
use crate::service::{Answer, Service, draw};

const ENTRIES: usize = 100;
const RETRIES: u64 = 5;

crate::for_every_api!(
    partial_failures_and_failed_calls_together,
    permanent_failure_hands_everything_back,
    one_bad_entry_harms_no_other,
    a_mistake_that_refuses_every_entry_costs_few_calls,
    senders_fault_is_not_retried,
    absent_lists,
    call_is_one_request_despite_client_retries,
    senders_share_the_connections_of_their_client,
);

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
        let is_right = |cause: &EntryError| matches!(cause, EntryError::Exhausted(_) | EntryError::Halted(_));
        assert!(causes.values().all(is_right), "{causes:?}");
    }
}

async fn permanent_failure_hands_everything_back<A: Api>() {
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
        assert!(causes.values().any(|cause| matches!(cause, EntryError::Exhausted(_))), "{causes:?}");
        for cause in causes.values() {
            assert!(matches!(cause, EntryError::Exhausted(_) | EntryError::Halted(_)), "{cause}");
            assert_eq!(cause.error().map(|error| error.kind), Some(kind), "{answer:?}: {cause}");
        }
    }
}

async fn one_bad_entry_harms_no_other<A: Api>() {
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
        let [("3", EntryError::Refused(error))] =
            causes.iter().map(|(text, cause)| (text.as_str(), cause)).collect::<Vec<_>>()[..]
        else {
            panic!("{causes:?}")
        };
        assert_eq!((error.kind, error.code.as_str()), (kind, code));
        assert!(service.log().calls.len() <= ENTRIES.div_ceil(A::LIMITS.entries) + 2 * most);
    }
}

/// The mistake may be a wrong key schema, a wrong KMS key, or an API that is switched off.
async fn a_mistake_that_refuses_every_entry_costs_few_calls<A: Api>() {
    for (code, most) in [
        (A::REFUSING_WHOLE, 12),
        ("InvalidSourceException", 12),
        // One refused call ends the delivery while three other calls are under way.
        ("InvalidKMSResourceException", 4),
        ("OperationDisabledException", 4),
    ] {
        let service = Service::start(move |_| Answer::Error(400, code)).await;
        let undelivered = A::sender(&service).send(A::entries(1_000)).await.unwrap_err();
        assert!(undelivered.calls <= most, "{code}: {} calls", undelivered.calls);
        let causes = accounted::<A>(&service, &texts(1_000), Err(undelivered));
        assert_eq!(causes.len(), 1_000);
        assert!(causes.values().all(|cause| cause.error().is_some_and(|error| error.code == code)));
    }
}

async fn senders_fault_is_not_retried<A: Api>() {
    let Some(code) = A::FINAL else { return };
    // The service refuses the third and the fifth entry of each call.
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
    assert!(causes.values().all(|cause| matches!(cause, EntryError::Refused(_))), "{causes:?}");
    assert_eq!(service.log().calls.len(), 2);
}

async fn absent_lists<A: Api>() {
    let service = Service::start(|_| Answer::Text("{}".into())).await;
    let outcome = A::sender(&service).send(A::entries(3)).await;
    assert_eq!(outcome.is_err(), A::ABSENT_IS_NO_ANSWER);
    let causes = accounted::<A>(&service, &texts(3), outcome);
    let unanswered = "no retries left: the service gave no answer for this entry";
    assert!(causes.values().all(|cause| cause.to_string() == unanswered), "{causes:?}");
}

/// The sender goes by each record's own result, even if the service's counts of failures contradict the results.
#[tokio::test]
async fn entry_results_outweigh_counts() {
    use crate::apis::{PutEvents, PutRecordBatch, PutRecords};

    async fn causes<A: Api>(answer: &'static str) -> Vec<Option<String>> {
        let service = Service::start(|_| Answer::Text(answer.into())).await;
        let outcome = A::sender(&service).retries(Retries::none()).send(A::entries(3)).await;
        let Err(undelivered) = outcome else { return vec![None; 3] };
        undelivered.by_entry().into_iter().map(|outcome| outcome.err().map(|it| it.to_string())).collect()
    }
    let unanswered = Some("no retries left: the service gave no answer for this entry".to_owned());
    let throttled = |text: &str| Some(format!("no retries left: {text}"));
    // The response has no count, and no answer for the third record.
    assert_eq!(
        causes::<PutRecords>(
            r#"{"Records": [{"SequenceNumber": "1", "ShardId": "s"},
                {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "slower"}]}"#
        )
        .await,
        [None, throttled("ProvisionedThroughputExceededException: slower"), unanswered.clone()]
    );
    // The count is 0 despite a failure, and one record has neither an id nor a code.
    assert_eq!(
        causes::<PutRecordBatch>(
            r#"{"FailedPutCount": 0, "RequestResponses":
                [{"ErrorCode": "InternalFailure"}, {}, {"RecordId": "r"}]}"#
        )
        .await,
        [throttled("InternalFailure: no message"), unanswered.clone(), None]
    );
    // A wrong count is ignored, and a result with both an id and a code is a failure.
    assert_eq!(
        causes::<PutEvents>(
            r#"{"FailedEntryCount": 3, "Entries":
                [{"EventId": "e"}, {"EventId": "e", "ErrorCode": "ThrottlingException"}, {"EventId": "e"}]}"#
        )
        .await,
        [None, throttled("ThrottlingException: no message"), None]
    );
    // The response has more answers than the call has entries.
    assert_eq!(
        causes::<PutEvents>(
            r#"{"Entries": [{"EventId": "e"}, {"EventId": "e"}, {"EventId": "e"}, {"EventId": "e"}]}"#
        )
        .await,
        [None, None, None]
    );
    // PutEvents accepts at most ten entries in a call, so 21 entries take three calls.
    let service = Service::obliging().await;
    assert_eq!(PutEvents::sender(&service).send(PutEvents::entries(21)).await.unwrap().calls, 3);
}

async fn call_is_one_request_despite_client_retries<A: Api>() {
    for answer in [Answer::Error(500, "InternalFailure"), Answer::Error(400, "ThrottlingException")] {
        let service = Service::start(move |_| answer.clone()).await;
        let undelivered = A::sender(&service).retries(Retries::none()).send(A::entries(1)).await.unwrap_err();
        assert_eq!((undelivered.calls, service.log().calls.len()), (1, 1));
    }
}

/// Uses the SDK's default HTTP client. With a custom one, all SDK clients share connections, so the test would prove
/// nothing.
async fn senders_share_the_connections_of_their_client<A: Api>() {
    let service = Service::obliging().await;
    let mut config = config(&service).into_builder();
    config.set_http_client(None);
    let client = A::client(&config.build());
    for _ in 0..3 {
        A::over(client.clone()).send(A::entries(1)).await.unwrap();
    }
    let log = service.log();
    assert_eq!((log.calls.len(), log.connections), (3, 1));
}
