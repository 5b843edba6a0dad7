use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::*;
use crate::aws::draw_id;

const DAY: u64 = 86_400;

struct Fixture {
    queue: SqsQueue<Sender>,
    agenda: Agenda<QueueTimer>,
    ids: Xoshiro256PlusPlus,
}

/// The test's number for a message. The queue keeps it as the message's data.
type Sender = usize;

type Got = (Sender, ReceiptHandle, Record);

impl Fixture {
    fn removed(&mut self) -> Vec<(Sender, Removal)> {
        std::mem::take(&mut self.queue.removals)
    }

    fn new(settings: QueueSettings) -> Self {
        let settings = QueueSettings { visibility_timeout: Duration::from_secs(180), ..settings };
        let ids = Xoshiro256PlusPlus::seed_from_u64(1);
        Self { queue: SqsQueue::new(settings), agenda: Agenda::default(), ids }
    }

    fn send(&mut self, at: f64, carried: Sender) {
        self.send_delayed(at, 0, carried).expect("it has no delay");
    }

    fn send_delayed(&mut self, at: f64, secs: u64, carried: Sender) -> Result<ReceiptHandle, String> {
        let (id, body, delay) =
            (draw_id(&mut self.ids), format!("body {carried}"), Duration::from_secs(secs));
        let message = OutgoingMessage { id, body, delay, attributes: None, carried };
        self.queue.send(time(at), time(365.0 * DAY as f64), &mut self.agenda, message)
    }

    fn advance(&mut self, at: f64) {
        while let Some((now, timer)) = self.agenda.next_until(time(at)) {
            self.queue.run_out(now, timer);
        }
    }

    fn receive(&mut self, at: f64, most: usize) -> Vec<Got> {
        self.advance(at);
        let mut records = Vec::new();
        let received = self.queue.receive(time(at), most, &mut self.agenda, &mut records);
        assert_eq!(received.len(), records.len());
        let carried = |receipt| self.queue.message(receipt).expect("it was received just now").carried;
        received.into_iter().zip(records).map(|(got, record)| (carried(got), got, record)).collect()
    }

    fn receive_one(&mut self, at: f64) -> Got {
        let mut got = self.receive(at, 10);
        assert_eq!(got.len(), 1, "one message at {at}");
        got.remove(0)
    }

    fn hide(&mut self, at: f64, handle: &str, secs: u64) -> Result<(), String> {
        self.advance(at);
        let timeout = Duration::from_secs(secs);
        self.queue.change_visibility(time(at), &mut self.agenda, handle, timeout)
    }
}

fn time(secs: f64) -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000 + (secs * 1_000.0).round() as u64)
}

fn with_one() -> Fixture {
    let mut fixture = Fixture::new(QueueSettings::default());
    fixture.send(0.0, 7);
    fixture
}

#[test]
fn twelve_hours_count_from_the_receive() {
    let mut fixture = with_one();
    let (_, _, record) = fixture.receive_one(100.0);
    let beyond =
        "InvalidParameterValue: total VisibilityTimeout is beyond the limit of 43200 s from the receive";
    assert_eq!(fixture.hide(100.1, &record.receipt_handle, 43_200), Err(beyond.into()));
    assert_eq!(fixture.hide(110.0, &record.receipt_handle, 43_191), Err(beyond.into()));
    assert_eq!(fixture.hide(110.0, &record.receipt_handle, 43_190), Ok(()));
    assert_eq!(
        fixture.hide(110.0, &record.receipt_handle, 43_201),
        Err("InvalidParameterValue: VisibilityTimeout 43201 must be between 0 and 43200".into())
    );
    let (_, _, second) = fixture.receive_one(110.0 + 43_190.0);
    assert_eq!(fixture.hide(43_310.0, &second.receipt_handle, 43_190), Ok(()), "not the first");
}

#[test]
fn visible_message_can_be_deleted_not_hidden() {
    let mut fixture = with_one();
    let (_, receipt, record) = fixture.receive_one(1.0);
    fixture.advance(181.0);
    assert_eq!(
        fixture.hide(182.0, &record.receipt_handle, 60),
        Err("MessageNotInflight: the message is visible again".into())
    );
    assert!(fixture.queue.delete(receipt).is_some(), "its latest handle still deletes it");
    assert!(fixture.receive(183.0, 10).is_empty());
    fixture.send(184.0, 8);
    assert_eq!(fixture.receive_one(184.0).0, 8, "its slot is used again");
}

#[test]
fn old_handle_hides_but_does_not_delete() {
    let mut fixture = with_one();
    let (_, first, _) = fixture.receive_one(1.0);
    let (_, second, record) = fixture.receive_one(181.0);
    assert_ne!(first, second, "each receive has a handle of its own");
    assert_eq!(fixture.queue.delete(first), None);
    assert_eq!(fixture.hide(182.0, &first.to_string(), 3_600), Ok(()));
    assert!(fixture.receive(3_781.9, 10).is_empty(), "instead of the second receive's 180 s");
    let (_, third, _) = fixture.receive_one(3_782.0);
    assert_eq!(fixture.hide(3_783.0, &first.to_string(), 0), Ok(()));
    let (_, last, _) = fixture.receive_one(3_783.0);
    assert_eq!(fixture.hide(3_784.0, &third.to_string(), 10), Ok(()));
    assert_eq!(fixture.hide(3_784.0, &record.receipt_handle, 20), Ok(()), "the last call counts");
    assert!(fixture.receive(3_803.9, 10).is_empty());
    assert_eq!(fixture.receive_one(3_804.0).2.receive_count, 5);
    assert_eq!(fixture.queue.delete(last), None);
}

#[test]
fn handle_of_a_deleted_message_is_refused() {
    let mut fixture = with_one();
    let (_, first, _) = fixture.receive_one(1.0);
    let (_, last, _) = fixture.receive_one(181.0);
    assert!(fixture.queue.delete(last).is_some());
    let refused = |fixture: &mut Fixture, handle: &str| fixture.hide(182.0, handle, 10).unwrap_err();
    let gone = |handle: &str| {
        format!(
            "InvalidParameterValue: Value {handle} for parameter ReceiptHandle is invalid. Reason: Message does not exist \
             or is not available for visibility timeout change."
        )
    };
    for handle in [first, last].map(|handle| handle.to_string()) {
        assert_eq!(refused(&mut fixture, &handle), gone(&handle));
    }
    fixture.send(182.0, 8);
    let (_, next, _) = fixture.receive_one(182.0);
    assert_eq!(next.slot, first.slot);
    for handle in [first, last].map(|handle| handle.to_string()) {
        assert_eq!(refused(&mut fixture, &handle), gone(&handle), "another message has its slot");
    }
    let later = ReceiptHandle { number: next.number + 1, ..next }.to_string();
    assert_eq!(refused(&mut fixture, &later), gone(&later), "nobody has received it yet");
    let garbled =
        "ReceiptHandleIsInvalid: The input receipt handle \"garbled\" is not a valid receipt handle.";
    assert_eq!(refused(&mut fixture, "garbled"), garbled);
}

#[test]
fn hiding_does_not_extend_retention() {
    let end = 14.0 * DAY as f64;
    let mut fixture = with_one();
    fixture.send(DAY as f64, 8);
    assert_eq!(fixture.receive(end - 10.0, 10).len(), 2);
    fixture.advance(end - 0.001);
    assert_eq!(fixture.removed(), []);
    fixture.advance(end);
    assert_eq!(fixture.removed(), [(7, Removal::Expired)]);
    assert_eq!(fixture.receive_one(end + 180.0).0, 8);
}

#[test]
fn old_retention_timer_spares_the_slots_next_message() {
    let mut fixture = with_one();
    let (_, receipt, _) = fixture.receive_one(1.0);
    assert!(fixture.queue.delete(receipt).is_some());
    fixture.send(60.0, 8);
    fixture.advance(14.0 * DAY as f64);
    assert_eq!(fixture.removed(), []);
    assert_eq!(fixture.receive(14.0 * DAY as f64, 10).len(), 1);
}

#[test]
fn a_message_received_too_often_is_removed() {
    let mut fixture = Fixture::new(QueueSettings { max_receive_count: 3, ..QueueSettings::default() });
    fixture.send(0.0, 7);
    for receive in 1..=3 {
        assert_eq!(fixture.receive_one(200.0 * f64::from(receive)).2.receive_count, receive as u32);
        assert_eq!(fixture.removed(), []);
    }
    assert!(fixture.receive(800.0, 10).is_empty());
    assert_eq!(fixture.removed(), [(7, Removal::ReceivedTooOften)]);
}

#[test]
fn receive_at_the_in_flight_limit_returns_nothing() {
    let mut fixture = Fixture::new(QueueSettings { in_flight_limit: 3, ..QueueSettings::default() });
    (0..5).for_each(|carried| fixture.send(0.0, carried));
    let got = fixture.receive(1.0, 2);
    assert_eq!(fixture.receive(1.0, 10).len(), 1, "up to the limit");
    assert_eq!(fixture.queue.depth().in_flight, 3);
    assert!(!fixture.queue.has_visible());
    assert!(fixture.receive(2.0, 10).is_empty());
    assert!(fixture.queue.delete(got[0].1).is_some());
    assert_eq!(fixture.receive(3.0, 10).len(), 1, "a deletion makes room");
    assert_eq!(fixture.queue.depth().in_flight, 3);
    assert_eq!(fixture.receive(181.0, 10).len(), 2, "so do timeouts that end");
    assert_eq!(fixture.queue.depth().in_flight, 3);
}

#[test]
fn messages_come_in_the_order_of_their_appearance() {
    let mut fixture = Fixture::new(QueueSettings::default());
    (0..3).for_each(|carried| fixture.send(0.0, carried));
    let hidden = fixture.receive(1.0, 2);
    fixture.hide(1.0, &hidden[0].2.receipt_handle, 20).unwrap();
    fixture.hide(1.0, &hidden[1].2.receipt_handle, 10).unwrap();
    let carried: Vec<Sender> = fixture.receive(30.0, 10).into_iter().map(|(carried, ..)| carried).collect();
    assert_eq!(carried, [2, 1, 0]);
}

fn depth(fixture: &Fixture) -> [usize; 3] {
    let Depth { visible, in_flight, delayed } = fixture.queue.depth();
    [visible, in_flight, delayed]
}

fn with_one_delayed(secs: u64) -> Fixture {
    let mut fixture = Fixture::new(QueueSettings::default());
    fixture.send_delayed(0.0, secs, 7).unwrap();
    fixture
}

#[test]
fn delayed_messages_need_no_room_in_flight() {
    let mut fixture = Fixture::new(QueueSettings { in_flight_limit: 1, ..QueueSettings::default() });
    for carried in 0..5 {
        fixture.send_delayed(0.0, 60, carried).unwrap();
    }
    fixture.send(0.0, 8);
    assert_eq!(fixture.receive_one(1.0).0, 8);
    fixture.advance(60.0);
    assert_eq!(depth(&fixture), [5, 1, 0]);
    assert!(fixture.receive(61.0, 10).is_empty(), "now they do");
}

#[test]
fn delayed_messages_appear_in_the_order_of_their_due_times() {
    let mut fixture = Fixture::new(QueueSettings::default());
    fixture.send_delayed(0.0, 30, 1).unwrap();
    fixture.send_delayed(1.0, 10, 2).unwrap();
    fixture.advance(20.0);
    fixture.send(20.0, 3);
    let carried: Vec<Sender> = fixture.receive(30.0, 10).into_iter().map(|(carried, ..)| carried).collect();
    assert_eq!(carried, [2, 3, 1]);
}

#[test]
fn delay_does_not_extend_retention() {
    let end = 14.0 * DAY as f64;
    let mut fixture = with_one_delayed(900);
    fixture.advance(end - 0.001);
    assert_eq!(depth(&fixture), [1, 0, 0]);
    fixture.advance(end);
    assert_eq!(fixture.removed(), [(7, Removal::Expired)]);
    assert_eq!(depth(&fixture), [0, 0, 0]);
}

#[test]
fn a_message_may_expire_in_any_state() {
    let mut fixture = Fixture::new(QueueSettings::default());
    let in_flight = fixture.send_delayed(0.0, 0, 2).unwrap();
    let (_, receipt, record) = fixture.receive_one(0.0);
    let delayed = fixture.send_delayed(0.0, 900, 1).unwrap();
    let visible = fixture.send_delayed(0.0, 0, 3).unwrap();
    assert_eq!(depth(&fixture), [1, 1, 1]);
    for (sent, carried, left) in [(delayed, 1, 2), (in_flight, 2, 1), (visible, 3, 0)] {
        assert_eq!(fixture.queue.expire_early(sent), Some(carried));
        assert_eq!(depth(&fixture).into_iter().sum::<usize>(), left);
        assert_eq!(fixture.removed(), [(carried, Removal::Expired)]);
    }
    assert!(fixture.queue.delete(receipt).is_none());
    assert!(fixture.hide(1.0, &record.receipt_handle, 10).is_err());
    assert!(fixture.receive(900.0, 10).is_empty(), "old timers and receipts find nothing");
}

#[test]
fn old_delay_timer_spares_the_slots_next_message() {
    let mut fixture = Fixture::new(QueueSettings::default());
    let lost = fixture.send_delayed(0.0, 600, 7).unwrap();
    assert_eq!(fixture.queue.expire_early(lost), Some(7));
    assert_eq!(fixture.removed(), [(7, Removal::Expired)]);
    assert_eq!(fixture.send_delayed(1.0, 900, 8).unwrap().slot, lost.slot);
    assert_eq!(fixture.queue.expire_early(lost), None, "another message has its slot");
    fixture.advance(600.0);
    assert_eq!(depth(&fixture), [0, 0, 1]);
    assert_eq!(fixture.receive_one(901.0).0, 8);
}

#[test]
fn a_message_without_attributes_is_small() {
    assert!(
        size_of::<QueuedMessage<()>>() <= 104,
        "{} bytes, ten million times",
        size_of::<QueuedMessage<()>>()
    );
}
