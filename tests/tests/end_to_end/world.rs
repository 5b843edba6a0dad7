use comeback_tests::{MiniStack, Shell, Stack, build, deploy, hide_briefly};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use crate::cdk::Example;

/// What the trials share, each part made for the first that asks.
pub(crate) struct World {
    pub(crate) runtime: Runtime,
    ministack: OnceCell<Result<MiniStack, String>>,
    built: OnceCell<Result<(), String>>,
    comeback: OnceCell<Result<Stack, String>>,
    quick: OnceCell<Result<Stack, String>>,
    cdk_example: OnceCell<Result<Example, String>>,
    sped_up: OnceCell<Result<MiniStack, String>>,
    moving: OnceCell<Result<MiniStack, String>>,
    by_hand: OnceCell<Result<MiniStack, String>>,
    upgrading: OnceCell<Result<MiniStack, String>>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            runtime: Runtime::new().expect("the operating system gives us threads"),
            ministack: OnceCell::new(),
            built: OnceCell::new(),
            comeback: OnceCell::new(),
            quick: OnceCell::new(),
            cdk_example: OnceCell::new(),
            sped_up: OnceCell::new(),
            moving: OnceCell::new(),
            by_hand: OnceCell::new(),
            upgrading: OnceCell::new(),
        }
    }

    pub(crate) async fn ministack(&self) -> &MiniStack {
        or_panic(self.ministack.get_or_init(|| MiniStack::start("ministack")).await)
    }

    /// A server of its own, on which an hour passes in a minute.
    pub(crate) async fn sped_up(&self) -> &MiniStack {
        or_panic(self.sped_up.get_or_init(|| MiniStack::start_sped_up("sped-up")).await)
    }

    /// Another one, on which nobody else deploys.
    pub(crate) async fn moving(&self) -> &MiniStack {
        or_panic(self.moving.get_or_init(|| MiniStack::start_sped_up("moving")).await)
    }

    /// A server of its own, where no stack has a log group of the name that the stack by hand gives its own.
    pub(crate) async fn by_hand(&self) -> &MiniStack {
        or_panic(self.by_hand.get_or_init(|| MiniStack::start("by-hand")).await)
    }

    /// On the faster clock, where an earlier release is updated.
    pub(crate) async fn upgrading(&self) -> &MiniStack {
        or_panic(self.upgrading.get_or_init(|| MiniStack::start_sped_up("upgrading")).await)
    }

    /// The stack of docs/deploy-sam.md: its commands, the shipped defaults.
    pub(crate) async fn comeback(&self) -> &Stack {
        self.built().await;
        let shell = self.ministack().await.shell();
        or_panic(self.comeback.get_or_init(async || deployed(&shell, "comeback", "")).await)
    }

    /// A stack that gives up after two retries a second apart, in inline style, and may invoke any function.
    pub(crate) async fn quick(&self) -> &Stack {
        // The first deployment makes SAM's own bucket; two at once would both try.
        self.comeback().await;
        let shell = self.ministack().await.shell();
        let any = MiniStack::function_arn("*");
        let parameters =
            format!("MaxRetries=2 BaseBackoff=1 MaxBackoff=1 Envelope=inline TargetFunctions={any}");
        or_panic(self.quick.get_or_init(async || deployed(&shell, "quick", &parameters)).await)
    }

    /// The CDK's example app. What it builds, `sam build` has built before, so that this takes no time.
    pub(crate) async fn cdk_example(&self) -> &Example {
        self.built().await;
        let shell = self.ministack().await.shell();
        or_panic(self.cdk_example.get_or_init(async || Example::deploy(&shell)).await)
    }

    /// `sam build` has run.
    pub(crate) async fn built(&self) {
        let shell = self.ministack().await.shell();
        or_panic(self.built.get_or_init(async || build(&shell)).await);
    }

    /// What the servers have logged, for a reader who wonders why a trial failed.
    pub(crate) fn log(&self) -> String {
        let servers = [&self.ministack, &self.sped_up, &self.moving, &self.by_hand, &self.upgrading];
        let started = servers.into_iter().filter_map(|server| server.get());
        started.flatten().map(MiniStack::log).collect()
    }
}

/// For the real clock.
fn deployed(shell: &Shell, name: &str, parameters: &str) -> Result<Stack, String> {
    let stack = deploy(shell, name, parameters)?;
    hide_briefly(shell, stack.output("RetryQueueUrl"))?;
    Ok(stack)
}

fn or_panic<T>(result: &Result<T, String>) -> &T {
    result.as_ref().unwrap_or_else(|error| panic!("{error}"))
}
