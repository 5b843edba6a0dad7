use std::io::Write as _;

use clap::Args;
use comeback_operate::dead::{DeadLetters, Pace, Work};
use comeback_operate::{self as operate};
use serde_json::json;

use crate::clock;
use crate::failure::Failure;
use crate::operate::common::Common;
use crate::operate::confirm::confirm;
use crate::operate::dead::filter::FilterFlags;
use crate::operate::dead::plan::{self, Plan};
use crate::operate::dead::reading::{Bar, announce};
use crate::operate::session::Session;
use crate::text::durations;
use crate::text::numbers::counted;
use crate::text::numbers::{rate_text, read_rate};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback dead redrive --error 'Timeout*' --dry-run
  comeback dead redrive --target orders --rate 10/s --limit 100
  comeback dead redrive --target orders --retarget arn:aws:lambda:eu-west-1:123456789012:function:orders-v2
  comeback dead redrive --all --server";

#[derive(Debug, Args)]
pub(crate) struct RedriveArguments {
    #[command(flatten)]
    filter: FilterFlags,
    /// Every letter
    #[arg(long, conflicts_with = "FilterFlags", required_unless_present = "FilterFlags")]
    all: bool,
    /// Letters a second at most
    #[arg(long, value_name = "RATE", default_value = "50/s", value_parser = read_rate)]
    rate: f64,
    /// Letters at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Invoke this function instead of the one that a letter names; it must be on TARGET_FUNCTIONS
    #[arg(long, value_name = "ARN")]
    retarget: Option<String>,
    /// Show the plan and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Let SQS move the whole queue by itself, up to 500 letters a second. It goes on if this command is killed, and
    /// Ctrl-C cancels it. It moves what cannot be retried too: the handler dead-letters that again
    #[arg(long, requires = "all", conflicts_with_all = ["FilterFlags", "limit", "retarget"])]
    server: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &RedriveArguments, session: Session) -> Result<(), Failure> {
    let finding = async { DeadLetters::of(&session.account, &session.deployment().await?) };
    let letters = session.interrupt.or(finding).await?;
    if arguments.server {
        return move_all(arguments, &letters, &session).await;
    }
    let Session { interrupt, common, .. } = &session;
    let (filter, now) = (arguments.filter.filter(), clock::now());
    let retarget = arguments.retarget.as_deref();
    let about = interrupt.or(letters.about()).await?;
    announce(&letters, about, common);
    let bar = Bar::new(about.visible);
    let tell = |progress| bar.tell(progress);
    let survey = letters.plan_redrive(&filter, retarget, now, interrupt, &tell).await?;
    drop(bar);
    let pace = Pace::per_second(arguments.rate);
    let plan = Plan { verb: "redrive", survey: &survey, pace, limit: arguments.limit, now };
    plan.check()?;
    let mut out = anstream::stdout();
    if !common.json {
        plan.print(&mut out)?;
    }
    if !survey.not_allowed.is_empty() && !arguments.dry_run {
        if common.json {
            let report = json!({"plan": plan.json(), "not_allowed": survey.not_allowed, "redriven": 0});
            writeln!(out, "{report}")?;
        }
        let functions: Vec<_> = survey.not_allowed.iter().map(String::as_str).collect();
        return Err(operate::Failure::CouldNot(format!(
            "nothing was sent: TARGET_FUNCTIONS does not allow {}, so these letters would be dead-lettered again; run \
             `comeback attach`, choose others with --target, or give another function with --retarget",
            functions.join(", ")
        ))
        .into());
    }
    let until = survey.newest.filter(|_| plan.letters() > 0 && !arguments.dry_run);
    let Some(until) = until else {
        if common.json {
            let report = json!({
                "plan": plan.json(), "dry_run": arguments.dry_run, "not_allowed": survey.not_allowed, "redriven": 0,
            });
            writeln!(out, "{report}")?;
        } else if !survey.not_allowed.is_empty() {
            let functions: Vec<_> = survey.not_allowed.iter().map(String::as_str).collect();
            writeln!(
                out,
                "not allowed by TARGET_FUNCTIONS, so that nothing would be sent: {}",
                functions.join(", ")
            )?;
        }
        return Ok(survey.read.result("nothing was changed")?);
    };
    let queue = letters.retry_queue().name();
    confirm(&format!("send {} to {queue}?", counted(plan.letters(), "letter", "letters")), &session).await?;
    let work = Work { filter, now, until, pace, limit: arguments.limit };
    let bar = Bar::new(plan.letters());
    let worked = letters.redrive(&work, retarget, interrupt, &|progress| bar.tell(progress)).await?;
    drop(bar);
    let summary = plan::summary("redrove", &worked);
    if common.json {
        let outcome = plan::worked_json(&worked);
        let report = json!({
            "plan": plan.json(), "dry_run": false, "redriven": worked.done, "outcome": outcome,
        });
        writeln!(out, "{report}")?;
    } else {
        writeln!(out, "{summary}")?;
    }
    Ok(plan::result(&worked, &survey.left, &summary)?)
}

/// SQS's own limit.
const MOST_A_SECOND: f64 = 500.0;

/// `--server`.
async fn move_all(
    arguments: &RedriveArguments,
    letters: &DeadLetters,
    session: &Session,
) -> Result<(), Failure> {
    let Session { interrupt, common, .. } = session;
    let per_second = arguments.rate.floor();
    if !(1.0..=MOST_A_SECOND).contains(&per_second) {
        return Err(operate::Failure::Refused(format!(
            "--rate: SQS moves 1 to {MOST_A_SECOND} letters a second, and not {}",
            rate_text(arguments.rate)
        ))
        .into());
    }
    let about = interrupt.or(letters.about()).await?;
    let (from, to) = (letters.queue().name(), letters.retry_queue().name());
    let count = counted(about.visible, "letter", "letters");
    let time = durations::short(Pace::per_second(per_second).time_for(about.visible).as_secs_f64());
    let mut out = anstream::stdout();
    if !common.json {
        writeln!(out, "to move: about {count} from {from} to {to}, by SQS itself, in about {time}")?;
    }
    if arguments.dry_run {
        if common.json {
            writeln!(out, "{}", json!({"about": about.visible, "dry_run": true, "moved": 0}))?;
        }
        return Ok(());
    }
    confirm(&format!("move about {count} to {to}?"), session).await?;
    let bar = Bar::new(about.visible);
    let moved = letters.move_all(per_second as i32, interrupt, &|progress| bar.tell(progress)).await?;
    drop(bar);
    if common.json {
        writeln!(out, "{}", json!({"about": about.visible, "dry_run": false, "moved": moved.letters}))?;
    } else {
        let followed = if moved.was_running { " (a move task that was running already)" } else { "" };
        writeln!(out, "moved about {}{followed}", counted(moved.letters, "letter", "letters"))?;
    }
    Ok(())
}
