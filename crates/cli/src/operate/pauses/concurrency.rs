//! The reserved concurrency of a function that is paused with `--hard`.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_lambda::operation::get_function_concurrency::GetFunctionConcurrencyError;
use comeback_engine::Concurrency;

use crate::account::{Account, Failure, Or as _};
use crate::operate::function::{FunctionName, InvokeSettings};

/// The reserved concurrency of a function; `None` if none is reserved, or if the function was deleted.
pub(crate) async fn reserved(account: &Account, function: &FunctionName) -> Result<Option<u32>, Failure> {
    let name = function.unqualified();
    let answer = account.lambda.get_function_concurrency().function_name(&name).send().await;
    let is_gone = |error: &GetFunctionConcurrencyError| error.is_resource_not_found_exception();
    let answer = answer.unless(is_gone, "lambda:GetFunctionConcurrency", &name)?;
    Ok(answer.and_then(|answer| answer.reserved_concurrent_executions()).map(i32::unsigned_abs))
}

/// Checks that each new event of the function would go to the retry queue. Without a reserved concurrency Lambda drops
/// the events of a qualifier that has no failure destination.
pub(crate) async fn check_nothing_is_lost(
    account: &Account,
    function: &FunctionName,
    queue_arn: &str,
) -> Result<(), Failure> {
    let name = function.unqualified();
    let settings = InvokeSettings::all(account, &name).await?;
    let aliases = account.lambda.list_aliases().function_name(&name).into_paginator().items().send();
    let aliases = aliases.try_collect().await.or_failure("lambda:ListAliases", &name)?;
    let aliases = aliases.into_iter().filter_map(|alias| alias.name).collect();
    match losing(&function.name, &settings, aliases, queue_arn).join(", ").as_str() {
        "" => Ok(()),
        losing => Err(Failure::Undone(format!(
            "new events of {losing} would be lost or go elsewhere, because their failure destination is not the retry \
             queue: attach them first, or pause without --hard"
        ))),
    }
}

/// The function itself, its aliases and its qualifiers with settings, as far as their failures do not go to the queue.
fn losing(
    function: &str,
    settings: &BTreeMap<Option<String>, InvokeSettings>,
    aliases: Vec<String>,
    queue_arn: &str,
) -> Vec<String> {
    let goes_there = |qualifier: &Option<String>| {
        settings.get(qualifier).is_some_and(|it| it.on_failure.as_deref() == Some(queue_arn))
    };
    let all: BTreeSet<Option<String>> =
        aliases.into_iter().map(Some).chain(settings.keys().cloned()).chain([None]).collect();
    all.into_iter()
        .filter(|qualifier| !goes_there(qualifier))
        .map(|qualifier| qualifier.iter().fold(function.to_owned(), |name, it| format!("{name}:{it}")))
        .collect()
}

/// Restores the earlier concurrency. If somebody else has changed it since, that stays, and is returned.
pub(crate) async fn restore(
    account: &Account,
    function: &FunctionName,
    before: Concurrency,
) -> Result<Option<u32>, Failure> {
    match (before, reserved(account, function).await?) {
        (Concurrency::Was(before), Some(0)) => set(account, function, before).await.map(|()| None),
        (Concurrency::WasUnreserved, Some(0)) => {
            let name = function.unqualified();
            let answer = account.lambda.delete_function_concurrency().function_name(&name).send().await;
            answer.map(|_| None).or_failure("lambda:DeleteFunctionConcurrency", &name)
        }
        // Restored already, by a run that was interrupted.
        (Concurrency::Was(before), Some(now)) if before == now => Ok(None),
        (_, now) => Ok(now),
    }
}

/// With 0, Lambda starts no invocation of the function: it sends each event to the failure destination at once.
pub(crate) async fn set(account: &Account, function: &FunctionName, reserved: u32) -> Result<(), Failure> {
    let name = function.unqualified();
    let reserved = i32::try_from(reserved).unwrap_or(i32::MAX);
    let call = account.lambda.put_function_concurrency().function_name(&name);
    let answer = call.reserved_concurrent_executions(reserved).send().await;
    answer.map(drop).or_failure("lambda:PutFunctionConcurrency", &name)
}

#[cfg(test)]
mod tests {

    use super::*;

    const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:comeback-retries";

    #[test]
    fn every_qualifier_that_takes_events_must_fail_to_the_queue() {
        let to = |arn: Option<&str>| InvokeSettings {
            on_failure: arn.map(ToOwned::to_owned),
            ..InvokeSettings::default()
        };
        let of = |settings: &[(Option<&str>, Option<&str>)], aliases: &[&str]| {
            let settings = settings.iter().map(|(it, arn)| (it.map(ToOwned::to_owned), to(*arn))).collect();
            losing("orders", &settings, aliases.iter().map(|it| (*it).to_owned()).collect(), QUEUE)
        };
        let (ours, other) = (Some(QUEUE), Some("arn:aws:sqs:eu-west-1:123456789012:other"));
        assert_eq!(of(&[(None, ours)], &[]), [""; 0]);
        assert_eq!(of(&[(None, ours), (Some("live"), ours)], &["live"]), [""; 0]);
        assert_eq!(of(&[], &[]), ["orders"]);
        assert_eq!(of(&[(None, other)], &[]), ["orders"]);
        assert_eq!(of(&[(Some("live"), ours)], &["live"]), ["orders"]);
        assert_eq!(of(&[(None, ours)], &["live", "next"]), ["orders:live", "orders:next"]);
        assert_eq!(of(&[(None, ours), (Some("7"), None)], &[]), ["orders:7"]);
    }
}
