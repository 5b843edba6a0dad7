//! The clients of an account.

use std::mem;

use aws_config::SdkConfig;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::BeforeDeserializationInterceptorContextMut;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::ConfigBag;
use http_body_util::Limited;

/// Bytes of an answer's body. The largest, ten messages of SQS, has 10 MiB, or three times that as JSON. A larger one comes
/// from something between here and the service, and would take all memory.
const LARGEST_ANSWER: usize = 64 << 20;

/// An account behind the AWS SDK.
#[derive(Clone, Debug)]
pub struct SdkAws {
    pub(super) region: String,
    pub(super) cloudformation: aws_sdk_cloudformation::Client,
    pub(super) cloudwatch: aws_sdk_cloudwatch::Client,
    pub(super) iam: aws_sdk_iam::Client,
    pub(super) kms: aws_sdk_kms::Client,
    pub(super) lambda: aws_sdk_lambda::Client,
    pub(super) logs: aws_sdk_cloudwatchlogs::Client,
    pub(super) sqs: aws_sdk_sqs::Client,
    pub(super) ssm: aws_sdk_ssm::Client,
}

impl SdkAws {
    /// The clients of a configuration, which has credentials and a region.
    pub fn new(config: &SdkConfig) -> Self {
        macro_rules! client {
            ($sdk:ident) => {{
                let config = $sdk::config::Builder::from(config).interceptor(LimitAnswers);
                $sdk::Client::from_conf(config.build())
            }};
        }
        Self {
            region: config.region().map(ToString::to_string).unwrap_or_default(),
            cloudformation: client!(aws_sdk_cloudformation),
            cloudwatch: client!(aws_sdk_cloudwatch),
            iam: client!(aws_sdk_iam),
            kms: client!(aws_sdk_kms),
            lambda: client!(aws_sdk_lambda),
            logs: client!(aws_sdk_cloudwatchlogs),
            sqs: client!(aws_sdk_sqs),
            ssm: client!(aws_sdk_ssm),
        }
    }
}

/// Fails an answer with a body larger than [`LARGEST_ANSWER`].
#[derive(Debug)]
struct LimitAnswers;

impl Intercept for LimitAnswers {
    fn name(&self) -> &'static str {
        "LimitAnswers"
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let body = context.response_mut().body_mut();
        let whole = mem::replace(body, SdkBody::taken());
        *body = SdkBody::from_body_1_x(Limited::new(whole, LARGEST_ANSWER));
        Ok(())
    }
}
