//! Recognizes messages that are not failure records, and describes what the operator has to change for each known kind.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::invocation_record::InvocationRecord;
use crate::json::{Members, lossy_text, object, string};
use crate::record::Record;

/// Describes a message that is not a failure record, such as an S3 notification. Returns `None` if its kind is
/// unknown.
pub(crate) fn named(record: &Record) -> Option<String> {
    let has = |name: &str| record.attributes.iter().any(|attribute| attribute.name == name);
    // Source: "Adding a dead-letter queue", Lambda Developer Guide.
    if has("RequestID") && has("ErrorCode") {
        return Some(
            "an event from a function's own dead-letter queue (DeadLetterConfig), which does not name the \
             function; make the retry queue the function's on-failure destination instead"
                .into(),
        );
    }
    let members: Members<'_> = object(&record.body).ok()?;
    mapping(&members)
        .or_else(|| sns(&members))
        .or_else(|| event_bridge(&members))
        .or_else(|| s3_test(&members))
        .or_else(|| target_event(&members))
}

/// Describes the failure record of an event source mapping; `None` for any other message. Sources: the pages on
/// failure destinations for Kinesis, DynamoDB and Kafka mappings, Lambda Developer Guide.
fn mapping(members: &Members<'_>) -> Option<String> {
    let (member, batch) = members.iter().find(|(name, _)| name.ends_with("BatchInfo"))?;
    members.get("requestContext")?;
    let batch: Members<'_> = object(batch.get()).ok()?;
    let service = match member.trim_end_matches("BatchInfo") {
        "DDBStream" => "DynamoDB",
        service @ ("Kinesis" | "Kafka") => service,
        _ => "stream",
    };
    let arn = ["streamArn", "eventSourceArn"].iter().find_map(|name| arn(&batch, name));
    let place = arn.as_deref().unwrap_or("their source");
    Some(format!(
        "the failure record of a {service} mapping, which has no payload by design; its records are in \
         {place} until they expire ({member} says which). Give that mapping another failure destination"
    ))
}

fn sns(members: &Members<'_>) -> Option<String> {
    let topic = arn(members, "TopicArn")?;
    match &*member(members, "Type")? {
        "Notification" => {
            let message = string(members.get("Message")?).unwrap_or_default();
            Some(match not_a_record(&message) {
                None => format!(
                    "a failure record in an SNS notification; turn on raw message delivery for the \
                     subscription to {topic}"
                ),
                Some(why) => {
                    format!("an SNS notification from {topic} whose Message is not a failure record: {why}")
                }
            })
        }
        "SubscriptionConfirmation" | "UnsubscribeConfirmation" => {
            Some(format!("an SNS subscription confirmation for {topic}, not a failure record"))
        }
        _ => None,
    }
}

fn event_bridge(members: &Members<'_>) -> Option<String> {
    members.get("detail-type")?;
    members.get("source")?;
    Some(match not_a_record(members.get("detail")?.get()) {
        None => {
            "a failure record in an EventBridge event; set the InputPath of the rule's target to $.detail"
                .into()
        }
        Some(why) => format!("an EventBridge event whose detail is not a failure record: {why}"),
    })
}

/// Returns why the body of an SNS or EventBridge message is not a failure record, or `None` if it is one.
fn not_a_record(body: &str) -> Option<String> {
    let why = InvocationRecord::read(body).err()?.detail;
    // The wrapped body may itself be wrapped, any number of times, so calling `named` here could recurse without limit.
    Some(object(body).ok().and_then(|members| mapping(&members)).unwrap_or(why))
}

/// Recognizes the test message that S3 sends when a bucket's notifications are configured. Source: "Walkthrough:
/// configuring a bucket for notifications", S3 User Guide.
fn s3_test(members: &Members<'_>) -> Option<String> {
    let is_test = &*member(members, "Event")? == "s3:TestEvent";
    is_test.then(|| {
        "s3:TestEvent: a bucket's notifications go to this queue, which is for failure records only".into()
    })
}

/// Returns a description if the message is a target function's event without a failure record, and otherwise `None`.
fn target_event(members: &Members<'_>) -> Option<String> {
    #[derive(Deserialize)]
    struct Source<'a> {
        // SNS writes the name with a capital letter.
        #[serde(borrow, alias = "EventSource", rename = "eventSource")]
        event_source: Cow<'a, str>,
    }
    if members.contains_key("_retry_metadata") {
        return Some("an event in its envelope, without its failure record".into());
    }
    let records: Vec<&RawValue> = serde_json::from_str(members.get("Records")?.get()).ok()?;
    let Source { event_source } = object(records.first()?.get()).ok()?;
    let service = event_source.strip_prefix("aws:")?;
    let is_name =
        service.len() <= 32 && service.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    is_name.then(|| format!("an event of aws:{service}, without a failure record"))
}

fn member<'a>(members: &Members<'a>, name: &str) -> Option<Cow<'a, str>> {
    lossy_text(members.get(name)?)
}

/// Returns the value of the member `name` if it is an ARN of at most 256 printable characters.
fn arn<'a>(members: &Members<'a>, name: &str) -> Option<Cow<'a, str>> {
    let is_one = |arn: &Cow<'_, str>| {
        arn.starts_with("arn:") && arn.len() <= 256 && arn.bytes().all(|byte| byte.is_ascii_graphic())
    };
    member(members, name).filter(is_one)
}
