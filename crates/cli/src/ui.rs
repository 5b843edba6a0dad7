//! `comeback ui`: starts the console.

use clap::Args;
use comeback_console::{Options, serve};
use comeback_operate::Interrupt;
use tokio::task::LocalSet;

use crate::failure::CommandFailure;
use crate::operate::session::{DeploymentFlags, raise_when_stopped};

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback ui
  comeback ui --stack shop --read-only
  comeback ui --no-open --port 7070";

#[derive(Clone, Debug, Args)]
pub(crate) struct UiArguments {
    /// The port to listen on [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Print the address, and do not open a browser
    #[arg(long)]
    no_open: bool,
    /// Leave out everything that changes something or hides dead-letters
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    deployment: DeploymentFlags,
}

pub(crate) fn run(arguments: &UiArguments) -> Result<(), CommandFailure> {
    let UiArguments { port, no_open, read_only, deployment } = arguments;
    let options = Options {
        address: deployment.address(),
        port: *port,
        opens_browser: !no_open,
        read_only: *read_only,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = async {
        let (raise, stop) = Interrupt::new();
        raise_when_stopped(raise);
        serve(&options, stop).await
    };
    let result = LocalSet::new().block_on(&runtime, served);
    // The thread that waits for Enter is still waiting.
    runtime.shutdown_background();
    Ok(result?)
}
