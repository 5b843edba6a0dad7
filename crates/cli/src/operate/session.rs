//! Code shared by the subcommands that work on a deployment.

use std::cell::RefCell;
use std::fmt::Debug;
use std::io::{BufRead, IsTerminal as _, Write as _};
use std::rc::Rc;

use clap::Args;
use comeback_operate::address::DEFAULT_STACK;
use comeback_operate::change::Question;
use comeback_operate::function::FunctionName;
use comeback_operate::operator::{self, Follow};
use comeback_operate::shown::shown;
use comeback_operate::{Account, Address, Failure, Interrupt, Operator, Place, Text, Which};
use serde::Serialize;

use crate::failure::CommandFailure;
use crate::output::{has_printed, print_json_line};
use crate::signals::raise_when_stopped;
use crate::tables::Meter;

/// Flags accepted by every command that works on a deployment.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Deployment and output")]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) deployment: DeploymentFlags,
    /// Print JSON and never prompt
    #[arg(long)]
    pub(crate) json: bool,
    /// Skip the confirmation prompt
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Show the plan without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Flags that select the deployment, and the AWS region and profile used to reach it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Deployment and output")]
pub(crate) struct DeploymentFlags {
    /// Name of the retry handler [default: the one in --stack]
    #[arg(long, value_name = "FUNCTION")]
    handler: Option<FunctionName>,
    /// CloudFormation stack of the retry handler
    #[arg(long, value_name = "NAME", default_value = DEFAULT_STACK, conflicts_with = "handler")]
    stack: String,
    /// AWS region [default: from the environment or the profile]
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// AWS profile; takes precedence over credentials in the environment
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

/// Hides the flags of changes from the help of a command that changes nothing.
pub(super) fn without_change_flags(arg: clap::Arg) -> clap::Arg {
    if matches!(arg.get_long(), Some("yes" | "dry-run")) { arg.hide(true) } else { arg }
}

impl DeploymentFlags {
    pub(crate) fn address(&self) -> Address {
        let Self { handler, stack, region, profile } = self.clone();
        let which = handler.map_or(Which::Stack(stack), Which::Handler);
        Address { which, region, profile }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) account: Account,
    /// Raised by the first Ctrl-C or SIGTERM.
    pub(crate) interrupt: Interrupt,
    pub(crate) common: Common,
}

impl Session {
    /// Prints text, unless the command prints JSON.
    pub(crate) fn say(&self, text: &str) -> Result<(), CommandFailure> {
        if !self.common.json {
            write!(anstream::stdout(), "{text}")?;
        }
        Ok(())
    }

    /// Prints a note to standard error, so that it does not mix with the command's output.
    pub(crate) fn note(&self, note: &str) {
        anstream::eprintln!("note: {}", shown(note));
    }

    /// Prints a command's JSON object: its account and region, any failure, and the members of `report`.
    pub(crate) fn print(
        &self,
        report: &impl Serialize,
        failure: Option<&CommandFailure>,
    ) -> Result<(), CommandFailure> {
        #[derive(Serialize)]
        struct Object<'a, R> {
            #[serde(flatten)]
            head: Head<'a>,
            #[serde(flatten)]
            report: &'a R,
        }
        print_json_line(&Object { head: Head::of(Some(&self.account.place), failure), report })
    }

    pub(crate) fn operator(&self) -> Operator {
        Operator {
            account: self.account.clone(),
            which: self.common.deployment.address().which,
            interrupt: self.interrupt.clone(),
            follow: Rc::new(Bars { is_quiet: self.common.json, bar: RefCell::default() }),
        }
    }

    pub(crate) fn can_ask(&self) -> bool {
        !self.common.yes && !self.common.json && std::io::stdin().is_terminal()
    }
}

/// The arguments of a command that works on a deployment, with the flags that all such commands accept.
#[derive(Debug, Args)]
pub(crate) struct OnDeployment<A: Args> {
    #[command(flatten)]
    pub(super) arguments: A,
    #[command(flatten)]
    pub(super) common: Common,
}

impl<A: Args> OnDeployment<A> {
    /// Connects to the account, and runs the command in a session.
    pub(crate) fn run(
        self,
        command: impl AsyncFnOnce(A, Session) -> Result<(), CommandFailure>,
    ) -> Result<(), CommandFailure> {
        let Self { arguments, common } = self;
        let (is_json, mut place) = (common.json, None);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let result = runtime.block_on(async {
            let interrupt = Interrupt::default();
            raise_when_stopped(interrupt.clone());
            let account = interrupt.or(common.deployment.address().connect()).await?;
            place = Some(account.place.clone());
            let session = Session { account, interrupt, common };
            if !is_json {
                anstream::eprintln!("{}", session.operator().headline());
            }
            command(arguments, session).await
        });
        // After Ctrl-C during a prompt, a thread still waits for a line of input. The shutdown must not wait for it.
        runtime.shutdown_background();
        if let Err(failure) = &result
            && is_json
            && !has_printed()
        {
            print_json_line(&Head::of(place.as_ref(), Some(failure)))?;
        }
        result
    }
}

/// The first members of the JSON object that a command prints about a deployment.
#[derive(Serialize)]
struct Head<'a> {
    account: Option<&'a str>,
    region: Option<&'a str>,
    error: Option<String>,
}

impl<'a> Head<'a> {
    fn of(place: Option<&'a Place>, failure: Option<&CommandFailure>) -> Self {
        Self {
            account: place.map(|place| &*place.account),
            region: place.map(|place| &*place.region),
            error: failure.map(ToString::to_string),
        }
    }
}

/// Asks the operator to confirm a plan, unless `--yes` suffices. Fails if the operator declines or cannot be asked.
pub(crate) async fn confirm(question: &Question, session: &Session) -> Result<(), Failure> {
    let Question { text, in_person, .. } = question;
    if session.common.yes && !in_person {
        return Ok(());
    }
    if session.common.json || !std::io::stdin().is_terminal() {
        return Err(Failure::not_confirmed(match in_person {
            true => format!("nothing was changed: answer this in a terminal, without --json: {text}"),
            false => "nothing was changed: pass --yes to skip the prompt".to_owned(),
        }));
    }
    ask(text, session).await
}

async fn ask(question: &str, session: &Session) -> Result<(), Failure> {
    anstream::eprint!("{question} [y/N] ");
    // The error is ignored, because an operator who does not see the question cannot confirm it.
    let _ = anstream::stderr().flush();
    // Reading a line blocks, so a separate thread reads it while this task also waits for Ctrl-C.
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lock().lines().next()?.ok());
    let answer = session.interrupt.or(async { Ok::<_, Failure>(line.await.ok().flatten()) }).await?;
    if answer.is_some_and(|answer| is_yes(&answer)) {
        return Ok(());
    }
    Err(Failure::not_confirmed("nothing was changed"))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Shows progress as a bar, or as a spinner if the total is unknown.
#[derive(Debug)]
struct Bars {
    /// True if the command prints JSON. Remarks are then suppressed.
    is_quiet: bool,
    bar: RefCell<Option<(&'static str, Meter)>>,
}

impl Follow for Bars {
    fn progress(&self, operator::Progress { done, of, unit }: operator::Progress) {
        let mut bar = self.bar.borrow_mut();
        if bar.as_ref().is_none_or(|(known, _)| *known != unit) {
            // Dropping the earlier bar removes it from the screen before the next bar appears.
            *bar = None;
            let progress = match of {
                Some(of) => Meter::new(of, &format!("{{pos}}/{{len}} {unit}")),
                None => Meter::endless(&format!("{{pos}} {unit}")),
            };
            *bar = Some((unit, progress));
        }
        if let Some((_, bar)) = &*bar {
            bar.set(done);
        }
        if of == Some(done) {
            *bar = None;
        }
    }

    fn remark(&self, text: &Text) {
        if !self.is_quiet {
            anstream::eprintln!("{text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        for yes in ["y", "Y", " yes ", "YES"] {
            assert!(is_yes(yes), "{yes}");
        }
        for no in ["", "n", "no", "yep", "y n"] {
            assert!(!is_yes(no), "{no}");
        }
    }
}
