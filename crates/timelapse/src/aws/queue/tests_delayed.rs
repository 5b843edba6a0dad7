use super::*;

/// Visible, in flight, delayed.
fn depth(fixture: &Fixture) -> [usize; 3] {
    let queue = &fixture.queue;
    assert_eq!(queue.len(), queue.visible() + queue.in_flight() + queue.delayed());
    [queue.visible(), queue.in_flight(), queue.delayed()]
}

/// One message, sent at 0 s.
fn with_one_delayed(secs: u64) -> Fixture {
    let mut fixture = Fixture::new(QueueSettings::default());
    fixture.send_delayed(0.0, secs, 7).unwrap();
    fixture
}

#[test]
fn a_delayed_message_is_not_received_early() {
    let mut fixture = with_one_delayed(600);
    assert!(!fixture.queue.has_visible());
    assert!(fixture.receive(599.999, 10).is_empty());
    let (carried, _, record) = fixture.receive_one(600.0);
    assert_eq!((carried, record.body.as_str(), record.receive_count), (7, "body 7", 1));
    assert_eq!((record.sent, record.first_receive), (time(0.0), time(600.0)), "the delay is no receive");
}

#[test]
fn a_delayed_message_is_neither_visible_nor_in_flight() {
    let mut fixture = with_one_delayed(600);
    fixture.send(0.0, 8);
    assert_eq!(depth(&fixture), [1, 0, 1]);
    fixture.advance(600.0);
    assert_eq!(depth(&fixture), [2, 0, 0]);
    fixture.receive(601.0, 1);
    assert_eq!(depth(&fixture), [1, 1, 0]);
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
fn a_delay_is_served_once() {
    let mut fixture = with_one_delayed(600);
    let (_, _, record) = fixture.receive_one(600.0);
    fixture.hide(601.0, &record.receipt_handle, 10).unwrap();
    assert!(fixture.receive(610.9, 10).is_empty());
    assert_eq!(fixture.receive_one(611.0).2.receive_count, 2);
    assert_eq!(fixture.receive(791.0, 10).len(), 1, "after the queue's own 180 s");
}

#[test]
fn delayed_messages_become_visible_in_the_order_of_their_ends() {
    let mut fixture = Fixture::new(QueueSettings::default());
    fixture.send_delayed(0.0, 30, 1).unwrap();
    fixture.send_delayed(1.0, 10, 2).unwrap();
    fixture.advance(20.0);
    fixture.send(20.0, 3);
    let carried: Vec<Sender> = fixture.receive(30.0, 10).into_iter().map(|(carried, ..)| carried).collect();
    assert_eq!(carried, [2, 3, 1]);
}

#[test]
fn nothing_is_delayed_for_over_fifteen_minutes() {
    let mut fixture = Fixture::new(QueueSettings::default());
    let refused = "InvalidParameterValue: Value 901 for parameter DelaySeconds is invalid. \
                   Reason: DelaySeconds must be >= 0 and <= 900.";
    assert_eq!(fixture.send_delayed(0.0, 901, 7), Err(refused.into()));
    assert_eq!(depth(&fixture), [0, 0, 0]);
    fixture.send_delayed(0.0, 900, 8).unwrap();
    assert_eq!(fixture.receive_one(900.0).0, 8);
}

#[test]
fn retention_counts_from_the_send_whatever_delays_the_message() {
    let retention = Duration::from_secs(600);
    let mut fixture = Fixture::new(QueueSettings { retention, ..QueueSettings::default() });
    fixture.send_delayed(0.0, 500, 7).unwrap();
    fixture.send_delayed(0.0, 900, 8).unwrap();
    fixture.advance(599.999);
    assert_eq!(depth(&fixture), [1, 0, 1]);
    fixture.advance(600.0);
    assert_eq!(fixture.removed(), [(7, Removal::Expired), (8, Removal::Expired)]);
    assert_eq!(depth(&fixture), [0, 0, 0]);
}

#[test]
fn the_end_of_a_delay_spares_the_next_message_in_its_slot() {
    let mut fixture = with_one_delayed(600);
    let lost = fixture.queue.messages.iter().next().map(|(slot, message)| (Slot(slot), message.id));
    let (slot, id) = lost.unwrap();
    assert!(fixture.queue.expire_early(slot, id));
    assert_eq!(fixture.removed(), [(7, Removal::Expired)]);
    assert_eq!(fixture.send_delayed(1.0, 900, 8), Ok(slot));
    fixture.advance(600.0);
    assert_eq!(depth(&fixture), [0, 0, 1]);
    assert_eq!(fixture.receive_one(901.0).0, 8);
}

#[test]
fn attributes_come_back_with_every_receive() {
    let mut fixture = Fixture::new(QueueSettings::default());
    let attributes = Attributes { comeback: Some("moved".into()), trace_header: Some("Root=1".into()) };
    let sent = Sent {
        id: Id::draw(&mut fixture.ids),
        body: String::new(),
        delay: Duration::from_secs(1),
        attributes: Some(Box::new(attributes.clone())),
        carried: 7,
    };
    fixture.queue.send(time(0.0), time(1_000.0), &mut fixture.agenda, sent).unwrap();
    fixture.send(0.0, 8);
    for at in [1.0, 200.0] {
        fixture.advance(at);
        let got = fixture.queue.receive(time(at), 10, &mut fixture.agenda, &mut Vec::new());
        let with: Vec<_> = got
            .iter()
            .map(|got| (*fixture.queue.carried(got).unwrap(), fixture.queue.attributes(got)))
            .collect();
        assert!(with.contains(&(7, Some(&attributes))) && with.contains(&(8, None)), "{with:?}");
    }
}

#[test]
fn a_message_without_attributes_is_small() {
    assert!(size_of::<Message<()>>() <= 96, "{} bytes, ten million times", size_of::<Message<()>>());
}
