//! `comeback pause`: hold the retries of a function, or of every function.
//!
//! | file | holds |
//! |---|---|
//! | `list` | `comeback pause --list`: the pauses that are open |

mod list;

use std::io::Write as _;
use std::time::Duration;

use clap::{ArgGroup, Args};
use comeback_engine::{KnownPauses, Timestamp};
use comeback_operate::{Deployment, FunctionName, OpenPause, PauseOrder, Paused};

use crate::clock::now;
use crate::failure::Failure;
use crate::flags::moment;
use crate::operate::common::Common;
use crate::operate::confirm::confirm;
use crate::operate::resume::DEFAULT_SPREAD;
use crate::operate::session::Session;
use crate::text::durations;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback pause orders --reason 'deploy 4711 broke it'
  comeback pause orders --hard --reason 'the database is being restored'
  comeback pause --all --for 2h --reason 'maintenance of the network' --yes
  comeback pause --list";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["function", "all", "list"])))]
pub(crate) struct PauseArguments {
    /// The function, as NAME, NAME:ALIAS, NAME:VERSION or ARN
    #[arg(value_name = "FUNCTION")]
    function: Option<FunctionName>,
    /// Every function
    #[arg(long)]
    all: bool,
    /// List the pauses that are open, with who opened them and why
    #[arg(long)]
    list: bool,
    /// Why: whoever sees the pause sees the reason
    #[arg(long, value_name = "TEXT", required_unless_present = "list")]
    reason: Option<String>,
    /// When it ends by itself, in RFC 3339 [default: by comeback resume]
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "for_")]
    until: Option<Timestamp>,
    /// How long it lasts before it ends by itself
    #[arg(long = "for", value_name = "DURATION", value_parser = durations::read)]
    for_: Option<Duration>,
    /// Stop new events too: the reserved concurrency becomes 0, and Lambda sends them to the retry queue
    #[arg(long)]
    hard: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(arguments: &PauseArguments, session: Session) -> Result<(), Failure> {
    let now = now();
    let deployment = session.interrupt.or(session.deployment()).await?;
    if arguments.list {
        let pauses = session.interrupt.or(OpenPause::all(&session.account, &deployment, now)).await?;
        return list::print(pauses, &deployment, session.common.json);
    }
    let until = arguments.until.or_else(|| arguments.for_.map(|length| now.saturating_add(length)));
    let order = PauseOrder {
        function: arguments.function.clone(),
        until: until.map(|until| Timestamp::from_secs(until.as_millis().div_ceil(1_000))),
        spread: DEFAULT_SPREAD,
        why: arguments.reason.clone().unwrap_or_default(),
        hard: arguments.hard,
    };
    order.check(&deployment)?;
    confirm(&format!("pause {}?", named(arguments.function.as_ref())), &session).await?;
    let paused = order.carry_out(&session.account, &deployment, now, &session.interrupt).await?;
    report(&paused, arguments, &deployment)
}

/// The functions of a pause, for people.
pub(crate) fn named(function: Option<&FunctionName>) -> String {
    function.map_or_else(|| "every function".to_owned(), ToString::to_string)
}

fn report(paused: &Paused, arguments: &PauseArguments, deployment: &Deployment) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    let (Paused::Opened(pause) | Paused::WasOpen(pause)) = paused;
    let was_open = matches!(paused, Paused::WasOpen(_));
    let noticed = noticed_within(deployment);
    if arguments.common.json {
        let noticed = noticed.map(|noticed| noticed.as_secs());
        let report =
            serde_json::json!({"pause": pause, "was_open": was_open, "noticed_within_seconds": noticed});
        writeln!(out, "{report}")?;
        return Ok(());
    }
    let name = named(arguments.function.as_ref());
    let by = pause.by.as_deref().unwrap_or("somebody");
    let why = pause.why.as_deref().unwrap_or_default();
    if was_open {
        writeln!(out, "{name}: paused already, since {} by {by} ({why})", pause.from)?;
    } else {
        writeln!(out, "{name}: paused by {by} ({why})")?;
    }
    if let Some(noticed) = noticed {
        writeln!(
            out,
            "The handler notices within {}; until then it may still retry.",
            durations::text(noticed)
        )?;
    }
    writeln!(out, "What fails meanwhile waits, and uses up neither a retry nor its MAX_AGE.")?;
    if pause.is_hard {
        writeln!(out, "New events are not run: Lambda sends them to the retry queue.")?;
    }
    match (pause.until, &arguments.function) {
        (Some(until), _) => {
            let spread = durations::text(DEFAULT_SPREAD);
            writeln!(out, "It ends at {until}; what was due comes back over {spread}.")?;
        }
        (None, Some(function)) => writeln!(out, "Let it go again with: comeback resume {function}")?,
        (None, None) => writeln!(out, "Let them go again with: comeback resume --all")?,
    }
    Ok(())
}

/// How late the handler may notice a change; `None` if it does not start for its settings. Whole seconds.
pub(crate) fn noticed_within(deployment: &Deployment) -> Option<Duration> {
    let policy = deployment.policy().ok()?;
    let longest = KnownPauses::longest_between_reads(&policy);
    Some(Duration::from_secs(longest.as_millis().div_ceil(1_000) as u64))
}
