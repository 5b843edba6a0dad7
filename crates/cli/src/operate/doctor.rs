//! `comeback doctor`: numbered checks of a deployment, of the functions attached to it, and of functions that read SQS
//! themselves. Facts are read once, and judged by pure functions.

pub(crate) mod checks;
mod consumers;
pub(crate) mod diagnosis;
mod facts;
pub(crate) mod findings;
mod fix;
mod functions;
mod handler;
mod policies;
mod probe;
mod queues;
mod rights;
#[cfg(test)]
mod sample;
pub(crate) mod text;

use clap::Args;

use crate::account::Failure;
use crate::clock::now;
use crate::failure;
use crate::operate::doctor::checks::{Check, PROBE, number, selected};
use crate::operate::doctor::diagnosis::{Outcome, or_unseen};
use crate::operate::doctor::facts::Facts;
use crate::operate::doctor::facts::consumers::Consumer;
use crate::operate::doctor::findings::{Finding, count, findings, is_healthy, of_consumers};
use crate::operate::doctor::text::write;
use crate::operate::function::FunctionName;
use crate::operate::session::{Common, Session};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback doctor
  comeback doctor --short
  comeback doctor orders:live --strict
  comeback doctor --only CB012,CB013 --json
  comeback doctor --probe

docs/doctor.md says what each check looks at. Nothing is changed; --probe sends one event.";

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Check only these functions, attached or not, and show what is wrong with the deployment; of one that reads SQS itself,
    /// check what comeback-sqs needs
    #[arg(value_name = "FUNCTION")]
    functions: Vec<FunctionName>,
    /// Run only these checks
    #[arg(long, value_name = "NUMBERS", value_parser = number, value_delimiter = ',', conflicts_with = "skip")]
    only: Vec<&'static str>,
    /// Run all checks except these
    #[arg(long, value_name = "NUMBERS", value_parser = number, value_delimiter = ',')]
    skip: Vec<&'static str>,
    /// Show only what is not ok
    #[arg(long)]
    short: bool,
    /// Exit with 3 for warnings too
    #[arg(long)]
    strict: bool,
    /// Send the example function an event that fails once, and follow it until it is retried
    #[arg(long)]
    probe: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn run(
    arguments: &DoctorArguments,
    session: Session,
) -> Result<(), failure::CommandFailure> {
    let checks = || selected(&arguments.only, &arguments.skip);
    let work = examine(&session, &arguments.functions, checks, arguments.probe);
    let (heading, findings) = session.interrupt.or(work).await?;
    let healthy = is_healthy(&findings, arguments.strict);
    session.answer(&serde_json::json!({"healthy": healthy, "checks": findings}));
    if !session.common.json {
        let is_shown = |finding: &Finding| {
            let is_asked_for = arguments.functions.is_empty() || finding.about.is_some();
            finding.diagnosis.outcome > Outcome::Ok || !arguments.short && is_asked_for
        };
        write(&mut anstream::stdout(), &heading, &findings, is_shown)?;
    }
    if healthy {
        return Ok(());
    }
    let [broken, warnings] = [Outcome::Broken, Outcome::Warning].map(|outcome| count(&findings, outcome));
    let strictly = if arguments.strict { format!(", and {warnings} a warning") } else { String::new() };
    let all = findings.len();
    Err(Failure::Undone(format!("{broken} of {all} checks found something broken{strictly}")).into())
}

/// The findings of all checks but the probe: of these functions, or of all if none is named.
pub(crate) async fn check(session: &Session, functions: &[FunctionName]) -> Result<Vec<Finding>, Failure> {
    let (_, findings) = examine(session, functions, || selected(&[], &[]), false).await?;
    Ok(findings)
}

/// What was checked, and the findings.
async fn examine<C: Iterator<Item = &'static Check>>(
    session: &Session,
    functions: &[FunctionName],
    checks: impl Fn() -> C,
    probe: bool,
) -> Result<(String, Vec<Finding>), Failure> {
    let mut consumers = Consumer::all(&session.account, functions).await?;
    let deployment = match session.deployment().await {
        Ok(deployment) => deployment,
        // Such functions need no deployment.
        Err(_) if all_read_sqs(functions, &consumers) => {
            return Ok((WITHOUT_DEPLOYMENT.to_owned(), of_consumers(&consumers, checks())));
        }
        Err(failure) => return Err(failure),
    };
    let handler = deployment.handler_arn.to_string();
    consumers.retain(|consumer| consumer.arn != handler);
    let mut facts = Facts::read(&session.account, deployment, functions, now()).await;
    facts.leave_out(&consumers);
    let mut findings = findings(&facts, functions, checks());
    let unsent = findings.iter_mut().find(|finding| finding.check.id == PROBE);
    if let Some(finding) = unsent.filter(|_| probe) {
        finding.diagnosis = or_unseen(probe::probe(&session.account, &facts.deployment, now()).await);
    }
    findings.extend(of_consumers(&consumers, checks()));
    Ok((heading(&facts), findings))
}

const WITHOUT_DEPLOYMENT: &str = "no deployment was found; a function that reads SQS itself needs none";

fn all_read_sqs(named: &[FunctionName], consumers: &[Consumer]) -> bool {
    let reads_sqs = |name: &FunctionName| consumers.iter().any(|it| name.any_version().names(&it.arn));
    !named.is_empty() && named.iter().all(reads_sqs)
}

fn heading(facts: &Facts) -> String {
    let of_stack = facts.deployment.stack.iter().map(|stack| format!(" of stack {stack}"));
    format!("{}{}", facts.deployment.handler, of_stack.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_that_read_sqs_need_no_deployment() {
        let consumers = [sample::consumer()];
        let named = |names: &[&str]| {
            let names: Vec<FunctionName> = names.iter().map(|name| name.parse().unwrap()).collect();
            all_read_sqs(&names, &consumers)
        };
        assert_eq!(["orders", "orders:live", &consumers[0].arn].map(|it| named(&[it])), [true; 3]);
        assert_eq!([named(&[]), named(&["orders", "invoices"])], [false; 2]);
    }
}
