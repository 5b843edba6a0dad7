//! Tests of the page on which the operator chooses waiting events, and of the actions on the chosen events.

use std::time::Duration;

use axum::http::StatusCode;
use comeback_engine::Pauses;
use comeback_operate::aws::simulated::{Sample, SimulatedAws, queue_url};
use comeback_operate::aws::{Aws as _, NewMessage, Receive, Received};
use comeback_operate::clock::now;
use comeback_operate::dead::testing::{Dead, ORDERS, event};
use comeback_operate::dead::{Filter, Selection, scan};
use serde_json::json;

use super::denied::{console, denied, sample, text};
use super::{confirmed, hidden, locally};

const HOUR: Duration = Duration::from_secs(3_600);

/// A log line about a waiting event. The account's queues do not contain the event's message.
pub(super) fn waits(key: &str, error: &str) -> String {
    let line = json!({
        "timestamp": now(), "level": "INFO", "v": 1, "message_id": key, "key": key, "target": ORDERS, "retry": 1,
        "request_id": "r-0", "error_type": error, "first_failure": now(), "action": "defer",
        "due": now().saturating_add(Duration::from_secs(3_000)), "due_by": "policy", "delay": 3_000,
        "receipt_handle": format!("h-{key}"),
    });
    line.to_string()
}

#[tokio::test]
async fn events_have_checkboxes_and_all_matches_one() {
    let lines = || vec![waits("k-1", "Timeout"), waits("k-2", "Timeout"), waits("k-3", "Fatal")];
    locally(async {
        let here = denied(&[], lines(), false).await;
        let page = text(&here, "/waiting?error=Time*").await;
        for shown in [
            "name=\"fields\" value=\"event=k%2D1\" aria-label=\"Choose k-1\"",
            "name=\"all\" value=\"yes\"> All 2 waiting events that match the filter</label>",
            "action=\"/waiting/chosen\"",
            "<input type=\"hidden\" name=\"fields\" value=\"error=Time%2A\">",
        ] {
            assert!(page.contains(shown), "{shown}: {page}");
        }
        assert!(!page.contains("Choose k-3"), "another error: {page}");
        let soon = text(&here, "/waiting?within=2h").await;
        assert!(soon.contains("Choose k-1") && !soon.contains("name=\"all\""), "no request names it: {soon}");
        let marked = text(&denied(&[], vec![waits("k\u{200f}", "Fatal")], false).await, "/waiting").await;
        assert!(marked.contains("value=\"event=k%E2%80%8F\" aria-label=\"Choose k\\u{200f}\""), "{marked}");
        let page = text(&denied(&[], lines(), true).await, "/waiting").await;
        assert!(!page.contains("checkbox") && !page.contains("/waiting/chosen"), "read-only: {page}");
    })
    .await;
}

#[tokio::test]
async fn filters_are_chips_and_a_bar_of_the_chart_is_one() {
    locally(async {
        let here = denied(&[], vec![waits("k-1", "Timeout"), waits("k-2", "Fatal")], false).await;
        let page = text(&here, "/waiting?error=Timeout&function=orders").await;
        let chip = "<a href=\"/waiting?function=orders\" title=\"Remove this filter\">error Timeout ×</a>";
        assert!(page.contains(chip), "{chip}: {page}");
        let (_, bar) = page.split_once("<g class=\"values\"><a href=\"").expect("a bar");
        let (bar, _) = bar.split_once('"').unwrap();
        let bar = bar.replace("&#38;", "&");
        assert!(bar.starts_with("/waiting?error=Timeout&function=orders&"), "{bar}");
        let within = text(&here, &bar).await;
        assert!(within.contains("Choose k-1") && within.contains(">due "), "{within}");
        let later = "/waiting?error=Timeout&function=orders&from=91795873342000";
        assert!(text(&here, later).await.contains("Clear the filter"), "{later}");
        let wrong = here.answer(here.page("/waiting?to=soon")).await;
        assert!(wrong.0 == StatusCode::BAD_REQUEST && wrong.1.contains("Due: not a number"), "{}", wrong.1);
    })
    .await;
}

#[tokio::test]
async fn chosen_events_are_named_by_their_keys_and_all_by_the_filter() {
    locally(async {
        let here = denied(&[], Vec::new(), false).await;
        for (query, place) in [
            ("do=retry&event=k-1&event=k-2", "/retry?plan=yes&function=%2A&key=k%2D1&key=k%2D2"),
            ("do=cancel&function=orders&error=Time*&event=k-1", "/cancel?plan=yes&function=orders&key=k%2D1"),
            (
                "do=cancel&function=orders&error=Time*&key=&event=k-1&all=yes",
                "/cancel?plan=yes&function=orders&error=Time%2A",
            ),
            ("do=retry&key=k-9&all=yes", "/retry?plan=yes&function=%2A&key=k%2D9"),
            ("do=pause&function=orders&event=k-1", "/pause?function=orders"),
            // A text with a right-to-left mark, which a page would show as an escape.
            (
                "fields=function%3Dorders%26key%3Dother&fields=event%3Da%25E2%2580%258F+1&do=retry",
                "/retry?plan=yes&function=orders&key=a%E2%80%8F%201",
            ),
            (
                "fields=function%3Dorders%26key%3Da%25E2%2580%258F&all=yes&do=retry",
                "/retry?plan=yes&function=orders&key=a%E2%80%8F",
            ),
        ] {
            let answer = here.response(here.page(&format!("/waiting/chosen?{query}"))).await;
            assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{query}");
            assert_eq!(answer.headers()["location"], place, "{query}");
        }
        for (query, why) in [("do=retry", "No event was chosen"), ("event=k-1", "The form is incomplete")] {
            let (status, page) = here.answer(here.page(&format!("/waiting/chosen?{query}"))).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
            assert!(page.contains(why), "{page}");
        }
    })
    .await;
}

#[tokio::test]
async fn waiting_event_offers_to_be_retried_or_cancelled() {
    locally(async {
        let over = json!({
            "timestamp": now(), "level": "WARN", "v": 1, "message_id": "m-2", "key": "k-2", "target": ORDERS, "retry": 8,
            "request_id": "r-0", "error_type": "Timeout", "first_failure": now(), "action": "dead_letter",
            "reason": "max_age", "detail": "too old",
        });
        let lines = || vec![waits("k-1", "Timeout"), over.to_string()];
        let here = denied(&[], lines(), false).await;
        let page = text(&here, "/event?id=k-1").await;
        for path in ["retry", "cancel"] {
            let link = format!("<a class=\"button\" href=\"/{path}?plan=yes&#38;function=orders&#38;key=k%2D1\">");
            assert!(page.contains(&link), "{link}: {page}");
        }
        let page = text(&here, "/event?id=k-2").await;
        assert!(!page.contains("/cancel?"), "it is over: {page}");
        let page = text(&denied(&[], lines(), true).await, "/event?id=k-1").await;
        assert!(!page.contains("/cancel?"), "read-only: {page}");
    })
    .await;
}

/// Returns an account in which three events of the function `orders` are due in an hour, and the handler's log lines
/// about these events.
async fn waiting() -> (SimulatedAws, Vec<String>) {
    let aws = sample().await;
    let url = queue_url(Sample::RETRY_QUEUE);
    aws.send(&url, vec![NewMessage { body: "{}".into(), ..NewMessage::default() }; 3], &|_, _| ()).await;
    let receive = Receive { visibility: HOUR, wait: Duration::ZERO };
    let messages = aws.receive(&url, 10, receive).await.unwrap().into_iter();
    let lines = messages.zip(["k-1", "k-2", "k-3"]).map(|(Received { record, .. }, key)| {
        let line = json!({
            "timestamp": aws.time(), "level": "INFO", "v": 1, "message_id": record.message_id, "key": key, "target": ORDERS,
            "retry": 1, "request_id": "r-0", "error_type": "Timeout", "first_failure": aws.time(), "action": "defer",
            "due": aws.time().saturating_add(HOUR), "due_by": "policy", "delay": HOUR.as_secs(),
            "receipt_handle": record.receipt_handle,
        });
        line.to_string()
    });
    let lines = lines.collect();
    (aws, lines)
}

#[tokio::test]
async fn chosen_events_are_recalled_and_the_others_keep_waiting() {
    locally(async {
        for (form, verb) in [("/retry", "retried"), ("/cancel", "cancelled")] {
            let (aws, lines) = waiting().await;
            let here = console(&aws, lines, false).await;
            let path = format!("{form}?plan=yes&function=*&key=k-1&key=k-2&within=0s");
            let plan = text(&here, &path).await;
            for shown in [
                "2 messages are recalled once the handler has read the request",
                "<button class=\"go\">",
                "--key=k-1 --key=k-2",
                "value=\"k-2\" aria-describedby=\"key-hint\"",
            ] {
                assert!(plan.contains(shown), "{shown}: {plan}");
            }
            let once = hidden(&plan, "once");
            let (status, answer) = here.answer(here.form_of(form, &confirmed(&plan))).await;
            assert_eq!(status, StatusCode::SEE_OTHER, "{answer}");
            here.console.works.settled().await;
            let done = text(&here, &format!("/progress/{once}")).await;
            assert!(done.contains("2 messages were recalled, all due by "), "{verb}: {done}");
            let now = aws.time();
            assert_eq!(aws.queue(Sample::RETRY_QUEUE).depth(now).visible, 2, "{verb}");
        }
    })
    .await;
}

/// A page shows the mark U+200F as an escape, but the request has the mark itself.
#[tokio::test]
async fn marks_in_a_confirmed_field_stay_as_they_are() {
    locally(async {
        let (aws, lines) = waiting().await;
        let lines = lines.into_iter().map(|line| line.replace("Timeout", "Time\u{200f}out")).collect();
        let here = console(&aws, lines, false).await;
        let plan = text(&here, "/retry?plan=yes&function=*&error=Time%E2%80%8F*&why=a%E2%80%8Fb").await;
        let (status, page) = here.answer(here.form_of("/retry", &confirmed(&plan))).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{page}");
        here.console.works.settled().await;
        let work = here.console.works.get(hidden(&plan, "once")).unwrap();
        assert_eq!(work.result(), Some(&Ok(())), "the plan is the one that was shown");
        let pauses = aws.parameter(Sample::PAUSES).await.unwrap().unwrap();
        let pauses = Pauses::read(&pauses.text).unwrap();
        let request = pauses.requests().next().unwrap();
        assert_eq!(request.errors, ["Time\u{200f}*"]);
        assert_eq!(request.why.as_deref(), Some("a\u{200f}b"));
    })
    .await;
}

#[tokio::test]
async fn more_events_than_a_request_may_name_are_refused() {
    locally(async {
        let here = denied(&[], Vec::new(), false).await;
        let keys: String = (0..21).map(|n| format!("&key=k-{n}")).collect();
        let page = text(&here, &format!("/cancel?plan=yes&function=*{keys}")).await;
        assert!(page.contains("at most 20 keys") && !page.contains("<button class=\"go\">"), "{page}");
    })
    .await;
}

#[tokio::test]
async fn chosen_dead_letters_share_one_plan() {
    locally(async {
        let dead = Dead::with([event("Timeout"), event("Timeout"), event("Fatal")]);
        let setting = console(&dead.aws, Vec::new(), false).await;
        setting.console.dead.set_snapshot(scan(&dead.operator(), Filter::default()).await.ok());
        let snapshot = setting.console.dead.snapshot().unwrap();
        let rows = snapshot.rows(&Selection::All);
        let ids: Vec<_> = rows.iter().map(|row| row.message_id.to_string()).collect();
        let list = text(&setting, "/dead/each").await;
        assert!(list.contains(&format!("name=\"dead_letter\" value=\"{}\" aria-label=", ids[0])), "{list}");
        let scan = hidden(&list, "scan");
        let plan = format!("/dead/redrive?scan={scan}&dead_letter={}&dead_letter={}", ids[0], ids[2]);
        let plan = text(&setting, &plan).await;
        assert!(
            plan.contains("2 chosen dead-letters") && plan.contains("about 2 dead-letters of 3"),
            "{plan}"
        );
        for id in [&ids[0], &ids[2]] {
            assert!(plan.contains(&format!("name=\"dead_letter\" value=\"{id}\"")), "{plan}");
        }
        assert!(
            !plan.contains(&ids[1]) && !plan.contains("The same in a terminal"),
            "no filter names both: {plan}"
        );
    })
    .await;
}
