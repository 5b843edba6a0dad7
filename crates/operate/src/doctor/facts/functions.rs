//! Facts about the functions that are attached or that the operator named.

use std::collections::{BTreeMap, BTreeSet};

use comeback_engine::Timestamp;
use futures_util::stream::{StreamExt as _, iter};

use crate::account::Account;
use crate::attach::attachment::{Attachment, ListOwner, other_than};
use crate::aws::InvokeSettings;
use crate::deployment::queue::CustomerKey;
use crate::deployment::{AT_A_TIME, Deployment, entries};
use crate::failure::Failure;
use crate::function::{FunctionName, Target};
use crate::metrics::Dropped;

#[derive(Clone, Debug)]
pub(crate) struct CheckedFunction {
    pub(crate) name: String,
    /// The function's ARN, without a qualifier.
    pub(crate) arn: String,
    /// The function as Lambda describes it, or `None` if it does not exist.
    pub(crate) target: Result<Option<Target>, Failure>,
    /// One entry for each qualifier to check, or a single entry for the unqualified function.
    pub(crate) attachments: Vec<Attachment>,
    /// Aliases and versions that do not exist, although the operator, the allow-list or the function's settings name
    /// them.
    pub(crate) gone: Vec<String>,
    pub(crate) dropped: Result<Dropped, Failure>,
}

/// Returns the functions to check, and an error if the allow-list's patterns could not be matched.
///
/// `key` encrypts the retry queue, and `listed` is the allow-list in the stack's parameter.
pub(crate) async fn read(
    account: &Account,
    deployment: &Deployment,
    key: &Result<Option<CustomerKey>, Failure>,
    list_owner: &ListOwner,
    named: &[FunctionName],
    listed: &str,
    now: Timestamp,
) -> (Vec<CheckedFunction>, Result<(), Failure>) {
    let mut wanted = wanted(deployment, named, listed);
    let matched = deployment.matched(account).await.map(|arns| {
        for arn in arns {
            wanted.entry(arn.to_string()).or_default();
        }
    });
    let reading = wanted.iter().map(async |(arn, asked)| {
        let function: FunctionName = arn.parse().expect("BUG: it was made of a function's name");
        let target = Target::find(account, &function).await;
        let (mut attachments, mut gone) = (Vec::new(), Vec::new());
        if let Ok(Some(target)) = &target {
            for qualifier in qualifiers(target, &deployment.retry_queue.arn, asked) {
                let role = match &qualifier {
                    None => Ok(Some(target.role_arn.clone())),
                    Some(qualifier) => role_behind(account, &target.arn, qualifier).await,
                };
                match role.transpose() {
                    None => gone.extend(qualifier),
                    Some(role) => {
                        let role_arn = role.as_ref().unwrap_or(&target.role_arn).clone();
                        let target = Target { qualifier, role_arn, ..target.clone() };
                        let mut attachment =
                            Attachment::unread(deployment.clone(), target, list_owner.clone());
                        attachment.key = key.clone();
                        let other = other_than(account, deployment, &attachment.target.settings()).await;
                        let other = other.ok().flatten();
                        attachment
                            .elsewhere
                            .extend(other.map(|it| (attachment.target.qualifier.clone(), it)));
                        attachment.ask(account, &role).await;
                        attachments.push(attachment);
                    }
                }
            }
        }
        let dropped = Dropped::read(account, &function.name, now).await;
        CheckedFunction { name: function.name, arn: arn.clone(), target, attachments, gone, dropped }
    });
    (iter(reading).buffered(AT_A_TIME).collect().await, matched)
}

/// Reads the ARN of the role that an alias or version uses. A version keeps the role that the function had when the
/// version was published. Returns `None` if the qualifier does not exist.
async fn role_behind(account: &Account, arn: &str, qualifier: &str) -> Result<Option<String>, Failure> {
    let Some(found) = account.aws.function(arn, Some(qualifier)).await? else { return Ok(None) };
    match found.configuration.role_arn {
        role if role.is_empty() => {
            Err(Failure::could_not(format!("Lambda returned no role for {arn}:{qualifier}")))
        }
        role => Ok(Some(role)),
    }
}

/// Unqualified ARNs, each with the qualifiers under which the operator or the allow-list names the function.
type QualifiersByFunction = BTreeMap<String, BTreeSet<Option<String>>>;

/// Returns the functions that are named by the operator or by an allow-list entry without `*`.
fn wanted(deployment: &Deployment, named: &[FunctionName], listed: &str) -> QualifiersByFunction {
    let entries = deployment.target_functions().chain(entries(listed)).filter(|entry| !entry.contains('*'));
    // Check CB020 reports entries that are not ARNs.
    let entries = entries.filter(|entry| entry.starts_with("arn:")).filter_map(|entry| entry.parse().ok());
    let mut wanted = QualifiersByFunction::new();
    for function in named.iter().cloned().chain(entries) {
        let arn = deployment.arn_of(&function).unqualified().to_string();
        wanted.entry(arn).or_default().insert(function.qualifier);
    }
    wanted
}

/// Returns every qualifier whose failures go to the retry queue, and every qualifier in `asked`. If there are none,
/// returns only `None`, which stands for the unqualified function.
fn qualifiers(
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

#[cfg(test)]
mod tests {
    use crate::doctor::tests::healthy;

    use super::*;

    const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:retries";

    fn arn(name: &str) -> String {
        format!("arn:aws:lambda:eu-west-1:123456789012:function:{name}")
    }

    #[test]
    fn named_functions_join_the_listed_ones() {
        let mut deployment = healthy().deployment;
        let list = format!("{0},{0}:live,{1}-*,nonsense", arn("orders"), arn("shop"));
        deployment.variables.insert("TARGET_FUNCTIONS".into(), list);
        let functions = ["orders:7", "payments", &arn("payments")].map(|name| name.parse().unwrap());
        let qualifiers = |names: &[Option<&str>]| names.iter().map(|it| it.map(ToOwned::to_owned)).collect();
        let expected = QualifiersByFunction::from([
            (arn("orders"), qualifiers(&[None, Some("live"), Some("7")])),
            (arn("payments"), qualifiers(&[None])),
        ]);
        assert_eq!(wanted(&deployment, &functions, ""), expected);
        let taken_off = wanted(&deployment, &[], &arn("billing"));
        assert!(taken_off.contains_key(&arn("billing")), "the stack's list has it");
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
