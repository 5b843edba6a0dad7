use std::time::Duration;

use crate::Failure;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};

/// Of one try of a call. A long poll of SQS takes 20 s.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The SDK's clients for one region, with the operator's credentials.
#[derive(Clone, Debug)]
pub struct Account {
    /// CloudFormation.
    pub cloudformation: aws_sdk_cloudformation::Client,
    /// CloudWatch.
    pub cloudwatch: aws_sdk_cloudwatch::Client,
    /// IAM.
    pub iam: aws_sdk_iam::Client,
    /// KMS.
    pub kms: aws_sdk_kms::Client,
    /// Lambda.
    pub lambda: aws_sdk_lambda::Client,
    /// CloudWatch Logs.
    pub logs: aws_sdk_cloudwatchlogs::Client,
    /// SQS.
    pub sqs: aws_sdk_sqs::Client,
    /// The Systems Manager's parameters.
    pub ssm: aws_sdk_ssm::Client,
    /// STS.
    pub sts: aws_sdk_sts::Client,
}

impl Account {
    /// Reads the environment and the profiles as the AWS CLI does. `region` and `profile` come before both.
    ///
    /// # Errors
    ///
    /// No region is named anywhere.
    pub async fn connect(region: Option<String>, profile: Option<&str>) -> Result<Self, Failure> {
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .retry_config(RetryConfig::standard())
            .timeout_config(
                TimeoutConfig::builder()
                    .connect_timeout(CONNECT_TIMEOUT)
                    .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                    .build(),
            );
        if let Some(profile) = profile {
            loader = loader.profile_name(profile);
        }
        if let Some(region) = region {
            loader = loader.region(Region::new(region));
        }
        let config = loader.load().await;
        if config.region().is_none() {
            let how = "give --region, or set AWS_REGION or the profile's region";
            return Err(Failure::CouldNot(format!("no region is set: {how}")));
        }
        Ok(Self::of(&config))
    }

    /// The clients of a configuration that is there already.
    #[must_use]
    pub fn of(config: &SdkConfig) -> Self {
        Self {
            cloudformation: aws_sdk_cloudformation::Client::new(config),
            cloudwatch: aws_sdk_cloudwatch::Client::new(config),
            iam: aws_sdk_iam::Client::new(config),
            kms: aws_sdk_kms::Client::new(config),
            lambda: aws_sdk_lambda::Client::new(config),
            logs: aws_sdk_cloudwatchlogs::Client::new(config),
            sqs: aws_sdk_sqs::Client::new(config),
            ssm: aws_sdk_ssm::Client::new(config),
            sts: aws_sdk_sts::Client::new(config),
        }
    }
}
