use std::collections::BTreeMap;

use comeback_engine::FailedEvent;

use super::letters::{self, NOW, ORDERS, policy};
use super::simulated::Simulated;
use crate::dead::deed::Deed as _;
use crate::dead::pace::Pace;
use crate::dead::redrive::Redrive;
use crate::dead::work::{Work, Worked, work};
use crate::dead::{End, Filter};
use crate::{Failure, Interrupt};

fn order(per_second: f64) -> Work {
    let (filter, pace) = (Filter::default(), Pace::per_second(per_second));
    Work { filter, now: NOW, until: NOW, pace, limit: None }
}

fn with(letters: usize) -> Simulated {
    let simulated = Simulated::new(7);
    (0..letters).for_each(|_| drop(simulated.put(&letters::event("Timeout"))));
    simulated
}

async fn redrive(simulated: &Simulated, order: &Work) -> Worked {
    try_redrive(simulated, order).await.unwrap()
}

async fn try_redrive(simulated: &Simulated, order: &Work) -> Result<Worked, Failure> {
    let (_raise, interrupt) = Interrupt::new();
    let policy = policy();
    let mut redrive = Redrive::new(&policy, None, NOW).unwrap();
    work(simulated, &mut redrive, order, &interrupt, &|_| ()).await
}

#[tokio::test(start_paused = true)]
async fn letters_go_at_their_pace() {
    for (per_second, at_once, seconds) in [(50.0, 50, 3.0), (4.0, 4, 37.5), (0.5, 1, 300.0)] {
        let simulated = with(150);
        let start = tokio::time::Instant::now();
        assert_eq!(redrive(&simulated, &order(per_second)).await.done, 150);
        assert!(start.elapsed().as_secs_f64() >= seconds, "{per_second} a second");
        assert_eq!(simulated.most_sent_at_once.get(), at_once);
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_are_done() {
    let simulated = with(150);
    let worked = redrive(&simulated, &Work { limit: Some(77), ..order(50.0) }).await;
    assert_eq!((worked.done, worked.read.end), (77, End::Enough));
    assert_eq!((simulated.depth().visible, simulated.retried().len()), (73, 77));
}

#[tokio::test(start_paused = true)]
async fn ctrl_c_ends_the_work_after_the_letters_at_hand() {
    let simulated = with(150);
    let (raise, interrupt) = Interrupt::new();
    let policy = policy();
    let mut redrive = Redrive::new(&policy, None, NOW).unwrap();
    let tell = |_| raise.send(true).unwrap();
    let worked = work(&simulated, &mut redrive, &order(10.0), &interrupt, &tell).await.unwrap();
    assert_eq!((worked.done, worked.read.end), (1, End::Interrupted));
    assert_eq!((simulated.depth().visible, simulated.retried().len()), (149, 1));
}

#[tokio::test(start_paused = true)]
async fn a_denied_send_ends_the_work_and_leaves_everything() {
    let simulated = with(150);
    simulated.denied.set("send");
    let failure = try_redrive(&simulated, &order(50.0)).await.unwrap_err();
    let why =
        "sqs:SendMessage: refused: AccessDenied: send; docs/operate.md lists the permissions of each command";
    assert_eq!(failure, Failure::CouldNot(why.into()));
    assert_eq!((simulated.depth().visible, simulated.retried().len()), (150, 0));
}

#[tokio::test(start_paused = true)]
async fn a_denied_deletion_makes_one_second_copy_and_no_more() {
    let simulated = with(150);
    simulated.denied.set("delete");
    let worked = redrive(&simulated, &order(50.0)).await;
    let why = "sqs:DeleteMessage: refused: AccessDenied: delete; docs/operate.md lists the permissions of each command";
    assert_eq!((worked.done, worked.not_deleted), (0, Some((1, why.into()))));
    assert_eq!((simulated.depth().visible, simulated.retried().len()), (150, 1));
}

#[tokio::test(start_paused = true)]
async fn what_would_be_dead_lettered_again_is_left() {
    let simulated = with(1);
    simulated.put(&letters::malformed());
    simulated.put(&letters::unknown());
    let elsewhere = letters::event("Timeout");
    let body = elsewhere.body.replace("function:orders", "function:payments");
    simulated.put(&letters::Put { body, ..elsewhere });
    let worked = redrive(&simulated, &order(50.0)).await;
    let left = [("malformed_record".to_owned(), 2), ("target_not_allowed".to_owned(), 1)];
    assert_eq!((worked.done, worked.left), (1, BTreeMap::from(left)));
}

#[tokio::test(start_paused = true)]
async fn a_redriven_letter_is_for_the_function_it_is_retargeted_to() {
    let simulated = with(1);
    simulated.put(&letters::record("Timeout"));
    let policy = policy();
    let live = format!("{ORDERS}:live");
    let redrive = Redrive::new(&policy, Some(&live), NOW).unwrap();
    for received in simulated.dead() {
        let message = redrive.prepare(&received).unwrap();
        assert!(message.attributes.is_empty());
        let record = comeback_engine::Record { body: message.body, ..received.record.clone() };
        let event = FailedEvent::read(&record).unwrap();
        assert_eq!((event.function_arn.as_ref(), event.retry), (live.as_str(), 1));
        assert_eq!(Some(event.origin_request_id), received.letter().key);
    }
    let other = "arn:aws:lambda:eu-west-1:123456789012:function:payments";
    let expected = format!(
        "--retarget {other}: no entry of TARGET_FUNCTIONS allows it, so its events would be dead-lettered again; run \
         `comeback attach` first, and give the function's whole ARN"
    );
    assert_eq!(Redrive::new(&policy, Some(other), NOW).unwrap_err(), Failure::Refused(expected));
}
