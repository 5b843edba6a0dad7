//! `comeback resume`: let the retries of a paused function go again.

use std::io::Write as _;
use std::time::Duration;

use clap::{ArgGroup, Args};
use comeback_engine::{EditError, HOLD, PauseTarget, Pauses, Timestamp};

use crate::clock::now;
use crate::failure;
use crate::operate::account::Failure;
use crate::operate::deployment::Deployment;
use crate::operate::function::FunctionName;
use crate::operate::pauses::writing::{Edit, edit};
use crate::operate::pauses::{self, OpenPause, concurrency, named, noticed_within};
use crate::operate::session::{Common, Session, confirm};
use crate::text::durations;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback resume orders
  comeback resume --all --spread 2h --yes";

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

pub(crate) async fn run(arguments: &ResumeArguments, session: Session) -> Result<(), failure::Failure> {
    let deployment = session.interrupt.or(session.deployment()).await?;
    let name = named(arguments.function.as_ref());
    confirm(&format!("resume {name}?"), &session).await?;
    let resumed = resume(arguments, &session, &deployment, now()).await?;
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
            writeln!(out, "The handler notices within {noticed}, and checks a held event every {hold}.")?;
        }
    }
    if let Some(reserved) = resumed.other_concurrency {
        anstream::eprintln!(
            "warning: somebody has set the reserved concurrency of {name} to {reserved} since it was paused; it stays"
        );
    }
    match resumed.still.first() {
        None => Ok(()),
        Some(still) => {
            let by = still.by.as_deref().unwrap_or("somebody");
            let how = if still.target == "*" { "--all" } else { &still.target };
            let what = format!("{name} is still paused by another pause, of {by}: comeback resume {how}");
            Err(Failure::Undone(what).into())
        }
    }
}

/// What `resume` did.
#[derive(Default)]
struct Resumed {
    /// The pauses it ended.
    ended: Vec<OpenPause>,
    /// The reserved concurrency that somebody else has set meanwhile, and that stays.
    other_concurrency: Option<u32>,
    /// Other open pauses that still hold the function.
    still: Vec<OpenPause>,
}

/// Ends the pause. The earlier concurrency is restored first, so that a run killed in between is resumed by repeating it.
async fn resume(
    arguments: &ResumeArguments,
    session: &Session,
    deployment: &Deployment,
    now: Timestamp,
) -> Result<Resumed, Failure> {
    let account = &session.account;
    let function = arguments.function.as_ref();
    let name = pauses::parameter(deployment)?;
    let target = pauses::target(deployment, function)?;
    let pauses = pauses::read(account, deployment).await?.unwrap_or_default();
    let holds = |pause: &&comeback_engine::Pause| {
        pause.is_active(now) && pause.target != target && overlaps(&pause.target, &target)
    };
    let still = pauses.iter().filter(holds).map(|pause| OpenPause::of(pause, now)).collect();
    let mut resumed = Resumed { still, ..Resumed::default() };
    let ended = match pauses.close(&target, arguments.spread, now) {
        Ok((_, ended)) => ended,
        Err(EditError::NotPaused(_)) => return Ok(resumed),
        Err(error) => return Err(error.into()),
    };
    resumed.ended = ended.iter().map(|pause| OpenPause::of(pause, now)).collect();
    for (pause, open) in ended.iter().zip(&resumed.ended) {
        if let (Some(function), true) = (function, open.is_hard) {
            resumed.other_concurrency = concurrency::restore(account, function, pause.concurrency).await?;
        }
    }
    edit(account, name, &Close(target, arguments.spread, now), &session.interrupt).await?;
    Ok(resumed)
}

/// Whether a pause of one target holds events of the other.
fn overlaps(pause: &PauseTarget, other: &PauseTarget) -> bool {
    match other {
        PauseTarget::All => false,
        PauseTarget::Functions(pattern) => pause.covers(&pattern.to_string()),
    }
}

/// The end of a target's pauses, with its spread, at a time.
struct Close(PauseTarget, Duration, Timestamp);

impl Edit for Close {
    fn make(&self, pauses: &Pauses) -> Result<Pauses, EditError> {
        let closed = pauses.close(&self.0, self.1, self.2)?.0.tidied(self.2);
        closed.check_size().map(|()| closed)
    }

    fn is_in(&self, pauses: &Pauses) -> bool {
        // The end is rounded up to a second.
        let ended = self.2.saturating_add(Duration::from_secs(1));
        pauses.iter().all(|pause| pause.target != self.0 || pause.is_over(ended))
    }
}
