//! Starts MiniStack, a local server that stands in for AWS, and creates clients for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_lambda::operation::RequestId as _;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region, SharedHttpClient};
use aws_sdk_sqs::types::Message;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::repository::{path_with_tools, root, scratch};
use crate::shell::{Background, Shell, eventually, free_port};

/// Region that the tests use. In some other regions, AWS CLI 1 ignores `AWS_ENDPOINT_URL` for SQS.
const REGION: &str = "eu-south-2";
const ACCOUNT: &str = "000000000000";
/// Access key and secret of MiniStack's root user.
const KEY: &str = "test";

/// Command that starts MiniStack with the Python interpreter from its virtual environment.
const RUN: &str = ".tools/ministack/bin/python tests/tools/run_ministack.py";

/// A MiniStack server on a free loopback port, with a shell and SDK clients that use it.
#[derive(Debug)]
pub struct MiniStack {
    server: Background,
    directory: PathBuf,
    shell: Shell,
    config: SdkConfig,
    /// Speed of the server's clock, relative to real time.
    pub(crate) speed: u32,
    /// The built template, which refers to the uploaded code. Empty until a stack is first deployed to this server.
    pub(crate) packaged: OnceCell<Result<String, String>>,
    /// Client for this server's SQS, with all permissions.
    pub sqs: aws_sdk_sqs::Client,
    /// Client for this server's Lambda, with all permissions.
    pub lambda: aws_sdk_lambda::Client,
    /// Client for this server's CloudWatch Logs, with all permissions.
    pub logs: aws_sdk_cloudwatchlogs::Client,
    /// Client for this server's IAM, with all permissions.
    pub iam: aws_sdk_iam::Client,
}

impl MiniStack {
    /// Starts a server and waits until it is healthy. `name` is the name of its scratch folder.
    pub async fn start(name: &str) -> Result<Self, String> {
        Self::start_with(name, &format!("exec {RUN}"), 1).await
    }

    /// Starts a server, with its clock and its functions' clocks `speed` times as fast as real time.
    ///
    /// The event source mappings still look for visible messages once per real second.
    pub async fn start_sped_up(name: &str, speed: u32) -> Result<Self, String> {
        Shell::new().run("command -v faketime").map_err(|_| {
            "faketime is not installed: run `make faketime` (or apt-get install faketime)".to_owned()
        })?;
        Self::start_with(name, &format!("exec {} {RUN}", on_fast_clock(speed)), speed).await
    }

    async fn start_with(name: &str, command: &str, speed: u32) -> Result<Self, String> {
        if !root().join(".tools/ministack/bin/ministack").exists() {
            return Err("MiniStack is not installed: run `make tools`".into());
        }
        let port = free_port();
        let endpoint = format!("https://127.0.0.1:{port}");
        let directory = scratch(name);
        let certificate = directory.join("certificate.pem");
        let http_client = make_certificate(&directory)?;
        let tools = path_with_tools();
        let path = std::iter::once(root().join("tests/tools/bin")).chain(std::env::split_paths(&tools));
        let shell = Shell::new()
            .with("PATH", std::env::join_paths(path).expect("the repository's path holds no colon"))
            .with("COMEBACK_AWS_SERVER", aws_server(&directory).await?)
            .with("AWS_ENDPOINT_URL", &endpoint)
            .with("AWS_ACCESS_KEY_ID", KEY)
            .with("AWS_SECRET_ACCESS_KEY", KEY)
            .with("AWS_DEFAULT_REGION", REGION)
            .with("AWS_REGION", REGION)
            // The CDK's CLI reads this variable.
            .with("AWS_ENDPOINT_URL_S3", &endpoint)
            // Makes the AWS libraries for Python, Rust and Node.js (in this order) trust the server's certificate.
            .with("AWS_CA_BUNDLE", &certificate)
            .with("SSL_CERT_FILE", &certificate)
            .with("NODE_EXTRA_CA_CERTS", &certificate);
        let server = shell
            .clone()
            .with("BIND_HOST", "127.0.0.1")
            .with("GATEWAY_PORT", port.to_string())
            .with("RECORDED", recorded(name))
            // The functions inherit this variable and their SDKs send it, so the recorder recognizes the handler's
            // requests.
            .with("AWS_EXECUTION_ENV", "AWS_Lambda_provided.al2023")
            // MiniStack unpacks functions into this folder and never removes them.
            .with("TMPDIR", &directory)
            // Makes MiniStack check each call against the policies of the caller's role and of the queue, which allows
            // only TLS.
            .with("AUTH", "true")
            .with("USE_SSL", "1")
            .with("MINISTACK_SSL_CERT", &certificate)
            .with("MINISTACK_SSL_KEY", directory.join("key.pem"))
            .start(command, &directory.join("ministack.log"))?;
        let config = aws_config::defaults(BehaviorVersion::latest())
            .endpoint_url(endpoint)
            .http_client(http_client)
            // The SDK has no timeout by default, so a trial would wait for a lost response until the trial timed out.
            .timeout_config(
                TimeoutConfig::builder().operation_attempt_timeout(Duration::from_secs(60)).build(),
            )
            .region(Region::from_static(REGION))
            .credentials_provider(Credentials::new(KEY, KEY, None, None, "MiniStack"))
            .load()
            .await;
        let sqs = aws_sdk_sqs::Client::new(&config);
        let answers = async || sqs.list_queues().send().await.ok();
        eventually("MiniStack to answer", answers).await;
        Ok(Self {
            server,
            directory,
            shell,
            speed,
            packaged: OnceCell::new(),
            sqs,
            lambda: aws_sdk_lambda::Client::new(&config),
            logs: aws_sdk_cloudwatchlogs::Client::new(&config),
            iam: aws_sdk_iam::Client::new(&config),
            config,
        })
    }

    /// SDK configuration for building more clients for this server.
    pub fn config(&self) -> &SdkConfig {
        &self.config
    }

    /// Timeout for the tests' functions: 15 minutes of real time, in seconds of the server's clock. MiniStack accepts
    /// more than Lambda's maximum.
    pub fn longest_timeout(&self) -> i32 {
        900 * self.speed as i32
    }

    /// The server's URL.
    pub fn endpoint(&self) -> &str {
        self.config.endpoint_url().expect("BUG: it was set when the server was started")
    }

    /// A shell whose commands use this server as AWS.
    pub fn shell(&self) -> Shell {
        self.shell.clone()
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Everything that the server has logged so far.
    pub fn log(&self) -> String {
        self.server.log()
    }

    /// The ARN of the function with this name, or an ARN pattern if `name` is a pattern.
    pub fn function_arn(name: &str) -> String {
        format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}")
    }

    /// Invokes a function asynchronously with this payload, and returns the request id.
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

/// The start of a command line that runs the rest on a clock `speed` times as fast as real time.
///
/// In libfaketime 0.9, a thread's timed wait for another thread ends at once: it is measured on the fast clock even if
/// the caller uses the monotonic clock, which is real. Python's threads wait 5 ms for the interpreter's lock in this
/// way. They would all ask for it again and again, and on a busy machine the server would do a tenth of its work.
/// `FAKETIME_WAIT_MS` makes each such wait 5 ms of real time, whatever its length.
pub fn on_fast_clock(speed: u32) -> String {
    format!("env FAKETIME_WAIT_MS=5 faketime --exclude-monotonic -f '+0 x{speed}'")
}

/// The file that records a server's requests, so that `make conformance` can check them.
fn recorded(name: &str) -> PathBuf {
    let folder = root().join("target/recorded");
    fs::create_dir_all(&folder).expect("a folder below target can be made");
    folder.join(format!("{name}.jsonl"))
}

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

/// Returns the socket name of a server that runs AWS CLI commands for all tests in this process.
///
/// Without it, each command would take half a second of processor time to start. It logs to the first caller's
/// `directory`.
async fn aws_server(directory: &Path) -> Result<&'static str, String> {
    static SERVER: OnceCell<(String, Background)> = OnceCell::const_new();
    let start = async || {
        let name = format!("comeback-aws-{}", std::process::id());
        let command = format!("exec .tools/aws/bin/python tests/tools/aws_server.py {name}");
        let server = Shell::new().start(&command, &directory.join("aws.log"))?;
        eventually("the AWS CLI to be imported", async || server.log().contains("ready").then_some(())).await;
        Ok::<_, String>((name, server))
    };
    Ok(&SERVER.get_or_try_init(start).await?.0)
}

/// Returns the JSON lines in a log group, in order, or no lines while the group does not exist.
pub async fn log_lines(ministack: &MiniStack, group: &str) -> Vec<Value> {
    let mut pages = ministack.logs.filter_log_events().log_group_name(group).into_paginator().send();
    let mut lines = Vec::new();
    while let Some(Ok(page)) = pages.next().await {
        let messages = page.events().iter().filter_map(|event| event.message());
        lines.extend(messages.filter_map(|message| serde_json::from_str::<Value>(message).ok()));
    }
    lines
}

/// A message in a dead-letter queue.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// Body of the message, byte for byte.
    pub body: String,
    /// String values of the message's attributes, by name.
    pub attributes: BTreeMap<String, String>,
}

/// Waits for a matching message in a dead-letter queue, and leaves all messages visible.
pub async fn dead_letter(
    ministack: &MiniStack,
    queue_url: &str,
    what: &str,
    is_it: impl Fn(&DeadLetter) -> bool,
) -> DeadLetter {
    eventually(&format!("{what} in the dead-letter queue"), async || {
        dead_letters(ministack, queue_url).await.into_iter().find(&is_it)
    })
    .await
}

/// Returns the first ten dead-letters in a queue, and leaves them there.
pub async fn dead_letters(ministack: &MiniStack, queue_url: &str) -> Vec<DeadLetter> {
    let receive = ministack.sqs.receive_message().queue_url(queue_url).message_attribute_names("All");
    let received = receive.max_number_of_messages(10).visibility_timeout(0).send().await;
    received.expect("SQS answers").messages().iter().map(DeadLetter::of).collect()
}

impl DeadLetter {
    fn of(message: &Message) -> Self {
        let attributes = message.message_attributes().into_iter().flatten();
        Self {
            body: message.body().unwrap_or_default().to_owned(),
            attributes: attributes
                .map(|(name, value)| (name.clone(), value.string_value().unwrap_or_default().to_owned()))
                .collect(),
        }
    }
}
