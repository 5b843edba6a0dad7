use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use comeback_operate::dead::{Pace, Work};
use comeback_operate::{self as operate};
use serde_json::json;

use crate::clock;
use crate::failure::Failure;
use crate::operate::common::Common;
use crate::operate::confirm::confirm;
use crate::operate::dead::filter::FilterFlags;
use crate::operate::dead::plan::{self, Plan};
use crate::operate::dead::reading::{Bar, open};
use crate::operate::session::Session;
use crate::text::numbers::counted;
use crate::text::numbers::read_rate;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback dead discard --older 7d --export old.jsonl --dry-run
  comeback dead discard --reason malformed_record --export malformed.jsonl
  comeback dead discard --all --export all.jsonl";

#[derive(Debug, Args)]
pub(crate) struct DiscardArguments {
    /// A new file that the letters are written to before they are deleted
    #[arg(long, value_name = "FILE")]
    export: PathBuf,
    #[command(flatten)]
    filter: FilterFlags,
    /// Every letter, and every message that is none of Comeback's
    #[arg(long, conflicts_with = "FilterFlags", required_unless_present = "FilterFlags")]
    all: bool,
    /// Letters a second at most
    #[arg(long, value_name = "RATE", default_value = "500/s", value_parser = read_rate)]
    rate: f64,
    /// Letters at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Show the plan and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &DiscardArguments, session: Session) -> Result<(), Failure> {
    let export = arguments.export.display();
    if arguments.export.exists() {
        return Err(operate::Failure::Refused(format!(
            "--export {export}: the file is there already, and is not overwritten; name another"
        ))
        .into());
    }
    let (letters, about) = open(&session).await?;
    let Session { interrupt, common, .. } = &session;
    let (filter, now) = (arguments.filter.filter(), clock::now());
    let bar = Bar::new(about.visible);
    let survey = letters.list(&filter, 0, now, interrupt, &|progress| bar.tell(progress)).await?;
    drop(bar);
    let pace = Pace::per_second(arguments.rate);
    let plan = Plan { verb: "discard", survey: &survey, pace, limit: arguments.limit, now };
    plan.check()?;
    let mut out = anstream::stdout();
    if !common.json {
        plan.print(&mut out)?;
    }
    let until = survey.newest.filter(|_| plan.letters() > 0 && !arguments.dry_run);
    let Some(until) = until else {
        if common.json {
            writeln!(out, "{}", json!({"plan": plan.json(), "dry_run": arguments.dry_run, "discarded": 0}))?;
        }
        return Ok(survey.read.result("nothing was changed")?);
    };
    let count = counted(plan.letters(), "letter", "letters");
    confirm(&format!("write {count} to {export}, and delete them?"), &session).await?;
    let work = Work { filter, now, until, pace, limit: arguments.limit };
    let bar = Bar::new(plan.letters());
    let tell = |progress| bar.tell(progress);
    let worked = letters.discard(&work, &arguments.export, interrupt, &tell).await?;
    drop(bar);
    let summary = plan::summary("discarded", &worked);
    if common.json {
        let outcome = plan::worked_json(&worked);
        let report = json!({
            "plan": plan.json(), "dry_run": false, "discarded": worked.done, "export": arguments.export,
            "outcome": outcome,
        });
        writeln!(out, "{report}")?;
    } else {
        writeln!(out, "{summary}; `comeback dead import {export}` brings back what the file holds")?;
    }
    Ok(plan::result(&worked, &survey.left, &summary)?)
}
