//! Builds and deploys the shipped stack.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use aws_sdk_cloudformation::error::SdkError;
use aws_sdk_cloudformation::types::{Capability, Parameter};
use aws_sdk_sqs::types::QueueAttributeName;

use crate::ministack::MiniStack;
use crate::pages;
use crate::repository::root;
use crate::shell::{Shell, eventually};

/// This machine's architecture, as the template names it.
pub const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "x86_64" };

/// Folder that `sam build` writes to by default.
pub const SAMS_OWN: &str = ".aws-sam/build";
static BUILT: OnceLock<PathBuf> = OnceLock::new();

/// Builds the functions of the shipped `template.yaml` for this machine's architecture.
///
/// Each test program needs its own `folder`, because a build must not change files that another program is reading.
pub fn build(shell: &Shell, folder: &str) -> Result<(), String> {
    let shell = shell.clone().with("LOCK", build_lock()).with("FOLDER", folder);
    let parameters = format!("Architecture={ARCHITECTURE}");
    shell.run(&format!(
        "flock \"$LOCK\" sam build --build-dir \"$FOLDER\" --parameter-overrides {parameters}"
    ))?;
    BUILT.get_or_init(|| root().join(folder));
    Ok(())
}

/// Path of the lock file that keeps builds from running at the same time. cargo-lambda moves the executables that it
/// has built, and a second build might not find them.
fn build_lock() -> PathBuf {
    root().join("target/sam-build.lock")
}

/// Returns the folder that the first [`build`] in this process wrote to.
pub(crate) fn built() -> &'static Path {
    BUILT.get().expect("`build` comes first")
}

impl MiniStack {
    /// Runs `sam deploy` in the shell's folder, with the output of [`build`] in `.aws-sam/build`.
    pub async fn sam_deploy(&self, shell: &Shell, name: &str, parameters: &str) -> Result<Stack, String> {
        shell.run(&format!(
            "sam deploy --stack-name {name} --parameter-overrides Architecture={ARCHITECTURE} {parameters}"
        ))?;
        self.stack(name).await
    }

    /// Deploys what [`build`] wrote, without the SAM CLI, which would take ten seconds of processor time.
    ///
    /// `parameters` looks like `MaxRetries=2 Jitter=none`; a value may contain tabs, but no spaces.
    pub async fn deploy(&self, name: &str, parameters: &str) -> Result<Stack, String> {
        let template = self.packaged.get_or_init(async || self.package()).await.clone()?;
        let parameter = |given: &str| {
            let (name, value) = given.split_once('=').expect("a parameter is name=value");
            Parameter::builder().parameter_key(name).parameter_value(value).build()
        };
        let architecture = format!("Architecture={ARCHITECTURE}");
        let parameters =
            parameters.split(' ').filter(|it| !it.is_empty()).chain([architecture.as_str()]).map(parameter);
        let cloudformation = aws_sdk_cloudformation::Client::new(self.config());
        let create = cloudformation.create_stack().stack_name(name).template_body(template);
        let create = create.capabilities(Capability::CapabilityIam);
        let create = create.capabilities(Capability::CapabilityAutoExpand);
        if let Err(error) = create.set_parameters(Some(parameters.collect())).send().await {
            // A busy server may respond late. The SDK then gives up, or repeats the call, which fails because the stack
            // exists by now (no two tests use the same name). Either way, the code below waits for the stack.
            let is_late = matches!(error, SdkError::TimeoutError(_));
            let error = error.into_service_error();
            if !is_late && !error.is_already_exists_exception() {
                return Err(format!("{name}: {error:?}"));
            }
        }
        let status = eventually(&format!("the stack {name}"), async || {
            let stacks = cloudformation.describe_stacks().stack_name(name).send().await.ok()?;
            let status = stacks.stacks?.first()?.stack_status.clone()?;
            (!status.as_str().ends_with("_IN_PROGRESS")).then_some(status)
        })
        .await;
        if status.as_str() != "CREATE_COMPLETE" {
            return Err(format!("{name} is {status}: {}", self.log()));
        }
        self.stack(name).await
    }

    /// Uploads the built code, and returns the template that refers to it.
    fn package(&self) -> Result<String, String> {
        let packaged = self.directory().join("packaged.yaml");
        self.shell().with("PACKAGED", &packaged).with("BUILT", built()).run(
            "aws s3 mb s3://packaged-code\n\
             aws cloudformation package --template-file \"$BUILT/template.yaml\" --s3-bucket packaged-code \
             --output-template-file \"$PACKAGED\"",
        )?;
        std::fs::read_to_string(&packaged).map_err(|error| format!("{}: {error}", packaged.display()))
    }

    /// Finds a deployed stack. On a real-time server, lowers the retry queue's visibility timeout to ten seconds.
    pub async fn stack(&self, name: &str) -> Result<Stack, String> {
        let cloudformation = aws_sdk_cloudformation::Client::new(self.config());
        let stacks = cloudformation.describe_stacks().stack_name(name).send().await;
        let stacks = stacks.map_err(|error| format!("{name}: {:?}", error.into_service_error()))?.stacks;
        let described = stacks.unwrap_or_default().into_iter().next().ok_or(format!("no stack {name}"))?;
        let outputs = described.outputs.unwrap_or_default().into_iter();
        let outputs = outputs.filter_map(|output| Some((output.output_key?, output.output_value?)));
        let mut stack = Stack { name: name.to_owned(), outputs: outputs.collect(), ..Stack::default() };
        stack.handler_logs = self.log_group(stack.output("RetryHandlerName")).await?;
        if stack.has_output("ExampleTargetName") {
            stack.target_logs = self.log_group(stack.output("ExampleTargetName")).await?;
        }
        if self.speed == 1 {
            self.hide_briefly(stack.output("RetryQueueUrl")).await;
        }
        Ok(stack)
    }

    async fn log_group(&self, function: &str) -> Result<String, String> {
        let configuration = self.lambda.get_function_configuration().function_name(function).send().await;
        let configuration =
            configuration.map_err(|error| format!("{function}: {:?}", error.into_service_error()))?;
        let group = configuration.logging_config.and_then(|logging| logging.log_group);
        group.ok_or(format!("{function} has no log group"))
    }

    async fn hide_briefly(&self, retry_queue_url: &str) {
        let change = self.sqs.set_queue_attributes().queue_url(retry_queue_url);
        let change = change.attributes(QueueAttributeName::VisibilityTimeout, "10").send().await;
        change.expect("SQS changes the queue");
    }
}

/// A deployed Comeback stack, with its outputs and log groups.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    name: String,
    outputs: BTreeMap<String, String>,
    handler_logs: String,
    target_logs: String,
}

impl Stack {
    /// Name of the CloudFormation stack.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of the stack's output `key`. Panics if the stack does not have this output.
    pub fn output(&self, key: &str) -> &str {
        self.outputs.get(key).unwrap_or_else(|| panic!("no output {key} in {:?}", self.outputs))
    }

    /// Returns true if the stack has this output. Some outputs depend on the stack's parameters.
    pub fn has_output(&self, key: &str) -> bool {
        self.outputs.contains_key(key)
    }

    /// Name of the retry handler's log group.
    pub fn handler_logs(&self) -> &str {
        &self.handler_logs
    }

    /// Name of the example target's log group; empty if the stack has no example target.
    pub fn target_logs(&self) -> &str {
        &self.target_logs
    }
}

/// Deploys queues and a handler without CloudFormation. The handler may retry `invoices`. Returns the retry queue's
/// ARN.
pub async fn deploy_by_hand(ministack: &MiniStack) -> String {
    let shell = ministack.shell().with("LOCK", build_lock());
    let run = |script: &str| shell.run(script).unwrap_or_else(|error| panic!("{error}"));
    let blocks = pages::blocks("docs/deploy-cargo-lambda.md", "The stack by hand").join("\n");
    let print = "echo \"$RETRY_QUEUE_URL $DEAD_LETTER_QUEUE_URL $RETRY_QUEUE_ARN\"";
    // The page's commands also build the handler, so this script takes the build lock.
    let printed = run(&format!("exec 9> \"$LOCK\"\nflock 9\n{blocks}\n{print}"));
    let names: Vec<&str> = printed.lines().last().expect("the names were printed last").split(' ').collect();
    let [retry_queue, dead_letter_queue, retry_queue_arn] = names[..] else { panic!("{names:?}") };
    for queue in [retry_queue, dead_letter_queue] {
        let policy = ministack.sqs.get_queue_attributes().queue_url(queue);
        let policy = policy.attribute_names(QueueAttributeName::Policy).send().await.expect("SQS answers");
        assert!(format!("{:?}", policy.attributes).contains("aws:SecureTransport"), "{queue} is TLS only");
    }
    let retention = "aws logs describe-log-groups --log-group-name-prefix /aws/lambda/comeback-retry-handler \
        --query 'logGroups[].retentionInDays' --output text";
    assert_eq!(run(retention).trim_end(), "30");
    ministack.hide_briefly(retry_queue).await;
    retry_queue_arn.to_owned()
}

/// Deploys the example app with the script in `docs/deploy-cdk.md`, which writes the CDK's templates to `output`.
pub async fn deploy_example(ministack: &MiniStack, script: &str, output: &Path) -> Result<Stack, String> {
    // The CDK's CLI also reads options from environment variables named `CDK_…`.
    let shell = ministack
        .shell()
        .with("CDK_CONTEXT", format!("architecture={ARCHITECTURE}"))
        .with("CDK_NOTICES", "false")
        .with("CDK_OUTPUT", output)
        .with("CDK_REQUIRE_APPROVAL", "never")
        .with("LOCK", build_lock());
    // The app runs cargo-lambda too, so this script needs the lock even if the functions are already built.
    shell.run(&format!("exec 9> \"$LOCK\"\nflock 9\ncd infra\n{script}"))?;
    ministack.stack("ComebackExample").await
}
