//! A target that recovers, on a clock that is 60 times as fast. The trial publishes the target's minutes itself, because
//! MiniStack's own are there at once, and a few orders make no 500 attempts.

use std::collections::BTreeMap;

use comeback_tests::{Operator, eventually, log_lines};
use serde_json::Value;

use crate::orders::Orders;
use crate::world::World;

const ORDERS: u64 = 4;
/// The third backoff, in seconds. Before it, each event has failed more than twice, so the handler reads the minutes. It is
/// long, and looked at often, because a busy machine answers some of those reads too late.
const BACKOFF: f64 = 28_800.0;

pub(crate) async fn waits_pass_faster_once_the_target_has_recovered(world: &World) {
    let ministack = world.sped_up().await;
    let parameters = format!("Backoffs=1,1,{BACKOFF} Recovery=on LongestHide=1344");
    let (stack, orders) = Orders::with_stack(ministack, "recovery", &parameters).await;
    let target = Orders::target_of("recovery");

    orders.come(0..ORDERS).await;
    orders.all_seen("the second retry of each, in vain", ORDERS, |seen| seen.attempt == 2).await;
    // The server's clock is known from an invocation. By its minutes, the target is down for another hour, and then well.
    let now = orders.seen().iter().map(|seen| seen.at).fold(0.0, f64::max);
    let minute = now as u64 / 60;
    ministack.publish_minutes(&target, minute - 180, &[(240, 100, 100), (540, 20, 0)]);
    orders.end_outage();
    let status = Operator::on_clock_of(ministack).comeback("status --stack recovery --json").json(0);
    let known = &status["recovery"]["functions"][0];
    assert_eq!((known["function"].as_str(), &known["speed"]), (Some(&*target), &Value::Null), "{status}");

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
    // On a busy machine, an invocation can end by its timeout, and without its lines.
    let early = eventually("a retry that came early in the log", async || {
        // MiniStack may show an invocation's last lines only with those of the next one.
        ministack.invoke(stack.output("RetryHandlerName"), r#"{"Records": []}"#).await;
        let lines = log_lines(ministack, log).await;
        lines.into_iter().find(|line| line["speed"].is_number())
    })
    .await;
    assert!(early["speed"].as_f64() > Some(1.0), "{early}");
}
