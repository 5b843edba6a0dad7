use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use comeback_delivery::dynamodb::Write;
use comeback_delivery::sqs::{Message, Sender};
use comeback_delivery::{Cause, Retries};

use crate::apis::{Api, BatchWriteItem, SendMessages, accounted, config};
use crate::service::{Answer, Service, draw};

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
