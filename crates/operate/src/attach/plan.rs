//! Plans how to attach or detach functions, and carries out the plan.

use serde::{Serialize, Serializer};

use crate::attach::attachment::Attachment;
use crate::attach::leaving::Leaving;
use crate::attach::step::{Difference, FunctionPlan, Step, delays, interrupted, lay_out};
use crate::change::{Answer, Change, Completed, Performed, Plan, Question};
use crate::command::CommandName;
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::function::{FunctionName, Target, command_name};
use crate::handler_setting::{SettingPlace, edit, list_with, list_without};
use crate::layout::Layout;
use crate::operator::Operator;
use crate::operator_line::Activity;
use crate::pauses::OpenPause;
use crate::pauses::parameter::read_pauses;
use crate::text;
use crate::text::{Piece, Text, quoted};

/// A change that attaches functions to a deployment, or detaches them from it.
#[derive(Clone, Debug)]
pub struct RouteFailures {
    /// The functions to attach or detach.
    pub functions: Vec<FunctionName>,
    /// The direction of the change: attach or detach.
    pub route: Route,
}

/// The new destination of failed events: the retry queue, or each function's earlier destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Attaches the functions: their failed events go to the deployment.
    Attach {
        /// True to also attach functions that are attached to another deployment.
        may_move: bool,
    },
    /// Detaches the functions: from then on, only Lambda handles their failed events.
    Detach {
        /// True to detach without waiting for the functions' events, which are then usually dead-lettered.
        at_once: bool,
    },
}

impl Route {
    const fn word(self) -> &'static str {
        match self {
            Self::Attach { .. } => "attach",
            Self::Detach { .. } => "detach",
        }
    }

    /// The words for the state of a function that needs no change: `attached` or `not attached`.
    const fn state(self) -> &'static str {
        match self {
            Self::Attach { .. } => "attached",
            Self::Detach { .. } => "not attached",
        }
    }
}

/// The plan to attach or detach functions: the changes to each function.
#[derive(Clone, Debug, Serialize)]
pub struct AttachPlan {
    functions: Vec<Part>,
    #[serde(skip)]
    route: Route,
    #[serde(skip)]
    log_group: String,
}

/// The part of a plan that concerns one function.
#[derive(Clone, Debug)]
struct Part {
    function: FunctionName,
    plan: Result<FunctionPlan, Failure>,
    steps_made: u64,
    /// True once all changes are made and AWS shows them.
    is_made: bool,
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            function: String,
            differences: Vec<Difference>,
            notes: &'a [Text],
            left: Option<&'a str>,
            /// True if nothing is left to do for the function, in this run or a later one.
            done: bool,
            failure: Option<Text>,
        }
        let (plan, failure) = (self.plan.as_ref().ok(), self.plan.as_ref().err());
        let is_done = |plan: &FunctionPlan| {
            plan.left.is_none() && (self.is_made || plan.steps.is_empty()) && !plan.is_of_unknown_function()
        };
        let function = Function {
            function: self.function.to_string(),
            differences: plan.map(FunctionPlan::differences).unwrap_or_default(),
            notes: plan.map(|plan| &*plan.notes).unwrap_or_default(),
            left: plan.and_then(|plan| plan.left.as_deref()),
            done: plan.is_some_and(is_done),
            failure: failure.map(Failure::text),
        };
        function.serialize(serializer)
    }
}

impl Part {
    fn name(&self) -> Text {
        let (shown, name) = (self.function.to_string(), self.function.to_string());
        Piece::Function { shown, name }.into()
    }

    fn steps(&self) -> &[Step] {
        self.plan.as_ref().map(|plan| &*plan.steps).unwrap_or_default()
    }

    /// Adds the part to the layout of a plan for `functions` functions.
    fn lay_out(&self, route: Route, functions: usize, layout: &mut Layout) {
        let plan = match &self.plan {
            Ok(plan) => plan,
            Err(failure) => return layout.line(text![self.name(), ": ", failure.text()]),
        };
        if !plan.steps.is_empty() {
            layout.line(text![route.word(), " ", self.name(), ":"]);
            lay_out(&plan.differences(), layout);
            layout.line("");
        } else if plan.left.is_none() {
            layout.line(text![self.name(), format!(" is {}; nothing to change", route.state())]);
        }
        // A terminal shows all notes together, below the plan.
        let of = if functions > 1 { text![self.name(), ": "] } else { Text::default() };
        plan.notes.iter().for_each(|note| layout.note(text![&of, note]));
        if let Some(left) = plan.left.as_ref().filter(|_| !plan.steps.is_empty()) {
            layout.line(format!("left for later: {left}"));
        }
    }

    /// The reason why the changes to the function are incomplete: a failure, or changes left for a later run.
    fn failure(&self) -> Option<Failure> {
        let plan = match &self.plan {
            Ok(plan) => plan,
            Err(failure) => return Some(failure.clone()),
        };
        let function = &self.function;
        if plan.is_of_unknown_function() {
            return Some(Failure::could_not(format!(
                "Lambda has no function {function}, and nothing is left to remove; check its name"
            )));
        }
        let left = plan.left.as_ref().filter(|_| self.is_made || plan.steps.is_empty())?;
        let or = plan.effect_of_now.as_ref().map(|effect| format!(", or use --now: {effect}"));
        let or = or.unwrap_or_default();
        Some(Failure::undone(format!("{function}: not finished: {left}; run the command again later{or}")))
    }
}

impl AttachPlan {
    fn planned(&self) -> impl Iterator<Item = &FunctionPlan> {
        self.functions.iter().filter_map(|part| part.plan.as_ref().ok())
    }

    /// The edits to the allow-list. Each consists of the place to edit, a function's ARN, and `true` to add the ARN or
    /// `false` to remove it.
    fn list_edits(&self) -> impl Iterator<Item = (&SettingPlace, &str, bool)> {
        self.planned().flat_map(|plan| {
            plan.steps.iter().filter_map(|step| match step {
                Step::List(place, is_listed) => Some((place, &*plan.target.arn, *is_listed)),
                _ => None,
            })
        })
    }
}

impl Plan for AttachPlan {
    /// Returns a string that is the same for two plans if they make the same changes to each function.
    fn identity(&self) -> String {
        let parts = self.functions.iter().map(|part| part.plan.as_ref().ok().map(FunctionPlan::differences));
        serde_json::json!(parts.collect::<Vec<_>>()).to_string()
    }

    fn question(&self) -> Option<Question> {
        let named = self.functions.iter().filter(|part| !part.steps().is_empty());
        let names: Vec<String> = named.map(|part| part.function.to_string()).collect();
        if names.is_empty() {
            return None;
        }
        let question = format!("{} {}?", self.route.word(), names.join(", "));
        let warnings: Vec<&str> = self.planned().filter_map(|plan| plan.warning.as_deref()).collect();
        if warnings.is_empty() {
            return Some(Question::new(question));
        }
        let text = format!("{}: {question}", warnings.join("; "));
        Some(Question { in_person: true, ..Question::new(text) })
    }

    fn log_group(&self) -> &str {
        &self.log_group
    }
}

impl Answer for AttachPlan {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        self.functions.iter().for_each(|part| part.lay_out(self.route, self.functions.len(), &mut layout));
        layout
    }

    /// Fails if any function failed, and combines several failures into one.
    fn end(&self) -> Result<(), Failure> {
        let failures = self.functions.iter().filter_map(|part| Some((part, part.failure()?)));
        let mut failures: Vec<_> = failures.collect();
        match (self.functions.len(), failures.len()) {
            (_, 0) => Ok(()),
            (1, _) => Err(failures.swap_remove(0).1),
            (all, failed) => {
                let mut text = Text::from(format!("{failed} of {all} functions failed:"));
                for (part, failure) in failures {
                    text.push(text!["\n  ", part.name(), ": ", failure.text()]);
                }
                Err(Failure::undone(text))
            }
        }
    }
}

impl Answer for Completed<AttachPlan> {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        let mut made = self.plan.functions.iter().filter(|part| part.is_made).peekable();
        if made.peek().is_some() {
            let is_left = made.any(|part| part.plan.as_ref().is_ok_and(|plan| plan.left.is_some()));
            layout.line(match is_left {
                true => "Not finished. The changes so far were made and verified.",
                false => "Done. The changes were made and verified.",
            });
        }
        layout
    }
}

impl Change for RouteFailures {
    type Plan = AttachPlan;
    type Done = Completed<AttachPlan>;

    /// Plans the changes to each function. With several functions, the plan contains any failures. With a single
    /// function, its failure is returned as the error.
    async fn plan(&self, operator: &Operator) -> Result<AttachPlan, Failure> {
        operator.interrupt.or(self.read(operator)).await
    }

    async fn perform(&self, operator: &Operator, plan: &AttachPlan) -> Result<Performed<Self>, Failure> {
        // Another operator may have changed the account after the first plan was made.
        let mut now = self.plan(operator).await?;
        if now.identity() != plan.identity() {
            return Ok(Performed::Outdated(now));
        }
        let result = match make(operator, &mut now).await {
            Ok(()) => self.check(operator, &mut now).await,
            Err(failure) => Err(failure),
        };
        let end = result.and_then(|()| now.end());
        Ok(Performed::Done(Completed { plan: now, notes: Vec::new() }, end))
    }

    fn activity(&self, done: &Completed<AttachPlan>) -> Option<Activity> {
        let changed = done.plan.functions.iter().filter(|part| part.steps_made > 0);
        let functions: Vec<_> = changed.map(|part| part.function.to_string()).collect();
        (!functions.is_empty()).then(|| Activity {
            what: self.route.word().into(),
            count: Some(functions.len() as u64),
            functions,
            ..Activity::default()
        })
    }
}

impl RouteFailures {
    /// Plans the changes to each function as if the functions before it were already on the allow-list.
    async fn read(&self, operator: &Operator) -> Result<AttachPlan, Failure> {
        let deployment = operator.deployment().await?;
        let (mut functions, mut listed) = (Vec::new(), Vec::new());
        for function in &self.functions {
            let read = Attachment::read(&operator.account, deployment.clone(), function).await;
            let plan = match read.map(|attachment| attachment.beside(&listed)) {
                Ok(attachment) => self.plan_of(operator, &attachment).await,
                Err(failure) => Err(failure),
            };
            let is_listed = |step: &Step| matches!(step, Step::List(_, true));
            let new = plan.iter().filter(|plan| plan.steps.iter().any(is_listed));
            listed.extend(new.map(|plan| plan.target.arn.clone()));
            functions.push(Part { function: function.clone(), plan, steps_made: 0, is_made: false });
        }
        match &*functions {
            [Part { plan: Err(failure), .. }] => Err(failure.clone()),
            _ => Ok(AttachPlan { functions, route: self.route, log_group: deployment.log_group }),
        }
    }

    async fn plan_of(&self, operator: &Operator, attachment: &Attachment) -> Result<FunctionPlan, Failure> {
        let at_once = match self.route {
            Route::Attach { may_move } => return attachment.attach(may_move),
            Route::Detach { at_once } => at_once,
        };
        let (deployment, now) = (&attachment.deployment, operator.now());
        let pauses = read_pauses(&operator.account, deployment).await?.unwrap_or_default();
        check_not_paused(&OpenPause::all_of(&pauses, now), &attachment.target, deployment)?;
        attachment.detach(&Leaving::read(operator, attachment, at_once).await?)
    }

    /// Waits until AWS shows the changes, except those of functions with a failed step.
    async fn check(&self, operator: &Operator, plan: &mut AttachPlan) -> Result<(), Failure> {
        let Operator { account, interrupt, .. } = operator;
        if plan.planned().next().is_none() {
            return Ok(());
        }
        let settled = async {
            let mut seen = self.read(operator).await?;
            for delay in delays() {
                if seen.planned().all(|plan| plan.steps.is_empty()) {
                    break;
                }
                account.aws.sleep(delay).await;
                seen = self.read(operator).await?;
            }
            Ok::<_, Failure>(seen)
        };
        let seen = tokio::select! {
            seen = settled => seen?,
            () = interrupt.raised() => {
                return Err(Failure::interrupted("every change was made, but not verified; run the command again"));
            }
        };
        for (part, seen) in plan.functions.iter_mut().zip(seen.functions) {
            match seen.plan {
                _ if part.plan.is_err() => {}
                Ok(seen) if seen.steps.is_empty() => part.is_made = true,
                Ok(seen) => part.plan = Err(not_visible(&seen)),
                Err(failure) => part.plan = Err(failure),
            }
        }
        Ok(())
    }
}

/// Performs the plan's steps, but skips a function's remaining steps after one fails.
async fn make(operator: &Operator, plan: &mut AttachPlan) -> Result<(), Failure> {
    make_each(operator, plan, |plan| plan.around_list().0).await?;
    let mut places: Vec<SettingPlace> = Vec::new();
    for (place, ..) in plan.list_edits() {
        if !places.contains(place) {
            places.push(place.clone());
        }
    }
    for place in places {
        edit_list(operator, plan, &place).await?;
    }
    make_each(operator, plan, |plan| plan.around_list().1).await
}

async fn make_each(
    operator: &Operator,
    plan: &mut AttachPlan,
    steps: impl Fn(&FunctionPlan) -> &[Step],
) -> Result<(), Failure> {
    let Operator { account, interrupt, .. } = operator;
    for part in &mut plan.functions {
        let Ok(plan) = &part.plan else { continue };
        let mut failed = None;
        for step in steps(plan) {
            if interrupt.is_raised() {
                return Err(interrupted());
            }
            match step.make(account, &plan.target, interrupt).await {
                Ok(()) => {
                    part.steps_made += 1;
                    report(operator, step, &plan.target);
                }
                Err(failure @ Failure::Interrupted(_)) => return Err(failure),
                Err(failure) => {
                    failed = Some(failure);
                    break;
                }
            }
        }
        if let Some(failure) = failed {
            part.plan = Err(failure);
        }
    }
    Ok(())
}

/// Edits the allow-list once for all functions, because CloudFormation accepts only one update at a time.
async fn edit_list(operator: &Operator, plan: &mut AttachPlan, place: &SettingPlace) -> Result<(), Failure> {
    let Operator { account, interrupt, .. } = operator;
    if interrupt.is_raised() {
        return Err(Failure::interrupted("the allow-list was not changed; run the command again"));
    }
    let apply = |list: &str| {
        let mut list = list.to_owned();
        for (_, arn, is_listed) in plan.list_edits().filter(|(of, ..)| *of == place) {
            list = if is_listed { list_with(&list, arn) } else { list_without(&list, arn) };
        }
        list
    };
    let edited = edit(account, place, &apply, interrupt).await;
    if let Err(failure @ Failure::Interrupted(_)) = edited {
        return Err(failure);
    }
    for part in &mut plan.functions {
        let Ok(FunctionPlan { target, steps, .. }) = &part.plan else { continue };
        let is_edit = |step: &&Step| matches!(step, Step::List(of, _) if of == place);
        let Some(step) = steps.iter().find(is_edit) else { continue };
        match &edited {
            Ok(()) => {
                part.steps_made += 1;
                report(operator, step, target);
            }
            Err(failure) => part.plan = Err(failure.clone()),
        }
    }
    Ok(())
}

fn report(operator: &Operator, step: &Step, target: &Target) {
    for difference in step.differences(target) {
        operator.follow.remark(&format!("  {}", difference.name()).into());
    }
}

fn not_visible(seen: &FunctionPlan) -> Failure {
    let missing: Vec<String> = seen.differences().iter().map(Difference::name).collect();
    Failure::undone(format!(
        "every change was made, but a minute later some are not visible ({}): somebody else changed them too, \
         or AWS needs longer; run the command again",
        missing.join(", ")
    ))
}

/// Fails if an open pause applies to this function only, because the pause would outlast the attachment.
fn check_not_paused(open: &[OpenPause], target: &Target, deployment: &Deployment) -> Result<(), Failure> {
    let own = [target.arn.clone(), target.invoked_arn()];
    let Some(open) = open.iter().find(|open| own.contains(&open.pause.target.to_string())) else {
        return Ok(());
    };
    let (name, from) = (open.name(), open.pause.from);
    let named = command_name(&open.pause.target.to_string(), &deployment.handler_arn);
    Err(Failure::undone(text![
        name,
        " has been paused since ",
        from,
        "; end the pause first: ",
        quoted(deployment.command(CommandName::Resume, [named]))
    ]))
}
