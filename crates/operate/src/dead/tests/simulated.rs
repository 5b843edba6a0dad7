mod calls;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_sqs::types::MessageAttributeValue;
use comeback_delivery::sqs::Message;
use comeback_delivery::{Answer, Cause, ErrorKind, Operation, Retries, Sender, ServiceError, by_entry};
use comeback_engine::Record;
use comeback_timelapse::{Depth, QueueUnderContract};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tokio::sync::Notify;

use calls::{Delete, GiveBack, Send};

use super::letters::Put;
use crate::Failure;
use crate::dead::queue::{Destination, HIDDEN_FOR, LetterQueue, Received};

type Attributes = Vec<(String, MessageAttributeValue)>;

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
    /// Most letters of one `SendMessageBatch` delivery.
    pub(crate) most_sent_at_once: Cell<usize>,
}

struct World {
    dead: QueueUnderContract,
    retry: QueueUnderContract,
    /// Of the messages of the dead-letter queue, by id; the simulated queue carries none of these.
    attributes: BTreeMap<String, Attributes>,
    /// Bodies whose answer was lost, or whose letter could not be deleted: these may be there twice.
    explained: BTreeSet<String>,
    bodies: BTreeMap<String, String>,
    at_rest: bool,
}

impl Simulated {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            world: RefCell::new(World {
                dead: QueueUnderContract::new(HIDDEN_FOR),
                retry: QueueUnderContract::new(HIDDEN_FOR),
                attributes: BTreeMap::new(),
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

    pub(crate) fn put(&self, letter: &Put) -> String {
        let reason = letter.reason.map(|reason| {
            let value = MessageAttributeValue::builder().data_type("String").string_value(reason);
            ("Reason".to_owned(), value.build().expect("it has a type"))
        });
        self.put_message(&letter.body, reason.into_iter().collect())
    }

    fn put_message(&self, body: &str, attributes: Attributes) -> String {
        let world = &mut *self.world.borrow_mut();
        let id = world.dead.send(body);
        world.attributes.insert(id.clone(), attributes);
        id
    }

    /// Lives for so many calls more. `None` if it is killed.
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
        let dead = &mut self.world.borrow_mut().dead;
        while dead.depth().in_flight > 0 {
            assert!(dead.wait(), "a letter that never comes back");
        }
    }

    pub(crate) fn depth(&self) -> Depth {
        self.world.borrow_mut().dead.depth()
    }

    /// What there is in the dead-letter queue; everything must be visible.
    pub(crate) fn dead(&self) -> Vec<Received> {
        let world = &mut *self.world.borrow_mut();
        let records = all(&mut world.dead);
        let attributes = &world.attributes;
        let with_attributes = |record: Record| {
            let attributes = attributes[&record.message_id].clone();
            Received { record, attributes }
        };
        records.into_iter().map(with_attributes).collect()
    }

    /// What there is in the retry queue.
    pub(crate) fn retried(&self) -> Vec<Record> {
        all(&mut self.world.borrow_mut().retry)
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

    /// One call with these entries. `effect` is what it does for each, and `body` whose it is.
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

    async fn deliver<O: Operation<Receipt = ()>>(
        &self,
        operation: O,
        retries: Retries,
        entries: Vec<O::Entry>,
    ) -> Vec<Result<(), Cause>> {
        by_entry(Sender::over(operation, tokio::time::sleep).retries(retries).send(entries).await)
    }
}

/// Looks at every message of a queue, and leaves it visible.
fn all(queue: &mut QueueUnderContract) -> Vec<Record> {
    let mut records = Vec::new();
    loop {
        let some = queue.receive(10);
        if some.is_empty() {
            break;
        }
        records.extend(some);
    }
    for record in &records {
        queue.change_visibility(&record.receipt_handle, Duration::ZERO).expect("it was received just now");
    }
    records
}

impl LetterQueue for Simulated {
    async fn receive(&self, most: usize) -> Result<Vec<Received>, Failure> {
        self.live().await;
        if self.denied.get() == "receive" {
            return Err(Failure::CouldNot("sqs:ReceiveMessage: AccessDenied".into()));
        }
        let records = {
            let world = &mut *self.world.borrow_mut();
            // Between two rounds, now and then, so much time passes that hidden letters come back.
            let passes = self.luck.borrow_mut().random_bool(0.05);
            if std::mem::take(&mut world.at_rest) && passes && world.dead.depth().in_flight > 0 {
                world.dead.wait();
            }
            world.dead.receive(most)
        };
        self.live().await;
        if self.strikes() {
            // The answer is lost, the letters are hidden, and the SDK's next try found none.
            return Ok(Vec::new());
        }
        let world = &mut *self.world.borrow_mut();
        let received = records.into_iter().map(|record| {
            world.bodies.insert(record.receipt_handle.clone(), record.body.clone());
            let attributes = world.attributes[&record.message_id].clone();
            Received { record, attributes }
        });
        Ok(received.collect())
    }

    async fn send(&self, to: Destination, messages: Vec<Message>) -> Vec<Result<(), Cause>> {
        self.most_sent_at_once.set(self.most_sent_at_once.get().max(messages.len()));
        self.deliver(Send(self, to), Retries::none(), messages).await
    }

    async fn delete(&self, receipt_handles: Vec<String>) -> Vec<Result<(), Cause>> {
        let answers = self.deliver(Delete(self), Retries::linear(), receipt_handles.clone()).await;
        let world = &mut *self.world.borrow_mut();
        for (handle, answer) in receipt_handles.iter().zip(&answers) {
            if answer.is_err() {
                world.explained.insert(world.bodies[handle].clone());
            }
        }
        answers
    }

    async fn give_back(&self, receipt_handles: Vec<String>) -> Vec<Result<(), Cause>> {
        self.deliver(GiveBack(self), Retries::linear(), receipt_handles).await
    }
}
