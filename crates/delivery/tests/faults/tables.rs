use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use comeback_delivery::dynamodb::{Sender, Table, Write};
use comeback_delivery::{Cause, ErrorKind, Retries};

use crate::apis::config;
use crate::service::{Answer, Service};

/// DynamoDB refuses a call whole if one of its tables is not there, or not permitted, and says not which.
#[tokio::test]
async fn a_table_that_is_missing_or_denied_keeps_nothing_from_the_others() {
    for (code, kind) in
        [("ResourceNotFoundException", ErrorKind::Missing), ("AccessDeniedException", ErrorKind::Denied)]
    {
        let service = Service::start(move |call| {
            let is_bad = call.entries.iter().any(|entry| entry["Table"] == "customers");
            if is_bad { Answer::Error(400, code) } else { Answer::done(call) }
        })
        .await;
        let tables = ["orders", "customers"].map(|table| Table::new(table, "pk"));
        let sender = Sender::new(aws_sdk_dynamodb::Client::new(&config(&service)), tables);
        let writes = (0..8).map(|n| {
            let key = AttributeValue::S(n.to_string());
            Write::put(if n % 4 == 1 { "customers" } else { "orders" }, HashMap::from([("pk".into(), key)]))
        });
        let sender = sender.retries(Retries::of([Duration::ZERO; 5]));
        let undelivered = sender.send(writes).await.unwrap_err();
        let left: Vec<usize> = undelivered.entries.iter().map(|left| left.index).collect();
        assert_eq!(left, [1, 5], "{code}");
        for left in &undelivered.entries {
            assert!(matches!(&left.cause, Cause::Refused(error) if error.kind == kind), "{}", left.cause);
        }
    }
}
