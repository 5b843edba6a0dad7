//! `comeback pause` and `comeback resume`: hold the retries of a function, or of every function, and let them go again.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::time::Duration;

use clap::{ArgGroup, Args};
use comeback_engine::{
    Concurrency, EditError, HOLD, LONG_PAUSE, Pause, PauseChange, PauseTarget, Pauses, Timestamp,
};
use comfy_table::{Attribute, Cell, Table};
use serde_json::json;

use crate::account::{Account, Failure, Or as _};
use crate::clock::now;
use crate::failure;
use crate::operate::deployment::{Deployment, DeploymentName};
use crate::operate::function::{FunctionName, InvokeSettings};
use crate::operate::pauses::orders::RetryOrder;
use crate::operate::pauses::{
    self, DEFAULT_SPREAD, OpenPause, Parameter as _, SsmParameter, concurrency, edit, history, named,
    noticed_within,
};
use crate::operate::retry::knows_orders;
use crate::operate::session::{Common, Session, confirm};
use crate::text::durations;
use crate::text::terminal::{command_line, shown, unwrapped_table};

pub(crate) const PAUSE_EXAMPLES: &str = "\
Examples:
  comeback pause orders --reason 'deploy 4711 broke it'
  comeback pause orders --hard --reason 'the database is being restored'
  comeback pause --all --for 2h --reason 'maintenance of the network' --yes
  comeback pause orders --change --for 6h
  comeback pause --list --history";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["function", "all", "list"])))]
pub(crate) struct PauseArguments {
    /// The function, as NAME, NAME:ALIAS, NAME:VERSION or ARN
    #[arg(value_name = "FUNCTION")]
    function: Option<FunctionName>,
    /// Every function
    #[arg(long)]
    all: bool,
    /// List the pauses that are open and the orders to retry now, with who gave them and why
    #[arg(long)]
    list: bool,
    /// Also list who paused, changed and resumed what
    #[arg(long, requires = "list")]
    history: bool,
    /// Change the end, the spread or the reason of the pause that is open
    #[arg(long, conflicts_with_all = ["list", "hard"])]
    change: bool,
    /// The reason, shown with the pause
    #[arg(long, value_name = "TEXT", required_unless_present_any = ["list", "change"], value_parser = read_reason)]
    reason: Option<String>,
    /// When it ends by itself, an RFC 3339 time [default: only by comeback resume]
    #[arg(long, value_name = "TIME", value_parser = crate::flags::moment, conflicts_with = "for_")]
    until: Option<Timestamp>,
    /// How long it lasts from now; at most 14 days, because SQS keeps an event no longer
    #[arg(long = "for", value_name = "DURATION", value_parser = read_length)]
    for_: Option<Duration>,
    /// Spread the events that became due over this time once the pause ends or is resumed [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = durations::read)]
    spread: Option<Duration>,
    /// Stop new events too: the reserved concurrency becomes 0, and Lambda sends them to the retry queue
    #[arg(long)]
    hard: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

fn read_reason(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("must say why".into()) } else { Ok(text.to_owned()) }
}

fn read_length(text: &str) -> Result<Duration, String> {
    match durations::read(text)? {
        Duration::ZERO => Err("must be longer than 0".into()),
        length => Ok(length),
    }
}

pub(crate) async fn pause(arguments: &PauseArguments, session: Session) -> Result<(), failure::Failure> {
    let now = now();
    let deployment = session.interrupt.or(session.deployment()).await?;
    if arguments.list {
        return list(arguments.history, &session, &deployment, now).await;
    }
    let parameter = SsmParameter::of(&session, &deployment)?;
    let name = named(arguments.function.as_ref());
    let (pause, was_open) = if arguments.change {
        confirm(&format!("change the pause of {name}?"), &session).await?;
        (change(arguments, &parameter, &deployment, now).await?, true)
    } else {
        let pause = wanted(arguments, &deployment, now)?;
        confirm(&format!("pause {name}?"), &session).await?;
        open(pause, arguments, &parameter, &deployment, now).await?
    };
    let pause = OpenPause::of(&pause, now);
    let noticed = noticed_within(&deployment);
    session.answer(&json!({
        "pause": pause, "was_open": was_open, "noticed_within_seconds": noticed.map(|noticed| noticed.as_secs()),
    }));
    if !session.common.json {
        write_pause(&pause, was_open, arguments, noticed, &session.common.place_flags())?;
    }
    let Some(function) = arguments.function.as_ref().filter(|_| !arguments.change) else { return Ok(()) };
    // The pause is in force, so Ctrl-C ends only this look.
    let note = tokio::select! {
        note = elsewhere(function, &session.account, &deployment) => note,
        () = session.interrupt.raised() => None,
    };
    note.into_iter().for_each(|note| anstream::eprintln!("note: {}", shown(&note)));
    Ok(())
}

fn write_pause(
    pause: &OpenPause,
    was_open: bool,
    arguments: &PauseArguments,
    noticed: Option<Duration>,
    place: &str,
) -> io::Result<()> {
    let name = named(arguments.function.as_ref());
    let mut out = anstream::stdout();
    let by = shown(pause.by.as_deref().unwrap_or("somebody"));
    let why = shown(pause.why.as_deref().unwrap_or_default());
    match (was_open, arguments.change) {
        (_, true) => writeln!(out, "{name}: changed; paused since {} by {by} ({why})", pause.from)?,
        (true, _) => writeln!(out, "{name}: paused already, since {} by {by} ({why})", pause.from)?,
        (false, _) => writeln!(out, "{name}: paused by {by} ({why})")?,
    }
    if let Some(noticed) = noticed.map(durations::text) {
        writeln!(out, "The handler notices within {noticed}; until then it may still retry.")?;
    }
    writeln!(out, "What fails meanwhile waits, and uses up neither a retry nor its MAX_AGE.")?;
    if pause.is_hard {
        writeln!(out, "New events are not run: Lambda sends them to the retry queue.")?;
    }
    match (pause.until, &arguments.function) {
        (Some(until), _) => {
            let spread = durations::text(Duration::from_secs(pause.spread_seconds));
            writeln!(out, "It ends at {until}; what was due comes back over {spread}.")?;
        }
        (None, Some(function)) => writeln!(out, "Let it go again with: comeback resume {function}{place}")?,
        (None, None) => writeln!(out, "Let them go again with: comeback resume --all{place}")?,
    }
    Ok(())
}

/// Where new failures of the function go if another deployment has them, because it was moved there, and how to hold them.
/// The pause does not depend on it, so what cannot be read is not said.
async fn elsewhere(function: &FunctionName, account: &Account, deployment: &Deployment) -> Option<String> {
    let arn = deployment.arn_of(function).unqualified().to_string();
    let settings = InvokeSettings::all(account, &arn).await.ok()?;
    let is_named = |qualifier: &Option<String>| match &function.qualifier {
        None => qualifier.is_none() || !function.is_latest,
        named => named == qualifier,
    };
    let named = settings.into_iter().filter(|(qualifier, _)| is_named(qualifier));
    let queues: BTreeSet<String> = named.filter_map(|(_, settings)| settings.on_failure).collect();
    for queue in queues.iter().filter(|queue| **queue != deployment.retry_queue.arn) {
        if let Ok(Some(other)) = DeploymentName::of_retry_queue(account, queue).await {
            let latest = if function.is_latest { ":$LATEST" } else { "" };
            let pause = command_line(["pause", &format!("{function}{latest}")]);
            let pause = deployment.command_of(&other, pause);
            return Some(format!(
                "new failures of {function} go to {other}; to hold those too, give `{pause}` the same flags"
            ));
        }
    }
    None
}

/// Lists the open pauses, and the history if that is asked for.
async fn list(
    with_history: bool,
    session: &Session,
    deployment: &Deployment,
    now: Timestamp,
) -> Result<(), failure::Failure> {
    let account = &session.account;
    let work = async {
        let history = match deployment.pauses().filter(|_| with_history) {
            Some(name) => Some(history::read(account, name).await?),
            None => None,
        };
        Ok((pauses::read(account, deployment).await, history))
    };
    let (read, history) = session.interrupt.or(work).await?;
    let read =
        read.map(|read| read.map(|read| (OpenPause::all_of(&read, now), RetryOrder::in_force(&read, now))));
    let (pauses, retries) = read.as_ref().ok().cloned().flatten().unzip();
    session.answer(&json!({"pauses": pauses, "retries": retries, "history": history}));
    let history = history.filter(|_| !session.common.json).map(|history| history::text(&history));
    let read = match read {
        Ok(read) => read,
        Err(unreadable) => {
            // Who wrote it is in the history.
            history.map_or(Ok(()), |history| writeln!(anstream::stdout(), "{history}"))?;
            return Err(unreadable.into());
        }
    };
    let Some((pauses, retries)) = read else {
        let handler = &deployment.handler;
        anstream::eprintln!("note: the handler {handler} reads no pauses: its variable PAUSES is not set");
        return Ok(());
    };
    if !session.common.json {
        let mut out = anstream::stdout();
        if pauses.is_empty() {
            writeln!(out, "nothing is paused")?;
        } else {
            writeln!(out, "{}", listed(&pauses))?;
        }
        for order in retries {
            writeln!(out, "retry now: {}", shown(&order.line()))?;
        }
        if let Some(history) = history {
            writeln!(out, "\n{history}")?;
        }
    }
    for pause in pauses.iter().filter(|pause| Duration::from_secs(pause.open_seconds) > LONG_PAUSE) {
        let (name, open) = (pause.name(), durations::short(pause.open_seconds as f64));
        anstream::eprintln!("warning: {name} is paused for {open}: has it been forgotten?");
    }
    Ok(())
}

fn listed(pauses: &[OpenPause]) -> Table {
    let mut table = unwrapped_table();
    let heads = ["function", "since", "until", "spread", "by", "why", "new events"];
    table.set_header(heads.map(|head| Cell::new(head).add_attribute(Attribute::Bold)));
    for pause in pauses {
        let row = [
            pause.name(),
            &pause.from.to_string(),
            &pause.until.map_or_else(|| "resume".to_owned(), |until| until.to_string()),
            &durations::text(Duration::from_secs(pause.spread_seconds)),
            pause.by.as_deref().unwrap_or_default(),
            pause.why.as_deref().unwrap_or_default(),
            if pause.is_hard { "stopped too" } else { "run" },
        ];
        table.add_row(row.map(shown));
    }
    table
}

impl PauseArguments {
    /// The planned end.
    fn end(&self, now: Timestamp) -> Option<Timestamp> {
        let end = self.until.or_else(|| self.for_.map(|length| now.saturating_add(length)));
        end.map(Timestamp::rounded_up_to_secs)
    }
}

/// Changes the open pause, and returns it as it is then.
async fn change(
    arguments: &PauseArguments,
    parameter: &SsmParameter<'_>,
    deployment: &Deployment,
    now: Timestamp,
) -> Result<Pause, Failure> {
    let PauseArguments { function, spread, reason, .. } = arguments;
    let change = PauseChange { until: arguments.end(now), spread: *spread, why: reason.clone() };
    if change == PauseChange::default() {
        return Err(Failure::Refused("nothing to change: give --for, --until, --spread or --reason".into()));
    }
    let target = pauses::target(deployment, function.as_ref())?;
    let (_, pause) = parameter.read().await?.0.change(&target, &change, now)?;
    let make = |pauses: &Pauses| pauses.change(&target, &change, now).map(|(changed, _)| changed);
    edit(parameter, now, make, |pauses| pauses.iter().any(|other| *other == pause)).await?;
    Ok(pause)
}

/// The pause that is asked for, as far as it can be checked without reading the pauses.
fn wanted(arguments: &PauseArguments, deployment: &Deployment, now: Timestamp) -> Result<Pause, Failure> {
    let PauseArguments { function, hard, reason, .. } = arguments;
    let target = pauses::retried_target(deployment, function.as_ref())?;
    let refused = match function {
        None if *hard => {
            "--hard sets the reserved concurrency of one function: name it instead of --all".into()
        }
        Some(FunctionName { name, qualifier: Some(_), .. }) if *hard => format!(
            "reserved concurrency is the whole function's: give {name} without a qualifier, or leave out --hard"
        ),
        _ => String::new(),
    };
    if !refused.is_empty() {
        return Err(Failure::Refused(refused));
    }
    Ok(Pause {
        target,
        from: Timestamp::from_secs(now.as_secs()),
        until: arguments.end(now),
        spread: arguments.spread.unwrap_or(DEFAULT_SPREAD),
        by: None,
        why: reason.clone(),
        concurrency: if *hard { Concurrency::WasUnreserved } else { Concurrency::Untouched },
    })
}

/// Opens a pause unless it is open already. Returns it, and whether it was open. The earlier concurrency is
/// written first and set to 0 afterwards, so that a run killed in between is resumed by repeating it.
async fn open(
    wanted: Pause,
    arguments: &PauseArguments,
    parameter: &SsmParameter<'_>,
    deployment: &Deployment,
    now: Timestamp,
) -> Result<(Pause, bool), Failure> {
    let (account, function) = (parameter.account, arguments.function.as_ref());
    if let Some(function) = function {
        check_exists(account, deployment, function).await?;
    }
    let hard = function.filter(|_| arguments.hard);
    if let Some(function) = hard {
        concurrency::check_nothing_is_lost(account, function, &deployment.retry_queue.arn).await?;
    }
    let pauses = parameter.read().await?.0;
    let is_hard = |pause: &Pause| pause.concurrency != Concurrency::Untouched;
    let same = pauses.iter().find(|pause| {
        let is_same = (&pause.target, pause.until) == (&wanted.target, wanted.until);
        let is_same = is_same && arguments.spread.is_none_or(|_| pause.spread == wanted.spread);
        is_same && pause.is_active(now) && is_hard(pause) == is_hard(&wanted)
    });
    let was_open = same.is_some();
    let pause = match same {
        Some(open) => open.clone(),
        None => {
            let mut pause =
                Pause { by: Some(history::user_name(&account.place.caller).to_owned()), ..wanted };
            // Refuse what would be refused before asking Lambda anything.
            pauses.open(pause.clone(), now)?.tidied(now).check_size()?;
            if let Some(function) = hard {
                let reserved = concurrency::reserved(account, function).await?;
                pause.concurrency = reserved.map_or(Concurrency::WasUnreserved, Concurrency::Was);
            }
            let make = |pauses: &Pauses| pauses.open(pause.clone(), now);
            edit(parameter, now, make, |pauses| pauses.iter().any(|other| *other == pause)).await?;
            pause
        }
    };
    if let Some(function) = hard {
        concurrency::set(account, function, 0).await?;
    }
    Ok((pause, was_open))
}

/// Checks that the function and its qualifier exist. An entry such as `shop-*` allows names that no function has.
async fn check_exists(
    account: &Account,
    deployment: &Deployment,
    function: &FunctionName,
) -> Result<(), Failure> {
    let arn = deployment.arn_of(function).unqualified().to_string();
    let call = account.lambda.get_function_configuration().function_name(arn);
    let answer = call.set_qualifier(function.qualifier.clone()).send().await;
    answer.or_failure("lambda:GetFunctionConfiguration", &function.to_string()).map(drop)
}

pub(crate) const RESUME_EXAMPLES: &str = "\
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
    /// What became due in the pause comes back over this time [default: as the pause says]
    #[arg(long, value_name = "DURATION", value_parser = durations::read)]
    spread: Option<Duration>,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn resume(arguments: &ResumeArguments, session: Session) -> Result<(), failure::Failure> {
    let deployment = session.interrupt.or(session.deployment()).await?;
    let (name, place) = (named(arguments.function.as_ref()), session.common.place_flags());
    confirm(&format!("resume {name}?"), &session).await?;
    let now = now();
    let parameter = SsmParameter::of(&session, &deployment)?;
    let target = pauses::target(&deployment, arguments.function.as_ref())?;
    let pauses = parameter.read().await?.0;
    let spread = arguments.spread.unwrap_or_else(|| own_spread(&pauses, &target, now));
    let (ended, other_concurrency) = close(&target, &pauses, arguments, spread, &parameter, now).await?;
    // Other pauses that hold the function.
    let holds = |pause: &&Pause| match &target {
        PauseTarget::Functions(function) if pause.target != target => {
            pause.is_active(now) && pause.target.covers(&function.to_string())
        }
        _ => false,
    };
    let still: Vec<_> = pauses.iter().filter(holds).map(|pause| OpenPause::of(pause, now)).collect();
    let noticed = noticed_within(&deployment);
    session.answer(&json!({
        "ended": ended.iter().map(|pause| OpenPause::of(pause, now)).collect::<Vec<_>>(),
        "still_paused_by": still,
        "other_concurrency": other_concurrency,
        "spread_seconds": spread.as_secs(),
        "noticed_within_seconds": noticed.map(|noticed| noticed.as_secs()),
    }));
    if !arguments.common.json && !ended.is_empty() {
        let mut out = anstream::stdout();
        writeln!(out, "{name}: resumed; what was due comes back over {}", durations::text(spread))?;
        if let Some(first) = first_retries(&deployment, &place) {
            writeln!(out, "{first}")?;
        }
        if let Some(offer) = offer_to_retry(&deployment, arguments.function.as_ref(), &place) {
            writeln!(out, "{offer}")?;
        }
    }
    if let Some(reserved) = other_concurrency {
        anstream::eprintln!(
            "warning: somebody has set the reserved concurrency of {name} to {reserved} since it was paused; it stays"
        );
    }
    let Some(still) = still.first() else {
        let of_its_own = match &arguments.function {
            Some(function) => format!("{function} has no open pause of its own"),
            None => "no pause of every function is open".to_owned(),
        };
        let nothing = format!("{of_its_own}, so nothing was resumed; see comeback pause --list{place}");
        return if ended.is_empty() { Err(Failure::Undone(nothing).into()) } else { Ok(()) };
    };
    let by = still.by.as_deref().unwrap_or("somebody");
    let how = command_line([if still.target == "*" { "--all" } else { &still.target }]);
    let what = format!("{name} is still paused by another pause, of {by}: comeback resume {how}{place}");
    Err(Failure::Undone(what).into())
}

/// When the events that were due come back.
fn first_retries(deployment: &Deployment, place: &str) -> Option<String> {
    deployment.stopped_note(place).or_else(|| {
        let minutes = (noticed_within(deployment)? + HOLD).as_secs().div_ceil(60);
        Some(format!("The first may take up to {minutes} minutes: until then, held messages stay hidden."))
    })
}

/// What waits for its backoff does not come back with the end of a pause.
fn offer_to_retry(deployment: &Deployment, function: Option<&FunctionName>, place: &str) -> Option<String> {
    let which = function.map_or_else(|| "--all".to_owned(), ToString::to_string);
    let offer = format!("What waits for longer is retried now with: comeback retry {which}{place}");
    (knows_orders(deployment) && deployment.stopped().is_none()).then_some(offer)
}

/// The longest spread of the target's open pauses.
fn own_spread(pauses: &Pauses, target: &PauseTarget, now: Timestamp) -> Duration {
    let open = pauses.iter().filter(|pause| pause.target == *target && !pause.is_over(now));
    open.map(|pause| pause.spread).max().unwrap_or(DEFAULT_SPREAD)
}

/// Closes the pauses of a target and returns them as they were. Also returns the reserved concurrency if somebody else has
/// changed it since: it stays. The earlier one is restored first, so that a killed run is resumed by repeating it.
async fn close(
    target: &PauseTarget,
    pauses: &Pauses,
    arguments: &ResumeArguments,
    spread: Duration,
    parameter: &SsmParameter<'_>,
    now: Timestamp,
) -> Result<(Vec<Pause>, Option<u32>), Failure> {
    let ended = match pauses.close(target, spread, now) {
        Ok((_, ended)) => ended,
        Err(EditError::NotPaused(_)) => return Ok((Vec::new(), None)),
        Err(error) => return Err(error.into()),
    };
    let mut other_concurrency = None;
    for pause in ended.iter().filter(|pause| pause.concurrency != Concurrency::Untouched) {
        if let Some(function) = &arguments.function {
            other_concurrency = concurrency::restore(parameter.account, function, pause.concurrency).await?;
        }
    }
    // The end is rounded up to a second.
    let end = now.rounded_up_to_secs();
    let is_closed = |pause: &Pause| pause.target != *target || pause.is_over(end);
    let make = |pauses: &Pauses| pauses.close(target, spread, now).map(|(closed, _)| closed);
    edit(parameter, now, make, |pauses| pauses.iter().all(is_closed)).await?;
    Ok((ended, other_concurrency))
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;
    use crate::operate::deployment::{Mapping, Queue};
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    #[test]
    fn a_pause_has_a_reason_and_a_length() {
        let read = |arguments: &[&str]| {
            let all = ["pause", "orders"].iter().chain(arguments);
            PauseArguments::augment_args(Command::new("pause")).try_get_matches_from(all).map(drop)
        };
        assert!(read(&["--reason", "why", "--for", "1s"]).is_ok());
        for (refused, why) in [
            (["--reason", "", "--for", "1s"], "must say why"),
            (["--reason", " ", "--for", "1s"], "must say why"),
            (["--reason", "why", "--for", "0s"], "must be longer than 0"),
        ] {
            let error = read(&refused).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[tokio::test]
    async fn a_pause_says_where_a_moved_function_fails_to() {
        let functions = "arn:aws:lambda:eu-west-1:123456789012:function";
        let said = async |name: &str, (moved, queue): (&str, &str), is_denied: bool| {
            let queue = Queue::sample(queue).arn;
            let settings = json!({"FunctionEventInvokeConfigs": [{
                "FunctionArn": format!("{functions}:{moved}"),
                "DestinationConfig": {"OnFailure": {"Destination": queue}},
            }]});
            let mapping = json!({"EventSourceArn": queue, "FunctionArn": format!("{functions}:handler")});
            let mappings = if queue.ends_with(":others") { vec![] } else { vec![mapping] };
            let handler = json!({
                "Configuration": {"FunctionName": "handler", "Environment": {"Variables": {
                    "DEAD_LETTER_QUEUE_URL": "", "TARGET_FUNCTIONS": "",
                }}},
                "Tags": {"aws:cloudformation:stack-name": "second"},
            });
            let account = Account::answering_paths(move |path| match path {
                path if path.contains("event-source-mappings") => {
                    (200, json!({"EventSourceMappings": mappings}))
                }
                path if path.contains("event-invoke-config") => (200, settings.clone()),
                _ if is_denied => (403, json!({})),
                _ => (200, handler.clone()),
            });
            let account = account.await;
            elsewhere(&name.parse().unwrap(), &account, &Deployment::sample()).await
        };
        let note = "new failures of payments go to stack second; to hold those too, give `comeback pause payments --stack \
                    second` the same flags";
        assert_eq!(said("payments", ("payments:$LATEST", "second"), false).await.as_deref(), Some(note));
        let latest = said("payments:$LATEST", ("payments:$LATEST", "second"), false).await.unwrap();
        assert!(latest.contains("`comeback pause 'payments:$LATEST' --stack second`"), "{latest}");
        let alias = said("payments:$LATEST", ("payments:live", "second"), false).await;
        assert_eq!(alias, None, "only the alias moved");
        assert_eq!(
            said("payments:live", ("payments:$LATEST", "second"), false).await,
            None,
            "the alias did not move"
        );
        assert_eq!(
            said("payments", ("payments:$LATEST", "retries"), false).await,
            None,
            "it is attached here"
        );
        assert_eq!(
            said("payments", ("payments:$LATEST", "others"), false).await,
            None,
            "an ordinary destination"
        );
        assert_eq!(
            said("payments", ("payments:$LATEST", "second"), true).await,
            None,
            "what may not be read is not said"
        );
    }

    #[test]
    fn resume_spreads_as_the_pause_says() {
        let text = r#"{"v":1,"pauses":[{"target":"*","from":10,"until":20,"spread":9},{"target":"*","from":15,"until":null,"spread":7}]}"#;
        let pauses = Pauses::read(text).unwrap();
        let spread = |target: &PauseTarget| own_spread(&pauses, target, Timestamp::from_secs(30)).as_secs();
        assert_eq!(spread(&PauseTarget::All), 7, "the other is over");
        let orders = "arn:aws:lambda:eu-west-1:123456789012:function:orders".parse().unwrap();
        assert_eq!(spread(&orders), DEFAULT_SPREAD.as_secs());
        let open = OpenPause::of(pauses.iter().last().unwrap(), Timestamp::from_secs(30));
        assert!(listed(&[open]).to_string().contains(" 7s "), "pause --list shows it");
    }

    #[test]
    fn resume_promises_no_retries_while_the_handler_is_stopped() {
        let mut deployment = Deployment::sample();
        let said = |deployment: &Deployment| first_retries(deployment, " --stack shop").unwrap_or_default();
        assert!(
            said(&deployment)
                .ends_with("nothing is retried: `comeback doctor --short --stack shop` names the fix.")
        );
        deployment.mapping = Some(Mapping::sample());
        // 38 s and 1,344 s.
        assert_eq!(
            said(&deployment),
            "The first may take up to 24 minutes: until then, held messages stay hidden."
        );
    }

    #[test]
    fn resume_offers_a_retry_where_the_handler_knows_orders() {
        let mut deployment = Deployment { mapping: Some(Mapping::sample()), ..Deployment::sample() };
        assert_eq!(offer_to_retry(&deployment, None, ""), None);
        deployment.variables.insert("LONGEST_HIDE".into(), "3600".into());
        let stopped = Deployment { never_runs: true, ..deployment.clone() };
        assert_eq!(offer_to_retry(&stopped, None, ""), None);
        let offer = |function: Option<&str>| {
            let function = function.map(|name| name.parse().unwrap());
            offer_to_retry(&deployment, function.as_ref(), " --stack shop").unwrap()
        };
        let offered = "What waits for longer is retried now with: comeback retry";
        assert_eq!(offer(Some("orders:live")), format!("{offered} orders:live --stack shop"));
        assert_eq!(offer(None), format!("{offered} --all --stack shop"));
    }

    #[test]
    fn a_reason_cannot_command_the_terminal() {
        let hostile =
            OpenPause { by: Some(HOSTILE.into()), why: Some(HOSTILE.into()), ..OpenPause::sample("*") };
        let list = listed(&[hostile]).to_string();
        assert!(list.contains("\\u") && !is_obeyed_anywhere(&list), "{list}");
    }
}
