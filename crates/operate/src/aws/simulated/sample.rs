//! The deployment that tests, demonstrations and simulated runs start with.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use comeback_engine::Timestamp;
use serde_json::json;

use super::{
    AccountState, Function, LogGroup, Role, SimulatedAws, SimulatedQueue, Stack, function_arn, policy,
    queue_arn, queue_url, role_arn,
};
use crate::aws::{self, Executions, InvokeSettings, Mapping, MetricAlarm, StackResource, WatchedMetric};
use crate::function::STACK_TAG;

/// The deployment that the template creates as the stack `comeback`, and the function `orders`, which no stack owns.
///
/// ```
/// use comeback_engine::Timestamp;
/// use comeback_operate::aws::simulated::Sample;
///
/// let aws = Sample { is_attached: true, ..Sample::new(Timestamp::from_secs(1_700_000_000)) }.build();
/// assert_eq!(aws.queue(Sample::RETRY_QUEUE).stored(aws.time()).count(), 0);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The time that the account's clock shows.
    pub now: Timestamp,
    /// True if the function `orders` is attached.
    pub is_attached: bool,
    /// The names of other functions in the account, which are not attached.
    pub others: BTreeSet<String>,
}

impl Sample {
    /// The stack's name.
    pub const STACK: &str = "comeback";
    /// The retry handler's name.
    pub const HANDLER: &str = "retry-handler";
    /// The name of the handler's role.
    pub const HANDLER_ROLE: &str = "handler-role";
    /// The name of the handler's log group.
    pub const LOG_GROUP: &str = "/aws/lambda/retry-handler";
    /// The retry queue's name.
    pub const RETRY_QUEUE: &str = "retries";
    /// The dead-letter queue's name.
    pub const DEAD_LETTER_QUEUE: &str = "dead";
    /// The name of the parameter that holds the pauses. The parameter does not exist until something is paused.
    pub const PAUSES: &str = "/comeback/comeback/pauses";
    /// The name of the function that is attached if `is_attached` is true.
    pub const ORDERS: &str = "orders";
    /// The ARN of the topic that the alarm notifies.
    pub const TOPIC: &str = "arn:aws:sns:eu-west-1:123456789012:on-call";

    /// Creates a sample without attached functions. The account's clock will show `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { now, is_attached: false, others: BTreeSet::new() }
    }

    /// Creates a simulated account that contains the sample deployment.
    pub fn build(&self) -> SimulatedAws {
        let aws = SimulatedAws::new(self.now);
        let state = &mut *aws.state();
        state.executions = Some(Executions { all: 1_000, unreserved: 1_000 });
        add_queues(state);
        add_handler(state);
        for name in self.others.iter().map(String::as_str).chain([Self::ORDERS]) {
            add_function(state, name);
        }
        state.alarms.insert("dead-letters".into(), dead_letters_alarm());
        let targets = if self.is_attached { function_arn(Self::ORDERS) } else { String::new() };
        add_stack(state, &targets);
        if self.is_attached {
            attach(state, Self::ORDERS);
        }
        aws.clone()
    }

    pub(super) fn add_attached(state: &mut AccountState, name: &str) {
        add_function(state, name);
        attach(state, name);
        let arn = function_arn(name);
        Self::redeploy(state, "TargetFunctions", |targets| format!("{targets},{arn}"));
    }

    /// Updates one parameter of the stack instantly.
    pub(crate) fn redeploy(state: &mut AccountState, parameter: &str, value: impl FnOnce(&str) -> String) {
        let stack = state.stacks.get_mut(Self::STACK).expect("BUG: it was added");
        let parameter = stack.stack.parameters.get_mut(parameter).expect("BUG: the template has it");
        *parameter = value(parameter);
        let described = stack.stack.clone();
        deploy(state, &described);
    }
}

fn add_queues(state: &mut AccountState) {
    let mut retries = SimulatedQueue::new(queue_arn(Sample::RETRY_QUEUE));
    let redrive =
        json!({"deadLetterTargetArn": queue_arn(Sample::DEAD_LETTER_QUEUE), "maxReceiveCount": 1_000});
    retries.attributes.insert("RedrivePolicy".into(), redrive.to_string());
    for mut queue in [retries, SimulatedQueue::new(queue_arn(Sample::DEAD_LETTER_QUEUE))] {
        queue.attributes.insert("SqsManagedSseEnabled".into(), "true".into());
        state.queues.insert(queue.name().to_owned(), queue);
    }
}

fn add_handler(state: &mut AccountState) {
    let mut handler = Function::new(Sample::HANDLER);
    handler.configuration.role_arn = role_arn(Sample::HANDLER_ROLE);
    let variables = [
        ("RETRY_QUEUE_URL", queue_url(Sample::RETRY_QUEUE)),
        ("DEAD_LETTER_QUEUE_URL", queue_url(Sample::DEAD_LETTER_QUEUE)),
        ("MAXIMUM_CONCURRENCY", "10".into()),
        ("PAUSES", Sample::PAUSES.into()),
    ];
    handler.configuration.variables = texts(variables);
    handler.tags =
        texts([("comeback:version", env!("CARGO_PKG_VERSION").into()), (STACK_TAG, Sample::STACK.into())]);
    handler.recursion_allowed = true;
    state.add_function(handler);
    let retention = Some(Duration::from_secs(30 * 86_400));
    let settings = aws::LogGroup { retention, class: Some("STANDARD".into()) };
    state.log_groups.insert(Sample::LOG_GROUP.into(), LogGroup { settings, ..LogGroup::default() });
    state.roles.insert(Sample::HANDLER_ROLE.into(), Role::default());
    state.mappings.push(Mapping {
        uuid: "6ec5b0c5-0b8f-4a36-b1a4-6b1a2e2f9d10".into(),
        function_arn: function_arn(Sample::HANDLER),
        queue_arn: queue_arn(Sample::RETRY_QUEUE),
        state: "Enabled".into(),
        batch_size: 10,
        window: Duration::ZERO,
        reports_failures: true,
        maximum_concurrency: Some(10),
        maximum_pollers: None,
    });
}

/// Adds a function with a log group and a role, without attaching it to the deployment.
fn add_function(state: &mut AccountState, name: &str) {
    state.add_function(Function::new(name));
    let group = format!("/aws/lambda/{name}");
    state.log_groups.insert(group.clone(), LogGroup::default());
    let actions = ["logs:CreateLogStream", "logs:PutLogEvents"];
    let role = Role::allowing(&actions, &[&log_group_arn(&group)]);
    state.roles.insert(format!("{name}-role"), role);
}

/// Makes the same changes as `comeback attach`.
fn attach(state: &mut AccountState, name: &str) {
    let retries = queue_arn(Sample::RETRY_QUEUE);
    let role = state.roles.get_mut(&format!("{name}-role")).expect("BUG: it was added");
    role.policies.insert("comeback-retries".into(), policy(&["sqs:SendMessage"], &[&retries]));
    let function = state.functions.get_mut(name).expect("BUG: it was added");
    let attached =
        InvokeSettings { retries: Some(0), event_age: Some(60), on_failure: Some(retries), on_success: None };
    function.invoke_settings.insert(None, attached);
    function.recursion_allowed = true;
    function.tags = texts([
        ("comeback:retries", "default".into()),
        ("comeback:event-age", "default".into()),
        ("comeback:on-failure", "none".into()),
        ("comeback:recursion", "Terminate".into()),
    ]);
    let lost = ("FunctionName", name);
    let alarm =
        alarm(&format!("retries-lost-{name}"), &[("AWS/Lambda", "DestinationDeliveryFailures", lost)]);
    state.alarms.insert(alarm.name.clone(), alarm);
}

fn add_stack(state: &mut AccountState, targets: &str) {
    let resource = |logical_id: &str, physical_id: String, kind: &str| StackResource {
        logical_id: logical_id.into(),
        physical_id: Some(physical_id),
        kind: kind.into(),
    };
    let resources = vec![
        resource("RetryQueue", queue_url(Sample::RETRY_QUEUE), "AWS::SQS::Queue"),
        resource("DeadLetterQueue", queue_url(Sample::DEAD_LETTER_QUEUE), "AWS::SQS::Queue"),
        resource("RetryHandler", Sample::HANDLER.into(), "AWS::Lambda::Function"),
        resource("RetryHandlerRole", Sample::HANDLER_ROLE.into(), "AWS::IAM::Role"),
        resource("DeadLettersAlarm", "dead-letters".into(), "AWS::CloudWatch::Alarm"),
    ];
    let described = aws::Stack {
        name: Sample::STACK.into(),
        status: "CREATE_COMPLETE".into(),
        parameters: texts([
            ("TargetFunctions", targets.into()),
            ("FunctionPolicies", String::new()),
            ("AlarmTopicArn", String::new()),
        ]),
        capabilities: ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"].map(Into::into).into(),
        updated: None,
        parent: None,
    };
    deploy(state, &described);
    state.stacks.insert(Sample::STACK.into(), Stack::new(described, resources));
}

/// Sets the handler's environment variables and permissions from the stack's parameters.
pub(super) fn deploy(state: &mut AccountState, stack: &aws::Stack) {
    let parameter = |name: &str| stack.parameters.get(name).cloned().unwrap_or_default();
    let targets = parameter("TargetFunctions");
    if let Some(handler) = state.functions.get_mut(Sample::HANDLER) {
        let variables = &mut handler.configuration.variables;
        variables.insert("TARGET_FUNCTIONS".into(), targets.clone());
        variables.insert("POLICIES".into(), parameter("FunctionPolicies"));
    }
    let [retries, dead] = [Sample::RETRY_QUEUE, Sample::DEAD_LETTER_QUEUE].map(queue_arn);
    let take =
        ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"];
    let pauses = format!("arn:aws:ssm:{}:{}:parameter{}", super::REGION, super::ACCOUNT, Sample::PAUSES);
    let allow = |actions: &[&str], resources: &[String]| json!({"Effect": "Allow", "Action": actions, "Resource": resources});
    let mut statements = vec![
        allow(&take, std::slice::from_ref(&retries)),
        allow(&["sqs:SendMessage"], &[retries, dead]),
        allow(&["ssm:GetParameter"], &[pauses]),
        allow(&["logs:CreateLogStream", "logs:PutLogEvents"], &[log_group_arn(Sample::LOG_GROUP)]),
    ];
    let targets: Vec<_> = targets.split(',').filter(|it| !it.is_empty()).collect();
    if !targets.is_empty() {
        let both: Vec<_> = targets.iter().flat_map(|arn| [(*arn).to_owned(), format!("{arn}:*")]).collect();
        statements.push(allow(&["lambda:InvokeFunction"], &both));
    }
    if let Some(role) = state.roles.get_mut(Sample::HANDLER_ROLE) {
        let document = json!({"Version": "2012-10-17", "Statement": statements});
        role.policies.insert("retry-handler".into(), document.to_string());
    }
}

fn dead_letters_alarm() -> MetricAlarm {
    let queue = ("QueueName", Sample::DEAD_LETTER_QUEUE);
    let counts = ["ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"];
    alarm("dead-letters", &counts.map(|name| ("AWS/SQS", name, queue)))
}

fn alarm(name: &str, metrics: &[(&str, &str, (&str, &str))]) -> MetricAlarm {
    let metric = |(namespace, name, (dimension, value)): &(&str, &str, (&str, &str))| WatchedMetric {
        namespace: (*namespace).into(),
        name: (*name).into(),
        dimensions: texts([(*dimension, (*value).to_owned())]),
    };
    MetricAlarm {
        name: name.into(),
        description: format!("{name} should be empty."),
        state: "OK".into(),
        actions: vec![Sample::TOPIC.into()],
        actions_enabled: true,
        metrics: metrics.iter().map(metric).collect(),
    }
}

fn log_group_arn(name: &str) -> String {
    format!("arn:aws:logs:{}:{}:log-group:{name}:*", super::REGION, super::ACCOUNT)
}

fn texts<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}
