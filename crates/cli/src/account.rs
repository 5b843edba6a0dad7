//! The AWS account, and why a command on it did not do its work.

use std::rc::Rc;

use aws_config::SdkConfig;
pub(crate) use comeback_operate::Place;
use comeback_operate::aws::sdk::SdkAws;

#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) place: Place,
    port: Rc<SdkAws>,
}

impl Account {
    /// Connects as [`SdkAws::connect`] does.
    pub(crate) async fn connect(region: Option<&str>, profile: Option<&str>) -> Result<Self, Failure> {
        let (port, place) = SdkAws::connect(region, profile).await?;
        Ok(Self { place, ..Self::of(port.config()) })
    }

    /// The account as `comeback-operate` knows it.
    pub(crate) fn operate(&self) -> comeback_operate::Account {
        let port: Rc<dyn comeback_operate::aws::Aws> = self.port.clone();
        comeback_operate::Account { aws: port, place: self.place.clone() }
    }

    pub(crate) fn of(config: &SdkConfig) -> Self {
        Self { place: Place::default(), port: Rc::new(SdkAws::new(config)) }
    }
}

/// Why a command did not do its work; one variant for each exit code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) enum Failure {
    /// It could not run: something is missing, denied or unreachable (1).
    CouldNot(String),
    Refused(String),
    /// It ran, and something is broken or left undone (3). Its report says what.
    Undone(String),
    /// The operator did not confirm it (4). Nothing was changed.
    NotConfirmed(String),
    /// The operator stopped it (130), with what was done so far.
    #[error("interrupted: {0}")]
    Interrupted(String),
}

impl From<comeback_operate::Failure> for Failure {
    fn from(failure: comeback_operate::Failure) -> Self {
        use comeback_operate::Failure as It;
        match failure {
            It::CouldNot(text) => Self::CouldNot(text.to_string()),
            It::Refused(text) => Self::Refused(text.to_string()),
            It::Undone(text) => Self::Undone(text.to_string()),
            It::NotConfirmed(text) => Self::NotConfirmed(text.to_string()),
            It::Interrupted(text) => Self::Interrupted(text.to_string()),
        }
    }
}

impl From<Failure> for comeback_operate::Failure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::CouldNot(text) => Self::could_not(text),
            Failure::Refused(text) => Self::refused(text),
            Failure::Undone(text) => Self::undone(text),
            Failure::NotConfirmed(text) => Self::not_confirmed(text),
            Failure::Interrupted(text) => Self::interrupted(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::config::Credentials;
    use aws_smithy_http_client::test_util::infallible_client_fn;
    use aws_smithy_runtime_api::client::http::SharedHttpClient;
    use serde_json::Value;

    use aws_config::{BehaviorVersion, Region};

    use super::*;

    impl Account {
        /// An account that answers so, with a status, by the operation of a request and, in services that do not speak JSON, by
        /// its path.
        pub(crate) async fn answering_all(
            answer: impl Fn(&str, Value) -> (u16, Value) + Send + Sync + 'static,
        ) -> Self {
            let http_client = infallible_client_fn(move |request: http::Request<_>| {
                let target = request.headers().get("x-amz-target").map(|target| target.to_str().unwrap());
                let body: Option<&[u8]> = request.body().bytes();
                let body = serde_json::from_slice(body.unwrap_or_default()).unwrap_or_default();
                let operation = target.and_then(|target| target.split_once('.'));
                let call = operation.map_or(request.uri().path(), |(_, operation)| operation);
                let (status, answer) = answer(call, body);
                let response = http::Response::builder().status(status);
                let response = response.header("x-amzn-errortype", "AccessDeniedException");
                response.body(answer.to_string()).unwrap()
            });
            let place =
                Place { account: "123456789012".into(), region: "eu-west-1".into(), ..Place::default() };
            Self { place, ..Self::of_client(http_client).await }
        }

        async fn of_client(http_client: SharedHttpClient) -> Self {
            let config = aws_config::defaults(BehaviorVersion::latest())
                .region(Region::from_static("eu-west-1"))
                .credentials_provider(Credentials::new("key", "secret", None, None, "test"))
                .http_client(http_client)
                .load();
            Self::of(&config.await)
        }
    }
}
