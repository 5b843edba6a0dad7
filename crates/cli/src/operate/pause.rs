//! `comeback pause` and `comeback resume`: hold the retries of a function, or of every function, and let them go again.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Duration;

use clap::{ArgGroup, Args};
use comeback_engine::{HOLD, LONG_PAUSE, Pause, PauseTarget, Pauses, Timestamp};
use comfy_table::{Attribute, Cell, Table};
use serde::Serialize;
use serde_json::json;

use crate::account::{Account, Failure, Or as _};
use crate::clock::now;
use crate::failure;
use crate::operate::deployment::{Deployment, DeploymentName};
use crate::operate::function::{FunctionName, InvokeSettings};
use crate::operate::pauses::edits::{self, End, Wanted, check_spread, open_of};
use crate::operate::pauses::parameter::{Parameter as _, SsmParameter, edit, read_pauses};
use crate::operate::pauses::requests::RetryRequest;
use crate::operate::pauses::{
    self, DEFAULT_SPREAD, OpenPause, forgotten_note, history, named, noticed_within,
};
use crate::operate::session::{Common, Session, confirm_plan};
use crate::text::durations;
use crate::text::terminal::{command_line, shown, unwrapped_table};

pub(crate) const PAUSE_EXAMPLES: &str = "\
Examples:
  comeback pause orders --reason 'deploy 4711 broke it'
  comeback pause --all --for 2h --reason 'network maintenance' --yes
  comeback pause orders --for 6h
  comeback pause --list --history";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["function", "all", "list"])))]
pub(crate) struct PauseArguments {
    /// Function as NAME, NAME:ALIAS, NAME:VERSION or ARN
    #[arg(value_name = "FUNCTION")]
    function: Option<FunctionName>,
    /// Every function
    #[arg(long)]
    all: bool,
    /// List open pauses and retry requests, with who made them and why
    #[arg(long)]
    list: bool,
    /// Also list who paused, changed and resumed what
    #[arg(long, requires = "list")]
    history: bool,
    /// Reason, shown with the pause; required for a new pause
    #[arg(long, value_name = "TEXT", value_parser = read_reason)]
    reason: Option<String>,
    /// End the pause automatically at this RFC 3339 time [default: lasts until `comeback resume`]
    #[arg(long, value_name = "TIME", value_parser = crate::flags::moment, conflicts_with = "for_")]
    until: Option<Timestamp>,
    /// End the pause automatically after this time, at most 14 days
    #[arg(long = "for", value_name = "DURATION", value_parser = read_length)]
    for_: Option<Duration>,
    /// Spread the retries over this time once the pause ends [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = durations::read)]
    spread: Option<Duration>,
    #[command(flatten)]
    pub(crate) common: Common,
}

fn read_reason(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("must not be empty".into()) } else { pauses::read_text(text) }
}

fn read_length(text: &str) -> Result<Duration, String> {
    match durations::read(text)? {
        Duration::ZERO => Err("must be longer than 0".into()),
        length => Ok(length),
    }
}

pub(crate) async fn pause(
    arguments: &PauseArguments,
    session: Session,
) -> Result<(), failure::CommandFailure> {
    let deployment = session.interrupt.or(session.deployment()).await?;
    if arguments.list {
        return list(arguments.history, &session, &deployment, now()).await;
    }
    let parameter = SsmParameter::of(&session, &deployment)?;
    let request = PauseRequest::read(arguments, &parameter, &deployment);
    let request = session.interrupt.or(request).await?;
    let planned = request.pause(now())?;
    let noticed = noticed_within(&deployment);
    let answer = |pause: &Pause, forgotten: &[Pause]| {
        let now = now();
        let shown = |pause: &Pause| OpenPause::of(pause, now);
        session.answer(&json!({
            "pause": shown(pause), "before": request.open.as_ref().map(shown),
            "forgotten": forgotten.iter().map(shown).collect::<Vec<_>>(),
            "noticed_within_seconds": noticed.map(|noticed| noticed.as_secs()),
        }));
    };
    session.say(&request.text(&planned))?;
    if request.open.as_ref() == Some(&planned) {
        answer(&planned, &[]);
        return Ok(());
    }
    confirm_plan(&request.question(), &request.plan(), &session).await?;
    // The question may have stood for long.
    let (pause, forgotten) = request.carry_out(&parameter, now()).await?;
    answer(&pause, &forgotten);
    session.say(&done_text(&pause, arguments, noticed, &session.common.place_flags()))?;
    forgotten_note(&forgotten).iter().for_each(|note| session.note(note));
    let Some(function) = arguments.function.as_ref().filter(|_| request.open.is_none()) else {
        return Ok(());
    };
    // The pause is in force, so Ctrl-C ends only this check.
    let note = tokio::select! {
        note = elsewhere(function, &session.account, &deployment) => note,
        () = session.interrupt.raised() => None,
    };
    note.iter().for_each(|note| session.note(note));
    Ok(())
}

/// A pause that is asked for, and the one of its target that is open.
struct PauseRequest {
    name: String,
    target: PauseTarget,
    wanted: Wanted,
    open: Option<Pause>,
}

impl PauseRequest {
    /// Fails if the pause would be refused.
    async fn read(
        arguments: &PauseArguments,
        parameter: &SsmParameter<'_>,
        deployment: &Deployment,
    ) -> Result<Self, Failure> {
        let PauseArguments { function, until, for_, spread, reason, .. } = arguments;
        let pauses = parameter.read().await?.0;
        let now = now();
        let target = pauses::target(deployment, function.as_ref())?;
        let open = open_of(&pauses, &target, now).next().cloned();
        if open.is_none() {
            pauses::retried_target(deployment, function.as_ref())?;
            if let Some(function) = function {
                check_exists(parameter.account, deployment, function).await?;
            }
        }
        let wanted = Wanted {
            end: until.map(End::At).or(for_.map(End::After)),
            spread: *spread,
            why: reason.clone(),
            by: history::user_name(&parameter.account.place.caller).to_owned(),
        };
        let request = Self { name: named(function.as_ref()), target, wanted, open };
        edits::with(&pauses, &request.pause(now)?, now).fitted(now)?;
        Ok(request)
    }

    /// The pause as it will be.
    fn pause(&self, now: Timestamp) -> Result<Pause, Failure> {
        self.wanted.pause(&self.target, self.open.as_ref(), now)
    }

    fn question(&self) -> String {
        let verb = if self.open.is_some() { "change the pause of" } else { "pause" };
        format!("{verb} {}?", self.name)
    }

    /// What the question is about. A pause of some length begins with the answer.
    fn plan(&self) -> impl Serialize {
        let Wanted { end, spread, why, .. } = &self.wanted;
        let (target, open) = (self.target.to_string(), self.open.as_ref());
        json!({
            "target": target, "end": format!("{end:?}"), "spread": spread, "why": why, "open": open.map(identity),
        })
    }

    /// What is, and what will be.
    fn text(&self, planned: &Pause) -> String {
        let name = &self.name;
        let Some(open) = &self.open else { return format!("{name}: will be paused {}\n", terms(planned)) };
        let is = is_paused(name, open);
        match open == planned {
            true => is + "Nothing to change.\n",
            false => format!("{is}  will be paused {}\n", terms(planned)),
        }
    }

    /// Returns the pause as it is then, and the ended ones that had to leave the parameter.
    async fn carry_out(
        &self,
        parameter: &SsmParameter<'_>,
        now: Timestamp,
    ) -> Result<(Pause, Vec<Pause>), Failure> {
        let pause = self.pause(now)?;
        let make = |pauses: &Pauses| {
            if open_of(pauses, &self.target, now).next() != self.open.as_ref() {
                let what = "the pause has changed since the plan was made; run the command again";
                return Err(Failure::Undone(format!("{}: {what}", self.name)));
            }
            Ok(edits::with(pauses, &pause, now))
        };
        let forgotten =
            edit(parameter, now, make, |pauses| pauses.iter().any(|other| *other == pause)).await?;
        Ok((pause, forgotten))
    }
}

/// A pause, the same at any time.
fn identity(pause: &Pause) -> OpenPause {
    OpenPause::of(pause, pause.from)
}

/// `orders: paused since … by alice, until resumed; …`
fn is_paused(name: &str, pause: &Pause) -> String {
    let by = shown(pause.by.as_deref().unwrap_or("somebody")).into_owned();
    format!("{name}: paused since {} by {by}, {}\n", pause.from, terms(pause))
}

/// `until resumed, then back over 30m (deploy 4711)`
fn terms(pause: &Pause) -> String {
    let until = pause.until.map_or_else(|| "resumed".to_owned(), |until| until.to_string());
    let why = pause.why.iter().map(|why| format!(" ({})", shown(why))).collect::<String>();
    format!("until {until}; events then return over {}{why}", durations::text(pause.spread))
}

fn done_text(pause: &Pause, arguments: &PauseArguments, noticed: Option<Duration>, place: &str) -> String {
    let mut text = format!("{} is paused.", named(arguments.function.as_ref()));
    if let Some(noticed) = noticed.map(durations::text) {
        text += &format!(" Retries may still go out for the next {noticed}.");
    }
    text.push('\n');
    text += &format!(
        "Retries are held, also those of events that already wait. New events still run, and are held if they fail.\n\
         The pause uses up no retry and does not count towards MAX_AGE. An event that comes due during it is checked \
         again within {}, also after `resume`.\n",
        durations::text(HOLD)
    );
    if pause.until.is_none() {
        let which = arguments.function.as_ref().map_or_else(|| "--all".to_owned(), ToString::to_string);
        text += &format!("Resume with: comeback resume {}{place}\n", command_line([&*which]));
    }
    text
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
                "new failures of {function} go to {other}; to hold those too, run `{pause}` with the same \
                 flags"
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
) -> Result<(), failure::CommandFailure> {
    let account = &session.account;
    let work = async {
        let history = match deployment.pauses().filter(|_| with_history) {
            Some(name) => Some(history::read(account, name).await?),
            None => None,
        };
        Ok((read_pauses(account, deployment).await, history))
    };
    let (read, history) = session.interrupt.or(work).await?;
    let read =
        read.map(|read| read.map(|read| (OpenPause::all_of(&read, now), RetryRequest::in_force(&read, now))));
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
        anstream::eprintln!(
            "note: handler {handler} reads no pauses, because its variable PAUSES is not set"
        );
        return Ok(());
    };
    if !session.common.json {
        let mut out = anstream::stdout();
        if pauses.is_empty() {
            writeln!(out, "nothing is paused")?;
        } else {
            writeln!(out, "{}", listed(&pauses))?;
        }
        for request in retries {
            writeln!(out, "retry now: {}", shown(&request.line()))?;
        }
        if let Some(history) = history {
            writeln!(out, "\n{history}")?;
        }
    }
    for pause in pauses.iter().filter(|pause| Duration::from_secs(pause.open_seconds) > LONG_PAUSE) {
        let (name, open) = (pause.name(), durations::short(pause.open_seconds as f64));
        anstream::eprintln!("warning: {name} has been paused for {open}: forgotten?");
    }
    Ok(())
}

fn listed(pauses: &[OpenPause]) -> Table {
    let mut table = unwrapped_table();
    let heads = ["function", "since", "until", "spread", "by", "why"];
    table.set_header(heads.map(|head| Cell::new(head).add_attribute(Attribute::Bold)));
    for pause in pauses {
        let row = [
            pause.name(),
            &pause.from.to_string(),
            &pause.until.map_or_else(|| "resume".to_owned(), |until| until.to_string()),
            &durations::text(Duration::from_secs(pause.spread_seconds)),
            pause.by.as_deref().unwrap_or_default(),
            pause.why.as_deref().unwrap_or_default(),
        ];
        table.add_row(row.map(shown));
    }
    table
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
    /// Function as the pause names it
    #[arg(value_name = "FUNCTION")]
    function: Option<FunctionName>,
    /// End the pause that covers every function; pauses of single functions stay
    #[arg(long)]
    all: bool,
    /// Spread the retries over this time [default: the pause's spread]
    #[arg(long, value_name = "DURATION", value_parser = durations::read)]
    spread: Option<Duration>,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn resume(
    arguments: &ResumeArguments,
    session: Session,
) -> Result<(), failure::CommandFailure> {
    let deployment = session.interrupt.or(session.deployment()).await?;
    let (name, place) = (named(arguments.function.as_ref()), session.common.place_flags());
    let parameter = SsmParameter::of(&session, &deployment)?;
    let target = pauses::target(&deployment, arguments.function.as_ref())?;
    let pauses = session.interrupt.or(parameter.read()).await?.0;
    let open: Vec<&Pause> = open_of(&pauses, &target, now()).collect();
    open.iter().try_for_each(|pause| session.say(&is_paused(&name, pause)))?;
    if !open.is_empty() {
        let plan: Vec<_> = open.into_iter().map(identity).collect();
        confirm_plan(&format!("resume {name}?"), &plan, &session).await?;
    }
    let now = now();
    let pauses = parameter.read().await?.0;
    let spread = arguments.spread.unwrap_or_else(|| own_spread(&pauses, &target, now));
    check_spread(spread)?;
    let ended: Vec<Pause> = open_of(&pauses, &target, now).cloned().collect();
    let forgotten =
        if ended.is_empty() { Vec::new() } else { close(&target, spread, &parameter, now).await? };
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
        "forgotten": forgotten.iter().map(|pause| OpenPause::of(pause, now)).collect::<Vec<_>>(),
        "spread_seconds": spread.as_secs(),
        "noticed_within_seconds": noticed.map(|noticed| noticed.as_secs()),
    }));
    if !ended.is_empty() {
        session.say(&format!("{name}: resumed; due events return over {}\n", durations::text(spread)))?;
        let more = [
            first_retries(&deployment, &place),
            offer_to_retry(&deployment, arguments.function.as_ref(), &place),
        ];
        more.iter().flatten().try_for_each(|line| session.say(&format!("{line}\n")))?;
    }
    forgotten_note(&forgotten).iter().for_each(|note| session.note(note));
    let Some(still) = still.first() else {
        let nothing = match &arguments.function {
            Some(function) => format!("{function} is not paused; see `comeback pause --list{place}`"),
            None => format!("no pause covers every function; see `comeback pause --list{place}`"),
        };
        return if ended.is_empty() { Err(Failure::Undone(nothing).into()) } else { Ok(()) };
    };
    let by = still.by.as_deref().unwrap_or("somebody");
    let how = command_line([if still.target == "*" { "--all" } else { &still.target }]);
    let what = format!("{name} is still covered by another pause, set by {by}: comeback resume {how}{place}");
    Err(Failure::Undone(what).into())
}

/// When the events that were due come back.
fn first_retries(deployment: &Deployment, place: &str) -> Option<String> {
    deployment.stopped_note(place).or_else(|| {
        let minutes = (noticed_within(deployment)? + HOLD).as_secs().div_ceil(60);
        Some(format!(
            "The first retries may take up to {minutes} minutes, because held messages stay hidden \
                      until then."
        ))
    })
}

/// What waits for its backoff does not come back with the end of a pause.
fn offer_to_retry(deployment: &Deployment, function: Option<&FunctionName>, place: &str) -> Option<String> {
    let which = function.map_or_else(|| "--all".to_owned(), ToString::to_string);
    let offer = format!(
        "To see whether waiting events can be retried sooner: comeback retry {which} --dry-run{place}"
    );
    deployment.stopped().is_none().then_some(offer)
}

/// The longest spread of the target's open pauses.
fn own_spread(pauses: &Pauses, target: &PauseTarget, now: Timestamp) -> Duration {
    open_of(pauses, target, now).map(|pause| pause.spread).max().unwrap_or(DEFAULT_SPREAD)
}

/// Closes the open pauses of a target. Returns the ended ones that had to leave the parameter.
async fn close(
    target: &PauseTarget,
    spread: Duration,
    parameter: &SsmParameter<'_>,
    now: Timestamp,
) -> Result<Vec<Pause>, Failure> {
    // The end is rounded up to a second.
    let end = now.rounded_up_to_secs();
    let make = |pauses: &Pauses| Ok(edits::closed(pauses, target, spread, now));
    let is_in = |pauses: &Pauses| open_of(pauses, target, end).next().is_none();
    edit(parameter, now, make, is_in).await
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;
    use crate::operate::deployment::mapping::Mapping;
    use crate::operate::deployment::queue::Queue;
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    #[test]
    fn a_pause_has_a_reason_and_a_length() {
        let read = |arguments: &[&str]| {
            let all = ["pause", "orders"].iter().chain(arguments);
            PauseArguments::augment_args(Command::new("pause")).try_get_matches_from(all).map(drop)
        };
        assert!(read(&["--reason", "why", "--for", "1s"]).is_ok());
        for (refused, why) in [
            (["--reason", "", "--for", "1s"], "must not be empty"),
            (["--reason", " ", "--for", "1s"], "must not be empty"),
            (["--reason", "{{x}}", "--for", "1s"], "must not contain {{"),
            (["--reason", "why", "--for", "0s"], "must be longer than 0"),
        ] {
            let error = read(&refused).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_plan_shows_the_pause_as_it_is_and_as_it_will_be() {
        let orders = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
        let at = Timestamp::from_secs;
        let wanted = Wanted { end: Some(End::After(Duration::from_secs(60))), ..Wanted::default() };
        let open = Pause {
            target: orders.parse().unwrap(),
            from: at(0),
            until: None,
            spread: Duration::from_secs(1_800),
            by: Some("anna".into()),
            why: Some("deploy 4711".into()),
        };
        let text = |open: Option<Pause>, wanted: Wanted| {
            let request =
                PauseRequest { name: "orders".into(), target: orders.parse().unwrap(), wanted, open };
            request.text(&request.pause(at(60)).unwrap())
        };
        let is = "orders: paused since 1970-01-01T00:00:00.000Z by anna, until resumed; events then return \
                  over 30m (deploy 4711)\n";
        let will_be = "  will be paused until 1970-01-01T00:02:00.000Z; events then return over 30m (deploy \
                       4711)\n";
        assert_eq!(text(Some(open.clone()), wanted), format!("{is}{will_be}"));
        assert_eq!(text(Some(open), Wanted::default()), format!("{is}Nothing to change.\n"));
        let new = Wanted { why: Some("a bad deploy".into()), ..Wanted::default() };
        assert_eq!(
            text(None, new),
            "orders: will be paused until resumed; events then return over 30m (a bad deploy)\n"
        );
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
        let note = "new failures of payments go to stack second; to hold those too, run `comeback pause \
                    payments --stack second` with the same flags";
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
            "The first retries may take up to 24 minutes, because held messages stay hidden until then."
        );
    }

    #[test]
    fn resume_offers_a_retry_where_the_handler_runs() {
        let deployment = Deployment { mapping: Some(Mapping::sample()), ..Deployment::sample() };
        let stopped = Deployment { never_runs: true, ..deployment.clone() };
        assert_eq!(offer_to_retry(&stopped, None, ""), None);
        let offer = |function: Option<&str>| {
            let function = function.map(|name| name.parse().unwrap());
            offer_to_retry(&deployment, function.as_ref(), " --stack shop").unwrap()
        };
        let offered = "To see whether waiting events can be retried sooner: comeback retry";
        assert_eq!(offer(Some("orders:live")), format!("{offered} orders:live --dry-run --stack shop"));
        assert_eq!(offer(None), format!("{offered} --all --dry-run --stack shop"));
    }

    #[test]
    fn a_reason_cannot_command_the_terminal() {
        let hostile =
            OpenPause { by: Some(HOSTILE.into()), why: Some(HOSTILE.into()), ..OpenPause::sample("*") };
        let list = listed(&[hostile]).to_string();
        assert!(list.contains("\\u") && !is_obeyed_anywhere(&list), "{list}");
    }
}
