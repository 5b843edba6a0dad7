use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use comeback_tests::{LONGEST_TIMEOUT, MiniStack, deploy, eventually, kill, outage_target, scratch};
use serde_json::{Value, json};

use crate::attach::send_failures_to;
use crate::retries::{enable, held};
use crate::world::World;

const TARGET: &str = "orders";
const ORDERS: u64 = 12;
/// Seconds before the first retry, and before each later one.
const BASE: f64 = 60.0;
const CAP: f64 = 240.0;
/// Three hours of that clock.
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
    // The handler's own minute is a second here, too little for a busy machine.
    let longer = ministack.lambda.update_function_configuration().function_name(handler);
    longer.timeout(LONGEST_TIMEOUT).send().await.expect("Lambda changes the function");
    outage_target(ministack, TARGET).await;
    send_failures_to(&ministack.shell(), stack.output("RetryQueueArn"), TARGET);

    // The target is out, and half the orders come.
    let files = Files::new();
    files.order(ministack, 0..ORDERS / 2).await;
    files.all_seen("the first retries, in vain", ORDERS / 2, |seen| seen.attempt >= 1).await;

    // The handler is out as well when the others come, and is not the same process afterwards.
    enable(ministack, handler, false).await;
    files.order(ministack, ORDERS / 2..ORDERS).await;
    files.all_seen("the failures of the rest", ORDERS, |_| true).await;
    eventually("every order to wait in the retry queue", LIMIT, async || {
        (held(ministack, queue).await >= ORDERS as usize).then_some(())
    })
    .await;
    assert!(kill(ministack, handler) > 0, "the handler had run, so there was a process to kill");
    enable(ministack, handler, true).await;
    files.all_seen("a retry of every order, in vain", ORDERS, |seen| seen.attempt >= 1).await;

    // It dies again, while the orders of the second half have a retry before them; then the target is back.
    assert!(kill(ministack, handler) > 0, "the handler is another process by now");
    fs::remove_file(&files.outage).expect("the file is there");
    files.all_seen("every order to be taken", ORDERS, |seen| seen.taken).await;
    eventually("the retry queue to be empty", LIMIT, async || {
        (held(ministack, queue).await == 0).then_some(())
    })
    .await;
    assert_eq!(held(ministack, stack.output("DeadLetterQueueUrl")).await, 0, "none is given up");
    assert_backoffs(&files.seen());
}

/// The files that the target looks at, and writes.
struct Files {
    outage: PathBuf,
    ledger: PathBuf,
}

impl Files {
    fn new() -> Self {
        let directory = scratch("hours");
        let files = Self { outage: directory.join("outage"), ledger: directory.join("ledger") };
        fs::write(&files.outage, "")
            .and_then(|()| fs::write(&files.ledger, ""))
            .expect("files can be written");
        files
    }

    async fn order(&self, ministack: &MiniStack, orders: Range<u64>) {
        for order in orders {
            let event = json!({"order": order, "outage": self.outage, "ledger": self.ledger});
            ministack.invoke(TARGET, &event.to_string()).await;
        }
    }

    fn seen(&self) -> Vec<Seen> {
        let ledger = fs::read_to_string(&self.ledger).expect("the ledger can be read");
        let line = |line: &str| {
            let seen: Value = serde_json::from_str(line).expect("a line of the ledger is JSON");
            let number = |key: &str| seen[key].as_u64().expect("a number");
            let at = seen["at"].as_f64().expect("a time");
            Seen { order: number("order"), attempt: number("attempt"), at, taken: seen["taken"] == true }
        };
        // The last line may be half written.
        ledger.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(line).collect()
    }

    /// Waits until so many orders were each seen at least once as asked.
    async fn all_seen(&self, what: &str, orders: u64, is_it: impl Fn(&Seen) -> bool) {
        eventually(what, LIMIT, async || {
            let seen = self.seen().into_iter().filter(&is_it).map(|seen| seen.order);
            (seen.collect::<BTreeSet<_>>().len() as u64 == orders).then_some(())
        })
        .await;
    }
}

/// From the invocation before it to each retry its backoff has passed. How much more is the poller's affair: it looks
/// once a minute of this clock.
fn assert_backoffs(seen: &[Seen]) {
    for later in seen.iter().filter(|seen| seen.attempt > 0) {
        // A handler that dies after a re-invocation makes it again, and a second chain of retries runs beside the first.
        // Nothing tells which of the two a retry belongs to, so each is held to the one that began first.
        let before =
            seen.iter().filter(|seen| (seen.order, seen.attempt + 1) == (later.order, later.attempt));
        let earlier = before.min_by(|a, b| a.at.total_cmp(&b.at));
        let earlier = earlier.unwrap_or_else(|| panic!("{later:?} skips a retry"));
        let backoff = (BASE * 2f64.powi(later.attempt as i32 - 1)).min(CAP);
        // Half a second early counts as due.
        let waited = later.at - earlier.at + 0.5;
        assert!(waited >= backoff, "{waited} s, not {backoff} s, from {earlier:?} to {later:?}");
    }
}
