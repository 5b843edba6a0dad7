//! The page that lists functions, and the page about one function: its policy, schedule, waiting events and findings.

use askama::Template;
use axum::response::Response;
use comeback_engine::{FunctionArn, Kind, Policy, PolicyEntry, Setting, Unset};
use comeback_operate::attach::attachments::attachments;
use comeback_operate::deployment::Deployment;
use comeback_operate::doctor::findings::Finding;
use comeback_operate::durations;
use comeback_operate::function::{FunctionName, command_name};
use comeback_operate::handler_setting::parameter_of;
use comeback_operate::waiting::filter::WaitingFilter;
use comeback_operate::waiting::report::ReportQuery;
use comeback_operate::{Answer as _, CommandName, Failure, Layout, Text};
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
    let policy = match &policies {
        Ok(policies) => Ok(shown(&deployment, policies.of(&invoked), policies.entry_of(&invoked)).await),
        Err(refused) => Err(refused.iter().map(ToString::to_string).collect()),
    };
    let waiting = waiting(console, &name).await;
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

async fn waiting(console: &Console, name: &FunctionName) -> LogRead<Layout> {
    let wanted = WaitingFilter { functions: vec![name.clone()], ..WaitingFilter::default() };
    let listing = ReportQuery { wanted, ..ReportQuery::default() };
    console.waiting(|reading, now| reading.report(&listing, now).layout()).await
}

async fn shown(deployment: &Deployment, policy: &Policy, entry: Option<&PolicyEntry>) -> PolicyShown {
    let settings = settings(deployment, entry);
    let policy = policy.clone();
    let drawn = tokio::task::spawn_blocking(move || schedule::chart(&policy)).await;
    PolicyShown { settings, chart: drawn.expect("BUG: a schedule could not be drawn") }
}

fn settings(deployment: &Deployment, entry: Option<&PolicyEntry>) -> FigureTable {
    let rows: Vec<[String; 3]> =
        Setting::of_functions().filter_map(|setting| row(deployment, entry, setting)).collect();
    let column = |index: usize| rows.iter().map(|row| row[index].clone()).collect();
    FigureTable {
        caption: "Its policy, and where each value comes from".into(),
        columns: ["setting", "value", "from"]
            .into_iter()
            .enumerate()
            .map(|(index, head)| (head.to_owned(), column(index)))
            .collect(),
    }
}

fn row(deployment: &Deployment, entry: Option<&PolicyEntry>, setting: &Setting) -> Option<[String; 3]> {
    let of_entry = |name: &str| entry?.settings().find(|(set, _)| *set == name).map(|(_, value)| value);
    let is_replaced = match setting.name {
        "BACKOFFS" => ["BASE_BACKOFF", "MAX_BACKOFF"].iter().any(|name| of_entry(name).is_some()),
        "BASE_BACKOFF" | "MAX_BACKOFF" => of_entry("BACKOFFS").is_some(),
        _ => false,
    };
    let name = setting.name.to_owned();
    if let Some(value) = of_entry(setting.name) {
        let pattern = entry.map(PolicyEntry::pattern).unwrap_or_default();
        return Some([name, in_words(setting, value), format!("POLICIES, entry {pattern}")]);
    }
    let default = match setting.default {
        Unset::Is(text) => Some(text),
        Unset::Means(_) => None,
    };
    let set = deployment.variables.get(setting.name).filter(|value| !value.is_empty() && !is_replaced);
    let set = set.map(|value| in_words(setting, value));
    match (set, default.map(|text| in_words(setting, text))) {
        (Some(value), default) if default.as_ref() != Some(&value) => {
            let from = match &deployment.stack {
                Some(stack) => format!("stack {stack}, parameter {}", parameter_of(setting.name)),
                None => format!("variable of {}", deployment.handler),
            };
            Some([name, value, from])
        }
        (_, Some(default)) if !is_replaced => {
            let value = if default.is_empty() { "-".into() } else { default };
            Some([name, value, "default".into()])
        }
        _ => None,
    }
}

/// A setting's value, formatted as the commands print it.
fn in_words(setting: &Setting, value: &str) -> String {
    let time = match setting.kind {
        Kind::Seconds { .. } | Kind::SecondsUpTo { .. } => durations::read(value).ok(),
        _ => None,
    };
    time.map_or_else(|| value.to_owned(), durations::text)
}

#[cfg(test)]
mod tests {
    use comeback_engine::Timestamp;
    use comeback_operate::aws::simulated::Sample;
    use comeback_operate::{Operator, Which};

    use super::*;

    async fn rows(variables: &[(&str, &str)], function: &str) -> Vec<[String; 3]> {
        let aws = Sample::new(Timestamp::from_secs(1_700_000_000)).build();
        let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
        let mut deployment = operator.deployment().await.unwrap();
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        deployment.variables.extend(variables);
        let policies = deployment.policies().unwrap();
        let arn = invoked_arn(&deployment.arn_of(&function.parse().unwrap()));
        let table = settings(&deployment, policies.entry_of(&arn));
        (0..table.columns[0].1.len())
            .map(|row| [0, 1, 2].map(|it| table.columns[it].1[row].clone()))
            .collect()
    }

    fn of(rows: &[[String; 3]], setting: &str) -> Option<(String, String)> {
        let row = rows.iter().find(|row| row[0] == setting);
        row.map(|[_, value, from]| (value.clone(), from.clone()))
    }

    #[tokio::test]
    async fn each_value_says_where_it_comes_from() {
        let variables = [
            ("MAX_AGE", "172800"),
            ("BASE_BACKOFF", "10"),
            ("POLICIES", "orders MAX_AGE=2h BACKOFFS=20s,5m; ord* JITTER=none"),
        ];
        let pair = |value: &str, from: &str| Some((value.to_owned(), from.to_owned()));
        let orders = rows(&variables, "orders").await;
        assert_eq!(of(&orders, "MAX_AGE"), pair("2h", "POLICIES, entry orders"));
        assert_eq!(of(&orders, "BACKOFFS"), pair("20s,5m", "POLICIES, entry orders"));
        assert_eq!((of(&orders, "BASE_BACKOFF"), of(&orders, "MAX_BACKOFF")), (None, None), "replaced");
        assert_eq!(of(&orders, "JITTER"), pair("full", "default"), "the first entry alone counts");
        let others = rows(&variables, "export").await;
        assert_eq!(of(&others, "MAX_AGE"), pair("2d", "stack comeback, parameter MaxAge"));
        assert_eq!(of(&others, "BASE_BACKOFF"), pair("10s", "default"), "as the template writes it");
        assert_eq!(of(&others, "BACKOFFS"), None);
        assert_eq!(of(&others, "NON_RETRYABLE_ERRORS"), pair("-", "default"));
    }
}
