use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_lambda::operation::RequestId as _;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region, SharedHttpClient};
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode};

use crate::{Background, Shell, eventually, free_port, root, scratch};

/// One that AWS CLI 1 has no SQS endpoint of its own for: in those regions it ignores `AWS_ENDPOINT_URL`.
const REGION: &str = "eu-south-2";
const ACCOUNT: &str = "000000000000";
/// MiniStack's root credentials.
const KEY: &str = "test";

/// Its environment's Python, because other environments stand before it on `PATH`.
const RUN: &str = ".tools/ministack/bin/python tests/tools/run_ministack.py";

/// A MiniStack server of our own on a free loopback port, and what talks to it.
#[derive(Debug)]
pub struct MiniStack {
    server: Background,
    directory: PathBuf,
    shell: Shell,
    config: SdkConfig,
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
    /// If it cannot be started, or is not installed.
    pub async fn start(name: &str) -> Result<Self, String> {
        Self::start_with(name, &format!("exec {RUN}")).await
    }

    /// Starts a server whose clock, and that of the functions it runs, goes 60 times as fast: a visibility timeout of a
    /// minute is over in a second. Its event source mappings look once a second for what has become visible.
    ///
    /// # Errors
    ///
    /// If it cannot be started, for want of Debian's `faketime` perhaps.
    pub async fn start_sped_up(name: &str) -> Result<Self, String> {
        Shell::new().run("command -v faketime").map_err(|_| {
            "faketime is not installed: run `make faketime` (or apt-get install faketime)".to_owned()
        })?;
        Self::start_with(name, &format!("exec faketime --exclude-monotonic -f '+0 x60' {RUN}")).await
    }

    async fn start_with(name: &str, command: &str) -> Result<Self, String> {
        if !root().join(".tools/ministack/bin/ministack").exists() {
            return Err("MiniStack is not installed: run `make tools`".into());
        }
        let port = free_port();
        let endpoint = format!("https://127.0.0.1:{port}");
        let directory = scratch(name);
        let certificate = directory.join("certificate.pem");
        let http_client = make_certificate(&directory)?;
        let shell = Shell::new()
            .with("AWS_ENDPOINT_URL", &endpoint)
            .with("AWS_ACCESS_KEY_ID", KEY)
            .with("AWS_SECRET_ACCESS_KEY", KEY)
            .with("AWS_DEFAULT_REGION", REGION)
            .with("AWS_REGION", REGION)
            // The CDK's CLI asks for this one by name.
            .with("AWS_ENDPOINT_URL_S3", &endpoint)
            // The first is read by Python's AWS libraries, the second by Rust's, the third by Node.
            .with("AWS_CA_BUNDLE", &certificate)
            .with("SSL_CERT_FILE", &certificate)
            .with("NODE_EXTRA_CA_CERTS", &certificate);
        let server = shell
            .clone()
            .with("BIND_HOST", "127.0.0.1")
            .with("GATEWAY_PORT", port.to_string())
            // Unpacked functions go here, not where nobody tidies up.
            .with("TMPDIR", &directory)
            // Each call is checked against the policies of the caller's role and of the queue, which is TLS only.
            .with("AUTH", "true")
            .with("USE_SSL", "1")
            .with("MINISTACK_SSL_CERT", &certificate)
            .with("MINISTACK_SSL_KEY", directory.join("key.pem"))
            .start(command, &directory.join("ministack.log"))?;
        let config = aws_config::defaults(BehaviorVersion::latest())
            .endpoint_url(endpoint)
            .http_client(http_client)
            // The SDK has none of its own: a request left without an answer would use up a trial's whole patience.
            .timeout_config(
                TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(20)).build(),
            )
            .region(Region::from_static(REGION))
            .credentials_provider(Credentials::new(KEY, KEY, None, None, "MiniStack"))
            .load()
            .await;
        let sqs = aws_sdk_sqs::Client::new(&config);
        let answers = async || sqs.list_queues().send().await.ok();
        eventually("MiniStack to answer", Duration::from_secs(60), answers).await;
        Ok(Self {
            server,
            directory,
            shell,
            sqs,
            lambda: aws_sdk_lambda::Client::new(&config),
            logs: aws_sdk_cloudwatchlogs::Client::new(&config),
            config,
        })
    }

    /// What a client of any service needs to talk to this server.
    #[must_use]
    pub fn config(&self) -> &SdkConfig {
        &self.config
    }

    /// Where it listens.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.config.endpoint_url().expect("BUG: it was set when the server was started")
    }

    /// A shell whose AWS is this server.
    #[must_use]
    pub fn shell(&self) -> Shell {
        self.shell.clone()
    }

    /// Files of this server and of no other.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
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

    /// Invokes a function asynchronously, and gives back the request id.
    ///
    /// # Panics
    ///
    /// If Lambda does not accept the event.
    pub async fn invoke(&self, function: &str, payload: &str) -> String {
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
        accepted.request_id().expect("each answer has one").to_owned()
    }
}

/// Writes a certificate for this machine, and its key, and gives back a client that trusts it.
fn make_certificate(directory: &Path) -> Result<SharedHttpClient, String> {
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let made =
        rcgen::generate_simple_self_signed(names).map_err(|error| format!("no certificate: {error}"))?;
    let certificate = made.cert.pem();
    fs::write(directory.join("certificate.pem"), &certificate)
        .and_then(|()| fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()))
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    let trusted = TrustStore::empty().with_pem_certificate(certificate.as_bytes());
    let context =
        TlsContext::builder().with_trust_store(trusted).build().map_err(|error| error.to_string())?;
    let provider = Provider::Rustls(CryptoMode::AwsLc);
    Ok(aws_smithy_http_client::Builder::new().tls_provider(provider).tls_context(context).build_https())
}
