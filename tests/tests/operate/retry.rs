use std::collections::BTreeSet;
use std::time::Duration;

use comeback_engine::Timestamp;
use comeback_tests::{Operator, eventually, log_lines};
use regex::Regex;
use serde_json::{Value, json};

use crate::world::World;

/// Number of events sent to the function; [`BROKEN`] of them fail.
const EVENTS: usize = 20;
const BROKEN: usize = 6;
/// The value of `--within` in the operator's request: the time within which all retries must be due.
const WITHIN: Duration = Duration::from_secs(14 * 60);
/// Longest time from the request to the last retry, on the fast clock.
const ALL_WITHIN: Duration = Duration::from_secs(30 * 60);

/// An operator fixes a bug and requests earlier retries for the failed events. Each would otherwise wait for 11 hours.
///
/// The handler moves each message at least every 15 minutes on the fast clock, and learns of the request when it next
/// moves one.
pub(crate) async fn waiting_events_are_retried_after_a_fix(world: &World) {
    let stack =
        world.deploy_sped_up("fixed", "BaseBackoff=40000 MaxBackoff=43170 Jitter=none HideUpTo=0").await;
    let ministack = world.sped_up().await;
    let function = stack.output("ExampleTargetName");
    let operator = Operator::on_clock_of(ministack);
    let retrier = operator.clone().with_permissions_of(ministack, "retry", &stack, function);
    let logged = async || log_lines(ministack, stack.handler_logs()).await;
    let fails = async |error: &str| {
        let event = format!(r#"{{"fail_times": 1, "error_type": "{error}"}}"#);
        let key = ministack.invoke(function, &event).await;
        // Events are sent one at a time, because MiniStack may lose a log line if two environments start at the same
        // time.
        let is_logged = async || logged().await.iter().any(|line| line["key"] == *key).then_some(());
        eventually("the handler to log the failure", is_logged).await;
        key
    };
    let other = fails("Other").await;
    let mut broken = Vec::new();
    for number in 0..EVENTS {
        if number * BROKEN % EVENTS < BROKEN {
            broken.push(fails("Broken").await);
        } else {
            ministack.invoke(function, "{}").await;
        }
    }
    assert_eq!(broken.len(), BROKEN);
    let retry =
        |flags: &str| retrier.comeback(&format!("retry {function} --stack fixed --error Broken {flags}"));
    let reach = eventually("the log to show the events", async || {
        let said = retry("--dry-run --json").json(0);
        (said["reached"] == BROKEN).then_some(said)
    })
    .await;
    assert_eq!(
        (
            &reach["requested"],
            &reach["found"],
            &reach["all_within_seconds"].as_u64().is_some_and(|it| it <= 900 + 60)
        ),
        (&json!(null), &json!(BROKEN), &true)
    );
    let unconfirmed = retry("");
    assert_eq!(unconfirmed.code, 4, "{}", unconfirmed.stderr);

    let request = watched(&operator, &retrier, function).await;
    let lines = logged().await;
    assert_are_retried(&lines, &request, &broken);
    let trace = operator.comeback(&format!("trace --stack fixed {}", broken[0])).ended(0);
    let (at, by) = (&request["at"].as_str().expect("text")[11..19], request["by"].as_str().expect("text"));
    let early = format!(
        r"retry 1 invoked by `comeback retry` of {at} \({by}\), ([5-9]|1[01])h( \d+m)? before its time  [0-9a-f-]{{36}}\n"
    );
    assert!(Regex::new(&early).expect("a pattern").is_match(&trace), "{early}: {trace}");
    assert!(!lines.iter().any(|line| line["key"] == *other && line["action"] == "reinvoke"), "{lines:#?}");
    // The command is repeated until the queue has no due message: the other event's message is due for a moment before
    // each check by the handler.
    eventually("nothing to be retried sooner", async || {
        let useless = retry("--yes").ended(0);
        assert!(useless.contains("matches Broken; the errors are: Other (1)\n"), "{useless}");
        useless.contains("Nothing was requested").then_some(())
    })
    .await;
    let long = retry("--within 12h --yes");
    assert!(long.code == 2 && long.stderr.contains("must be at most 11h"), "{}", long.stderr);
    requests_are_cancelled(&operator, function);
}

/// Requests retries and watches until all are made. Returns the request as `comeback pause --list --json` shows it.
async fn watched(operator: &Operator, retrier: &Operator, function: &str) -> Value {
    let flags = "--error Broken --within 14m --why 'deploy 4712' --watch --yes";
    let (retrier, line) = (retrier.clone(), format!("retry {function} --stack fixed {flags}"));
    let watch = tokio::task::spawn_blocking(move || retrier.comeback(&line));
    let listed = eventually("the request", async || {
        let listed = operator.comeback("pause --list --stack fixed --json").json(0)["requests"].take();
        (listed != json!([])).then_some(listed)
    })
    .await;
    let request = &listed[0];
    assert_eq!((&request["errors"], &request["why"]), (&json!(["Broken"]), &json!("deploy 4712")));
    let shown = operator.comeback("status --stack fixed").ended(0);
    assert!(shown.contains(&format!("Retry now     {function} (Broken), requested at ")), "{shown}");
    assert_eq!(operator.comeback("waiting --stack fixed --json").json(0)["requests"], listed);
    let watched = watch.await.expect("it ran").ended(0);
    assert!(watched.ends_with(&format!("  {BROKEN} of {BROKEN} retried\n")), "{watched}");
    request.clone()
}

/// Asserts that every event is retried in time, but not before its due time, and that the due times are spread out.
///
/// The retry times may be less spread out, because events that failed together are also checked together.
fn assert_are_retried(lines: &[Value], request: &Value, keys: &[String]) {
    let time = |value: &Value| Timestamp::from_rfc3339(value.as_str().expect("a time")).expect("a time");
    let is_retry = |line: &&Value| line["action"] == "reinvoke" && line["asked_at"] == request["at"];
    let retries: Vec<&Value> = lines.iter().filter(is_retry).collect();
    let retried_keys: BTreeSet<&str> =
        retries.iter().map(|line| line["key"].as_str().expect("a key")).collect();
    assert_eq!(retried_keys, keys.iter().map(String::as_str).collect());
    let asked = time(&request["at"]);
    let mut due: Vec<Timestamp> = Vec::new();
    for line in retries {
        let (at, due_at) = (time(&line["timestamp"]), time(&line["due"]));
        assert!(asked <= due_at && due_at.since(asked) <= WITHIN, "{line}");
        assert!(due_at <= at && at.since(asked) <= ALL_WITHIN, "{line}");
        due.push(due_at);
    }
    due.sort_unstable();
    let is_spread = |some: &[Timestamp]| some[BROKEN / 2].since(some[0]) > Duration::from_secs(5);
    assert!(due.windows(BROKEN / 2 + 1).all(is_spread), "a burst: {due:?}");
}

fn requests_are_cancelled(operator: &Operator, function: &str) {
    let cancel = || operator.comeback(&format!("retry {function} --stack fixed --withdraw --yes --json"));
    drop(operator.comeback(&format!("retry {function} --stack fixed --within 5h --yes --json")).json(0));
    let cancelled = cancel().json(0)["withdrawn"].take();
    let last = cancelled.as_array().expect("a list").last();
    assert!(last.is_some_and(|request| request["within_seconds"] == 18_000), "{cancelled}");
    drop(cancel().json(3));
    let all = |flags: &str| operator.comeback(&format!("retry --all --stack fixed --yes --json {flags}"));
    assert_eq!(all("--within 5h").json(0)["requested"]["target"], "*");
    assert_eq!(all("--withdraw").json(0)["withdrawn"][0]["target"], "*");
    assert_eq!(operator.comeback("pause --list --stack fixed --json").json(0)["requests"], json!([]));
}
