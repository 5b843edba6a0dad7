//! `comeback dead redrive`: send letters back to the retry queue, where their events start anew.

use std::io::Write as _;

use clap::Args;
use comeback_delivery::Cause;
use comeback_delivery::sqs::Message;
use comeback_engine::{Action, Pauses, Policy, Reason, Record, Timestamp, decide};
use serde_json::json;

use crate::clock;
use crate::failure;
use crate::operate::account::Failure;
use crate::operate::dead::filter::Filter;
use crate::operate::dead::move_task;
use crate::operate::dead::plan::{Bar, DeadLetters, Plan};
use crate::operate::dead::queue::{CallFailure, Destination, LetterQueue, Received};
use crate::operate::dead::survey::Survey;
use crate::operate::dead::work::{LetterAction, Pace};
use crate::operate::session::{Common, Session, confirm};
use crate::text::numbers::{counted, read_rate};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback dead redrive --error 'Timeout*' --dry-run
  comeback dead redrive --target orders --rate 10/s --limit 100
  comeback dead redrive --target orders --retarget arn:aws:lambda:eu-west-1:123456789012:function:orders-v2
  comeback dead redrive --all --server";

#[derive(Debug, Args)]
pub(crate) struct RedriveArguments {
    #[command(flatten)]
    filter: Filter,
    /// Every letter
    #[arg(long, conflicts_with = "Filter", required_unless_present = "Filter")]
    all: bool,
    /// Letters a second at most
    #[arg(long, value_name = "RATE", default_value = "50/s", value_parser = read_rate)]
    rate: f64,
    /// Letters at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Invoke this function instead of the one that a letter names; it must be on TARGET_FUNCTIONS
    #[arg(long, value_name = "ARN")]
    retarget: Option<String>,
    /// Show the plan and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Let SQS move the whole queue by itself, up to 500 letters a second. It goes on if this command is killed, and
    /// Ctrl-C cancels it. It moves what cannot be retried too: the handler dead-letters that again
    #[arg(long, requires = "all", conflicts_with_all = ["Filter", "limit", "retarget"])]
    server: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &RedriveArguments, session: Session) -> Result<(), failure::Failure> {
    let letters = DeadLetters::find(&session).await?;
    if arguments.server {
        return move_task::run(arguments.rate, arguments.dry_run, &letters, &session).await;
    }
    let now = clock::now();
    let mut redrive = Redrive::new(&letters.policy, arguments.retarget.as_deref(), now)?;
    let bar = letters.announce(&session).await?;
    let judge = |received: &_| redrive.prepare(received).map(drop);
    let progress = |progress| bar.show(progress);
    let reader = letters.reader(&session, &progress);
    let (survey, read) = Survey::read(&reader, &arguments.filter, &judge, 0, now).await?;
    drop(bar);
    let pace = Pace::per_second(arguments.rate);
    let plan = Plan { verb: "redrive", survey, read, pace, limit: arguments.limit, now };
    plan.check()?;
    let mut out = anstream::stdout();
    let is_json = session.common.json;
    if !is_json {
        plan.print(&mut out)?;
    }
    let not_allowed = &plan.survey.not_allowed;
    let functions = not_allowed.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    if !not_allowed.is_empty() && !arguments.dry_run {
        if is_json {
            writeln!(out, "{}", json!({"plan": plan.json(), "not_allowed": not_allowed, "redriven": 0}))?;
        }
        return Err(Failure::CouldNot(format!(
            "nothing was sent: TARGET_FUNCTIONS does not allow {functions}, so these letters would be dead-lettered again; \
             run `comeback attach`, choose others with --target, or give another function with --retarget"
        ))
        .into());
    }
    let Some(work) = plan.work(&arguments.filter).filter(|_| !arguments.dry_run) else {
        if is_json {
            let report = json!({
                "plan": plan.json(), "dry_run": arguments.dry_run, "not_allowed": not_allowed, "redriven": 0,
            });
            writeln!(out, "{report}")?;
        } else if !not_allowed.is_empty() {
            writeln!(out, "not allowed by TARGET_FUNCTIONS, so that nothing would be sent: {functions}")?;
        }
        return Ok(plan.read.result("nothing was changed")?);
    };
    let (count, queue) = (plan.letters(), letters.deployment.retry_queue.name());
    confirm(&format!("send {} to {queue}?", counted(count, "letter", "letters")), &session).await?;
    let bar = Bar::new(count);
    redrive.now = work.until;
    let progress = |progress| bar.show(progress);
    let (done, read) = work.run(&letters.reader(&session, &progress), &mut redrive).await?;
    drop(bar);
    let summary = done.summary("redrove");
    if is_json {
        let outcome = done.json(&read);
        let report = json!({
            "plan": plan.json(), "dry_run": false, "redriven": done.letters, "outcome": outcome,
        });
        writeln!(out, "{report}")?;
    } else {
        writeln!(out, "{summary}")?;
    }
    Ok(plan.result(&done, &read, &summary)?)
}

/// Sends letters to the retry queue.
#[derive(Debug)]
pub(crate) struct Redrive<'a> {
    policy: &'a Policy,
    retarget: Option<&'a str>,
    now: Timestamp,
}

impl<'a> Redrive<'a> {
    /// For the functions that the letters name, or for `retarget`.
    pub(crate) fn new(
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

impl LetterAction for Redrive<'_> {
    type Prepared = Message;

    /// The message has none of the letter's attributes: `Comeback` would make it an old message again.
    fn prepare(&self, received: &Received) -> Result<Message, Reason> {
        let body = received.letter().redriven(self.retarget)?;
        let body = rehearse(body, self.policy, self.now)?;
        Ok(Message { trace_header: received.record.trace_header.clone(), ..Message::new(body) })
    }

    async fn perform<Q: LetterQueue>(
        &mut self,
        queue: &Q,
        messages: Vec<Message>,
    ) -> Vec<Result<(), CallFailure>> {
        let answers = queue.send(Destination::RetryQueue, messages).await;
        answers.into_iter().map(|answer| answer.map_err(|cause| not_sent(&cause))).collect()
    }
}

fn not_sent(cause: &Cause) -> CallFailure {
    let failure = CallFailure::of("sqs:SendMessage", cause);
    if !cause.error().is_some_and(|error| error.code.is_empty()) {
        return failure;
    }
    let why = format!("no answer, so it may be on the retry queue too ({})", failure.why);
    CallFailure { why, ..failure }
}

/// Asks the handler's own rules whether the event would be given up, on its first receive or when its first retry is due.
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
    // A pause holds events, and gives none up.
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

#[cfg(test)]
mod tests {
    use comeback_engine::FailedEvent;

    use super::*;
    use crate::operate::dead::simulated::{NOW, ORDERS, Simulated, event, policy, record};

    #[test]
    fn a_redriven_letter_is_for_the_function_it_is_retargeted_to() {
        let policy = policy();
        let live = format!("{ORDERS}:live");
        let redrive = Redrive::new(&policy, Some(&live), NOW).unwrap();
        for received in Simulated::with([event("Timeout"), record("Timeout")]).dead() {
            let message = redrive.prepare(&received).unwrap();
            assert!(message.attributes.is_empty());
            let record = Record { body: message.body, ..received.record.clone() };
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
}
