use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use comeback_operate::dead::{DeadLetters, Importing, Pace};
use comeback_operate::{self as operate};
use indicatif::HumanCount;
use serde_json::json;

use crate::failure::Failure;
use crate::operate::common::Common;
use crate::operate::confirm::confirm;
use crate::operate::dead::reading::Bar;
use crate::operate::session::Session;
use crate::text::numbers::counted;
use crate::text::numbers::read_rate;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback dead import old.jsonl";

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// What `comeback dead discard --export` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Letters a second at most
    #[arg(long, value_name = "RATE", default_value = "500/s", value_parser = read_rate)]
    rate: f64,
    /// Show what would be imported and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &ImportArguments, session: Session) -> Result<(), Failure> {
    let importing = Importing::read(&arguments.file)?;
    let finding = async { DeadLetters::of(&session.account, &session.deployment().await?) };
    let letters = session.interrupt.or(finding).await?;
    let Session { interrupt, common, .. } = &session;
    let (count, before, cut_off) = (importing.letters, importing.before, importing.cut_off);
    let (queue, done_path) = (letters.queue().name(), importing.done_path().to_owned());
    let mut out = anstream::stdout();
    if !common.json {
        writeln!(out, "to import: {} to {queue}", counted(count, "letter", "letters"))?;
        if before > 0 {
            let before = HumanCount(before);
            writeln!(out, "left: {before}, which were imported before ({})", done_path.display())?;
        }
        if cut_off {
            writeln!(out, "left: the last line, which is cut off; its letter was never deleted")?;
        }
    }
    let report = |done: u64, left: &_| {
        json!({
            "letters": count, "imported": done, "before": before, "cut_off": cut_off,
            "dry_run": arguments.dry_run, "left": left,
        })
    };
    if arguments.dry_run || count == 0 {
        if common.json {
            writeln!(out, "{}", report(0, &json!({})))?;
        }
        return Ok(());
    }
    confirm(&format!("send {} to {queue}?", counted(count, "letter", "letters")), &session).await?;
    let bar = Bar::new(count);
    let pace = Pace::per_second(arguments.rate);
    let imported = letters.import(importing, pace, interrupt, &|progress| bar.tell(progress)).await?;
    drop(bar);
    let left = imported.left.iter().map(|(why, count)| format!("; left {}: {why}", HumanCount(*count)));
    let summary =
        format!("imported {}{}", counted(imported.done, "letter", "letters"), left.collect::<String>());
    if common.json {
        writeln!(out, "{}", report(imported.done, &json!(imported.left)))?;
    } else {
        writeln!(out, "{summary}")?;
    }
    if imported.interrupted {
        return Err(operate::Failure::Interrupted(summary).into());
    }
    if !imported.left.is_empty() {
        let again = "repeat the command for what was left";
        return Err(operate::Failure::Undone(format!("{summary}; {again}")).into());
    }
    Ok(())
}
