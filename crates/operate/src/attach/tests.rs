//! Plans against a model of the account.

mod attaching;
mod detaching;
mod killed;

use std::collections::BTreeMap;
use std::time::Duration;

use comeback_engine::Timestamp;

use crate::attach::allow_list;
use crate::attach::change::{Change, ListPlace};
use crate::attach::facts::{Attachment, Handler, Place};
use crate::attach::leaving::{Leaving, Log, Waiting};
use crate::attach::losses::Losses;
use crate::attach::plan::AttachPlan;
use crate::status::Depth;
use crate::{InvokeSettings, Target, Verdict};

const ARN: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
const OTHER: &str = "arn:aws:lambda:eu-west-1:123456789012:function:invoices";
const ALARM: &str = "comeback-retries-lost-orders";
const TOPIC: &str = "arn:aws:sns:eu-west-1:123456789012:on-call";
const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:comeback-retries";

/// A function that nobody has attached.
pub(crate) fn target() -> Target {
    Target {
        name: "orders".into(),
        qualifier: None,
        arn: ARN.into(),
        role_arn: "arn:aws:iam::123456789012:role/orders-role".into(),
        runtime: Some("python3.12".into()),
        timeout: Duration::from_secs(3),
        invoke_settings: BTreeMap::new(),
        recursion_allowed: false,
        reserved_concurrency: None,
        tags: BTreeMap::new(),
    }
}

/// Nothing of it is attached to a stack of SAM.
fn attachment() -> Attachment {
    let place = Place::Parameter { stack: "comeback".into(), value: String::new() };
    Attachment {
        target: target(),
        queue_arn: QUEUE.into(),
        key_arn: None,
        may_send: Verdict::NotAllowed,
        send_policy: false,
        owner: None,
        losses: Losses { alarm: ALARM.into(), ours: false, others: false, tell: None },
        handler: Handler {
            name: "handler".into(),
            role: "handler-role".into(),
            allow_list: String::new(),
            environment_bytes: 500,
            may_invoke: Verdict::NotAllowed,
            invoke_policy: false,
            place,
        },
    }
}

/// Everything has left the queue, and `now` is long after anything else.
fn left() -> Leaving {
    Leaving {
        now: Timestamp::from_secs(2_000_000_000),
        at_once: false,
        timeout: Duration::from_secs(3),
        queue: Depth::default(),
        is_consumed: true,
        log: Log::Read(Waiting::default()),
        sharing: Vec::new(),
    }
}

fn allowed(is_allowed: bool) -> Verdict {
    if is_allowed { Verdict::Allowed } else { Verdict::NotAllowed }
}

/// What a change does to what is there.
fn make(attachment: &mut Attachment, change: &Change) {
    let Attachment { target, handler, .. } = attachment;
    match change {
        Change::Keep { tags, .. } => target.tags.extend(tags.iter().cloned()),
        Change::Forget { tags, .. } => tags.iter().for_each(|(key, _)| drop(target.tags.remove(key))),
        Change::Allow { role, .. } if *role == handler.role => {
            (handler.may_invoke, handler.invoke_policy) = (Verdict::Allowed, true);
        }
        Change::Allow { .. } => {
            (attachment.may_send, attachment.send_policy) = (Verdict::Allowed, true);
        }
        Change::Withdraw { role, .. } if *role == handler.role => {
            (handler.may_invoke, handler.invoke_policy) = (Verdict::NotAllowed, false);
        }
        Change::Withdraw { .. } => {
            (attachment.may_send, attachment.send_policy) = (Verdict::NotAllowed, false);
        }
        Change::List { place, arn, listed } => {
            let edit = |list: &str| {
                if *listed { allow_list::with(list, arn) } else { allow_list::without(list, arn) }
            };
            if let (ListPlace::Stack(_), Place::Parameter { value, .. }) = (place, &mut handler.place) {
                *value = edit(value);
                handler.allow_list = edit(&handler.allow_list);
                handler.may_invoke = allowed(handler.allows(ARN));
            } else {
                handler.allow_list = edit(&handler.allow_list);
            }
        }
        Change::Watch { .. } => attachment.losses.ours = true,
        Change::Unwatch { .. } => attachment.losses.ours = false,
        Change::Recursion { allowed, .. } => target.recursion_allowed = *allowed,
        Change::Settings { qualifier, to, .. } => {
            target.invoke_settings.insert(qualifier.clone(), to.clone());
            target.invoke_settings.retain(|_, settings| *settings != InvokeSettings::default());
        }
    }
}

fn perform(attachment: &Attachment, plan: &AttachPlan, changes: usize) -> Attachment {
    let mut after = attachment.clone();
    plan.changes.iter().take(changes).for_each(|change| make(&mut after, change));
    after
}

fn all(attachment: &Attachment, plan: &AttachPlan) -> Attachment {
    perform(attachment, plan, usize::MAX)
}
