use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use comeback_tests::{MiniStack, deploy, eventually, kill, log_lines, outage_target, scratch};
use serde_json::json;

use crate::attach::send_failures_to;
use crate::retries::{enable, held};
use crate::world::World;

const TARGET: &str = "orders";
const ORDERS: u64 = 12;
/// Seconds before the first retry, and before each later one.
const BASE: f64 = 60.0;
const CAP: f64 = 240.0;
/// Two seconds of ours are two minutes here; a retry takes about five.
const LIMIT: Duration = Duration::from_secs(180);

/// One invocation of the target.
#[derive(Clone, Copy, Debug)]
struct Seen {
    order: u64,
    attempt: u64,
    /// On the faster clock, in seconds since the epoch.
    at: f64,
    taken: bool,
}

/// Minutes of waiting pass over real HTTP, on a clock that goes 60 times as fast.
pub(crate) async fn outages_and_restarts_lose_nothing(world: &World) {
    world.built().await;
    let ministack = world.sped_up().await;
    let parameters = format!(
        "BaseBackoff={BASE} MaxBackoff={CAP} Jitter=none Envelope=inline TargetFunctions={}",
        MiniStack::function_arn(TARGET)
    );
    let stack = deploy(&ministack.shell(), "hours", &parameters).unwrap_or_else(|error| panic!("{error}"));
    let (handler, queue) = (stack.output("RetryHandlerName"), stack.output("RetryQueueUrl"));
    outage_target(ministack, TARGET).await;
    send_failures_to(&ministack.shell(), stack.output("RetryQueueArn"), TARGET);

    // The target is out, and half the orders come.
    let outage = scratch("hours").join("outage");
    fs::write(&outage, "").expect("a scratch file can be written");
    order(ministack, 0..ORDERS / 2, &outage).await;
    all_seen(ministack, "the first retries, in vain", ORDERS / 2, |seen| seen.attempt >= 1).await;

    // The handler is out as well when the others come, and is not the same process afterwards.
    enable(ministack, handler, false).await;
    order(ministack, ORDERS / 2..ORDERS, &outage).await;
    all_seen(ministack, "the failures of the rest", ORDERS, |_| true).await;
    eventually("every order to wait in the retry queue", LIMIT, async || {
        (held(ministack, queue).await == ORDERS as usize).then_some(())
    })
    .await;
    assert!(kill(ministack, handler) > 0, "the handler had run, so there was a process to kill");
    enable(ministack, handler, true).await;
    all_seen(ministack, "a retry of every order, in vain", ORDERS, |seen| seen.attempt >= 1).await;

    // It dies again, while the orders of the second half have a retry before them; then the target is back.
    assert!(kill(ministack, handler) > 0, "the handler is another process by now");
    fs::remove_file(&outage).expect("the file is there");
    all_seen(ministack, "every order to be taken", ORDERS, |seen| seen.taken).await;
    eventually("the retry queue to be empty", LIMIT, async || {
        (held(ministack, queue).await == 0).then_some(())
    })
    .await;
    assert_eq!(held(ministack, stack.output("DeadLetterQueueUrl")).await, 0, "none is given up");
    assert_backoffs(&seen(ministack).await);
}

async fn order(ministack: &MiniStack, orders: std::ops::Range<u64>, outage: &Path) {
    for order in orders {
        ministack.invoke(TARGET, &json!({"order": order, "outage": outage}).to_string()).await;
    }
}

async fn seen(ministack: &MiniStack) -> Vec<Seen> {
    let lines = log_lines(ministack, &format!("/aws/lambda/{TARGET}")).await;
    let seen = lines.iter().filter_map(|line| {
        Some(Seen {
            order: line.get("order")?.as_u64()?,
            attempt: line.get("attempt")?.as_u64()?,
            at: line.get("at")?.as_f64()?,
            taken: line.get("taken")?.as_bool()?,
        })
    });
    seen.collect()
}

/// Waits until so many orders were each seen at least once as asked.
async fn all_seen(ministack: &MiniStack, what: &str, orders: u64, is_it: impl Fn(&Seen) -> bool) {
    eventually(what, LIMIT, async || {
        let seen = seen(ministack).await;
        let found: BTreeSet<u64> = seen.iter().filter(|seen| is_it(seen)).map(|seen| seen.order).collect();
        (found.len() as u64 == orders).then_some(())
    })
    .await;
}

/// Each retry is one more than the last, and its whole backoff later. How much later is the poller's affair: it looks
/// once a minute of this clock.
fn assert_backoffs(seen: &[Seen]) {
    let mut first_of: BTreeMap<(u64, u64), f64> = BTreeMap::new();
    for seen in seen {
        let first = first_of.entry((seen.order, seen.attempt)).or_insert(seen.at);
        *first = first.min(seen.at);
    }
    for (&(order, attempt), at) in &first_of {
        let Some(previous) = attempt.checked_sub(1) else { continue };
        let before = first_of.get(&(order, previous)).unwrap_or_else(|| panic!("attempt {previous}: {seen:?}"));
        let backoff = (BASE * 2f64.powi(previous as i32)).min(CAP);
        // Half a second early counts as due.
        assert!(at - before >= backoff - 0.5, "order {order}, attempt {attempt}: {} s", at - before);
    }
    let retries = first_of.keys().filter(|(_, attempt)| *attempt > 0).count();
    assert!(retries >= ORDERS as usize, "{retries} retries");
}
