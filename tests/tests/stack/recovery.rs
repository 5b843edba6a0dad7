//! A target that recovers, on a clock that is 60 times as fast. The trial publishes the target's minutes itself, because
//! MiniStack's own are there at once, and a few orders make no 500 attempts.

use std::collections::BTreeMap;

use comeback_tests::{Operator, eventually, log_lines};
use serde_json::Value;

use crate::World;
use crate::orders::{LIMIT, Orders};

const ORDERS: u64 = 4;
/// The third backoff, in seconds. Before it, each event has failed more than twice, so the handler reads the minutes.
const BACKOFF: f64 = 7_200.0;

pub(crate) async fn waits_pass_faster_once_the_target_has_recovered(world: &World) {
    let ministack = world.sped_up().await;
    let parameters = format!("Backoffs=1,1,{BACKOFF} Recovery=on");
    let (stack, orders) = Orders::with_stack(ministack, "recovery", &parameters).await;
    let target = Orders::target_of("recovery");

    // The server's clock is known from an invocation. The target is down for another hour, and then well.
    orders.come(0..1).await;
    orders.all_seen("an order, in vain", 1, |_| true).await;
    let now = orders.seen().iter().map(|seen| seen.at).fold(0.0, f64::max);
    let minute = now as u64 / 60;
    ministack.publish_minutes(&target, minute - 180, &[(240, 100, 100), (200, 20, 0)]);
    let status = Operator::on_clock_of(ministack).comeback("status --stack recovery --json").json(0);
    let known = &status["recovery"]["functions"][0];
    assert_eq!((known["function"].as_str(), &known["speed"]), (Some(&*target), &Value::Null), "{status}");

    orders.come(1..ORDERS).await;
    orders.all_seen("the second retry of each, in vain", ORDERS, |seen| seen.attempt == 2).await;
    orders.end_outage();
    orders.all_seen("every order to be taken", ORDERS, |seen| seen.taken).await;

    let seen = orders.seen();
    let moments = |attempt: u64| -> BTreeMap<u64, f64> {
        seen.iter().filter(|it| it.attempt == attempt).map(|it| (it.order, it.at)).collect()
    };
    let failed = moments(2);
    for (order, taken) in moments(3) {
        let waited = taken - failed[&order];
        assert!((BACKOFF / 20.0..BACKOFF - 600.0).contains(&waited), "order {order} waited {waited} s");
    }
    let log = stack.handler_logs();
    let early = eventually("the retries that came early in the log", LIMIT, async || {
        // MiniStack may show an invocation's last lines only with those of the next one.
        ministack.invoke(stack.output("RetryHandlerName"), r#"{"Records": []}"#).await;
        let lines = log_lines(ministack, log).await;
        let early: Vec<Value> = lines.iter().filter(|line| line["speed"].is_number()).cloned().collect();
        let recovering = lines.iter().any(|line| line["health"] == "recovering");
        (early.len() as u64 >= ORDERS && recovering).then_some(early)
    })
    .await;
    assert!(early.iter().all(|line| line["speed"].as_f64() > Some(1.0)), "{early:?}");
}
