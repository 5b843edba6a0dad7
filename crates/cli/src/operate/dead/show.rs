use std::io::Write as _;

use clap::Args;
use comeback_operate::dead::Whole;
use comeback_operate::{self as operate};

use crate::clock;
use crate::failure::Failure;
use crate::operate::common::Common;
use crate::operate::dead::pretty::pretty;
use crate::operate::dead::reading::{Bar, open};
use crate::operate::session::Session;

pub(crate) const EXAMPLES: &str = "\
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

pub(crate) async fn run(arguments: &ShowArguments, session: Session) -> Result<(), Failure> {
    let (letters, about) = open(&session).await?;
    let bar = Bar::new(about.visible);
    let tell = |progress| bar.tell(progress);
    let (letter, read) = letters.show(&arguments.key, clock::now(), &session.interrupt, &tell).await?;
    drop(bar);
    let Some(letter) = letter else {
        read.result("the letter was not found")?;
        let queue = letters.queue().name();
        return Err(operate::Failure::CouldNot(format!(
            "no letter of {queue} has the key {:?}; `comeback dead list --letters` lists the keys",
            arguments.key
        ))
        .into());
    };
    let mut out = anstream::stdout();
    if session.common.json {
        writeln!(
            out,
            "{}",
            serde_json::to_string(&letter).expect("BUG: strings, numbers and raw JSON are JSON")
        )?;
    } else {
        write!(out, "{}", in_words(&letter))?;
    }
    Ok(read.result("the letter was found")?)
}

fn in_words(letter: &Whole) -> String {
    let line = |name: &str, value: Option<&str>| {
        value.filter(|value| !value.is_empty()).map(|value| format!("{name:<14}{value}\n"))
    };
    let described = &letter.described;
    let retries = described.retries.map(|retries| retries.to_string());
    let first_failure = letter.first_failure.map(|moment| moment.to_string());
    let lines = [
        line("key", described.key.as_deref()),
        line("message id", Some(&described.message_id)),
        line("kind", Some(described.kind)),
        line("reason", Some(described.reason)),
        line("detail", letter.detail.as_deref()),
        line("function", described.target.as_deref()),
        line("retries", retries.as_deref()),
        line("error", described.error_type.as_deref()),
        line("message", letter.error_message.as_deref()),
        line("first failure", first_failure.as_deref()),
        line("given up", Some(&described.given_up.to_string())),
        line("sent", Some(&described.sent.to_string())),
    ];
    let mut text: String = lines.into_iter().flatten().collect();
    if let Some(payload) = &letter.payload {
        text.push_str(&format!("payload\n{}\n", pretty(payload.get())));
    }
    if let Some(body) = &letter.body {
        text.push_str(&format!("body\n{body}\n"));
    }
    text
}
