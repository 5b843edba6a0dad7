//! `comeback resume`: let the retries of a paused function go again.

use std::io::Write as _;
use std::time::Duration;

use clap::{ArgGroup, Args};
use comeback_engine::HOLD;
use comeback_operate::{FunctionName, ResumeOrder};

use crate::clock::now;
use crate::failure::Failure;
use crate::operate::common::Common;
use crate::operate::confirm::confirm;
use crate::operate::pause::{named, noticed_within};
use crate::operate::session::Session;
use crate::text::durations;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback resume orders
  comeback resume --all --spread 2h --yes";

/// What was due in a pause comes back over this time, if nothing else is said.
pub(crate) const DEFAULT_SPREAD: Duration = Duration::from_secs(1_800);

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["function", "all"])))]
pub(crate) struct ResumeArguments {
    /// The function, as the pause names it
    #[arg(value_name = "FUNCTION")]
    function: Option<FunctionName>,
    /// End the pause of every function; those of single functions stay
    #[arg(long)]
    all: bool,
    /// What became due in the pause comes back over this time
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = durations::read)]
    spread: Duration,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &ResumeArguments, session: Session) -> Result<(), Failure> {
    let deployment = session.interrupt.or(session.deployment()).await?;
    let name = named(arguments.function.as_ref());
    confirm(&format!("resume {name}?"), &session).await?;
    let order = ResumeOrder { function: arguments.function.clone(), spread: arguments.spread };
    let resumed = order.carry_out(&session.account, &deployment, now(), &session.interrupt).await?;
    let noticed = noticed_within(&deployment);
    let mut out = anstream::stdout();
    if arguments.common.json {
        let report = serde_json::json!({
            "ended": resumed.ended,
            "still_paused_by": resumed.still,
            "other_concurrency": resumed.other_concurrency,
            "spread_seconds": arguments.spread.as_secs(),
            "noticed_within_seconds": noticed.map(|noticed| noticed.as_secs()),
        });
        writeln!(out, "{report}")?;
    } else if resumed.ended.is_empty() {
        writeln!(out, "{name}: no pause of its own is open")?;
    } else {
        writeln!(out, "{name}: resumed; what was due comes back over {}", durations::text(arguments.spread))?;
        if let Some(noticed) = noticed {
            let (noticed, hold) = (durations::text(noticed), durations::text(HOLD));
            writeln!(out, "The handler notices within {noticed}, and looks at a held event every {hold}.")?;
        }
    }
    if let Some(reserved) = resumed.other_concurrency {
        anstream::eprintln!(
            "warning: somebody has set the reserved concurrency of {name} to {reserved} meanwhile, and it stays"
        );
    }
    match resumed.still.first() {
        None => Ok(()),
        Some(still) => {
            let by = still.by.as_deref().unwrap_or("somebody");
            let how = if still.target == "*" { "--all".to_owned() } else { still.target.clone() };
            let what = format!("{name} is still paused by another pause, of {by}: comeback resume {how}");
            Err(comeback_operate::Failure::Undone(what).into())
        }
    }
}
