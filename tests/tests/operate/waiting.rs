use comeback_tests::{Operator, eventually};
use serde_json::{Value, json};

use crate::world::World;

/// `comeback waiting` finds events that were moved, and warns that they may wait for longer than the log is kept.
pub(crate) async fn waiting_events_are_found_in_the_log(world: &World) {
    let parameters =
        "BaseBackoff=40000 MaxBackoff=43170 Jitter=none MaxAge=172800 HideUpTo=0 LogRetentionDays=1";
    let stack = world.deploy("found-waiting", parameters).await;
    let ministack = world.ministack().await;
    let target = stack.output("ExampleTargetName");
    let operator = Operator::of_command(ministack, "waiting", &stack, target);
    let waiting = |arguments: &str| operator.comeback(&format!("waiting --stack found-waiting {arguments}"));
    let down = ministack.invoke(target, r#"{"fail": true, "error_type": "acme.TargetDown"}"#).await;
    let in_the_log = async |events: u64| {
        let found = async || Some(waiting("--json").json(0)).filter(|found| found["found"] == events);
        eventually("the events in the log", found).await
    };
    in_the_log(1).await;
    ministack.invoke(target, r#"{"fail": true, "error_type": "acme.Timeout"}"#).await;
    let found = in_the_log(2).await;
    assert_eq!((&found["groups"][1]["count"], &found["events"]), (&json!(1), &Value::Null));
    let notes = found["notes"].to_string();
    assert!(
        notes.contains("keeps lines for only 24h, but an event may wait 2d between two lines"),
        "{notes}"
    );

    let found = waiting(&format!("{target} --error TargetDown --due-within 12h --each --json")).json(0);
    assert_eq!((&found["found"], &found["is_everything"]), (&json!(1), &json!(false)));
    let event = &found["events"][0];
    assert_eq!((&event["key"], &event["retry"], &event["why"]), (&json!(down), &json!(1), &json!("backoff")));
    assert_eq!(waiting("--due-within 1h --json").json(0)["found"], 0);
    let text = waiting("--each").ended(0);
    assert!(text.contains(&format!("\n{down}  {target}  1      acme.TargetDown  ")), "{text}");
    assert!(text.contains("Found in the log: 2 of about 2 in the retry queue."), "{text}");
    let mistyped = waiting("--error Nope");
    let theirs = "no event has an error that matches Nope; the errors are: acme.TargetDown (1), acme.Timeout \
                  (1)";
    assert!(mistyped.stderr.contains(theirs), "{}", mistyped.stderr);

    let unknown = waiting("no-such-function --json");
    assert!(unknown.stderr.contains("does not retry no-such-function"), "{}", unknown.stderr);
    assert_eq!(unknown.json(3)["found"], 0);
}
