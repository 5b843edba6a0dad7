//! The AWS calls that Comeback's commands and console make, as a trait that does not depend on the AWS SDK.
//!
//! [`Aws`] has two implementations: [`sdk::SdkAws`] calls AWS, and `simulated::SimulatedAws` (feature `simulated`)
//! works in memory. Each method stands for one AWS operation, and reads all pages of the response unless its
//! documentation says otherwise. A read that returns an `Option` returns `None` if the resource does not exist. A
//! [`Failure`] names the IAM action and the resource.

#[cfg(feature = "sdk")]
pub mod sdk;
#[cfg(any(test, feature = "simulated"))]
pub mod simulated;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use comeback_engine::{Record, Timestamp};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The maximum number of messages that SQS returns for one receive call.
pub const MOST_OF_A_RECEIVE: usize = 10;
/// The maximum number of tags that Lambda allows on a function.
pub const MOST_TAGS: usize = 50;
/// The maximum number of pages that [`Aws::stack_events`] reads. A page has about 100 events.
pub const MOST_EVENT_PAGES: usize = 20;
/// IAM's limit on the total size of a role's inline policies, in characters without white space. Source: "IAM and AWS
/// STS quotas", AWS IAM User Guide.
pub const ROLE_CHARACTERS: usize = 10_240;

/// The AWS calls that read and change an account in one region.
///
/// Futures need not be `Send`, because a command or a console runs on one thread.
#[async_trait(?Send)]
pub trait Aws: fmt::Debug {
    /// Returns the current time on the account's clock.
    fn now(&self) -> Timestamp;

    /// Waits for a duration, measured by the account's clock.
    async fn sleep(&self, duration: Duration);

    /// `lambda:GetFunction`: reads a function, or one of its versions or aliases.
    async fn function(&self, name: &str, qualifier: Option<&str>) -> Result<Option<Function>, Failure>;

    /// `lambda:GetFunctionConfiguration`: reads only a function's configuration. The caller needs no permission to
    /// read tags or concurrency.
    async fn configuration(&self, name: &str, qualifier: Option<&str>) -> Result<Configuration, Failure>;

    /// `lambda:ListFunctions`: lists all functions in the region. An error names `of` as the affected resource.
    async fn functions(&self, of: &str) -> Result<Vec<Configuration>, Failure>;

    /// `lambda:ListTags`: reads a function's tags.
    async fn tags(&self, function_arn: &str) -> Result<BTreeMap<String, String>, Failure>;

    /// `lambda:TagResource`: adds tags to a function.
    async fn tag(&self, function_arn: &str, tags: BTreeMap<String, String>) -> Result<(), Failure>;

    /// `lambda:UntagResource`: removes tags from a function.
    async fn untag(&self, function_arn: &str, keys: Vec<String>) -> Result<(), Failure>;

    /// `lambda:ListFunctionEventInvokeConfigs`: reads a function's settings for asynchronous invocations, by qualifier
    /// (`None` for the unqualified function).
    async fn invoke_settings(&self, name: &str) -> Result<BTreeMap<Option<String>, InvokeSettings>, Failure>;

    /// `lambda:PutFunctionEventInvokeConfig`: replaces a qualifier's settings for asynchronous invocations. Returns
    /// false if the permission to send to the destination has not taken effect yet.
    async fn put_invoke_settings(
        &self,
        name: &str,
        qualifier: Option<&str>,
        settings: &InvokeSettings,
    ) -> Result<bool, Failure>;

    /// `lambda:DeleteFunctionEventInvokeConfig`: deletes a qualifier's settings for asynchronous invocations, if any.
    async fn delete_invoke_settings(&self, name: &str, qualifier: Option<&str>) -> Result<(), Failure>;

    /// `lambda:GetFunctionRecursionConfig`: returns true if recursive loops are allowed.
    async fn recursion_allowed(&self, name: &str) -> Result<bool, Failure>;

    /// `lambda:PutFunctionRecursionConfig`: allows or forbids recursive loops for a function.
    async fn allow_recursion(&self, name: &str, allowed: bool) -> Result<(), Failure>;

    /// `lambda:ListEventSourceMappings`: lists the mappings that feed a function from SQS queues.
    async fn mappings_of_function(&self, name: &str) -> Result<Vec<Mapping>, Failure>;

    /// `lambda:ListEventSourceMappings`: lists the mappings that read from a queue.
    async fn mappings_of_queue(&self, queue_arn: &str) -> Result<Vec<Mapping>, Failure>;

    /// `lambda:UpdateFunctionConfiguration`: replaces a function's environment variables; fails if the function has
    /// changed since `revision`.
    async fn set_variables(
        &self,
        name: &str,
        variables: BTreeMap<String, String>,
        revision: Option<String>,
    ) -> Result<(), Failure>;

    /// `lambda:InvokeFunction`: invokes a function asynchronously, and returns the request id.
    async fn invoke_async(&self, function: &str, payload: &str) -> Result<String, Failure>;

    /// `lambda:GetAccountSettings`: reads the account's limits on concurrent invocations. Returns `None` if Lambda
    /// returns no limits.
    async fn executions(&self) -> Result<Option<Executions>, Failure>;

    /// `sqs:GetQueueUrl`: returns a queue's URL, or `None` if the queue does not exist.
    async fn queue_url(&self, queue_arn: &str) -> Result<Option<String>, Failure>;

    /// `sqs:GetQueueAttributes`: reads the named attributes of a queue, or all attributes if `names` is empty.
    async fn queue_attributes(
        &self,
        url: &str,
        names: &[&str],
    ) -> Result<Option<BTreeMap<String, String>>, Failure>;

    /// `sqs:ReceiveMessage`: receives up to ten messages, or none while the queue is at its in-flight limit.
    async fn receive(&self, url: &str, most: usize, receive: Receive) -> Result<Vec<Received>, Failure>;

    /// `sqs:SendMessage`: sends each message once, and returns a result for each. If SQS does not respond, the result
    /// is a failure, but SQS may have accepted the message.
    async fn send(&self, url: &str, messages: Vec<NewMessage>, paused: PauseCallback<'_>) -> EntryResults;

    /// `sqs:DeleteMessage`: deletes messages by their receipt handles, and returns a result for each message.
    async fn delete(
        &self,
        url: &str,
        receipt_handles: Vec<String>,
        paused: PauseCallback<'_>,
    ) -> EntryResults;

    /// `sqs:ChangeMessageVisibility`: hides each message for a duration, counted from now; zero makes it visible.
    ///
    /// An unanswered call is repeated only if `repeats` is true. For a queue with a handler, `repeats` must be false:
    /// the second call could overwrite the handler's visibility timeout.
    async fn hide(
        &self,
        url: &str,
        messages: Vec<(String, Duration)>,
        repeats: bool,
        paused: PauseCallback<'_>,
    ) -> EntryResults;

    /// `ssm:GetParameter`: reads the newest version of a parameter.
    async fn parameter(&self, name: &str) -> Result<Option<ParameterVersion>, Failure>;

    /// `ssm:GetParameterHistory`: reads a parameter's versions, oldest first. SSM keeps the last hundred. Returns an
    /// empty list if the parameter does not exist.
    async fn parameter_history(&self, name: &str) -> Result<Vec<ParameterVersion>, Failure>;

    /// `ssm:PutParameter`: writes a parameter, and returns the number of the new version. Returns `None` if somebody
    /// else is writing the parameter, or if `new` is true and the parameter exists.
    async fn put_parameter(&self, name: &str, text: &str, new: bool) -> Result<Option<i64>, Failure>;

    /// `logs:FilterLogEvents`: reads one page of log lines; `None` if the filter's log group or stream does not exist.
    async fn log_page(
        &self,
        filter: &LogFilter<'_>,
        token: Option<String>,
    ) -> Result<Option<LogPage>, Failure>;

    /// `logs:PutLogEvents`: writes a line to a log stream; returns false if the stream does not exist.
    async fn put_log_line(
        &self,
        group: &str,
        stream: &str,
        at: Timestamp,
        line: &str,
    ) -> Result<bool, Failure>;

    /// `logs:CreateLogStream`: creates a log stream, unless it already exists.
    async fn create_log_stream(&self, group: &str, stream: &str) -> Result<(), Failure>;

    /// `logs:DescribeLogGroups`: describes the log group with this name.
    async fn log_group(&self, name: &str) -> Result<Option<LogGroup>, Failure>;

    /// `cloudwatch:GetMetricData`: reads the data points of each series (one page, of up to 100,800 points). `of` is
    /// the resource that an error names.
    async fn metrics(&self, query: MetricQuery<'_>, of: &str) -> Result<Vec<Vec<(Timestamp, f64)>>, Failure>;

    /// `cloudwatch:DescribeAlarms`: reads all metric alarms in the region; `of` is the resource that an error names.
    async fn alarms(&self, of: &str) -> Result<Vec<MetricAlarm>, Failure>;

    /// `cloudwatch:PutMetricAlarm`: creates or replaces an alarm.
    async fn put_alarm(&self, alarm: &NewAlarm) -> Result<(), Failure>;

    /// `cloudwatch:DeleteAlarms`: deletes an alarm, if it exists.
    async fn delete_alarm(&self, name: &str) -> Result<(), Failure>;

    /// `cloudformation:DescribeStacks`: describes a stack.
    async fn stack(&self, name: &str) -> Result<Option<Stack>, Failure>;

    /// `cloudformation:ListStackResources`: lists a stack's resources. `of` is the stack's name in error messages.
    async fn stack_resources(&self, name: &str, of: &str) -> Result<Option<Vec<StackResource>>, Failure>;

    /// `cloudformation:DescribeStackEvents`: reads a stack's events, newest first, back to the start of its latest
    /// update or further. Reads at most [`MOST_EVENT_PAGES`] pages.
    async fn stack_events(&self, name: &str) -> Result<Vec<StackEvent>, Failure>;

    /// `cloudformation:UpdateStack`: changes one of a stack's parameters, and nothing else.
    async fn update_stack(&self, stack: &Stack, parameter: &str, value: &str) -> Result<(), Failure>;

    /// `iam:SimulatePrincipalPolicy`: returns whether a role's policies allow an action on a resource.
    async fn may(&self, role_arn: &str, action: &str, resource_arn: &str) -> Result<Verdict, Failure>;

    /// `iam:GetRolePolicy`: reads one of a role's inline policies, as JSON.
    async fn role_policy(&self, role: &str, policy: &str) -> Result<Option<String>, Failure>;

    /// `iam:ListRolePolicies`: lists the names of a role's inline policies.
    async fn role_policies(&self, role: &str) -> Result<Vec<String>, Failure>;

    /// `iam:PutRolePolicy`: creates or replaces an inline policy of a role.
    async fn put_role_policy(&self, role: &str, policy: &str, document: &str) -> Result<(), Failure>;

    /// `iam:DeleteRolePolicy`: deletes an inline policy from a role, if the role has it.
    async fn delete_role_policy(&self, role: &str, policy: &str) -> Result<(), Failure>;

    /// `kms:DescribeKey`: describes a KMS key.
    async fn key(&self, id: &str) -> Result<Option<KmsKey>, Failure>;
}

/// A callback for each pause that SQS requests (`Retry-After`) in response to a batch call. Its arguments are the
/// length of the pause and the reason.
pub type PauseCallback<'a> = &'a dyn Fn(Duration, &str);

/// A Lambda function, as `lambda:GetFunction` describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The configuration of the function, or of the requested version or alias.
    pub configuration: Configuration,
    /// The function's tags; its versions and aliases have none of their own.
    pub tags: BTreeMap<String, String>,
    /// The reason why Lambda did not return the tags, or `None` if Lambda returned them.
    pub tags_error: Option<String>,
    /// The function's reserved concurrency; `None` if none is reserved.
    pub reserved_concurrency: Option<u32>,
}

/// The configuration of a Lambda function, version or alias.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The function's name; empty if Lambda returned none.
    pub name: String,
    /// The function's ARN, including the requested qualifier; empty if Lambda returned none.
    pub arn: String,
    /// The ARN of the function's execution role; empty if Lambda returned none.
    pub role_arn: String,
    /// The function's runtime, such as `python3.12`; `None` for a container image.
    pub runtime: Option<String>,
    /// The function's timeout, after which Lambda stops an invocation.
    pub timeout: Duration,
    /// The environment variables; empty if Lambda could not return them.
    pub variables: BTreeMap<String, String>,
    /// The reason why Lambda could not return the variables, such as a missing KMS permission; `None` if it returned
    /// them.
    pub variables_error: Option<String>,
    /// The log group in the function's configuration; `None` means `/aws/lambda/NAME`.
    pub log_group: Option<String>,
    /// The lowest level at which the function logs lines, such as `WARN`; `None` if no level is set.
    pub log_level: Option<String>,
    /// The ARN of the queue or topic in the function's own `DeadLetterConfig`; `None` if none is set.
    pub dead_letter: Option<String>,
    /// True if the function is in tenant isolation mode.
    pub has_tenants: bool,
    /// True if the function is a durable function.
    pub is_durable: bool,
    /// Lambda's revision id, which changes whenever the function changes.
    pub revision: Option<String>,
    /// The progress of the function's last update.
    pub update: UpdateStatus,
}

/// The progress of a function's last update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UpdateStatus {
    /// The update took effect.
    #[default]
    Done,
    /// The update is in progress.
    InProgress,
    /// The update failed; the text is the reason that Lambda gives.
    Failed(String),
}

pub(crate) fn qualified(name: &str, qualifier: Option<&str>) -> String {
    qualifier.map_or_else(|| name.to_owned(), |qualifier| format!("{name}:{qualifier}"))
}

/// The settings for asynchronous invocations of a function, alias or version. A field that is `None` stands for
/// Lambda's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvokeSettings {
    /// `MaximumRetryAttempts`; Lambda's default is 2.
    pub retries: Option<i32>,
    /// `MaximumEventAgeInSeconds`; Lambda's default is 21,600.
    pub event_age: Option<i32>,
    /// The ARN of the on-failure destination, such as a queue. By default, a function has no destination.
    pub on_failure: Option<String>,
    /// The ARN of the on-success destination; by default, there is none.
    pub on_success: Option<String>,
}

/// The maximum number of concurrent invocations that Lambda allows per provisioned poller.
pub const INVOCATIONS_OF_A_POLLER: u16 = 10;

/// An event source mapping, through which Lambda passes messages from a queue to a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The mapping's id, which is a UUID.
    pub uuid: String,
    /// The ARN of the invoked function; empty if Lambda returned none.
    pub function_arn: String,
    /// The ARN of the queue that Lambda polls.
    pub queue_arn: String,
    /// The mapping's state: `Enabled`, `Disabled`, or a transition such as `Enabling`.
    pub state: String,
    /// The maximum number of messages per batch.
    pub batch_size: i32,
    /// The longest time that Lambda spends gathering messages into a batch.
    pub window: Duration,
    /// True if the function can report individual messages of a batch as failed (`ReportBatchItemFailures`).
    pub reports_failures: bool,
    /// The maximum number of concurrent invocations; `None` means no limit.
    pub maximum_concurrency: Option<i32>,
    /// The maximum number of pollers in provisioned mode; `None` if the mapping is not in this mode.
    pub maximum_pollers: Option<i32>,
}

impl Mapping {
    /// Returns true if the mapping passes messages to its function, or is about to do so.
    pub fn feeds(&self) -> bool {
        matches!(&*self.state, "Enabled" | "Enabling" | "Creating" | "Updating")
    }
}

/// The account's limits on concurrent Lambda invocations in this region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executions {
    /// The limit on concurrent invocations of all functions together.
    pub all: u64,
    /// The part of the account's concurrency limit that is shared by the functions without reserved concurrency.
    pub unreserved: u64,
}

/// Options for a call that receives messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The visibility timeout of received messages; zero leaves them visible.
    pub visibility: Duration,
    /// The longest wait for the first message; with zero, SQS queries only some of its servers and may miss messages.
    pub wait: Duration,
}

/// A message that was received from a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The message, in the form that the handler's code uses. A receive leaves its `attributes` empty and `moved`
    /// unset.
    pub record: Record,
    /// The message attributes, by name.
    pub attributes: BTreeMap<String, AttributeValue>,
}

/// A message to send to a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewMessage {
    /// The message's body.
    pub body: String,
    /// The message attributes, by name.
    pub attributes: BTreeMap<String, AttributeValue>,
    /// The X-Ray trace header; `None` if the message is not part of a trace.
    pub trace_header: Option<String>,
}

/// The value of a message attribute, with its type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an attribute with `type` and `value`")]
pub struct AttributeValue {
    /// The attribute's type: `String`, `Number` or `Binary`, optionally followed by a label, as in `Number.int`.
    #[serde(rename = "type")]
    pub data_type: String,
    /// The attribute's value as text, in Base64 if the type is `Binary`.
    pub value: String,
}

impl AttributeValue {
    /// Returns true if the type is `Binary`, with or without a label.
    pub fn is_binary(&self) -> bool {
        self.data_type.split('.').next() == Some("Binary")
    }

    /// The value as SQS stores it; `None` if a binary value is not Base64.
    pub fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self.is_binary() {
            true => BASE64.decode(&self.value).ok().map(Cow::Owned),
            false => Some(Cow::Borrowed(self.value.as_bytes())),
        }
    }
}

/// The failure of one entry in a batch call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct EntryFailure {
    /// The kind of failure.
    pub kind: EntryFailureKind,
    /// AWS's error code; empty if AWS did not respond.
    pub code: String,
    /// AWS's error code and message, or the problem that prevented a response.
    pub text: String,
}

impl EntryFailure {
    /// Returns true if AWS did not respond, which means that the call may have taken effect.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.kind == EntryFailureKind::Transient && self.code.is_empty()
    }
}

/// A result for each entry of a batch call, in the order of the entries.
pub type EntryResults = Vec<Result<(), EntryFailure>>;

/// Reasons why an entry in a batch call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryFailureKind {
    /// The caller lacks the permission, so every other entry fails too.
    Denied,
    /// The queue does not exist.
    Missing,
    /// SQS refused this entry, for example because its message has been deleted.
    Refused,
    /// The failure is temporary, so a later attempt may succeed.
    Transient,
    /// The entry was not tried, because the batch call ended early.
    NotTried,
}

/// One version of an SSM parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterVersion {
    /// The version's number; the first version is 1.
    pub number: i64,
    /// The parameter's value in this version.
    pub text: String,
    /// The time when this version was written; `None` if the API call does not return the time.
    pub at: Option<Timestamp>,
    /// The ARN of the user who wrote this version; `None` if the API call does not return the user.
    pub by: Option<String>,
}

/// A filter that selects the log lines to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter<'a> {
    /// The name of the log group.
    pub group: &'a str,
    /// A CloudWatch Logs filter pattern; `None` matches every line.
    pub pattern: Option<String>,
    /// The time of the earliest line to read.
    pub since: Timestamp,
    /// The time of the latest line to read; `None` means no limit.
    pub until: Option<Timestamp>,
    /// The name of the log stream to read; `None` means all streams.
    pub stream: Option<&'a str>,
}

/// One page of log lines, which may be empty even if more pages follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPage {
    /// The lines of the page, in no particular order.
    pub events: Vec<LogEvent>,
    /// The token that requests the next page; `None` on the last page.
    pub next: Option<String>,
}

/// A line of a CloudWatch log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// The time when the line was written.
    pub at: Timestamp,
    /// The name of the log stream that contains the line.
    pub stream: String,
    /// The text of the log line.
    pub message: String,
}

/// A CloudWatch log group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogGroup {
    /// The group's retention period; `None` means that log lines are kept forever.
    pub retention: Option<Duration>,
    /// The group's class, such as `STANDARD` or `INFREQUENT_ACCESS`. `None` if CloudWatch did not return the class.
    pub class: Option<String>,
}

/// Metrics to read in one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricQuery<'a> {
    /// The metrics to read.
    pub series: Vec<MetricStatistic<'a>>,
    /// The length of time that each point covers: a whole number of minutes.
    pub period: Duration,
    /// The start of the period that the first data point covers.
    pub since: Timestamp,
    /// The end of the period that the last data point covers.
    pub until: Timestamp,
}

/// A metric to read, and the statistic to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricStatistic<'a> {
    /// The metric's namespace, such as `AWS/SQS`.
    pub namespace: &'a str,
    /// The name and value of the metric's dimension.
    pub dimension: (&'a str, &'a str),
    /// The metric's name.
    pub name: &'a str,
    /// The CloudWatch statistic to compute, such as `Sum` or `Maximum`.
    pub statistic: &'a str,
}

/// A CloudWatch alarm that monitors one or more metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricAlarm {
    /// The alarm's name.
    pub name: String,
    /// The alarm's description; empty if the alarm has no description.
    pub description: String,
    /// The alarm's state: `OK`, `ALARM` or `INSUFFICIENT_DATA`.
    pub state: String,
    /// The ARNs of the actions, such as SNS topics, that the alarm runs when it enters the `ALARM` state.
    pub actions: Vec<String>,
    /// True if the alarm's actions are enabled.
    pub actions_enabled: bool,
    /// The metrics that the alarm monitors: a single metric, or all metrics in the alarm's expression.
    pub metrics: Vec<WatchedMetric>,
}

/// A metric that an alarm monitors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedMetric {
    /// The metric's namespace, such as `AWS/SQS`; empty if CloudWatch returned none.
    pub namespace: String,
    /// The metric's name; empty if CloudWatch returned none.
    pub name: String,
    /// The metric's dimensions, by name.
    pub dimensions: BTreeMap<String, String>,
}

/// An alarm to create, which fires when the sum of its metric over five minutes is 1 or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAlarm {
    /// The alarm's name.
    pub name: String,
    /// The alarm's description.
    pub description: String,
    /// The metric that the alarm monitors.
    pub metric: WatchedMetric,
    /// The ARNs of the actions, such as SNS topics, for entering the `ALARM` state and for returning to `OK`.
    pub actions: Vec<String>,
}

/// A CloudFormation stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// The stack's name.
    pub name: String,
    /// The stack's status, such as `UPDATE_COMPLETE`.
    pub status: String,
    /// The values of the stack's parameters, by name.
    pub parameters: BTreeMap<String, String>,
    /// The capabilities that were acknowledged in the stack's last deployment, such as `CAPABILITY_IAM`.
    pub capabilities: Vec<String>,
    /// The time of the stack's last update, in milliseconds since the Unix epoch; `None` if the stack was never
    /// updated.
    pub updated: Option<i64>,
    /// The id of the parent stack; `None` if the stack is not nested.
    pub parent: Option<String>,
}

/// A resource in a CloudFormation stack, such as a function or a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackResource {
    /// The resource's name in the template.
    pub logical_id: String,
    /// The resource's id in AWS; `None` if the resource does not exist yet.
    pub physical_id: Option<String>,
    /// The resource's type, such as `AWS::Lambda::Function`.
    pub kind: String,
}

/// A status change of a resource in a CloudFormation stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackEvent {
    /// The name of the resource in the template.
    pub logical_id: String,
    /// True if the event is about the stack itself.
    pub is_of_stack: bool,
    /// The new status of the resource, such as `UPDATE_FAILED`.
    pub status: String,
    /// The reason for the new status; `None` if CloudFormation gives none.
    pub reason: Option<String>,
}

impl StackEvent {
    /// Returns true for the first event of an update of the stack.
    pub fn begins_update(&self) -> bool {
        self.is_of_stack && self.status == "UPDATE_IN_PROGRESS"
    }
}

/// The verdict of IAM's policy simulator on whether a role may perform an action. The resource's own policy is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A policy allows the action.
    Allowed,
    /// No policy allows the action.
    NotAllowed,
    /// A policy denies the action, so no other policy can allow it.
    Denied,
}

/// A KMS key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KmsKey {
    /// The key's ARN, or `None` if KMS did not return it.
    pub arn: Option<String>,
    /// True if AWS manages the key for one of its services. Users of that service need no permission for the key.
    pub is_managed_by_aws: bool,
    /// The key's state, such as `Enabled` or `PendingDeletion`; `None` if KMS returned none.
    pub state: Option<String>,
}
