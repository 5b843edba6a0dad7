//! Tests of the page about one function.

use comeback_operate::aws::Aws as _;
use comeback_operate::aws::simulated::{Sample, function_arn};
use comeback_operate::clock::now;
use comeback_operate::dead::testing::ORDERS;
use serde_json::json;

use super::choosing::waits;
use super::denied::{console, text};
use super::locally;

#[tokio::test]
async fn page_of_a_function_is_about_that_function() {
    locally(async {
        let others = ["invoices".into(), "reports".into()].into();
        let aws = Sample { is_attached: true, others, ..Sample::new(now()) }.build();
        let cancel =
            |function: &str, key: &str| json!({"target": function, "at": now().as_secs(), "keys": [key]});
        let live = format!("{ORDERS}:live");
        let cancels = [cancel(&live, "k-1"), cancel(&function_arn("reports"), "k-2"), cancel("*", "k-3")];
        let pauses = json!({"v": 1, "pauses": [], "cancels": cancels}).to_string();
        assert!(matches!(aws.put_parameter(Sample::PAUSES, &pauses, false).await, Ok(Some(_))));
        let here = console(&aws, vec![waits("k-1", "Timeout")], false).await;
        let orders = text(&here, "/function?name=orders").await;
        assert!(orders.contains("(k-1), requested") && orders.contains("(k-3), requested"), "{orders}");
        assert!(!orders.contains("(k-2), requested"), "the request covers another function: {orders}");
        assert!(orders.contains("aria-label=\"What waits, by error\""), "{orders}");
        let invoices = text(&here, "/function?name=invoices").await;
        let unlisted = "It is not on the allow-list: the handler dead-letters its events.";
        assert!(invoices.contains(unlisted) && !orders.contains(unlisted), "{invoices}");
    })
    .await;
}
