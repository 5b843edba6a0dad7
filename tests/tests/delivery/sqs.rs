use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};
use comeback_delivery::sqs::{Deleter, Message, Sender, Visibility, VisibilityChanger};
use comeback_tests::MiniStack;

use crate::{example, in_calls, on_ministack};

pub(crate) async fn queue(server: &MiniStack, name: &str) -> String {
    let call = server.sqs.create_queue().queue_name(name);
    let call =
        if name.ends_with(".fifo") { call.attributes(QueueAttributeName::FifoQueue, "true") } else { call };
    call.send().await.expect("a queue").queue_url.expect("its URL")
}

/// Receives all messages in a queue, and returns them by message group, in order of arrival.
pub(crate) async fn drain(server: &MiniStack, queue_url: &str) -> BTreeMap<String, Vec<String>> {
    let delete = Deleter::new(server.sqs.clone(), queue_url);
    let mut bodies: BTreeMap<String, Vec<String>> = BTreeMap::new();
    loop {
        let received = server
            .sqs
            .receive_message()
            .queue_url(queue_url)
            .max_number_of_messages(10)
            .visibility_timeout(43_000)
            .message_system_attribute_names(MessageSystemAttributeName::MessageGroupId);
        let messages = received.send().await.expect("messages").messages.unwrap_or_default();
        if messages.is_empty() {
            return bodies;
        }
        for message in &messages {
            let attributes = message.attributes.as_ref();
            let group = attributes.and_then(|it| it.get(&MessageSystemAttributeName::MessageGroupId));
            bodies.entry(group.cloned().unwrap_or_default()).or_default().push(message.body.clone().unwrap());
        }
        // On a FIFO queue, the rest of a message's group only arrives after its deletion.
        if queue_url.ends_with(".fifo") {
            let handles = messages.into_iter().map(|message| message.receipt_handle.unwrap());
            delete.send(handles).await.expect("each is deleted");
        }
    }
}

#[test]
fn two_thousand_messages_are_all_counted_back() {
    on_ministack(async |server| {
        let queue_url = queue(server, "two-thousand").await;
        let deliver = Sender::new(server.sqs.clone(), &queue_url);
        let body = |number: u32| format!("order {number}");
        let delivered = deliver.send((0..2_000).map(|number| Message::new(body(number)))).await.unwrap();
        assert_eq!(delivered.count(), 2_000);
        in_calls(200, delivered.calls, delivered.retries);
        let drained = drain(server, &queue_url).await.remove("").unwrap();
        // On a busy machine, a response may be lost, and the messages of that call are then sent again.
        let twice = usize::try_from(10 * delivered.retries).unwrap();
        assert!((2_000..=2_000 + twice).contains(&drained.len()), "{} for {delivered:?}", drained.len());
        assert_eq!(drained.into_iter().collect::<BTreeSet<_>>(), (0..2_000).map(body).collect());
    });
}

#[test]
fn a_fifo_queue_has_each_group_in_order() {
    on_ministack(async |server| {
        let queue_url = queue(server, "groups.fifo").await;
        let deliver = Sender::new(server.sqs.clone(), &queue_url);
        let message = |number: u32| {
            Message::new(number.to_string()).fifo(format!("group {}", number % 12), number.to_string())
        };
        let delivered = deliver.send((0..120).map(message)).await.unwrap();
        // Twelve groups are sent concurrently, one message of each group at a time.
        assert_eq!(delivered.count(), 120);
        assert!((12..120).contains(&delivered.calls), "{delivered:?}");
        let groups = drain(server, &queue_url).await;
        assert_eq!(groups.len(), 12);
        for (index, group) in (0..12).map(|index| (index, &groups[&format!("group {index}")])) {
            let expected: Vec<String> = (0..10).map(|step| (index + 12 * step).to_string()).collect();
            assert_eq!(*group, expected);
        }
    });
}

#[test]
fn messages_are_shown_again_and_deleted() {
    on_ministack(async |server| {
        let queue_url = queue(server, "shown-again").await;
        let deliver = Sender::new(server.sqs.clone(), &queue_url);
        deliver.send((0..25).map(|number| Message::new(number.to_string()))).await.unwrap();
        let hidden = received(server, &queue_url).await;
        let show = VisibilityChanger::new(server.sqs.clone(), &queue_url);
        let visible = |receipt_handle| Visibility { receipt_handle, timeout: Duration::ZERO };
        let delivered = show.send(hidden.into_iter().map(visible)).await.unwrap();
        assert_eq!(delivered.count(), 25);
        in_calls(3, delivered.calls, delivered.retries);

        let shown = received(server, &queue_url).await;
        let delivered = Deleter::new(server.sqs.clone(), &queue_url).send(shown).await.unwrap();
        assert_eq!(delivered.count(), 25);
        in_calls(3, delivered.calls, delivered.retries);
        let call = server.sqs.get_queue_attributes().queue_url(&queue_url);
        let attributes =
            call.attribute_names(QueueAttributeName::All).send().await.unwrap().attributes.unwrap();
        assert_eq!(attributes[&QueueAttributeName::ApproximateNumberOfMessages], "0");
        assert_eq!(attributes[&QueueAttributeName::ApproximateNumberOfMessagesNotVisible], "0");
    });
}

/// Receives all 25 messages, which hides them, and returns their receipt handles.
async fn received(server: &MiniStack, queue_url: &str) -> Vec<String> {
    let mut handles = Vec::new();
    while handles.len() < 25 {
        let call = server.sqs.receive_message().queue_url(queue_url).max_number_of_messages(10);
        let messages = call.visibility_timeout(600).send().await.unwrap().messages.unwrap_or_default();
        assert!(!messages.is_empty(), "only {} messages are visible", handles.len());
        handles.extend(messages.into_iter().map(|message| message.receipt_handle.unwrap()));
    }
    handles
}

#[test]
fn missing_queue_returns_everything_at_once() {
    on_ministack(async |server| {
        let deliver = Sender::new(server.sqs.clone(), "https://127.0.0.1/000000000000/nowhere");
        let undelivered = deliver.send((0..25).map(|n| Message::new(n.to_string()))).await.unwrap_err();
        assert_eq!(undelivered.entries.len(), 25);
        // No further call is started after the first response.
        assert!((1..=3).contains(&undelivered.calls) && undelivered.retries == 0, "{undelivered:?}");
        let error = undelivered.entries[0].cause.error().unwrap();
        assert_eq!(error.kind, comeback_delivery::ErrorKind::Missing, "{error}");
    });
}

#[test]
fn the_example() {
    on_ministack(async |server| {
        let queue_url = queue(server, "example").await;
        let printed = example(server, "sqs", &queue_url);
        assert!(printed.starts_with("1000 messages in "), "{printed}");
        assert!(drain(server, &queue_url).await[""].len() >= 1_000);
    });
}
