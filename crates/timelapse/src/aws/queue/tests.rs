use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::*;
use crate::aws::id::Id;

const DAY: u64 = 86_400;

/// A queue on its agenda, with a clock set by each step.
struct Bench {
    queue: Queue,
    agenda: Agenda,
    ids: Xoshiro256PlusPlus,
}

/// What a receiver got of one message.
type Got = (String, Receipt, Record);

impl Bench {
    /// The events whose messages the queue took away.
    fn taken(&mut self) -> Vec<(usize, Removal)> {
        self.queue.take_removals().into_iter().map(|(gone, removal)| (gone.event, removal)).collect()
    }

    fn new(settings: QueueSettings) -> Self {
        let ids = Xoshiro256PlusPlus::seed_from_u64(1);
        Self { queue: Queue::new(settings), agenda: Agenda::default(), ids }
    }

    fn send(&mut self, at: f64, event: usize) {
        let (id, body) = (Id::draw(&mut self.ids), format!("body {event}"));
        let message = Sent { id, body, event, attempt: 0, flaw: None };
        self.queue.send(time(at), time(365.0 * DAY as f64), &mut self.agenda, message);
    }

    /// Lets the agenda run up to `at`, as the simulation does.
    fn advance(&mut self, at: f64) {
        while let Some((now, happening)) = self.agenda.next_until(time(at)) {
            match happening {
                Happening::Appears(receipt) => self.queue.appear(now, receipt),
                Happening::Expires(slot) => self.queue.expire(now, slot),
                other => panic!("a queue plans no {other:?}"),
            }
        }
    }

    fn receive(&mut self, at: f64, most: usize) -> Vec<Got> {
        self.advance(at);
        let mut records = Vec::new();
        let received = self.queue.receive(time(at), most, &mut self.agenda, &mut records);
        assert_eq!(received.len(), records.len());
        received
            .into_iter()
            .zip(records)
            .map(|(got, record)| (format!("event {}", got.event), got.receipt, record))
            .collect()
    }

    fn receive_one(&mut self, at: f64) -> Got {
        let mut got = self.receive(at, 10);
        assert_eq!(got.len(), 1, "one message at {at}");
        got.remove(0)
    }

    fn hide(&mut self, at: f64, handle: &str, secs: u64) -> Result<(), String> {
        self.advance(at);
        let timeout = Duration::from_secs(secs);
        self.queue
            .change_visibility(time(at), &mut self.agenda, handle, timeout)
            .map_err(|error| error.to_string())
    }
}

/// Seconds after some start, to the millisecond.
fn time(secs: f64) -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000 + (secs * 1_000.0).round() as u64)
}

fn with_one() -> Bench {
    let mut bench = Bench::new(QueueSettings::default());
    bench.send(0.0, 7);
    bench
}

#[test]
fn a_receive_hides_a_message_for_the_queues_timeout() {
    let mut bench = with_one();
    let (event, _, record) = bench.receive_one(1.0);
    assert_eq!((event.as_str(), record.body.as_str()), ("event 7", "body 7"));
    assert!(bench.receive(1.0, 10).is_empty());
    assert!(bench.receive(180.999, 10).is_empty());
    assert_eq!(bench.receive(181.0, 10).len(), 1);
}

#[test]
fn counts_receives_and_keeps_the_first() {
    let mut bench = with_one();
    let (_, _, first) = bench.receive_one(1.5);
    let (_, _, second) = bench.receive_one(200.0);
    let facts = |r: &Record| (r.receive_count, r.sent, r.first_receive);
    assert_eq!(facts(&first), (1, time(0.0), time(1.5)));
    assert_eq!(facts(&second), (2, time(0.0), time(1.5)));
    assert_eq!(first.message_id, second.message_id);
    assert_ne!(first.receipt_handle, second.receipt_handle);
}

#[test]
fn a_set_visibility_replaces_the_queues_and_lasts_one_receive() {
    let mut bench = with_one();
    let (_, _, record) = bench.receive_one(1.0);
    bench.hide(2.0, &record.receipt_handle, 3_600).unwrap();
    assert!(bench.receive(3_601.9, 10).is_empty(), "counted from the call, not from the receive");
    assert_eq!(bench.receive(3_602.0, 10).len(), 1);
    assert_eq!(bench.receive(3_782.0, 10).len(), 1, "the queue's own 180 s again");
}

#[test]
fn a_visibility_can_be_cut_short_down_to_nothing() {
    let mut bench = with_one();
    let (_, _, record) = bench.receive_one(1.0);
    bench.hide(2.0, &record.receipt_handle, 0).unwrap();
    assert_eq!(bench.receive(2.0, 10).len(), 1);
    assert!(bench.receive(181.5, 10).is_empty(), "the first receive's timeout is void");
}

#[test]
fn twelve_hours_count_from_the_receive() {
    let mut bench = with_one();
    let (_, _, record) = bench.receive_one(100.0);
    let beyond =
        "InvalidParameterValue: total VisibilityTimeout is beyond the limit of 43200 s from the receive";
    assert_eq!(bench.hide(100.1, &record.receipt_handle, 43_200), Err(beyond.into()));
    assert_eq!(bench.hide(110.0, &record.receipt_handle, 43_191), Err(beyond.into()));
    assert_eq!(bench.hide(110.0, &record.receipt_handle, 43_190), Ok(()));
    assert_eq!(
        bench.hide(110.0, &record.receipt_handle, 43_201),
        Err("InvalidParameterValue: VisibilityTimeout 43201 must be between 0 and 43200".into())
    );
}

#[test]
fn twelve_hours_count_from_the_receive_at_hand_not_the_first() {
    let mut bench = with_one();
    let (_, _, first) = bench.receive_one(0.0);
    bench.hide(0.0, &first.receipt_handle, 43_200).unwrap();
    let (_, _, second) = bench.receive_one(43_200.0);
    assert_eq!(bench.hide(43_210.0, &second.receipt_handle, 43_190), Ok(()));
}

#[test]
fn a_later_receive_makes_a_handle_stale() {
    let mut bench = with_one();
    let (_, old, record) = bench.receive_one(1.0);
    let (_, latest, _) = bench.receive_one(200.0);
    let stale = "ReceiptHandleIsInvalid: a later receive, or the message's deletion, made the handle stale";
    assert_eq!(bench.hide(201.0, &record.receipt_handle, 60), Err(stale.into()));
    assert_eq!(bench.hide(201.0, "no handle of ours", 60), Err(stale.into()));
    assert!(bench.queue.delete(old).is_none(), "a stale handle deletes nothing");
    assert!(bench.queue.delete(latest).is_some());
    assert_eq!(bench.hide(201.0, &latest.to_string(), 60), Err(stale.into()));
    assert!(bench.receive(1_000.0, 10).is_empty());
}

#[test]
fn a_message_that_is_visible_again_cannot_be_hidden_but_can_be_deleted() {
    let mut bench = with_one();
    let (_, receipt, record) = bench.receive_one(1.0);
    bench.advance(181.0);
    assert_eq!(
        bench.hide(182.0, &record.receipt_handle, 60),
        Err("MessageNotInflight: the message is visible again".into())
    );
    assert!(bench.queue.delete(receipt).is_some(), "its latest handle still deletes it");
    assert!(bench.receive(183.0, 10).is_empty());
    bench.send(184.0, 8);
    assert_eq!(bench.receive_one(184.0).0, "event 8", "the place it had is used again");
}

#[test]
fn retention_counts_from_the_send_whatever_hides_the_message() {
    let end = 14.0 * DAY as f64;
    let mut bench = with_one();
    bench.send(DAY as f64, 8);
    assert_eq!(bench.receive(end - 10.0, 10).len(), 2);
    bench.advance(end - 0.001);
    assert_eq!(bench.taken(), []);
    bench.advance(end);
    assert_eq!(bench.taken(), [(7, Removal::Expired)]);
    assert_eq!(bench.receive_one(end + 180.0).0, "event 8");
}

#[test]
fn a_retention_that_was_planned_spares_the_next_message_in_its_place() {
    let mut bench = with_one();
    let (_, receipt, _) = bench.receive_one(1.0);
    assert!(bench.queue.delete(receipt).is_some());
    bench.send(60.0, 8);
    bench.advance(14.0 * DAY as f64);
    assert_eq!(bench.taken(), []);
    assert_eq!(bench.receive(14.0 * DAY as f64, 10).len(), 1);
}

#[test]
fn the_redrive_policy_takes_a_message_received_too_often() {
    let mut bench = Bench::new(QueueSettings { max_receive_count: 3, ..QueueSettings::default() });
    bench.send(0.0, 7);
    for receive in 1..=3 {
        assert_eq!(bench.receive_one(200.0 * f64::from(receive)).2.receive_count, receive as u32);
        assert_eq!(bench.taken(), []);
    }
    assert!(bench.receive(800.0, 10).is_empty());
    assert_eq!(bench.taken(), [(7, Removal::Redriven)]);
}

#[test]
fn past_the_in_flight_limit_a_receive_returns_nothing() {
    let mut bench = Bench::new(QueueSettings { in_flight_limit: 3, ..QueueSettings::default() });
    (0..5).for_each(|event| bench.send(0.0, event));
    let got = bench.receive(1.0, 2);
    assert_eq!(bench.receive(1.0, 10).len(), 1, "up to the limit");
    assert_eq!(bench.queue.in_flight(), 3);
    assert!(!bench.queue.has_visible());
    assert!(bench.receive(2.0, 10).is_empty());
    assert!(bench.queue.delete(got[0].1).is_some());
    assert_eq!(bench.receive(3.0, 10).len(), 1, "a deletion makes room");
    assert_eq!(bench.queue.in_flight(), 3);
    assert_eq!(bench.receive(181.0, 10).len(), 2, "so do timeouts that end");
    assert_eq!(bench.queue.in_flight(), 3);
}

#[test]
fn messages_come_in_the_order_of_their_appearance() {
    let mut bench = Bench::new(QueueSettings::default());
    (0..3).for_each(|event| bench.send(0.0, event));
    let hidden = bench.receive(1.0, 2);
    bench.hide(1.0, &hidden[0].2.receipt_handle, 20).unwrap();
    bench.hide(1.0, &hidden[1].2.receipt_handle, 10).unwrap();
    let events: Vec<String> = bench.receive(30.0, 10).into_iter().map(|(event, ..)| event).collect();
    assert_eq!(events, ["event 2", "event 1", "event 0"]);
}

#[test]
fn a_receive_takes_ten_at_most_and_reuses_buffers() {
    let mut bench = Bench::new(QueueSettings::default());
    (0..12).for_each(|event| bench.send(0.0, event));
    let mut records = Vec::new();
    bench.queue.receive(time(1.0), 10, &mut bench.agenda, &mut records);
    assert_eq!((records.len(), records[9].body.as_str()), (10, "body 9"));
    bench.queue.receive(time(1.0), 10, &mut bench.agenda, &mut records);
    let bodies: Vec<&str> = records.iter().map(|record| record.body.as_str()).collect();
    assert_eq!(bodies, ["body 10", "body 11"]);
}
