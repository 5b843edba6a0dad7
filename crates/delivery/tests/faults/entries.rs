//! Tests of entries at the services' size limits, and of writes to several tables.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use comeback_delivery::dynamodb::{self, Table, Write};
use comeback_delivery::{EntryError, ErrorKind, Operation, Retries};

use crate::apis::{
    Api, BatchWriteItem, PutEvents, PutRecordBatch, PutRecords, SendMessages, accounted, config, texts,
};
use crate::service::{Answer, Service};

crate::for_every_api!(full_calls_by_count);

async fn full_calls_by_count<A: Api>() {
    let most = A::LIMITS.entries;
    for (count, calls) in [(most - 1, 1), (most, 1), (most + 1, 2), (3 * most, 3), (3 * most + 1, 4)] {
        let service = Service::obliging().await;
        let outcome = A::sender(&service).send(A::entries(count)).await;
        assert_eq!(outcome.as_ref().unwrap().calls, calls, "{count} entries");
        accounted::<A>(&service, &texts(count), outcome);
    }
}

/// Makes the text for entry `index`, long enough for the service to count the entry as `bytes` bytes.
fn text<A: Api>(index: usize, bytes: usize) -> String {
    let text = index.to_string();
    let rest = bytes - A::BESIDE - text.len();
    text + &"x".repeat(rest)
}

async fn sent<A: Api>(sizes: &[usize]) -> (Vec<EntryError>, usize) {
    let service = Service::obliging().await;
    let texts: Vec<String> =
        sizes.iter().enumerate().map(|(index, &bytes)| text::<A>(index, bytes)).collect();
    let entries: Vec<<A::Operation as Operation>::Entry> = texts.iter().cloned().map(A::entry).collect();
    let outcome = A::sender(&service).send(entries).await;
    let mut causes = accounted::<A>(&service, &texts, outcome);
    let calls = service.log().calls.len();
    (texts.iter().filter_map(|text| causes.remove(text)).collect(), calls)
}

async fn entry_at_its_byte_limit<A: Api>() {
    let limit = A::LIMITS.entry_bytes;
    let (causes, _) = sent::<A>(&[limit - 1, limit, limit + 1]).await;
    assert_eq!(causes, [EntryError::TooLarge { size: limit + 1, limit }]);
}

async fn call_at_its_byte_limit<A: Api>() {
    entry_at_its_byte_limit::<A>().await;
    let limit = A::LIMITS.bytes;
    let entries = limit.div_ceil(A::LIMITS.entry_bytes).max(2);
    for (bytes, calls) in [(limit - 1, 1), (limit, 1), (limit + 1, 2)] {
        let each = bytes / entries;
        let mut sizes = vec![each; entries];
        sizes[0] += bytes - each * entries;
        assert_eq!(sent::<A>(&sizes).await, (vec![], calls), "{bytes} bytes");
    }
}

#[tokio::test]
async fn bytes_at_the_limits() {
    call_at_its_byte_limit::<SendMessages>().await;
    call_at_its_byte_limit::<PutRecords>().await;
    call_at_its_byte_limit::<PutRecordBatch>().await;
    call_at_its_byte_limit::<PutEvents>().await;
    entry_at_its_byte_limit::<BatchWriteItem>().await;
}

/// An item can be far larger as JSON in a call than in the table.
#[tokio::test]
async fn items_that_grow_in_json_fit() {
    let service = Service::obliging().await;
    let item = |index: usize| {
        let quotes = AttributeValue::S("\"".repeat(400_000));
        let key = AttributeValue::S(index.to_string());
        Write::put("orders", HashMap::from([("pk".into(), key), ("quotes".into(), quotes)]))
    };
    let outcome = BatchWriteItem::sender(&service).send((0..25).map(item)).await;
    assert_eq!(outcome.as_ref().unwrap().calls, 2, "25 × 800 kB");
    accounted::<BatchWriteItem>(&service, &texts(25), outcome);
}

/// DynamoDB refuses a whole call if one of its tables does not exist, or if the sender has no access to the table. The
/// error does not name the table.
#[tokio::test]
async fn bad_table_does_not_affect_others() {
    for (code, kind) in
        [("ResourceNotFoundException", ErrorKind::Missing), ("AccessDeniedException", ErrorKind::Denied)]
    {
        let service = Service::start(move |call| {
            let is_bad = call.entries.iter().any(|entry| entry["Table"] == "customers");
            if is_bad { Answer::Error(400, code) } else { Answer::done(call) }
        })
        .await;
        let tables = ["orders", "customers"].map(|table| Table::new(table, "pk"));
        let sender = dynamodb::Sender::new(aws_sdk_dynamodb::Client::new(&config(&service)), tables);
        let writes = (0..200).map(|n| {
            let key = AttributeValue::S(n.to_string());
            Write::put(if n % 9 == 1 { "customers" } else { "orders" }, HashMap::from([("pk".into(), key)]))
        });
        let sender = sender.retries(Retries::of([Duration::ZERO; 5]));
        let undelivered = sender.send(writes).await.unwrap_err();
        let left: Vec<usize> = undelivered.entries.iter().map(|left| left.index).collect();
        assert_eq!(left, (1..200).step_by(9).collect::<Vec<_>>(), "{code}");
        for left in &undelivered.entries {
            assert!(
                matches!(&left.cause, EntryError::Refused(error) if error.kind == kind),
                "{}",
                left.cause
            );
        }
    }
}
