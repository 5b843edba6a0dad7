//! `comeback pause`: hold the retries of a function, or of every function.

use std::io::Write as _;
use std::time::Duration;

use clap::{ArgGroup, Args};
use comeback_engine::{Concurrency, EditError, LONG_PAUSE, Pause, PauseTarget, Pauses, Timestamp};
use comfy_table::{Attribute, Cell};

use crate::clock::now;
use crate::failure;
use crate::operate::account::{Account, Failure, Or as _};
use crate::operate::deployment::Deployment;
use crate::operate::function::FunctionName;
use crate::operate::pauses::writing::{Edit, edit};
use crate::operate::pauses::{self, DEFAULT_SPREAD, OpenPause, concurrency, named, noticed_within};
use crate::operate::session::{Common, Session, confirm};
use crate::text::durations;
use crate::text::terminal::table;

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
    #[arg(long, value_name = "TIME", value_parser = crate::flags::moment, conflicts_with = "for_")]
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

pub(crate) async fn run(arguments: &PauseArguments, session: Session) -> Result<(), failure::Failure> {
    let now = now();
    let deployment = session.interrupt.or(session.deployment()).await?;
    if arguments.list {
        let open = session.interrupt.or(OpenPause::all(&session.account, &deployment, now)).await?;
        return print(open, &deployment, session.common.json);
    }
    let order = PauseOrder::of(arguments, &deployment, now)?;
    confirm(&format!("pause {}?", named(arguments.function.as_ref())), &session).await?;
    let (pause, was_open) = order.carry_out(&session, &deployment).await?;
    report(&pause, was_open, arguments, &deployment)
}

fn report(
    pause: &OpenPause,
    was_open: bool,
    arguments: &PauseArguments,
    deployment: &Deployment,
) -> Result<(), failure::Failure> {
    let mut out = anstream::stdout();
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
    if let Some(noticed) = noticed.map(durations::text) {
        writeln!(out, "The handler notices within {noticed}; until then it may still retry.")?;
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

/// Prints the open pauses: a table, or a line of JSON each.
fn print(
    pauses: Option<Vec<OpenPause>>,
    deployment: &Deployment,
    json: bool,
) -> Result<(), failure::Failure> {
    let mut out = anstream::stdout();
    let Some(pauses) = pauses else {
        let handler = &deployment.handler;
        anstream::eprintln!("note: the handler {handler} reads no pauses: its variable PAUSES is not set");
        return Ok(());
    };
    if json {
        pauses.iter().try_for_each(|pause| writeln!(out, "{}", serde_json::json!(pause)))?;
    } else if pauses.is_empty() {
        writeln!(out, "nothing is paused")?;
    } else {
        let mut table = table();
        let heads = ["function", "since", "until", "by", "why", "new events"];
        table.set_header(heads.map(|head| Cell::new(head).add_attribute(Attribute::Bold)));
        for pause in &pauses {
            table.add_row([
                pause.name(),
                &pause.from.to_string(),
                &pause.until.map_or_else(|| "resume".to_owned(), |until| until.to_string()),
                pause.by.as_deref().unwrap_or_default(),
                pause.why.as_deref().unwrap_or_default(),
                if pause.is_hard { "stopped too" } else { "run" },
            ]);
        }
        writeln!(out, "{table}")?;
    }
    for pause in pauses.iter().filter(|pause| Duration::from_secs(pause.open_seconds) > LONG_PAUSE) {
        let (name, open) = (pause.name(), durations::short(pause.open_seconds as f64));
        anstream::eprintln!("warning: {name} is paused for {open}: has it been forgotten?");
    }
    Ok(())
}

struct PauseOrder<'a> {
    function: Option<&'a FunctionName>,
    name: &'a str,
    target: PauseTarget,
    /// In whole seconds.
    until: Option<Timestamp>,
    why: String,
    hard: bool,
    now: Timestamp,
}

impl<'a> PauseOrder<'a> {
    /// Checks what can be checked without reading the pauses.
    fn of(
        arguments: &'a PauseArguments,
        deployment: &'a Deployment,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let function = arguments.function.as_ref();
        let until = arguments.until.or_else(|| arguments.for_.map(|length| now.saturating_add(length)));
        let order = Self {
            function,
            name: pauses::parameter(deployment)?,
            target: pauses::target(deployment, function)?,
            until: until.map(|until| Timestamp::from_secs(until.as_millis().div_ceil(1_000))),
            why: arguments.reason.clone().unwrap_or_default(),
            hard: arguments.hard,
            now,
        };
        match function {
            None if order.hard => Err(Failure::Refused(
                "--hard sets the reserved concurrency of one function: name it instead of --all".into(),
            )),
            Some(FunctionName { name, qualifier: Some(_), .. }) if order.hard => {
                Err(Failure::Refused(format!(
                    "reserved concurrency is the whole function's: give {name} without a qualifier, or leave out --hard"
                )))
            }
            _ => Ok(order),
        }
    }

    /// Opens the pause, unless such a pause is open. The earlier concurrency is written first and set to 0 afterwards, so
    /// that a run killed in between is resumed by repeating it.
    async fn carry_out(
        &self,
        session: &Session,
        deployment: &Deployment,
    ) -> Result<(OpenPause, bool), Failure> {
        let (account, now) = (&session.account, self.now);
        if let Some(function) = self.function {
            check_exists(account, deployment, function).await?;
        }
        let hard = self.function.filter(|_| self.hard);
        if let Some(function) = hard {
            concurrency::check_nothing_is_lost(account, function, &deployment.retry_queue.arn).await?;
        }
        let pauses = pauses::read(account, deployment).await?.unwrap_or_default();
        if let Some(open) = pauses.iter().find(|pause| self.is_met_by(pause)) {
            if let Some(function) = hard {
                concurrency::stop(account, function).await?;
            }
            return Ok((OpenPause::of(open, now), true));
        }
        let pause = Pause {
            target: self.target.clone(),
            from: Timestamp::from_secs(now.as_secs()),
            until: self.until,
            spread: DEFAULT_SPREAD,
            by: Some(caller(account).await?),
            why: Some(self.why.clone()),
            concurrency: if hard.is_some() { Concurrency::WasUnreserved } else { Concurrency::Untouched },
        };
        // Refuse what would be refused before asking Lambda anything.
        Open(pause.clone(), now).make(&pauses)?;
        let concurrency = match hard {
            Some(function) => concurrency::of_before(account, function).await?,
            None => Concurrency::Untouched,
        };
        let pause = Pause { concurrency, ..pause };
        edit(account, self.name, &Open(pause.clone(), now), &session.interrupt).await?;
        if let Some(function) = hard {
            concurrency::stop(account, function).await?;
        }
        Ok((OpenPause::of(&pause, now), false))
    }

    /// Whether an open pause does everything that this one would do.
    fn is_met_by(&self, pause: &Pause) -> bool {
        let is_hard = pause.concurrency != Concurrency::Untouched;
        pause.target == self.target
            && pause.is_active(self.now)
            && pause.until == self.until
            && is_hard == self.hard
    }
}

/// A pause, opened at a time.
struct Open(Pause, Timestamp);

impl Edit for Open {
    fn make(&self, pauses: &Pauses) -> Result<Pauses, EditError> {
        let opened = pauses.open(self.0.clone(), self.1)?.tidied(self.1);
        opened.check_size().map(|()| opened)
    }

    fn is_in(&self, pauses: &Pauses) -> bool {
        pauses.iter().any(|pause| *pause == self.0)
    }
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

/// Who the credentials belong to: the last part of their ARN.
async fn caller(account: &Account) -> Result<String, Failure> {
    let answer = account.sts.get_caller_identity().send().await;
    let answer = answer.or_failure("sts:GetCallerIdentity", "the caller")?;
    let arn = answer.arn().unwrap_or_default();
    Ok(arn.rsplit(['/', ':']).next().unwrap_or(arn).to_owned())
}
