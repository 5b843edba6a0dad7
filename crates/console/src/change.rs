//! Pages that make a change, such as pausing a function. They show a form, then the plan with its question, and perform
//! the change.
//!
//! GET plans the change and shows the plan. POST plans the change again, and performs it only if the plan is the same
//! as the one shown.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::rc::Rc;

use askama::Template;
use axum::Router;
use axum::http::StatusCode;
use axum::response::Response;

use comeback_operate::function::{FunctionName, command_name};
use comeback_operate::numbers::counted;
use comeback_operate::waiting::reading::Reading;
use comeback_operate::waiting::report::Listing;
use comeback_operate::waiting::wanted::Wanted;
use comeback_operate::{
    Change, Command, CommandName, Ended, Failure, Interrupt, Layout, Operator, Planned, Text, Unwatched,
};

use futures_util::future::join;

use crate::access::token;
use crate::console::{Console, Waiting};
use crate::fresh::Read;
use crate::page::{Fields, Frame, Problem, Visit, form, ok, page};
use crate::work::{PageScreen, Question, Summary};

/// Form field that requests a plan. Without this field, the page only shows the filled-in form.
pub(super) const PLAN: &str = "plan";
/// Form field with the digest of the plan that the operator saw.
const DIGEST: &str = "digest";
/// Form field with the form's one-time id. If the form is sent twice, the change is performed only once.
const ONCE: &str = "once";

/// A change that an operator can make with a form, such as a pause or a cancellation.
#[derive(Debug)]
pub(super) struct ChangeForm {
    pub(super) path: &'static str,
    pub(super) title: &'static str,
    /// One sentence that tells the operator what the change does.
    pub(super) about: &'static str,
    /// The subcommand of `comeback` that makes the same change.
    pub(super) command: CommandName,
    pub(super) inputs: &'static [Input],
    /// Parses the form's fields. The error names the field that is wrong.
    pub(super) asked: fn(&Fields) -> Result<Asked, String>,
    /// True if the plan's page shows how many events a pause holds.
    pub(super) is_about_held: bool,
    /// Path of the page that the *Back* link opens when the change has ended.
    pub(super) back: &'static str,
}

/// A field of a change's form, and the command-line argument that the field replaces.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
    pub(super) argument: Argument,
    /// Common values. Each has the label of a button that shows the plan for the value.
    pub(super) choices: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// `--flag=value` if the field is filled in.
    Flag(&'static str),
    /// `--flag=value` for each filled-in field that has the input's name. The form has an empty field for one more
    /// value.
    Each(&'static str),
    /// The value as an operand, or `--all` if the value is `*`.
    FunctionOrAll,
    /// The value as an operand.
    Operand,
}

impl Input {
    /// Returns true if the field names a function.
    fn is_function(&self) -> bool {
        self.name == "function"
    }

    /// Values of the fields that the form shows for this input, in order.
    fn values(&self, fields: &Fields) -> Vec<String> {
        match self.argument {
            Argument::Each(_) => fields.all(self.name).chain([""]).map(ToOwned::to_owned).collect(),
            _ => vec![fields.get(self.name).unwrap_or_default().to_owned()],
        }
    }
}

type Planning = Pin<Box<dyn Future<Output = Result<Planned, Failure>>>>;

/// The change that a form requests: a function that plans the change for an `Operator`.
pub(super) struct Asked(Box<dyn FnOnce(Operator) -> Planning>);

impl Asked {
    pub(super) fn new<C: Change + 'static>(change: impl FnOnce(Operator) -> C + 'static) -> Self {
        Self(Box::new(|operator| Box::pin(Planned::of(change(operator)))))
    }

    fn plan(self, operator: Operator) -> Planning {
        (self.0)(operator)
    }
}

impl ChangeForm {
    /// The routes of this form's path: GET shows the plan, POST performs the change.
    pub(super) fn routes(&'static self) -> Router<Console> {
        let plans = page(move |visit| self.plan(visit));
        Router::new().route(self.path, plans.merge(form(move |visit, fields| self.perform(visit, fields))))
    }

    /// The `comeback` command line that makes the form's change. Each value is quoted as one word and cannot be read as
    /// a flag.
    fn command(&self, fields: &Fields, place: &str) -> Command {
        let (mut words, mut operand) = (Vec::new(), None);
        for input in self.inputs {
            match (input.argument, fields.get(input.name)) {
                (Argument::Each(flag), _) => {
                    words.extend(fields.all(input.name).map(|value| format!("{flag}={value}")));
                }
                (Argument::Flag(flag), Some(value)) => words.push(format!("{flag}={value}")),
                (Argument::FunctionOrAll, Some("*")) => words.push("--all".into()),
                (Argument::FunctionOrAll | Argument::Operand, Some(function)) => {
                    operand = Some(function.to_owned())
                }
                (_, None) => {}
            }
        }
        words.extend(operand.iter().filter(|it| it.starts_with('-')).map(|_| "--".to_owned()));
        words.extend(operand);
        Command::new(self.command, words, place)
    }

    fn asked(&self, fields: &Fields) -> Result<Asked, Failure> {
        (self.asked)(fields).map_err(Failure::refused)
    }

    async fn plan(&'static self, visit: Visit) -> Result<Response, Problem> {
        let fields = visit.query();
        let planned = async {
            match fields.get(PLAN) {
                Some(_) => Some(Offer::of(self.asked(&fields), &visit.console).await),
                None => None,
            }
        };
        // The functions' names come from the handler's log, which may take a while to read, so the plan is made at the
        // same time.
        let (mut offer, functions) = join(planned, functions(&visit.console)).await;
        if let Some(offer) = offer.as_mut().filter(|offer| self.is_about_held && offer.question.is_some()) {
            offer.held = held(&fields, &visit.console).await;
        }
        let values = self.inputs.iter().map(|input| (input, input.values(&fields)));
        ok(&ChangePage {
            frame: visit.frame(self.title, None),
            form: self,
            inputs: values.collect(),
            functions,
            fields: fields.to_query(),
            command: self.command(&fields, &visit.console.address.flags()).to_string(),
            once: token(),
            offer,
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
            command: self.command(&fields, &visit.console.address.flags()).to_string(),
            plan: format!("{}?{}", self.path, fields.to_query()),
            back: self.back,
            next: "Back",
            file: None,
            agreed: digest.to_owned(),
        };
        let console = visit.console.clone();
        Ok(visit.console.works.perform(once, summary, |screen, interrupt| async move {
            perform(self.asked(&fields)?, &console, screen, interrupt).await
        }))
    }
}

/// Plans a change again, and performs it only if the operator agreed to the same plan on `screen`.
pub(super) async fn perform(
    asked: Asked,
    console: &Console,
    screen: Rc<PageScreen>,
    interrupt: Interrupt,
) -> Result<(), Failure> {
    let operator = console.operator(Rc::clone(&screen) as _, interrupt).await?;
    let result = perform_agreed(asked.plan(operator).await?, &screen).await;
    console.has_changed();
    result
}

async fn perform_agreed(planned: Planned, screen: &PageScreen) -> Result<(), Failure> {
    let Some(question) = &planned.question else {
        screen.show(planned.layout);
        return planned.end;
    };
    screen.agree(&question.text, &planned.identity)?;
    match planned.perform().await? {
        Ended::Done { layout, result, .. } => {
            screen.show(layout);
            result
        }
        Ended::Outdated(planned) => match &planned.question {
            // The operator has not agreed to the new plan, so `agree` fails.
            Some(question) => screen.agree(&question.text, &planned.identity),
            None => {
                screen.show(planned.layout);
                planned.end
            }
        },
    }
}

/// Returns the names of the functions that a form offers: those on the allow-list, and those with waiting events. Empty
/// if the handler's log could not be read.
async fn functions(console: &Console) -> BTreeSet<String> {
    let look = |reading: &mut Reading, _| {
        let deployment = &reading.deployment;
        let listed = deployment.target_functions().filter(|entry| !entry.contains('*'));
        listed.chain(reading.waits.targets()).map(|arn| command_name(arn, &deployment.handler_arn)).collect()
    };
    match console.waiting(look).await {
        Waiting::Read(Read { value: Ok(names), .. }) => Rc::into_inner(names).unwrap_or_default(),
        Waiting::Read(_) | Waiting::Reading(_) => BTreeSet::new(),
    }
}

/// A sentence with the number of events that a pause holds now; `None` if the handler's log could not be read.
async fn held(fields: &Fields, console: &Console) -> Option<String> {
    let function = fields.get("function")?;
    let functions = if function == "*" { Vec::new() } else { vec![function.parse().ok()?] };
    let wanted = Wanted { functions, ..Wanted::default() };
    let look = |reading: &mut Reading, now| {
        reading.apply_pauses(now);
        let listing = Listing { wanted, ..Listing::default() };
        reading.report(&listing, now).groups.iter().map(|group| group.held).sum::<u64>()
    };
    match console.waiting(look).await {
        Waiting::Read(Read { value: Ok(held), .. }) => {
            Some(format!("{} held now.", counted(*held, "event is", "events are")))
        }
        Waiting::Read(_) | Waiting::Reading(_) => None,
    }
}

/// The plan of a change, as the page shows it, with the question that asks the operator to confirm it.
pub(super) struct Offer {
    pub(super) layout: Layout,
    pub(super) question: Option<Question>,
    /// A sentence with the number of held events; `None` if the number is unknown or not shown.
    held: Option<String>,
    /// The failure that the page shows instead of a question.
    pub(super) failure: Option<Text>,
}

impl Offer {
    /// Plans the change. If `asked` is a failure, the offer shows the failure.
    pub(super) async fn of(asked: Result<Asked, Failure>, console: &Console) -> Self {
        let planning = async {
            let operator = console.operator(Rc::new(Unwatched), Interrupt::never()).await;
            asked?.plan(operator?).await
        };
        match planning.await {
            Ok(Planned { layout, question: Some(question), identity, .. }) => {
                let question = Some(Question::about(&question.text, &identity));
                Self { layout, question, held: None, failure: None }
            }
            Ok(Planned { layout, end, .. }) => {
                Self { layout, question: None, held: None, failure: end.err().map(|failure| failure.text()) }
            }
            Err(failure) => {
                Self { layout: Layout::default(), question: None, held: None, failure: Some(failure.text()) }
            }
        }
    }
}

/// The function that a form names; `None` means every function.
pub(super) fn function(fields: &Fields) -> Result<Option<FunctionName>, String> {
    match fields.get("function") {
        None => Err("Function: name one, or * for every function".into()),
        Some("*") => Ok(None),
        Some(name) => name.parse().map(Some).map_err(|why| format!("Function: {why}")),
    }
}

/// The value of a form field, parsed by `read`; `None` if the field is empty. The error begins with the field's label.
pub(super) fn value<T>(
    fields: &Fields,
    name: &str,
    label: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    fields.get(name).map(read).transpose().map_err(|why| format!("{label}: {why}"))
}

#[derive(Template)]
#[template(path = "change.html")]
struct ChangePage {
    frame: Frame,
    form: &'static ChangeForm,
    /// Each input of the form with its values. Only a repeatable input can have more than one value.
    inputs: Vec<(&'static Input, Vec<String>)>,
    functions: BTreeSet<String>,
    fields: String,
    command: String,
    once: String,
    offer: Option<Offer>,
}

#[cfg(test)]
mod tests {
    use super::*;

    static FORM: ChangeForm = ChangeForm {
        path: "/pause",
        title: "Pause",
        about: "",
        command: CommandName::Pause,
        inputs: &[
            Input { name: "function", label: "", hint: "", argument: Argument::FunctionOrAll, choices: &[] },
            Input { name: "reason", label: "", hint: "", argument: Argument::Flag("--reason"), choices: &[] },
            Input { name: "key", label: "", hint: "", argument: Argument::Each("--key"), choices: &[] },
        ],
        asked: |_| Err("nothing".into()),
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

    #[test]
    fn a_field_is_one_argument_whatever_it_holds() {
        let words = |function: &str, reason: &str| {
            let line = FORM.command(&fields(function, reason), " --stack shop").to_string();
            shlex::split(&line).unwrap().split_off(2)
        };
        assert_eq!(words("orders", "a b"), ["--reason=a b", "orders", "--stack", "shop"]);
        assert_eq!(words("*", ""), ["--all", "--stack", "shop"]);
        assert_eq!(words("", "x"), ["--reason=x", "--stack", "shop"]);
        for hostile in ["--all", "--yes", "-y", "--reason=x", "--"] {
            let reason = format!("--reason={hostile}");
            assert_eq!(words(hostile, hostile), [&*reason, "--stack", "shop", "--", hostile]);
        }
    }

    #[test]
    fn a_repeated_field_is_a_repeated_argument() {
        let fields = Fields::of_query("function=orders&key=a%20b&key=&key=--all");
        let line = FORM.command(&fields, "").to_string();
        assert_eq!(shlex::split(&line).unwrap()[2..], ["--key=a b", "--key=--all", "orders"]);
        let values: Vec<_> = FORM.inputs.iter().map(|input| input.values(&fields)).collect();
        assert_eq!(values, [vec!["orders"], vec![""], vec!["a b", "--all", ""]]);
    }

    #[test]
    fn button_overrules_the_field_behind_it() {
        let value = |query: &str| Fields::of_query(query).get("for").map(ToOwned::to_owned);
        assert_eq!(value("for=15m&for=1h"), Some("15m".into()));
        assert_eq!(value("for=&for=1h"), None, "until I resume");
    }

    #[test]
    fn a_wrong_field_is_named() {
        let refused = |function: &str| super::function(&fields(function, "")).unwrap_err();
        assert_eq!(refused(""), "Function: name one, or * for every function");
        assert!(refused("a b").starts_with("Function: "), "{}", refused("a b"));
        assert_eq!(super::function(&fields("*", "")), Ok(None));
        let long = value(&fields("orders", "long"), "reason", "Reason", |_| Err::<(), _>("too long".into()));
        assert_eq!(long, Err("Reason: too long".into()));
        assert_eq!(value(&fields("orders", ""), "reason", "Reason", |_| Err::<(), _>("".into())), Ok(None));
    }
}
