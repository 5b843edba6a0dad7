use std::io::Write as _;

use clap::Args;
use comeback_engine::Timestamp;
use comeback_operate::dead::{Described, Survey};

use crate::clock;
use crate::failure::Failure;
use crate::operate::common::Common;
use crate::operate::dead::filter::FilterFlags;
use crate::operate::dead::plan::{age, groups_table, name};
use crate::operate::dead::reading::{Bar, open};
use crate::operate::session::Session;
use crate::text::numbers::counted;
use crate::text::terminal::table;

pub(crate) const EXAMPLES: &str = "\
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
    filter: FilterFlags,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &ListArguments, session: Session) -> Result<(), Failure> {
    let filter = arguments.filter.filter();
    let one_by_one = arguments.letters || !filter.takes_everything();
    let now = clock::now();
    let (letters, about) = open(&session).await?;
    let bar = Bar::new(about.visible);
    let most = if one_by_one { arguments.limit as usize } else { 0 };
    let survey = letters.list(&filter, most, now, &session.interrupt, &|progress| bar.tell(progress)).await?;
    drop(bar);
    if session.common.json {
        print_json(&survey, one_by_one)?;
    } else {
        print_text(&survey, one_by_one, now)?;
    }
    let read = &survey.read;
    Ok(read.result(&format!("read {}", counted(read.letters, "letter", "letters")))?)
}

/// A line for each group, or for each letter.
fn print_json(survey: &Survey, one_by_one: bool) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    if one_by_one {
        survey.letters.iter().try_for_each(|letter| writeln!(out, "{}", serde_json::json!(letter)))?;
    } else {
        survey.groups.iter().try_for_each(|group| writeln!(out, "{}", serde_json::json!(group)))?;
    }
    Ok(())
}

fn print_text(survey: &Survey, one_by_one: bool, now: Timestamp) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    let all = counted(survey.read.letters, "letter", "letters");
    writeln!(out, "{} of about {all}", counted(survey.chosen, "letter", "letters"))?;
    if survey.chosen > 0 {
        writeln!(out, "{}", groups_table(&survey.groups, now))?;
    }
    if one_by_one && !survey.letters.is_empty() {
        writeln!(out, "{}", letters_table(&survey.letters, now))?;
        let shown = survey.letters.len() as u64;
        if shown < survey.chosen {
            writeln!(out, "{shown} are shown; --limit {} shows all", survey.chosen)?;
        }
    }
    if survey.read.newer > 0 {
        writeln!(out, "{} came meanwhile", counted(survey.read.newer, "more letter", "more letters"))?;
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
            name(letter.target.as_deref()),
            letter.reason,
            letter.error_type.as_deref().unwrap_or_default(),
            &retries,
            &age(letter.given_up, now),
        ]);
    }
    table
}
