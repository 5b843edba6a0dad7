//! Entries at the services' limits, in order, and of several tables.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use comeback_delivery::dynamodb::{self, Table, Write};
use comeback_delivery::sqs::{Message, Sender};
use comeback_delivery::{Cause, ErrorKind, Operation, Retries};

use crate::apis::{
    Api, BatchWriteItem, PutEvents, PutRecordBatch, PutRecords, SendMessages, accounted, config, texts,
};
use crate::service::{Answer, Service, draw};

crate::for_every_api!(as_many_entries_as_a_call_takes);

async fn as_many_entries_as_a_call_takes<A: Api>() {
    let most = A::LIMITS.entries;
    for (count, calls) in [(most - 1, 1), (most, 1), (most + 1, 2), (3 * most, 3), (3 * most + 1, 4)] {
        let service = Service::obliging().await;
        let outcome = A::sender(&service).send(A::entries(count)).await;
        assert_eq!(outcome.as_ref().unwrap().calls, calls, "{count} entries");
        accounted::<A>(&service, &texts(count), outcome);
    }
}

/// The text of an entry that counts as this many bytes.
fn text<A: Api>(index: usize, bytes: usize) -> String {
    let text = index.to_string();
    let rest = bytes - A::BESIDE - text.len();
    text + &"x".repeat(rest)
}

async fn sent<A: Api>(sizes: &[usize]) -> (Vec<Cause>, usize) {
    let service = Service::obliging().await;
    let texts: Vec<String> =
        sizes.iter().enumerate().map(|(index, &bytes)| text::<A>(index, bytes)).collect();
    let entries: Vec<<A::Operation as Operation>::Entry> = texts.iter().cloned().map(A::entry).collect();
    let outcome = A::sender(&service).send(entries).await;
    let mut causes = accounted::<A>(&service, &texts, outcome);
    let calls = service.log().calls.len();
    (texts.iter().filter_map(|text| causes.remove(text)).collect(), calls)
}

async fn an_entry_of_as_many_bytes_as_it_may_have<A: Api>() {
    let limit = A::LIMITS.entry_bytes;
    let (causes, _) = sent::<A>(&[limit - 1, limit, limit + 1]).await;
    assert_eq!(causes, [Cause::TooLarge { size: limit + 1, limit }]);
}

async fn as_many_bytes_as_a_call_takes<A: Api>() {
    let limit = A::LIMITS.bytes;
    let entries = limit.div_ceil(A::LIMITS.entry_bytes).max(2);
    for (bytes, calls) in [(limit - 1, 1), (limit, 1), (limit + 1, 2)] {
        let each = bytes / entries;
        let mut sizes = vec![each; entries];
        sizes[0] += bytes - each * entries;
        assert_eq!(sent::<A>(&sizes).await, (vec![], calls), "{bytes} bytes");
    }
}

macro_rules! of_bytes {
    ($($name:ident $api:ident),+) => {
        $(mod $name {
            #[tokio::test]
            async fn an_entry_of_as_many_bytes_as_it_may_have() {
                super::an_entry_of_as_many_bytes_as_it_may_have::<super::$api>().await;
            }

            #[tokio::test]
            async fn as_many_bytes_as_a_call_takes() {
                super::as_many_bytes_as_a_call_takes::<super::$api>().await;
            }
        })+
    };
}
of_bytes!(send_messages_bytes SendMessages, put_records_bytes PutRecords,
    put_record_batch_bytes PutRecordBatch, put_events_bytes PutEvents);

#[tokio::test]
async fn an_item_of_as_many_bytes_as_it_may_have() {
    an_entry_of_as_many_bytes_as_it_may_have::<BatchWriteItem>().await;
}

/// The JSON of a call can be far larger than its items are once they are stored.
#[tokio::test]
async fn a_call_of_items_that_grow_in_json() {
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

/// Fails entries and loses answers, each by chance.
async fn unreliable(seed: u64, code: &'static str) -> Service {
    let drawn = AtomicU64::new(0);
    Service::start(move |call| {
        let next = |bound| draw(seed, drawn.fetch_add(1, Ordering::Relaxed), bound);
        match next(10) {
            0 => Answer::Lost,
            1 => Answer::Error(500, "InternalFailure"),
            _ => Answer::Entries(call.entries.iter().map(|_| (next(100) < 40).then_some(code)).collect()),
        }
    })
    .await
}

/// Each time an entry is done, those before it of its lane are done, and none after it; those behind one
/// that is left were never sent.
fn in_order(service: &Service, lanes: &[Vec<String>], causes: &HashMap<String, Cause>) {
    let log = service.log();
    for lane in lanes {
        let places: Vec<usize> =
            log.done.iter().filter_map(|text| lane.iter().position(|it| it == text)).collect();
        assert!(places.is_sorted(), "{places:?}");
        let left = lane.iter().position(|text| causes.contains_key(text)).unwrap_or(lane.len());
        for text in lane.iter().skip(left + 1) {
            assert_eq!(causes.get(text), Some(&Cause::Behind));
            assert!(!log.calls.iter().flatten().any(|sent| sent == text), "{text} was sent");
        }
    }
}

#[tokio::test]
async fn a_fifo_queue_gets_each_group_in_order() {
    let (mut behind, mut whole) = (0, 0);
    for seed in 0..6 {
        let service = unreliable(seed, "InternalError").await;
        let queue = "http://localhost/000000000000/orders.fifo";
        let sender = Sender::new(aws_sdk_sqs::Client::new(&config(&service)), queue)
            .retries(Retries::of([Duration::ZERO; 3]));
        // 12 groups, dealt out in turn.
        let texts: Vec<String> = (0..120).map(|index| format!("{}-{index}", index % 12)).collect();
        let message = |text: &String| {
            let (group, number) = text.split_once('-').unwrap();
            Message::new(text).fifo(group, number)
        };
        let outcome = sender.send(texts.iter().map(message)).await;
        let causes = accounted::<SendMessages>(&service, &texts, outcome);
        let of_group = |group| {
            let prefix = format!("{group}-");
            texts.iter().filter(|text| text.starts_with(&prefix)).cloned().collect::<Vec<_>>()
        };
        let groups: Vec<Vec<String>> = (0..12).map(of_group).collect();
        in_order(&service, &groups, &causes);
        behind += causes.values().filter(|cause| **cause == Cause::Behind).count();
        whole += groups.iter().filter(|group| group.iter().all(|text| !causes.contains_key(text))).count();
    }
    assert!(behind > 0 && whole > 0, "both happened: {behind} messages behind, {whole} groups whole");
}

#[tokio::test]
async fn writes_of_one_key_go_out_in_order_and_apart() {
    for seed in 0..4 {
        let service = unreliable(seed, "").await;
        let write = |index: usize| {
            let key = AttributeValue::S(format!("key {} version ", index % 10));
            let version = AttributeValue::N(index.to_string());
            Write::put("orders", HashMap::from([("pk".into(), key), ("version".into(), version)]))
        };
        let texts: Vec<String> = (0..80).map(|index| BatchWriteItem::text(&write(index))).collect();
        let outcome = BatchWriteItem::sender(&service).send((0..80).map(write)).await;
        let causes = accounted::<BatchWriteItem>(&service, &texts, outcome);
        let keys: Vec<Vec<String>> =
            (0..10).map(|key| texts.iter().skip(key).step_by(10).cloned().collect()).collect();
        in_order(&service, &keys, &causes);
    }
}

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
        let sender = dynamodb::Sender::new(aws_sdk_dynamodb::Client::new(&config(&service)), tables);
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
