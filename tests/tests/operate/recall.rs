use std::collections::BTreeSet;

use comeback_tests::{MiniStack, Operator, Stack, eventually, log_lines};
use serde_json::{Value, json};

use crate::failures::{record, send};
use crate::world::World;

const STACK: &str = "--stack recalling --yes";
const EVENTS: usize = 1_000;

/// Every backoff takes an hour, and the function works again. Nothing here takes longer than the patience of the tests, which
/// is much shorter.
pub(crate) async fn waiting_events_return_when_an_operator_says_so(world: &World) {
    let stack = world.deploy("recalling", "BaseBackoff=3600 MaxBackoff=3600 Jitter=none").await;
    let ministack = world.ministack().await;
    let function = stack.output("ExampleTargetName");
    let retrier = Operator::of_command(ministack, "retry", &stack, function);
    let fails = async |keys: &[String]| {
        let records: Vec<_> = keys.iter().map(|key| record(function, "TargetDown", key)).collect();
        send(ministack, &stack, &records).await;
        eventually("the handler to hide them", async || {
            let hidden = keys_of(ministack, &stack, "defer").await;
            keys.iter().all(|key| hidden.contains(key)).then_some(())
        })
        .await;
    };

    let keys: Vec<_> = (0..EVENTS).map(|n| format!("recalled-{n}")).collect();
    fails(&keys).await;
    let done = retrier.comeback(&format!("retry {function} --within 0s {STACK} --json")).json(0);
    assert_eq!((&done["reached"], &done["result"]["recalled"]), (&json!(EVENTS), &json!(EVENTS)), "{done:#}");
    eventually("all to be delivered", async || {
        (keys_of(ministack, &stack, "reinvoke").await.len() == EVENTS).then_some(())
    })
    .await;
    let again = retrier.comeback(&format!("retry {function} --within 0s {STACK} --json")).json(0);
    assert_eq!((&again["reached"], &again["requested"]), (&json!(0), &Value::Null), "{again:#}");
}

/// The keys of the events that the handler has done this with.
async fn keys_of(ministack: &MiniStack, stack: &Stack, action: &str) -> BTreeSet<String> {
    let lines = log_lines(ministack, stack.handler_logs()).await;
    let such = lines.into_iter().filter(|line| line["action"] == action);
    such.filter_map(|line| line["key"].as_str().map(ToOwned::to_owned)).collect()
}
