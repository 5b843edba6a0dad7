use std::time::Duration;

use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};

use crate::{Background, Shell, eventually, free_port, request, scratch};

/// One that AWS CLI 1 has no SQS endpoint of its own for: in those regions it ignores `AWS_ENDPOINT_URL`.
const REGION: &str = "eu-south-2";
const ACCOUNT: &str = "000000000000";
/// MiniStack's root credentials.
const KEY: &str = "test";

/// A MiniStack server of our own on a free loopback port, and what talks to it.
#[derive(Debug)]
pub struct MiniStack {
    server: Background,
    shell: Shell,
    /// SQS.
    pub sqs: aws_sdk_sqs::Client,
    /// Lambda.
    pub lambda: aws_sdk_lambda::Client,
    /// CloudWatch Logs.
    pub logs: aws_sdk_cloudwatchlogs::Client,
}

impl MiniStack {
    /// Starts the server and waits until it is healthy. `name` tells its files from another's.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub async fn start(name: &str) -> Result<Self, String> {
        let port = free_port();
        let endpoint = format!("http://127.0.0.1:{port}");
        let shell = Shell::new()
            .with("AWS_ENDPOINT_URL", &endpoint)
            .with("AWS_ACCESS_KEY_ID", KEY)
            .with("AWS_SECRET_ACCESS_KEY", KEY)
            .with("AWS_DEFAULT_REGION", REGION)
            .with("AWS_REGION", REGION);
        let server = shell
            .clone()
            .with("BIND_HOST", "127.0.0.1")
            .with("GATEWAY_PORT", port.to_string())
            .start("exec ministack", &scratch(name).join("ministack.log"))?;
        eventually("MiniStack to be healthy", Duration::from_secs(60), async || {
            request("GET", port, "/_ministack/health", "").ok()
        })
        .await;
        let config = aws_config::defaults(BehaviorVersion::latest())
            .endpoint_url(endpoint)
            .region(Region::from_static(REGION))
            .credentials_provider(Credentials::new(KEY, KEY, None, None, "MiniStack"))
            .load()
            .await;
        Ok(Self {
            server,
            shell,
            sqs: aws_sdk_sqs::Client::new(&config),
            lambda: aws_sdk_lambda::Client::new(&config),
            logs: aws_sdk_cloudwatchlogs::Client::new(&config),
        })
    }

    /// A shell whose AWS is this server.
    #[must_use]
    pub fn shell(&self) -> Shell {
        self.shell.clone()
    }

    /// What the server has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// The ARN of a function of this name, or of this pattern.
    #[must_use]
    pub fn function_arn(name: &str) -> String {
        format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}")
    }

    /// Invokes a function asynchronously.
    ///
    /// # Panics
    ///
    /// If Lambda does not accept the event.
    pub async fn invoke(&self, function: &str, payload: &str) {
        let accepted = self
            .lambda
            .invoke()
            .function_name(function)
            .invocation_type(aws_sdk_lambda::types::InvocationType::Event)
            .payload(payload.as_bytes().to_vec().into())
            .send()
            .await
            .expect("Lambda answers");
        assert_eq!(accepted.status_code, 202);
    }
}
