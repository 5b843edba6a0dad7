//! A stand-in for the AWS account that records the handler's calls, and lets a test make any of them fail.

pub(crate) mod queue;

use std::cell::{Cell, OnceCell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use comeback_engine::{
    Account, Attribute, BatchEvent, BatchReport, CallFailure, DeadLetter, DeadLettered, Environment,
    HideUpTo, InFlightCount, InvokeFailure, Move, MoveFailure, Policies, Policy, Record, Timestamp,
    VisibilityChange,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Batch {
    Works,
    Fails,
    FailsFor(usize),
    AnswersOnly(usize),
    AnswersTooMuch,
    /// SQS performs the call, but its response is lost.
    AnswerLost,
    Panics,
    PanicsBeforeItsFuture,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invoke {
    Works,
    Later,
    /// Lambda accepts the event, but the response is lost.
    AnswerLost,
    NotFound,
    TooLarge,
    Refused,
    Panics,
    PanicsBeforeItsFuture,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Receipt handles, each with its message's new visibility timeout in seconds.
    Hide(Vec<(String, u64)>),
    /// The function's ARN and the payload.
    Invoke(String, String),
    Send(Vec<DeadLetter>),
    SendAgain(Vec<Copy>),
    Count,
    ReadPauses,
}

/// A copy that was sent to the retry queue to replace a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    /// The id of the original message, which this copy replaces.
    pub(crate) message_id: String,
    pub(crate) body: String,
    pub(crate) attribute: String,
    pub(crate) delay: u64,
    pub(crate) trace_header: Option<String>,
    /// The sender's message attributes.
    pub(crate) attributes: Vec<Attribute>,
}

/// A simulated AWS account with planned results, which records the calls to it.
pub(crate) struct World<'w> {
    pub(crate) hide: Box<dyn Fn() -> Batch + 'w>,
    pub(crate) invoke: Box<dyn Fn() -> Invoke + 'w>,
    pub(crate) send: Box<dyn Fn() -> Batch + 'w>,
    pub(crate) send_again: Box<dyn Fn() -> Batch + 'w>,
    /// Returns the number of messages in flight and the time of the count; `None` if the count fails.
    pub(crate) count: Box<dyn Fn() -> Option<(u64, Timestamp)> + 'w>,
    pub(crate) read_pauses: Box<dyn Fn() -> Result<Option<String>, CallFailure> + 'w>,
    pub(crate) calls: RefCell<Vec<Call>>,
    /// The receipt handle of each hidden message, and its visibility timeout in seconds.
    pub(crate) hidden: RefCell<Vec<(String, u64)>>,
    /// The payloads of the invocations that Lambda accepted.
    pub(crate) invoked: RefCell<Vec<String>>,
    pub(crate) traces: RefCell<Vec<Option<String>>>,
    pub(crate) sent: RefCell<Vec<DeadLetter>>,
    pub(crate) copies: RefCell<Vec<Copy>>,
    /// The number of polls for which an `Invoke` call stays pending.
    pub(crate) invoke_steps: usize,
    /// The number of pending calls that invoke a function, read the pauses or count messages.
    pub(crate) in_flight: Cell<usize>,
    pub(crate) most_in_flight: Cell<usize>,
    /// For each batch call: true if the handler's deadline had passed when the call began.
    pub(crate) passed: RefCell<Vec<bool>>,
    pub(crate) batches: Batches,
}

/// The batches that have been handled, kept because their reports borrow from them.
#[derive(Default)]
pub(crate) struct Batches(OnceCell<Box<(BatchEvent, Batches)>>);

impl Batches {
    fn keep(&self, records: &[Record]) -> &BatchEvent {
        let mut last = self;
        while let Some(next) = last.0.get() {
            last = &next.1;
        }
        let batch = BatchEvent { records: records.to_vec(), ..BatchEvent::default() };
        &last.0.get_or_init(|| Box::new((batch, Self::default()))).0
    }
}

impl Default for World<'_> {
    fn default() -> Self {
        Self {
            hide: Box::new(|| Batch::Works),
            invoke: Box::new(|| Invoke::Works),
            send: Box::new(|| Batch::Works),
            send_again: Box::new(|| Batch::Works),
            count: Box::new(|| Some((0, Timestamp::from_secs(0)))),
            read_pauses: Box::new(|| Ok(None)),
            calls: RefCell::default(),
            hidden: RefCell::default(),
            invoked: RefCell::default(),
            traces: RefCell::default(),
            sent: RefCell::default(),
            copies: RefCell::default(),
            invoke_steps: 1,
            in_flight: Cell::new(0),
            most_in_flight: Cell::new(0),
            passed: RefCell::default(),
            batches: Batches::default(),
        }
    }
}

impl World<'_> {
    pub(crate) fn handle(&self, records: &[Record], policy: &Policy, now: Timestamp) -> BatchReport<'_> {
        self.handle_until(records, policy, now, usize::MAX)
    }

    /// Handles a batch whose deadline passes once `calls` calls have been started.
    pub(crate) fn handle_until(
        &self,
        records: &[Record],
        policy: &Policy,
        now: Timestamp,
        calls: usize,
    ) -> BatchReport<'_> {
        self.handle_in(&mut Environment::new(Policies::from(policy.clone())), records, now, calls)
    }

    pub(crate) fn handle_in(
        &self,
        environment: &mut Environment,
        records: &[Record],
        now: Timestamp,
        calls: usize,
    ) -> BatchReport<'_> {
        let past_deadline = || self.calls.borrow().len() >= calls;
        run(environment.handle(self.batches.keep(records), now, &past_deadline, self))
    }

    fn start(&self, call: Call) {
        self.calls.borrow_mut().push(call);
    }

    fn start_batch(&self, call: Call, past_deadline: &dyn Fn() -> bool, plan: &dyn Fn() -> Batch) -> Batch {
        self.start(call);
        self.passed.borrow_mut().push(past_deadline());
        let behaviour = plan();
        panic_if(behaviour == Batch::PanicsBeforeItsFuture);
        behaviour
    }

    async fn answer_batch<E>(
        &self,
        behaviour: Batch,
        entries: Vec<E>,
        queue: &RefCell<Vec<E>>,
    ) -> Vec<Result<(), CallFailure>> {
        step().await;
        let answers = answers(behaviour, entries.len());
        let is_accepted = |answer: &Result<(), _>| answer.is_ok() || behaviour == Batch::AnswerLost;
        let accepted = entries.into_iter().zip(&answers).filter(|(_, answer)| is_accepted(answer));
        queue.borrow_mut().extend(accepted.map(|(entry, _)| entry));
        answers
    }

    async fn answer_comes(&self, steps: usize) {
        self.in_flight.update(|count| count + 1);
        self.most_in_flight.update(|most| most.max(self.in_flight.get()));
        for _ in 0..steps {
            step().await;
        }
        self.in_flight.update(|count| count - 1);
    }
}

impl Account for World<'_> {
    fn change_visibility(
        &self,
        entries: &[VisibilityChange<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> impl Future<Output = Vec<Result<(), CallFailure>>> {
        let entry = |entry: &VisibilityChange<'_>| {
            (entry.record.receipt_handle.clone(), entry.visibility_timeout.as_secs())
        };
        let entries: Vec<_> = entries.iter().map(entry).collect();
        let behaviour = self.start_batch(Call::Hide(entries.clone()), past_deadline, &self.hide);
        async move { self.answer_batch(behaviour, entries, &self.hidden).await }
    }

    fn send_dead_letters(
        &self,
        dead_lettered: &[DeadLettered<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> impl Future<Output = Vec<Result<(), CallFailure>>> {
        let dead_letters: Vec<DeadLetter> = dead_lettered.iter().map(|it| it.dead_letter.clone()).collect();
        let behaviour = self.start_batch(Call::Send(dead_letters.clone()), past_deadline, &self.send);
        async move { self.answer_batch(behaviour, dead_letters, &self.sent).await }
    }

    fn send_again(
        &self,
        moves: &[Move<'_>],
        past_deadline: &dyn Fn() -> bool,
    ) -> impl Future<Output = Vec<Result<(), MoveFailure>>> {
        let copies: Vec<Copy> = moves.iter().map(Copy::of).collect();
        let behaviour = self.start_batch(Call::SendAgain(copies.clone()), past_deadline, &self.send_again);
        async move {
            let failed = |failure: CallFailure| match behaviour {
                Batch::AnswerLost => MoveFailure::Unanswered(failure.cause),
                _ => MoveFailure::NotSent(failure),
            };
            let answers = self.answer_batch(behaviour, copies, &self.copies).await;
            answers.into_iter().map(|answer| answer.map_err(failed)).collect()
        }
    }

    async fn read_pauses(&self) -> Result<Option<String>, CallFailure> {
        self.start(Call::ReadPauses);
        self.answer_comes(1).await;
        (self.read_pauses)()
    }

    async fn count_in_flight(&self) -> Result<InFlightCount, CallFailure> {
        self.start(Call::Count);
        self.answer_comes(1).await;
        (self.count)().map(|(in_flight, at)| InFlightCount { in_flight, at }).ok_or_else(failure)
    }

    fn invoke(
        &self,
        record: &Record,
        function_arn: &str,
        payload: String,
    ) -> impl Future<Output = Result<Option<String>, InvokeFailure>> {
        let trace = record.trace().map(ToOwned::to_owned);
        self.traces.borrow_mut().push(trace);
        self.start(Call::Invoke(function_arn.into(), payload.clone()));
        let behaviour = (self.invoke)();
        panic_if(behaviour == Invoke::PanicsBeforeItsFuture);
        async move {
            self.answer_comes(self.invoke_steps).await;
            match behaviour {
                Invoke::Works => {
                    let mut invoked = self.invoked.borrow_mut();
                    invoked.push(payload);
                    Ok(Some(format!("i-{}", invoked.len())))
                }
                Invoke::Later => Err(InvokeFailure::Later(failure())),
                Invoke::AnswerLost => {
                    self.invoked.borrow_mut().push(payload);
                    Err(InvokeFailure::Unanswered("no answer".into()))
                }
                Invoke::NotFound => Err(InvokeFailure::NotFound("gone".into())),
                Invoke::TooLarge => Err(InvokeFailure::TooLarge("too much".into())),
                Invoke::Refused => Err(InvokeFailure::Refused("never".into())),
                Invoke::Panics | Invoke::PanicsBeforeItsFuture => quiet_panic(),
            }
        }
    }
}

impl Copy {
    fn of(copy: &Move<'_>) -> Self {
        let Move { record, attribute, delay } = copy;
        assert_eq!(delay.subsec_nanos(), 0, "SQS counts whole seconds");
        Self {
            message_id: record.message_id.clone(),
            body: record.body.clone(),
            attribute: attribute.clone(),
            delay: delay.as_secs(),
            trace_header: record.trace_header.clone(),
            attributes: copy.attributes().split_off(1),
        }
    }

    pub(crate) fn received(&self, sent: Timestamp) -> Record {
        let mut record = Record {
            message_id: format!("copy of {}", self.message_id),
            receipt_handle: format!("h of {}", self.message_id),
            body: self.body.clone(),
            receive_count: 1,
            sent,
            first_receive: sent.saturating_add(std::time::Duration::from_secs(self.delay)),
            moved: None,
            trace_header: self.trace_header.clone(),
            attributes: self.attributes.clone(),
        };
        record.restore(&self.attribute).expect("it was just written");
        record
    }
}

/// Creates an [`Environment`] that may hide `left` more messages.
pub(crate) fn with_room(policy: &Policy, left: u64) -> Environment {
    const COUNTED: Timestamp = Timestamp::from_secs(0);
    let mut environment = Environment::new(Policies::from(policy.clone()));
    let HideUpTo::UpTo(most) = policy.settings().hide_up_to else { panic!("a number is needed") };
    let in_flight = most - left * 2 * policy.settings().maximum_concurrency;
    let world = World { count: Box::new(move || Some((in_flight, COUNTED))), ..World::default() };
    world.handle_in(&mut environment, &[], COUNTED, usize::MAX);
    environment
}

pub(crate) fn failure() -> CallFailure {
    CallFailure { cause: "throttled".into(), remedy: Some("wait".into()) }
}

fn answers(behaviour: Batch, entries: usize) -> Vec<Result<(), CallFailure>> {
    match behaviour {
        Batch::Works => vec![Ok(()); entries],
        Batch::Fails | Batch::AnswerLost => vec![Err(failure()); entries],
        Batch::FailsFor(entry) => {
            (0..entries).map(|index| if index == entry { Err(failure()) } else { Ok(()) }).collect()
        }
        Batch::AnswersOnly(answers) => vec![Ok(()); answers.min(entries)],
        Batch::AnswersTooMuch => vec![Ok(()); entries + 3],
        Batch::Panics | Batch::PanicsBeforeItsFuture => quiet_panic(),
    }
}

fn panic_if(condition: bool) {
    if condition {
        quiet_panic()
    }
}

/// Panics without printing a message.
fn quiet_panic() -> ! {
    resume_unwind(Box::new("planned"))
}

/// A future that is pending once, then ready.
async fn step() {
    let mut stepped = false;
    poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut stepped, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Runs a future that waits only in [`step`].
pub(crate) fn run<O>(future: impl Future<Output = O>) -> O {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..10_000 {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
    panic!("the future never ends");
}
