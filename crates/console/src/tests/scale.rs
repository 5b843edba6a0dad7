//! Measures the first page with very many waiting events, on a simulated account. `cargo test --release -p comeback-console
//! --lib scale -- --ignored --nocapture` prints the times. The test has no time limit. `make scale` has one.

use comeback_operate::aws::simulated::Sample;
use comeback_operate::dead::samples::ORDERS;
use comeback_operate::waiting::reading::{Reading, Scope};
use comeback_operate::waiting::wanted::Wanted;
use comeback_operate::{Operator, Which};
use serde_json::json;
use tokio::time::Instant;

use super::denied::{console, sample, text};
use super::locally;

const EVENTS: u64 = 100_000;

/// Text that the page has only after the log was read.
const TABLE: &str = "most frequent error";

#[tokio::test]
#[ignore = "prints times, and takes long without --release"]
async fn first_page_takes_little_longer_than_reading_the_log() {
    locally(async {
        let aws = sample().await;
        let now = aws.time();
        let due = now.saturating_add(std::time::Duration::from_secs(3_600));
        let line = |number: u64| {
            let line = json!({
                "timestamp": now, "level": "INFO", "v": 1, "message_id": format!("message-{number}"), "key": format!("key-{number}"),
                "target": ORDERS.replace("orders", &format!("orders-{}", number % 20)), "retry": 3, "first_failure": now,
                "request_id": format!("request-{number}"), "error_type": format!("Error{}", number % 9), "action": "defer",
                "due": due, "due_by": "policy", "delay": 3_600,
            });
            line.to_string()
        };
        let setting = console(&aws, (0..EVENTS).map(line).collect(), false).await;

        let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
        let wanted = Wanted::default();
        let begun = Instant::now();
        let deployment = operator.deployment().await.unwrap();
        let reading = Reading::read(&operator, deployment, Scope::of(&wanted), now).await.unwrap();
        let read = begun.elapsed();
        assert_eq!(reading.waits.count() as u64, EVENTS);

        let begun = Instant::now();
        while !text(&setting, "/").await.contains(TABLE) {}
        let first = begun.elapsed();
        println!("{EVENTS} waiting events: their log takes {read:?} to read");
        println!("the first page takes {first:?}, {:.2} times as long", first.as_secs_f64() / read.as_secs_f64());
        for path in ["/", "/waiting"] {
            let begun = Instant::now();
            text(&setting, path).await;
            println!("then {path} takes {:?}", begun.elapsed());
        }
    })
    .await;
}
