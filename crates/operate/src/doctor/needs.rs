//! A table of the permissions that roles need.

use crate::doctor::judgement::Outcome;

/// A permission that a role needs, and the consequence if the permission is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// The number of the check that judges the permission.
    pub(crate) check: &'static str,
    /// The IAM actions that the role must be allowed to perform.
    pub(crate) actions: &'static [&'static str],
    /// The resource on which the role performs the actions.
    pub(crate) on: Resource,
    /// The outcome of the check if the permission is missing.
    pub(crate) without: Outcome,
    /// The consequence for events if the permission is missing.
    pub(crate) means: &'static str,
}

/// A resource on which a role needs a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// The retry queue or, for a consumer, the queue that the consumer reads.
    Queue,
    /// The dead-letter queue.
    DeadLetterQueue,
    /// The streams of the handler's log group.
    LogStreams,
    /// The SSM parameter that holds the pauses.
    Pauses,
    /// The customer-managed KMS keys that encrypt the queues.
    Keys,
    /// The target function.
    Function,
}

const SEND: &[&str] = &["sqs:SendMessage"];
/// The KMS actions that a role needs in order to send to an encrypted queue and to receive from it.
const USE_KEY: &[&str] = &["kms:Decrypt", "kms:GenerateDataKey"];
const TAKE: &[&str] =
    &["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"];
const DROPPED: &str = "Lambda drops its failed events silently";

const fn need(
    check: &'static str,
    actions: &'static [&'static str],
    on: Resource,
    without: Outcome,
    means: &'static str,
) -> Need {
    Need { check, actions, on, without, means }
}

/// The permissions that the handler's role needs, whatever functions the handler retries.
#[rustfmt::skip]
pub(crate) const OF_HANDLER: [Need; 6] = [
    need("CB030", TAKE, Resource::Queue, Outcome::Broken,
        "nothing is retried: the handler cannot receive, hide or delete messages"),
    need("CB031", SEND, Resource::Queue, Outcome::Warning,
        "past HIDE_UP_TO the handler hides every message instead, and SQS has room for only 120,000"),
    need("CB032", SEND, Resource::DeadLetterQueue, Outcome::Broken,
        "dead-letters stay in the retry queue, and are deleted after 14 days"),
    need("CB033", &["logs:CreateLogStream", "logs:PutLogEvents"], Resource::LogStreams, Outcome::Warning,
        "nobody sees what the handler decides, and no event can be traced"),
    need("CB034", &["ssm:GetParameter"], Resource::Pauses, Outcome::Broken,
        "the handler does not know what is paused, so it holds every event that is due"),
    need("CB035", USE_KEY, Resource::Keys, Outcome::Broken,
        "the handler can neither receive nor send messages that the key encrypts"),
];

/// The permission to send to the retry queue, which a target's role needs.
pub(crate) const SEND_FAILURES: Need = need("CB105", SEND, Resource::Queue, Outcome::Broken, DROPPED);
/// The permission to use the retry queue's key, which a target's role needs.
pub(crate) const USE_QUEUES_KEY: Need = need("CB106", USE_KEY, Resource::Keys, Outcome::Broken, DROPPED);
/// The permission to invoke a target, which the handler's role needs.
pub(crate) const INVOKE: Need = need(
    "CB109",
    &["lambda:InvokeFunction"],
    Resource::Function,
    Outcome::Broken,
    "its events wait until the handler may invoke it",
);
/// The permission to hide messages, which a consumer's role needs.
pub(crate) const HIDE: Need = need(
    "CB305",
    &["sqs:ChangeMessageVisibility"],
    Resource::Queue,
    Outcome::Broken,
    "failed messages have no backoff: each returns after the queue's own visibility timeout",
);
/// The permission to send to the dead-letter queue, which a consumer's role needs.
pub(crate) const SEND_DEAD_LETTERS: Need = need(
    "CB306",
    SEND,
    Resource::DeadLetterQueue,
    Outcome::Broken,
    "a message that should be dead-lettered stays in its queue until the redrive policy or the retention removes it",
);
