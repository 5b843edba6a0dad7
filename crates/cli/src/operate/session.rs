//! One run of a command: its flags, the account, Ctrl-C, and asking before a change.

use std::cell::RefCell;
use std::fmt::Debug;
use std::io::{BufRead, IsTerminal as _, Write as _};
use std::process::exit;
use std::rc::Rc;

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use tokio::sync::watch;

pub(crate) use comeback_operate::Interrupt;
use comeback_operate::change::Question;
use comeback_operate::function::FunctionName;
use comeback_operate::operator::{self, Follow};
use comeback_operate::{Operator, Text, Which};

use crate::account::{Account, Failure, Place};
use crate::failure;
use comeback_operate::shown::shown_json;

use crate::output::{has_printed, json_line, stream_json_line};
use crate::text::terminal::{Progress, command_line, shown};

const DEFAULT_STACK: &str = "comeback";

/// Flags of every command on a deployment.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Deployment and output")]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) deployment: DeploymentFlags,
    /// Print JSON and never prompt
    #[arg(long)]
    pub(crate) json: bool,
    /// Skip the prompt
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Which deployment, and how to reach it.
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

/// Leaves `--yes` out of the help of a command that changes nothing.
pub(super) fn without_yes(arg: clap::Arg) -> clap::Arg {
    if arg.get_long() == Some("yes") { arg.hide(true) } else { arg }
}

impl Common {
    /// What a suggested command needs, to be pasted, to work on the same deployment.
    pub(crate) fn place_flags(&self) -> String {
        self.deployment.place_flags()
    }
}

impl DeploymentFlags {
    pub(crate) fn place_flags(&self) -> String {
        let handler = self.handler.as_ref().map(FunctionName::unqualified);
        let stack = Some(&*self.stack).filter(|stack| handler.is_none() && *stack != DEFAULT_STACK);
        [flag("handler", handler.as_deref()), flag("stack", stack), self.account_flags()].concat()
    }

    /// What a suggested command needs, ours or one of the AWS CLI, to work in the same account and region.
    fn account_flags(&self) -> String {
        flag("region", self.region.as_deref()) + &flag("profile", self.profile.as_deref())
    }

    /// The deployment, as these flags name it.
    pub(crate) fn name(&self) -> String {
        let Self { handler, stack, .. } = self;
        handler.as_ref().map_or_else(|| format!("stack {stack}"), |it| format!("handler {it}"))
    }

    pub(crate) async fn connect(&self) -> Result<Account, Failure> {
        let mut account = Account::connect(self.region.as_deref(), self.profile.as_deref()).await?;
        account.place.flags = self.account_flags();
        Ok(account)
    }
}

fn flag(name: &str, value: Option<&str>) -> String {
    value.map(|value| format!(" --{name} {}", command_line([value]))).unwrap_or_default()
}

/// Listens to Ctrl-C and SIGTERM. Where nobody can, they end the command as usual.
pub(crate) fn raise_when_stopped(raise: watch::Sender<bool>) {
    let Ok(mut signals) = Signals::listen() else { return };
    tokio::spawn(async move {
        signals.next().await;
        if raise.send(true).is_ok() {
            anstream::eprintln!("\nstopping; press Ctrl-C again to quit immediately");
            signals.next().await;
            exit(130);
        }
    });
}

/// What asks a program to stop: Ctrl-C, and SIGTERM where there is one.
#[cfg(unix)]
struct Signals([tokio::signal::unix::Signal; 2]);

#[cfg(unix)]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) account: Account,
    /// Raised by the first Ctrl-C or SIGTERM. The second ends the command at once.
    pub(crate) interrupt: Interrupt,
    pub(crate) common: Common,
    answer: Rc<RefCell<Option<String>>>,
    /// `None`: the terminal.
    screen: Option<Rc<dyn Screen>>,
}

/// What stands in for the terminal: it shows what a command prints, and answers its questions.
pub(crate) trait Screen: Debug {
    /// Shows text of the command's standard output: whole lines, which may be coloured.
    fn print(&self, text: &str);

    /// Shows a remark of standard error.
    fn note(&self, text: &str);

    /// Follows the progress of long work. `figures` are in indicatif's template language, with `{pos}` and `{len}` only.
    fn follow(&self, bar: ProgressBar, figures: &str);

    /// Whether the operator has agreed to this. `plan` is what it is about, as JSON, if the command has named it; if not, the
    /// text printed so far is.
    fn confirm(&self, question: &str, plan: Option<&str>) -> Result<(), Failure>;
}

impl Session {
    /// A session of a command that does not run in a terminal.
    pub(crate) fn on_screen(
        account: Account,
        interrupt: Interrupt,
        common: Common,
        screen: Rc<dyn Screen>,
    ) -> Self {
        Self { account, interrupt, common, answer: Rc::default(), screen: Some(screen) }
    }

    /// Prints text of the command, unless it prints JSON.
    pub(crate) fn say(&self, text: &str) -> Result<(), failure::CommandFailure> {
        match &self.screen {
            Some(screen) => screen.print(text),
            None if self.common.json => {}
            None => write!(anstream::stdout(), "{text}")?,
        }
        Ok(())
    }

    /// Makes a remark that is no part of the command's answer.
    pub(crate) fn note(&self, note: &str) {
        match &self.screen {
            Some(screen) => screen.note(note),
            None => anstream::eprintln!("note: {}", shown(note)),
        }
    }

    /// Says what the command is about to do, unless it prints JSON.
    pub(crate) fn remark(&self, text: &str) {
        match &self.screen {
            Some(screen) => screen.note(text),
            None if self.common.json => {}
            None => anstream::eprintln!("{text}"),
        }
    }

    /// Shows the progress of long work until it is dropped; `length` if that is known. `figures` are in indicatif's template
    /// language, with `{pos}` and `{len}` only.
    pub(crate) fn progress(&self, length: Option<u64>, figures: &str) -> Progress {
        match (&self.screen, length) {
            (Some(screen), _) => {
                let progress = Progress::unseen(length);
                screen.follow(progress.bar(), figures);
                progress
            }
            (None, Some(length)) => Progress::new(length, figures),
            (None, None) => Progress::endless(figures),
        }
    }

    /// Prints what `--json` prints: an object, beside the account, the region and the error of a run that ends with this
    /// failure, if any. At once, because a long one would take much memory.
    pub(crate) fn print(
        &self,
        report: &impl Serialize,
        failure: Option<&failure::CommandFailure>,
    ) -> Result<(), failure::CommandFailure> {
        #[derive(Serialize)]
        struct Object<'a, R> {
            #[serde(flatten)]
            head: Head<'a>,
            #[serde(flatten)]
            report: &'a R,
        }
        stream_json_line(&Object { head: Head::of(Some(&self.account.place), failure), report })
    }

    /// Keeps what `--json` prints when the command ends, the last one that is given: an object that is JSON already, with the
    /// members of `more`, an object too.
    pub(crate) fn answer_json(&self, json: &str, more: Option<&str>) {
        self.answer.replace(Some(shown_json(&joined(json, more.unwrap_or("{}")))));
    }

    /// The operator of a question or a change.
    pub(crate) fn operator(&self) -> Operator {
        let DeploymentFlags { handler, stack, .. } = &self.common.deployment;
        Operator {
            account: self.account.operate(),
            which: match handler {
                Some(handler) => Which::Handler(handler.clone()),
                None => Which::Stack(stack.clone()),
            },
            interrupt: self.interrupt.clone(),
            follow: Rc::new(Bars::new(self.clone())),
        }
    }

    /// Returns true if somebody can answer a question, whom no flag has made superfluous.
    pub(crate) fn can_ask(&self) -> bool {
        self.screen.is_none() && !self.common.yes && !self.common.json && std::io::stdin().is_terminal()
    }

    /// The first line of every command: where it works.
    pub(crate) fn headline(&self) -> String {
        format!("{} in {}", self.common.deployment.name(), self.account.place)
    }
}

pub(crate) fn run_in_session(
    common: &Common,
    command: impl AsyncFnOnce(Session) -> Result<(), failure::CommandFailure>,
) -> Result<(), failure::CommandFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (answer, mut place) = (Rc::<RefCell<_>>::default(), None);
    let result = runtime.block_on(async {
        let (raise, interrupt) = Interrupt::new();
        raise_when_stopped(raise);
        let account = interrupt.or(common.deployment.connect()).await?;
        place = Some(account.place.clone());
        let answer = Rc::clone(&answer);
        let session = Session { account, interrupt, common: common.clone(), answer, screen: None };
        if !common.json {
            anstream::eprintln!("{}", session.headline());
        }
        command(session).await
    });
    // A question that Ctrl-C has ended still waits for its line.
    runtime.shutdown_background();
    let answer = answer.take();
    if common.json && !has_printed() && (answer.is_some() || result.is_err()) {
        print_answer(place.as_ref(), result.as_ref().err(), answer.as_deref())?;
    }
    result
}

/// The members of every object of a command on a deployment.
#[derive(Serialize)]
struct Head<'a> {
    account: Option<&'a str>,
    region: Option<&'a str>,
    error: Option<String>,
}

impl<'a> Head<'a> {
    fn of(place: Option<&'a Place>, failure: Option<&failure::CommandFailure>) -> Self {
        Self {
            account: place.map(|place| &*place.account),
            region: place.map(|place| &*place.region),
            error: failure.map(ToString::to_string),
        }
    }
}

/// Prints the one object of a command on a deployment.
fn print_answer(
    place: Option<&Place>,
    failure: Option<&failure::CommandFailure>,
    answer: Option<&str>,
) -> Result<(), failure::CommandFailure> {
    let head = json_line(&Head::of(place, failure));
    writeln!(anstream::stdout(), "{}", joined(&head, answer.unwrap_or("{}")))?;
    Ok(())
}

/// One object with the members of two. As text, because a payload must stay as it is, to the byte.
fn joined(one: &str, other: &str) -> String {
    let members = |object: &str| object.strip_prefix('{')?.strip_suffix('}').map(ToOwned::to_owned);
    let [one, other] = [one, other].map(|object| members(object).expect("BUG: not an object"));
    let comma = if one.is_empty() || other.is_empty() { "" } else { "," };
    format!("{{{one}{comma}{other}}}")
}

async fn confirm_about(question: &str, plan: Option<&str>, session: &Session) -> Result<(), Failure> {
    if let Some(screen) = &session.screen {
        return screen.confirm(question, plan);
    }
    if session.common.yes {
        return Ok(());
    }
    if session.common.json || !std::io::stdin().is_terminal() {
        let what = "nothing was changed: pass --yes to skip the prompt";
        return Err(Failure::NotConfirmed(what.into()));
    }
    ask(question, session).await
}

/// Asks the question of a plan, unless `--yes` answers it. `plan` identifies what it is about.
pub(crate) async fn confirm_question(
    question: &Question,
    plan: &str,
    session: &Session,
) -> Result<(), Failure> {
    if question.in_person {
        return confirm_in_person(&question.text, session).await;
    }
    confirm_about(&question.text, Some(plan), session).await
}

/// Asks even with `--yes`, because nobody can know beforehand that there is something to ask.
pub(crate) async fn confirm_in_person(question: &str, session: &Session) -> Result<(), Failure> {
    if let Some(screen) = &session.screen {
        return screen.confirm(question, None);
    }
    if session.common.json || !std::io::stdin().is_terminal() {
        let what = format!("nothing was changed: answer this in a terminal, without --json: {question}");
        return Err(Failure::NotConfirmed(what));
    }
    ask(question, session).await
}

async fn ask(question: &str, session: &Session) -> Result<(), Failure> {
    anstream::eprint!("{question} [y/N] ");
    // A question that cannot be shown is not answered with yes.
    let _ = anstream::stderr().flush();
    // Only a thread of its own can wait for the line beside Ctrl-C.
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lock().lines().next()?.ok());
    let answer = session.interrupt.or(async { Ok::<_, Failure>(line.await.ok().flatten()) }).await?;
    if answer.is_some_and(|answer| is_yes(&answer)) {
        return Ok(());
    }
    Err(Failure::NotConfirmed("nothing was changed".into()))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Follows work with a progress bar, or a spinner where its length is not known.
#[derive(Debug)]
struct Bars {
    session: Session,
    bar: RefCell<Option<(&'static str, Progress)>>,
}

impl Bars {
    fn new(session: Session) -> Self {
        Self { session, bar: RefCell::default() }
    }
}

impl Follow for Bars {
    fn progress(&self, operator::Progress { done, of, unit }: operator::Progress) {
        let mut bar = self.bar.borrow_mut();
        if bar.as_ref().is_none_or(|(known, _)| *known != unit) {
            // The one before leaves the screen first.
            *bar = None;
            let figures = if of.is_some() { "{pos}/{len} " } else { "{pos} " }.to_owned() + unit;
            *bar = Some((unit, self.session.progress(of, &figures)));
        }
        if let Some((_, bar)) = &*bar {
            bar.set(done);
        }
        if of == Some(done) {
            *bar = None;
        }
    }

    fn remark(&self, text: &Text) {
        self.session.remark(&text.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl DeploymentFlags {
        pub(crate) fn sample() -> Self {
            Self { handler: None, stack: DEFAULT_STACK.into(), region: None, profile: None }
        }

        pub(crate) fn of_handler(name: &str) -> Self {
            Self { handler: Some(name.parse().unwrap()), ..Self::sample() }
        }
    }

    #[test]
    fn a_suggested_command_names_the_same_deployment() {
        let common = |handler: Option<&str>, stack: &str| DeploymentFlags {
            handler: handler.map(|handler| handler.parse().unwrap()),
            stack: stack.into(),
            region: handler.map(|_| "eu-west-1".into()),
            profile: None,
        };
        assert_eq!(common(None, "comeback").place_flags(), "");
        assert_eq!(common(None, "shop").place_flags(), " --stack shop");
        assert_eq!(common(Some("mine"), "comeback").place_flags(), " --handler mine --region eu-west-1");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_terminated_command_stops_as_after_ctrl_c() {
        let (raise, interrupt) = Interrupt::new();
        raise_when_stopped(raise);
        let kill = std::process::Command::new("kill").arg(std::process::id().to_string()).status();
        assert!(kill.unwrap().success());
        interrupt.raised().await;
    }

    #[test]
    fn one_object_has_the_members_of_both() {
        assert_eq!(
            joined(r#"{"error":null}"#, r#"{"payload":{"n":1E400}}"#),
            r#"{"error":null,"payload":{"n":1E400}}"#
        );
        assert_eq!(joined(r#"{"error":"why"}"#, "{}"), r#"{"error":"why"}"#);
    }

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
