//! The account as an operator's questions and changes see it: one trait, in types of our own.
//!
//! [`Aws`] has an implementation on the AWS SDK, [`sdk::SdkAws`], and one in memory for tests and demonstrations,
//! `simulated::SimulatedAws` of the feature `simulated`. Each method is one AWS operation, all of its pages included
//! where nobody needs to stop in between. A read of something missing returns `None`; every other error is a
//! [`Failure`] that names the IAM action and its subject. The clock is a part of the account, because a simulated one
//! has its own.

#[cfg(any(test, feature = "simulated"))]
pub mod contract;
#[cfg(feature = "sdk")]
pub mod sdk;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use comeback_engine::Timestamp;
use serde::Serialize;

use crate::failure::Failure;

/// The calls that read and change an account, in one region.
///
/// The futures need not be `Send`: a command or a console runs entirely on one thread.
#[async_trait(?Send)]
pub trait Aws: fmt::Debug {
    /// The account's current time.
    fn now(&self) -> Timestamp;

    /// Waits by the account's clock.
    async fn sleep(&self, duration: Duration);

    /// `lambda:GetFunction`: a function, or one of its versions and aliases.
    async fn function(&self, name: &str, qualifier: Option<&str>) -> Result<Option<Function>, Failure>;

    /// `lambda:GetFunctionConfiguration`: the same without tags and concurrency, for callers who may not read those.
    async fn function_configuration(
        &self,
        name: &str,
        qualifier: Option<&str>,
    ) -> Result<Configuration, Failure>;

    /// `lambda:ListFunctions`: all functions of the region.
    async fn functions(&self, of: &str) -> Result<Vec<Configuration>, Failure>;

    /// `lambda:ListTags`.
    async fn tags(&self, function_arn: &str) -> Result<BTreeMap<String, String>, Failure>;

    /// `lambda:TagResource`.
    async fn tag(&self, function_arn: &str, tags: BTreeMap<String, String>) -> Result<(), Failure>;

    /// `lambda:UntagResource`.
    async fn untag(&self, function_arn: &str, keys: Vec<String>) -> Result<(), Failure>;

    /// `lambda:ListFunctionEventInvokeConfigs`: the settings of each qualifier that has any; the key of the function itself is
    /// `None`.
    async fn invoke_settings(&self, name: &str) -> Result<BTreeMap<Option<String>, InvokeSettings>, Failure>;

    /// `lambda:PutFunctionEventInvokeConfig`. Returns false if Lambda does not know yet that the function may send to
    /// its destination: a new permission takes a few seconds to arrive.
    async fn put_invoke_settings(
        &self,
        name: &str,
        qualifier: Option<&str>,
        settings: &InvokeSettings,
    ) -> Result<bool, Failure>;

    /// `lambda:DeleteFunctionEventInvokeConfig`; does nothing if the settings do not exist.
    async fn delete_invoke_settings(&self, name: &str, qualifier: Option<&str>) -> Result<(), Failure>;

    /// `lambda:GetFunctionRecursionConfig`: returns true if recursive loops are allowed.
    async fn recursion_allowed(&self, name: &str) -> Result<bool, Failure>;

    /// `lambda:PutFunctionRecursionConfig`.
    async fn allow_recursion(&self, name: &str, allowed: bool) -> Result<(), Failure>;

    /// `lambda:ListEventSourceMappings` of a function: its mappings of SQS queues.
    async fn mappings_of_function(&self, name: &str) -> Result<Vec<Mapping>, Failure>;

    /// `lambda:ListEventSourceMappings` of a queue.
    async fn mappings_of_queue(&self, queue_arn: &str) -> Result<Vec<Mapping>, Failure>;

    /// `lambda:UpdateFunctionConfiguration`: replaces the environment variables, unless the function has changed since
    /// `revision`.
    async fn set_variables(
        &self,
        name: &str,
        variables: BTreeMap<String, String>,
        revision: Option<String>,
    ) -> Result<(), Failure>;

    /// `lambda:InvokeFunction`, asynchronously. Returns the request id.
    async fn invoke_async(&self, function: &str, payload: &str) -> Result<Option<String>, Failure>;

    /// `lambda:GetAccountSettings`: the number of functions that may run at a time.
    async fn executions(&self) -> Result<Option<Executions>, Failure>;

    /// `sqs:GetQueueUrl`.
    async fn queue_url(&self, queue_arn: &str) -> Result<Option<String>, Failure>;

    /// `sqs:GetQueueAttributes`, by SQS's names; all if `names` is empty.
    async fn queue_attributes(
        &self,
        url: &str,
        names: &[&str],
    ) -> Result<Option<BTreeMap<String, String>>, Failure>;

    /// `sqs:ReceiveMessage`: up to ten messages, hidden for `visibility`, after waiting up to `wait` for the first.
    /// Also returns none if the queue is over its limit of messages in flight.
    async fn receive(&self, url: &str, most: usize, receive: Receive) -> Result<Vec<Message>, Failure>;

    /// `sqs:SendMessage`: sends each message once, and returns an answer for each. SQS may have accepted a message
    /// without an answer. `paused` is called for each pause that SQS asks for.
    async fn send(
        &self,
        url: &str,
        messages: Vec<NewMessage>,
        paused: Paused<'_>,
    ) -> Vec<Result<(), EntryFailure>>;

    /// `sqs:DeleteMessage`.
    async fn delete(
        &self,
        url: &str,
        receipt_handles: Vec<String>,
        paused: Paused<'_>,
    ) -> Vec<Result<(), EntryFailure>>;

    /// `sqs:ChangeMessageVisibility`: hides each message for its duration from now on; zero makes it visible.
    async fn hide(
        &self,
        url: &str,
        messages: Vec<(String, Duration)>,
        paused: Paused<'_>,
    ) -> Vec<Result<(), EntryFailure>>;

    /// The same, for messages that a handler works on: an unanswered call is not repeated. If SQS obeyed the first one,
    /// the handler may since have received the message, and hidden it for a call of its own.
    async fn recall(
        &self,
        url: &str,
        messages: Vec<(String, Duration)>,
        paused: Paused<'_>,
    ) -> Vec<Result<(), EntryFailure>>;

    /// `ssm:GetParameter`.
    async fn parameter(&self, name: &str) -> Result<Option<ParameterVersion>, Failure>;

    /// `ssm:GetParameterHistory`: the versions that SSM keeps, the oldest first; empty if the parameter does not exist.
    async fn parameter_history(&self, name: &str) -> Result<Vec<ParameterVersion>, Failure>;

    /// `ssm:PutParameter`. Returns the version that was written; `None` if the parameter was to be `new` but exists, or
    /// if somebody else is writing it.
    async fn put_parameter(&self, name: &str, text: &str, new: bool) -> Result<Option<i64>, Failure>;

    /// `logs:FilterLogEvents`: one page; `None` if the log group does not exist.
    async fn log_page(
        &self,
        filter: &LogFilter<'_>,
        token: Option<String>,
    ) -> Result<Option<LogPage>, Failure>;

    /// `logs:DescribeLogGroups`.
    async fn log_group(&self, name: &str) -> Result<Option<LogGroup>, Failure>;

    /// `cloudwatch:GetMetricData`: the points of each series. `of` names them in an error.
    async fn metrics(&self, query: MetricQuery<'_>, of: &str) -> Result<Vec<Vec<(Timestamp, f64)>>, Failure>;

    /// `cloudwatch:DescribeAlarms`: all metric alarms of the region. `of` is their purpose as an error names it.
    async fn alarms(&self, of: &str) -> Result<Vec<MetricAlarm>, Failure>;

    /// `cloudwatch:PutMetricAlarm`.
    async fn put_alarm(&self, alarm: &NewAlarm) -> Result<(), Failure>;

    /// `cloudwatch:DeleteAlarms`; does nothing if it is gone.
    async fn delete_alarm(&self, name: &str) -> Result<(), Failure>;

    /// `cloudformation:DescribeStacks`.
    async fn stack(&self, name: &str) -> Result<Option<Stack>, Failure>;

    /// `cloudformation:ListStackResources`. `of` is the stack as an error names it.
    async fn stack_resources(&self, name: &str, of: &str) -> Result<Option<Vec<StackResource>>, Failure>;

    /// `cloudformation:DescribeStackEvents`: the newest first.
    async fn stack_events(&self, name: &str) -> Result<Vec<StackEvent>, Failure>;

    /// `cloudformation:UpdateStack`: the same template with another value for one parameter.
    async fn update_stack(&self, stack: &Stack, parameter: &str, value: &str) -> Result<(), Failure>;

    /// `iam:SimulatePrincipalPolicy`: the verdict of a role's policies on an action.
    async fn may(&self, role_arn: &str, action: &str, resource_arn: &str) -> Result<Verdict, Failure>;

    /// `iam:GetRolePolicy`: an inline policy, as JSON.
    async fn role_policy(&self, role: &str, policy: &str) -> Result<Option<String>, Failure>;

    /// `iam:ListRolePolicies`: the names of the inline policies.
    async fn role_policies(&self, role: &str) -> Result<Vec<String>, Failure>;

    /// `iam:PutRolePolicy`.
    async fn put_role_policy(&self, role: &str, policy: &str, document: &str) -> Result<(), Failure>;

    /// `iam:DeleteRolePolicy`; does nothing if it is gone.
    async fn delete_role_policy(&self, role: &str, policy: &str) -> Result<(), Failure>;

    /// `kms:DescribeKey`.
    async fn key(&self, id: &str) -> Result<Option<Key>, Failure>;
}

/// A listener for pauses in a batch of calls that SQS asked for, with the length and the reason.
pub type Paused<'a> = &'a dyn Fn(Duration, &str);

/// A function as Lambda describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Its configuration, or that of the version or alias that was asked for.
    pub configuration: Configuration,
    /// The tags of the function, whatever the qualifier.
    pub tags: BTreeMap<String, String>,
    /// The reason why Lambda could not read the tags.
    pub tags_error: Option<String>,
    /// Its reserved concurrency; `None` if it has none.
    pub reserved_concurrency: Option<u32>,
}

/// The configuration of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Its name; empty if Lambda returned none.
    pub name: String,
    /// Its ARN, with a qualifier if one was asked for; empty if Lambda returned none.
    pub arn: String,
    /// The ARN of its execution role; empty if Lambda returned none.
    pub role_arn: String,
    /// Its runtime, such as `python3.12`; `None` for a container image.
    pub runtime: Option<String>,
    /// The time after which Lambda ends an invocation.
    pub timeout: Duration,
    /// The environment variables; empty if they are unreadable.
    pub variables: BTreeMap<String, String>,
    /// The reason why the variables are unreadable, such as a key that the caller may not use.
    pub variables_error: Option<String>,
    /// The log group that is set; `None` is `/aws/lambda/NAME`.
    pub log_group: Option<String>,
    /// The lowest level of the lines that the function may log, such as `WARN`, if one is set.
    pub log_level: Option<String>,
    /// The queue or topic of its own `DeadLetterConfig`.
    pub dead_letter: Option<String>,
    /// It is in tenant isolation mode.
    pub has_tenants: bool,
    /// It is a durable function.
    pub is_durable: bool,
    /// A value that changes with each change of the function.
    pub revision: Option<String>,
    /// Progress of the last update.
    pub update: UpdateStatus,
}

/// The progress of a function's last update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UpdateStatus {
    /// The update is in force.
    #[default]
    Done,
    /// The update is under way.
    InProgress,
    /// The update failed, for the reason that Lambda gives.
    Failed(String),
}

/// Lambda's settings for the asynchronous invocations of one qualifier; `None` is Lambda's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InvokeSettings {
    /// `MaximumRetryAttempts`; Lambda's default is 2.
    pub retries: Option<i32>,
    /// `MaximumEventAgeInSeconds`; Lambda's default is 21,600.
    pub event_age: Option<i32>,
    /// The ARN of the on-failure destination.
    pub on_failure: Option<String>,
    /// The ARN of the on-success destination.
    pub on_success: Option<String>,
}

/// Lambda's limit of concurrent invocations by one provisioned poller.
pub const INVOCATIONS_OF_A_POLLER: u16 = 10;

/// An event source mapping, which feeds a function from a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its id.
    pub uuid: String,
    /// The ARN of the function; empty if Lambda returned none.
    pub function_arn: String,
    /// The ARN of the queue.
    pub queue_arn: String,
    /// `Enabled`, `Disabled`, or a state on the way to one of them.
    pub state: String,
    /// The most messages in a batch.
    pub batch_size: i32,
    /// The longest time to gather a batch.
    pub window: Duration,
    /// `ReportBatchItemFailures` is on.
    pub reports_failures: bool,
    /// The most invocations at a time; `None` without a limit.
    pub maximum_concurrency: Option<i32>,
    /// The most provisioned pollers; `None` unless the mapping is in provisioned mode, which has no
    /// `MaximumConcurrency` of its own.
    pub maximum_pollers: Option<i32>,
}

/// The numbers of functions that the account may run at a time in this region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executions {
    /// All of them.
    pub all: u64,
    /// The part that all functions without reserved concurrency share.
    pub unreserved: u64,
}

/// Options of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The time that the messages stay hidden; zero leaves them visible.
    pub visibility: Duration,
    /// The longest wait for the first message; zero asks only some of SQS's servers.
    pub wait: Duration,
}

/// A message that was received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// SQS's id; empty if it returned none.
    pub id: String,
    /// `None` if SQS returned none.
    pub receipt_handle: Option<String>,
    /// `None` if SQS returned none.
    pub body: Option<String>,
    /// The system attributes, such as `SentTimestamp`, by their names.
    pub system: BTreeMap<String, String>,
    /// The message attributes, by their names.
    pub attributes: BTreeMap<String, Attribute>,
}

/// A message to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewMessage {
    /// Its body.
    pub body: String,
    /// Its message attributes.
    pub attributes: BTreeMap<String, Attribute>,
    /// The X-Ray trace that it belongs to.
    pub trace_header: Option<String>,
}

/// A message attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// `String`, `Number` or `Binary`, perhaps with a suffix.
    pub data_type: String,
    /// Its value.
    pub value: AttributeValue,
}

/// The value of a message attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// The value of a `String` or a `Number`.
    Text(String),
    /// The value of a `Binary`.
    Bytes(Vec<u8>),
}

/// The failure of one entry of a batch call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct EntryFailure {
    /// The consequence of the failure for this entry, and for others.
    pub kind: EntryFailureKind,
    /// The error's code; empty without an answer.
    pub code: String,
    /// The code and the message, or the problem on the way.
    pub text: String,
}

/// The consequence of a failed entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryFailureKind {
    /// The caller lacks the permission, for any entry.
    Denied,
    /// The queue does not exist.
    Missing,
    /// The entry itself was refused, such as for the receipt handle of a message that is gone.
    Refused,
    /// A later try may work.
    Transient,
    /// The entry was not tried, because the work ended first.
    NotTried,
}

/// A version of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterVersion {
    /// Its number; the first version is 1.
    pub number: i64,
    /// Its value.
    pub text: String,
    /// When it was written; `None` if that was not read.
    pub at: Option<Timestamp>,
    /// The ARN of its writer, if that was read.
    pub by: Option<String>,
}

/// The lines of a log group to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter<'a> {
    /// The log group.
    pub group: &'a str,
    /// A filter pattern of CloudWatch's; `None` matches every line.
    pub pattern: Option<String>,
    /// The time of the first line.
    pub since: Timestamp,
    /// The time of the last line; `None` means no end.
    pub until: Option<Timestamp>,
    /// Only this log stream.
    pub stream: Option<&'a str>,
}

/// One page of log lines, perhaps empty, and the token of the next page; `None` after the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPage {
    /// The lines, in no certain order.
    pub events: Vec<LogEvent>,
    /// The token of the next page.
    pub next: Option<String>,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// When it was written.
    pub at: Timestamp,
    /// The log stream.
    pub stream: String,
    /// Its text.
    pub message: String,
}

/// A log group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogGroup {
    /// The time that it keeps a line; `None` is for ever.
    pub retention: Option<Duration>,
    /// Its class, such as `STANDARD` or `INFREQUENT_ACCESS`, if CloudWatch names it.
    pub class: Option<String>,
}

/// Series of metric points to read in one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricQuery<'a> {
    /// The series.
    pub series: Vec<Series<'a>>,
    /// The length of a point, in whole minutes.
    pub period: Duration,
    /// The time of the first point.
    pub since: Timestamp,
    /// The end of the last point.
    pub until: Timestamp,
}

/// One metric's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series<'a> {
    /// The namespace, such as `AWS/SQS`.
    pub namespace: &'a str,
    /// The name and value of its dimension.
    pub dimension: (&'a str, &'a str),
    /// The metric's name.
    pub name: &'a str,
    /// One of CloudWatch's statistics, such as `Sum` or `Maximum`.
    pub statistic: &'a str,
}

/// A metric alarm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricAlarm {
    /// Its name.
    pub name: String,
    /// Its description; empty without one.
    pub description: String,
    /// `OK`, `ALARM` or `INSUFFICIENT_DATA`.
    pub state: String,
    /// The ARNs that it notifies in state `ALARM`.
    pub actions: Vec<String>,
    /// Its actions are enabled.
    pub actions_enabled: bool,
    /// The metrics that it watches: one, or those of its expression.
    pub metrics: Vec<WatchedMetric>,
}

/// A metric that an alarm watches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedMetric {
    /// The namespace, such as `AWS/SQS`; empty if CloudWatch names none.
    pub namespace: String,
    /// The metric's name; empty if CloudWatch names none.
    pub name: String,
    /// Its dimensions.
    pub dimensions: BTreeMap<String, String>,
}

/// An alarm on the sum of a metric over five minutes, raised from 1 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAlarm {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The metric that it watches.
    pub metric: WatchedMetric,
    /// The ARNs that it notifies when it is raised and when it is over.
    pub actions: Vec<String>,
}

/// A CloudFormation stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// Its name.
    pub name: String,
    /// Its status, such as `UPDATE_COMPLETE`.
    pub status: String,
    /// The values of its parameters.
    pub parameters: BTreeMap<String, String>,
    /// The capabilities of its last deployment.
    pub capabilities: Vec<String>,
    /// When it was last updated, in milliseconds; `None` if never.
    pub updated: Option<i64>,
    /// The stack that it is nested in.
    pub parent: Option<String>,
}

/// A resource of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackResource {
    /// Its name in the template.
    pub logical_id: String,
    /// Its id in AWS; `None` if it was not created yet.
    pub physical_id: Option<String>,
    /// Its type, such as `AWS::Lambda::Function`.
    pub kind: String,
}

/// An event of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackEvent {
    /// The resource's name in the template.
    pub logical_id: String,
    /// The event is about the stack itself.
    pub is_of_stack: bool,
    /// The resource's status, such as `UPDATE_FAILED`.
    pub status: String,
    /// The reason, if one is given.
    pub reason: Option<String>,
}

/// The simulator's answer, from the role's policies, its boundary and the organization's. It ignores the resource's own
/// policy, such as a queue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A policy allows it.
    Allowed,
    /// No policy allows it.
    NotAllowed,
    /// A policy denies it. No further policy can allow it.
    Denied,
}

/// A key of KMS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its ARN; `None` if KMS returned none.
    pub arn: Option<String>,
    /// AWS manages it, so whoever may use the service may use the key.
    pub is_managed_by_aws: bool,
    /// Its state, such as `Enabled` or `PendingDeletion`, if KMS names it.
    pub state: Option<String>,
}
