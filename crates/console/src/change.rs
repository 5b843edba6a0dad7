//! Pages for making changes, such as pausing a function.
//!
//! GET plans the change and shows the plan. POST plans the change again, and performs it only if the plan is the
//! same.

use std::collections::BTreeSet;
use std::rc::Rc;

use askama::Template;
use async_trait::async_trait;
use axum::response::Response;
use axum::routing::MethodRouter;

use comeback_operate::change::{perform, result_layout};
use comeback_operate::function::{FunctionName, command_name};
use comeback_operate::numbers::counted;
use comeback_operate::waiting::filter::WaitingFilter;
use comeback_operate::waiting::reading::Reading;
use comeback_operate::waiting::report::ReportQuery;
use comeback_operate::{
    Answer as _, Change, Command, CommandName, Failure, Interrupt, Layout, Operator, Performed, Plan as _,
    Text,
};

use futures_util::future::join;

use crate::access::token;
use crate::console::Console;
use crate::page::{Fields, Frame, Problem, Visit, form, ok, page};
use crate::work::{PageScreen, PlanQuestion, WorkSummary};

/// Form field that is present if the operator requests a plan.
pub(super) const PLAN: &str = "plan";
/// Form field with the digest of the plan that the operator saw.
const DIGEST: &str = "digest";
/// Form field with the form's one-time id, so that a form submitted twice makes only one change.
const ONCE: &str = "once";

#[derive(Debug)]
pub(super) struct ChangeForm {
    pub(super) path: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    /// The subcommand of `comeback` that makes the same change.
    pub(super) command: CommandName,
    pub(super) inputs: &'static [Input],
    /// Parses the form's fields. The error names the invalid field.
    pub(super) asked: fn(&Fields) -> Result<Box<dyn Asked>, String>,
    /// Path that the *Back* link opens once the change has ended.
    pub(super) back: &'static str,
}

/// A field of a form, and the matching command-line argument.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
    pub(super) argument: Argument,
    /// Common values and the labels of their buttons.
    pub(super) choices: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// The flag with the field's name, as in `--name=value`. The flag is omitted if the field is empty.
    Flag,
    /// The flag with the field's name, once for each value of the field.
    Each,
    /// A function's name as a positional argument, or `--all` if the field's value is `*`.
    FunctionOrAll,
    Operand,
}

impl Input {
    /// A field for the flag with this name.
    pub(super) const fn new(name: &'static str, label: &'static str, hint: &'static str) -> Self {
        Self { name, label, hint, argument: Argument::Flag, choices: &[] }
    }

    /// The field's value, parsed by `read`, or `None` if the field is empty.
    pub(super) fn read<T>(
        &self,
        fields: &Fields,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        fields.read(self.name, self.label, read)
    }

    pub(super) fn is_function(&self) -> bool {
        self.name == "function"
    }

    /// The value of each field that the form shows for this input, in the form's order.
    pub(super) fn values(&self, fields: &Fields) -> Vec<String> {
        match self.argument {
            Argument::Each => fields.all(self.name).chain([""]).map(ToOwned::to_owned).collect(),
            _ => vec![fields.get(self.name).unwrap_or_default().to_owned()],
        }
    }
}

/// A change of any kind that a form requests.
#[async_trait(?Send)]
pub(super) trait Asked {
    /// Plans the change, and returns the plan for the operator to confirm.
    async fn offer(&self, operator: &Operator) -> Result<Offer, Failure>;

    /// Plans the change again, and performs it only if the operator has agreed to the same plan.
    async fn carry_out(&self, operator: &Operator, screen: &PageScreen) -> Result<(), Failure>;
}

#[async_trait(?Send)]
impl<C: Change> Asked for C {
    async fn offer(&self, operator: &Operator) -> Result<Offer, Failure> {
        let plan = self.plan(operator).await?;
        let about =
            |question: comeback_operate::Question| PlanQuestion::about(&question.text, &plan.identity());
        let question = plan.question().map(about);
        let end = if question.is_some() { Ok(()) } else { plan.end() };
        Ok(Offer { layout: plan.layout(), question, failure: end.err().map(|failure| failure.text()) })
    }

    async fn carry_out(&self, operator: &Operator, screen: &PageScreen) -> Result<(), Failure> {
        let mut plan = self.plan(operator).await?;
        loop {
            let Some(question) = plan.question() else {
                screen.show(plan.layout());
                return plan.end();
            };
            screen.agree(&question.text, &plan.identity())?;
            match perform(self, operator, &plan).await? {
                (Performed::Done(done, result), recorded) => {
                    screen.show(result_layout(&done, &recorded));
                    return result;
                }
                // The operator has not agreed to the new plan, so the next call to `agree` fails.
                (Performed::Outdated(new), _) => plan = new,
            }
        }
    }
}

impl ChangeForm {
    /// The route of the change's page. GET plans the change, and POST performs it.
    pub(super) fn route(&'static self) -> MethodRouter<Console> {
        let plans = page(move |visit| self.plan(visit));
        plans.merge(form(move |visit, fields| self.perform(visit, fields)))
    }

    /// The `comeback` command line that makes the same change as the form.
    fn command(&self, fields: &Fields, place: &str) -> Command {
        let (mut words, mut operand) = (Vec::new(), None);
        for input in self.inputs {
            let flag = |value: &str| format!("--{}={value}", input.name);
            match (input.argument, fields.get(input.name)) {
                (Argument::Each, _) => words.extend(fields.all(input.name).map(flag)),
                (Argument::Flag, Some(value)) => words.push(flag(value)),
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

    fn asked(&self, fields: &Fields) -> Result<Box<dyn Asked>, Failure> {
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
        // The functions' names come from the handler's log, which may take a while to read. Meanwhile, the change is
        // planned.
        let (offer, functions) = join(planned, functions(&visit.console)).await;
        let mut held = None;
        if self.command == CommandName::Resume && offer.as_ref().is_some_and(|offer| offer.question.is_some())
        {
            held = held_events(&fields, &visit.console).await;
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
            held,
        })
    }

    async fn perform(&'static self, visit: Visit, form: Fields) -> Result<Response, Problem> {
        let [digest, once, query] = form.required([DIGEST, ONCE, "fields"])?;
        let fields = Fields::of_query(query);
        let summary = WorkSummary {
            command: self.command(&fields, &visit.console.address.flags()).to_string(),
            agreed: digest.to_owned(),
            ..WorkSummary::new(self.title, format!("{}?{}", self.path, fields.to_query()), self.back)
        };
        let console = visit.console.clone();
        Ok(visit.console.works.perform(once, summary, |screen, interrupt| async move {
            Performer { console, screen, interrupt }.change(self.asked(&fields)?).await
        }))
    }
}

/// Context of a change that runs in the background.
pub(super) struct Performer {
    pub(super) console: Console,
    pub(super) screen: Rc<PageScreen>,
    pub(super) interrupt: Interrupt,
}

impl Performer {
    /// Returns an [`Operator`] that shows its progress on the change's page.
    pub(super) async fn operator(&self) -> Result<Operator, Failure> {
        self.console.operator(Rc::clone(&self.screen) as _, self.interrupt.clone()).await
    }

    /// Performs a change, if the operator has agreed to its plan.
    pub(super) async fn change(&self, asked: Box<dyn Asked>) -> Result<(), Failure> {
        let result = asked.carry_out(&self.operator().await?, &self.screen).await;
        self.console.has_changed();
        result
    }
}

/// Returns the names of the functions that are on the allow-list or have waiting events. The set is empty before the
/// first read of the handler's log.
async fn functions(console: &Console) -> BTreeSet<String> {
    let look = |reading: &Reading, _| {
        let deployment = &reading.deployment;
        let listed = deployment.target_functions().filter(|entry| !entry.contains('*'));
        listed.chain(reading.waits.targets()).map(|arn| command_name(arn, &deployment.handler_arn)).collect()
    };
    console.waiting(look).await.known().unwrap_or_default()
}

/// A sentence that says how many of the function's events a pause currently holds, or `None` if this is unknown.
async fn held_events(fields: &Fields, console: &Console) -> Option<String> {
    let function = fields.get("function")?;
    let functions = if function == "*" { Vec::new() } else { vec![function.parse().ok()?] };
    let wanted = WaitingFilter { functions, ..WaitingFilter::default() };
    let look = |reading: &Reading, now| {
        let listing = ReportQuery { wanted, ..ReportQuery::default() };
        reading.report(&listing, now).groups.iter().map(|group| group.held).sum::<u64>()
    };
    let held = console.waiting(look).await.known()?;
    Some(format!("{} held now.", counted(held, "event is", "events are")))
}

/// The plan for a change, as the page shows it.
pub(super) struct Offer {
    pub(super) layout: Layout,
    pub(super) question: Option<PlanQuestion>,
    /// The failure that the page shows instead of a question.
    pub(super) failure: Option<Text>,
}

impl Offer {
    /// Plans a change for the page. If planning fails, the page shows the failure.
    pub(super) async fn of(asked: Result<Box<dyn Asked>, Failure>, console: &Console) -> Self {
        let planning = async {
            let operator = console.asking().await;
            asked?.offer(&operator?).await
        };
        let failed = |failure: Failure| Self {
            layout: Layout::default(),
            question: None,
            failure: Some(failure.text()),
        };
        planning.await.unwrap_or_else(failed)
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

#[derive(Template)]
#[template(path = "change.html")]
struct ChangePage {
    frame: Frame,
    form: &'static ChangeForm,
    inputs: Vec<(&'static Input, Vec<String>)>,
    functions: BTreeSet<String>,
    fields: String,
    command: String,
    once: String,
    offer: Option<Offer>,
    /// A sentence that says how many events a pause currently holds, or `None` if this is unknown.
    held: Option<String>,
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
            Input { argument: Argument::FunctionOrAll, ..Input::new("function", "", "") },
            Input::new("reason", "Reason", ""),
            Input { argument: Argument::Each, ..Input::new("key", "", "") },
        ],
        asked: |_| Err("nothing".into()),
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
        let long = FORM.inputs[1].read(&fields("orders", "long"), |_| Err::<(), _>("too long".into()));
        assert_eq!(long, Err("Reason: too long".into()));
        assert_eq!(FORM.inputs[1].read(&fields("orders", ""), |_| Err::<(), _>("".into())), Ok(None));
    }
}
