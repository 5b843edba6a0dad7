//! The changes of a plan: the settings they differ in, and the calls that make them.

use std::time::Duration;

use aws_sdk_lambda::error::ProvideErrorMetadata;
use aws_sdk_lambda::types::{DestinationConfig, OnFailure, OnSuccess, RecursiveLoop};
use comeback_backoff::{Backoff, Delays, Jitter, retry};
use serde::Serialize;

use crate::account::{Account, Failure, Or as _};
use crate::clock::now;
use crate::operate::alarms::{self, LostAlarm};
use crate::operate::attach::grant::Grant;
use crate::operate::attach::kept;
use crate::operate::function::{InvokeSettings, Target};
use crate::operate::handler_setting::{self, SettingPlace, TARGET_FUNCTIONS, list_with, list_without};
use crate::operate::session::Interrupt;

/// One change to a function, or to what lets it be retried. Making it twice does no more than making it once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Tags the function.
    Keep(Vec<(String, String)>),
    /// Tags the function with the time of this change.
    Mark(&'static str),
    Forget(Vec<(String, String)>),
    Allow(Grant),
    Withdraw(Grant),
    /// Puts the function on the allow-list, or takes it off.
    List(SettingPlace, bool),
    Recursion(bool),
    /// Makes an alarm on the function's events that Lambda loses on their way to the retry queue. It may exist, but notify
    /// nobody.
    Watch {
        alarm: LostAlarm,
        exists: bool,
    },
    Unwatch(String),
    /// Replaces the settings of asynchronous invocations, or removes them if all are default.
    Settings(InvokeSettings),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    pub(crate) resource: String,
    pub(crate) setting: String,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
}

fn difference(resource: String, setting: &str, from: Option<&str>, to: Option<&str>) -> Difference {
    let (from, to) = (from.map(ToOwned::to_owned), to.map(ToOwned::to_owned));
    Difference { resource, setting: setting.to_owned(), from, to }
}

impl Change {
    pub(crate) fn differences(&self, target: &Target) -> Vec<Difference> {
        let function = format!("function {}", target.name);
        let tag = |key: &str, from, to| difference(function.clone(), &format!("tag {key}"), from, to);
        let one = match self {
            Self::Keep(tags) => {
                return tags.iter().map(|(key, value)| tag(key, None, Some(value))).collect();
            }
            Self::Forget(tags) => {
                return tags.iter().map(|(key, value)| tag(key, Some(value), None)).collect();
            }
            Self::Mark(key) => tag(key, None, Some("now")),
            Self::Settings(to) => return settings(target, to),
            Self::Allow(Grant { role, policy, statements }) => {
                let actions: Vec<_> = statements.iter().flat_map(|(actions, _)| actions).copied().collect();
                let (policy, actions) = (format!("policy {policy}"), actions.join(", "));
                difference(format!("role {role}"), &policy, None, Some(&actions))
            }
            Self::Withdraw(Grant { role, policy, .. }) => {
                difference(format!("role {role}"), &format!("policy {policy}"), Some("allowed"), None)
            }
            Self::List(place, is_listed) => {
                let arn = Some(&*target.arn);
                let (from, to) = if *is_listed { (None, arn) } else { (arn, None) };
                let (resource, setting) = match place {
                    SettingPlace::Stack(stack) => (format!("stack {stack}"), TARGET_FUNCTIONS.parameter),
                    SettingPlace::Function(name) => (format!("function {name}"), TARGET_FUNCTIONS.variable),
                };
                difference(resource, setting, from, to)
            }
            Self::Recursion(allowed) => {
                let (from, to) = (kept::recursion(!allowed), kept::recursion(*allowed));
                difference(function, "recursive loops", Some(from), Some(to))
            }
            Self::Watch { alarm: LostAlarm { name, topics, .. }, exists } => {
                let nobody = "notifies nobody";
                let topics = topics.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                let to = if topics.is_empty() { nobody.to_owned() } else { format!("notifies {topics}") };
                difference(function, &format!("alarm {name}"), exists.then_some(nobody), Some(&to))
            }
            Self::Unwatch(alarm) => difference(function, &format!("alarm {alarm}"), Some("there"), None),
        };
        vec![one]
    }
}

fn settings(target: &Target, to: &InvokeSettings) -> Vec<Difference> {
    let texts = |it: &InvokeSettings| {
        let (retries, event_age) =
            (it.retries.map(|it| it.to_string()), it.event_age.map(|it| format!("{it}s")));
        [it.on_failure.clone(), retries, event_age, it.on_success.clone()]
    };
    let both = texts(&target.settings()).into_iter().zip(texts(to));
    let resource = format!("function {}", target.named(target.qualifier.as_deref()));
    let named = ["on failure", "retries", "event age", "on success"].into_iter().zip(both);
    let changed = named.filter(|(_, (from, to))| from != to);
    changed
        .map(|(setting, (from, to))| difference(resource.clone(), setting, from.as_deref(), to.as_deref()))
        .collect()
}

/// The changes of a function, in a safe order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttachPlan {
    pub(crate) target: Target,
    /// Lambda has no such function.
    pub(crate) is_gone: bool,
    pub(crate) changes: Vec<Change>,
    pub(crate) notes: Vec<String>,
    /// What only a later run can change, and why.
    pub(crate) left: Option<String>,
    /// What `--now` would do to the events for which it is left.
    pub(crate) price_of_now: Option<String>,
    /// What is asked even with `--yes`.
    pub(crate) question: Option<String>,
}

impl AttachPlan {
    pub(crate) fn differences(&self) -> impl Iterator<Item = Difference> {
        self.changes.iter().flat_map(|change| change.differences(&self.target))
    }

    /// Whether nothing is known of the function: its name may be misspelt.
    pub(crate) fn is_about_nothing(&self) -> bool {
        self.is_gone && self.changes.is_empty()
    }

    /// Whether another plan shows the same changes.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        self.differences().eq(other.differences())
    }
}

/// A new permission takes a few seconds to reach every part of AWS. The delays add up to a minute.
pub(crate) fn delays() -> Delays {
    let backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(8));
    let backoff = backoff.and_then(|backoff| backoff.with_jitter(Jitter::None));
    backoff.expect("BUG: constants in order").with_retries(9).seeded(0)
}

impl Change {
    pub(crate) async fn make(
        &self,
        account: &Account,
        target: &Target,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let (arn, lambda) = (&target.arn, &account.lambda);
        match self {
            Self::Keep(tags) => keep(account, arn, tags.iter().cloned()).await,
            Self::Mark(key) => keep(account, arn, [((*key).to_owned(), now().to_string())]).await,
            Self::Forget(tags) => {
                let keys = tags.iter().map(|(key, _)| key.clone()).collect();
                let call = lambda.untag_resource().resource(arn).set_tag_keys(Some(keys));
                call.send().await.map(drop).or_failure("lambda:UntagResource", arn)
            }
            Self::Allow(grant) => grant.give(account).await,
            Self::Withdraw(grant) => grant.withdraw(account).await,
            Self::List(place, is_listed) => {
                let edit = |list: &str| {
                    if *is_listed { list_with(list, arn) } else { list_without(list, arn) }
                };
                handler_setting::edit(account, place, &edit, interrupt).await
            }
            Self::Recursion(allowed) => {
                let setting = RecursiveLoop::from(kept::recursion(*allowed));
                let call = lambda.put_function_recursion_config().function_name(&target.name);
                let answer = call.recursive_loop(setting).send().await;
                answer.map(drop).or_failure("lambda:PutFunctionRecursionConfig", &target.name)
            }
            Self::Watch { alarm, .. } => alarms::watch(account, &target.name, alarm).await,
            Self::Unwatch(alarm) => alarms::unwatch(account, alarm).await,
            Self::Settings(to) if *to == InvokeSettings::default() => {
                let call = lambda.delete_function_event_invoke_config().function_name(&target.name);
                let answer = call.set_qualifier(target.qualifier.clone()).send().await;
                let action = "lambda:DeleteFunctionEventInvokeConfig";
                answer.unless(|it| it.is_resource_not_found_exception(), action, &target.name).map(drop)
            }
            Self::Settings(to) => put_settings(account, target, to).await,
        }
    }
}

async fn keep(
    account: &Account,
    arn: &str,
    tags: impl IntoIterator<Item = (String, String)>,
) -> Result<(), Failure> {
    let call = account.lambda.tag_resource().resource(arn).set_tags(Some(tags.into_iter().collect()));
    call.send().await.map(drop).or_failure("lambda:TagResource", arn)
}

/// The call replaces all settings, so it names each. Lambda refuses a destination until it knows that the function may send
/// there.
async fn put_settings(account: &Account, target: &Target, to: &InvokeSettings) -> Result<(), Failure> {
    let on_failure = to.on_failure.as_ref().map(|arn| OnFailure::builder().destination(arn).build());
    let on_success = to.on_success.as_ref().map(|arn| OnSuccess::builder().destination(arn).build());
    let destinations =
        DestinationConfig::builder().set_on_failure(on_failure).set_on_success(on_success).build();
    let call = account
        .lambda
        .put_function_event_invoke_config()
        .function_name(&target.name)
        .set_qualifier(target.qualifier.clone())
        .set_maximum_retry_attempts(to.retries)
        .set_maximum_event_age_in_seconds(to.event_age)
        .destination_config(destinations);
    let put = retry(|| call.clone().send(), delays()).when(is_not_permitted_yet);
    let answer = put.sleep(tokio::time::sleep).await;
    answer.map(drop).or_failure("lambda:PutFunctionEventInvokeConfig", &target.name)
}

/// "The function's execution role does not have permissions to call SendMessage on …"
fn is_not_permitted_yet(error: &impl ProvideErrorMetadata) -> bool {
    error.code() == Some("InvalidParameterValueException")
        && error.message().is_some_and(|message| message.contains("does not have permissions"))
}

#[cfg(test)]
mod tests {
    use aws_sdk_lambda::error::ErrorMetadata;

    use super::*;

    #[test]
    fn a_permission_that_has_not_spread_yet_is_waited_for() {
        let refused = |code: &str, message: &str| {
            is_not_permitted_yet(&ErrorMetadata::builder().code(code).message(message).build())
        };
        let role =
            "The function's execution role does not have permissions to call SendMessage on arn:aws:sqs:q";
        assert!(refused("InvalidParameterValueException", role));
        assert!(!refused("InvalidParameterValueException", "Invalid queue ARN"));
        assert!(!refused("AccessDeniedException", role));
        assert!(!is_not_permitted_yet(&ErrorMetadata::builder().build()));
    }
}
