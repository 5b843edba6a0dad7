//! Implements the trait `Aws` for a simulated account.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use async_trait::async_trait;
use comeback_engine::{SQS_MESSAGE_BYTES, Timestamp};

use super::calls::{Fault, entry};
use super::{
    AccountState, Function, Invocation, NO_QUEUE, NO_QUEUE_MESSAGE, SimulatedAws, SimulatedQueue, queue_url,
};
use crate::aws::simulated::function::action_of;
use crate::aws::{
    self, Aws, Configuration, EntryFailure, EntryFailureKind, EntryResults, Executions, InvokeSettings,
    KmsKey, LogFilter, LogPage, Mapping, MetricAlarm, MetricQuery, NewAlarm, NewMessage, ParameterVersion,
    PauseCallback, Receive, Received, StackEvent, StackResource, Verdict, qualified,
};
use crate::failure::Failure;

/// The maximum number of entries in a batch call to SQS.
const ENTRIES_OF_A_CALL: usize = 10;

/// The number of concurrent batch calls, which together take as long as a single call.
const CALLS_AT_ONCE: usize = 16;

impl SimulatedAws {
    /// Performs one simulated AWS call; the error of `effect` is AWS's error code and message.
    async fn call<T>(
        &self,
        action: &'static str,
        of: &str,
        effect: impl FnOnce(&mut AccountState) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let is_answer_lost = self.arrive(action, of).await?;
        let result = effect(&mut self.state()).map_err(|error| failed(action, of, &error));
        if is_answer_lost { Err(failed(action, of, NO_ANSWER)) } else { result }
    }

    /// Returns true if the call takes effect but its response is lost, or false if the response arrives. Fails if the
    /// call has no effect.
    async fn arrive(&self, action: &str, of: &str) -> Result<bool, Failure> {
        self.travel().await;
        match self.begin(action, of, 0).await {
            Err(denied) => {
                let remedy = "; docs/operate.md lists the permissions of each command";
                Err(failed(action, of, &format!("{denied}{remedy}")))
            }
            Ok(Some(Fault::CallFails | Fault::EntriesFail(_))) => Err(failed(action, of, UNAVAILABLE)),
            Ok(fault) => Ok(fault == Some(Fault::AnswerLost)),
        }
    }

    /// Makes batch calls one after another, until one is denied or the queue does not exist.
    async fn batch<E>(
        &self,
        action: &'static str,
        url: &str,
        entries: Vec<E>,
        size: impl Fn(&E) -> usize,
        effect: impl Fn(&mut SimulatedQueue, Timestamp, E) -> Result<(), EntryFailure>,
    ) -> EntryResults {
        let all = entries.len();
        let mut entries: VecDeque<E> = entries.into();
        let mut answers = Vec::with_capacity(all);
        let mut calls = 0;
        while !entries.is_empty() {
            if calls % CALLS_AT_ONCE == 0 {
                self.travel().await;
            }
            calls += 1;
            let call = entries_of_a_call(&mut entries, &size);
            let these = call.len();
            let failed = |failure: &EntryFailure| vec![Err(failure.clone()); these];
            let fault = match self.begin(action, url, these).await {
                Ok(fault) => fault,
                Err(denied) => {
                    answers.extend(failed(&denied));
                    break;
                }
            };
            let state = &mut *self.state();
            let now = state.now();
            let Ok(queue) = state.queue_of(url) else {
                answers.extend(failed(&entry(EntryFailureKind::Missing, NO_QUEUE, NO_QUEUE_MESSAGE)));
                break;
            };
            let made: Vec<_> = call
                .into_iter()
                .enumerate()
                .map(|(index, one)| match &fault {
                    Some(Fault::CallFails) => Err(transient(UNAVAILABLE)),
                    Some(Fault::EntriesFail(these)) if these.contains(&index) => Err(transient(UNAVAILABLE)),
                    Some(Fault::AnswerLost) => effect(queue, now, one).and(Err(transient(NO_ANSWER))),
                    _ => effect(queue, now, one),
                })
                .collect();
            let (name, done) = (queue.name().to_owned(), made.iter().filter(|answer| answer.is_ok()).count());
            if let Some(sum) = self.sum_of(action) {
                state.count(now, "AWS/SQS", ("QueueName", &name), sum, done);
            }
            answers.extend(made);
        }
        let text = "not tried, because the call before failed for every entry".to_owned();
        let not_tried = EntryFailure { kind: EntryFailureKind::NotTried, code: String::new(), text };
        answers.resize(all, Err(not_tried));
        answers
    }

    /// The CloudWatch metric that counts the messages of a send or delete action. `None` for other actions, or if no
    /// deployment runs in the account.
    fn sum_of(&self, action: &str) -> Option<&'static str> {
        self.world.running.get()?;
        match action {
            "sqs:SendMessage" => Some("NumberOfMessagesSent"),
            "sqs:DeleteMessage" => Some("NumberOfMessagesDeleted"),
            _ => None,
        }
    }
}

const UNAVAILABLE: &str = "ServiceUnavailable: Service is unable to handle request.";
const NO_ANSWER: &str = "no answer";

fn failed(action: &str, of: &str, text: &str) -> Failure {
    Failure::could_not(format!("{action} on {of}: {text}"))
}

/// A transient failure, with AWS's error code if AWS responded.
fn transient(text: &str) -> EntryFailure {
    let code = text.split_once(": ").map_or("", |(code, _)| code).to_owned();
    EntryFailure { kind: EntryFailureKind::Transient, code, text: text.to_owned() }
}

/// Removes and returns the entries of the next batch call. A batch call has the same size limit as a single message.
fn entries_of_a_call<E>(entries: &mut VecDeque<E>, size: impl Fn(&E) -> usize) -> Vec<E> {
    let mut bytes = 0;
    let mut call = Vec::new();
    while let Some(entry) = entries.front() {
        bytes += size(entry);
        if call.len() == ENTRIES_OF_A_CALL || (bytes > SQS_MESSAGE_BYTES && !call.is_empty()) {
            break;
        }
        call.extend(entries.pop_front());
    }
    call
}

/// The size of a message as SQS counts it.
fn size(message: &NewMessage) -> usize {
    let attributes = message.attributes.iter().map(|(name, attribute)| {
        let value = attribute.bytes().expect("BUG: a binary value is not Base64");
        name.len() + attribute.data_type.len() + value.len()
    });
    message.body.len() + attributes.sum::<usize>()
}

fn no_function(name: &str) -> String {
    format!("ResourceNotFoundException: Function not found: {name}")
}

fn named<'a>(state: &'a mut AccountState, name: &str) -> Result<&'a mut Function, String> {
    state.function(name).map(|(function, _)| function).ok_or_else(|| no_function(name))
}

fn configured(state: &mut AccountState, name: &str, qualifier: Option<&str>) -> Option<Configuration> {
    let (function, of_name) = state.function(name)?;
    function.configuration(qualifier.or(of_name.as_deref()))
}

/// The key of a qualifier's settings in `Function::invoke_settings`.
fn settings_key(qualifier: Option<&str>) -> Option<String> {
    qualifier.filter(|qualifier| *qualifier != "$LATEST").map(ToOwned::to_owned)
}

/// Replaces a qualifier's settings for asynchronous invocations. Returns false if the function's role has no permission
/// to send to one of the destinations, or if the permission has not taken effect yet.
fn put_settings(
    state: &mut AccountState,
    name: &str,
    qualifier: Option<&str>,
    settings: &InvokeSettings,
) -> Result<bool, String> {
    Function::check(settings)?;
    let named = qualified(name, qualifier);
    let configuration = configured(state, name, qualifier).ok_or_else(|| no_function(&named))?;
    let role = configuration.role_arn.rsplit('/').next().unwrap_or_default();
    let (now, takes) = (state.now(), state.permissions_take);
    let may_send = |arn: &String| {
        state.roles.get(role).is_some_and(|role| {
            let is_known = role.changed.is_none_or(|at| now.since(at) >= takes);
            is_known && role.may(action_of(arn), arn) == Verdict::Allowed
        })
    };
    if !settings.on_failure.iter().chain(&settings.on_success).all(may_send) {
        return Ok(false);
    }
    let (function, of_name) = state.function(name).ok_or_else(|| no_function(&named))?;
    function.invoke_settings.insert(settings_key(qualifier.or(of_name.as_deref())), settings.clone());
    Ok(true)
}

#[async_trait(?Send)]
impl Aws for SimulatedAws {
    fn now(&self) -> Timestamp {
        self.callers_time()
    }

    async fn sleep(&self, duration: Duration) {
        let until = self.time().saturating_add(duration);
        if until == self.time() {
            super::calls::yield_now().await;
        }
        while self.time() < until {
            self.clock().sleep_until(until).await;
        }
    }

    async fn function(&self, name: &str, qualifier: Option<&str>) -> Result<Option<aws::Function>, Failure> {
        let tags_denied = self.is_denied("lambda:ListTags");
        let effect = |state: &mut AccountState| {
            let Some(configuration) = configured(state, name, qualifier) else { return Ok(None) };
            let function = named(state, name)?;
            let tags = if tags_denied { BTreeMap::new() } else { function.tags.clone() };
            let tags_error = tags_denied
                .then(|| "AccessDeniedException: not authorized to perform: lambda:ListTags".into());
            let reserved_concurrency = function.reserved_concurrency;
            Ok(Some(aws::Function { configuration, tags, tags_error, reserved_concurrency }))
        };
        self.call("lambda:GetFunction", &qualified(name, qualifier), effect).await
    }

    async fn configuration(&self, name: &str, qualifier: Option<&str>) -> Result<Configuration, Failure> {
        let of = qualified(name, qualifier);
        let effect =
            |state: &mut AccountState| configured(state, name, qualifier).ok_or_else(|| no_function(&of));
        self.call("lambda:GetFunctionConfiguration", &of, effect).await
    }

    async fn functions(&self, of: &str) -> Result<Vec<Configuration>, Failure> {
        let effect = |state: &mut AccountState| {
            Ok(state.functions.values().map(|it| it.configuration.clone()).collect())
        };
        self.call("lambda:ListFunctions", of, effect).await
    }

    async fn tags(&self, function_arn: &str) -> Result<BTreeMap<String, String>, Failure> {
        self.call("lambda:ListTags", function_arn, |state| Ok(named(state, function_arn)?.tags.clone())).await
    }

    async fn tag(&self, function_arn: &str, tags: BTreeMap<String, String>) -> Result<(), Failure> {
        self.call("lambda:TagResource", function_arn, |state| named(state, function_arn)?.tag(tags)).await
    }

    async fn untag(&self, function_arn: &str, keys: Vec<String>) -> Result<(), Failure> {
        let effect = |state: &mut AccountState| {
            named(state, function_arn)?.tags.retain(|key, _| !keys.contains(key));
            Ok(())
        };
        self.call("lambda:UntagResource", function_arn, effect).await
    }

    async fn invoke_settings(&self, name: &str) -> Result<BTreeMap<Option<String>, InvokeSettings>, Failure> {
        let effect = |state: &mut AccountState| Ok(named(state, name)?.invoke_settings.clone());
        self.call("lambda:ListFunctionEventInvokeConfigs", name, effect).await
    }

    async fn put_invoke_settings(
        &self,
        name: &str,
        qualifier: Option<&str>,
        settings: &InvokeSettings,
    ) -> Result<bool, Failure> {
        let effect = |state: &mut AccountState| put_settings(state, name, qualifier, settings);
        self.call("lambda:PutFunctionEventInvokeConfig", name, effect).await
    }

    async fn delete_invoke_settings(&self, name: &str, qualifier: Option<&str>) -> Result<(), Failure> {
        let effect = |state: &mut AccountState| {
            if let Some((function, of_name)) = state.function(name) {
                function.invoke_settings.remove(&settings_key(qualifier.or(of_name.as_deref())));
            }
            Ok(())
        };
        self.call("lambda:DeleteFunctionEventInvokeConfig", name, effect).await
    }

    async fn recursion_allowed(&self, name: &str) -> Result<bool, Failure> {
        let effect = |state: &mut AccountState| Ok(named(state, name)?.recursion_allowed);
        self.call("lambda:GetFunctionRecursionConfig", name, effect).await
    }

    async fn allow_recursion(&self, name: &str, allowed: bool) -> Result<(), Failure> {
        let effect = |state: &mut AccountState| {
            named(state, name)?.recursion_allowed = allowed;
            Ok(())
        };
        self.call("lambda:PutFunctionRecursionConfig", name, effect).await
    }

    async fn mappings_of_function(&self, name: &str) -> Result<Vec<Mapping>, Failure> {
        let effect = |state: &mut AccountState| {
            let Some(configuration) = configured(state, name, None) else { return Ok(Vec::new()) };
            let of_function = state.mappings.iter().filter(|it| it.function_arn == configuration.arn);
            Ok(of_function.cloned().collect())
        };
        self.call("lambda:ListEventSourceMappings", name, effect).await
    }

    async fn mappings_of_queue(&self, queue_arn: &str) -> Result<Vec<Mapping>, Failure> {
        let effect = |state: &mut AccountState| {
            Ok(state.mappings.iter().filter(|it| it.queue_arn == queue_arn).cloned().collect())
        };
        self.call("lambda:ListEventSourceMappings", queue_arn, effect).await
    }

    async fn set_variables(
        &self,
        name: &str,
        variables: BTreeMap<String, String>,
        revision: Option<String>,
    ) -> Result<(), Failure> {
        let effect = |state: &mut AccountState| named(state, name)?.set_variables(variables, revision);
        self.call("lambda:UpdateFunctionConfiguration", name, effect).await
    }

    async fn invoke_async(&self, function: &str, payload: &str) -> Result<String, Failure> {
        let effect = |state: &mut AccountState| {
            state.requests += 1;
            let request_id = format!("00000000-0000-4000-8000-{:012x}", state.requests);
            configured(state, function, None).ok_or_else(|| no_function(function))?;
            let invocation = Invocation { request_id: request_id.clone(), payload: payload.to_owned() };
            named(state, function)?.invocations.push(invocation);
            Ok(request_id)
        };
        self.call("lambda:InvokeFunction", function, effect).await
    }

    async fn executions(&self) -> Result<Option<Executions>, Failure> {
        self.call("lambda:GetAccountSettings", "the account", |state| Ok(state.executions)).await
    }

    async fn queue_url(&self, queue_arn: &str) -> Result<Option<String>, Failure> {
        let effect = |state: &mut AccountState| {
            let queue = state.queues.values().find(|queue| queue.arn == queue_arn);
            Ok(queue.map(|queue| queue_url(queue.name())))
        };
        self.call("sqs:GetQueueUrl", queue_arn, effect).await
    }

    async fn queue_attributes(
        &self,
        url: &str,
        names: &[&str],
    ) -> Result<Option<BTreeMap<String, String>>, Failure> {
        let effect = |state: &mut AccountState| {
            let now = state.now();
            let Ok(queue) = state.queue_of(url) else { return Ok(None) };
            let mut attributes = queue.all_attributes(now);
            attributes.retain(|name, _| names.is_empty() || names.contains(&&**name));
            Ok(Some(attributes))
        };
        self.call("sqs:GetQueueAttributes", url, effect).await
    }

    async fn receive(&self, url: &str, most: usize, receive: Receive) -> Result<Vec<Received>, Failure> {
        let action = "sqs:ReceiveMessage";
        let is_answer_lost = self.arrive(action, url).await?;
        let until = self.time().saturating_add(receive.wait);
        loop {
            let received = self.state().receive(url, most, receive.visibility);
            let received = received.map_err(|error| failed(action, url, &error))?;
            // Without a response, the SDK receives again, but the first receive has hidden the messages.
            if is_answer_lost {
                return Ok(Vec::new());
            }
            if !received.is_empty() || self.time() >= until {
                return Ok(received);
            }
            let change = self.state().queue_of(url).ok().and_then(|queue| queue.next_change());
            self.clock().sleep_until(change.map_or(until, |change| change.min(until))).await;
        }
    }

    async fn send(&self, url: &str, messages: Vec<NewMessage>, _: PauseCallback<'_>) -> EntryResults {
        let effect = |queue: &mut SimulatedQueue, now, message: NewMessage| {
            let most = queue.attributes.get("MaximumMessageSize").and_then(|it| it.parse().ok());
            if size(&message) > most.unwrap_or(SQS_MESSAGE_BYTES) {
                let text = "One or more parameters are invalid. Reason: Message is too long.";
                return Err(entry(EntryFailureKind::Refused, "InvalidParameterValue", text));
            }
            queue.send(now, Duration::ZERO, message);
            Ok(())
        };
        self.batch("sqs:SendMessage", url, messages, size, effect).await
    }

    async fn delete(&self, url: &str, receipt_handles: Vec<String>, _: PauseCallback<'_>) -> EntryResults {
        let effect = |queue: &mut SimulatedQueue, now, handle: String| queue.delete(now, &handle);
        self.batch("sqs:DeleteMessage", url, receipt_handles, |_| 0, effect).await
    }

    async fn hide(
        &self,
        url: &str,
        messages: Vec<(String, Duration)>,
        _: bool,
        _: PauseCallback<'_>,
    ) -> EntryResults {
        let effect = |queue: &mut SimulatedQueue, now, (handle, timeout): (String, Duration)| {
            queue.change_visibility(now, &handle, timeout)
        };
        self.batch("sqs:ChangeMessageVisibility", url, messages, |_| 0, effect).await
    }

    async fn parameter(&self, name: &str) -> Result<Option<ParameterVersion>, Failure> {
        let effect = |state: &mut AccountState| {
            let version = state.parameters.get(name).and_then(|it| it.versions.last()).cloned();
            Ok(version.map(|version| ParameterVersion { at: None, by: None, ..version }))
        };
        self.call("ssm:GetParameter", name, effect).await
    }

    async fn parameter_history(&self, name: &str) -> Result<Vec<ParameterVersion>, Failure> {
        let effect = |state: &mut AccountState| {
            Ok(state.parameters.get(name).map(|it| it.versions.clone()).unwrap_or_default())
        };
        self.call("ssm:GetParameterHistory", name, effect).await
    }

    async fn put_parameter(&self, name: &str, text: &str, new: bool) -> Result<Option<i64>, Failure> {
        let effect = |state: &mut AccountState| {
            if new && state.parameters.contains_key(name) {
                return Ok(None);
            }
            let now = state.now();
            let mut parameter = state.parameters.get(name).cloned().unwrap_or_default();
            if parameter.refuses > 0 {
                parameter.refuses -= 1;
                state.parameters.insert(name.to_owned(), parameter);
                return Ok(None);
            }
            let written = parameter.put(now, &self.caller.arn, text)?;
            state.parameters.insert(name.to_owned(), parameter);
            Ok(Some(written))
        };
        self.call("ssm:PutParameter", name, effect).await
    }

    async fn log_page(
        &self,
        filter: &LogFilter<'_>,
        token: Option<String>,
    ) -> Result<Option<LogPage>, Failure> {
        let effect = |state: &mut AccountState| {
            let group = state.log_groups.get(filter.group);
            group.map(|group| group.page(state.now(), filter, token.as_deref())).transpose()
        };
        self.call("logs:FilterLogEvents", filter.group, effect).await
    }

    async fn put_log_line(
        &self,
        group: &str,
        stream: &str,
        at: Timestamp,
        line: &str,
    ) -> Result<bool, Failure> {
        let effect = |state: &mut AccountState| {
            let group = state.log_groups.get_mut(group).filter(|it| it.streams.contains(stream));
            Ok(group.map(|group| group.write(at, stream, line)).is_some())
        };
        self.call("logs:PutLogEvents", group, effect).await
    }

    async fn create_log_stream(&self, group: &str, stream: &str) -> Result<(), Failure> {
        let effect = |state: &mut AccountState| {
            let gone = "ResourceNotFoundException: The specified log group does not exist.";
            let group = state.log_groups.get_mut(group).ok_or(gone)?;
            group.streams.insert(stream.to_owned());
            Ok(())
        };
        self.call("logs:CreateLogStream", group, effect).await
    }

    async fn log_group(&self, name: &str) -> Result<Option<aws::LogGroup>, Failure> {
        let effect =
            |state: &mut AccountState| Ok(state.log_groups.get(name).map(|group| group.settings.clone()));
        self.call("logs:DescribeLogGroups", name, effect).await
    }

    async fn metrics(&self, query: MetricQuery<'_>, of: &str) -> Result<Vec<Vec<(Timestamp, f64)>>, Failure> {
        self.call("cloudwatch:GetMetricData", of, |state| Ok(state.metrics.points(&query))).await
    }

    async fn alarms(&self, of: &str) -> Result<Vec<MetricAlarm>, Failure> {
        self.call("cloudwatch:DescribeAlarms", of, |state| Ok(state.alarms.values().cloned().collect())).await
    }

    async fn put_alarm(&self, alarm: &NewAlarm) -> Result<(), Failure> {
        let effect = |state: &mut AccountState| {
            let NewAlarm { name, description, metric, actions } = alarm.clone();
            let put = state.alarms.entry(name.clone()).or_default();
            let before = if put.state.is_empty() { "INSUFFICIENT_DATA" } else { &put.state }.to_owned();
            let (actions_enabled, metrics) = (true, vec![metric]);
            *put = MetricAlarm { name, description, state: before, actions, actions_enabled, metrics };
            Ok(())
        };
        self.call("cloudwatch:PutMetricAlarm", &alarm.name, effect).await
    }

    async fn delete_alarm(&self, name: &str) -> Result<(), Failure> {
        let effect = |state: &mut AccountState| {
            state.alarms.remove(name);
            Ok(())
        };
        self.call("cloudwatch:DeleteAlarms", name, effect).await
    }

    async fn stack(&self, name: &str) -> Result<Option<aws::Stack>, Failure> {
        let effect = |state: &mut AccountState| Ok(state.stacks.get(name).map(|stack| stack.stack.clone()));
        self.call("cloudformation:DescribeStacks", name, effect).await
    }

    async fn stack_resources(&self, name: &str, of: &str) -> Result<Option<Vec<StackResource>>, Failure> {
        let effect =
            |state: &mut AccountState| Ok(state.stacks.get(name).map(|stack| stack.resources.clone()));
        self.call("cloudformation:ListStackResources", of, effect).await
    }

    async fn stack_events(&self, name: &str) -> Result<Vec<StackEvent>, Failure> {
        let effect = |state: &mut AccountState| state.stack(name).map(|stack| stack.events.clone());
        self.call("cloudformation:DescribeStackEvents", name, effect).await
    }

    async fn update_stack(&self, stack: &aws::Stack, parameter: &str, value: &str) -> Result<(), Failure> {
        let effect = |state: &mut AccountState| {
            let now = state.now();
            state.stack(&stack.name)?.update(now, parameter, value)
        };
        self.call("cloudformation:UpdateStack", &stack.name, effect).await
    }

    async fn may(&self, role_arn: &str, action: &str, resource_arn: &str) -> Result<Verdict, Failure> {
        let effect = |state: &mut AccountState| {
            let role = role_arn.rsplit('/').next().unwrap_or_default();
            state.role(role).map(|role| role.may(action, resource_arn))
        };
        self.call("iam:SimulatePrincipalPolicy", role_arn, effect).await
    }

    async fn role_policy(&self, role: &str, policy: &str) -> Result<Option<String>, Failure> {
        let effect = |state: &mut AccountState| {
            Ok(state.roles.get(role).and_then(|role| role.policies.get(policy).cloned()))
        };
        self.call("iam:GetRolePolicy", role, effect).await
    }

    async fn role_policies(&self, role: &str) -> Result<Vec<String>, Failure> {
        let effect = |state: &mut AccountState| Ok(state.role(role)?.policies.keys().cloned().collect());
        self.call("iam:ListRolePolicies", role, effect).await
    }

    async fn put_role_policy(&self, role: &str, policy: &str, document: &str) -> Result<(), Failure> {
        let effect = |state: &mut AccountState| {
            let now = state.now();
            state.role(role)?.put(now, policy, document)
        };
        self.call("iam:PutRolePolicy", role, effect).await
    }

    async fn delete_role_policy(&self, role: &str, policy: &str) -> Result<(), Failure> {
        let effect = |state: &mut AccountState| {
            state.roles.get_mut(role).and_then(|role| role.policies.remove(policy));
            Ok(())
        };
        self.call("iam:DeleteRolePolicy", role, effect).await
    }

    async fn key(&self, id: &str) -> Result<Option<KmsKey>, Failure> {
        self.call("kms:DescribeKey", id, |state| Ok(state.keys.get(id).cloned())).await
    }
}
