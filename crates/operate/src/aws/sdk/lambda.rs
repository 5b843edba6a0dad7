//! Converts Lambda's responses to our own types.

use std::time::Duration;

use aws_sdk_lambda::error::ProvideErrorMetadata;
use aws_sdk_lambda::operation::get_function::GetFunctionOutput;
use aws_sdk_lambda::operation::get_function_configuration::GetFunctionConfigurationOutput;
use aws_sdk_lambda::operation::list_event_source_mappings::builders::ListEventSourceMappingsFluentBuilder;
use aws_sdk_lambda::types::{
    DestinationConfig, EventSourceMappingConfiguration, FunctionConfiguration, FunctionEventInvokeConfig,
    FunctionResponseType, LastUpdateStatus, OnFailure, OnSuccess,
};
use comeback_engine::{FunctionArn, QueueArn};

use crate::aws::sdk::Or as _;
use crate::aws::{Configuration, Function, INVOCATIONS_OF_A_POLLER, InvokeSettings, Mapping, UpdateStatus};
use crate::failure::Failure;

/// Lambda's default maximum number of provisioned pollers, for a mapping that sets only the minimum.
const DEFAULT_MAXIMUM_POLLERS: i32 = 200;

pub(super) fn function(answer: GetFunctionOutput) -> Function {
    let tags_error = answer.tags_error().map(|error| format!("{}: {}", error.error_code, error.message));
    let reserved = answer.concurrency().and_then(|it| it.reserved_concurrent_executions());
    Function {
        tags_error,
        reserved_concurrency: reserved.map(i32::unsigned_abs),
        tags: answer.tags.into_iter().flatten().collect(),
        configuration: answer.configuration.map(configuration).unwrap_or_default(),
    }
}

/// Builds a [`Configuration`] from either of two SDK types with the same members.
macro_rules! configuration {
    ($it:expr) => {{
        let it = $it;
        let environment = it.environment.as_ref();
        let variables = environment.and_then(|environment| environment.variables()).into_iter().flatten();
        let reason = || it.last_update_status_reason.clone().unwrap_or_else(|| "no reason given".into());
        Configuration {
            variables: variables.map(|(name, value)| (name.clone(), value.clone())).collect(),
            variables_error: environment
                .and_then(|environment| environment.error())
                .map(|error| error.message().unwrap_or("no reason is given").to_owned()),
            log_group: it.logging_config.as_ref().and_then(|it| it.log_group.clone()),
            log_level: it
                .logging_config
                .as_ref()
                .and_then(|it| Some(it.application_log_level.as_ref()?.as_str().to_owned())),
            update: match &it.last_update_status {
                Some(LastUpdateStatus::InProgress) => UpdateStatus::InProgress,
                Some(LastUpdateStatus::Failed) => UpdateStatus::Failed(reason()),
                _ => UpdateStatus::Done,
            },
            has_tenants: it.tenancy_config.is_some(),
            is_durable: it.durable_config.is_some(),
            dead_letter: it.dead_letter_config.and_then(|it| it.target_arn).filter(|arn| !arn.is_empty()),
            runtime: it.runtime.map(|runtime| runtime.as_str().to_owned()),
            timeout: Duration::from_secs(it.timeout.unwrap_or_default().unsigned_abs().into()),
            name: it.function_name.unwrap_or_default(),
            arn: it.function_arn.unwrap_or_default(),
            role_arn: it.role.unwrap_or_default(),
            revision: it.revision_id,
        }
    }};
}

pub(super) fn configuration(it: FunctionConfiguration) -> Configuration {
    configuration!(it)
}

pub(super) fn configuration_alone(it: GetFunctionConfigurationOutput) -> Configuration {
    configuration!(it)
}

/// Converts an event invoke config to its qualifier (`None` for the unqualified function) and its settings. Lambda
/// returns an empty ARN for a destination that is not set.
pub(super) fn invoke_settings(config: &FunctionEventInvokeConfig) -> (Option<String>, InvokeSettings) {
    let qualifier = config.function_arn().and_then(|arn| arn.parse::<FunctionArn>().ok()?.qualifier);
    let destinations = config.destination_config();
    let arn = |arn: Option<&str>| arn.filter(|arn| !arn.is_empty()).map(ToOwned::to_owned);
    let settings = InvokeSettings {
        retries: config.maximum_retry_attempts(),
        event_age: config.maximum_event_age_in_seconds(),
        on_failure: arn(destinations.and_then(|it| it.on_failure()?.destination())),
        on_success: arn(destinations.and_then(|it| it.on_success()?.destination())),
    };
    (qualifier.filter(|qualifier| qualifier != "$LATEST"), settings)
}

pub(super) fn destinations(settings: &InvokeSettings) -> DestinationConfig {
    let on_failure = settings.on_failure.as_ref().map(|arn| OnFailure::builder().destination(arn).build());
    let on_success = settings.on_success.as_ref().map(|arn| OnSuccess::builder().destination(arn).build());
    DestinationConfig::builder().set_on_failure(on_failure).set_on_success(on_success).build()
}

/// Returns true for Lambda's error "The function's execution role does not have permissions to call SendMessage on …".
pub(super) fn is_not_permitted_yet(error: &impl ProvideErrorMetadata) -> bool {
    error.code() == Some("InvalidParameterValueException")
        && error.message().is_some_and(|message| message.contains("does not have permissions"))
}

pub(super) async fn mappings(
    call: ListEventSourceMappingsFluentBuilder,
    of: &str,
) -> Result<Vec<Mapping>, Failure> {
    let mappings = call.into_paginator().items().send().try_collect().await;
    let mappings: Vec<_> = mappings.or_failure("lambda:ListEventSourceMappings", of)?;
    Ok(mappings.into_iter().filter_map(mapping).collect())
}

/// Converts an event source mapping from the SDK's type. Returns `None` if the source is not an SQS queue.
fn mapping(mapping: EventSourceMappingConfiguration) -> Option<Mapping> {
    let queue_arn = mapping.event_source_arn.filter(|arn| arn.parse::<QueueArn>().is_ok())?;
    let window = mapping.maximum_batching_window_in_seconds.unwrap_or(0);
    let maximum_pollers = mapping.provisioned_poller_config.and_then(|config| {
        config.maximum_pollers().or(config.minimum_pollers().and(Some(DEFAULT_MAXIMUM_POLLERS)))
    });
    let maximum_concurrency = mapping.scaling_config.and_then(|scaling| scaling.maximum_concurrency());
    Some(Mapping {
        uuid: mapping.uuid?,
        function_arn: mapping.function_arn.unwrap_or_default(),
        queue_arn,
        state: mapping.state.unwrap_or_default(),
        batch_size: mapping.batch_size.unwrap_or(10),
        window: Duration::from_secs(window.unsigned_abs().into()),
        reports_failures: mapping
            .function_response_types
            .unwrap_or_default()
            .contains(&FunctionResponseType::ReportBatchItemFailures),
        maximum_concurrency: maximum_concurrency
            .or_else(|| Some(maximum_pollers?.saturating_mul(INVOCATIONS_OF_A_POLLER.into()))),
        maximum_pollers,
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_lambda::error::ErrorMetadata;
    use aws_sdk_lambda::types::{
        DurableConfig, EnvironmentError, EnvironmentResponse, ProvisionedPollerConfig, ScalingConfig,
        TagsError, TenancyConfig, TenantIsolationMode,
    };

    use super::*;

    const ARN: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";

    #[test]
    fn latest_is_the_function_itself() {
        let read =
            |arn: String| invoke_settings(&FunctionEventInvokeConfig::builder().function_arn(arn).build());
        let none = InvokeSettings::default();
        assert_eq!(read(ARN.to_owned()), (None, none.clone()));
        assert_eq!(read(format!("{ARN}:$LATEST")), (None, none.clone()));
        assert_eq!(read(format!("{ARN}:live")), (Some("live".to_owned()), none));
    }

    #[test]
    fn an_empty_destination_is_none() {
        let destinations = DestinationConfig::builder()
            .on_failure(OnFailure::builder().destination("").build())
            .on_success(OnSuccess::builder().destination("arn:queue").build());
        let config = FunctionEventInvokeConfig::builder()
            .function_arn(ARN)
            .maximum_retry_attempts(0)
            .maximum_event_age_in_seconds(60)
            .destination_config(destinations.build());
        let expected = InvokeSettings {
            retries: Some(0),
            event_age: Some(60),
            on_failure: None,
            on_success: Some("arn:queue".into()),
        };
        assert_eq!(invoke_settings(&config.build()), (None, expected));
    }

    #[test]
    fn each_provisioned_poller_makes_ten_invocations_at_a_time() {
        let queue = "arn:aws:sqs:eu-west-1:123456789012:q";
        let base = EventSourceMappingConfiguration::builder().uuid("1").event_source_arn(queue);
        let limits = |it: EventSourceMappingConfiguration| {
            let mapping = mapping(it).unwrap();
            (mapping.maximum_concurrency, mapping.maximum_pollers)
        };
        assert_eq!(limits(base.clone().build()), (None, None));
        let scaling = ScalingConfig::builder().maximum_concurrency(7).build();
        assert_eq!(limits(base.clone().scaling_config(scaling).build()), (Some(7), None));
        let pollers = ProvisionedPollerConfig::builder().minimum_pollers(2).maximum_pollers(100).build();
        assert_eq!(limits(base.clone().provisioned_poller_config(pollers).build()), (Some(1_000), Some(100)));
        let fewest = ProvisionedPollerConfig::builder().minimum_pollers(2).build();
        let default = limits(base.provisioned_poller_config(fewest).build());
        assert_eq!(default, (Some(2_000), Some(200)), "Lambda's default");
    }

    #[test]
    fn only_a_missing_permission_passes_with_time() {
        let is_waiting = |code: &str, message: &str| {
            is_not_permitted_yet(&ErrorMetadata::builder().code(code).message(message).build())
        };
        let message = "The function's execution role does not have permissions to call SendMessage on q";
        assert!(is_waiting("InvalidParameterValueException", message));
        assert!(!is_waiting("InvalidParameterValueException", "The destination is not valid"));
        assert!(!is_waiting("AccessDeniedException", message));
    }

    #[test]
    fn tenants_and_durable_executions_are_seen() {
        let kind = |it: FunctionConfiguration| {
            let read = configuration(it);
            (read.has_tenants, read.is_durable)
        };
        let ordinary = FunctionConfiguration::builder();
        assert_eq!(kind(ordinary.clone().build()), (false, false));
        let durable = DurableConfig::builder().execution_timeout(60).build();
        assert_eq!(kind(ordinary.clone().durable_config(durable).build()), (false, true));
        let tenancy = TenancyConfig::builder().tenant_isolation_mode(TenantIsolationMode::PerTenant).build();
        assert_eq!(kind(ordinary.tenancy_config(tenancy.unwrap()).build()), (true, false));
    }

    #[test]
    fn unreadable_parts_have_their_reason() {
        let denied = EnvironmentError::builder().error_code("AccessDenied").message("no key").build();
        let variables = EnvironmentResponse::builder().error(denied).build();
        let tags = TagsError::builder().error_code("AccessDenied").message("no tags").build().unwrap();
        let unreadable = FunctionConfiguration::builder().environment(variables).build();
        let read = function(GetFunctionOutput::builder().configuration(unreadable).tags_error(tags).build());
        assert_eq!(read.tags_error.as_deref(), Some("AccessDenied: no tags"));
        assert_eq!(read.configuration.variables_error.as_deref(), Some("no key"));
    }

    #[test]
    fn an_update_ends_or_fails_with_a_reason() {
        let update = |status: LastUpdateStatus, reason: Option<&str>| {
            let configuration = FunctionConfiguration::builder().last_update_status(status);
            super::configuration(configuration.set_last_update_status_reason(reason.map(Into::into)).build())
                .update
        };
        assert_eq!(update(LastUpdateStatus::InProgress, None), UpdateStatus::InProgress);
        assert_eq!(update(LastUpdateStatus::Successful, None), UpdateStatus::Done);
        let failed = |reason: &str| UpdateStatus::Failed(reason.into());
        assert_eq!(update(LastUpdateStatus::Failed, Some("no subnet")), failed("no subnet"));
        assert_eq!(update(LastUpdateStatus::Failed, None), failed("no reason given"));
    }
}
