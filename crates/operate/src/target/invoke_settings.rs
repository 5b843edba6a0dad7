use std::collections::BTreeMap;

use aws_sdk_lambda::types::{DestinationConfig, FunctionEventInvokeConfig};
use serde::Serialize;

use crate::{Account, Failure};

/// What Lambda does with the asynchronous invocations of one qualifier of a function. Lambda's own default is `None`
/// everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InvokeSettings {
    /// `MaximumRetryAttempts`; Lambda's default is 2.
    pub retries: Option<i32>,
    /// `MaximumEventAgeInSeconds`; Lambda's default is 21,600.
    pub event_age: Option<i32>,
    /// The ARN that records of failed invocations go to.
    pub on_failure: Option<String>,
    /// The ARN that records of successful invocations go to.
    pub on_success: Option<String>,
}

impl InvokeSettings {
    /// The settings of each qualifier of a function that has any; the key of the function itself is `None`.
    pub(crate) async fn all(
        account: &Account,
        name: &str,
    ) -> Result<BTreeMap<Option<String>, Self>, Failure> {
        let mut pages =
            account.lambda.list_function_event_invoke_configs().function_name(name).into_paginator().send();
        let mut all = BTreeMap::new();
        while let Some(page) = pages.next().await {
            let page = page
                .map_err(|error| Failure::of_call("lambda:ListFunctionEventInvokeConfigs", name, &error))?;
            all.extend(page.function_event_invoke_configs().iter().map(Self::read));
        }
        Ok(all)
    }

    /// A destination's empty ARN is none.
    fn read(config: &FunctionEventInvokeConfig) -> (Option<String>, Self) {
        let qualifier = config.function_arn().and_then(|arn| arn.split(':').nth(7));
        let destinations = config.destination_config();
        let arn = |arn: Option<&str>| arn.filter(|arn| !arn.is_empty()).map(ToOwned::to_owned);
        let settings = Self {
            retries: config.maximum_retry_attempts(),
            event_age: config.maximum_event_age_in_seconds(),
            on_failure: arn(destinations
                .and_then(DestinationConfig::on_failure)
                .and_then(|it| it.destination())),
            on_success: arn(destinations
                .and_then(DestinationConfig::on_success)
                .and_then(|it| it.destination())),
        };
        (qualifier.filter(|qualifier| *qualifier != "$LATEST").map(ToOwned::to_owned), settings)
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_lambda::types::{OnFailure, OnSuccess};

    use super::*;

    const ARN: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";

    #[test]
    fn latest_is_the_function_itself() {
        let read = |arn: String| {
            InvokeSettings::read(&FunctionEventInvokeConfig::builder().function_arn(arn).build())
        };
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
        assert_eq!(InvokeSettings::read(&config.build()), (None, expected));
    }
}
