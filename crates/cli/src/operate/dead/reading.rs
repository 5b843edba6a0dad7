//! `comeback dead list` and `comeback dead show`: reading dead-letters.

use std::collections::BTreeMap;
use std::io::Write as _;

use clap::Args;
use comeback_engine::{MOVED_ATTRIBUTE, ReceivedDeadLetter, Timestamp};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::account::Failure;
use crate::clock;
use crate::failure;
use crate::operate::dead::dead_letters::DeadLetters;
use crate::operate::dead::discard::Attribute;
use crate::operate::dead::filter::Filter;
use crate::operate::dead::queue::{QueueCalls, Received};
use crate::operate::dead::scan::Read;
use crate::operate::dead::survey::{Described, Survey, counted_dead_letters, headline};
use crate::operate::session::{Common, Session};
use crate::text::numbers::counted;
use crate::text::terminal::{shown, shown_json, shown_lines};

pub(crate) const LIST_EXAMPLES: &str = "\
Examples:
  comeback dead list
  comeback dead list --each --limit 20
  comeback dead list --target orders --older 1h --json";

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Also list each dead-letter; implied by any filter
    #[arg(long)]
    each: bool,
    /// Maximum dead-letters to list
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn list(arguments: &ListArguments, session: Session) -> Result<(), failure::CommandFailure> {
    let dead_letters = DeadLetters::find(session).await?;
    let one_by_one = arguments.each || !arguments.filter.takes_everything();
    let now = clock::now();
    let most = if one_by_one { arguments.limit as usize } else { 0 };
    let mut survey = Survey::describing(most);
    let show = |received: &Received| {
        survey.count(received, &arguments.filter, |_| Ok(()), now);
        false
    };
    let read = dead_letters.show_each(now, show).await?;
    let session = &dead_letters.session;
    session.answer(&json!({
        "chosen": survey.chosen, "read": read.dead_letters, "newer": read.newer, "locked": read.locked,
        "incomplete": read.incomplete(), "groups": survey.groups(), "dead_letters": survey.dead_letters,
    }));
    if !session.common.json {
        print(&survey, &read, now)?;
    }
    read.result(&format!("read {}", counted_dead_letters(read.dead_letters)))?;
    Ok(dead_letters.check_target(&survey, &arguments.filter, &read)?)
}

fn print(survey: &Survey, read: &Read, now: Timestamp) -> std::io::Result<()> {
    let mut out = anstream::stdout();
    let all = read.dead_letters + read.locked.map_or(0, |locked| locked.dead_letters);
    writeln!(out, "{}", headline(survey.chosen, all))?;
    if survey.chosen > 0 {
        writeln!(out, "{}", survey.groups_table(now))?;
    }
    let shown = survey.dead_letters.len() as u64;
    if shown > 0 {
        writeln!(out, "{}", survey.dead_letters_table(now))?;
    }
    if shown > 0 && shown < survey.chosen {
        writeln!(out, "{shown} shown; --limit {} shows all", survey.chosen)?;
    }
    if read.newer > 0 {
        writeln!(
            out,
            "{} arrived in the meantime",
            counted(read.newer, "more dead-letter", "more dead-letters")
        )?;
    }
    if let Some(locked) = read.locked {
        writeln!(out, "{locked}")?;
    }
    Ok(())
}

pub(crate) const SHOW_EXAMPLES: &str = "\
Examples:
  comeback dead show 9d1c0a3e-6f52-4f0a-9d0b-0c8f8d5a7e11
  comeback dead show 9d1c0a3e-6f52-4f0a-9d0b-0c8f8d5a7e11 --json";

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The event's key, or the id of the SQS message
    #[arg(value_name = "KEY")]
    key: String,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn show(arguments: &ShowArguments, session: Session) -> Result<(), failure::CommandFailure> {
    let dead_letters = DeadLetters::find(session).await?;
    let (dead_letter, read) = find(&arguments.key, &dead_letters).await?;
    dead_letters.session.answer(&dead_letter);
    if !dead_letters.session.common.json {
        write!(anstream::stdout(), "{}", dead_letter.in_words())?;
    }
    Ok(read.result("the dead-letter was found")?)
}

/// Reads dead-letters until one has this key, or is this message.
pub(crate) async fn find<Q: QueueCalls>(
    name: &str,
    dead_letters: &DeadLetters<Q>,
) -> Result<(Whole, Read), Failure> {
    let mut found = None;
    let show = |received: &Received| {
        found = Whole::named(name, received);
        found.is_some()
    };
    let read = dead_letters.show_each(clock::now(), show).await?;
    let Some(dead_letter) = found else {
        let place = dead_letters.session.common.place_flags();
        read.result(&format!("no dead-letter that could be read has key {name:?}"))?;
        let queue = dead_letters.deployment.dead_letter_queue.name();
        return Err(Failure::CouldNot(format!(
            "no dead-letter in {queue} has key {name:?}; `comeback dead list --each{place}` lists the keys"
        )));
    };
    Ok((dead_letter, read))
}

/// Attributes that Comeback writes: the dead-letter is described by what they say.
const OURS: [&str; 6] = ["Reason", "Detail", "TargetFunction", "RetriesMade", "ErrorType", MOVED_ATTRIBUTE];

/// A whole dead-letter.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Whole {
    #[serde(flatten)]
    pub(crate) described: Described,
    pub(crate) first_failure: Option<Timestamp>,
    /// The event, as it was sent.
    pub(crate) payload: Option<Box<RawValue>>,
    /// The message's body, where no event was found in it.
    pub(crate) body: Option<String>,
    /// What its sender added to a message that was not understood.
    pub(crate) attributes: BTreeMap<String, Attribute>,
}

impl Whole {
    /// The dead-letter, if this is its key or its message's id.
    fn named(name: &str, received: &Received) -> Option<Self> {
        let dead_letter = received.dead_letter();
        if dead_letter.key.as_deref() != Some(name) && received.record.message_id != name {
            return None;
        }
        let described = Described::of(received, &dead_letter);
        let ReceivedDeadLetter { first_failure, .. } = dead_letter;
        let payload = dead_letter.payload.map(|payload| payload.into_owned());
        let body = payload.is_none().then(|| received.record.body.clone());
        let mut attributes = Attribute::all_of(received);
        attributes.retain(|name, _| !OURS.contains(&name.as_str()));
        Some(Self { described, first_failure, payload, body, attributes })
    }

    /// What is known of it, line by line, but neither its payload nor its body.
    pub(crate) fn lines(&self) -> Vec<(String, String)> {
        let described = &self.described;
        let retries = described.retries.map(|retries| retries.to_string());
        let first_failure = self.first_failure.map(|moment| moment.to_string());
        let lines = [
            ("key", described.key.as_deref()),
            ("message id", Some(described.message_id.as_str())),
            ("kind", Some(described.kind)),
            ("reason", Some(described.reason)),
            ("detail", described.detail.as_deref()),
            ("function", described.target.as_deref()),
            ("retries", retries.as_deref()),
            ("error", described.error_type.as_deref()),
            ("message", described.error_message.as_deref()),
            ("first failure", first_failure.as_deref()),
            ("dead-lettered", Some(&described.dead_lettered_at.to_string())),
            ("sent", Some(&described.sent.to_string())),
        ];
        let lines = lines.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let attributes = self.attributes.iter();
        let attributes = attributes
            .map(|(name, attribute)| ("attribute".to_owned(), format!("{name}: {}", attribute.value)));
        lines.filter(|(_, value)| !value.is_empty()).chain(attributes).collect()
    }

    fn in_words(&self) -> String {
        let lines = self.lines().into_iter();
        let mut text: String = lines.map(|(name, value)| format!("{name:<14}{}\n", shown(&value))).collect();
        if let Some(payload) = &self.payload {
            text.push_str(&format!("payload\n{}\n", shown_json(&pretty(payload.get()))));
        }
        if let Some(body) = &self.body {
            text.push_str(&format!("body\n{}\n", shown_lines(body)));
        }
        text
    }
}

/// Values nested deeper stay on one line: a payload may be nothing but brackets, and each would be indented further.
const DEEPEST_INDENTED: usize = 16;

/// JSON over several lines, indented by two spaces. Values keep their text and their order: parsing would change large
/// numbers and the order of keys.
pub(crate) fn pretty(json: &str) -> String {
    let mut text = String::new();
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for character in json.chars() {
        if in_string {
            text.push(character);
            in_string = escaped || character != '"';
            escaped = character == '\\' && !escaped;
            continue;
        }
        if character.is_ascii_whitespace() {
            continue;
        }
        let closes = matches!(character, '}' | ']');
        depth = depth.saturating_sub(closes.into());
        // Nothing stands between the brackets of an empty list or object.
        let breaks = text.ends_with(',') || text.ends_with(['{', '[']) != closes;
        if breaks && depth <= DEEPEST_INDENTED {
            text.push('\n');
            text.push_str(&"  ".repeat(depth));
        }
        text.push(character);
        match character {
            '{' | '[' => depth += 1,
            ':' => text.push(' '),
            _ => in_string = character == '"',
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::MessageAttributeValue;

    use super::*;
    use crate::operate::dead::scan::{End, Reader, Scan};
    use crate::operate::dead::simulated::{NOW, Put, Simulated, event, malformed, unknown};
    use crate::operate::session::Interrupt;
    use crate::output::json_line;
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    async fn find(simulated: &Simulated, key: &str) -> (Option<Whole>, Read) {
        let (_raise, interrupt) = Interrupt::new();
        let reader = Reader {
            queue: simulated,
            interrupt: &interrupt,
            progress: Box::new(|_| ()),
            remark: Box::new(|_| ()),
        };
        let mut found = None;
        let show = |received: &Received| {
            found = Whole::named(key, received);
            found.is_some()
        };
        let read = Scan::new(&reader, NOW).show_each(show).await.unwrap();
        (found, read)
    }

    #[test]
    fn an_empty_queue_has_no_dead_letters() {
        assert_eq!(headline(0, 0), "no dead-letters");
        assert_eq!(
            [headline(0, 60), headline(1, 1)],
            ["0 of about 60 dead-letters", "1 of about 1 dead-letter"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_letter_is_found_by_its_key_or_its_messages_id() {
        let dead_letters: Vec<Put> = (0..200).map(|_| event("Timeout")).collect();
        let simulated = Simulated::with(dead_letters.clone());
        let id = simulated.put(&unknown());
        let (whole, read) = find(&simulated, &dead_letters[150].key).await;
        let json = serde_json::to_string(whole.as_ref().expect("it is there")).unwrap();
        let key = &dead_letters[150].key;
        assert!(json.starts_with(&format!(r#"{{"key":"{key}","message_id":"#)), "{json}");
        assert!(json.contains(&format!(r#""payload":{{"n":1E400,"id":"{key}"}},"body":null"#)), "{json}");
        assert!(json.contains(r#""error_message":"m""#), "{json}");
        assert!(json.contains(r#""first_failure":"2001-09-08T23:00:00.000Z""#), "{json}");
        assert_eq!(read.end, End::Enough);
        let unknown = find(&simulated, &id).await.0.expect("it is there");
        assert_eq!((unknown.described.kind, unknown.described.key), ("unknown", None));
        assert!(unknown.body.expect("no event was found").starts_with("hello"));
        assert!(unknown.attributes.is_empty());
        let (nothing, read) = find(&simulated, "no key").await;
        assert_eq!((nothing.is_none(), read.end, read.dead_letters), (true, End::All, 201));
        assert_eq!(simulated.depth().in_flight, 0);
    }

    #[test]
    fn a_message_that_was_not_understood_is_shown_with_its_senders_attributes() {
        let mut received = Simulated::with([malformed()]).dead().remove(0);
        let value = MessageAttributeValue::builder().data_type("Number").string_value("200\u{9b}2J").build();
        received.attributes.push(("ErrorCode".into(), value.unwrap()));
        let whole = Whole::named(&received.record.message_id, &received).expect("it is its id");
        let text = whole.in_words();
        assert!(text.contains("\nattribute     ErrorCode: 200\\u{9b}2J\nbody\n"), "{text}");
        assert!(!text.contains("attribute     Reason"), "{text}");
        let json = json_line(&whole);
        assert!(
            json.contains(r#""attributes":{"ErrorCode":{"type":"Number","value":"200\u009b2J"}}"#),
            "{json}"
        );
    }

    /// `dead show`, and the tables of `dead list`, `redrive` and `discard`.
    #[test]
    fn a_dead_letter_cannot_command_the_terminal() {
        let mut dead_letter = event("Timeout");
        let hostile = serde_json::to_string(HOSTILE).unwrap();
        for text in ["\"why\"", "\"Timeout\"", "\"m\"", &format!("\"{}\"", dead_letter.key)] {
            dead_letter.body = dead_letter.body.replace(text, &hostile);
        }
        dead_letter.body = dead_letter.body.replace("function:orders", "function:\u{9b}2J");
        for dead_letter in [dead_letter, Put { body: HOSTILE.into(), ..unknown() }] {
            let received = Simulated::with([dead_letter]).dead().remove(0);
            let mut survey = Survey::describing(1);
            survey.count(&received, &Filter::default(), |_| Ok(()), NOW);
            let whole = Whole::named(&received.record.message_id, &received).expect("it is its id");
            let [groups, dead_letters] =
                [survey.groups_table(NOW), survey.dead_letters_table(NOW)].map(|it| it.to_string());
            let texts = [whole.in_words(), json_line(&whole), groups, dead_letters];
            for text in &texts {
                assert!(!is_obeyed_anywhere(text), "{text}");
            }
            assert!(texts[0].contains("\\u{202e}g") && texts[1].contains("\\u202eg"), "{texts:?}");
        }
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
