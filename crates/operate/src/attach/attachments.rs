//! The output of `comeback attach --list`: the functions that are attached to a deployment.

use std::collections::BTreeSet;

use comeback_engine::Policies;
use serde::Serialize;

use crate::change::Answer;
use crate::command::CommandName;
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::function::command_name;
use crate::layout::{Layout, Table};
use crate::operator::Operator;
use crate::text;
use crate::text::{Piece, Text, quoted};

/// The functions that are attached to a deployment.
#[derive(Debug, Serialize)]
pub struct Attachments {
    functions: Vec<AttachedFunction>,
    /// The patterns on the allow-list.
    patterns: Vec<String>,
    #[serde(skip)]
    none: Text,
    /// The reason why the functions that match the allow-list's patterns could not be listed.
    #[serde(skip)]
    unread: Option<Failure>,
}

#[derive(Debug, Serialize)]
struct AttachedFunction {
    /// The function's name, or its ARN if the function is in another account or region.
    function: String,
    /// The function's own retry policy; `None` if the stack's policy applies.
    policy: Option<String>,
}

/// Lists the functions on the deployment's allow-list, including the attached ones that match its patterns.
///
/// # Errors
///
/// Fails if the deployment cannot be read. If only the matching functions cannot be read, the result's `end` returns
/// the failure.
pub async fn attachments(operator: &Operator) -> Result<Attachments, Failure> {
    let deployment = operator.deployment().await?;
    let matched = operator.interrupt.or(deployment.matched(&operator.account)).await;
    let (matched, unread) = match matched {
        Ok(matched) => (matched, None),
        Err(failure) => (Vec::new(), Some(failure)),
    };
    let (patterns, listed): (Vec<&str>, Vec<&str>) =
        deployment.target_functions().partition(|entry| entry.contains('*'));
    let arns = listed.into_iter().map(ToOwned::to_owned).chain(matched.iter().map(ToString::to_string));
    let arns: BTreeSet<String> = arns.collect();
    let policies = deployment.policies().ok();
    Ok(Attachments {
        functions: arns.iter().map(|arn| AttachedFunction::of(arn, &deployment, policies.as_ref())).collect(),
        patterns: patterns.into_iter().map(ToOwned::to_owned).collect(),
        none: none_attached(&deployment),
        unread,
    })
}

/// The line in place of an empty list of attached functions.
pub(crate) fn none_attached(deployment: &Deployment) -> Text {
    let attach = deployment.command(CommandName::Attach, ["FUNCTION"]);
    text!["No function is attached. Attach one with ", quoted(attach), "."]
}

impl AttachedFunction {
    fn of(arn: &str, deployment: &Deployment, policies: Option<&Policies>) -> Self {
        let policy = policies.and_then(|policies| policies.entry_of(arn)).map(ToString::to_string);
        Self { function: command_name(arn, &deployment.handler_arn), policy }
    }
}

impl Answer for Attachments {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        match self.functions.is_empty() {
            true => layout.line(&self.none),
            false => layout.table(table(&self.functions)),
        }
        for pattern in &self.patterns {
            layout.note(format!(
                "the allow-list has the pattern {pattern}; functions that it matches are listed if their failures go to \
                 the retry queue"
            ));
        }
        layout
    }

    fn end(&self) -> Result<(), Failure> {
        self.unread.clone().map_or(Ok(()), Err)
    }
}

fn table(functions: &[AttachedFunction]) -> Table {
    let mut table = Table::new(["function", "policy"]);
    for AttachedFunction { function, policy } in functions {
        let name = Piece::Function { shown: function.clone(), name: function.clone() };
        let policy = policy.as_deref().unwrap_or("the stack's");
        table.row([name.into(), Text::from(policy)]);
    }
    table
}

#[cfg(test)]
mod tests {
    use comeback_engine::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::aws::InvokeSettings;
    use crate::aws::simulated::{Sample, SimulatedAws, function_arn, queue_arn};
    use crate::change::tests::plain;
    use crate::deployment::find::Which;

    /// An account in which `shop-cart` is attached and the handler's variables have these values.
    fn account(targets: &str, policies: &str) -> SimulatedAws {
        let others = ["shop-cart", "shop-stock"].map(Into::into).into();
        let aws = Sample { others, ..Sample::new(Timestamp::from_secs(1_700_000_000)) }.build();
        let variables = [("TARGET_FUNCTIONS", targets), ("POLICIES", policies)];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        aws.function_named(Sample::HANDLER).configuration.variables.extend(variables);
        let on_failure = Some(queue_arn(Sample::RETRY_QUEUE));
        let settings = InvokeSettings { on_failure, ..InvokeSettings::default() };
        aws.function_named("shop-cart").invoke_settings.insert(None, settings);
        aws
    }

    async fn list(aws: &SimulatedAws) -> Attachments {
        attachments(&Operator::new(aws.account(), Which::Stack(Sample::STACK.into()))).await.unwrap()
    }

    #[tokio::test]
    async fn functions_are_listed_with_their_policies() {
        let pattern = function_arn("shop-*");
        let targets = format!("{},{pattern}", function_arn("orders"));
        let list = list(&account(&targets, "shop-* MAX_AGE=2h")).await;
        assert_eq!(
            serde_json::to_value(&list).unwrap(),
            json!({
                "functions": [
                    {"function": "orders", "policy": null},
                    {"function": "shop-cart", "policy": "shop-* MAX_AGE=2h"},
                ],
                "patterns": [pattern],
            })
        );
        let expected = format!(
            "function | policy\norders | the stack's\nshop-cart | shop-* MAX_AGE=2h\nnote: the allow-list has the pattern \
             {pattern}; functions that it matches are listed if their failures go to the retry queue\n"
        );
        assert_eq!(plain(&list), expected);
        assert!(list.end().is_ok());
    }

    #[tokio::test]
    async fn list_without_a_function_names_the_command_that_attaches_one() {
        let text = plain(&list(&account("", "")).await);
        assert_eq!(text, "No function is attached. Attach one with `comeback attach FUNCTION`.\n");
    }

    #[tokio::test]
    async fn unread_functions_of_a_pattern_leave_the_others_listed() {
        let targets = format!("{},{}", function_arn("orders"), function_arn("shop-*"));
        let aws = account(&targets, "");
        aws.deny("lambda:ListFunctions");
        let list = list(&aws).await;
        assert!(plain(&list).contains("\norders | the stack's\n"), "{}", plain(&list));
        assert!(list.end().unwrap_err().to_string().contains("lambda:ListFunctions"));
    }
}
