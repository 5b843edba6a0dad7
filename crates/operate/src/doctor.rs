//! The doctor: numbered checks on a deployment, on its functions, and on functions that read SQS directly.
//!
//! [`doctor`] returns a [`Diagnosis`] with one finding for each check and each subject, such as a function.

pub mod checks;
mod consumers;
pub mod diagnosis;
mod facts;
pub mod findings;
mod fix;
mod functions;
mod handler;
pub mod judgement;
mod policies;
mod probe;
mod queues;
mod rights;
#[cfg(test)]
mod tests;

use std::cell::Cell;

use crate::doctor::checks::{PROBE, selected};
use crate::doctor::diagnosis::{Diagnosis, Examination};
use crate::doctor::facts::Facts;
use crate::doctor::facts::consumers::Consumer;
use crate::doctor::findings::findings;
use crate::doctor::judgement::or_unseen;
use crate::failure::Failure;
use crate::function::FunctionName;
use crate::operator::Operator;

/// Runs the checks without changing anything. With [`Examination::probe`], also sends one event to the example
/// function.
///
/// # Errors
///
/// Fails if the deployment, its mappings or a named function's configuration cannot be read. If another fact cannot be
/// read, each check that needs it returns a warning.
pub async fn doctor(operator: &Operator, examination: &Examination) -> Result<Diagnosis, Failure> {
    let probes = Cell::new(false);
    let diagnosis = operator.interrupt.or(examine(operator, examination, &probes)).await;
    diagnosis.map_err(|failure| match failure {
        Failure::Interrupted(_) if probes.get() => {
            Failure::interrupted("the probe's event may have been sent")
        }
        failure => failure,
    })
}

/// Sets `probes` to true before the probe, which may send an event.
async fn examine(
    operator: &Operator,
    examination: &Examination,
    probes: &Cell<bool>,
) -> Result<Diagnosis, Failure> {
    let Examination { functions, only, skip, probe, .. } = examination;
    let checks = || selected(only, skip);
    let diagnosis = |heading, findings| Diagnosis::new(heading, findings, examination.clone());
    let mut consumers = Consumer::all(&operator.account, functions).await?;
    let deployment = match operator.deployment().await {
        Ok(deployment) => deployment,
        // Functions that read SQS directly need no deployment.
        Err(why) if all_read_sqs(functions, &consumers) => {
            let findings = findings(None, functions, &consumers, checks());
            return Ok(diagnosis(without_deployment(&why), findings));
        }
        Err(failure) => return Err(failure),
    };
    let handler = deployment.handler_arn.to_string();
    consumers.retain(|consumer| consumer.arn != handler);
    let mut facts = Facts::read(&operator.account, deployment, functions, operator.now()).await;
    facts.leave_out(&consumers);
    let mut findings = findings(Some(&facts), functions, &consumers, checks());
    let unsent = findings.iter_mut().find(|finding| finding.check.id == PROBE);
    if let Some(finding) = unsent.filter(|_| *probe) {
        probes.set(true);
        finding.judgement = or_unseen(probe::probe(operator, &facts.deployment).await);
    }
    Ok(diagnosis(heading(&facts), findings))
}

/// The heading if no deployment was read. The reason is part of it, because the deployment may exist all the same, and
/// may be broken.
fn without_deployment(why: &Failure) -> String {
    format!("a function that reads SQS itself needs no deployment, and none was read: {}", why.text())
}

fn all_read_sqs(named: &[FunctionName], consumers: &[Consumer]) -> bool {
    let reads_sqs = |name: &FunctionName| consumers.iter().any(|it| name.any_version().names(&it.arn));
    !named.is_empty() && named.iter().all(reads_sqs)
}

fn heading(facts: &Facts) -> String {
    let of_stack = facts.deployment.stack.iter().map(|stack| format!(" of stack {stack}"));
    format!("{}{}", facts.deployment.handler, of_stack.collect::<String>())
}
