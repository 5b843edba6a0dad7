//! Tests how orders are retried while their target is down, on a clock 60 times as fast as real time.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use comeback_tests::{
    DeadLetter, MiniStack, Shell, Stack, dead_letters, eventually, kill, log_lines, outage_target, scratch,
};
use comeback_timelapse::Depth;
use serde_json::{Value, json};

use crate::attach::send_failures_to;
use crate::retries::{depth, enable, held, mapping};
use crate::world::World;

pub(crate) async fn outages_and_restarts_lose_nothing(world: &World) {
    const ORDERS: u64 = 12;
    /// Backoff before the first retry, in seconds.
    const BASE: f64 = 60.0;
    /// Longest backoff, in seconds.
    const CAP: f64 = 240.0;
    let ministack = world.sped_up().await;
    let parameters = format!("BaseBackoff={BASE} MaxBackoff={CAP}");
    let (stack, orders) = Orders::with_stack(ministack, "hours", &parameters).await;
    let (handler, queue) = (stack.output("RetryHandlerName"), stack.output("RetryQueueUrl"));

    // The target is down when half of the orders arrive.
    orders.come(0..ORDERS / 2).await;
    orders.all_seen("the first retries to fail", ORDERS / 2, |seen| seen.attempt >= 1).await;

    // The other orders arrive while the handler is disabled as well. The handler then continues in a new process.
    enable(ministack, handler, false).await;
    orders.come(ORDERS / 2..ORDERS).await;
    orders.all_seen("the failures of the rest", ORDERS, |_| true).await;
    eventually("every order to wait in the retry queue", async || {
        (held(ministack, queue).await >= ORDERS as usize).then_some(())
    })
    .await;
    kill(ministack, handler);
    enable(ministack, handler, true).await;
    orders.all_seen("a failed retry of every order", ORDERS, |seen| seen.attempt >= 1).await;

    // The handler is killed once more, and then the target recovers.
    eventually("another process of the handler", async || (kill(ministack, handler) > 0).then_some(())).await;
    orders.end_outage();
    orders.all_seen("every order to be taken", ORDERS, |seen| seen.taken).await;
    eventually("the retry queue to be empty", async || (held(ministack, queue).await == 0).then_some(()))
        .await;
    assert_eq!(held(ministack, stack.output("DeadLetterQueueUrl")).await, 0, "no order is dead-lettered");
    orders.assert_retries(BASE, CAP);
}

/// With `HIDE_UP_TO` at 0, the handler moves every waiting message, and must not lose any.
pub(crate) async fn moved_messages_are_not_lost(world: &World) {
    const ORDERS: u64 = 8;
    /// Backoff before each retry, in seconds. It takes two moves of at most 900 s each.
    const BACKOFF: f64 = 960.0;
    /// Name of a function that does not exist.
    const NOBODY: &str = "nobody";
    /// A payload whose bytes would change if a JSON parser read and rewrote it.
    const PAYLOAD: &str =
        r#"{"n": 1E400, "n":-0.0,"id":123456789012345678901234567890, "text":"\u00e9é\"\ud83d\ude00"}"#;
    let ministack = world.moving().await;
    let nobody = MiniStack::function_arn(NOBODY);
    let parameters = format!("HideUpTo=0 BaseBackoff={BACKOFF} MaxBackoff={BACKOFF}");
    let (stack, orders) = Orders::with_stack(ministack, "moves", &parameters).await;
    let [handler, queue, dead_letter_queue] =
        ["RetryHandlerName", "RetryQueueUrl", "DeadLetterQueueUrl"].map(|name| stack.output(name));

    // The first order arrives while the role does not allow moves, as after an update that reached the handler but not
    // its role.
    let role = Role::of(ministack, &stack);
    role.forbid_moves();
    orders.come(0..1).await;
    let kept = eventually("the handler to keep what it may not move", async || {
        let result = mapping(ministack, handler).await.last_processing_result.unwrap_or_default();
        result.contains("1 partial failure").then_some(depth(ministack, queue).await)
    })
    .await;
    assert_eq!(kept, Depth { visible: 0, in_flight: 1, delayed: 0 }, "it is hidden");
    role.allow_moves();

    // All other messages are delayed. Only messages in the handler's batches are in flight.
    orders.come(1..ORDERS).await;
    let record = format!(r#"{{"requestContext":{{"functionArn":"{nobody}"}},"requestPayload":{PAYLOAD}}}"#);
    ministack.sqs.send_message().queue_url(queue).message_body(record).send().await.expect("SQS takes it");
    eventually("all others to be delayed, none lost or doubled", async || {
        // On a slow machine, the event for `nobody` may already be in the dead-letter queue.
        let dead_lettered = held(ministack, dead_letter_queue).await;
        let Depth { visible, in_flight, delayed } = depth(ministack, queue).await;
        let all = delayed + in_flight + dead_lettered == ORDERS as usize + 1;
        (all && visible == 0 && in_flight <= 1 && dead_lettered <= 1).then_some(())
    })
    .await;
    let denied = eventually("the denied move in the log", async || {
        let lines = log_lines(ministack, stack.handler_logs()).await;
        lines.into_iter().find(|line| line["action"] == "move" && line["level"] == "ERROR")
    })
    .await;
    assert_eq!((&denied["moved"], &denied["hidden_instead"]), (&json!(0), &json!(1)), "{denied}");
    let remedy = denied["remedy"].as_str().unwrap_or_default();
    assert!(remedy.starts_with("allow sqs:SendMessage on the retry queue"), "{denied}");

    // Waiting messages must not depend on the process that handled them.
    eventually("a process of the handler", async || (kill(ministack, handler) > 0).then_some(())).await;
    orders.end_outage();
    orders.all_seen("every order to be taken", ORDERS, |seen| seen.taken && seen.attempt > 0).await;
    orders.assert_retries(BACKOFF, BACKOFF);
    eventually("the retry queue to be empty", async || (held(ministack, queue).await == 0).then_some(()))
        .await;
    let found = dead_letters(ministack, dead_letter_queue).await;
    // The handler was killed. If it had sent a copy of the event for `nobody` but not deleted the original, both are
    // dead-lettered.
    assert!((1..=2).contains(&found.len()), "{found:?}");
    for DeadLetter { body, .. } in &found {
        let (context, payload) = body.split_once(r#","payload":"#).expect("the payload is last");
        assert_eq!(
            payload.strip_suffix('}'),
            Some(PAYLOAD),
            "no hop changed a byte, and no order is dead-lettered"
        );
        let context: Value = serde_json::from_str(&format!("{context}}}")).expect("the dead-letter is JSON");
        assert_eq!(context["reason"], "target_not_found");
        // The handler does not notice that the function is missing until the backoff has ended. Both times are in whole
        // seconds.
        let at = |name: &str| context[name].as_f64().expect("a time");
        assert!(at("dead_lettered_at") + 1.0 >= at("initial_timestamp") + BACKOFF, "{context}");
    }
}

/// The retry handler's role, from which a test can remove the permission to move messages.
struct Role {
    shell: Shell,
    policy: Value,
}

impl Role {
    fn of(ministack: &MiniStack, stack: &Stack) -> Self {
        let shell = ministack.shell().with("ROLE", stack.output("RetryHandlerRoleName"));
        let get =
            "aws iam get-role-policy --role-name $ROLE --policy-name retry-handler --query PolicyDocument";
        let policy = shell.run(&format!("{get} --output json")).unwrap_or_else(|error| panic!("{error}"));
        Self { shell, policy: serde_json::from_str(&policy).expect("a policy is JSON") }
    }

    fn forbid_moves(&self) {
        let mut policy = self.policy.clone();
        let statements = policy["Statement"].as_array_mut().expect("a policy has statements");
        let all = statements.len();
        statements.retain(|statement| statement["Sid"] != "Move");
        assert_eq!(statements.len(), all - 1);
        self.put(&policy);
    }

    fn allow_moves(&self) {
        self.put(&self.policy);
    }

    fn put(&self, policy: &Value) {
        let put = "aws iam put-role-policy --role-name $ROLE --policy-name retry-handler --policy-document \"$POLICY\"";
        self.shell
            .clone()
            .with("POLICY", policy.to_string())
            .run(put)
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) order: u64,
    pub(crate) attempt: u64,
    /// Time of the invocation on MiniStack's fast clock, in seconds since 1970.
    pub(crate) at: f64,
    pub(crate) taken: bool,
    event: Value,
}

/// Raises the handler's timeout. The template sets it to a minute, which is only a second of real time on the fast
/// clock.
pub(crate) async fn give_time(ministack: &MiniStack, stack: &Stack) {
    let handler = stack.output("RetryHandlerName");
    let longer = ministack.lambda.update_function_configuration().function_name(handler);
    longer.timeout(ministack.longest_timeout()).send().await.expect("Lambda changes the function");
}

/// A target that is down while a file exists, and that records its invocations in another file.
pub(crate) struct Orders<'m> {
    ministack: &'m MiniStack,
    target: String,
    outage: PathBuf,
    ledger: PathBuf,
}

impl<'m> Orders<'m> {
    pub(crate) fn target_of(stack: &str) -> String {
        format!("{stack}-orders")
    }

    /// Deploys a new stack to a server with a fast clock, and attaches a target that fails at first.
    pub(crate) async fn with_stack(ministack: &'m MiniStack, name: &str, parameters: &str) -> (Stack, Self) {
        let [target, nobody] = [&Self::target_of(name), "nobody"].map(MiniStack::function_arn);
        let parameters =
            format!("Jitter=none Envelope=inline TargetFunctions={target},{nobody} {parameters}");
        let stack = ministack.deploy(name, &parameters).await.unwrap_or_else(|error| panic!("{error}"));
        let orders = Self::of_stack(ministack, &stack).await;
        (stack, orders)
    }

    /// Creates a target that fails at first, and attaches it to this stack on a server with a fast clock.
    pub(crate) async fn of_stack(ministack: &'m MiniStack, stack: &Stack) -> Self {
        give_time(ministack, stack).await;
        let target = Self::target_of(stack.name());
        outage_target(ministack, &target).await;
        send_failures_to(&ministack.shell(), stack.output("RetryQueueArn"), &target);
        let directory = scratch(&target);
        let (outage, ledger) = (directory.join("outage"), directory.join("ledger"));
        fs::write(&outage, "").and_then(|()| fs::write(&ledger, "")).expect("files can be written");
        Self { ministack, target, outage, ledger }
    }

    fn event(&self, order: u64) -> Value {
        let (outage, ledger) = (&self.outage, &self.ledger);
        json!({"order": order, "outage": outage, "ledger": ledger, "amount": 1.5, "text": "\u{e9}\"\\", "nothing": null})
    }

    pub(crate) async fn come(&self, orders: Range<u64>) {
        for order in orders {
            self.ministack.invoke(&self.target, &self.event(order).to_string()).await;
        }
    }

    pub(crate) fn end_outage(&self) {
        fs::remove_file(&self.outage).expect("the file is there");
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        let ledger = fs::read_to_string(&self.ledger).expect("the ledger can be read");
        let line = |line: &str| {
            let mut seen: Value = serde_json::from_str(line).expect("a line of the ledger is JSON");
            let number = |key: &str| seen[key].as_u64().expect("a number");
            let (order, attempt) = (number("order"), number("attempt"));
            let at = seen["at"].as_f64().expect("a time");
            Seen { order, attempt, at, taken: seen["taken"] == true, event: seen["event"].take() }
        };
        // The target may still be writing the last line.
        ledger.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(line).collect()
    }

    /// Waits until this many orders have had an invocation that `is_it` accepts.
    pub(crate) async fn all_seen(&self, what: &str, orders: u64, is_it: impl Fn(&Seen) -> bool) {
        eventually(what, async || {
            let seen = self.seen().into_iter().filter(&is_it).map(|seen| seen.order);
            (seen.collect::<BTreeSet<_>>().len() as u64 == orders).then_some(())
        })
        .await;
    }

    /// Asserts that each retry contains the whole order, and that it waited for at least its backoff.
    ///
    /// The first backoff is `base` seconds, and each further one is twice as long, up to `cap`.
    pub(crate) fn assert_retries(&self, base: f64, cap: f64) {
        let seen = self.seen();
        for later in seen.iter().filter(|seen| seen.attempt > 0) {
            assert_eq!(later.event, self.event(later.order));
            // A handler that is killed after a re-invocation repeats it, and a second chain of retries then runs
            // alongside the first. A retry does not identify its chain, so each is compared with the chain that began
            // first.
            let before =
                seen.iter().filter(|seen| (seen.order, seen.attempt + 1) == (later.order, later.attempt));
            let earlier = before.min_by(|a, b| a.at.total_cmp(&b.at));
            let earlier = earlier.unwrap_or_else(|| panic!("{later:?} skips a retry"));
            let backoff = (base * 2f64.powi(later.attempt as i32 - 1)).min(cap);
            // A retry may come up to half a second early.
            let waited = later.at - earlier.at + 0.5;
            assert!(waited >= backoff, "{waited} s, not {backoff} s, from {earlier:?} to {later:?}");
        }
    }
}
