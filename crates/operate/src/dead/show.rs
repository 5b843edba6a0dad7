//! Shows one dead-letter in full.

use std::collections::BTreeMap;

use comeback_engine::{MOVED_ATTRIBUTE, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::aws::{AttributeValue, Received};
use crate::change::Answer;
use crate::command::CommandName;
use crate::dead::groups::{Described, expires};
use crate::dead::rules::compact;
use crate::dead::scan::{ScanResult, show_each};
use crate::failure::Failure;
use crate::layout::{Block, Fact, Layout};
use crate::operator::Operator;
use crate::shown::shown_json;
use crate::text;
use crate::text::{Piece, Text, quoted};

/// The message attributes that Comeback writes, which the description of a dead-letter already includes.
const OURS: [&str; 6] = ["Reason", "Detail", "TargetFunction", "RetriesMade", "ErrorType", MOVED_ATTRIBUTE];

/// A dead-letter in full, with its payload.
#[derive(Clone, Debug, Serialize)]
pub struct DeadLetterDetails {
    /// The short description of the dead-letter.
    #[serde(flatten)]
    pub described: Described,
    /// The time when the event first failed; `None` if it is unknown.
    pub first_failure: Option<Timestamp>,
    /// The event's payload, as it was sent to the function; `None` if the message has none.
    pub payload: Option<Box<RawValue>>,
    /// The message's body, if the message has no payload.
    pub body: Option<String>,
    /// The message attributes that Comeback did not write.
    pub attributes: BTreeMap<String, AttributeValue>,
    #[serde(skip)]
    read: ScanResult,
}

/// Finds the dead-letter with this event key or message id.
///
/// # Errors
///
/// Fails if the deployment or its dead-letter queue cannot be read, or if no dead-letter has this key or id.
pub async fn show(operator: &Operator, name: &str) -> Result<DeadLetterDetails, Failure> {
    let deployment = operator.deployment().await?;
    let mut found = None;
    let show = |received: &Received| {
        let is_it = received.id() == name || received.dead_letter().key.as_deref() == Some(name);
        found = is_it.then(|| received.clone());
        is_it
    };
    let read = show_each(operator, &deployment, operator.now(), show).await?;
    if let Some(received) = found {
        return Ok(DeadLetterDetails::of(&received, read));
    }
    read.result(&format!("no dead-letter that could be read has key {name:?}"))?;
    Err(Failure::could_not(text![
        format!("no dead-letter in {} has key {name:?}; ", deployment.dead_letter_queue.name()),
        quoted(deployment.command(CommandName::DeadList, ["--each"])),
        " lists the keys"
    ]))
}

impl DeadLetterDetails {
    fn of(received: &Received, read: ScanResult) -> Self {
        let dead_letter = received.dead_letter();
        let described = Described::of(received, &dead_letter);
        let first_failure = dead_letter.first_failure;
        let payload = dead_letter.payload.map(|payload| payload.into_owned());
        let body = payload.is_none().then(|| received.record.body.clone());
        let mut attributes = received.attributes.clone();
        attributes.retain(|name, _| !OURS.contains(&name.as_str()));
        Self { described, first_failure, payload, body, attributes, read }
    }

    /// The facts to show about the dead-letter, other than its payload and body.
    pub fn facts(&self) -> Vec<Fact> {
        let Described { key, message_id, kind, reason, target, error_type, error_message, .. } =
            &self.described;
        let text = |text: &Option<String>| text.as_ref().map(Text::from);
        let moment = |at: Timestamp| Some(Text::from(at));
        let facts = [
            ("key", key.as_ref().map(|key| Piece::Event(key.clone()).into())),
            ("message id", Some(message_id.into())),
            ("kind", Some((*kind).into())),
            ("reason", Some((*reason).into())),
            ("detail", text(&self.described.detail)),
            ("function", text(target)),
            ("retries", self.described.retries.map(|retries| retries.to_string().into())),
            ("error", text(error_type)),
            ("message", text(error_message)),
            ("first failure", self.first_failure.and_then(moment)),
            ("dead-lettered", moment(self.described.dead_lettered_at)),
            ("sent", moment(self.described.sent)),
            ("SQS deletes it", moment(expires(self.described.sent))),
        ];
        let facts = facts.into_iter().filter_map(|(name, text)| Some((name, text?)));
        let attributes = self.attributes.iter();
        let attributes =
            attributes.map(|(name, attribute)| ("attribute", format!("{name}: {}", attribute.value).into()));
        let facts = facts.filter(|(_, text)| !text.is_empty()).chain(attributes);
        facts.map(|(name, text)| Fact::new(name, vec![text])).collect()
    }
}

impl Answer for DeadLetterDetails {
    fn layout(&self) -> Layout {
        let mut layout = Layout(vec![Block::Facts(self.facts())]);
        if let Some(payload) = &self.payload {
            layout.line("payload");
            shown_json(&pretty(payload.get())).split('\n').for_each(|line| layout.line(line));
        }
        if let Some(body) = &self.body {
            layout.line("body");
            body.split('\n').for_each(|line| layout.line(line));
        }
        layout
    }

    fn end(&self) -> Result<(), Failure> {
        self.read.result("the dead-letter was found")
    }
}

/// The deepest level of nesting to indent. Without this limit, a payload with thousands of nested brackets would become
/// millions of characters long.
const DEEPEST_INDENTED: usize = 16;

/// Indents JSON by two spaces. Does not parse it, because parsing would change large numbers and the order of keys.
pub fn pretty(json: &str) -> String {
    let (mut text, mut depth) = (String::new(), 0_usize);
    for (character, in_string) in compact(json) {
        if in_string {
            text.push(character);
            continue;
        }
        let closes = matches!(character, '}' | ']');
        depth = depth.saturating_sub(closes.into());
        let breaks = text.ends_with(',') || text.ends_with(['{', '[']) != closes;
        if breaks && depth <= DEEPEST_INDENTED {
            text.push('\n');
            text.push_str(&"  ".repeat(depth));
        }
        text.push(character);
        match character {
            '{' | '[' => depth += 1,
            ':' => text.push(' '),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::change::tests::plain;
    use crate::dead::scan::ScanEnd;
    use crate::dead::testing::{Dead, event, malformed, received, unknown};

    fn beside(answer: &impl Serialize) -> String {
        #[derive(Serialize)]
        struct Object<'a, A> {
            account: &'a str,
            #[serde(flatten)]
            answer: &'a A,
        }
        serde_json::to_string(&Object { account: "123456789012", answer }).unwrap()
    }

    #[tokio::test]
    async fn a_dead_letter_is_found_by_its_key_or_its_messages_id() {
        let dead_letters: Vec<_> = (0..200).map(|_| event("Timeout")).collect();
        let dead = Dead::with(dead_letters.clone());
        let id = dead.put(&unknown());
        let key = &dead_letters[150].key;
        let found = show(&dead.operator(), key).await.unwrap();
        let json = serde_json::to_string(&found).unwrap();
        assert!(json.starts_with(&format!(r#"{{"key":"{key}","message_id":"#)), "{json}");
        assert!(json.contains(&format!(r#""payload":{{"n":1E400,"id":"{key}"}},"body":null"#)), "{json}");
        assert!(json.contains(r#""error_message":"m""#), "{json}");
        assert!(beside(&found).contains(r#""payload":{"n":1E400,"#), "{}", beside(&found));
        assert!(json.contains(r#""first_failure":"2001-09-08T23:00:00.000Z""#), "{json}");
        assert_eq!((&found.read.end, found.end()), (&ScanEnd::Enough, Ok(())));
        let unknown = show(&dead.operator(), &id).await.unwrap();
        assert_eq!((unknown.described.kind, unknown.described.key), ("unknown", None));
        assert!(unknown.body.expect("no event was found").starts_with("hello"));
        assert!(unknown.attributes.is_empty());
        let missing = show(&dead.operator(), "no key").await.unwrap_err();
        let expected =
            "no dead-letter in dead has key \"no key\"; `comeback dead list --each` lists the keys";
        assert_eq!((missing.to_string(), missing.exit_code()), (expected.into(), 1));
        assert_eq!(dead.depth().in_flight, 0);
    }

    #[test]
    fn malformed_message_shows_its_senders_attributes() {
        let mut received = received(&malformed());
        let code = AttributeValue { data_type: "Number".into(), value: "200".into() };
        received.attributes.insert("ErrorCode".into(), code);
        let read =
            ScanResult { dead_letters: 1, newer: 0, end: ScanEnd::Enough, still_hidden: None, locked: None };
        let whole = DeadLetterDetails::of(&received, read);
        let text = plain(&whole);
        assert!(text.contains("\nattribute: ErrorCode: 200\nbody\n{\"requestPayload\":\"key-"), "{text}");
        assert!(!text.contains("attribute: Reason"), "{text}");
        let attributes = serde_json::to_value(&whole).unwrap()["attributes"].take();
        assert_eq!(attributes, json!({"ErrorCode": {"type": "Number", "value": "200"}}));
    }

    #[test]
    fn values_keep_their_text_and_their_place() {
        let json = r#"{"z":1E400,"a":[ ],"b":[1,-0.0,{}],"s":"\"{,:\\","z":null}"#;
        let expected = r#"{
  "z": 1E400,
  "a": [],
  "b": [
    1,
    -0.0,
    {}
  ],
  "s": "\"{,:\\",
  "z": null
}"#;
        assert_eq!(pretty(json), expected);
        assert_eq!(pretty(expected), expected);
        assert_eq!(pretty(" \"a b\" "), "\"a b\"");
    }

    #[test]
    fn deep_nesting_grows_by_a_constant_factor() {
        let nested = |depth| pretty(&["[".repeat(depth), "]".repeat(depth)].concat()).len();
        assert_eq!(nested(20_000) - nested(10_000), 20_000);
        let wide = pretty(&["[".repeat(16), "1,".repeat(10_000), "1".into(), "]".repeat(16)].concat());
        assert!(wide.len() < 40 * 20_000, "{}", wide.len());
    }
}
