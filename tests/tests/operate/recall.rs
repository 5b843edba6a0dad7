use std::collections::BTreeSet;
use std::time::Duration;

use comeback_tests::{DeadLetter, MiniStack, Operator, Stack, dead_letter, eventually, log_lines, until};
use serde_json::Value;

use crate::dead::depth;
use crate::failures::{record, send};
use crate::world::World;

const STACK: &str = "--stack recalling --yes";
const EVENTS: u64 = 1_000;
/// Most of the [`EVENTS`]: `comeback retry` must make at least this many visible early.
///
/// On a busy machine, the handler may treat a slow call for an event as failed. The event then waits for an hour.
const MOST: u64 = 900;
const A_MINUTE: Duration = Duration::from_secs(60);

/// Each backoff lasts an hour, so only the operator's request can bring the events back during this test.
pub(crate) async fn waiting_events_return_when_an_operator_says_so(world: &World) {
    // With `HideUpTo=always`, no message is moved even if counting the messages in flight takes longer than the handler
    // allows.
    let parameters = "BaseBackoff=3600 MaxBackoff=3600 Jitter=none HideUpTo=always";
    let stack = world.deploy("recalling", parameters).await;
    let ministack = world.ministack().await;
    let function = stack.output("ExampleTargetName");
    let operator = Operator::of(ministack);
    let retrier = Operator::of_command(ministack, "retry", &stack, function);
    let fail = async |keys: &[String]| {
        let records: Vec<_> = keys.iter().map(|key| record(function, "TargetDown", key)).collect();
        send(ministack, &stack, &records).await;
    };
    // This polls the queue rather than the log, because the server would take too long to read the log of so many
    // events repeatedly.
    let queue_holds = async |wanted: &dyn Fn(u64, u64) -> bool| {
        eventually("the queue to change", async || {
            let (visible, in_flight) = depth(ministack, stack.output("RetryQueueUrl")).await;
            wanted(visible, in_flight).then_some(())
        })
        .await;
    };

    let keys: Vec<_> = (0..EVENTS).map(|n| format!("recalled-{n}")).collect();
    fail(&keys).await;
    queue_holds(&|visible, in_flight| (visible, in_flight) == (0, EVENTS)).await;
    let done = retrier.comeback(&format!("retry {function} --within 0s {STACK} --json")).json(0);
    let recalled = done["result"]["recalled"].as_u64().expect("a number");
    assert!((MOST..=EVENTS).contains(&recalled), "{done:#}");
    queue_holds(&|visible, in_flight| visible + in_flight <= EVENTS - MOST).await;
    eventually("the log to tell", async || {
        (keys_of(ministack, &stack, "reinvoke").await.len() as u64 >= MOST).then_some(())
    })
    .await;

    let single = ["retried", "cancelled", "left"].map(ToOwned::to_owned);
    fail(&single).await;
    eventually("the handler to hide them", async || {
        let hidden = keys_of(ministack, &stack, "defer").await;
        single.iter().all(|key| hidden.contains(key)).then_some(())
    })
    .await;
    let due = |event: &str| {
        operator.comeback(&format!("waiting --key {event} --each --stack recalling --json")).json(0)
    };
    let before = due("left")["events"][0]["due"].take();
    let by_key = |operator: &Operator, command: &str, key: &str| {
        operator.comeback(&format!("{command} {function} --key {key} {STACK} --json")).json(0)
    };
    let canceller = Operator::of_command(ministack, "cancel", &stack, function);
    assert_eq!(by_key(&canceller, "cancel", "cancelled")["result"]["recalled"], 1);
    assert_eq!(by_key(&retrier, "retry", "retried --within 0s")["result"]["recalled"], 1);
    let is_retried = async || keys_of(ministack, &stack, "reinvoke").await.contains("retried").then_some(());
    let is_cancelled =
        async || keys_of(ministack, &stack, "dead_letter").await.contains("cancelled").then_some(());
    // On a busy machine, a handler's environment may read the request too late and hide the event again. The operator
    // then repeats the request.
    for _ in 0..4 {
        if tokio::time::timeout(A_MINUTE, until(is_retried)).await.is_err() {
            by_key(&retrier, "retry", "retried --within 0s");
        }
        if tokio::time::timeout(A_MINUTE, until(is_cancelled)).await.is_err() {
            by_key(&canceller, "cancel", "cancelled");
        }
    }
    eventually("the one to be retried", is_retried).await;
    let is_it = |dead: &DeadLetter| dead.body.contains("\"origin_request_id\":\"cancelled\"");
    let dead = dead_letter(ministack, stack.output("DeadLetterQueueUrl"), "the cancelled event", is_it).await;
    assert_eq!(dead.attributes["Reason"], "cancelled", "{}", dead.body);
    let left = due("left")["events"].take();
    assert_eq!((left.as_array().map(Vec::len), &left[0]["due"]), (Some(1), &before), "it keeps its time");
    held_events_return_when_their_pause_ends(ministack, &stack).await;
}

/// When a pause ends, the events that it held must be retried at once, not at their next check 22 minutes later.
async fn held_events_return_when_their_pause_ends(ministack: &MiniStack, stack: &Stack) {
    let function = stack.output("ExampleTargetName");
    let operator = Operator::of(ministack);
    drop(operator.comeback(&format!("pause {function} --reason 'a bad deploy' {STACK}")).ended(0));
    // By the time the event is due, every environment of the handler has read the pause.
    let mut record: Value = serde_json::from_str(&record(function, "RetryAfter", "held")).expect("JSON");
    record["responsePayload"]["errorMessage"] = "45s".into();
    send(ministack, stack, &[record.to_string()]).await;
    eventually("the event to be held", async || {
        keys_of(ministack, stack, "hold").await.contains("held").then_some(())
    })
    .await;
    let resumer = Operator::of_command(ministack, "resume", stack, function);
    let resumed = resumer.comeback(&format!("resume {function} {STACK} --json")).json(0);
    assert_eq!(resumed["result"]["recalled"], 1, "{resumed:#}");
    eventually("the event to be retried", async || {
        keys_of(ministack, stack, "reinvoke").await.contains("held").then_some(())
    })
    .await;
}

/// Keys of the events in the handler's log lines with this action.
async fn keys_of(ministack: &MiniStack, stack: &Stack, action: &str) -> BTreeSet<String> {
    let lines = log_lines(ministack, stack.handler_logs()).await;
    let such = lines.into_iter().filter(|line| line["action"] == action);
    such.filter_map(|line| line["key"].as_str().map(ToOwned::to_owned)).collect()
}
