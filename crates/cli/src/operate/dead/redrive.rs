//! `comeback dead redrive`: send dead-letters back to the retry queue, where their events start over.

use clap::Args;
use comeback_delivery::Cause;
use comeback_delivery::sqs::Message;
use comeback_engine::{Action, Pauses, Policies, Reason, Record, Timestamp, decide};
use serde_json::json;

use crate::account::Failure;
use crate::clock;
use crate::failure::CommandFailure;
use crate::operate::dead::dead_letters::DeadLetters;
use crate::operate::dead::filter::Filter;
use crate::operate::dead::plan::{Asked, Plan, Verb};
use crate::operate::dead::queue::{CallFailure, Destination, QueueCalls, Received};
use crate::operate::dead::snapshot::{Forgetting, Selected, Snapshot};
use crate::operate::dead::survey::listed;
use crate::operate::dead::work::{DeadLetterAction, Pace, Work};
use crate::operate::deployment::Deployment;
use crate::operate::function::attach_commands;
use crate::operate::session::{Common, Session, confirm_plan};
use crate::text::numbers::{counted, read_rate};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback dead redrive --error 'Timeout*' --dry-run
  comeback dead redrive --target orders --rate 10/s --limit 100
  comeback dead redrive --target orders --retarget arn:aws:lambda:eu-west-1:123456789012:function:orders-v2";

#[derive(Debug, Args)]
pub(crate) struct RedriveArguments {
    /// All dead-letters
    #[arg(long, conflicts_with = "Filter")]
    all: bool,
    /// Maximum dead-letters a second
    #[arg(long, value_name = "RATE", default_value = "50/s", value_parser = read_rate)]
    rate: f64,
    /// Maximum number of dead-letters
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Invoke this function instead of the original one; TARGET_FUNCTIONS must allow it
    #[arg(long, value_name = "ARN")]
    retarget: Option<String>,
    /// Show the plan without changing anything
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &RedriveArguments, session: Session) -> Result<(), CommandFailure> {
    redrive(arguments, &DeadLetters::find(session).await?).await
}

async fn redrive<Q: QueueCalls>(
    arguments: &RedriveArguments,
    dead_letters: &DeadLetters<Q>,
) -> Result<(), CommandFailure> {
    let policies = policies(&dead_letters.deployment)?;
    let &RedriveArguments { ref filter, rate, limit, dry_run, .. } = arguments;
    let redrive = Redrive::new(&policies, arguments.retarget.as_deref())?;
    let now = clock::now();
    let work = Work { filter: Some(filter.clone()), now, until: now, pace: Pace(rate), limit };
    let judge = |received: &_| redrive.prepare(received).map(drop);
    let asked = Asked { verb: Verb::Redrive, all: arguments.all, dry_run };
    let plan = Plan::make(asked, work, judge, dead_letters).await?;
    ask_and_redrive(&plan, &redrive, None).await
}

/// Scans the dead-letters that a filter takes for a snapshot.
pub(crate) async fn scan<Q: QueueCalls>(
    flags: Vec<String>,
    now: Timestamp,
    dead_letters: &DeadLetters<Q>,
) -> Result<Snapshot, CommandFailure> {
    // Nobody can say what a handler that does not start would do. A redrive is refused then.
    let policies = dead_letters.deployment.policies().ok();
    let redrive = policies.as_ref().map(|policies| Redrive::new(policies, None)).transpose()?;
    let judge = |received: &_| redrive.as_ref().map_or(Ok(()), |it| it.prepare(received).map(drop));
    Snapshot::read(flags, now, judge, dead_letters).await
}

/// Redrives dead-letters of a snapshot.
pub(crate) async fn redrive_selected<Q: QueueCalls>(
    selected: &Selected<'_>,
    retarget: Option<&str>,
    pace: Pace,
    dead_letters: &DeadLetters<Q>,
) -> Result<(), CommandFailure> {
    let policies = policies(&dead_letters.deployment)?;
    let redrive = Redrive::new(&policies, retarget)?;
    let asked = Asked { verb: Verb::Redrive, all: true, dry_run: false };
    let plan = Plan::of_snapshot(asked, pace, selected, dead_letters)?;
    ask_and_redrive(&plan, &redrive, Some(selected.snapshot)).await
}

async fn ask_and_redrive<Q: QueueCalls>(
    plan: &Plan<'_, Q>,
    redrive: &Redrive<'_>,
    snapshot: Option<&Snapshot>,
) -> Result<(), CommandFailure> {
    let (session, deployment, dry_run) =
        (&plan.dead_letters.session, &plan.dead_letters.deployment, plan.asked.dry_run);
    let not_allowed = listed(&plan.survey.not_allowed);
    if !not_allowed.is_empty() {
        if dry_run {
            session.say(&format!("not on TARGET_FUNCTIONS, so nothing would be sent: {not_allowed}\n"))?;
        }
        let functions = plan.survey.not_allowed.iter().map(String::as_str);
        let attach = attach_commands(functions, &deployment.handler_arn, &session.common.place_flags());
        return Err(Failure::CouldNot(format!(
            "nothing was sent: TARGET_FUNCTIONS does not allow {not_allowed}, so these would be dead-lettered \
             again: {attach}; or choose others with --target, or name another function with --retarget"
        ))
        .into());
    }
    if dry_run || plan.dead_letters() == 0 {
        return Ok(plan.read.result("nothing was changed")?);
    }
    let (count, queue) = (plan.dead_letters(), deployment.retry_queue.name());
    let question = format!("send {} to {queue}?", counted(count, "dead-letter", "dead-letters"));
    confirm_plan(&question, &json!({"plan": plan.identity(), "retarget": redrive.retarget}), session).await?;
    let (done, read) = plan.carry_out(&Forgetting { action: redrive, snapshot }).await?;
    let summary = done.summary("redrove");
    plan.answer(Some((&done, &read)));
    plan.note_missing(&done, &read);
    let result = plan.result(&done, &read, &summary);
    // A failure begins with the summary.
    if result.is_ok() {
        session.say(&format!("{summary}\n"))?;
    }
    Ok(result?)
}

/// Fails if the handler's environment is refused: nobody can say which functions it would re-invoke.
fn policies(deployment: &Deployment) -> Result<Policies, Failure> {
    deployment.policies().map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let handler = &deployment.handler;
        Failure::CouldNot(format!("{handler} refuses its settings: {}", errors.join("; ")))
    })
}

/// Sends dead-letters to the retry queue.
#[derive(Debug)]
pub(crate) struct Redrive<'a> {
    policies: &'a Policies,
    retarget: Option<&'a str>,
}

impl<'a> Redrive<'a> {
    /// For the functions that the dead-letters name, or for `retarget`.
    pub(crate) fn new(policies: &'a Policies, retarget: Option<&'a str>) -> Result<Self, Failure> {
        match retarget.filter(|arn| !policies.stack().allows(arn)) {
            Some(name) if !name.starts_with("arn:") => {
                let what = format!(
                    "--retarget {name}: give the full ARN, such as arn:aws:lambda:REGION:ACCOUNT:function:{name}"
                );
                Err(Failure::Refused(what))
            }
            Some(arn) => Err(Failure::Refused(format!(
                "--retarget {arn}: TARGET_FUNCTIONS does not allow it, so its events would be dead-lettered \
                 again; run `comeback attach` first, and pass the function's full ARN"
            ))),
            None => Ok(Self { policies, retarget }),
        }
    }
}

impl DeadLetterAction for Redrive<'_> {
    type Prepared = Message;

    /// The message has none of the dead-letter's attributes: `Comeback` would make it an old message again.
    fn prepare(&self, received: &Received) -> Result<Message, Reason> {
        let body = received.dead_letter().redriven(self.retarget)?;
        let body = rehearse(body, received.record.sent, self.policies)?;
        Ok(Message { trace_header: received.record.trace_header.clone(), ..Message::new(body) })
    }

    async fn perform(&self, queue: &impl QueueCalls, messages: Vec<Message>) -> Vec<Result<(), CallFailure>> {
        let answers = queue.send(Destination::RetryQueue, messages).await;
        let not_sent = |cause: Cause| {
            let mut failure = CallFailure::of("sqs:SendMessage", &cause);
            if cause.error().is_some_and(|error| error.code.is_empty()) {
                failure.why = format!("no answer, so it may be in the retry queue too ({})", failure.why);
            }
            failure
        };
        answers.into_iter().map(|answer| answer.map_err(not_sent)).collect()
    }

    /// What was sent may be retried already.
    fn take_back(&self, _: usize) -> bool {
        false
    }
}

/// Asks the handler's own rules whether the event would be dead-lettered, on its first receive or when its first retry is
/// due. The event starts anew, so the answer is the same whenever its message is sent.
fn rehearse(body: String, sent: Timestamp, policies: &Policies) -> Result<String, Reason> {
    let mut record = Record {
        message_id: "rehearsed".into(),
        receipt_handle: String::new(),
        body,
        receive_count: 1,
        sent,
        first_receive: sent,
        moved: None,
        trace_header: None,
        attributes: Vec::new(),
    };
    let mut now = sent;
    for receive in 1..=2 {
        record.receive_count = receive;
        // A pause holds events, and gives none up.
        now = match decide(&record, policies, &Pauses::default(), now) {
            Action::Defer { due, .. } | Action::Hold { due, .. } | Action::Reinvoke { due, .. } => due,
            Action::DeadLetter { reason, .. } => return Err(reason),
        };
    }
    Ok(record.body)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use clap::FromArgMatches as _;
    use comeback_engine::FailedEvent;

    use super::*;
    use crate::account::Account;
    use crate::operate::dead::simulated::{ORDERS, Simulated, event, policies, record};

    #[test]
    fn a_redriven_dead_letter_is_for_the_function_it_is_retargeted_to() {
        let policies = policies();
        let live = format!("{ORDERS}:live");
        let redrive = Redrive::new(&policies, Some(&live)).unwrap();
        for received in Simulated::with([event("Timeout"), record("Timeout")]).dead() {
            let message = redrive.prepare(&received).unwrap();
            assert!(message.attributes.is_empty());
            let record = Record { body: message.body, ..received.record.clone() };
            let event = FailedEvent::read(&record).unwrap();
            assert_eq!((event.function_arn.as_ref(), event.retry), (live.as_str(), 1));
            assert_eq!(Some(event.origin_request_id), received.dead_letter().key);
        }
        let other = "arn:aws:lambda:eu-west-1:123456789012:function:payments";
        let expected = format!(
            "--retarget {other}: TARGET_FUNCTIONS does not allow it, so its events would be dead-lettered \
             again; run `comeback attach` first, and pass the function's full ARN"
        );
        assert_eq!(Redrive::new(&policies, Some(other)).unwrap_err(), Failure::Refused(expected));
    }

    #[tokio::test(start_paused = true)]
    async fn a_dry_run_fails_as_the_redrive_would() {
        for dry_run in [None, Some("--dry-run")] {
            let dead_letter = json!({
                "MessageId": "m-1", "ReceiptHandle": "h-1",
                "Body": event("Timeout").body.replace("function:orders", "function:payments"),
                "Attributes": {
                    "ApproximateReceiveCount": "1", "SentTimestamp": "1", "ApproximateFirstReceiveTimestamp": "1",
                },
            });
            let dead_letters = Mutex::new(vec![dead_letter]);
            let account = Account::answering(move |operation, _| match operation {
                "GetQueueAttributes" => json!({"Attributes": {
                    "ApproximateNumberOfMessages": "1", "ApproximateNumberOfMessagesNotVisible": "0",
                    "ApproximateNumberOfMessagesDelayed": "0",
                }}),
                "ReceiveMessage" => json!({"Messages": std::mem::take(&mut *dead_letters.lock().unwrap())}),
                "ChangeMessageVisibilityBatch" => json!({"Successful": [{"Id": "0"}], "Failed": []}),
                other => panic!("{other} is not expected"),
            });
            let flags = ["redrive", "--all", "--json"].into_iter().chain(dry_run);
            let command = RedriveArguments::augment_args(clap::Command::new("redrive"));
            let arguments = RedriveArguments::from_arg_matches(&command.get_matches_from(flags)).unwrap();
            let dead_letters = DeadLetters::sample(account.await, &arguments.common);
            let failure = redrive(&arguments, &dead_letters).await.unwrap_err().to_string();
            let expected = "nothing was sent: TARGET_FUNCTIONS does not allow \
                            arn:aws:lambda:eu-west-1:123456789012:function:payments:$LATEST,";
            assert!(failure.starts_with(expected), "{failure}");
            assert!(
                failure.contains("again: `comeback attach payments` (if the function moved "),
                "{failure}"
            );
        }
    }
}
