//! The retry handler: the Lambda function that the retry queue's event source mapping invokes.
//!
//! `config` reads the environment variables once. `handler` passes a batch to the engine's `Environment`, and returns
//! the response. `aws` makes the calls to AWS, with `aws/settings` (configuration), `aws/transport` (connections and
//! trusted certificates) and `aws/failure` (the meaning of errors). `log` and `metrics` write to standard output. Only
//! `clock` reads the time.

mod aws;
mod clock;
mod config;
mod handler;
mod log;
mod metrics;

use std::error::Error;
use std::process::ExitCode;

use lambda_runtime::{LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    log::init();
    log::started();
    if let Err(error) = run().await {
        error.to_string().lines().for_each(|line| tracing::error!("{line}"));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

async fn run() -> Result<(), Box<dyn Error + Send + Sync>> {
    let config = config::Config::from_env()?;
    let aws = aws::AwsClients::connect(&config.aws, config.pauses.as_deref())?;
    let handler = handler::Handler::new(config, aws);
    let ran = lambda_runtime::run(service_fn(|event: LambdaEvent<_>| handler.handle(event))).await;
    ran.map_err(|error| format!("the Lambda runtime ended: {error}").into())
}
