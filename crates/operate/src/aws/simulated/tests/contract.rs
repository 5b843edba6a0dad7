//! Contract tests for [`Aws`]: the behaviour of AWS that Comeback relies on.
//!
//! A unit test in this crate runs the tests against `SimulatedAws`. `tests/tests/operate/contract.rs` includes this
//! file, and runs the tests against the AWS SDK and a local stand-in, MiniStack.
//!
//! Every call of the port is in here. Unit tests in `aws/sdk` read AWS's own response where MiniStack gives another:
//! MiniStack has no KMS keys that AWS manages, and returns a metric's oldest point first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use comeback_engine::Timestamp;
use serde_json::{Value, json};

use super::aws::{
    AttributeValue, Aws, EntryFailureKind, EntryResults, InvokeSettings, KmsKey, LogFilter, MetricQuery,
    MetricStatistic, NewAlarm, NewMessage, Receive, Received, StackEvent, Verdict, WatchedMetric,
};

/// The resources that an account must have, or must lack, before the contract can be tested there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fixture {
    /// The name of a function without tags, variables or settings for asynchronous invocations.
    pub(super) function: String,
    pub(super) function_arn: String,
    pub(super) alias: String,
    /// A payload with which the function succeeds.
    pub(super) payload: String,
    /// The name of the function's role, which has no inline policies.
    pub(super) role: String,
    /// The ARN of an empty queue, with a visibility timeout of at least a minute. Its only mapping is disabled. The
    /// mapping is for the function and no other, passes batches of 7, and reports failures.
    pub(super) queue_arn: String,
    /// The name of a parameter that does not exist.
    pub(super) parameter: String,
    /// The name of an alarm that does not exist.
    pub(super) alarm: String,
    /// The ARN of an SNS topic that an alarm can notify.
    pub(super) topic: String,
    /// The name of a log group with the lines `one k-1` and `two k-2`, both written within the last hour.
    pub(super) log_group: String,
    /// A namespace with the metric `Count`, whose only values, with the dimension `Of` = `port`, are 2 and 3. Both have
    /// the same time within the last hour.
    pub(super) namespace: String,
    /// The name of a stack with the parameters `Changed` and `Kept`, both `old`. Its only resource is `Value`, an SSM
    /// parameter.
    pub(super) stack: String,
    /// The ARN of an enabled KMS key that AWS does not manage.
    pub(super) key: String,
}

pub(super) async fn all(aws: &dyn Aws, fixture: &Fixture) {
    function(aws, fixture).await;
    invoke_settings(aws, fixture).await;
    mappings(aws, fixture).await;
    invocation(aws, fixture).await;
    role(aws, fixture).await;
    verdict(aws, fixture).await;
    queue(aws, fixture).await;
    receipts(aws, fixture).await;
    newest_handle(aws, fixture).await;
    parameter(aws, fixture).await;
    alarm(aws, fixture).await;
    log(aws, fixture).await;
    log_stream(aws, fixture).await;
    metric(aws, fixture).await;
    stack(aws, fixture).await;
    key(aws, fixture).await;
    missing(aws, fixture).await;
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn policy(statement: Value) -> String {
    json!({"Version": "2012-10-17", "Statement": [statement]}).to_string()
}

/// A function's configuration can be written and read back. An alias has a configuration of its own.
async fn function(aws: &dyn Aws, fixture: &Fixture) {
    let Fixture { function, function_arn, alias, role, .. } = fixture;
    let read = async |qualifier| aws.function(function, qualifier).await.unwrap();
    let described = read(None).await.expect("the function exists");
    assert_eq!((&described.configuration.name, &described.configuration.arn), (function, function_arn));
    assert!(described.configuration.role_arn.ends_with(&format!("/{role}")), "{described:?}");
    let qualified = read(Some(alias)).await.expect("the alias exists").configuration;
    assert!(
        qualified.arn.starts_with(&format!("{function_arn}:")),
        "the alias, or its version: {}",
        qualified.arn
    );
    assert_eq!(read(Some("never")).await, None);
    assert_eq!(
        aws.function(function_arn, None).await.unwrap().map(|it| it.configuration.arn).as_ref(),
        Some(function_arn)
    );

    aws.tag(function_arn, texts(&[("a", "1"), ("b", "1")])).await.unwrap();
    aws.tag(function_arn, texts(&[("b", "2"), ("c", "2")])).await.unwrap();
    assert_eq!(aws.tags(function_arn).await.unwrap(), texts(&[("a", "1"), ("b", "2"), ("c", "2")]));
    aws.untag(function_arn, ["a", "c", "never"].map(Into::into).into()).await.unwrap();
    assert_eq!(read(None).await.unwrap().tags, texts(&[("b", "2")]));

    for variables in [texts(&[("A", "1"), ("B", "1")]), texts(&[("B", "2")])] {
        let revision = read(None).await.unwrap().configuration.revision;
        aws.set_variables(function, variables.clone(), revision).await.unwrap();
        let configuration = aws.configuration(function, None).await.unwrap();
        assert_eq!(configuration.variables, variables, "they are replaced as a whole");
    }
    for allowed in [true, false] {
        aws.allow_recursion(function, allowed).await.unwrap();
        assert_eq!(aws.recursion_allowed(function).await.unwrap(), allowed);
    }
    let all = aws.functions("the account").await.unwrap();
    assert!(all.iter().any(|it| it.arn == *function_arn), "{all:?}");
}

/// A write replaces all the settings of one qualifier. Other qualifiers keep theirs.
async fn invoke_settings(aws: &dyn Aws, fixture: &Fixture) {
    let Fixture { function, alias, .. } = fixture;
    let settings = |retries, event_age| InvokeSettings {
        retries: Some(retries),
        event_age: Some(event_age),
        ..Default::default()
    };
    let live = Some(&**alias);
    for (qualifier, put) in [(None, settings(1, 600)), (live, settings(0, 60)), (None, settings(0, 120))] {
        assert!(
            aws.put_invoke_settings(function, qualifier, &put).await.unwrap(),
            "no destination needs a permission"
        );
        let all = aws.invoke_settings(function).await.unwrap();
        assert_eq!(all.get(&qualifier.map(ToOwned::to_owned)), Some(&put));
    }
    for (qualifier, left) in [(None, 1), (live, 0), (live, 0)] {
        aws.delete_invoke_settings(function, qualifier).await.unwrap();
        assert_eq!(aws.invoke_settings(function).await.unwrap().len(), left);
    }
}

/// A mapping is listed for its function and for its queue.
async fn mappings(aws: &dyn Aws, fixture: &Fixture) {
    let Fixture { function, function_arn, queue_arn, .. } = fixture;
    let of_queue = aws.mappings_of_queue(queue_arn).await.unwrap();
    assert_eq!(aws.mappings_of_function(function).await.unwrap(), of_queue);
    let [mapping] = &of_queue[..] else { panic!("there is one mapping: {of_queue:?}") };
    assert_eq!((&mapping.function_arn, &mapping.queue_arn), (function_arn, queue_arn));
    assert_eq!((&*mapping.state, mapping.feeds()), ("Disabled", false));
    assert_eq!((mapping.batch_size, mapping.window, mapping.reports_failures), (7, Duration::ZERO, true));
    assert_eq!((mapping.maximum_concurrency, mapping.maximum_pollers), (None, None));
    assert_eq!(aws.mappings_of_queue(&format!("{queue_arn}-never")).await.unwrap(), []);
}

/// Each asynchronous invocation has its own request id. The account limits how many functions run at once.
async fn invocation(aws: &dyn Aws, fixture: &Fixture) {
    let Fixture { function, function_arn, alias, payload, .. } = fixture;
    let mut ids = BTreeSet::new();
    for name in [function, function_arn, &format!("{function}:{alias}")] {
        let id = aws.invoke_async(name, payload).await.unwrap();
        assert!(!id.is_empty() && ids.insert(id.clone()), "{id:?} of {name}");
    }
    let executions = aws.executions().await.unwrap().expect("the account has limits");
    assert!((1..=executions.all).contains(&executions.unreserved), "{executions:?}");
}

/// A new inline policy replaces the role's policy of the same name.
async fn role(aws: &dyn Aws, fixture: &Fixture) {
    let role = &*fixture.role;
    let policy = |action: &str| policy(json!({"Effect": "Allow", "Action": action, "Resource": "*"}));
    for (name, action) in [("one", "sqs:SendMessage"), ("two", "sqs:SendMessage"), ("one", "kms:Decrypt")] {
        aws.put_role_policy(role, name, &policy(action)).await.unwrap();
        let read = aws.role_policy(role, name).await.unwrap().expect("the policy exists");
        let [read, put] = [read, policy(action)].map(|it| serde_json::from_str::<Value>(&it).unwrap());
        assert_eq!(read, put);
    }
    let names = aws.role_policies(role).await.unwrap();
    assert_eq!(names.into_iter().collect::<BTreeSet<_>>(), ["one", "two"].map(String::from).into());
    for name in ["one", "one", "two"] {
        aws.delete_role_policy(role, name).await.unwrap();
        assert_eq!(aws.role_policy(role, name).await.unwrap(), None);
    }
    assert_eq!(aws.role_policies(role).await.unwrap(), [""; 0]);
}

/// A policy allows its action if its condition holds, and a denial outweighs it. KMS is called through SQS.
async fn verdict(aws: &dyn Aws, fixture: &Fixture) {
    let Fixture { function, role, queue_arn, key, .. } = fixture;
    let role_arn = aws.configuration(function, None).await.unwrap().role_arn;
    let may = async |action, resource| aws.may(&role_arn, action, resource).await.unwrap();
    let put = async |name, statement| aws.put_role_policy(role, name, &policy(statement)).await.unwrap();
    let send = |effect: &str| json!({"Effect": effect, "Action": "sqs:SendMessage", "Resource": queue_arn});
    let other_queue = format!("{queue_arn}-never");
    assert_eq!(may("sqs:SendMessage", queue_arn).await, Verdict::NotAllowed);
    put("allow", send("Allow")).await;
    assert_eq!(may("sqs:SendMessage", queue_arn).await, Verdict::Allowed);
    assert_eq!(may("sqs:SendMessage", &other_queue).await, Verdict::NotAllowed);
    assert_eq!(may("sqs:ReceiveMessage", queue_arn).await, Verdict::NotAllowed);
    put("deny", send("Deny")).await;
    assert_eq!(may("sqs:SendMessage", queue_arn).await, Verdict::Denied);
    for (service, expected) in [("s3", Verdict::NotAllowed), ("sqs", Verdict::Allowed)] {
        let via = json!({"StringLike": {"kms:ViaService": format!("{service}.*.amazonaws.com")}});
        let decrypt = json!({"Effect": "Allow", "Action": "kms:Decrypt", "Resource": key, "Condition": via});
        put("key", decrypt).await;
        assert_eq!(may("kms:Decrypt", key).await, expected, "{service}");
    }
    for name in ["allow", "deny", "key"] {
        aws.delete_role_policy(role, name).await.unwrap();
    }
}

/// Receives up to ten messages, hides them for this many seconds, and returns them, keyed by body.
async fn receive(aws: &dyn Aws, url: &str, seconds: u64) -> BTreeMap<String, Received> {
    let receive = Receive { visibility: Duration::from_secs(seconds), wait: Duration::ZERO };
    let received = aws.receive(url, 10, receive).await.unwrap();
    received.into_iter().map(|message| (message.record.body.clone(), message)).collect()
}

/// The numbers of visible and hidden messages in a queue.
async fn counts(aws: &dyn Aws, url: &str) -> [String; 2] {
    let names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
    let attributes = aws.queue_attributes(url, &names).await.unwrap().expect("the queue exists");
    assert_eq!(attributes.len(), names.len(), "only those that were asked for");
    names.map(|name| attributes[name].clone())
}

async fn until_visible(aws: &dyn Aws, url: &str, visible: &str) {
    for _ in 0..100 {
        if counts(aws, url).await[0] == visible {
            return;
        }
        aws.sleep(Duration::from_millis(100)).await;
    }
    panic!("after ten seconds, {url} does not have {visible} visible messages");
}

fn handle(message: &Received) -> String {
    message.record.receipt_handle.clone()
}

fn assert_done(answers: EntryResults) {
    answers.into_iter().for_each(|answer| answer.unwrap());
}

/// A queue delivers messages with their attributes, and can hide, count and delete them.
async fn queue(aws: &dyn Aws, fixture: &Fixture) {
    let url = aws.queue_url(&fixture.queue_arn).await.unwrap().expect("the queue exists");
    let attributes = aws.queue_attributes(&url, &[]).await.unwrap().expect("the queue exists");
    assert_eq!(attributes["QueueArn"], fixture.queue_arn);
    let attribute =
        |data_type: &str, value: &str| AttributeValue { data_type: data_type.into(), value: value.into() };
    let ours = BTreeMap::from([
        ("Reason".to_owned(), attribute("String", "max_age")),
        ("RetriesMade".to_owned(), attribute("Number", "7")),
        ("Raw".to_owned(), attribute("Binary", "AP8=")),
    ]);
    let message = |body: &str, attributes| NewMessage { body: body.into(), attributes, trace_header: None };
    let messages = vec![message("ours", ours.clone()), message("plain", BTreeMap::new())];
    assert_done(aws.send(&url, messages, &|_, _| ()).await);
    assert_eq!(counts(aws, &url).await, ["2", "0"]);

    // After the first receive, the messages become visible immediately. After the second receive, they stay hidden for
    // a second.
    for (receives, seconds) in [(1, 0), (2, 1)] {
        let received = receive(aws, &url, 60).await;
        assert_eq!(received.keys().collect::<Vec<_>>(), ["ours", "plain"]);
        assert_eq!(counts(aws, &url).await, ["0", "2"]);
        assert!(receive(aws, &url, 60).await.is_empty(), "they are hidden");
        assert_eq!(received["ours"].attributes, ours);
        assert!(received["plain"].attributes.is_empty());
        assert_eq!(received["plain"].record.receive_count, receives);
        let hidden = received.values().map(|it| (handle(it), Duration::from_secs(seconds))).collect();
        assert_done(aws.hide(&url, hidden, true, &|_, _| ()).await);
        until_visible(aws, &url, "2").await;
    }
    let received = receive(aws, &url, 60).await;
    assert_done(aws.delete(&url, vec![handle(&received["ours"])], &|_, _| ()).await);
    assert_eq!(counts(aws, &url).await, ["0", "1"]);
    assert_done(aws.delete(&url, vec![handle(&received["plain"])], &|_, _| ()).await);
    assert_eq!(counts(aws, &url).await, ["0", "0"]);
}

/// A batch call returns a result for each entry, and refuses only the entry with an invalid receipt handle.
async fn receipts(aws: &dyn Aws, fixture: &Fixture) {
    let url = aws.queue_url(&fixture.queue_arn).await.unwrap().expect("the queue exists");
    let bodies = (0..11).map(|number| NewMessage { body: format!("{number:02}"), ..NewMessage::default() });
    assert_done(aws.send(&url, bodies.collect(), &|_, _| ()).await);
    let mut received = receive(aws, &url, 60).await;
    assert_eq!(received.len(), 10, "a receive brings ten at most");
    received.extend(receive(aws, &url, 60).await);
    assert_eq!(received.len(), 11);
    let mut hidden: Vec<_> = received.values().map(|it| (handle(it), Duration::from_secs(120))).collect();
    hidden.insert(3, ("garbled".into(), Duration::from_secs(120)));
    let answers = aws.hide(&url, hidden, true, &|_, _| ()).await;
    for (index, answer) in answers.iter().enumerate() {
        let kind = answer.as_ref().err().map(|failure| failure.kind);
        assert_eq!(kind, (index == 3).then_some(EntryFailureKind::Refused), "{index}: {answer:?}");
    }
    assert_done(aws.delete(&url, received.values().map(handle).collect(), &|_, _| ()).await);
    let gone = received.values().next().expect("there were eleven");
    let answers = aws.hide(&url, vec![(handle(gone), Duration::ZERO)], true, &|_, _| ()).await;
    assert!(answers[0].as_ref().is_err_and(|it| it.kind == EntryFailureKind::Refused), "{answers:?}");
    assert_eq!(counts(aws, &url).await, ["0", "0"]);
}

/// Each receive returns a new receipt handle, which can end the message's visibility timeout early.
async fn newest_handle(aws: &dyn Aws, fixture: &Fixture) {
    let url = aws.queue_url(&fixture.queue_arn).await.unwrap().expect("the queue exists");
    let message = NewMessage { body: "recalled".into(), ..NewMessage::default() };
    assert_done(aws.send(&url, vec![message], &|_, _| ()).await);
    let mut handles = BTreeSet::new();
    let hides = async |handle: &str, seconds| {
        aws.hide(&url, vec![(handle.to_owned(), Duration::from_secs(seconds))], true, &|_, _| ()).await
    };
    for receives in 1..=3 {
        let received = receive(aws, &url, 60).await;
        assert_eq!(received["recalled"].record.receive_count, receives);
        let newest = handle(&received["recalled"]);
        assert!(handles.insert(newest.clone()), "{newest} has come before");
        assert_done(hides(&newest, 43_000).await);
        assert_eq!(counts(aws, &url).await, ["0", "1"]);
        assert_done(hides(&newest, 0).await);
        until_visible(aws, &url, "1").await;
    }
    let last = handle(&receive(aws, &url, 60).await["recalled"]);
    assert_done(aws.delete(&url, vec![last.clone()], &|_, _| ()).await);
    assert!(hides(&last, 0).await[0].as_ref().is_err_and(|it| it.kind == EntryFailureKind::Refused));
    assert_eq!(counts(aws, &url).await, ["0", "0"]);
}

/// Each write to a parameter creates a new version; a create-only write never overwrites a parameter.
async fn parameter(aws: &dyn Aws, fixture: &Fixture) {
    let name = &*fixture.parameter;
    assert_eq!(aws.parameter(name).await.unwrap(), None);
    assert_eq!(aws.parameter_history(name).await.unwrap(), []);
    for (text, new, written) in
        [("one", true, Some(1)), ("other", true, None), ("two", false, Some(2)), ("three", false, Some(3))]
    {
        assert_eq!(aws.put_parameter(name, text, new).await.unwrap(), written, "{text}");
    }
    let version = aws.parameter(name).await.unwrap().expect("it was written");
    assert_eq!((version.number, &*version.text), (3, "three"));
    let history = aws.parameter_history(name).await.unwrap();
    let versions: Vec<_> = history.iter().map(|version| (version.number, &*version.text)).collect();
    assert_eq!(versions, [(1, "one"), (2, "two"), (3, "three")]);
    assert!(history.iter().all(|version| version.at.is_some()), "{history:?}");
}

/// An alarm can be created, replaced, and deleted by name.
async fn alarm(aws: &dyn Aws, fixture: &Fixture) {
    let Fixture { alarm: name, topic, function, .. } = fixture;
    let metric = WatchedMetric {
        namespace: "AWS/Lambda".into(),
        name: "DestinationDeliveryFailures".into(),
        dimensions: texts(&[("FunctionName", function)]),
    };
    let read = async || aws.alarms("the account").await.unwrap().into_iter().find(|it| it.name == *name);
    assert_eq!(read().await, None);
    for actions in [vec![], vec![topic.clone()]] {
        let alarm = NewAlarm {
            name: name.clone(),
            description: "Some events were lost.".into(),
            metric: metric.clone(),
            actions: actions.clone(),
        };
        aws.put_alarm(&alarm).await.unwrap();
        let put = read().await.expect("it was put");
        assert_eq!(
            (put.description, put.actions, put.metrics),
            (alarm.description, actions, vec![metric.clone()])
        );
        assert!(put.actions_enabled);
    }
    for _ in 0..2 {
        aws.delete_alarm(name).await.unwrap();
        assert_eq!(read().await, None);
    }
}

/// Log lines can be selected by time, and by a term in the line.
async fn log(aws: &dyn Aws, fixture: &Fixture) {
    let group = &*fixture.log_group;
    assert!(aws.log_group(group).await.unwrap().is_some());
    let hour = Duration::from_secs(3_600);
    let search = async |pattern: Option<&str>, since| {
        let filter = LogFilter { group, pattern: pattern.map(Into::into), since, until: None, stream: None };
        let (mut found, mut token) = (Vec::new(), None);
        loop {
            let page = aws.log_page(&filter, token).await.unwrap().expect("the log group exists");
            found.extend(page.events.into_iter().map(|event| event.message));
            token = page.next;
            if token.is_none() {
                found.sort();
                return found;
            }
        }
    };
    let now = aws.now();
    assert_eq!(search(None, now.before(hour)).await, ["one k-1", "two k-2"]);
    assert_eq!(search(Some("\"k-1\""), now.before(hour)).await, ["one k-1"]);
    assert_eq!(search(None, now.saturating_add(hour)).await, [""; 0]);
}

/// A line can be written to a new log stream, and no other stream contains the line.
async fn log_stream(aws: &dyn Aws, fixture: &Fixture) {
    // These lines are two hours old, because the test `log` reads the last hour and must not find them.
    let at = aws.now().before(Duration::from_secs(7_200));
    let (group, stream) = (&*fixture.log_group, "written");
    assert!(!aws.put_log_line(group, stream, at, "too early").await.unwrap());
    for _ in 0..2 {
        aws.create_log_stream(group, stream).await.unwrap();
    }
    for line in ["one k-1", "{\"n\":1}"] {
        assert!(aws.put_log_line(group, stream, at, line).await.unwrap());
    }
    let filter = LogFilter { group, pattern: None, since: at, until: None, stream: Some(stream) };
    let page = aws.log_page(&filter, None).await.unwrap().expect("the stream exists");
    let mut lines: Vec<_> = page.events.iter().map(|event| (event.at, &*event.message)).collect();
    lines.sort();
    assert_eq!(lines, [(at, "one k-1"), (at, "{\"n\":1}")]);
    let failure = aws.create_log_stream("/never", stream).await.unwrap_err().to_string();
    assert!(failure.starts_with("logs:CreateLogStream on /never: ResourceNotFoundException"), "{failure}");
    assert!(!aws.put_log_line("/never", stream, at, "line").await.unwrap());
}

/// A metric's values are combined by period and statistic. A series without data has no points.
async fn metric(aws: &dyn Aws, fixture: &Fixture) {
    let series = |value, statistic| MetricStatistic {
        namespace: &fixture.namespace,
        dimension: ("Of", value),
        name: "Count",
        statistic,
    };
    let series = vec![series("port", "Sum"), series("never", "Sum"), series("port", "Maximum")];
    let period = Duration::from_secs(3_600);
    let this_hour = Timestamp::from_secs(aws.now().as_secs() / 3_600 * 3_600);
    let (since, until) = (this_hour.before(period), this_hour.saturating_add(period));
    let read = aws.metrics(MetricQuery { series, period, since, until }, "the account").await.unwrap();
    let at = read[0].first().expect("the metric has values").0;
    assert!([since, this_hour].contains(&at), "{at} is not the start of a period");
    assert_eq!(read, [vec![(at, 5.0)], vec![], vec![(at, 3.0)]]);
}

/// An update changes one parameter of a stack. The first event in the list is the last one of the update.
async fn stack(aws: &dyn Aws, fixture: &Fixture) {
    let name = &*fixture.stack;
    let read = async || aws.stack(name).await.unwrap().expect("the stack exists");
    let before = read().await;
    assert_eq!((&*before.name, &*before.status), (name, "CREATE_COMPLETE"));
    assert_eq!(before.parameters, texts(&[("Changed", "old"), ("Kept", "old")]));
    let resources = aws.stack_resources(name, name).await.unwrap().expect("the stack exists");
    let [value] = &resources[..] else { panic!("there is one resource: {resources:?}") };
    assert_eq!((&*value.logical_id, &*value.kind), ("Value", "AWS::SSM::Parameter"));
    assert!(value.physical_id.is_some());

    aws.update_stack(&before, "Changed", "new").await.unwrap();
    let mut after = read().await;
    for _ in 0..100 {
        if after.status == "UPDATE_COMPLETE" {
            break;
        }
        aws.sleep(Duration::from_millis(500)).await;
        after = read().await;
    }
    assert_eq!(after.status, "UPDATE_COMPLETE");
    assert_eq!(after.parameters, texts(&[("Changed", "new"), ("Kept", "old")]));
    assert_ne!(after.updated, before.updated);
    let events = aws.stack_events(name).await.unwrap();
    let last = &events[0];
    assert_eq!((&*last.logical_id, last.is_of_stack, &*last.status), (name, true, "UPDATE_COMPLETE"));
    assert!(events[1..].iter().any(StackEvent::begins_update), "{events:?}");
    for unchanged in ["Changed", "Never"] {
        let failure = aws.update_stack(&after, unchanged, "new").await.unwrap_err().to_string();
        assert!(failure.ends_with(": ValidationError: No updates are to be performed."), "{failure}");
    }
}

/// A key that a customer manages is described by its ARN.
async fn key(aws: &dyn Aws, fixture: &Fixture) {
    let arn = &*fixture.key;
    let described = KmsKey { arn: Some(arn.into()), is_managed_by_aws: false, state: Some("Enabled".into()) };
    assert_eq!(aws.key(arn).await.unwrap(), Some(described));
}

/// Reading a resource that does not exist returns `None`, or a failure that names the call.
async fn missing(aws: &dyn Aws, fixture: &Fixture) {
    assert_eq!(aws.function("never", None).await.unwrap(), None);
    let failure = aws.configuration("never", None).await.unwrap_err().to_string();
    assert!(
        failure.starts_with("lambda:GetFunctionConfiguration on never: ResourceNotFoundException"),
        "{failure}"
    );
    let failure = aws.invoke_async("never", "{}").await.unwrap_err().to_string();
    assert!(failure.starts_with("lambda:InvokeFunction on never: ResourceNotFoundException"), "{failure}");
    let Fixture { queue_arn, .. } = fixture;
    assert_eq!(aws.queue_url(&format!("{queue_arn}-never")).await.unwrap(), None);
    let url = aws.queue_url(queue_arn).await.unwrap().expect("the queue exists");
    let gone = format!("{url}-never");
    assert_eq!(aws.queue_attributes(&gone, &["QueueArn"]).await.unwrap(), None);
    let answers =
        aws.send(&gone, vec![NewMessage { body: "b".into(), ..NewMessage::default() }], &|_, _| ()).await;
    assert!(answers[0].as_ref().is_err_and(|it| it.kind == EntryFailureKind::Missing), "{answers:?}");
    assert_eq!(aws.log_group("/never").await.unwrap(), None);
    let filter = LogFilter { group: "/never", pattern: None, since: aws.now(), until: None, stream: None };
    assert_eq!(aws.log_page(&filter, None).await.unwrap(), None);
    assert_eq!(aws.stack("never").await.unwrap(), None);
    assert_eq!(aws.stack_resources("never", "never").await.unwrap(), None);
    let failure = aws.stack_events("never").await.unwrap_err().to_string();
    assert!(failure.starts_with("cloudformation:DescribeStackEvents on never: ValidationError"), "{failure}");
    assert_eq!(aws.key("alias/never").await.unwrap(), None);
    assert_eq!(aws.role_policy("never", "one").await.unwrap(), None);
}
