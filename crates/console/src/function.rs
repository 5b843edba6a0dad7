//! The page that lists functions, and the page about one function: its policy, schedule, waiting events and findings.

use askama::Template;
use axum::response::Response;
use comeback_engine::{FunctionArn, PauseTarget, Policy, PolicyEntry};
use comeback_operate::attach::attachments::attachments;
use comeback_operate::deployment::{Deployment, Unlisted};
use comeback_operate::doctor::findings::Finding;
use comeback_operate::function::{FunctionName, command_name};
use comeback_operate::function_policy::policy_table;
use comeback_operate::waiting::filter::WaitingFilter;
use comeback_operate::waiting::reading::Reading;
use comeback_operate::waiting::report::ReportQuery;
use comeback_operate::{Answer as _, CommandName, Failure, Layout, Table, Text};
use comeback_rehearsal::figure::{Chart, FigureTable};
use comeback_rehearsal::schedule;

use crate::console::{Console, LogRead};
use crate::dead::Groups;
use crate::doctor::Findings;
use crate::page::{Frame, Problem, Visit, ok};
use crate::response::encoded;

pub(super) async fn function(visit: Visit) -> Result<Response, Problem> {
    let name = visit.query().get("name").map(str::parse::<FunctionName>);
    match name.transpose().map_err(Problem::bad_request)? {
        Some(name) => one(&visit, name).await,
        None => all(&visit).await,
    }
}

#[derive(Template)]
#[template(path = "functions.html")]
struct FunctionsPage {
    frame: Frame,
    attachments: Layout,
    /// The reason why the page's list of functions is incomplete; `None` if it is complete.
    unread: Option<Text>,
    command: String,
}

async fn all(visit: &Visit) -> Result<Response, Problem> {
    let attachments = attachments(&visit.console.asking().await?).await?;
    ok(&FunctionsPage {
        attachments: attachments.layout(),
        unread: attachments.end().err().map(|failure| failure.text()),
        frame: visit.frame("Functions", None),
        command: visit.console.command(CommandName::Attach, ["--list"]),
    })
}

#[derive(Template)]
#[template(path = "function.html")]
struct FunctionPage<'d> {
    frame: Frame,
    href: String,
    /// The warning for a function that is not on the allow-list; `None` for a listed function.
    unlisted: Option<&'static str>,
    policy: Result<PolicyShown, Vec<String>>,
    waiting: LogRead<Layout>,
    /// The function's dead-letters; `None` before the first scan.
    dead: Option<Groups>,
    findings: Result<Findings<'d>, Text>,
    attach: String,
    detach: String,
}

struct PolicyShown {
    settings: FigureTable,
    chart: Chart,
}

async fn one(visit: &Visit, name: FunctionName) -> Result<Response, Problem> {
    let console = &visit.console;
    let deployment = console.deployment().await.value?;
    let arn = deployment.arn_of(&name);
    let invoked = invoked_arn(&arn);
    let policies = deployment.policies();
    let unlisted = policies.as_ref().ok().and_then(|policies| Unlisted::of(policies, &invoked));
    let policy = match &policies {
        Ok(policies) => Ok(shown(&deployment, policies.of(&invoked), policies.entry_of(&invoked)).await),
        Err(refused) => Err(refused.iter().map(ToString::to_string).collect()),
    };
    let waiting = waiting(console, &name, &invoked).await;
    let checks = console.checks(Some(&name)).await.value;
    let of_function = |finding: &&Finding| finding.about.is_some();
    let findings = checks.as_ref().map_err(Failure::text);
    let findings = findings.map(|diagnosis| Findings::of(diagnosis.checks.iter().filter(of_function)));
    let shown_name = command_name(&arn.to_string(), &deployment.handler_arn);
    ok(&FunctionPage {
        frame: visit
            .frame(format!("Function {name}"), None)
            .of(waiting.at().unwrap_or_else(|| console.now())),
        href: encoded(&shown_name),
        unlisted: unlisted.map(|unlisted| match unlisted {
            Unlisted::DeadLettered => "It is not on the allow-list: the handler dead-letters its events.",
            Unlisted::Kept => "The allow-list is empty: the handler keeps every event, and retries none.",
        }),
        policy,
        waiting,
        dead: Groups::in_scan(console, Some(&name)),
        findings,
        attach: deployment.command(CommandName::Attach, [&*shown_name]).to_string(),
        detach: deployment.command(CommandName::Detach, [&*shown_name]).to_string(),
    })
}

/// Returns the function's ARN in the form found in invocation records, which always has a qualifier.
fn invoked_arn(arn: &FunctionArn) -> String {
    let qualifier = arn.qualifier.clone().or_else(|| Some("$LATEST".into()));
    FunctionArn { qualifier, ..arn.clone() }.to_string()
}

/// The report on the function's waiting events, with only the requests that cover the function or one of its aliases.
async fn waiting(console: &Console, name: &FunctionName, invoked: &str) -> LogRead<Layout> {
    let wanted = WaitingFilter { functions: vec![name.clone()], ..WaitingFilter::default() };
    let listing = ReportQuery { wanted, ..ReportQuery::default() };
    let covers = |target: &PauseTarget| target.covers(invoked) || name.names(&target.to_string());
    let look = |reading: &Reading, now| {
        let mut report = reading.report(&listing, now);
        report.requests.iter_mut().for_each(|requests| requests.retain(|request| covers(&request.0.target)));
        report.layout()
    };
    console.waiting(look).await
}

async fn shown(deployment: &Deployment, policy: &Policy, entry: Option<&PolicyEntry>) -> PolicyShown {
    let settings = settings(deployment, entry);
    let policy = policy.clone();
    let drawn = tokio::task::spawn_blocking(move || schedule::chart(&policy)).await;
    PolicyShown { settings, chart: drawn.expect("BUG: a schedule could not be drawn") }
}

/// A function's settings as the figures' table, which does not cut long values.
fn settings(deployment: &Deployment, entry: Option<&PolicyEntry>) -> FigureTable {
    let Table { columns, rows } = policy_table(deployment, entry);
    let cells = |index: usize| rows.iter().map(|row| row[index].to_string()).collect();
    let columns = columns.iter().enumerate().map(|(index, column)| (column.head.to_owned(), cells(index)));
    FigureTable { caption: "Its policy, and where each value comes from".into(), columns: columns.collect() }
}
