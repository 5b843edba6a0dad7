//! `comeback dead list` and `comeback dead show`: reading letters.

use std::io::Write as _;
use std::ops::ControlFlow;

use clap::Args;
use comeback_engine::{Letter, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::clock;
use crate::failure;
use crate::operate::account::Failure;
use crate::operate::dead::filter::Filter;
use crate::operate::dead::plan::{DeadLetters, age, groups_table};
use crate::operate::dead::queue::{LetterQueue, Received};
use crate::operate::dead::scan::{Read, Reader, Scan};
use crate::operate::dead::survey::{Described, Survey};
use crate::operate::function::short_name;
use crate::operate::session::{Common, Session};
use crate::text::numbers::counted;
use crate::text::terminal::table;

pub(crate) const LIST_EXAMPLES: &str = "\
Examples:
  comeback dead list
  comeback dead list --letters --limit 20
  comeback dead list --target orders --older 1h --json";

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// List letters one by one too. A filter does as well
    #[arg(long)]
    letters: bool,
    /// Letters that are listed one by one, at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn list(arguments: &ListArguments, session: Session) -> Result<(), failure::Failure> {
    let one_by_one = arguments.letters || !arguments.filter.takes_everything();
    let now = clock::now();
    let letters = DeadLetters::find(&session).await?;
    let bar = letters.announce(&session).await?;
    let progress = |progress| bar.show(progress);
    let reader = letters.reader(&session, &progress);
    let most = if one_by_one { arguments.limit as usize } else { 0 };
    let (survey, read) = Survey::read(&reader, &arguments.filter, &|_| Ok(()), most, now).await?;
    drop(bar);
    let mut out = anstream::stdout();
    if !session.common.json {
        print(&mut out, &survey, &read, now)?;
    } else if one_by_one {
        survey.letters.iter().try_for_each(|letter| writeln!(out, "{}", serde_json::json!(letter)))?;
    } else {
        survey.groups().iter().try_for_each(|group| writeln!(out, "{}", serde_json::json!(group)))?;
    }
    Ok(read.result(&format!("read {}", counted(read.letters, "letter", "letters")))?)
}

fn print(out: &mut impl std::io::Write, survey: &Survey, read: &Read, now: Timestamp) -> std::io::Result<()> {
    let all = counted(read.letters, "letter", "letters");
    writeln!(out, "{} of about {all}", counted(survey.chosen, "letter", "letters"))?;
    if survey.chosen > 0 {
        writeln!(out, "{}", groups_table(&survey.groups(), now))?;
    }
    if !survey.letters.is_empty() {
        writeln!(out, "{}", letters_table(&survey.letters, now))?;
        let shown = survey.letters.len() as u64;
        if shown < survey.chosen {
            writeln!(out, "{shown} are shown; --limit {} shows all", survey.chosen)?;
        }
    }
    if read.newer > 0 {
        writeln!(out, "{} came meanwhile", counted(read.newer, "more letter", "more letters"))?;
    }
    Ok(())
}

fn letters_table(letters: &[Described], now: Timestamp) -> comfy_table::Table {
    let mut table = table();
    table.set_header(["key", "function", "reason", "error", "retries", "age"]);
    for letter in letters {
        let retries = letter.retries.map_or_else(String::new, |retries| retries.to_string());
        table.add_row([
            letter.key.as_ref().unwrap_or(&letter.message_id).as_str(),
            short_name(letter.target.as_deref().unwrap_or_default()),
            letter.reason,
            letter.error_type.as_deref().unwrap_or_default(),
            &retries,
            &age(letter.given_up, now),
        ]);
    }
    table
}

pub(crate) const SHOW_EXAMPLES: &str = "\
Examples:
  comeback dead show 9d1c0a3e-6f52-4f0a-9d0b-0c8f8d5a7e11
  comeback dead show 9d1c0a3e-6f52-4f0a-9d0b-0c8f8d5a7e11 --json";

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The event's key, or SQS's id of the message
    #[arg(value_name = "KEY")]
    key: String,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn show(arguments: &ShowArguments, session: Session) -> Result<(), failure::Failure> {
    let letters = DeadLetters::find(&session).await?;
    let bar = letters.announce(&session).await?;
    let progress = |progress| bar.show(progress);
    let reader = letters.reader(&session, &progress);
    let (letter, read) = Whole::find(&reader, &arguments.key, clock::now()).await?;
    drop(bar);
    let Some(letter) = letter else {
        read.result("the letter was not found")?;
        let queue = letters.deployment.dead_letter_queue.name();
        return Err(Failure::CouldNot(format!(
            "no letter of {queue} has the key {:?}; `comeback dead list --letters` lists the keys",
            arguments.key
        ))
        .into());
    };
    let mut out = anstream::stdout();
    if session.common.json {
        let json = serde_json::to_string(&letter).expect("BUG: strings, numbers and raw JSON are JSON");
        writeln!(out, "{json}")?;
    } else {
        write!(out, "{}", letter.in_words())?;
    }
    Ok(read.result("the letter was found")?)
}

/// A whole letter.
#[derive(Clone, Debug, Serialize)]
struct Whole {
    #[serde(flatten)]
    described: Described,
    detail: Option<String>,
    error_message: Option<String>,
    first_failure: Option<Timestamp>,
    /// The event, byte for byte.
    payload: Option<Box<RawValue>>,
    /// The message's body, where no event was found in it.
    body: Option<String>,
}

impl Whole {
    /// Reads letters until one has this key, or its message this id.
    async fn find<Q: LetterQueue>(
        reader: &Reader<'_, Q>,
        key: &str,
        now: Timestamp,
    ) -> Result<(Option<Self>, Read), Failure> {
        let mut found = None;
        let look = |received: &Received| {
            let letter = received.letter();
            if letter.key.as_deref() == Some(key) || received.record.message_id == key {
                found = Some(Self::of(received, letter));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let read = Scan::new(reader, now).look(look).await?;
        Ok((found, read))
    }

    fn of(received: &Received, letter: Letter<'_>) -> Self {
        let described = Described::of(received, &letter);
        let payload = letter.payload.map(|payload| payload.into_owned());
        Self {
            described,
            detail: letter.detail,
            error_message: letter.error_message,
            first_failure: letter.first_failure,
            body: payload.is_none().then(|| received.record.body.clone()),
            payload,
        }
    }

    fn in_words(&self) -> String {
        let line = |name: &str, value: Option<&str>| {
            value.filter(|value| !value.is_empty()).map(|value| format!("{name:<14}{value}\n"))
        };
        let described = &self.described;
        let retries = described.retries.map(|retries| retries.to_string());
        let first_failure = self.first_failure.map(|moment| moment.to_string());
        let lines = [
            line("key", described.key.as_deref()),
            line("message id", Some(&described.message_id)),
            line("kind", Some(described.kind)),
            line("reason", Some(described.reason)),
            line("detail", self.detail.as_deref()),
            line("function", described.target.as_deref()),
            line("retries", retries.as_deref()),
            line("error", described.error_type.as_deref()),
            line("message", self.error_message.as_deref()),
            line("first failure", first_failure.as_deref()),
            line("given up", Some(&described.given_up.to_string())),
            line("sent", Some(&described.sent.to_string())),
        ];
        let mut text: String = lines.into_iter().flatten().collect();
        if let Some(payload) = &self.payload {
            text.push_str(&format!("payload\n{}\n", pretty(payload.get())));
        }
        if let Some(body) = &self.body {
            text.push_str(&format!("body\n{body}\n"));
        }
        text
    }
}

/// JSON over several lines, indented by two spaces. Values keep their text and their order: parsing would change large
/// numbers and the order of keys.
fn pretty(json: &str) -> String {
    let mut text = String::new();
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        if in_string {
            text.push(character);
            in_string = escaped || character != '"';
            escaped = character == '\\' && !escaped;
            continue;
        }
        match character {
            ' ' | '\n' | '\r' | '\t' => {}
            '{' | '[' => {
                text.push(character);
                while characters.next_if(char::is_ascii_whitespace).is_some() {}
                match characters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => text.push(end),
                    None => {
                        depth += 1;
                        new_line(&mut text, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut text, depth);
                text.push(character);
            }
            ',' => {
                text.push(',');
                new_line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ => {
                in_string = character == '"';
                text.push(character);
            }
        }
    }
    text
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::dead::scan::End;
    use crate::operate::dead::simulated::{NOW, Put, Simulated, event, unknown};
    use crate::operate::session::Interrupt;

    async fn find(simulated: &Simulated, key: &str) -> (Option<Whole>, Read) {
        let (_raise, interrupt) = Interrupt::new();
        let reader = Reader { queue: simulated, interrupt: &interrupt, progress: &|_| () };
        Whole::find(&reader, key, NOW).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_letter_is_found_by_its_key_or_its_messages_id() {
        let letters: Vec<Put> = (0..200).map(|_| event("Timeout")).collect();
        let simulated = Simulated::with(letters.clone());
        let id = simulated.put(&unknown());
        let (whole, read) = find(&simulated, &letters[150].key).await;
        let json = serde_json::to_string(whole.as_ref().expect("it is there")).unwrap();
        let key = &letters[150].key;
        assert!(json.starts_with(&format!(r#"{{"key":"{key}","message_id":"#)), "{json}");
        assert!(json.contains(&format!(r#""payload":{{"n":1E400,"id":"{key}"}},"body":null"#)), "{json}");
        assert!(json.contains(r#""error_message":"m","first_failure":"2001-09-08T23:00:00.000Z""#), "{json}");
        assert_eq!(read.end, End::Enough);
        let unknown = find(&simulated, &id).await.0.expect("it is there");
        assert_eq!((unknown.described.kind, unknown.described.key), ("unknown", None));
        assert!(unknown.body.expect("no event was found").starts_with("hello"));
        let (nothing, read) = find(&simulated, "no key").await;
        assert_eq!((nothing.is_none(), read.end, read.letters), (true, End::All, 201));
        assert_eq!(simulated.depth().in_flight, 0);
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
}
