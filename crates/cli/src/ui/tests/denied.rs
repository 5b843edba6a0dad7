//! Pages of an account: where a permission is missing, each names it and shows the rest.

use axum::http::StatusCode;
use comeback_operate::dead::samples::{ORDERS, event};
use serde_json::{Value, json};

use crate::account::Account;
use crate::clock::now;
use crate::operate::session::DeploymentFlags;
use crate::ui::console::Console;

use super::{Setting, locally, snapshot_of};

/// A console of a handler whose operator may make these calls alone, and those without which there is no page.
async fn allowed(calls: &'static [&'static str], lines: Vec<String>) -> Setting {
    served(calls, lines, false).await
}

async fn served(calls: &'static [&'static str], lines: Vec<String>, read_only: bool) -> Setting {
    let account = Account::answering_all(move |call, body| {
        let is_allowed = calls.contains(&call) || call.starts_with("/2015-03-31/");
        let answer = is_allowed.then(|| answer(call, &body, &lines)).flatten();
        answer.map_or_else(|| (403, json!({"message": "you may not"})), |answer| (200, answer))
    });
    let console = Console::new(DeploymentFlags::of_handler("retries"), read_only);
    console.reach(account.await);
    Setting::of(console).await
}

fn answer(call: &str, body: &Value, lines: &[String]) -> Option<Value> {
    let arn = |kind: &str, name: &str| format!("arn:aws:{kind}:eu-west-1:123456789012:{name}");
    Some(match call {
        "/2015-03-31/functions/retries" => json!({"Configuration": {
            "FunctionName": "retries", "FunctionArn": arn("lambda", "function:retries"), "Timeout": 30,
            "Role": "arn:aws:iam::123456789012:role/retries",
            "Environment": {"Variables": {
                "DEAD_LETTER_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/dead",
                "RETRY_QUEUE_URL": "https://sqs.eu-west-1.amazonaws.com/123456789012/retry",
                "TARGET_FUNCTIONS": format!("{ORDERS},{}", arn("lambda", "function:shop-*")),
                "PAUSES": "/retries/pauses",
            }},
        }}),
        call if call.starts_with("/2015-03-31/event-source-mappings") => json!({"EventSourceMappings": []}),
        "GetQueueAttributes" => {
            let name = body["QueueUrl"].as_str()?.rsplit('/').next()?;
            json!({"Attributes": {
                "QueueArn": arn("sqs", name), "ApproximateNumberOfMessages": "0",
                "ApproximateNumberOfMessagesNotVisible": "3", "ApproximateNumberOfMessagesDelayed": "0",
            }})
        }
        "GetParameter" => {
            let pause = json!({
                "target": arn("lambda", "function:shop-paused"), "from": 1_789_400_000, "until": null, "spread": 600,
                "by": "alice", "why": "a deploy broke it",
            });
            json!({"Parameter": {"Value": json!({"v": 1, "pauses": [pause]}).to_string(), "Version": 1}})
        }
        "FilterLogEvents" => {
            let event = |line: &String| {
                let at = now().as_millis();
                json!({"timestamp": at, "logStreamName": "s", "message": line})
            };
            json!({"events": lines.iter().map(event).collect::<Vec<_>>()})
        }
        "ReceiveMessage" => json!({}),
        _ => return None,
    })
}

async fn text(setting: &Setting, path: &str) -> String {
    let (status, text) = setting.answer(setting.page(path)).await;
    assert_eq!(status, StatusCode::OK, "{path}: {text}");
    text
}

#[tokio::test]
async fn a_page_names_the_permission_that_is_missing_and_shows_the_rest() {
    const QUEUES: &str = "GetQueueAttributes";
    const LOG: &str = "FilterLogEvents";
    const PAUSES: &str = "GetParameter";
    let cases: [(&str, &[&str], &str, &str); 11] = [
        ("/", &[QUEUES], "cloudwatch:GetMetricData", "<dt>Waiting</dt>"),
        ("/", &[QUEUES], "ssm:GetParameter", "<dt>Waiting</dt>"),
        ("/waiting", &[QUEUES, PAUSES], "logs:FilterLogEvents", "3: 3 hidden"),
        ("/waiting", &[QUEUES, LOG], "ssm:GetParameter", "0 waiting events in the handler's log"),
        ("/event?id=k-1", &[QUEUES], "logs:FilterLogEvents", "Key or request id"),
        ("/dead", &[], "sqs:GetQueueAttributes", ">Scan</button>"),
        ("/function", &[QUEUES], "lambda:ListFunctions", ">orders</a>"),
        ("/function?name=orders", &[QUEUES, PAUSES], "logs:FilterLogEvents", "MAX_AGE"),
        ("/doctor", &[QUEUES], "iam:", "CB002"),
        ("/pause?plan=yes&function=orders&reason=why", &[QUEUES], "ssm:GetParameter", "Show the plan"),
        ("/retry?plan=yes&function=orders", &[QUEUES], "ssm:GetParameter", "Show the plan"),
    ];
    locally(async {
        for (path, calls, missing, rest) in cases {
            let text = text(&allowed(calls, Vec::new()).await, path).await;
            assert!(text.contains(missing), "{path} says what is missing: {text}");
            assert!(text.contains("docs/operate.md"), "{path} says what helps: {text}");
            assert!(text.contains(rest), "{path} shows the rest: {text}");
        }
        let nothing = allowed(&[], Vec::new()).await;
        let lab = text(&nothing, "/lab?tab=0123456789abcdef&beside=deployed&events=10&outage=1h").await;
        assert!(lab.contains("The deployed policy could not be read.") && lab.contains("Simulate"), "{lab}");
    })
    .await;
}

#[tokio::test]
async fn a_scan_that_is_denied_says_so_on_its_page() {
    locally(async {
        let setting = allowed(&["GetQueueAttributes"], Vec::new()).await;
        let (status, _) = setting.answer(setting.form_of("/dead/scan", "once=1")).await;
        assert_eq!(status, StatusCode::SEE_OTHER);
        setting.console.works.settled().await;
        let text = text(&setting, "/progress/1").await;
        assert!(text.contains("sqs:ReceiveMessage") && text.contains("docs/operate.md"), "{text}");
    })
    .await;
}

#[tokio::test]
async fn a_function_has_the_dead_letters_of_the_last_scan() {
    locally(async {
        let setting = allowed(&["GetQueueAttributes", "GetParameter", "FilterLogEvents"], Vec::new()).await;
        let before = text(&setting, "/function?name=orders").await;
        assert!(before.contains("only when you ask"), "{before}");
        let dead_letters = [event("Timeout"), event("Timeout"), event("Fatal")];
        setting.console.dead.set_snapshot(Some(snapshot_of(dead_letters).await));
        let orders = text(&setting, "/function?name=orders").await;
        assert!(
            orders.contains("<td class=\"cut\">Timeout</td><td class=\"cut\">m</td><td>2</td>"),
            "{orders}"
        );
        let other = text(&setting, "/function?name=payments").await;
        assert!(other.contains("None is of this function") && !other.contains("Timeout"), "{other}");
    })
    .await;
}

#[tokio::test]
async fn a_dead_event_offers_what_its_dead_letter_does() {
    locally(async {
        let dead_letter = event("Timeout");
        let line = json!({
            "timestamp": now(), "level": "WARN", "v": 1, "message_id": "m-1", "key": dead_letter.key, "target": ORDERS,
            "retry": 8, "request_id": "r-0", "error_type": "Timeout", "first_failure": now(),
            "action": "dead_letter", "reason": "max_age", "detail": "too old",
        });
        let calls = &["GetQueueAttributes", "FilterLogEvents"];
        let setting = allowed(calls, vec![line.to_string()]).await;
        let path = format!("/event?id={}", dead_letter.key);
        let before = text(&setting, &path).await;
        assert!(before.contains("Scan for it") && !before.contains("Redrive …"), "{before}");
        assert!(before.contains("<dt>Outcome</dt>") && !before.contains("<dt>Next</dt>"), "{before}");
        assert!(before.contains("<dt>Error</dt><dd>Timeout, attempt 7 at <time"), "{before}");
        setting.console.dead.set_snapshot(Some(snapshot_of([event("Fatal"), dead_letter.clone()]).await));
        let after = text(&setting, &path).await;
        for action in ["Redrive …", "Discard …", "Export", "its error and payload"] {
            assert!(after.contains(action), "{action}: {after}");
        }
        let snapshot = setting.console.dead.snapshot().unwrap();
        let id = &snapshot.dead_letter_of(&dead_letter.key).unwrap().message_id;
        assert!(after.contains(&format!("name=\"dead_letter\" value=\"{id}\"")), "{after}");
    })
    .await;
}

#[tokio::test]
async fn a_filter_that_is_refused_stays_in_its_form() {
    locally(async {
        let here = allowed(&[], Vec::new()).await;
        let (status, page) = here.answer(here.page("/waiting?within=soon&key=k-1")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(page.contains("Due within: ") && page.contains("value=\"soon\""), "{page}");
        assert!(page.contains("value=\"k-1\"") && !page.contains("data-refresh"), "{page}");
        let (status, page) = here.answer(here.form_of("/dead/scan", "once=1&retries=many&key=k-1")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(page.contains("Nothing was read") && page.contains("--retries"), "{page}");
        assert!(page.contains("value=\"many\"") && page.contains("value=\"k-1\""), "{page}");
        assert!(!page.contains("data-refresh"), "it would send the form again");
    })
    .await;
}

#[tokio::test]
async fn a_read_only_console_offers_no_scan() {
    locally(async {
        for read_only in [false, true] {
            let here = served(&["GetQueueAttributes"], Vec::new(), read_only).await;
            let (_, page) = here.answer(here.page("/dead")).await;
            assert_eq!(page.contains("action=\"/dead/scan\""), !read_only, "{page}");
            assert!(page.contains("3 dead-letters"), "{page}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_filter_without_a_match_can_be_cleared() {
    locally(async {
        let line = json!({
            "timestamp": now(), "level": "INFO", "v": 1, "message_id": "m-1", "key": "k-1", "target": ORDERS, "retry": 1,
            "request_id": "r-0", "error_type": "Timeout", "first_failure": now(), "action": "defer",
            "due": now().saturating_add(std::time::Duration::from_secs(600)), "due_by": "policy", "delay": 600,
        });
        for (lines, shown) in [
            (Vec::new(), "No event is waiting"),
            (vec![line.to_string()], "None of the 1 waiting event matches. <a href=\"/waiting\">Clear the filter</a>"),
        ] {
            let here = allowed(&["GetQueueAttributes", "FilterLogEvents", "GetParameter"], lines).await;
            let (_, page) = here.answer(here.page("/waiting?key=none")).await;
            assert!(page.contains(shown), "{shown}: {page}");
        }
    })
    .await;
}

#[tokio::test]
async fn resume_shows_the_pause_and_how_many_events_it_holds() {
    locally(async {
        let held = |key: &str, function: &str| {
            let line = json!({
                "timestamp": now(), "level": "INFO", "v": 1, "message_id": key, "key": key, "target": function, "retry": 1,
                "request_id": "r-0", "error_type": "Timeout", "first_failure": now(), "action": "hold", "due": now(),
                "delay": 60,
            });
            line.to_string()
        };
        let paused = ORDERS.replace("orders", "shop-paused");
        let lines = vec![held("k-1", &paused), held("k-2", &paused), held("k-3", ORDERS)];
        let here = allowed(&["GetQueueAttributes", "FilterLogEvents", "GetParameter"], lines).await;
        let plan = text(&here, "/resume?plan=yes&function=shop-paused").await;
        for shown in [
            "shop-paused: paused since <time datetime=\"2026-09-14T",
            "by alice, until resumed; events then return over 10m (a deploy broke it)",
            "<p class=\"notice\">2 events are held now.</p>",
            "<p>Resume shop-paused?</p>",
            "<button class=\"go\">Resume</button>",
            "comeback resume shop-paused --handler retries",
        ] {
            assert!(plan.contains(shown), "{shown}: {plan}");
        }
        let plan = text(&here, "/resume?plan=yes&function=orders").await;
        assert!(plan.contains("orders is not paused") && !plan.contains("held now"), "{plan}");
        assert!(!plan.contains("<button class=\"go\">"), "there is nothing to resume: {plan}");
    })
    .await;
}
