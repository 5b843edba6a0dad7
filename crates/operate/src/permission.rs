use aws_sdk_iam::types::PolicyEvaluationDecisionType;
use serde::Serialize;

use crate::{Account, Failure};

/// Whether a role may do something, as IAM's simulator judges its policies, its boundary and the organization's.
/// Policies of the resource itself, such as a queue's, are not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may.
    Allowed,
    /// No policy allows it. One more policy can.
    NotAllowed,
    /// A policy denies it. No further policy can allow it.
    Denied,
}

impl Verdict {
    /// Whether the role may.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        self == Self::Allowed
    }
}

/// Asks IAM whether a role may do `action`, such as `sqs:SendMessage`, to a resource.
///
/// # Errors
///
/// The call does not work, or its answer has no decision.
pub async fn may(
    account: &Account,
    role_arn: &str,
    action: &str,
    resource_arn: &str,
) -> Result<Verdict, Failure> {
    let call = account
        .iam
        .simulate_principal_policy()
        .policy_source_arn(role_arn)
        .action_names(action)
        .resource_arns(resource_arn);
    let answer = call.send().await;
    let answer = answer.map_err(|error| Failure::of_call("iam:SimulatePrincipalPolicy", role_arn, &error))?;
    match answer.evaluation_results().first().map(|result| &result.eval_decision) {
        Some(PolicyEvaluationDecisionType::Allowed) => Ok(Verdict::Allowed),
        Some(PolicyEvaluationDecisionType::ExplicitDeny) => Ok(Verdict::Denied),
        Some(PolicyEvaluationDecisionType::ImplicitDeny) => Ok(Verdict::NotAllowed),
        other => {
            let decision = other.map_or("no decision", |other| other.as_str());
            Err(Failure::CouldNot(format!(
                "IAM gave {decision} on whether {role_arn} may do {action} to {resource_arn}"
            )))
        }
    }
}
