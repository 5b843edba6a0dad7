use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::{PutEventsRequestEntry, Target};
use aws_sdk_sqs::types::QueueAttributeName;
use comeback_delivery::eventbridge::Sender;
use comeback_delivery::{EntryError, ErrorKind};
use comeback_tests::MiniStack;

use crate::sqs::{drain, queue};
use crate::{example, in_calls, on_ministack};

/// Creates an event bus that forwards events from the source `shop` to a queue, and returns the queue's URL.
async fn bus(server: &MiniStack, client: &Client, name: &str) -> String {
    let queue_url = queue(server, &format!("events-{name}")).await;
    let call = server.sqs.get_queue_attributes().queue_url(&queue_url);
    let attributes = call.attribute_names(QueueAttributeName::QueueArn).send().await.unwrap().attributes;
    let arn = attributes.unwrap().remove(&QueueAttributeName::QueueArn).unwrap();
    client.create_event_bus().name(name).send().await.expect("a bus");
    let rule = client.put_rule().name(name).event_bus_name(name);
    rule.event_pattern(r#"{"source": ["shop"]}"#).send().await.expect("a rule");
    let target = Target::builder().id("queue").arn(arn).build().unwrap();
    client.put_targets().rule(name).event_bus_name(name).targets(target).send().await.expect("a target");
    queue_url
}

fn event(bus: &str, source: &str, number: u32) -> PutEventsRequestEntry {
    PutEventsRequestEntry::builder()
        .event_bus_name(bus)
        .source(source)
        .detail_type("OrderPlaced")
        .detail(format!(r#"{{"order": {number}}}"#))
        .build()
}

#[test]
fn all_accepted_events_reach_the_bus() {
    on_ministack(async |server| {
        let client = Client::new(server.config());
        let queue_url = bus(server, &client, "orders").await;
        let deliver = Sender::new(client);
        // EventBridge reserves sources that begin with `aws.` for AWS.
        let source = |number| if number % 50 == 7 { "aws.shop" } else { "shop" };
        let events = (0..200).map(|number| event("orders", source(number), number));
        let undelivered = deliver.send(events).await.unwrap_err();
        assert_eq!(undelivered.delivered.len(), 196);
        in_calls(20, undelivered.calls, undelivered.retries);
        for (left, index) in undelivered.entries.iter().zip([7, 57, 107, 157]) {
            let EntryError::Refused(error) = &left.cause else { panic!("{}", left.cause) };
            assert_eq!((left.index, error.kind), (index, ErrorKind::Denied), "{error}");
        }
        assert!(drain(server, &queue_url).await[""].len() >= 196);
    });
}

#[test]
fn the_example() {
    on_ministack(async |server| {
        let queue_url = bus(server, &Client::new(server.config()), "example").await;
        let printed = example(server, "eventbridge", "example");
        assert!(printed.starts_with("100 events in "), "{printed}");
        assert!(drain(server, &queue_url).await[""].len() >= 100);
    });
}
