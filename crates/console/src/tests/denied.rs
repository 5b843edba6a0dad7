//! Tests that pages name a missing permission, and show everything that can be read without it.

use axum::http::StatusCode;
use comeback_operate::aws::simulated::{Sample, SimulatedAws, function_arn, queue_url};
use comeback_operate::aws::{Aws as _, NewMessage, Receive};
use comeback_operate::dead::testing::{ORDERS, event};
use serde_json::json;

use crate::console::Console;
use comeback_operate::clock::now;

use super::{Setting, address, locally, snapshot_of};

/// An account with three hidden messages in each queue. The function `shop-paused` is paused.
pub(super) async fn sample() -> SimulatedAws {
    let aws =
        Sample { is_attached: true, others: ["shop-paused".into()].into(), ..Sample::new(now()) }.build();
    let targets = format!("{ORDERS},{}", function_arn("shop-*"));
    let variables = [("TARGET_FUNCTIONS".to_owned(), targets)];
    aws.function_named(Sample::HANDLER).configuration.variables.extend(variables);
    let pause = json!({
        "target": function_arn("shop-paused"), "from": 1_789_400_000, "until": null, "spread": 600, "by": "alice",
        "why": "a deploy broke it",
    });
    let pauses = json!({"v": 1, "pauses": [pause]}).to_string();
    assert_eq!(aws.put_parameter(Sample::PAUSES, &pauses, true).await, Ok(Some(1)));
    for queue in [Sample::RETRY_QUEUE, Sample::DEAD_LETTER_QUEUE] {
        let url = queue_url(queue);
        let messages = vec![NewMessage { body: "{}".into(), ..NewMessage::default() }; 3];
        aws.send(&url, messages, &|_, _| ()).await;
        let hour = std::time::Duration::from_secs(3_600);
        let receive = Receive { visibility: hour, wait: std::time::Duration::ZERO };
        while !aws.receive(&url, 10, receive).await.unwrap().is_empty() {}
    }
    aws
}

pub(super) async fn console(aws: &SimulatedAws, lines: Vec<String>, read_only: bool) -> Setting {
    let at = aws.time();
    for line in lines {
        aws.state().log_groups.get_mut(Sample::LOG_GROUP).unwrap().write(at, "s", line);
    }
    let console = Console::new(address(), read_only, None);
    console.reach(aws.account());
    Setting::of(console).await
}

/// Returns a console for an operator who may not perform these API actions.
pub(super) async fn denied(actions: &[&str], lines: Vec<String>, read_only: bool) -> Setting {
    let aws = sample().await;
    actions.iter().for_each(|action| aws.deny(action));
    console(&aws, lines, read_only).await
}

pub(super) async fn text(setting: &Setting, path: &str) -> String {
    let (status, text) = setting.answer(setting.page(path)).await;
    assert_eq!(status, StatusCode::OK, "{path}: {text}");
    text
}

#[tokio::test]
async fn a_page_names_the_permission_that_is_missing_and_shows_the_rest() {
    const LOG: &str = "logs:FilterLogEvents";
    const PAUSES: &str = "ssm:GetParameter";
    let cases = [
        ("/", "cloudwatch:GetMetricData", "<dt>Waiting</dt>"),
        ("/", PAUSES, "<dt>Waiting</dt>"),
        ("/waiting", LOG, "3: 3 hidden"),
        ("/waiting", PAUSES, "No waiting event ("),
        ("/event?id=k-1", LOG, "Key, request id"),
        ("/", LOG, "<dt>Waiting</dt>"),
        ("/dead", "sqs:GetQueueAttributes", ">Scan</button>"),
        ("/function", "lambda:ListFunctions", ">orders</a>"),
        ("/function?name=orders", LOG, "MAX_AGE"),
        ("/doctor", "iam:SimulatePrincipalPolicy", "CB002"),
        ("/pause?plan=yes&function=orders&reason=why", PAUSES, "Show the plan"),
        ("/retry?plan=yes&function=orders", PAUSES, "Show the plan"),
    ];
    locally(async {
        for (path, missing, rest) in cases {
            let text = text(&denied(&[missing], Vec::new(), false).await, path).await;
            assert!(text.contains(missing), "{path} says what is missing: {text}");
            assert!(text.contains("docs/operate.md"), "{path} says what helps: {text}");
            assert!(text.contains(rest), "{path} shows the rest: {text}");
        }
        let nothing = denied(
            &["cloudformation:DescribeStacks", "cloudformation:ListStackResources"],
            Vec::new(),
            false,
        );
        let lab = "/lab?tab=0123456789abcdef&beside=deployed&events=10&outage=1h";
        let lab = text(&nothing.await, lab).await;
        assert!(lab.contains("The deployed policy could not be read.") && lab.contains("Simulate"), "{lab}");
    })
    .await;
}

#[tokio::test]
async fn a_scan_that_is_denied_says_so_on_its_page() {
    locally(async {
        let setting = denied(&["sqs:ReceiveMessage"], Vec::new(), false).await;
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
        let setting = denied(&[], Vec::new(), false).await;
        let before = text(&setting, "/function?name=orders").await;
        assert!(before.contains("only when you ask"), "{before}");
        let dead_letters = [event("Timeout"), event("Timeout"), event("Fatal")];
        setting.console.dead.set_snapshot(Some(snapshot_of(dead_letters).await));
        let orders = text(&setting, "/function?name=orders").await;
        let group = "<td>2</td><td>max_age</td><td><a href=\"/function?name=orders\">orders</a></td><td>Timeout</td><td>m</td>";
        assert!(orders.contains(group), "{orders}");
        let other = text(&setting, "/function?name=payments").await;
        assert!(other.contains("0 of about 3 dead-letters") && !other.contains("Timeout"), "{other}");
    })
    .await;
}

#[tokio::test]
async fn a_dead_event_has_its_dead_letters_actions() {
    locally(async {
        let dead_letter = event("Timeout");
        let line = json!({
            "timestamp": now(), "level": "WARN", "v": 1, "message_id": "m-1", "key": dead_letter.key, "target": ORDERS,
            "retry": 8, "request_id": "r-0", "error_type": "Timeout", "first_failure": now(),
            "action": "dead_letter", "reason": "max_age", "detail": "too old",
        });
        let setting = denied(&[], vec![line.to_string()], false).await;
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
async fn lines_of_a_function_stand_below_their_attempt() {
    locally(async {
        let line = json!({
            "timestamp": now(), "level": "INFO", "v": 1, "message_id": "m-1", "key": "k-1", "target": ORDERS, "retry": 1,
            "request_id": "r-0", "error_type": "Timeout", "first_failure": now(), "action": "reinvoke", "due": now(),
            "invoke_request_id": "r-1",
        });
        let aws = sample().await;
        let report = "REPORT RequestId: r-1\tDuration: 2 ms <b>".to_owned();
        aws.state().log_groups.get_mut("/aws/lambda/orders").unwrap().write(aws.time(), "s", report);
        let here = console(&aws, vec![line.to_string()], false).await;
        let logged = "  r-1<code>REPORT RequestId: r-1\tDuration: 2 ms &#60;b&#62;</code></td>";
        let without = text(&here, "/event?id=k-1").await;
        assert!(without.contains("Read what the function logged") && !without.contains(logged), "{without}");
        let with = text(&here, "/event?id=k-1&logs=yes").await;
        assert!(with.contains(logged) && !with.contains("names none of the attempts"), "{with}");
    })
    .await;
}

#[tokio::test]
async fn a_filter_that_is_refused_stays_in_its_form() {
    locally(async {
        let here = denied(&[], Vec::new(), false).await;
        let (status, page) = here.answer(here.page("/waiting?within=soon&key=k-1")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(page.contains("Due within: ") && !page.contains("data-refresh"), "{page}");
        assert!(page.contains("value=\"within=soon&#38;key=k%2D1\""), "{page}");
        let sent = "once=1&retries=many&fields=key%3Dk%252D1";
        let (status, page) = here.answer(here.form_of("/dead/scan", sent)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(page.contains("Nothing was read: Retries: "), "{page}");
        assert!(page.contains("value=\"many\"") && page.contains("value=\"k-1\""), "{page}");
        assert!(!page.contains("data-refresh"), "it would send the form again");
    })
    .await;
}

#[tokio::test]
async fn a_read_only_console_offers_no_scan() {
    locally(async {
        for read_only in [false, true] {
            let here = denied(&[], Vec::new(), read_only).await;
            let (_, page) = here.answer(here.page("/dead")).await;
            assert_eq!(page.contains("action=\"/dead/scan\""), !read_only, "{page}");
            assert!(page.contains("<dt>Dead-letters</dt><dd>3"), "{page}");
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
        let here = denied(&[], vec![line.to_string()], false).await;
        for (path, is_found) in [("/waiting", true), ("/waiting?key=none", false)] {
            let page = text(&here, path).await;
            assert_eq!(page.contains("No waiting event matches the filter ("), !is_found, "{page}");
            assert_eq!(page.contains("<a href=\"/waiting\">Clear the filter</a>"), !is_found, "{page}");
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
        let here = denied(&[], lines, false).await;
        let plan = text(&here, "/resume?plan=yes&function=shop-paused").await;
        for shown in [
            "shop-paused: paused since <time datetime=\"2026-09-14T",
            "by alice, until resumed; events then return over 10m (a deploy broke it)",
            "<p class=\"notice\">2 events are held now.</p>",
            "<p>Resume shop-paused?</p>",
            "<button class=\"go\">Resume</button>",
            "comeback resume shop-paused</code>",
        ] {
            assert!(plan.contains(shown), "{shown}: {plan}");
        }
        let plan = text(&here, "/resume?plan=yes&function=orders").await;
        assert!(plan.contains("orders is not paused") && !plan.contains("held now"), "{plan}");
        assert!(!plan.contains("<button class=\"go\">"), "there is nothing to resume: {plan}");
    })
    .await;
}
