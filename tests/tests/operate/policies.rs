use comeback_tests::{Operator, eventually, example_target, pages};
use serde_json::{Value, json};

use crate::attach::{STACK, patiently, value_of};
use crate::world::World;

/// The commands of the page, with no more permissions than it lists; and a policy that changes while an event waits.
pub(crate) async fn two_functions_have_a_policy_each(world: &World) {
    const FUNCTIONS: [&str; 2] = ["attached-payments", "attached-export"];
    let (ministack, stack) = (world.ministack().await, world.attaching().await);
    let blocks = pages::blocks("docs/attach.md", "A policy of its own");
    let [commands] = <[String; 1]>::try_from(blocks).expect("one block");
    let [payments, export, status] = commands.lines().collect::<Vec<_>>()[..] else { panic!("{commands}") };
    let of_page = |line: &str| {
        let arguments = line.strip_prefix("comeback ").unwrap_or_else(|| panic!("{line}"));
        format!("{} {STACK}", arguments.replace("attach ", "attach attached-"))
    };
    let mut attachers = Vec::new();
    for (function, line) in FUNCTIONS.into_iter().zip([payments, export]) {
        example_target(ministack, function).await;
        attachers.push(Operator::of_command(ministack, "attach", stack, function));
        let operator = attachers.last().expect("just pushed");
        let said = patiently(operator, &of_page(line)).await.ended(0);
        assert!(said.contains(&format!("+ FunctionPolicies: {function} MAX_AGE=")), "{said}");
        assert!(said.contains(" of the 4096 bytes that Lambda allows for the handler's variables"), "{said}");
    }
    let operator = Operator::of(ministack);
    let shown = operator.comeback(&of_page(status)).ended(0);
    let listed = "Policies      attached-payments: MAX_AGE=2h MAX_BACKOFF=15m\n              \
                  attached-export: BACKOFFS=20s,5m,30m,2h MAX_AGE=14d\n";
    assert!(shown.contains(listed), "{shown}");
    let policies = operator.comeback(&format!("{} --json", of_page(status))).json(0)["policies"].clone();
    assert_eq!(policies[1]["settings"], json!({"MAX_AGE": "14d", "BACKOFFS": "20s,5m,30m,2h"}));

    // Without jitter, the second event waits for long enough to change its policy.
    let steady = format!("{} --jitter none", of_page(export));
    drop(patiently(&attachers[1], &steady).await.ended(0));
    let paid = ministack.invoke(FUNCTIONS[0], r#"{"fail_times": 1}"#).await;
    let exported = ministack.invoke(FUNCTIONS[1], r#"{"fail": true}"#).await;
    let trace = async |id: &str, what: &str| {
        eventually(&format!("{id}: {what}"), async || {
            let ran = operator.comeback(&format!("trace --json {id} {STACK}"));
            let steps = (ran.code == 0).then(|| ran.json(0)["steps"].clone())?;
            steps.as_array().expect("a list").iter().find(|step| step["what"] == what).cloned()
        })
        .await
    };
    let waits = trace(&exported, "waits").await;
    assert_eq!(waits["policy"], FUNCTIONS[1], "{waits}");
    assert_eq!(trace(&paid, "waits").await["policy"], FUNCTIONS[0]);
    // A change ends the handler's environment, and a batch in it loses its lines.
    drop(trace(&paid, "invoked").await);
    let refused = attachers[1].comeback(&format!("attach {} {STACK} --yes --max-age 30", FUNCTIONS[1]));
    assert!(
        refused.stderr.contains("the handler would not start, so nothing is changed"),
        "{}",
        refused.stderr
    );
    assert_eq!(refused.code, 2);
    let change = format!("attach {} {STACK} --yes --max-retries 0", FUNCTIONS[1]);
    let said = patiently(&attachers[1], &change).await.ended(0);
    assert!(
        said.contains("each waiting event of attached-export that is older than MAX_AGE (14d → 24h; "),
        "{said}"
    );
    assert!(said.contains("or was retried MAX_RETRIES times or more (185 → 0)"), "{said}");
    assert_eq!(trace(&exported, "given_up").await["reason"], "max_retries");

    for function in FUNCTIONS {
        let detach = format!("detach {function} {STACK} --yes --now --json");
        let detached = patiently(&Operator::of_command(ministack, "detach", stack, function), &detach).await;
        assert!(detached.stderr.contains("not finished: "), "every change was made: {}", detached.stderr);
        let differences = detached.json(3)["differences"].clone();
        let is_its = |it: &Value| it["setting"] == "FunctionPolicies" && it["to"].is_null();
        assert!(differences.as_array().expect("a list").iter().any(is_its), "{differences:#}");
    }
    let left = value_of(ministack, "FunctionPolicies");
    assert!(!FUNCTIONS.iter().any(|function| left.contains(function)), "{left}");
}
