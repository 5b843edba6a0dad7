use std::future::{Future, Pending, Ready, pending, ready};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use comeback_delivery::futures_util::stream::{self, StreamExt};
use comeback_delivery::limits::{Limits, SQS_SEND};
use comeback_delivery::{EntryAnswer, EntryError, ErrorKind, Operation, Retries, Sender, ServiceError};

/// A service that answers a call by applying the function `F` to the call's entries.
struct By<F>(F);

type Answers = Result<Vec<EntryAnswer<String>>, ServiceError>;

impl<F: Fn(Vec<usize>) -> A, A: Future<Output = Answers> + Send> Operation for By<F> {
    type Entry = usize;
    type Receipt = String;

    fn limits(&self) -> Limits {
        SQS_SEND
    }

    fn size(&self, _: &usize) -> usize {
        1
    }

    fn call(&self, entries: &[&usize]) -> impl Future<Output = Answers> + Send {
        (self.0)(entries.iter().map(|entry| **entry).collect())
    }
}

type Calls = Mutex<Vec<Vec<usize>>>;

/// A service that refuses multiples of 7, and records the calls that it receives.
fn choosy(calls: &Calls) -> By<impl Fn(Vec<usize>) -> Ready<Answers>> {
    let answer = |entry: &usize| match entry % 7 {
        0 => Err(ServiceError::new(ErrorKind::Refused, "Seven", "")),
        _ => Ok(format!("#{entry}")),
    };
    By(move |entries: Vec<usize>| {
        let answers = entries.iter().map(answer).collect();
        calls.lock().expect("no panic").push(entries);
        ready(Ok(answers))
    })
}

fn hanging() -> By<impl Fn(Vec<usize>) -> Pending<Answers>> {
    By(|_| pending())
}

#[tokio::test]
async fn stream_entries_have_one_outcome_each() {
    let calls = Calls::default();
    let sender = Sender::over(choosy(&calls), tokio::time::sleep);
    let outcomes: Vec<_> = sender.send_stream(stream::iter(100..1_100)).collect().await;
    assert_eq!(calls.lock().expect("no panic").len(), 100);
    let mut seen = vec![false; 1_000];
    for outcome in outcomes {
        let index = match outcome {
            Ok(sent) => {
                assert_eq!(sent.receipt, format!("#{}", sent.index + 100));
                sent.index
            }
            Err(left) => {
                assert_eq!(left.entry, left.index + 100);
                assert!(
                    left.entry.is_multiple_of(7) && matches!(left.cause, EntryError::Refused(_)),
                    "{left}"
                );
                left.index
            }
        };
        assert!(!std::mem::replace(&mut seen[index], true), "{index} twice");
    }
    assert!(seen.into_iter().all(|seen| seen));
}

#[tokio::test]
async fn stream_is_not_read_past_its_window() {
    let (calls, given) = (Calls::default(), AtomicUsize::new(0));
    let sender = Sender::over(choosy(&calls), tokio::time::sleep).concurrency(2);
    let endless = stream::iter(1..).inspect(|_| {
        given.fetch_add(1, Ordering::Relaxed);
    });
    let mut outcomes = std::pin::pin!(sender.send_stream(endless));
    for taken in 1..1_000 {
        outcomes.next().await.unwrap().map_or_else(|left| left.index, |sent| sent.index);
        let given = given.load(Ordering::Relaxed);
        // The limit is 40 open entries, plus 20 entries with outcomes that were not taken yet.
        assert!(given <= taken + 2 * 2 * 10 + 2 * 10, "{given} given, {taken} taken");
    }
}

#[tokio::test(start_paused = true)]
async fn trickling_entries_linger() {
    let calls = |linger| async move {
        let calls = Calls::default();
        let linger = Duration::from_millis(linger);
        let sender = Sender::over(choosy(&calls), tokio::time::sleep).linger(linger);
        let trickle = stream::iter(1..31).then(|entry| async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            entry
        });
        assert_eq!(sender.send_stream(std::pin::pin!(trickle)).count().await, 30);
        calls.lock().expect("no panic").iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(calls(0).await, [1; 30]);
    // One entry arrives every 10 ms, so five arrive within 45 ms, including the first.
    assert_eq!(calls(45).await, [5; 6]);
    assert_eq!(calls(10_000).await, [10; 3]);
}

#[tokio::test(start_paused = true)]
async fn batch_carries_entries_of_many_tasks() {
    let made: &Calls = Box::leak(Box::default());
    let sender = Sender::over(choosy(made), tokio::time::sleep).linger(Duration::from_millis(5));
    let (batcher, run) = sender.batcher();
    let running = tokio::spawn(run);
    let task = |entry| {
        let batcher = batcher.clone();
        tokio::spawn(async move { (entry, batcher.send(entry).await) })
    };
    for task in (0..200).map(task).collect::<Vec<_>>() {
        match task.await.unwrap() {
            (entry, Ok(receipt)) => assert_eq!(receipt, format!("#{entry}")),
            (entry, Err(left)) => assert!(entry == left.entry && entry.is_multiple_of(7), "{left}"),
        }
    }
    drop(batcher);
    running.await.unwrap();
    assert_eq!(made.lock().expect("no panic").len(), 20);
}

#[tokio::test(start_paused = true)]
async fn dropped_batcher_hands_everything_back() {
    let sender = Sender::over(hanging(), tokio::time::sleep).concurrency(1);
    let (batcher, run) = sender.batcher();
    let running = tokio::spawn(run);
    // Some entries are in a call, some are open behind it, some are in the channel, and some wait for room in the
    // channel.
    let task = |entry| {
        let batcher = batcher.clone();
        tokio::spawn(async move { batcher.send(entry).await })
    };
    let tasks: Vec<_> = (0..60).map(task).collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.abort();
    for (entry, task) in tasks.into_iter().enumerate() {
        let left = task.await.unwrap().unwrap_err();
        assert_eq!((left.entry, left.cause), (entry, EntryError::Interrupted(None)));
    }
    assert_eq!(batcher.send(7).await.unwrap_err().entry, 7);
}

#[tokio::test(start_paused = true)]
async fn unpolled_batcher_hands_everything_back() {
    let (batcher, run) = Sender::over(hanging(), tokio::time::sleep).batcher();
    let task = tokio::spawn(async move { batcher.send(7).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(run);
    let left = task.await.unwrap().unwrap_err();
    assert_eq!((left.cause.to_string().as_str(), left.cause), ("interrupted", EntryError::Interrupted(None)));
}

#[tokio::test(start_paused = true)]
async fn long_delivery_does_not_block_a_short_one() {
    let slow = By(|entries: Vec<usize>| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(vec![Ok(String::new()); entries.len()])
    });
    let sender = Sender::over(slow, tokio::time::sleep).concurrency(2);
    let long = sender.clone();
    let long = tokio::spawn(async move { long.send(0..10_000).await.is_ok() });
    tokio::time::sleep(Duration::from_secs(10)).await;
    let start = tokio::time::Instant::now();
    assert!(sender.send([7]).await.is_ok());
    // The short delivery must not wait until the long delivery ends, after 500 s. (The gate's lock is fair only to a
    // delivery that has already waited for a while, so the short one may wait for more than one call.)
    assert!(start.elapsed() <= Duration::from_secs(60), "{:?}", start.elapsed());
    long.abort();
}

#[tokio::test(start_paused = true)]
async fn a_hard_deadline_ends_calls_that_hang() {
    let sender = Sender::over(hanging(), tokio::time::sleep).concurrency(1).retries(Retries::none());
    let start = tokio::time::Instant::now();
    let deadline = tokio::time::sleep(Duration::from_secs(3));
    let undelivered = sender.send_until(0..15, deadline).await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::from_secs(3));
    let causes = [vec![Err(EntryError::Unanswered); 10], vec![Err(EntryError::Stopped(None)); 5]].concat();
    assert_eq!(undelivered.by_entry(), causes);
}

#[test]
fn generic_delivery_can_be_spawned() {
    fn spawned<O>(
        sender: Sender<O, fn(Duration) -> std::future::Ready<()>>,
        entries: Vec<O::Entry>,
    ) -> impl Send
    where
        O: Operation<Entry: Send + Sync, Receipt: Send + Sync> + Send + Sync + 'static,
    {
        async move { sender.send(entries).await.is_ok() }
    }
    let _ = spawned(Sender::over(hanging(), |_| ready(())), vec![1]);
}
