//! Two queues for the tests of the `dead` commands, and dead-letters of every kind. Calls can fail, and a command can be
//! killed at any call.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use aws_sdk_sqs::types::MessageAttributeValue;
use comeback_delivery::limits::{Limits, SQS_RECEIPTS, SQS_SEND};
use comeback_delivery::sqs::Message;
use comeback_delivery::{Answer, Cause, ErrorKind, Operation, Retries, Sender, ServiceError, by_entry};
use comeback_engine::{Policies, Record, Timestamp};
use comeback_timelapse::Depth;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use send_wrapper::SendWrapper;
use tokio::sync::Notify;

use crate::account::Failure;
use crate::operate::dead::queue::{Destination, HIDDEN_FOR, QueueCalls, Received};
use crate::operate::model::{Account, Queue};

/// The only function that may be re-invoked, with any qualifier.
pub(crate) const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
/// Later than all that a simulated queue holds.
pub(crate) const NOW: Timestamp = Timestamp::from_secs(2_000_000_000);

const DEAD_LETTERS: &str = "dead-letters";
const RETRIES: &str = "retries";

thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });

/// What is put into the dead-letter queue.
#[derive(Clone, Debug)]
pub(crate) struct Put {
    pub(crate) key: String,
    pub(crate) error_type: &'static str,
    pub(crate) body: String,
    /// The attribute `Reason`.
    pub(crate) reason: Option<&'static str>,
    /// Whether its event can start over.
    pub(crate) can_be_redriven: bool,
}

pub(crate) fn policies() -> Policies {
    let variables = |name: &str| (name == "TARGET_FUNCTIONS").then(|| ORDERS.to_owned());
    Policies::from_variables(variables).expect("valid policies")
}

fn key() -> String {
    NUMBER.set(NUMBER.get() + 1);
    format!("key-{}", NUMBER.get())
}

/// A dead-letter of ours.
pub(crate) fn event(error_type: &'static str) -> Put {
    let key = key();
    let body = format!(
        r#"{{"reason":"max_age","detail":"why","function_arn":"{ORDERS}:$LATEST","retries_made":7,"initial_timestamp":999990000,"dead_lettered_at":1000000000,"origin_request_id":"{key}","error":{{"type":"{error_type}","message":"m"}},"payload":{{"n":1E400,"id":"{key}"}}}}"#
    );
    Put { key, error_type, body, reason: Some("max_age"), can_be_redriven: true }
}

/// A record that SQS's own redrive took from the retry queue.
pub(crate) fn record(error_type: &'static str) -> Put {
    let key = key();
    let body = format!(
        r#"{{"timestamp":"2001-09-09T01:46:40Z","requestContext":{{"requestId":"{key}","functionArn":"{ORDERS}"}},"requestPayload":{{"id":"{key}"}},"responsePayload":{{"errorType":"{error_type}"}}}}"#
    );
    Put { key, error_type, body, reason: None, can_be_redriven: true }
}

/// A body that was not understood.
pub(crate) fn malformed() -> Put {
    let key = key();
    let body = format!(r#"{{"requestPayload":"{key}"}}"#);
    Put { key, error_type: "", body, reason: Some("malformed_record"), can_be_redriven: false }
}

/// No message of ours.
pub(crate) fn unknown() -> Put {
    let key = key();
    let body = format!("hello from {key}");
    Put { key, error_type: "", body, reason: None, can_be_redriven: false }
}

pub(crate) fn any(luck: &mut impl RngExt) -> Put {
    let error = ["Timeout", "OutOfMemory"][luck.random_range(0..2)];
    match luck.random_range(0..8) {
        0 => record(error),
        1 => malformed(),
        2 => unknown(),
        _ => event(error),
    }
}

/// Two queues, and calls to them as the command makes them: through comeback-delivery. Each call, and each of its
/// entries, fails as often as `fault_rate` says, before it has an effect or after.
pub(crate) struct Simulated {
    world: RefCell<World>,
    luck: RefCell<Xoshiro256PlusPlus>,
    pub(crate) fault_rate: Cell<f64>,
    /// Whether nothing but a denial is answered to these.
    pub(crate) denied: Cell<&'static str>,
    /// Calls that are still made before the command is killed in one.
    pub(crate) lives_for: Cell<u64>,
    /// Raised when the command dies.
    killed: Notify,
    /// Most dead-letters of one `SendMessageBatch` delivery.
    pub(crate) most_sent_at_once: Cell<usize>,
}

struct World {
    account: Account<()>,
    /// Bodies that may be there twice: the answer to their send was lost, or their dead-letter could not be deleted.
    explained: BTreeSet<String>,
    bodies: BTreeMap<String, String>,
    at_rest: bool,
}

impl Simulated {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            world: RefCell::new(World {
                account: Account::new([], [DEAD_LETTERS, RETRIES].map(|name| (name, Queue::new(HIDDEN_FOR)))),
                explained: BTreeSet::new(),
                bodies: BTreeMap::new(),
                at_rest: true,
            }),
            luck: RefCell::new(Xoshiro256PlusPlus::seed_from_u64(seed)),
            fault_rate: Cell::new(0.0),
            denied: Cell::new(""),
            lives_for: Cell::new(u64::MAX),
            killed: Notify::new(),
            most_sent_at_once: Cell::new(0),
        }
    }

    /// Queues with these dead-letters, without faults.
    pub(crate) fn with(dead_letters: impl IntoIterator<Item = Put>) -> Self {
        let simulated = Self::new(7);
        dead_letters.into_iter().for_each(|dead_letter| drop(simulated.put(&dead_letter)));
        simulated
    }

    pub(crate) fn put(&self, dead_letter: &Put) -> String {
        let reason = dead_letter.reason.map(|reason| {
            let value = MessageAttributeValue::builder().data_type("String").string_value(reason);
            ("Reason".to_owned(), value.build().expect("it has a type"))
        });
        let account = &mut self.world.borrow_mut().account;
        account.queue(DEAD_LETTERS).send(&dead_letter.body, reason.into_iter().collect())
    }

    /// Runs a command that is killed after this number of calls; `None` if it was.
    pub(crate) async fn killed_after<T>(&self, calls: u64, command: impl Future<Output = T>) -> Option<T> {
        self.lives_for.set(calls);
        let ended = tokio::select! {
            ended = command => Some(ended),
            () = self.killed.notified() => None,
        };
        self.lives_for.set(u64::MAX);
        ended
    }

    /// Waits until everything that is hidden has come back.
    pub(crate) fn all_come_back(&self) {
        let world = &mut *self.world.borrow_mut();
        let dead = world.account.queue(DEAD_LETTERS);
        while dead.depth().in_flight > 0 {
            assert!(dead.wait(), "a dead-letter that never comes back");
        }
    }

    pub(crate) fn depth(&self) -> Depth {
        self.world.borrow_mut().account.queue(DEAD_LETTERS).depth()
    }

    /// What there is in the dead-letter queue; everything must be visible.
    pub(crate) fn dead(&self) -> Vec<Received> {
        all(self.world.borrow_mut().account.queue(DEAD_LETTERS))
    }

    /// The message ids of the dead-letter queue; everything must be visible.
    pub(crate) fn ids(&self) -> HashSet<String> {
        self.dead().into_iter().map(|received| received.record.message_id).collect()
    }

    /// What there is in the retry queue.
    pub(crate) fn retried(&self) -> Vec<Record> {
        let messages = all(self.world.borrow_mut().account.queue(RETRIES));
        messages.into_iter().map(|received| received.record).collect()
    }

    /// The bodies of which a fault may have made a second copy.
    pub(crate) fn explained(&self) -> BTreeSet<String> {
        self.world.borrow().explained.clone()
    }

    /// The command dies here if its time has come. Others are polled first: calls that are under way at once are.
    async fn live(&self) {
        tokio::task::yield_now().await;
        match self.lives_for.get().checked_sub(1) {
            Some(left) => self.lives_for.set(left),
            None => {
                self.killed.notify_one();
                std::future::pending::<()>().await;
            }
        }
    }

    fn strikes(&self) -> bool {
        self.luck.borrow_mut().random_bool(self.fault_rate.get())
    }

    /// One call with these entries. `effect` does the work for an entry, and gives the body it was about.
    async fn call<E>(
        &self,
        name: &'static str,
        entries: &[&E],
        effect: impl Fn(&mut World, &E) -> String,
    ) -> Result<Vec<Answer>, ServiceError> {
        self.live().await;
        if self.denied.get() == name {
            return Err(ServiceError::new(ErrorKind::Denied, "AccessDenied", name));
        }
        if self.strikes() {
            return Err(ServiceError::new(ErrorKind::Throttled, "RequestThrottled", ""));
        }
        let (mut answers, mut bodies) = (Vec::new(), Vec::new());
        for entry in entries {
            if self.strikes() {
                let refused = ServiceError::new(ErrorKind::Transient, "InternalError", "");
                answers.push(Err(refused));
                continue;
            }
            let world = &mut *self.world.borrow_mut();
            world.at_rest = true;
            bodies.push(effect(world, entry));
            answers.push(Ok(()));
        }
        self.live().await;
        if self.strikes() {
            self.world.borrow_mut().explained.extend(bodies);
            return Err(ServiceError::no_answer());
        }
        Ok(answers)
    }

    async fn deliver<E, F: Fn(&mut World, &E) -> String>(
        &self,
        call: Call<'_, E, F>,
        retries: Retries,
        entries: Vec<E>,
    ) -> Vec<Result<(), Cause>> {
        by_entry(Sender::over(call, tokio::time::sleep).retries(retries).send(entries).await)
    }
}

/// A batch call: its name, its limits, and what it does to the queues for each entry. Gives the body it was about.
struct Call<'s, E, F> {
    simulated: &'s Simulated,
    name: &'static str,
    limits: Limits,
    size: fn(&E) -> usize,
    effect: F,
}

impl<E, F: Fn(&mut World, &E) -> String> Operation for Call<'_, E, F> {
    type Entry = E;
    type Receipt = ();

    fn limits(&self) -> Limits {
        self.limits
    }

    fn size(&self, entry: &E) -> usize {
        (self.size)(entry)
    }

    fn call(&self, entries: &[&E]) -> impl Future<Output = Result<Vec<Answer>, ServiceError>> + Send {
        SendWrapper::new(self.simulated.call(self.name, entries, &self.effect))
    }
}

/// Looks at every message of a queue, and leaves it visible.
fn all(queue: &mut Queue) -> Vec<Received> {
    let mut messages = Vec::new();
    loop {
        let some = queue.receive(10);
        if some.is_empty() {
            break;
        }
        messages.extend(some.into_iter().map(|(record, attributes)| Received { record, attributes }));
    }
    for message in &messages {
        assert!(queue.change_visibility(&message.record.receipt_handle, Duration::ZERO), "received just now");
    }
    messages
}

impl QueueCalls for Simulated {
    async fn receive(&self, most: usize) -> Result<Vec<Received>, Failure> {
        self.live().await;
        if self.denied.get() == "receive" {
            return Err(Failure::CouldNot("sqs:ReceiveMessage: AccessDenied".into()));
        }
        let received = {
            let world = &mut *self.world.borrow_mut();
            // Between two rounds, now and then, so much time passes that hidden dead-letters come back.
            let passes = self.luck.borrow_mut().random_bool(0.05);
            let dead = world.account.queue(DEAD_LETTERS);
            if std::mem::take(&mut world.at_rest) && passes && dead.depth().in_flight > 0 {
                dead.wait();
            }
            dead.receive(most)
        };
        self.live().await;
        if self.strikes() {
            // The answer is lost, the dead-letters are hidden, and the SDK's next try found none.
            return Ok(Vec::new());
        }
        let world = &mut *self.world.borrow_mut();
        let received = received.into_iter().map(|(record, attributes)| {
            world.bodies.insert(record.receipt_handle.clone(), record.body.clone());
            Received { record, attributes }
        });
        Ok(received.collect())
    }

    async fn send(&self, to: Destination, messages: Vec<Message>) -> Vec<Result<(), Cause>> {
        self.most_sent_at_once.set(self.most_sent_at_once.get().max(messages.len()));
        let effect = |world: &mut World, message: &Message| {
            let queue = match to {
                Destination::RetryQueue => RETRIES,
                Destination::DeadLetterQueue => DEAD_LETTERS,
            };
            world.account.queue(queue).send(&message.body, message.attributes.clone());
            message.body.clone()
        };
        let size = |message: &Message| message.body.len();
        let call = Call { simulated: self, name: "send", limits: SQS_SEND, size, effect };
        self.deliver(call, Retries::none(), messages).await
    }

    async fn delete(&self, receipt_handles: Vec<String>) -> Vec<Result<(), Cause>> {
        let effect = |world: &mut World, handle: &String| {
            world.account.queue(DEAD_LETTERS).delete(handle);
            String::new()
        };
        let call = Call { simulated: self, name: "delete", limits: SQS_RECEIPTS, size: |_| 0, effect };
        let answers = self.deliver(call, Retries::linear(), receipt_handles.clone()).await;
        let world = &mut *self.world.borrow_mut();
        for (handle, answer) in receipt_handles.iter().zip(&answers) {
            if answer.is_err() {
                world.explained.insert(world.bodies[handle].clone());
            }
        }
        answers
    }

    async fn give_back(&self, receipt_handles: Vec<String>) -> Vec<Result<(), Cause>> {
        // SQS refuses a handle that a later receive made stale, and that of a visible dead-letter.
        let effect = |world: &mut World, handle: &String| {
            world.account.queue(DEAD_LETTERS).change_visibility(handle, Duration::ZERO);
            String::new()
        };
        let call = Call { simulated: self, name: "give_back", limits: SQS_RECEIPTS, size: |_| 0, effect };
        self.deliver(call, Retries::linear(), receipt_handles).await
    }
}
