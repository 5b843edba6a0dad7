//! A command that changes something: a form for its flags, its plan and question, and its performance.
//!
//! The command's own code plans, asks and performs. GET runs it as far as its question, and shows what it printed. POST
//! runs it again, and this time the answer is yes if the plan is the one that was shown.

use std::rc::Rc;

use askama::Template;
use axum::Router;
use axum::http::StatusCode;
use axum::response::Response;
use clap::Parser as _;

use comeback_operate::command::command_line;
use comeback_operate::numbers::counted;
use comeback_operate::waiting::reading::Reading;
use comeback_operate::waiting::report::Listing;
use comeback_operate::waiting::wanted::Wanted;
use comeback_rehearsal::Failure;

use crate::failure::CommandFailure;
use crate::operate::OperateCommand;
use crate::operate::session::Interrupt;
use crate::ui::access::token;
use crate::ui::console::{Console, Waiting};
use crate::ui::fresh::Read;
use crate::ui::page::{Fields, Frame, Problem, Visit, form, ok, page};
use crate::ui::work::{PageScreen, Question, Summary};

/// The field that asks for a plan; without it, a form is only filled in.
const PLAN: &str = "plan";
/// The field with the digest of the plan that was shown.
const DIGEST: &str = "digest";
/// The field with the form's one-time id.
const ONCE: &str = "once";

/// A command that a form gives.
#[derive(Debug)]
pub(super) struct Action {
    pub(super) path: &'static str,
    pub(super) title: &'static str,
    /// What it does, in a sentence.
    pub(super) about: &'static str,
    /// Its words before the flags: `dead`, `redrive`.
    pub(super) command: &'static [&'static str],
    pub(super) inputs: &'static [Input],
    /// Whether its plan says how many events are held.
    pub(super) is_about_held: bool,
    /// The page to go back to.
    pub(super) back: &'static str,
}

/// A field of the form, and the argument that it stands for.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
    pub(super) argument: Argument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// `--flag=value`, if the field is filled in.
    Flag(&'static str),
    /// The value, or `--all` if it is `*`.
    FunctionOrAll,
}

impl Action {
    /// Its path: GET plans, POST performs.
    pub(super) fn routes(&'static self) -> Router<Console> {
        let plans = page(move |visit| self.plan(visit));
        Router::new().route(self.path, plans.merge(form(move |visit, fields| self.perform(visit, fields))))
    }

    /// The command's words for these fields: with flags, and what stands alone. A value is always one word, and never
    /// read as a flag.
    fn words(&self, fields: &Fields) -> (Vec<String>, Option<String>) {
        let mut words: Vec<String> = self.command.iter().map(|&word| word.to_owned()).collect();
        let mut operand = None;
        for input in self.inputs {
            match (input.argument, fields.get(input.name)) {
                (Argument::Flag(flag), Some(value)) => words.push(format!("{flag}={value}")),
                (Argument::FunctionOrAll, Some("*")) => words.push("--all".into()),
                (Argument::FunctionOrAll, Some(function)) => operand = Some(function.to_owned()),
                (_, None) => {}
            }
        }
        (words, operand)
    }

    fn line_to_run(&self, fields: &Fields) -> Vec<String> {
        let (mut words, operand) = self.words(fields);
        operand.into_iter().for_each(|operand| words.extend(["--".into(), operand]));
        words
    }

    /// The command line to copy.
    fn line_to_copy(&self, fields: &Fields, place: &str) -> String {
        let (words, operand) = self.words(fields);
        let line = command_line(["comeback"].into_iter().chain(words.iter().map(String::as_str))) + place;
        match operand {
            Some(operand) if operand.starts_with('-') => format!("{line} -- {}", command_line([&*operand])),
            Some(operand) => format!("{line} {}", command_line([&*operand])),
            None => line,
        }
    }

    async fn plan(&'static self, visit: Visit) -> Result<Response, Problem> {
        let fields = visit.query();
        let mut planned = match fields.get(PLAN) {
            Some(_) => Some(Planned::of(self, &fields, &visit.console).await),
            None => None,
        };
        if let Some(planned) =
            planned.as_mut().filter(|planned| self.is_about_held && planned.question.is_some())
        {
            planned.notes.extend(held(&fields, &visit.console).await);
        }
        let values =
            self.inputs.iter().map(|input| (input, fields.get(input.name).unwrap_or_default().to_owned()));
        ok(&ActionPage {
            frame: visit.frame(self.title, None),
            action: self,
            inputs: values.collect(),
            fields: fields.to_query(),
            command: self.line_to_copy(&fields, &visit.console.common.place_flags()),
            once: token(),
            planned,
        })
    }

    async fn perform(&'static self, visit: Visit, form: Fields) -> Result<Response, Problem> {
        let [Some(digest), Some(once), Some(query)] = [DIGEST, ONCE, "fields"].map(|name| form.get(name))
        else {
            return Err(Problem::Refused(StatusCode::BAD_REQUEST, "The form is incomplete.".into()));
        };
        let fields = Fields::of_query(query);
        let summary = Summary {
            title: self.title.into(),
            command: self.line_to_copy(&fields, &visit.console.common.place_flags()),
            plan: format!("{}?{}", self.path, fields.to_query()),
            back: self.back,
            next: "Back",
            file: None,
            agreed: digest.to_owned(),
        };
        let console = visit.console.clone();
        let words = self.line_to_run(&fields);
        Ok(visit.console.works.perform(once, summary, |screen, interrupt| async move {
            let result = run(words, &console, screen, interrupt).await;
            console.has_changed();
            result
        }))
    }
}

/// Runs a command on a screen, as far as the screen lets it.
async fn run(
    words: Vec<String>,
    console: &Console,
    screen: Rc<PageScreen>,
    interrupt: Interrupt,
) -> Result<(), CommandFailure> {
    let command = parsed(words)?;
    let session = console.session_on(screen, interrupt).await?;
    // The futures of all commands together are too large for a thread's stack.
    Box::pin(command.run(session)).await
}

fn parsed(words: Vec<String>) -> Result<Box<OperateCommand>, CommandFailure> {
    let words = ["comeback".to_owned()].into_iter().chain(words);
    match crate::Arguments::try_parse_from(words).map(|arguments| arguments.command) {
        Ok(crate::Command::Operate(command)) => Ok(command),
        Ok(_) => unreachable!("BUG: not a command on a deployment"),
        Err(refused) => Err(Failure::of_command_line(&refused).into()),
    }
}

/// How many events a pause holds, if the log says that.
async fn held(fields: &Fields, console: &Console) -> Option<String> {
    let function = fields.get("function")?;
    let functions = if function == "*" { Vec::new() } else { vec![function.parse().ok()?] };
    let wanted = Wanted { functions, ..Wanted::default() };
    let look = |reading: &mut Reading, now| {
        reading.apply_pauses(now);
        let listing = Listing { wanted, by: None, events: None };
        reading.report(&listing, now).groups.iter().map(|group| group.held).sum::<u64>()
    };
    match console.waiting(look).await {
        Waiting::Read(Read { value: Ok(held), .. }) => {
            Some(format!("{} held now.", counted(*held, "event is", "events are")))
        }
        Waiting::Read(_) | Waiting::Reading(_) => None,
    }
}

/// What a command would do.
struct Planned {
    text: String,
    notes: Vec<String>,
    question: Option<Question>,
    /// Why there is no question, unless there is nothing to do.
    failure: Option<String>,
}

impl Planned {
    async fn of(action: &Action, fields: &Fields, console: &Console) -> Self {
        let screen = Rc::new(PageScreen::default());
        let (_, never) = Interrupt::new();
        let result = run(action.line_to_run(fields), console, Rc::clone(&screen), never).await;
        let question = screen.open_question();
        let failure = result.err().filter(|_| question.is_none()).map(|failure| failure.to_string());
        Self { text: screen.text(), notes: screen.notes(), question, failure }
    }
}

#[derive(Template)]
#[template(path = "ui/action.html")]
struct ActionPage {
    frame: Frame,
    action: &'static Action,
    inputs: Vec<(&'static Input, String)>,
    fields: String,
    command: String,
    once: String,
    planned: Option<Planned>,
}

#[cfg(test)]
mod tests {
    use super::*;

    static ACTION: Action = Action {
        path: "/pause",
        title: "Pause",
        about: "",
        command: &["pause"],
        inputs: &[
            Input { name: "function", label: "", hint: "", argument: Argument::FunctionOrAll },
            Input { name: "reason", label: "", hint: "", argument: Argument::Flag("--reason") },
        ],
        is_about_held: false,
        back: "/",
    };

    fn fields(function: &str, reason: &str) -> Fields {
        Fields(
            [("function", function), ("reason", reason)]
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
        )
    }

    fn words(function: &str, reason: &str) -> Vec<String> {
        ACTION.line_to_run(&fields(function, reason))
    }

    #[test]
    fn a_field_is_one_argument_whatever_it_holds() {
        assert_eq!(words("orders", "a b"), ["pause", "--reason=a b", "--", "orders"]);
        assert_eq!(words("*", ""), ["pause", "--all"]);
        assert_eq!(words("", "x"), ["pause", "--reason=x"]);
        for hostile in ["--all", "--yes", "-y", "--reason=x", "--"] {
            assert_eq!(words(hostile, hostile), ["pause", &format!("--reason={hostile}"), "--", hostile]);
        }
    }

    #[test]
    fn the_command_to_copy_is_the_one_that_runs() {
        let line = |function: &str| ACTION.line_to_copy(&fields(function, "it's down"), " --stack shop");
        assert_eq!(line("orders"), "comeback pause \"--reason=it's down\" --stack shop orders");
        assert_eq!(line("-x"), "comeback pause \"--reason=it's down\" --stack shop -- -x");
    }

    #[test]
    fn what_a_command_refuses_is_said_in_its_words() {
        let refused = |function: &str| parsed(words(function, "{{x}}")).map(drop).unwrap_err().to_string();
        assert!(
            refused("orders").contains("'--reason <TEXT>': must not contain {{"),
            "{}",
            refused("orders")
        );
        let nothing = parsed(words("", "why")).map(drop).unwrap_err().to_string();
        assert!(nothing.contains("required arguments were not provided"), "{nothing}");
    }
}
