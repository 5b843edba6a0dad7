use std::time::Duration;

use comeback_tests::{Operator, eventually, log_lines};
use serde_json::json;

use crate::world::World;

const LIMIT: Duration = Duration::from_secs(180);

/// On a clock that goes 60 times as fast, a function fails, and its event would wait for 11 hours. The operator fixes it and
/// says "retry now": the handler finds that at its next look, within 22 minutes.
pub(crate) async fn what_waits_is_retried_after_a_fix(world: &World) {
    let parameters = "BaseBackoff=40000 MaxBackoff=40000 Jitter=none LongestHide=1344";
    let stack = world.deploy_sped_up("fixed", parameters).await;
    let ministack = world.sped_up().await;
    let function = stack.output("ExampleTargetName");
    let operator = Operator::on_clock_of(ministack);
    let fails_once = |error: &str| format!(r#"{{"fail_times": 1, "error_type": "{error}"}}"#);
    let other = ministack.invoke(function, &fails_once("Other")).await;
    // Two environments that start at once can lose a line between them and MiniStack's log.
    let logged = async || log_lines(ministack, stack.handler_logs()).await.pop();
    eventually("the handler to log", LIMIT, logged).await;
    let key = ministack.invoke(function, &fails_once("Broken")).await;
    let retry =
        |flags: &str| operator.comeback(&format!("retry {function} --stack fixed --error Broken {flags}"));
    let reach = eventually("the log to show the event", LIMIT, async || {
        let said = retry("--dry-run --json").json(0);
        (said["reached"] == 1).then_some(said)
    })
    .await;
    assert_eq!(
        (&reach["ordered"], &reach["found"], &reach["longest_hide_seconds"]),
        (&json!(null), &json!(1), &json!(1_344))
    );
    assert!(reach["all_within_seconds"].as_u64() <= Some(1_344 + 60), "{reach}");
    let unconfirmed = retry("");
    assert_eq!(unconfirmed.code, 4, "{}", unconfirmed.stderr);
    let said = retry("--within 1m --why 'deploy 4712' --yes --json").json(0);
    assert_eq!(
        (&said["ordered"]["errors"], &said["ordered"]["why"]),
        (&json!(["Broken"]), &json!("deploy 4712"))
    );
    let listed = operator.comeback("pause --list --stack fixed --json").json(0);
    assert_eq!(listed["retries"][0], said["ordered"]);
    let shown = operator.comeback("status --stack fixed").ended(0);
    assert!(shown.contains(&format!("Retry now     {function} (Broken), ordered at ")), "{shown}");
    let waiting = operator.comeback("waiting --stack fixed --json").json(0);
    assert_eq!(waiting["retries"], listed["retries"]);

    eventually("the retry", LIMIT, async || {
        let lines = log_lines(ministack, stack.handler_logs()).await;
        let is_it = |line: &serde_json::Value| line["key"] == *key && line["action"] == "reinvoke";
        lines.into_iter().find(|line| is_it(line) && line["asked_at"] == said["ordered"]["at"])
    })
    .await;
    let trace = operator.comeback(&format!("trace --stack fixed {key}")).ended(0);
    assert!(
        trace.contains("retry 1 invoked by `comeback retry` of ") && trace.contains(" before its time"),
        "{trace}"
    );
    let lines = log_lines(ministack, stack.handler_logs()).await;
    assert!(!lines.iter().any(|line| line["key"] == *other && line["action"] == "reinvoke"), "{lines:#?}");
    // Between two looks at the other event, the queue has a message that is due.
    eventually("nothing to be retried sooner", LIMIT, async || {
        let useless = retry("--yes").ended(0);
        assert!(useless.contains("no waiting event would be retried sooner\n"), "{useless}");
        useless.contains("nothing is ordered").then_some(())
    })
    .await;
    let cancel = || operator.comeback(&format!("retry {function} --stack fixed --cancel --yes --json"));
    drop(operator.comeback(&format!("retry {function} --stack fixed --within 5h --yes --json")).json(0));
    let cancelled = cancel().json(0)["cancelled"].take();
    let last = cancelled.as_array().expect("a list").last();
    assert!(last.is_some_and(|order| order["within_seconds"] == 18_000), "{cancelled}");
    drop(cancel().json(3));
    assert_eq!(operator.comeback("pause --list --stack fixed --json").json(0)["retries"], json!([]));
    let long = retry("--within 12h --yes");
    assert!(long.code == 2 && long.stderr.contains("must be at most 11h"), "{}", long.stderr);
}
