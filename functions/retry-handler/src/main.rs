//! The retry handler: the Lambda that the retry queue's event source mapping invokes.
//!
//! | file | holds |
//! |---|---|
//! | `config` | the environment, read once and checked whole |
//! | `queue` | which queue a URL or an ARN names |
//! | `handler` | one event: records in, batch response out |
//! | `aws` | the handler's account on the AWS SDK, and what its errors mean |
//! | `clock` | the present moment |
//! | `log` | JSON lines, always |
//! | `metrics` | lines that CloudWatch turns into metrics |

mod aws;
mod clock;
mod config;
mod handler;
mod log;
mod metrics;
mod queue;

use std::process::ExitCode;

use lambda_runtime::{LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    log::init();
    let config = match config::Config::from_env() {
        Ok(config) => config,
        Err(errors) => {
            errors.iter().for_each(|error| tracing::error!("{error}"));
            return ExitCode::FAILURE;
        }
    };
    let aws = match aws::Aws::connect(&config.aws, config.pauses.as_deref()) {
        Ok(aws) => aws,
        Err(error) => {
            tracing::error!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let handler = handler::Handler::new(config, aws);
    let ran = lambda_runtime::run(service_fn(|event: LambdaEvent<_>| handler.handle(event))).await;
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("the Lambda runtime ended: {error}");
            ExitCode::FAILURE
        }
    }
}
