use comeback_tests::{MiniStack, eventually, kill};

use crate::orders::{LIMIT, TARGET, deploy_for_orders};
use crate::retries::{enable, held};
use crate::world::World;

const ORDERS: u64 = 12;
/// Seconds before the first retry, and before each later one.
const BASE: f64 = 60.0;
const CAP: f64 = 240.0;

/// Minutes of waiting pass over real HTTP, on a clock that goes 60 times as fast.
pub(crate) async fn outages_and_restarts_lose_nothing(world: &World) {
    world.built().await;
    let ministack = world.sped_up().await;
    let parameters =
        format!("BaseBackoff={BASE} MaxBackoff={CAP} TargetFunctions={}", MiniStack::function_arn(TARGET));
    let (stack, orders) = deploy_for_orders(ministack, "hours", &parameters).await;
    let (handler, queue) = (stack.output("RetryHandlerName"), stack.output("RetryQueueUrl"));

    // The target is out, and half the orders come.
    orders.come(ministack, 0..ORDERS / 2).await;
    orders.all_seen("the first retries, in vain", ORDERS / 2, |seen| seen.attempt >= 1).await;

    // The handler is out as well when the others come, and is not the same process afterwards.
    enable(ministack, handler, false).await;
    orders.come(ministack, ORDERS / 2..ORDERS).await;
    orders.all_seen("the failures of the rest", ORDERS, |_| true).await;
    eventually("every order to wait in the retry queue", LIMIT, async || {
        (held(ministack, queue).await >= ORDERS as usize).then_some(())
    })
    .await;
    assert!(kill(ministack, handler) > 0, "the handler had run, so there was a process to kill");
    enable(ministack, handler, true).await;
    orders.all_seen("a retry of every order, in vain", ORDERS, |seen| seen.attempt >= 1).await;

    // It dies again, while the orders of the second half have a retry before them; then the target is back.
    assert!(kill(ministack, handler) > 0, "the handler is another process by now");
    orders.end_outage();
    orders.all_seen("every order to be taken", ORDERS, |seen| seen.taken).await;
    eventually("the retry queue to be empty", LIMIT, async || {
        (held(ministack, queue).await == 0).then_some(())
    })
    .await;
    assert_eq!(held(ministack, stack.output("DeadLetterQueueUrl")).await, 0, "none is given up");
    orders.assert_retries(BASE, CAP);
}
