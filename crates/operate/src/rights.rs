//! The permissions of roles, according to IAM's policy simulator.

use futures_util::future::try_join_all;

use crate::account::Account;
use crate::aws::Verdict;
use crate::deployment::queue::CustomerKey;
use crate::failure::Failure;

pub(crate) const SEND: &[&str] = &["sqs:SendMessage"];
/// The KMS actions needed to send to an encrypted queue and to receive from it.
pub(crate) const USE_KEY: &[&str] = &["kms:GenerateDataKey", "kms:Decrypt"];
pub(crate) const HIDE: &[&str] = &["sqs:ChangeMessageVisibility"];
pub(crate) const INVOKE: &[&str] = &["lambda:InvokeFunction"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Right {
    pub(crate) role: String,
    pub(crate) action: &'static str,
    pub(crate) resource: String,
    pub(crate) verdict: Verdict,
}

/// The permissions that a role needs, or the reason why IAM's policy simulator could not check them.
pub(crate) type Rights = Result<Vec<Right>, Failure>;

pub(crate) async fn ask(
    account: &Account,
    role_arn: &str,
    actions: &[&'static str],
    resources: impl IntoIterator<Item = &str>,
) -> Rights {
    let asked = resources.into_iter().flat_map(|resource| actions.iter().map(move |it| (*it, resource)));
    try_join_all(asked.map(async |(action, resource)| {
        let verdict = account.aws.may(role_arn, action, resource).await?;
        Ok(Right { role: role_name(role_arn).to_owned(), action, resource: resource.to_owned(), verdict })
    }))
    .await
}

/// Asks IAM's simulator whether a role may use customer-managed keys. Ignores keys that do not exist, because the
/// simulator refuses their ids.
pub(crate) async fn ask_of_keys(
    account: &Account,
    role_arn: &str,
    keys: impl IntoIterator<Item = Result<Option<CustomerKey>, Failure>>,
) -> Rights {
    let keys: Vec<_> = keys.into_iter().collect::<Result<_, _>>()?;
    let keys = keys.iter().flatten().filter(|key| key.state.is_some());
    ask(account, role_arn, USE_KEY, keys.map(|key| &*key.arn)).await
}

/// Returns the permissions that no policy grants. If a policy denies permissions, returns those as the error,
/// because granting them in another policy would not override the denial.
pub(crate) fn missing(rights: &[Right]) -> Result<Vec<&Right>, Vec<&Right>> {
    let with = |verdict| rights.iter().filter(move |right| right.verdict == verdict).collect::<Vec<_>>();
    let denied = with(Verdict::Denied);
    if denied.is_empty() { Ok(with(Verdict::NotAllowed)) } else { Err(denied) }
}

/// The permissions in words, such as `sqs:SendMessage on QUEUE`.
pub(crate) fn in_words(rights: &[&Right]) -> String {
    let each = rights.iter().map(|right| format!("{} on {}", right.action, right.resource));
    each.collect::<Vec<_>>().join(", ")
}

pub(crate) fn role_name(role_arn: &str) -> &str {
    role_arn.rsplit('/').next().unwrap_or(role_arn)
}
