//! Creates target functions for the retry handler to re-invoke.

use std::path::Path;

use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::{Environment, FunctionCode, Runtime};

use crate::ministack::MiniStack;
use crate::pages;
use crate::repository::{built_program, root, scratch};
use crate::stack::built;

/// Creates the Python function `tests/targets/plain_target.py`, which logs each event to `/aws/lambda/{name}`.
pub async fn plain_target(ministack: &MiniStack, name: &str) {
    python(ministack, name, "plain_target").await;
}

/// Creates a function that fails while a file exists, and records its invocations in a second file. Each event names
/// both files.
pub async fn outage_target(ministack: &MiniStack, name: &str) {
    python(ministack, name, "outage_target").await;
}

/// Creates a Python function that always fails with the error `OrderRefused` (`tests/targets/failing_target.py`).
pub async fn failing_target(ministack: &MiniStack, name: &str) {
    python(ministack, name, "failing_target").await;
}

/// Creates a Python function that opens the envelope, and fails as many times as its event says
/// (`tests/targets/enveloped_target.py`).
pub async fn enveloped_target(ministack: &MiniStack, name: &str) {
    python(ministack, name, "enveloped_target").await;
}

/// Creates a function with the example target's code, which `sam build` has built.
pub async fn example_target(ministack: &MiniStack, name: &str) {
    let bootstrap = built().join("ExampleTarget/bootstrap");
    let no_variables = Environment::builder().build();
    create_from_file(ministack, name, Runtime::Providedal2023, &bootstrap, no_variables).await;
}

/// Creates a function that records its batches in `batches`, and reports the ids from the pipe `answers` as failed.
pub async fn answering_target(ministack: &MiniStack, name: &str, batches: &Path, answers: &Path) {
    let file = root().join("tests/targets/answering_target.py");
    let path = |path: &Path| path.to_str().expect("the repository's path is Unicode").to_owned();
    let variables = Environment::builder()
        .variables("BATCHES", path(batches))
        .variables("ANSWERS", path(answers))
        .build();
    create_from_file(ministack, name, Runtime::Python312, &file, variables).await;
}

/// The language of a consumer, which receives messages directly from an SQS queue.
#[derive(Clone, Copy, Debug)]
pub enum Consumer {
    /// The function in `tests/targets/sqs_consumer.py`.
    Python,
    /// The function in `tests/targets/sqs_consumer.cjs`.
    Node,
    /// This crate's program `sqs_consumer`.
    Rust,
}

impl Consumer {
    /// The language's name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
            Self::Rust => "rust",
        }
    }

    /// The Lambda runtime for this language, and a script that copies the function's code into `$FUNCTION`.
    fn files(self) -> (Runtime, &'static str) {
        match self {
            Self::Python => (Runtime::Python312, "cp tests/targets/sqs_consumer.py \"$FUNCTION\""),
            Self::Node => {
                (Runtime::Nodejs20x, "cp tests/targets/sqs_consumer.cjs \"$FUNCTION/sqs_consumer.js\"")
            }
            Self::Rust => (Runtime::Providedal2023, "cp \"$PROGRAM\" \"$FUNCTION/bootstrap\""),
        }
    }
}

/// Creates a function that receives messages directly from an SQS queue. Its role has the policy `permissions`.
pub async fn consumer_target(
    ministack: &MiniStack,
    name: &str,
    language: Consumer,
    variables: &[(&str, String)],
    permissions: &str,
) {
    let folder = scratch(&format!("{name}-code"));
    let (runtime, copy) = language.files();
    let shell = ministack.shell().with("FUNCTION", &folder).with("PROGRAM", built_program("sqs_consumer"));
    let install = pages::blocks("docs/consumer.md", "Install it").concat();
    let zip = format!("{install}\n{copy}\ncd \"$FUNCTION\"; python3 -m zipfile -c code.zip *");
    shell.run(&zip).unwrap_or_else(|error| panic!("{error}"));
    let given = variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    // Lambda's Node.js runtime includes the AWS SDK. Here, Node.js finds it in this repository.
    let modules = root().join("clients/node-sqs/node_modules").display().to_string();
    let given = given.chain([("NODE_PATH".to_owned(), modules)]);
    let variables = Environment::builder().set_variables(Some(given.collect())).build();
    create(ministack, name, runtime, ("sqs_consumer", &folder.join("code.zip")), variables).await;
    let put = ministack.iam.put_role_policy().role_name(name).policy_name("consumer");
    put.policy_document(permissions).send().await.expect("IAM puts the policy");
}

async fn python(ministack: &MiniStack, name: &str, file: &str) {
    let code = root().join(format!("tests/targets/{file}.py"));
    create_from_file(ministack, name, Runtime::Python312, &code, Environment::builder().build()).await;
}

async fn create_from_file(
    ministack: &MiniStack,
    name: &str,
    runtime: Runtime,
    code: &Path,
    variables: Environment,
) {
    let archive = ministack.directory().join(format!("{name}.zip"));
    let module = code.file_stem().expect("code is a file").to_string_lossy();
    let shell = ministack.shell().with("ARCHIVE", &archive).with("CODE", code);
    let zipped = shell.run("python3 -m zipfile -c \"$ARCHIVE\" \"$CODE\"");
    zipped.unwrap_or_else(|error| panic!("{error}"));
    create(ministack, name, runtime, (&module, &archive), variables).await;
}

/// Creates a function from a zip archive, with a role that has no permissions.
async fn create(
    ministack: &MiniStack,
    name: &str,
    runtime: Runtime,
    (module, archive): (&str, &Path),
    variables: Environment,
) {
    const TRUST: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}]}"#;
    let role = ministack.iam.create_role().role_name(name).assume_role_policy_document(TRUST).send().await;
    let role = role.expect("IAM creates the role").role.expect("it answers with the role").arn;
    let archive = std::fs::read(archive).expect("the archive was just written");
    ministack
        .lambda
        .create_function()
        .function_name(name)
        .runtime(runtime)
        .handler(format!("{module}.handler"))
        .environment(variables)
        .timeout(ministack.longest_timeout())
        .role(role)
        .code(FunctionCode::builder().zip_file(Blob::new(archive)).build())
        .send()
        .await
        .expect("Lambda creates the function");
}

/// Kills all running processes of a function, and returns how many it killed.
pub fn kill(ministack: &MiniStack, function: &str) -> usize {
    const KILL: &str = r#"for environment in /proc/[0-9]*/environ; do
        variables=$(tr '\0' '\n' 2>/dev/null <"$environment") || continue
        echo "$variables" | grep -qxF "AWS_LAMBDA_FUNCTION_NAME=$FUNCTION" || continue
        echo "$variables" | grep -qxF "AWS_ENDPOINT_URL=$AWS_ENDPOINT_URL" || continue
        pid=${environment%/environ}
        kill -KILL "${pid#/proc/}" && echo "${pid#/proc/}"
    done"#;
    let killed = ministack.shell().with("FUNCTION", function).run(KILL);
    killed.unwrap_or_else(|error| panic!("{error}")).lines().count()
}
