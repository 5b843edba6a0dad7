use std::collections::{BTreeMap, BTreeSet};

use comeback_engine::FunctionPattern;
use futures_util::stream::{StreamExt as _, iter};

use crate::doctor::facts::functions::AT_A_TIME;
use crate::{Account, Deployment, Failure, FunctionName, InvokeSettings, Target};

/// Unqualified ARNs, each with the qualifiers that were named.
pub(super) type Wanted = BTreeMap<String, BTreeSet<Option<String>>>;

/// What the operator named, and each entry of the allow-list that names one function. A name without an ARN is one of the
/// handler's account and region.
pub(super) fn named(deployment: &Deployment, named: &[FunctionName]) -> Wanted {
    let place = deployment.handler_arn.rsplit_once(':').map_or("", |(place, _)| place);
    let entries = deployment.target_functions().filter(|entry| !entry.contains('*'));
    // An entry that is no ARN is CB020's.
    let entries = entries.filter(|entry| entry.starts_with("arn:")).filter_map(|entry| entry.parse().ok());
    let mut wanted = Wanted::new();
    for function in named.iter().cloned().chain(entries) {
        let name = function.unqualified();
        let arn = if name.starts_with("arn:") { name } else { format!("{place}:{name}") };
        wanted.entry(arn).or_default().insert(function.qualifier);
    }
    wanted
}

/// By which qualifiers a function is to be checked: those whose destination is the retry queue, and those that were named.
/// One that was named without a qualifier is checked by itself only if it has no such destination at all.
pub(super) fn qualifiers(
    target: &Target,
    queue_arn: &str,
    asked: &BTreeSet<Option<String>>,
) -> BTreeSet<Option<String>> {
    let leads_here = |settings: &InvokeSettings| settings.on_failure.as_deref() == Some(queue_arn);
    let ours = target.invoke_settings.iter().filter(|(_, settings)| leads_here(settings));
    let mut all: BTreeSet<_> = ours.map(|(qualifier, _)| qualifier.clone()).collect();
    all.extend(asked.iter().filter(|qualifier| qualifier.is_some()).cloned());
    if all.is_empty() {
        all.insert(None);
    }
    all
}

/// The functions that a pattern of the allow-list matches, if the retry queue is a destination of theirs.
pub(super) async fn matched(account: &Account, deployment: &Deployment) -> Result<Vec<String>, Failure> {
    let patterns: Vec<(FunctionPattern, Option<&str>)> = deployment
        .target_functions()
        .filter(|entry| entry.contains('*'))
        .filter_map(|entry| Some((entry.parse().ok()?, entry.split(':').nth(7))))
        .collect();
    if patterns.is_empty() {
        return Ok(Vec::new());
    }
    let is_matched = |arn: &str| {
        arn != deployment.handler_arn
            && patterns.iter().any(|(pattern, qualifier)| match qualifier {
                None => pattern.allows(arn),
                Some(qualifier) => pattern.allows(&format!("{arn}:{qualifier}")),
            })
    };
    let mut pages = account.lambda.list_functions().into_paginator().send();
    let mut arns = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| Failure::of_call("lambda:ListFunctions", "the account", &error))?;
        let names = page.functions().iter().filter_map(|function| function.function_arn());
        arns.extend(names.filter(|arn| is_matched(arn)).map(ToOwned::to_owned));
    }
    let leads_here = async |arn: String| {
        let all = InvokeSettings::all(account, &arn).await?;
        let queue = Some(deployment.retry_queue.arn.as_str());
        Ok::<_, Failure>(all.values().any(|it| it.on_failure.as_deref() == queue).then_some(arn))
    };
    let found: Vec<_> = iter(arns.into_iter().map(leads_here)).buffered(AT_A_TIME).collect().await;
    found.into_iter().filter_map(Result::transpose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample::healthy;

    const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:retries";

    fn arn(name: &str) -> String {
        format!("arn:aws:lambda:eu-west-1:123456789012:function:{name}")
    }

    #[test]
    fn what_is_named_joins_what_is_on_the_list() {
        let mut deployment = healthy().deployment;
        let list = format!("{0},{0}:live,{1}-*,nonsense", arn("orders"), arn("shop"));
        deployment.variables.insert("TARGET_FUNCTIONS".into(), list);
        let functions = ["orders:7", "payments", &arn("payments")].map(|name| name.parse().unwrap());
        let qualifiers = |names: &[Option<&str>]| names.iter().map(|it| it.map(ToOwned::to_owned)).collect();
        let expected = Wanted::from([
            (arn("orders"), qualifiers(&[None, Some("live"), Some("7")])),
            (arn("payments"), qualifiers(&[None])),
        ]);
        assert_eq!(named(&deployment, &functions), expected);
    }

    #[test]
    fn a_function_is_checked_where_its_failures_come_from() {
        let of = |settings: &[(Option<&str>, &str)], asked: &[Option<&str>]| {
            let mut target = healthy().handler.unwrap();
            let setting = |(qualifier, queue): &(Option<&str>, &str)| {
                let settings =
                    InvokeSettings { on_failure: Some((*queue).into()), ..InvokeSettings::default() };
                (qualifier.map(ToOwned::to_owned), settings)
            };
            target.invoke_settings = settings.iter().map(setting).collect();
            let asked = asked.iter().map(|it| it.map(ToOwned::to_owned)).collect();
            let found = qualifiers(&target, QUEUE, &asked);
            found.into_iter().map(|it| it.unwrap_or_default()).collect::<Vec<_>>()
        };
        assert_eq!(of(&[(None, QUEUE)], &[None]), [""]);
        assert_eq!(of(&[(Some("live"), QUEUE)], &[None]), ["live"], "by its alias alone");
        assert_eq!(
            of(&[(None, QUEUE), (Some("old"), "arn:other")], &[None]),
            [""],
            "an alias that leads elsewhere"
        );
        assert_eq!(of(&[(None, QUEUE)], &[Some("live")]), ["", "live"], "an alias that was named");
        assert_eq!(of(&[], &[None]), [""], "attached half-way");
        assert_eq!(of(&[], &[]), [""]);
    }
}
