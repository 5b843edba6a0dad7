use comeback_delivery::Cause;
use comeback_delivery::sqs::Message;
use comeback_engine::{Action, Pauses, Policy, Reason, Record, Timestamp, decide};

use super::deed::{Deed, Trouble};
use super::queue::{Destination, LetterQueue, Received};
use crate::Failure;

/// Sending letters to the retry queue, where their events start anew.
#[derive(Debug)]
pub(super) struct Redrive<'a> {
    policy: &'a Policy,
    retarget: Option<&'a str>,
    now: Timestamp,
}

impl<'a> Redrive<'a> {
    /// For the functions that the letters name, or for another.
    pub(super) fn new(
        policy: &'a Policy,
        retarget: Option<&'a str>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        match retarget.filter(|arn| !policy.allows(arn)) {
            Some(arn) => Err(Failure::Refused(format!(
                "--retarget {arn}: no entry of TARGET_FUNCTIONS allows it, so its events would be dead-lettered again; \
                 run `comeback attach` first, and give the function's whole ARN"
            ))),
            None => Ok(Self { policy, retarget, now }),
        }
    }
}

impl Deed for Redrive<'_> {
    type Prepared = Message;

    /// Its message has none of the letter's attributes: `Comeback` would make it an old message again.
    fn prepare(&self, received: &Received) -> Result<Message, Reason> {
        let body = received.letter().redriven(self.retarget)?;
        let body = rehearse(body, self.policy, self.now)?;
        Ok(Message { trace_header: received.record.trace_header.clone(), ..Message::new(body) })
    }

    async fn perform<Q: LetterQueue>(
        &mut self,
        queue: &Q,
        messages: Vec<Message>,
    ) -> Vec<Result<(), Trouble>> {
        let answers = queue.send(Destination::RetryQueue, messages).await;
        answers.into_iter().map(|answer| answer.map_err(|cause| not_sent(&cause))).collect()
    }
}

fn not_sent(cause: &Cause) -> Trouble {
    let trouble = Trouble::of("sqs:SendMessage", cause);
    if !cause.error().is_some_and(|error| error.code.is_empty()) {
        return trouble;
    }
    let why = format!("no answer, so it may be on the retry queue too ({})", trouble.why);
    Trouble { why, ..trouble }
}

/// Asks the handler's own rules what becomes of the event: on its first receive, and when its first retry is due.
fn rehearse(body: String, policy: &Policy, now: Timestamp) -> Result<String, Reason> {
    let mut record = Record {
        message_id: "rehearsed".into(),
        receipt_handle: String::new(),
        body,
        receive_count: 1,
        sent: now,
        first_receive: now,
        moved: None,
        trace_header: None,
    };
    // A pause holds an event, and gives none up.
    let pauses = Pauses::default();
    let due = match decide(&record, policy, &pauses, now) {
        Action::Defer { due, .. } | Action::Hold { due, .. } | Action::Reinvoke { due, .. } => due,
        Action::DeadLetter { reason, .. } => return Err(reason),
    };
    record.receive_count = 2;
    match decide(&record, policy, &pauses, due) {
        Action::DeadLetter { reason, .. } => Err(reason),
        Action::Defer { .. } | Action::Hold { .. } | Action::Reinvoke { .. } => Ok(record.body),
    }
}
