//! Withdraws requests that were made with `comeback retry` or `comeback cancel` and have not ended yet.

use std::time::Duration;

use comeback_engine::{PauseTarget, Pauses, Request, RequestKind};
use serde::Serialize;

use crate::change::{Answer, Change, Completed, Performed, Plan, Question};
use crate::command::CommandName;
use crate::deployment::Deployment;
use crate::durations;
use crate::failure::Failure;
use crate::function::FunctionName;
use crate::layout::Layout;
use crate::numbers::counted;
use crate::operator::Operator;
use crate::operator_line::Activity;
use crate::pauses::parameter::{PausesParameter, WrittenEdit};
use crate::pauses::requests::RequestInForce;
use crate::pauses::{self, forgotten_note, named, noticed_within};
use crate::text;
use crate::text::quoted;

/// A [`Change`] that withdraws requests of one kind: those for one function, or those that cover every function.
#[derive(Clone, Debug)]
pub struct WithdrawRequests {
    /// The function that the requests name, or `None` for requests for every function.
    pub function: Option<FunctionName>,
    /// The kind of request to withdraw.
    pub kind: RequestKind,
}

/// The plan for a [`WithdrawRequests`].
#[derive(Clone, Debug, Serialize)]
pub struct WithdrawPlan {
    withdrawn: Vec<RequestInForce>,
    noticed_within_seconds: Option<u64>,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    kind: RequestKind,
    #[serde(skip)]
    target: PauseTarget,
    /// Requests of the same kind for other targets, which stay in force.
    #[serde(skip)]
    others: Vec<RequestInForce>,
    #[serde(skip)]
    deployment: Deployment,
}

impl Change for WithdrawRequests {
    type Plan = WithdrawPlan;
    type Done = Completed<WithdrawPlan>;

    async fn plan(&self, operator: &Operator) -> Result<WithdrawPlan, Failure> {
        let deployment = operator.deployment().await?;
        let Operator { account, interrupt, .. } = operator;
        let read = async { PausesParameter::of(account, &deployment)?.read().await };
        let pauses = interrupt.or(read).await?;
        let target = pauses::target(&deployment, self.function.as_ref())?;
        let requests = RequestInForce::all_of(&pauses, operator.now()).into_iter();
        let requests = requests.filter(|request| request.0.kind == self.kind);
        let (withdrawn, others) = requests.partition(|request| request.0.target == target);
        Ok(WithdrawPlan {
            withdrawn,
            noticed_within_seconds: noticed_within(&deployment).map(|noticed| noticed.as_secs()),
            name: named(self.function.as_ref()),
            kind: self.kind,
            target,
            others,
            deployment,
        })
    }

    async fn perform(&self, operator: &Operator, plan: &WithdrawPlan) -> Result<Performed<Self>, Failure> {
        let now = self.plan(operator).await?;
        if now.identity() != plan.identity() {
            return Ok(Performed::Outdated(now));
        }
        let parameter = PausesParameter::of(&operator.account, &plan.deployment)?;
        let is_it = |request: &Request| request.kind == self.kind && request.target == plan.target;
        let make = |pauses: &Pauses| Ok(pauses.withdrawn(is_it));
        let is_in = |pauses: &Pauses| make(pauses).as_ref() == Ok(pauses);
        let WrittenEdit { forgotten, checked } = parameter.edit(operator.now(), make, is_in).await?;
        let notes = forgotten_note(&forgotten).into_iter().collect();
        Ok(Performed::Done(Completed { plan: plan.clone(), notes }, checked))
    }

    fn activity(&self, done: &Completed<WithdrawPlan>) -> Option<Activity> {
        Some(Activity {
            what: format!("{} --withdraw", self.kind.name()),
            functions: vec![done.plan.target.to_string()],
            ..Activity::default()
        })
    }
}

impl Plan for WithdrawPlan {
    fn identity(&self) -> String {
        format!("{:?}", (&self.target, &self.withdrawn))
    }

    fn question(&self) -> Option<Question> {
        let question =
            || Question::new(format!("withdraw the {} requests for {}?", self.kind.name(), self.name));
        (!self.withdrawn.is_empty()).then(question)
    }

    fn log_group(&self) -> &str {
        &self.deployment.log_group
    }
}

impl Answer for WithdrawPlan {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        self.withdrawn
            .iter()
            .for_each(|request| layout.line(text![format!("{}: ", request.title()), request.line()]));
        layout
    }

    fn end(&self) -> Result<(), Failure> {
        if !self.withdrawn.is_empty() {
            return Ok(());
        }
        let list = quoted(self.deployment.command(CommandName::Pause, ["--list"]));
        let nothing = format!("no {} request for {} is in force; ", self.kind.name(), self.name);
        Err(Failure::undone(text![nothing, list, " shows the others"]))
    }
}

impl Answer for Completed<WithdrawPlan> {
    fn layout(&self) -> Layout {
        let WithdrawPlan { withdrawn, noticed_within_seconds, name, kind, others, .. } = &self.plan;
        let mut layout = Layout::default();
        let kind = kind.name();
        let [one, many] = [format!("{kind} request was"), format!("{kind} requests were")];
        let requests = counted(withdrawn.len() as u64, &one, &many);
        layout.line(format!("{name}: {requests} withdrawn; events not reached yet keep their own due times"));
        if let Some(noticed) = noticed_within_seconds.map(Duration::from_secs).map(durations::text) {
            layout.line(format!("Takes effect within {noticed}; until then, the handler may still {kind}."));
        }
        others.iter().for_each(|other| layout.line(text!["Still in force: ", other.line()]));
        self.notes.iter().for_each(|note| layout.note(note));
        layout
    }
}
