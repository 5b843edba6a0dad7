use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_ssm::operation::get_parameter::GetParameterError;
use comeback_delivery::classify;
use comeback_engine::{CallFailure, PAUSES_TIMEOUT};
use tokio::time::timeout;

use super::failure;

/// The SSM parameter that holds the pauses, and the client that reads it.
#[derive(Debug)]
pub(super) struct PausesParameter {
    ssm: aws_sdk_ssm::Client,
    name: String,
}

impl PausesParameter {
    pub(super) fn new(shared: &SdkConfig, name: &str) -> Self {
        // The batch waits for it, and the next read comes soon.
        let ssm = aws_sdk_ssm::config::Builder::from(shared)
            .timeout_config(TimeoutConfig::builder().operation_timeout(PAUSES_TIMEOUT).build())
            .retry_config(RetryConfig::disabled());
        Self { ssm: aws_sdk_ssm::Client::from_conf(ssm.build()), name: name.into() }
    }

    /// Its text; `None` if there is no such parameter, as long as nobody has paused anything.
    pub(super) async fn read(&self) -> Result<Option<String>, CallFailure> {
        let call = self.ssm.get_parameter().name(&self.name);
        match timeout(PAUSES_TIMEOUT, call.send()).await {
            Ok(Ok(answer)) => {
                let text = answer.parameter.and_then(|parameter| parameter.value);
                text.map(Some)
                    .ok_or_else(|| failure::no_pauses("the parameter that PAUSES names has no value"))
            }
            Ok(Err(error)) => match error.as_service_error() {
                Some(GetParameterError::ParameterNotFound(_)) => Ok(None),
                _ => Err(failure::of_pauses(&classify(&error))),
            },
            Err(_) => Err(failure::no_pauses("the parameter that PAUSES names was not read within a second")),
        }
    }
}
