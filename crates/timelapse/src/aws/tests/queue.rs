//! Contracts for the behaviour of an SQS queue.
//!
//! Sources: the SQS API Reference for each call, and the SQS Developer Guide on visibility timeouts and message timers.

use super::stand::{Delayed, Difference, Queue, Stand};
use super::{Depth, QueuedAttributes};

const TWELVE_HOURS: u64 = 12 * 3_600;

pub(crate) async fn message_is_received_as_sent(stand: &impl Queue) {
    let body = "{\"text\": \"\u{e9}\\ud800\", \"n\": 1E400, \"n\": -0.0}\t\n";
    let id = stand.send(body).await;
    let received = stand.next().await;
    assert_eq!((&received.message_id, received.body.as_str()), (&id, body));
    assert_eq!(received.receive_count, 1);
    assert!(received.sent <= received.first_receive, "{received:?}");
}

pub(crate) async fn received_message_is_hidden(stand: &impl Queue) {
    stand.send("hidden").await;
    stand.next().await;
    assert_eq!(stand.receive().await, []);
    assert_eq!(stand.held().await, 1);
}

pub(crate) async fn message_returns_after_the_queues_timeout(stand: &impl Queue) {
    stand.send("back").await;
    let first = stand.next().await;
    let again = stand.next().await;
    assert_eq!((again.message_id, again.receive_count), (first.message_id, 2));
}

pub(crate) async fn receives_are_counted_and_the_first_remembered(stand: &impl Queue) {
    stand.send("counted").await;
    let first = stand.next().await;
    let mut last = first.clone();
    for receive_count in 2..=4 {
        assert_eq!(stand.hide(&[(&last.receipt_handle, 0)]).await, [true]);
        let again = stand.next().await;
        assert_eq!(again.receive_count, receive_count);
        assert_eq!((again.sent, again.first_receive), (first.sent, first.first_receive));
        assert_ne!(again.receipt_handle, last.receipt_handle, "each receive has a handle of its own");
        last = again;
    }
}

pub(crate) async fn hidden_message_returns_in_time(stand: &impl Queue) {
    let (later, sooner) = (stand.send("later").await, stand.send("sooner").await);
    let received = stand.receive().await;
    let seconds = |id: &str| if id == later { 8 } else { 1 };
    let entries: Vec<_> =
        received.iter().map(|record| (record.receipt_handle.as_str(), seconds(&record.message_id))).collect();
    assert_eq!(stand.hide(&entries).await, [true, true]);
    assert_eq!(stand.next().await.message_id, sooner);
    assert_eq!(stand.next().await.message_id, later);
}

pub(crate) async fn timeout_replaces_the_one_before(stand: &impl Queue) {
    stand.send("shortened").await;
    let shortened = stand.next().await;
    stand.send("prolonged").await;
    let prolonged = stand.next().await;
    for (short, long) in [(1_200, 2), (4, 9)] {
        let entries = [(shortened.receipt_handle.as_str(), short), (&prolonged.receipt_handle, long)];
        assert_eq!(stand.hide(&entries).await, [true, true]);
    }
    assert_eq!(stand.next().await.message_id, shortened.message_id);
    assert_eq!(stand.next().await.message_id, prolonged.message_id);
}

pub(crate) async fn timeout_is_forgotten_on_the_next_receive(stand: &impl Queue) {
    stand.send("forgotten").await;
    let received = stand.next().await;
    assert_eq!(stand.hide(&[(&received.receipt_handle, 1)]).await, [true]);
    stand.next().await;
    stand.send("bystander").await;
    let bystander = stand.next().await;
    assert_eq!(stand.hide(&[(&bystander.receipt_handle, 3)]).await, [true]);
    let next = stand.next().await;
    assert_eq!(next.message_id, bystander.message_id, "the other is hidden for the queue's ten minutes");
}

pub(crate) async fn old_handle_hides_but_does_not_delete(stand: &impl Queue) {
    stand.send("twice").await;
    let first = stand.next().await;
    assert_eq!(stand.hide(&[(&first.receipt_handle, 0)]).await, [true]);
    let second = stand.next().await;
    let is_known = !stand.differs(Difference::RefusesOldHandles);
    assert_eq!(stand.delete(&first.receipt_handle).await, is_known);
    assert_eq!(stand.held().await, 1, "an old handle deletes nothing");
    assert_eq!(stand.hide(&[(&first.receipt_handle, 0)]).await, [is_known]);
    assert_eq!(
        stand.receive().await.len(),
        usize::from(is_known),
        "the hiding of the later receive has ended"
    );
    assert_eq!(stand.hide(&[(&second.receipt_handle, 0)]).await, [true], "the later handle works");
    assert_eq!(stand.next().await.receive_count, if is_known { 4 } else { 3 });
}

pub(crate) async fn timeouts_are_answered_entry_by_entry(stand: &impl Queue) {
    for body in ["one", "two", "three"] {
        stand.send(body).await;
    }
    let received = stand.receive().await;
    assert_eq!(received.len(), 3);
    assert!(stand.delete(&received[1].receipt_handle).await);
    let entries: Vec<_> = received.iter().map(|record| (record.receipt_handle.as_str(), 1)).collect();
    assert_eq!(stand.hide(&entries).await, [true, false, true]);
    let mut back = [stand.next().await.message_id, stand.next().await.message_id];
    let mut hidden = [received[0].message_id.clone(), received[2].message_id.clone()];
    back.sort();
    hidden.sort();
    assert_eq!(back, hidden, "one entry fails alone");
}

pub(crate) async fn deleted_message_is_gone(stand: &impl Queue) {
    stand.send("done").await;
    let received = stand.next().await;
    assert!(stand.delete(&received.receipt_handle).await);
    assert_eq!(stand.held().await, 0);
    assert_eq!(stand.hide(&[(&received.receipt_handle, 0)]).await, [false]);
}

pub(crate) async fn ten_messages_are_received_at_most(stand: &impl Stand) {
    for _ in 0..12 {
        stand.send("one of twelve").await;
    }
    assert_eq!(stand.receive().await.len(), 10);
    assert_eq!(stand.receive().await.len(), 2);
}

pub(crate) async fn nothing_is_hidden_for_over_twelve_hours(stand: &impl Stand) {
    stand.send("long").await;
    let received = stand.next().await;
    let over = stand.hide(&[(&received.receipt_handle, TWELVE_HOURS + 1)]).await;
    assert_eq!(over, [stand.differs(Difference::HidesOverTwelveHours)]);
    // SQS counts the 12 hours from the receive, which was a moment ago, so it now refuses a full 12 hours. The handler
    // therefore hides a message for at most 12 hours less 30 s.
    let in_all = stand.hide(&[(&received.receipt_handle, TWELVE_HOURS)]).await;
    assert_eq!(in_all, [stand.differs(Difference::HidesOverTwelveHours)]);
    assert_eq!(stand.hide(&[(&received.receipt_handle, TWELVE_HOURS - 30)]).await, [true]);
}

pub(crate) async fn visible_message_cannot_be_hidden(stand: &impl Stand) {
    stand.send("visible").await;
    let received = stand.next().await;
    assert_eq!(stand.hide(&[(&received.receipt_handle, 0)]).await, [true]);
    let late = stand.hide(&[(&received.receipt_handle, 600)]).await;
    assert_eq!(late, [stand.differs(Difference::HidesWhatIsVisible)]);
}

/// The copy that the handler sends when it moves a message, with JSON in its message attribute.
pub(crate) fn moved(delay: u64) -> Delayed {
    Delayed {
        body: "{\"text\": \"\u{e9}\\ud800\", \"n\": 1E400, \"n\": -0.0}\t\n",
        delay,
        attributes: QueuedAttributes {
            comeback: Some(r#"{"message_id": "059f36b4", "sent": 1523232000000, "moves": 1}"#.into()),
            trace_header: Some("Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1".into()),
        },
    }
}

pub(crate) async fn delayed_message_is_not_received_early(stand: &impl Stand) {
    let id = stand.send_delayed(&moved(2)).await.expect("it is sent");
    let received = stand.next().await;
    assert_eq!((received.message_id, received.receive_count), (id, 1));
    let waited = received.first_receive.since(received.sent).as_secs();
    assert!((2..60).contains(&waited), "it counts as sent before its delay: {waited} s");
}

pub(crate) async fn delayed_message_is_not_in_flight(stand: &impl Stand) {
    stand.send_delayed(&moved(5)).await.expect("it is sent");
    assert_eq!(stand.depth().await, Depth { visible: 0, in_flight: 0, delayed: 1 });
    let received = stand.next().await;
    assert_eq!(stand.depth().await, Depth { visible: 0, in_flight: 1, delayed: 0 });
    assert_eq!(stand.hide(&[(&received.receipt_handle, 0)]).await, [true]);
    assert_eq!(stand.depth().await, Depth { visible: 1, in_flight: 0, delayed: 0 }, "a delay is served once");
}

pub(crate) async fn delayed_message_keeps_body_and_attributes(stand: &impl Stand) {
    let message = moved(1);
    stand.send_delayed(&message).await.expect("it is sent");
    for receive_count in 1..=2 {
        let received = stand.next().await;
        assert_eq!((received.body.as_str(), received.receive_count), (message.body, receive_count));
        assert_eq!(stand.attributes(&received.receipt_handle), message.attributes);
        assert_eq!(stand.hide(&[(&received.receipt_handle, 0)]).await, [true]);
    }
    stand.send("plain").await;
    let both = [stand.next().await, stand.next().await];
    let plain = both.iter().find(|received| received.body == "plain").expect("it was received");
    assert_eq!(stand.attributes(&plain.receipt_handle), QueuedAttributes::default());
}

pub(crate) async fn nothing_is_delayed_for_over_fifteen_minutes(stand: &impl Stand) {
    let over = stand.send_delayed(&moved(901)).await;
    assert_eq!(over.is_some(), stand.differs(Difference::DelaysOverFifteenMinutes));
    assert!(stand.send_delayed(&moved(900)).await.is_some());
    assert_eq!(stand.depth().await.delayed, 1 + usize::from(over.is_some()));
}

pub(crate) async fn batch_is_sent_entry_by_entry(stand: &impl Stand) {
    let messages = [moved(5), moved(901), moved(0)];
    let sent = stand.send_batch(&messages).await;
    let is_sent: Vec<bool> = sent.iter().map(Option::is_some).collect();
    assert_eq!(is_sent, [true, stand.differs(Difference::DelaysOverFifteenMinutes), true]);
    let (at_once, delayed) = (stand.next().await, stand.next().await);
    assert_eq!([&delayed, &at_once].map(|it| Some(&it.message_id)), [sent[0].as_ref(), sent[2].as_ref()]);
    let mut attributes = messages[0].attributes.clone();
    if stand.differs(Difference::DropsTraceHeadersOfBatches) {
        attributes.trace_header = None;
    }
    assert_eq!(stand.attributes(&delayed.receipt_handle), attributes);
}
