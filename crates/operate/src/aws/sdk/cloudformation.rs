//! Converts CloudFormation's responses to our own types.

use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use aws_sdk_cloudformation::operation::update_stack::builders::UpdateStackFluentBuilder;
use aws_sdk_cloudformation::types::{self, Capability, Parameter, StackResourceSummary};

use crate::aws::{Stack, StackEvent, StackResource};

/// Returns true if the error means that the stack does not exist. CloudFormation has no error type for this.
pub(super) fn is_gone(error: &impl ProvideErrorMetadata) -> bool {
    error.code() == Some("ValidationError")
        && error.message().is_some_and(|message| message.contains("does not exist"))
}

pub(super) fn stack(name: &str, stack: types::Stack) -> Stack {
    let status = stack.stack_status.expect("BUG: CloudFormation's model has a status in every stack");
    let parameters = stack.parameters.unwrap_or_default().into_iter();
    Stack {
        name: name.to_owned(),
        status: status.as_str().to_owned(),
        parameters: parameters
            .filter_map(|it| Some((it.parameter_key?, it.parameter_value.unwrap_or_default())))
            .collect(),
        capabilities: stack
            .capabilities
            .unwrap_or_default()
            .iter()
            .map(|capability| capability.as_str().to_owned())
            .collect(),
        updated: stack.last_updated_time.and_then(|at| at.to_millis().ok()),
        parent: stack.parent_id,
    }
}

pub(super) fn resource(resource: StackResourceSummary) -> StackResource {
    StackResource {
        logical_id: resource.logical_resource_id.unwrap_or_default(),
        physical_id: resource.physical_resource_id,
        kind: resource.resource_type.unwrap_or_default(),
    }
}

pub(super) fn event(event: types::StackEvent) -> StackEvent {
    StackEvent {
        is_of_stack: event.physical_resource_id == event.stack_id,
        logical_id: event.logical_resource_id.unwrap_or_default(),
        status: event.resource_status.map(|status| status.as_str().to_owned()).unwrap_or_default(),
        reason: event.resource_status_reason,
    }
}

/// Builds the `UpdateStack` request that changes one parameter of a stack and keeps the template and all other
/// parameters.
pub(super) fn update(
    call: UpdateStackFluentBuilder,
    stack: &Stack,
    parameter: &str,
    value: &str,
) -> UpdateStackFluentBuilder {
    let parameters = stack.parameters.keys().map(|key| {
        let built = Parameter::builder().parameter_key(key);
        if key == parameter { built.parameter_value(value) } else { built.use_previous_value(true) }.build()
    });
    // The update needs the capabilities of the last deployment. A SAM template uses a macro, and an update may expand a
    // macro only with the capability `CAPABILITY_AUTO_EXPAND`.
    let mut capabilities: Vec<Capability> =
        stack.capabilities.iter().map(|it| Capability::from(&**it)).collect();
    if !capabilities.contains(&Capability::CapabilityAutoExpand) {
        capabilities.push(Capability::CapabilityAutoExpand);
    }
    call.stack_name(&stack.name)
        .use_previous_template(true)
        .set_parameters(Some(parameters.collect()))
        .set_capabilities(Some(capabilities))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use aws_sdk_cloudformation::error::ErrorMetadata;

    use super::*;
    use crate::aws::sdk::tests::answering;
    use crate::aws::{Aws as _, MOST_EVENT_PAGES};

    #[test]
    fn missing_stack_differs_from_other_errors() {
        let is_gone = |code: &str, message: &str| {
            super::is_gone(&ErrorMetadata::builder().code(code).message(message).build())
        };
        let gone = "Stack with id comeback does not exist";
        assert!(is_gone("ValidationError", gone));
        assert!(!is_gone("ValidationError", "1 validation error detected"));
        assert!(!is_gone("AccessDenied", gone) && !super::is_gone(&ErrorMetadata::builder().build()));
    }

    /// Reads a stack's events from `pages` pages of two events, numbered from 0, and returns the events' resources. Any
    /// further page fails. The page `start`, if any, has the event that began the stack's update.
    async fn resources_with_events(pages: usize, start: Option<usize>) -> Vec<String> {
        let account = answering(move |request| {
            let page = request.split("NextToken=").nth(1).map_or(0, |token| token.parse().unwrap());
            if page == pages {
                return (400, "", String::new());
            }
            let event = |name: &str, id: &str, status: &str| {
                format!(
                    "<member><StackId>s</StackId><LogicalResourceId>{name}{page}</LogicalResourceId>\
                     <PhysicalResourceId>{id}</PhysicalResourceId><ResourceStatus>{status}</ResourceStatus></member>"
                )
            };
            let status = if start == Some(page) { "UPDATE_IN_PROGRESS" } else { "UPDATE_COMPLETE" };
            let events = event("resource", "r", "UPDATE_FAILED") + &event("stack", "s", status);
            let next = format!("<NextToken>{}</NextToken>", page + 1);
            let body = format!(
                "<DescribeStackEventsResponse><DescribeStackEventsResult><StackEvents>{events}</StackEvents>{next}\
                 </DescribeStackEventsResult></DescribeStackEventsResponse>"
            );
            (200, "", body)
        });
        let events = account.await.stack_events("comeback").await.unwrap();
        events.into_iter().map(|event| event.logical_id).collect()
    }

    #[tokio::test]
    async fn events_are_read_back_to_the_start_of_the_update() {
        let expected = ["resource0", "stack0", "resource1", "stack1"];
        assert_eq!(resources_with_events(3, Some(1)).await, expected);
        assert_eq!(resources_with_events(2, None).await, expected, "the third page fails");
        assert_eq!(resources_with_events(usize::MAX, None).await.len(), 2 * MOST_EVENT_PAGES);
    }

    #[tokio::test]
    async fn an_update_changes_one_parameter_of_the_same_template() {
        let account = answering(|_| (200, "", String::new())).await;
        let update = |capabilities: &[&str]| {
            let parameters = ["MaxAge", "TargetFunctions"].map(|key| (key.to_owned(), "old".to_owned()));
            let stack = Stack {
                name: "comeback".into(),
                parameters: BTreeMap::from(parameters),
                capabilities: capabilities.iter().map(ToString::to_string).collect(),
                ..Stack::default()
            };
            super::update(account.cloudformation.update_stack(), &stack, "TargetFunctions", "new")
        };
        let call = update(&["CAPABILITY_IAM"]);
        let input = call.as_input();
        assert_eq!(
            (input.get_stack_name().as_deref(), *input.get_use_previous_template()),
            (Some("comeback"), Some(true))
        );
        let expected = [
            Parameter::builder().parameter_key("MaxAge").use_previous_value(true).build(),
            Parameter::builder().parameter_key("TargetFunctions").parameter_value("new").build(),
        ];
        assert_eq!(input.get_parameters().as_deref(), Some(&expected[..]));
        for capabilities in [&["CAPABILITY_IAM"][..], &["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]] {
            let call = update(capabilities);
            let expected = [Capability::CapabilityIam, Capability::CapabilityAutoExpand];
            assert_eq!(
                call.as_input().get_capabilities().as_deref(),
                Some(&expected[..]),
                "a macro is expanded"
            );
        }
    }
}
