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
mod sample;

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
    operator.interrupt.or(examine(operator, examination)).await
}

async fn examine(operator: &Operator, examination: &Examination) -> Result<Diagnosis, Failure> {
    let Examination { functions, only, skip, probe, .. } = examination;
    let checks = || selected(only, skip);
    let diagnosis = |heading, findings| Diagnosis::new(heading, findings, examination.clone());
    let mut consumers = Consumer::all(&operator.account, functions).await?;
    let deployment = match operator.deployment().await {
        Ok(deployment) => deployment,
        // Functions that read SQS directly need no deployment.
        Err(_) if all_read_sqs(functions, &consumers) => {
            let findings = findings(None, functions, &consumers, checks());
            return Ok(diagnosis(WITHOUT_DEPLOYMENT.to_owned(), findings));
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
        finding.judgement = or_unseen(probe::probe(operator, &facts.deployment).await);
    }
    Ok(diagnosis(heading(&facts), findings))
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
    use comeback_engine::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::aws::simulated::{Sample, SimulatedAws};
    use crate::doctor::judgement::CheckOutcome;
    use crate::operator::Which;

    fn attached() -> SimulatedAws {
        Sample { is_attached: true, ..Sample::new(Timestamp::from_secs(1_700_000_000)) }.build()
    }

    async fn examined(aws: &SimulatedAws, examination: &Examination) -> Diagnosis {
        let operator = Operator::new(aws.account(), Which::Stack(Sample::STACK.into()));
        doctor(&operator, examination).await.unwrap()
    }

    fn problems(diagnosis: &Diagnosis) -> Vec<&str> {
        let problems = diagnosis.checks.iter().filter(|finding| finding.judgement.outcome > CheckOutcome::Ok);
        problems.map(|finding| finding.check.id).collect()
    }

    #[tokio::test]
    async fn sample_is_healthy_until_something_breaks() {
        let aws = attached();
        let strict = Examination { is_strict: true, ..Examination::default() };
        let diagnosis = examined(&aws, &strict).await;
        assert_eq!((problems(&diagnosis), diagnosis.healthy), (vec![], true));
        aws.state().mappings[0].state = "Disabled".into();
        aws.function_named(Sample::ORDERS).recursion_allowed = false;
        let diagnosis = examined(&aws, &strict).await;
        assert_eq!((problems(&diagnosis), diagnosis.healthy), (vec!["CB001", "CB107"], false));
        let value = serde_json::to_value(&diagnosis).unwrap();
        assert_eq!(value["healthy"], json!(false));
        assert_eq!(value["checks"][0]["id"], json!("CB001"));
        let fix =
            "aws lambda update-event-source-mapping --uuid 6ec5b0c5-0b8f-4a36-b1a4-6b1a2e2f9d10 --enabled";
        assert_eq!(value["checks"][0]["fix"], json!(fix));
    }

    #[tokio::test]
    async fn denied_facts_are_warnings() {
        let aws = attached();
        aws.deny("iam:SimulatePrincipalPolicy");
        let diagnosis = examined(&aws, &Examination::default()).await;
        let expected = ["CB030", "CB031", "CB032", "CB033", "CB034", "CB105", "CB109"];
        assert_eq!((problems(&diagnosis), diagnosis.healthy), (expected.to_vec(), true));
    }

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
