//! `comeback ui`: starts the console, which serves web pages to a browser on this machine.

use clap::Args;
use comeback_console::{Options, serve};
use comeback_operate::{Address, Interrupt};
use tokio::task::LocalSet;

use crate::failure::CommandFailure;
#[cfg(feature = "operate")]
use crate::operate::session::DeploymentFlags;
use crate::signals::raise_when_stopped;

#[cfg(feature = "operate")]
pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback ui --demo
  comeback ui
  comeback ui --stack shop --read-only
  comeback ui --no-open --port 7070";
#[cfg(not(feature = "operate"))]
pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback ui --demo
  comeback ui --demo --no-open --port 7070";

#[derive(Clone, Debug, Args)]
pub(crate) struct UiArguments {
    /// Instead of your deployment, show a demonstration in a simulated account, whose clock runs 60 times as fast as
    /// real time
    #[arg(long)]
    #[cfg_attr(
        feature = "operate",
        arg(conflicts_with_all = ["handler", "stack", "region", "profile"])
    )]
    #[cfg_attr(not(feature = "operate"), arg(required = true))]
    demo: bool,
    /// The port to listen on [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Print the console's URL instead of opening a browser
    #[arg(long)]
    no_open: bool,
    /// Serve a console without the actions that change something or hide dead-letters
    #[arg(long)]
    read_only: bool,
    #[cfg(feature = "operate")]
    #[command(flatten)]
    deployment: DeploymentFlags,
}

impl UiArguments {
    #[cfg(feature = "operate")]
    fn address(&self) -> Address {
        self.deployment.address()
    }

    #[cfg(not(feature = "operate"))]
    fn address(&self) -> Address {
        let stack = comeback_operate::address::DEFAULT_STACK.to_owned();
        Address { which: comeback_operate::Which::Stack(stack), region: None, profile: None }
    }
}

pub(crate) fn run(arguments: &UiArguments) -> Result<(), CommandFailure> {
    let UiArguments { demo, port, no_open, read_only, .. } = arguments;
    let options = Options {
        address: arguments.address(),
        demo: *demo,
        port: *port,
        opens_browser: !no_open,
        read_only: *read_only,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = async {
        let stop = Interrupt::default();
        raise_when_stopped(stop.clone());
        serve(&options, stop).await
    };
    let result = LocalSet::new().block_on(&runtime, served);
    // The shutdown does not wait for the thread that reads Enter from the terminal.
    runtime.shutdown_background();
    Ok(result?)
}
