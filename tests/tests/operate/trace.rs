use comeback_tests::{Operator, eventually};
use serde_json::Value;

use crate::world::World;

pub(crate) async fn event_is_traced_from_first_failure_to_success(world: &World) {
    let own = "FunctionPolicies=other\tMAX_AGE=2h;traced-*\tBASE_BACKOFF=1\tMAX_BACKOFF=2";
    let stack = world.deploy("traced", own).await;
    let ministack = world.ministack().await;
    let target = stack.output("ExampleTargetName");
    let operator = Operator::of_command(ministack, "trace", &stack, target);
    let first = ministack.invoke(target, r#"{"fail_times": 2, "error_type": "Traced"}"#).await;
    let another = ministack.invoke(target, r#"{"fail_times": 1, "error_type": "Another"}"#).await;

    let trace = |id: &str| operator.comeback(&format!("trace --stack traced --json {id}"));
    let ended = async |id: &str, steps: usize| {
        eventually(&format!("the end of {id}"), async || {
            let ran = trace(id);
            // It takes a moment for the event's first failure to reach the log.
            let trace = (ran.code == 0).then(|| ran.json(0))?;
            let is_last = trace["steps"].as_array().expect("a list").len() == steps;
            (is_last && trace["invocations"][0]["report"]["seen"] == "yes").then_some(trace)
        })
        .await
    };
    let traced = ended(&first, 6).await;
    assert_eq!((&traced["key"], &traced["copies"]), (&Value::from(first.as_str()), &Value::from(0)));
    let steps: Vec<&str> = traced["steps"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| it["what"].as_str().expect("text"))
        .collect();
    assert_eq!(steps, ["failed", "waits", "invoked", "failed", "waits", "invoked"]);
    assert_eq!(
        (&traced["steps"][0]["error_type"], &traced["steps"][1]["policy"]),
        (&"Traced".into(), &"traced-*".into())
    );
    assert_eq!(traced["steps"][0]["request_id"], first.as_str());
    assert_eq!(traced["end"]["end"], "invoked");
    assert!(traced["first_failure"].is_string(), "{traced}");

    // The request id of a retry finds the same event.
    let retry = traced["steps"][2]["request_id"].as_str().expect("text");
    assert_eq!(traced["steps"][3]["request_id"], retry);
    assert_eq!(trace(retry).json(0)["key"], first.as_str());

    let text = operator.comeback(&format!("trace --stack traced --logs {first}")).ended(0);
    for expected in [
        "attempt 1 failed with Traced",
        ", by the policy of traced-*\n",
        "retry 2 invoked",
        "| REPORT RequestId",
        "Retry 2 probably succeeded",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(text.contains("\"succeeded\"") && !text.contains("Another"), "{text}");
    assert_eq!(ended(&another, 3).await["key"], another.as_str());

    let unknown = trace("no-such-event");
    assert!(unknown.stderr.contains("has no-such-event"), "{}", unknown.stderr);
    assert_eq!(unknown.code, 1);
    let denied = Operator::of_command(ministack, "status", &stack, "no-function");
    let denied = denied.comeback(&format!("trace --stack traced {first}"));
    assert!(denied.stderr.contains("logs:FilterLogEvents"), "{}", denied.stderr);
    assert_eq!(denied.code, 1);
}
