//! Servers and deployments that several tests of this program share, each created when first needed.

use std::sync::LazyLock;

use comeback_tests::{MiniStack, SAMS_OWN, Stack, build};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

pub(crate) static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new().expect("the operating system gives us threads"));

#[derive(Default)]
pub(crate) struct World {
    built: OnceCell<Result<(), String>>,
    ministack: OnceCell<Result<MiniStack, String>>,
    sped_up: OnceCell<Result<MiniStack, String>>,
    moving: OnceCell<Result<MiniStack, String>>,
    by_hand: OnceCell<Result<MiniStack, String>>,
    contract: OnceCell<Result<MiniStack, String>>,
    comeback: OnceCell<Result<Stack, String>>,
    quick: OnceCell<Result<Stack, String>>,
}

impl World {
    pub(crate) async fn ministack(&self) -> &MiniStack {
        or_panic(self.ministack.get_or_init(|| MiniStack::start("ministack")).await)
    }

    /// A server on which an hour passes in a minute.
    pub(crate) async fn sped_up(&self) -> &MiniStack {
        self.built().await;
        or_panic(self.sped_up.get_or_init(|| MiniStack::start_sped_up("sped-up", 60)).await)
    }

    /// A server on which an hour passes in a minute, for a single test. If other tests slowed the server down,
    /// messages would change state while this test counts them.
    pub(crate) async fn moving(&self) -> &MiniStack {
        self.built().await;
        or_panic(self.moving.get_or_init(|| MiniStack::start_sped_up("moving", 60)).await)
    }

    /// A separate server for the stack deployed by hand: that stack's log group has the same name as another stack's.
    pub(crate) async fn by_hand(&self) -> &MiniStack {
        self.built().await;
        or_panic(self.by_hand.get_or_init(|| MiniStack::start("by-hand")).await)
    }

    /// Returns the server for the contract tests, without deployments that would delay its responses.
    pub(crate) async fn contract(&self) -> &MiniStack {
        or_panic(self.contract.get_or_init(|| MiniStack::start("contract")).await)
    }

    pub(crate) async fn built(&self) {
        let shell = self.ministack().await.shell();
        or_panic(self.built.get_or_init(async || build(&shell, SAMS_OWN)).await);
    }

    /// The stack deployed by the commands in docs/deploy-sam.md, with the template's default settings.
    pub(crate) async fn comeback(&self) -> &Stack {
        self.built().await;
        let ministack = self.ministack().await;
        let deploy = || async { ministack.sam_deploy(&ministack.shell(), "comeback", "").await };
        or_panic(self.comeback.get_or_init(deploy).await)
    }

    /// A stack that allows every function, uses inline envelopes, and dead-letters events after two retries. The
    /// backoff is 1 s.
    pub(crate) async fn quick(&self) -> &Stack {
        self.built().await;
        let any = MiniStack::function_arn("*");
        let parameters =
            format!("MaxRetries=2 BaseBackoff=1 MaxBackoff=1 Envelope=inline TargetFunctions={any}");
        let ministack = self.ministack().await;
        or_panic(self.quick.get_or_init(async || ministack.deploy("quick", &parameters).await).await)
    }

    pub(crate) fn log(&self) -> String {
        let servers = [&self.ministack, &self.sped_up, &self.moving, &self.by_hand, &self.contract];
        servers.into_iter().filter_map(OnceCell::get).flatten().map(MiniStack::log).collect()
    }
}

fn or_panic<T>(result: &Result<T, String>) -> &T {
    result.as_ref().unwrap_or_else(|error| panic!("{error}"))
}
