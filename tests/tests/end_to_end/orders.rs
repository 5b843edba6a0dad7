use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use comeback_tests::{LONGEST_TIMEOUT, MiniStack, Stack, deploy, eventually, outage_target, scratch};
use serde_json::{Value, json};

use crate::attach::send_failures_to;

/// The function that takes them.
pub(crate) const TARGET: &str = "orders";
/// Three hours of the faster clock.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);

/// One invocation of the target.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    order: u64,
    pub(crate) attempt: u64,
    /// On the faster clock, in seconds since the epoch.
    at: f64,
    pub(crate) taken: bool,
    event: Value,
}

/// Orders for a target that is out while a file is there; it notes those that it sees in another.
pub(crate) struct Orders {
    outage: PathBuf,
    ledger: PathBuf,
}

/// Deploys a stack of this name on the faster clock, attaches [`TARGET`] to it, and has that be out.
pub(crate) async fn deploy_for_orders(
    ministack: &MiniStack,
    name: &str,
    parameters: &str,
) -> (Stack, Orders) {
    let parameters = format!("Jitter=none Envelope=inline {parameters}");
    let stack = deploy(&ministack.shell(), name, &parameters).unwrap_or_else(|error| panic!("{error}"));
    let orders = Orders::for_stack(ministack, &stack).await;
    (stack, orders)
}

/// The handler's own minute is a second here, too little for a busy machine.
pub(crate) async fn give_time(ministack: &MiniStack, stack: &Stack) {
    let handler = stack.output("RetryHandlerName");
    let longer = ministack.lambda.update_function_configuration().function_name(handler);
    longer.timeout(LONGEST_TIMEOUT).send().await.expect("Lambda changes the function");
}

impl Orders {
    /// Attaches [`TARGET`] to a stack on the faster clock, and has it be out.
    pub(crate) async fn for_stack(ministack: &MiniStack, stack: &Stack) -> Self {
        give_time(ministack, stack).await;
        outage_target(ministack, TARGET).await;
        send_failures_to(&ministack.shell(), stack.output("RetryQueueArn"), TARGET);
        Self::new(stack.name())
    }

    fn new(name: &str) -> Self {
        let directory = scratch(name);
        let orders = Self { outage: directory.join("outage"), ledger: directory.join("ledger") };
        fs::write(&orders.outage, "")
            .and_then(|()| fs::write(&orders.ledger, ""))
            .expect("files can be written");
        orders
    }

    fn event(&self, order: u64) -> Value {
        let (outage, ledger) = (&self.outage, &self.ledger);
        json!({"order": order, "outage": outage, "ledger": ledger, "amount": 1.5, "text": "\u{e9}\"\\", "nothing": null})
    }

    pub(crate) async fn come(&self, ministack: &MiniStack, orders: Range<u64>) {
        for order in orders {
            ministack.invoke(TARGET, &self.event(order).to_string()).await;
        }
    }

    pub(crate) fn end_outage(&self) {
        fs::remove_file(&self.outage).expect("the file is there");
    }

    fn seen(&self) -> Vec<Seen> {
        let ledger = fs::read_to_string(&self.ledger).expect("the ledger can be read");
        let line = |line: &str| {
            let mut seen: Value = serde_json::from_str(line).expect("a line of the ledger is JSON");
            let number = |key: &str| seen[key].as_u64().expect("a number");
            let (order, attempt) = (number("order"), number("attempt"));
            let at = seen["at"].as_f64().expect("a time");
            Seen { order, attempt, at, taken: seen["taken"] == true, event: seen["event"].take() }
        };
        // The last line may be half written.
        ledger.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(line).collect()
    }

    /// Waits until so many orders were each seen at least once as asked.
    pub(crate) async fn all_seen(&self, what: &str, orders: u64, is_it: impl Fn(&Seen) -> bool) {
        eventually(what, LIMIT, async || {
            let seen = self.seen().into_iter().filter(&is_it).map(|seen| seen.order);
            (seen.collect::<BTreeSet<_>>().len() as u64 == orders).then_some(())
        })
        .await;
    }

    /// Each retry brought all that was ordered, and came when its backoff had passed since the invocation before it:
    /// `base` seconds, doubled with each retry up to `cap`. How much later is the poller's affair: it looks once a minute
    /// of this clock.
    pub(crate) fn assert_retries(&self, base: f64, cap: f64) {
        let seen = self.seen();
        for later in seen.iter().filter(|seen| seen.attempt > 0) {
            assert_eq!(later.event, self.event(later.order));
            // A handler that dies after a re-invocation makes it again, and a second chain of retries runs beside the
            // first. Nothing tells which of the two a retry belongs to, so each is held to the one that began first.
            let before =
                seen.iter().filter(|seen| (seen.order, seen.attempt + 1) == (later.order, later.attempt));
            let earlier = before.min_by(|a, b| a.at.total_cmp(&b.at));
            let earlier = earlier.unwrap_or_else(|| panic!("{later:?} skips a retry"));
            let backoff = (base * 2f64.powi(later.attempt as i32 - 1)).min(cap);
            // Half a second early counts as due.
            let waited = later.at - earlier.at + 0.5;
            assert!(waited >= backoff, "{waited} s, not {backoff} s, from {earlier:?} to {later:?}");
        }
    }
}
