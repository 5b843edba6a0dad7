//! The implementation of [`Aws`] that uses the AWS SDK.
//!
//! | file | holds |
//! |---|---|
//! | `connect` | credentials, profiles and regions; the clients |
//! | `clock` | the time on AWS's clock |
//! | `lambda`, `sqs`, `logs`, `cloudwatch`, `cloudformation`, `iam` | each service's responses, as our own types |

mod clock;
mod cloudformation;
mod cloudwatch;
mod connect;
mod iam;
mod lambda;
mod logs;
mod sqs;

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_cloudwatchlogs::operation::create_log_stream::CreateLogStreamError;
use aws_sdk_iam::types::{ContextEntry, ContextKeyTypeEnum, PolicyEvaluationDecisionType};
use aws_sdk_kms::types::KeyManagerType;
use aws_sdk_lambda::operation::RequestId as _;
use aws_sdk_lambda::types::{Environment, InvocationType, RecursiveLoop};
use aws_sdk_sqs::types::QueueAttributeName;
use aws_sdk_ssm::types::ParameterType;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use comeback_delivery::sqs::{Deleter, Sender, Visibility, VisibilityChanger};
use comeback_delivery::{ErrorKind, Retries, classify};
use comeback_engine::{QueueArn, Timestamp};

use crate::aws::{
    Aws, Configuration, EntryResults, Executions, Function, InvokeSettings, KmsKey, LogFilter, LogGroup,
    LogPage, MOST_EVENT_PAGES, Mapping, MetricAlarm, MetricQuery, NewAlarm, NewMessage, ParameterVersion,
    PauseCallback, Receive, Received, Stack, StackEvent, StackResource, Verdict, qualified,
};
use crate::failure::Failure;

pub use connect::SdkAws;

trait Or<T, E> {
    /// Converts an SDK error to a [`Failure`] that names the IAM action (`action`) and the resource (`of`).
    fn or_failure(self, action: &str, of: &str) -> Result<T, Failure>;

    /// Like `or_failure`, but returns `None` if the resource does not exist, that is, if `gone` accepts the error.
    fn unless(self, gone: impl FnOnce(&E) -> bool, action: &str, of: &str) -> Result<Option<T>, Failure>;
}

impl<T, E: ProvideErrorMetadata + Error + 'static> Or<T, E> for Result<T, SdkError<E, HttpResponse>> {
    fn or_failure(self, action: &str, of: &str) -> Result<T, Failure> {
        self.map_err(|error| {
            let error = classify(&error);
            let remedy = match (error.kind, &*error.code) {
                (_, "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired") => {
                    "; the AWS credentials have expired: log in again, or renew the keys"
                }
                (_, "InvalidClientTokenId" | "SignatureDoesNotMatch" | "UnrecognizedClientException") => {
                    "; AWS does not know this access key, or its secret is another: check both"
                }
                (ErrorKind::Denied, _) => "; docs/operate.md lists the permissions of each command",
                _ => "",
            };
            Failure::could_not(format!("{action} on {of}: {error}{remedy}"))
        })
    }

    fn unless(self, gone: impl FnOnce(&E) -> bool, action: &str, of: &str) -> Result<Option<T>, Failure> {
        match self {
            Err(error) if error.as_service_error().is_some_and(gone) => Ok(None),
            answer => answer.or_failure(action, of).map(Some),
        }
    }
}

#[async_trait(?Send)]
impl Aws for SdkAws {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    async fn function(&self, name: &str, qualifier: Option<&str>) -> Result<Option<Function>, Failure> {
        let call = self.lambda.get_function().function_name(name).set_qualifier(qualifier.map(Into::into));
        let of = qualified(name, qualifier);
        let answer = call.send().await;
        let found = answer.unless(|it| it.is_resource_not_found_exception(), "lambda:GetFunction", &of)?;
        Ok(found.map(lambda::function))
    }

    async fn configuration(&self, name: &str, qualifier: Option<&str>) -> Result<Configuration, Failure> {
        let call = self.lambda.get_function_configuration().function_name(name);
        let answer = call.set_qualifier(qualifier.map(Into::into)).send().await;
        let of = qualified(name, qualifier);
        Ok(lambda::configuration_alone(answer.or_failure("lambda:GetFunctionConfiguration", &of)?))
    }

    async fn functions(&self, of: &str) -> Result<Vec<Configuration>, Failure> {
        let functions = self.lambda.list_functions().into_paginator().items().send().try_collect().await;
        let functions = functions.or_failure("lambda:ListFunctions", of)?;
        Ok(functions.into_iter().map(lambda::configuration).collect())
    }

    async fn tags(&self, function_arn: &str) -> Result<BTreeMap<String, String>, Failure> {
        let answer = self.lambda.list_tags().resource(function_arn).send().await;
        let answer = answer.or_failure("lambda:ListTags", function_arn)?;
        Ok(answer.tags.unwrap_or_default().into_iter().collect())
    }

    async fn tag(&self, function_arn: &str, tags: BTreeMap<String, String>) -> Result<(), Failure> {
        let call = self.lambda.tag_resource().resource(function_arn);
        let answer = call.set_tags(Some(tags.into_iter().collect())).send().await;
        answer.map(drop).or_failure("lambda:TagResource", function_arn)
    }

    async fn untag(&self, function_arn: &str, keys: Vec<String>) -> Result<(), Failure> {
        let call = self.lambda.untag_resource().resource(function_arn).set_tag_keys(Some(keys));
        call.send().await.map(drop).or_failure("lambda:UntagResource", function_arn)
    }

    async fn invoke_settings(&self, name: &str) -> Result<BTreeMap<Option<String>, InvokeSettings>, Failure> {
        let call = self.lambda.list_function_event_invoke_configs().function_name(name);
        let configs = call.into_paginator().items().send().try_collect().await;
        let configs = configs.or_failure("lambda:ListFunctionEventInvokeConfigs", name)?;
        Ok(configs.iter().map(lambda::invoke_settings).collect())
    }

    async fn put_invoke_settings(
        &self,
        name: &str,
        qualifier: Option<&str>,
        settings: &InvokeSettings,
    ) -> Result<bool, Failure> {
        // The call replaces all settings, so every setting must be given.
        let call = self
            .lambda
            .put_function_event_invoke_config()
            .function_name(name)
            .set_qualifier(qualifier.map(Into::into))
            .set_maximum_retry_attempts(settings.retries)
            .set_maximum_event_age_in_seconds(settings.event_age)
            .destination_config(lambda::destinations(settings));
        match call.send().await {
            Err(error) if error.as_service_error().is_some_and(lambda::is_not_permitted_yet) => Ok(false),
            answer => answer.or_failure("lambda:PutFunctionEventInvokeConfig", name).map(|_| true),
        }
    }

    async fn delete_invoke_settings(&self, name: &str, qualifier: Option<&str>) -> Result<(), Failure> {
        let call = self.lambda.delete_function_event_invoke_config().function_name(name);
        let answer = call.set_qualifier(qualifier.map(Into::into)).send().await;
        let action = "lambda:DeleteFunctionEventInvokeConfig";
        answer.unless(|it| it.is_resource_not_found_exception(), action, name).map(drop)
    }

    async fn recursion_allowed(&self, name: &str) -> Result<bool, Failure> {
        let answer = self.lambda.get_function_recursion_config().function_name(name).send().await;
        let answer = answer.or_failure("lambda:GetFunctionRecursionConfig", name)?;
        Ok(answer.recursive_loop == Some(RecursiveLoop::Allow))
    }

    async fn allow_recursion(&self, name: &str, allowed: bool) -> Result<(), Failure> {
        let setting = if allowed { RecursiveLoop::Allow } else { RecursiveLoop::Terminate };
        let call = self.lambda.put_function_recursion_config().function_name(name);
        let answer = call.recursive_loop(setting).send().await;
        answer.map(drop).or_failure("lambda:PutFunctionRecursionConfig", name)
    }

    async fn mappings_of_function(&self, name: &str) -> Result<Vec<Mapping>, Failure> {
        lambda::mappings(self.lambda.list_event_source_mappings().function_name(name), name).await
    }

    async fn mappings_of_queue(&self, queue_arn: &str) -> Result<Vec<Mapping>, Failure> {
        let call = self.lambda.list_event_source_mappings().event_source_arn(queue_arn);
        lambda::mappings(call, queue_arn).await
    }

    async fn set_variables(
        &self,
        name: &str,
        variables: BTreeMap<String, String>,
        revision: Option<String>,
    ) -> Result<(), Failure> {
        let environment = Environment::builder().set_variables(Some(variables.into_iter().collect())).build();
        let update = self.lambda.update_function_configuration().function_name(name).environment(environment);
        let answer = update.set_revision_id(revision).send().await;
        answer.map(drop).or_failure("lambda:UpdateFunctionConfiguration", name)
    }

    async fn invoke_async(&self, function: &str, payload: &str) -> Result<String, Failure> {
        let call = self.lambda.invoke().function_name(function).invocation_type(InvocationType::Event);
        let answer = call.payload(payload.as_bytes().into()).send().await;
        let answer = answer.or_failure("lambda:InvokeFunction", function)?;
        let none = || Failure::could_not(format!("Lambda returned no request id for an event of {function}"));
        answer.request_id().map(ToOwned::to_owned).ok_or_else(none)
    }

    async fn executions(&self) -> Result<Option<Executions>, Failure> {
        let answer = self.lambda.get_account_settings().send().await;
        let answer = answer.or_failure("lambda:GetAccountSettings", "the account")?;
        Ok(answer.account_limit().map(|limit| {
            let all = limit.concurrent_executions();
            let unreserved = limit.unreserved_concurrent_executions().unwrap_or(all);
            let [all, unreserved] = [all, unreserved].map(|it| it.unsigned_abs().into());
            Executions { all, unreserved }
        }))
    }

    async fn queue_url(&self, queue_arn: &str) -> Result<Option<String>, Failure> {
        let parsed = queue_arn.parse::<QueueArn>();
        let QueueArn { name, account, .. } =
            parsed.map_err(|problem| Failure::could_not(format!("{queue_arn} {problem}")))?;
        let call = self.sqs.get_queue_url().queue_name(name).queue_owner_aws_account_id(account);
        let answer = call.send().await;
        let answer = answer.unless(|it| it.is_queue_does_not_exist(), "sqs:GetQueueUrl", queue_arn)?;
        Ok(answer.map(|answer| answer.queue_url.unwrap_or_default()))
    }

    async fn queue_attributes(
        &self,
        url: &str,
        names: &[&str],
    ) -> Result<Option<BTreeMap<String, String>>, Failure> {
        let names = match names {
            [] => vec![QueueAttributeName::All],
            names => names.iter().copied().map(QueueAttributeName::from).collect(),
        };
        let call = self.sqs.get_queue_attributes().queue_url(url).set_attribute_names(Some(names));
        let answer = call.send().await.unless(
            |it| it.is_queue_does_not_exist() || it.is_invalid_address(),
            "sqs:GetQueueAttributes",
            url,
        )?;
        let attributes = answer.map(|answer| answer.attributes.unwrap_or_default());
        let named = |(name, value): (QueueAttributeName, String)| (name.as_str().to_owned(), value);
        Ok(attributes.map(|attributes| attributes.into_iter().map(named).collect()))
    }

    async fn receive(&self, url: &str, most: usize, receive: Receive) -> Result<Vec<Received>, Failure> {
        sqs::receive(&self.sqs, url, most, receive).await
    }

    async fn send(&self, url: &str, messages: Vec<NewMessage>, paused: PauseCallback<'_>) -> EntryResults {
        // SQS may have accepted messages without responding, and a second call would duplicate them.
        let sender = Sender::new(self.sqs.clone(), url).retries(Retries::none()).concurrency(sqs::AT_ONCE);
        sqs::deliver(sender, messages.into_iter().map(sqs::new_message), paused).await
    }

    async fn delete(
        &self,
        url: &str,
        receipt_handles: Vec<String>,
        paused: PauseCallback<'_>,
    ) -> EntryResults {
        let deleter = Deleter::new(self.sqs.clone(), url).concurrency(sqs::AT_ONCE);
        sqs::deliver(deleter, receipt_handles, paused).await
    }

    async fn hide(
        &self,
        url: &str,
        messages: Vec<(String, Duration)>,
        repeats: bool,
        paused: PauseCallback<'_>,
    ) -> EntryResults {
        let retries = if repeats { Retries::default() } else { Retries::none() };
        let changer = VisibilityChanger::new(self.sqs.clone(), url);
        let changer = changer.retries(retries).concurrency(sqs::HIDING);
        let hidden =
            messages.into_iter().map(|(receipt_handle, timeout)| Visibility { receipt_handle, timeout });
        sqs::deliver(changer, hidden, paused).await
    }

    async fn parameter(&self, name: &str) -> Result<Option<ParameterVersion>, Failure> {
        let answer = self.ssm.get_parameter().name(name).send().await;
        let answer = answer.unless(|it| it.is_parameter_not_found(), "ssm:GetParameter", name)?;
        Ok(answer.map(|answer| {
            let parameter = answer.parameter;
            let number = parameter.as_ref().map_or(0, |parameter| parameter.version);
            let text = parameter.and_then(|parameter| parameter.value).unwrap_or_default();
            ParameterVersion { number, text, at: None, by: None }
        }))
    }

    async fn parameter_history(&self, name: &str) -> Result<Vec<ParameterVersion>, Failure> {
        let history = self.ssm.get_parameter_history().name(name).into_paginator();
        let answer: Result<Vec<_>, _> = history.send().try_collect().await;
        let pages = answer.unless(|it| it.is_parameter_not_found(), "ssm:GetParameterHistory", name)?;
        let versions = pages.into_iter().flatten().filter_map(|page| page.parameters).flatten();
        let version = |it: aws_sdk_ssm::types::ParameterHistory| ParameterVersion {
            number: it.version,
            at: it
                .last_modified_date
                .and_then(|at| u64::try_from(at.to_millis().ok()?).ok())
                .map(Timestamp::from_millis),
            by: it.last_modified_user,
            text: it.value.unwrap_or_default(),
        };
        let mut versions: Vec<ParameterVersion> = versions.map(version).collect();
        versions.sort_by_key(|version| version.number);
        Ok(versions)
    }

    async fn put_parameter(&self, name: &str, text: &str, new: bool) -> Result<Option<i64>, Failure> {
        let call = self.ssm.put_parameter().name(name).r#type(ParameterType::String).value(text);
        let answer = call.overwrite(!new).send().await;
        let written = answer.unless(
            |it| it.is_too_many_updates() || (new && it.is_parameter_already_exists()),
            "ssm:PutParameter",
            name,
        )?;
        Ok(written.map(|written| written.version()))
    }

    async fn log_page(
        &self,
        filter: &LogFilter<'_>,
        token: Option<String>,
    ) -> Result<Option<LogPage>, Failure> {
        let call = logs::call(self.logs.filter_log_events(), filter).set_next_token(token);
        let answer = call.send().await;
        let answer =
            answer.unless(|it| it.is_resource_not_found_exception(), "logs:FilterLogEvents", filter.group)?;
        Ok(answer.map(logs::page))
    }

    async fn put_log_line(
        &self,
        group: &str,
        stream: &str,
        at: Timestamp,
        line: &str,
    ) -> Result<bool, Failure> {
        let call = self.logs.put_log_events().log_group_name(group).log_stream_name(stream);
        let answer = call.log_events(logs::line(at, line)).send().await;
        let action = "logs:PutLogEvents";
        let answer = answer.unless(|it| it.is_resource_not_found_exception(), action, group)?;
        let Some(answer) = answer else { return Ok(false) };
        match answer.rejected_log_events_info() {
            Some(_) => Err(Failure::could_not(format!("{action} on {group}: the line's time was rejected"))),
            None => Ok(true),
        }
    }

    async fn create_log_stream(&self, group: &str, stream: &str) -> Result<(), Failure> {
        let answer = self.logs.create_log_stream().log_group_name(group).log_stream_name(stream).send().await;
        let exists = |it: &CreateLogStreamError| it.is_resource_already_exists_exception();
        answer.unless(exists, "logs:CreateLogStream", group).map(drop)
    }

    async fn log_group(&self, name: &str) -> Result<Option<LogGroup>, Failure> {
        let pages = self.logs.describe_log_groups().log_group_name_prefix(name).into_paginator();
        let groups = pages.items().send().try_collect().await.or_failure("logs:DescribeLogGroups", name)?;
        Ok(groups.into_iter().find(|it| it.log_group_name() == Some(name)).map(|it| logs::group(&it)))
    }

    async fn metrics(&self, query: MetricQuery<'_>, of: &str) -> Result<Vec<Vec<(Timestamp, f64)>>, Failure> {
        let call = cloudwatch::call(self.cloudwatch.get_metric_data(), &query);
        let answer = call.send().await.or_failure("cloudwatch:GetMetricData", of)?;
        Ok(cloudwatch::points(&answer, query.series.len()))
    }

    async fn alarms(&self, of: &str) -> Result<Vec<MetricAlarm>, Failure> {
        let pages = self.cloudwatch.describe_alarms().into_paginator().send().try_collect().await;
        let pages = pages.or_failure("cloudwatch:DescribeAlarms", of)?;
        let alarms = pages.into_iter().flat_map(|page| page.metric_alarms.unwrap_or_default());
        Ok(alarms.map(cloudwatch::alarm).collect())
    }

    async fn put_alarm(&self, alarm: &NewAlarm) -> Result<(), Failure> {
        let call = cloudwatch::put(self.cloudwatch.put_metric_alarm(), alarm);
        call.send().await.map(drop).or_failure("cloudwatch:PutMetricAlarm", &alarm.name)
    }

    async fn delete_alarm(&self, name: &str) -> Result<(), Failure> {
        let answer = self.cloudwatch.delete_alarms().alarm_names(name).send().await;
        answer.unless(|it| it.is_resource_not_found(), "cloudwatch:DeleteAlarms", name).map(drop)
    }

    async fn stack(&self, name: &str) -> Result<Option<Stack>, Failure> {
        let answer = self.cloudformation.describe_stacks().stack_name(name).send().await;
        let answer = answer.unless(cloudformation::is_gone, "cloudformation:DescribeStacks", name)?;
        let stack = answer.and_then(|it| it.stacks?.into_iter().next());
        Ok(stack.map(|stack| cloudformation::stack(name, stack)))
    }

    async fn stack_resources(&self, name: &str, of: &str) -> Result<Option<Vec<StackResource>>, Failure> {
        let pages = self.cloudformation.list_stack_resources().stack_name(name).into_paginator();
        let resources: Result<Vec<_>, _> = pages.items().send().try_collect().await;
        let resources = resources.unless(cloudformation::is_gone, "cloudformation:ListStackResources", of)?;
        Ok(resources.map(|all| all.into_iter().map(cloudformation::resource).collect()))
    }

    async fn stack_events(&self, name: &str) -> Result<Vec<StackEvent>, Failure> {
        let mut pages = self.cloudformation.describe_stack_events().stack_name(name).into_paginator().send();
        let mut events = Vec::new();
        for _ in 0..MOST_EVENT_PAGES {
            let page = match pages.try_next().await.or_failure("cloudformation:DescribeStackEvents", name) {
                Ok(Some(page)) => page,
                Err(failure) if events.is_empty() => return Err(failure),
                // The newest events say more than the failure to read older ones.
                Ok(None) | Err(_) => break,
            };
            events.extend(page.stack_events.unwrap_or_default().into_iter().map(cloudformation::event));
            if events.iter().any(StackEvent::begins_update) {
                break;
            }
        }
        Ok(events)
    }

    async fn update_stack(&self, stack: &Stack, parameter: &str, value: &str) -> Result<(), Failure> {
        let call = cloudformation::update(self.cloudformation.update_stack(), stack, parameter, value);
        call.send().await.map(drop).or_failure("cloudformation:UpdateStack", &stack.name)
    }

    async fn may(&self, role_arn: &str, action: &str, resource_arn: &str) -> Result<Verdict, Failure> {
        let context = action.starts_with("kms:").then(|| vec![self.via_sqs()]);
        let simulate = self.iam.simulate_principal_policy().policy_source_arn(role_arn);
        let call = simulate.action_names(action).resource_arns(resource_arn).set_context_entries(context);
        let answer = call.send().await.or_failure("iam:SimulatePrincipalPolicy", role_arn)?;
        match answer.evaluation_results().first().map(|result| &result.eval_decision) {
            Some(PolicyEvaluationDecisionType::Allowed) => Ok(Verdict::Allowed),
            Some(PolicyEvaluationDecisionType::ExplicitDeny) => Ok(Verdict::Denied),
            Some(PolicyEvaluationDecisionType::ImplicitDeny) => Ok(Verdict::NotAllowed),
            other => {
                let decision = other.map_or("no decision", |other| other.as_str());
                let what = format!("whether {role_arn} may call {action} on {resource_arn}");
                Err(Failure::could_not(format!("IAM answered {decision} for {what}")))
            }
        }
    }

    async fn role_policy(&self, role: &str, policy: &str) -> Result<Option<String>, Failure> {
        let answer = self.iam.get_role_policy().role_name(role).policy_name(policy).send().await;
        let answer = answer.unless(|it| it.is_no_such_entity_exception(), "iam:GetRolePolicy", role)?;
        let document = answer.map(|answer| iam::document(&answer.policy_document)).transpose();
        document.map_err(|error| {
            Failure::could_not(format!("policy {policy} of role {role} is unreadable: {error}"))
        })
    }

    async fn role_policies(&self, role: &str) -> Result<Vec<String>, Failure> {
        let names = self.iam.list_role_policies().role_name(role).into_paginator().items().send();
        names.try_collect().await.or_failure("iam:ListRolePolicies", role)
    }

    async fn put_role_policy(&self, role: &str, policy: &str, document: &str) -> Result<(), Failure> {
        let call = self.iam.put_role_policy().role_name(role).policy_name(policy).policy_document(document);
        call.send().await.map(drop).or_failure("iam:PutRolePolicy", role)
    }

    async fn delete_role_policy(&self, role: &str, policy: &str) -> Result<(), Failure> {
        let answer = self.iam.delete_role_policy().role_name(role).policy_name(policy).send().await;
        answer.unless(|it| it.is_no_such_entity_exception(), "iam:DeleteRolePolicy", role).map(drop)
    }

    async fn key(&self, id: &str) -> Result<Option<KmsKey>, Failure> {
        let answer = self.kms.describe_key().key_id(id).send().await;
        let answer = answer.unless(|it| it.is_not_found_exception(), "kms:DescribeKey", id)?;
        Ok(answer.map(|answer| {
            let metadata = answer.key_metadata;
            let manager = metadata.as_ref().and_then(|key| key.key_manager.clone());
            let state = metadata.as_ref().and_then(|key| Some(key.key_state.as_ref()?.as_str().to_owned()));
            KmsKey {
                arn: metadata.and_then(|key| key.arn),
                is_managed_by_aws: manager == Some(KeyManagerType::Aws),
                state,
            }
        }))
    }
}

impl SdkAws {
    /// Returns the context entry for a call that uses a KMS key through SQS. A policy may require this entry. Its
    /// value ends with `amazonaws.com` in every partition.
    fn via_sqs(&self) -> ContextEntry {
        ContextEntry::builder()
            .context_key_name("kms:ViaService")
            .context_key_type(ContextKeyTypeEnum::String)
            .context_key_values(format!(
                "sqs.{}.amazonaws.com",
                self.config().region().map_or("", |it| it.as_ref())
            ))
            .build()
    }
}

#[cfg(test)]
mod tests {
    use aws_config::{BehaviorVersion, Region};
    use aws_sdk_sqs::config::Credentials;
    use aws_smithy_http_client::test_util::infallible_client_fn;

    use super::*;

    /// Returns an SDK client that sends nothing: `answer` turns a request's body into a status, an error type and a
    /// body.
    pub(super) async fn answering(
        answer: impl Fn(&str) -> (u16, &'static str, String) + Send + Sync + 'static,
    ) -> SdkAws {
        answering_with(None, answer).await
    }

    pub(super) async fn answering_with(
        header: Option<(&'static str, &'static str)>,
        answer: impl Fn(&str) -> (u16, &'static str, String) + Send + Sync + 'static,
    ) -> SdkAws {
        let http_client = infallible_client_fn(move |request: http::Request<_>| {
            let body: Option<&[u8]> = request.body().bytes();
            let (status, error, body) = answer(str::from_utf8(body.unwrap_or_default()).unwrap());
            let response = http::Response::builder().status(status).header("x-amzn-errortype", error);
            header
                .into_iter()
                .fold(response, |response, (name, value)| response.header(name, value))
                .body(body)
                .unwrap()
        });
        let config = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::from_static("eu-west-1"))
            .credentials_provider(Credentials::new("key", "secret", None, None, "test"))
            .http_client(http_client)
            .load();
        SdkAws::new(&config.await)
    }

    #[tokio::test]
    async fn expired_credentials_are_not_a_missing_permission() {
        for (code, remedy) in [
            ("ExpiredTokenException", "; the AWS credentials have expired: log in again, or renew the keys"),
            (
                "UnrecognizedClientException",
                "; AWS does not know this access key, or its secret is another: check both",
            ),
            ("AccessDeniedException", "; docs/operate.md lists the permissions of each command"),
            ("ValidationException", ""),
        ] {
            let account = answering(move |_| (400, code, "{}".into())).await;
            let failure = account.parameter("/pauses").await.unwrap_err().to_string();
            assert_eq!(failure, format!("ssm:GetParameter on /pauses: {code}: no message{remedy}"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn oversized_answer_is_an_error() {
        let ask = async |spaces: usize| {
            let account = answering(move |_| (200, "", " ".repeat(spaces) + "{}")).await;
            account.queue_url("arn:aws:sqs:eu-west-1:123456789012:dead").await.map(drop)
        };
        assert_eq!(ask(10 << 20).await, Ok(()));
        let failure = ask(64 << 20).await.unwrap_err().to_string();
        assert!(failure.ends_with("length limit exceeded"), "{failure}");
    }

    #[tokio::test]
    async fn unpermitted_destination_is_not_a_failure() {
        let put = async |message: &'static str| {
            let body = serde_json::json!({"message": message}).to_string();
            let account = answering(move |_| (400, "InvalidParameterValueException", body.clone())).await;
            account.put_invoke_settings("orders", None, &InvokeSettings::default()).await
        };
        let role = "The function's execution role does not have permissions to call SendMessage on q";
        assert_eq!(put(role).await, Ok(false));
        let action = "lambda:PutFunctionEventInvokeConfig on orders: InvalidParameterValueException: ";
        let failure = put("Invalid queue ARN").await.unwrap_err().to_string();
        assert_eq!(failure, format!("{action}Invalid queue ARN"));
    }

    fn xml(operation: &str, result: &str) -> String {
        let namespace = "https://iam.amazonaws.com/doc/2010-05-08/";
        format!(
            "<{operation}Response xmlns=\"{namespace}\"><{operation}Result>{result}</{operation}Result></{operation}Response>"
        )
    }

    #[tokio::test]
    async fn key_right_is_simulated_through_sqs() {
        let may = async |action: &str, decision: &'static str, via_sqs: bool| {
            let account = answering(move |request| {
                assert_eq!(request.contains("kms%3AViaService"), via_sqs, "{request}");
                assert_eq!(request.contains("sqs.eu-west-1.amazonaws.com"), via_sqs, "{request}");
                let member =
                    format!("<EvalActionName>a</EvalActionName><EvalDecision>{decision}</EvalDecision>");
                let result = format!("<EvaluationResults><member>{member}</member></EvaluationResults>");
                (200, "", xml("SimulatePrincipalPolicy", &result))
            });
            account.await.may("arn:role", action, "arn:resource").await
        };
        assert_eq!(may("kms:Decrypt", "allowed", true).await, Ok(Verdict::Allowed));
        assert_eq!(may("sqs:SendMessage", "explicitDeny", false).await, Ok(Verdict::Denied));
        assert_eq!(may("sqs:SendMessage", "implicitDeny", false).await, Ok(Verdict::NotAllowed));
        let failure = may("sqs:SendMessage", "perhaps", false).await.unwrap_err().to_string();
        assert_eq!(
            failure,
            "IAM answered perhaps for whether arn:role may call sqs:SendMessage on arn:resource"
        );
    }

    #[tokio::test]
    async fn aws_manages_a_key_if_kms_says_so() {
        let is_managed_by_aws = async |manager: &'static str| {
            let key = serde_json::json!({"KeyId": "1", "KeyManager": manager, "KeyState": "Enabled"});
            let body = serde_json::json!({"KeyMetadata": key}).to_string();
            let account = answering(move |_| (200, "", body.clone())).await;
            account.key("alias/aws/sqs").await.unwrap().unwrap().is_managed_by_aws
        };
        assert!(is_managed_by_aws("AWS").await && !is_managed_by_aws("CUSTOMER").await);
    }

    #[tokio::test]
    async fn a_roles_policy_is_json() {
        let read = async |document: &'static str| {
            let account = answering(move |_| {
                let named = "<RoleName>r</RoleName><PolicyName>p</PolicyName>";
                let document = format!("{named}<PolicyDocument>{document}</PolicyDocument>");
                (200, "", xml("GetRolePolicy", &document))
            });
            account.await.role_policy("r", "p").await
        };
        assert_eq!(read("%7B%22Version%22%3A1%7D").await, Ok(Some(r#"{"Version":1}"#.to_owned())));
        let failure = read("%FF").await.unwrap_err().to_string();
        assert!(failure.starts_with("policy p of role r is unreadable: "), "{failure}");
    }
}
