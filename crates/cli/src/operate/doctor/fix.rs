//! The commands that fix what was found. Each can be pasted into a shell; the operator replaces words in capitals.

use std::fmt::Display;

use aws_sdk_kms::types::KeyState;
use comeback_engine::MAXIMUM_CONCURRENCY_RANGE;
use serde_json::json;

use crate::operate::account::CustomerKey;
use crate::operate::deployment::{Deployment, INVOCATIONS_OF_A_POLLER, Mapping, Queue};

pub(crate) fn mapping(mapping: &Mapping, flags: impl Display) -> String {
    format!("aws lambda update-event-source-mapping --uuid {} {flags}", mapping.uuid)
}

/// Has the handler assume what provisioned pollers come to, and lowers their number if it cannot.
pub(crate) fn provisioned(deployment: &Deployment, mapping: &Mapping, invocations: u64) -> String {
    let most = *MAXIMUM_CONCURRENCY_RANGE.end();
    let assume = variable(deployment, "MAXIMUM_CONCURRENCY", &invocations.min(most).to_string());
    if invocations <= most {
        return assume;
    }
    let pollers = most / u64::from(INVOCATIONS_OF_A_POLLER);
    let fewer = format!("--provisioned-poller-config MaximumPollers={pollers}");
    format!("{}; {assume}", self::mapping(mapping, fewer))
}

pub(crate) fn queue(url: &str, attributes: impl Display) -> String {
    format!("aws sqs set-queue-attributes --queue-url {url} --attributes {attributes}")
}

/// Restores a queue's key if that is possible.
pub(crate) fn key(queue: &Queue, key: &CustomerKey) -> String {
    let enable = format!("aws kms enable-key --key-id {}", key.arn);
    match &key.state {
        Some(KeyState::Disabled) => enable,
        Some(KeyState::PendingDeletion | KeyState::PendingReplicaDeletion) => {
            format!("aws kms cancel-key-deletion --key-id {}; {enable}", key.arn)
        }
        _ => self::queue(&queue.url, "KmsMasterKeyId=ARN_OF_ANOTHER_KEY"),
    }
}

pub(crate) fn redrive(deployment: &Deployment) -> String {
    let dead = &deployment.dead_letter_queue.arn;
    let policy = json!({"deadLetterTargetArn": dead, "maxReceiveCount": "1000"}).to_string();
    queue(&deployment.retry_queue.url, format!("'{}'", json!({"RedrivePolicy": policy})))
}

pub(crate) fn handler(deployment: &Deployment, flags: impl Display) -> String {
    format!("aws lambda update-function-configuration --function-name {} {flags}", deployment.handler)
}

/// Sets one variable of the handler and keeps the others.
pub(crate) fn variable(deployment: &Deployment, name: &str, value: &str) -> String {
    let function = &deployment.handler;
    let merged = format!("{{Variables: merge(Environment.Variables, {{{name}: '{value}'}})}}");
    let environment = format!(
        "aws lambda get-function-configuration --function-name {function} --output json --query \"{merged}\""
    );
    handler(deployment, format!("--environment \"$({environment})\""))
}

pub(crate) fn concurrency(function: &str) -> String {
    format!("aws lambda delete-function-concurrency --function-name {function}")
}

/// One of our own commands, with the flag that finds this deployment.
pub(crate) fn comeback(deployment: &Deployment, command: impl Display) -> String {
    match deployment.stack.as_deref() {
        Some("comeback") => format!("comeback {command}"),
        Some(stack) => format!("comeback {command} --stack {stack}"),
        None => format!("comeback {command} --handler {}", deployment.handler),
    }
}
