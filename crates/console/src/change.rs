//! The two steps of every change, such as pausing a function.
//!
//! The first step plans the change and shows the plan. The second step plans the change again, and performs it only if
//! the plan is the same.

use std::collections::BTreeSet;

use askama::Template;
use async_trait::async_trait;
use axum::response::Response;
use axum::routing::MethodRouter;
use comeback_engine::Timestamp;

use comeback_operate::change::{perform as perform_plan, result_layout};
use comeback_operate::function::{FunctionName, command_name};
use comeback_operate::numbers::{counted, grouped};
use comeback_operate::waiting::filter::WaitingFilter;
use comeback_operate::waiting::reading::Reading;
use comeback_operate::waiting::report::ReportQuery;
use comeback_operate::{
    Answer as _, Change, Command, CommandName, Failure, Layout, Operator, Performed, Plan as _, Text,
};

use futures_util::future::join;

use crate::access::token;
use crate::console::Console;
use crate::page::{FIELDS, Fields, Frame, Problem, Visit, form, ok, page};
use crate::performer::perform_in_background;
use crate::work::{ONCE, PageScreen, PlanQuestion, WorkSummary};

/// Form field that is present if the operator requests a plan.
pub(super) const PLAN: &str = "plan";
/// Form field with the digest of the plan that the operator saw.
const DIGEST: &str = "digest";
/// Form field with the number that the operator typed to confirm the change.
const TYPED: &str = "typed";

/// The form for a change. Its page shows the plan, and then performs it.
#[derive(Debug)]
pub(super) struct ChangeForm {
    pub(super) path: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    /// The subcommand of `comeback` that makes the same change.
    pub(super) command: CommandName,
    pub(super) inputs: &'static [Input],
    /// Reads the change that the form's fields request.
    pub(super) read: fn(&'static ChangeForm, &Visit, Fields) -> Result<RequestedChange, Problem>,
    /// Path of the *Back* links.
    pub(super) back: &'static str,
    /// True if the change reads the dead-letter queue.
    pub(super) reads_dead_letters: bool,
}

/// A field of a form, and the matching command-line argument.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
    pub(super) argument: Argument,
    /// True for a text area. The form is then sent with POST, because the text may be too long for a URL.
    pub(super) is_long: bool,
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
        Self { name, label, hint, argument: Argument::Flag, is_long: false, choices: &[] }
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
            match perform_plan(self, operator, &plan).await? {
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
    /// The route of the change's page. GET plans the change, and POST performs it. A long form is also planned with
    /// POST.
    pub(super) fn route(&'static self) -> MethodRouter<Console> {
        let sent = form(move |visit, fields| self.answer(visit, fields));
        if self.is_long() {
            return sent;
        }
        sent.merge(page(async move |visit: Visit| {
            let requested = (self.read)(self, &visit, visit.query())?;
            self.plan(&visit, requested, None).await
        }))
    }

    /// Answers a form sent with POST: plans a long form that agrees to no plan yet, and performs any other.
    async fn answer(&'static self, visit: Visit, sent: Fields) -> Result<Response, Problem> {
        if self.is_long() && sent.get(DIGEST).is_none() {
            let requested = (self.read)(self, &visit, sent)?;
            return self.plan(&visit, requested, None).await;
        }
        let [digest, once, planned] = sent.required([DIGEST, ONCE, FIELDS])?;
        let requested = (self.read)(self, &visit, Fields::of_query(planned))?;
        if let Some(count) = requested.count_to_type
            && !is_count(sent.get(TYPED).unwrap_or_default(), count)
        {
            let problem = format!("Nothing was done: to {} them, type {count}.", self.title.to_lowercase());
            // If no dead-letter is left, the plan itself says so.
            return self.plan(&visit, requested, Some(problem).filter(|_| count > 0)).await;
        }
        self.perform(&visit.console, requested, digest, once)
    }

    /// The first step: plans the change, and shows the plan.
    async fn plan(
        &'static self,
        visit: &Visit,
        requested: RequestedChange,
        problem: Option<String>,
    ) -> Result<Response, Problem> {
        let planned = async {
            let change = requested.change.as_ref()?.as_ref().map_err(Failure::clone);
            let offer = async { change?.offer(&visit.console.asking().await?).await };
            let failed = |failure: Failure| Offer { failure: Some(failure.text()), ..Offer::default() };
            Some(offer.await.unwrap_or_else(failed))
        };
        // The handler's log may take a while to read. Meanwhile, the change is planned.
        let log = self.read_log(&visit.console, &requested.fields);
        let (offer, (functions, held)) = join(planned, log).await;
        let mut frame = visit.frame(self.title, None);
        frame.figures_of = requested.scanned_at.map(Text::from);
        let once = [token(), token()];
        ok(&ChangePage { frame, form: self, requested, functions, offer, held, problem, once })
    }

    /// The second step: performs the change if the operator has agreed to its plan.
    fn perform(
        &self,
        console: &Console,
        requested: RequestedChange,
        digest: &str,
        once: &str,
    ) -> Result<Response, Problem> {
        let RequestedChange { fields, change, command, difference, file, .. } = requested;
        let change = change.ok_or_else(Problem::incomplete)?;
        let plan = match self.is_long() {
            true => self.back.to_owned(),
            false => format!("{}?{}", self.path, fields.to_query()),
        };
        let summary = WorkSummary {
            command: if difference.is_none() { command } else { String::new() },
            agreed: digest.to_owned(),
            file,
            reads_dead_letters: self.reads_dead_letters,
            ..WorkSummary::new(self.title, plan, self.back)
        };
        perform_in_background(console, once, summary, |performer| async move {
            let result = change?.carry_out(&performer.operator().await?, &performer.screen).await;
            performer.console.has_changed();
            result
        })
    }

    /// Returns the names to suggest for the function, and a sentence about what the pause to end holds.
    async fn read_log(&self, console: &Console, fields: &Fields) -> (BTreeSet<String>, Option<String>) {
        if !self.inputs.iter().any(Input::is_function) {
            return <_>::default();
        }
        let functions = functions(console).await;
        let ends_pause = self.command == CommandName::Resume;
        (functions, if ends_pause { held_events(fields, console).await } else { None })
    }

    /// Reads a change that the fields alone describe. An error of `asked` names the invalid field.
    pub(super) fn parsed(
        &self,
        visit: &Visit,
        fields: Fields,
        asked: impl FnOnce(&Fields) -> Result<Box<dyn Asked>, String>,
    ) -> Result<RequestedChange, Problem> {
        let change = fields.get(PLAN).map(|_| asked(&fields).map_err(Failure::refused));
        let command = self.command(&fields, &visit.console.address.flags()).to_string();
        Ok(RequestedChange { fields, change, command, ..RequestedChange::default() })
    }

    /// Returns true if an input is too long for a URL.
    fn is_long(&self) -> bool {
        self.inputs.iter().any(|input| input.is_long)
    }

    /// The `comeback` command line that makes the same change as the form.
    pub(super) fn command(&self, fields: &Fields, place: &str) -> Command {
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
}

/// Returns true if `typed` is `count`, with or without thousands separators.
fn is_count(typed: &str, count: u64) -> bool {
    let typed = typed.trim();
    typed == count.to_string() || typed == grouped(count)
}

/// A change that a form requests, and what its page shows.
#[derive(Default)]
pub(super) struct RequestedChange {
    /// The form's fields, from which the second step reads the same change.
    pub(super) fields: Fields,
    /// The change, or the reason why it is refused. `None` until the operator requests a plan.
    pub(super) change: Option<Result<Box<dyn Asked>, Failure>>,
    /// Text about this change in particular.
    pub(super) note: String,
    /// The command line to copy; empty if no command comes close.
    pub(super) command: String,
    /// How the command differs from the change; `None` if it makes the same change.
    pub(super) difference: Option<&'static str>,
    /// Number of dead-letters, if the operator must type it to confirm the change.
    pub(super) count_to_type: Option<u64>,
    /// Name of the file that the change writes.
    pub(super) file: Option<String>,
    /// Time of the scan from which the plan is made.
    pub(super) scanned_at: Option<Timestamp>,
    /// Path of the page of the dead-letter whose payload the form edits.
    pub(super) edited: Option<String>,
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
#[derive(Default)]
pub(super) struct Offer {
    layout: Layout,
    question: Option<PlanQuestion>,
    /// The failure that the page shows instead of a question.
    failure: Option<Text>,
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
    requested: RequestedChange,
    functions: BTreeSet<String>,
    offer: Option<Offer>,
    /// A sentence that says how many events a pause currently holds, or `None` if this is unknown.
    held: Option<String>,
    /// The reason why the change was not performed.
    problem: Option<String>,
    /// One-time ids of the form that performs the plan, and of the form that exports the edited dead-letter.
    once: [String; 2],
}

impl ChangePage {
    fn inputs(&self) -> impl Iterator<Item = (&Input, Vec<String>)> {
        self.form.inputs.iter().map(|input| (input, input.values(&self.requested.fields)))
    }

    /// The fields that no input shows, such as those that name the dead-letters.
    fn other_fields(&self) -> Fields {
        let shown: Vec<&str> = self.form.inputs.iter().map(|input| input.name).chain([PLAN]).collect();
        self.requested.fields.without(&shown)
    }

    /// The label of the field for the number, such as `To discard 2 dead-letters, type 2`.
    fn instruction(&self) -> Option<String> {
        let (verb, count) = (self.form.title.to_lowercase(), self.requested.count_to_type?);
        Some(format!("To {verb} {}, type {count}", counted(count, "dead-letter", "dead-letters")))
    }
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
        read: |_, _, _| Err(Problem::Missing),
        back: "/",
        reads_dead_letters: false,
    };

    fn fields_of<const N: usize>(pairs: [(&str, &str); N]) -> Fields {
        Fields(pairs.map(|(name, value)| (name.into(), value.into())).into())
    }

    fn fields(function: &str, reason: &str) -> Fields {
        fields_of([("function", function), ("reason", reason)])
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
        let fields = fields_of([("function", "orders"), ("key", "a b"), ("key", ""), ("key", "--all")]);
        let line = FORM.command(&fields, "").to_string();
        assert_eq!(shlex::split(&line).unwrap()[2..], ["--key=a b", "--key=--all", "orders"]);
        let values: Vec<_> = FORM.inputs.iter().map(|input| input.values(&fields)).collect();
        assert_eq!(values, [vec!["orders"], vec![""], vec!["a b", "--all", ""]]);
    }

    #[test]
    fn button_overrules_the_field_behind_it() {
        let value = |button| fields_of([("for", button), ("for", "1h")]).get("for").map(ToOwned::to_owned);
        assert_eq!(value("15m"), Some("15m".into()));
        assert_eq!(value(""), None, "until I resume");
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

    #[test]
    fn only_the_exact_count_is_accepted() {
        for typed in ["1200", " 1200 ", "1,200"] {
            assert!(is_count(typed, 1_200), "{typed}");
        }
        for typed in ["", "1201", "12", "all", "1200.0", "1 200"] {
            assert!(!is_count(typed, 1_200), "{typed}");
        }
    }
}
