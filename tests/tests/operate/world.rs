use comeback_tests::{MiniStack, Stack, build};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// MiniStack servers and deployed stacks that the trials share.
pub(crate) struct World {
    pub(crate) runtime: Runtime,
    ministack: OnceCell<Result<MiniStack, String>>,
    sped_up: OnceCell<Result<MiniStack, String>>,
    built: OnceCell<Result<(), String>>,
    by_hand: OnceCell<Result<MiniStack, String>>,
    attaching: OnceCell<Stack>,
    pausing: OnceCell<Stack>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            runtime: Runtime::new().expect("the operating system gives us threads"),
            ministack: OnceCell::new(),
            sped_up: OnceCell::new(),
            built: OnceCell::new(),
            by_hand: OnceCell::new(),
            attaching: OnceCell::new(),
            pausing: OnceCell::new(),
        }
    }

    pub(crate) async fn ministack(&self) -> &MiniStack {
        or_panic(self.ministack.get_or_init(|| MiniStack::start("operate")).await)
    }

    /// A separate server, on which an hour passes in a minute.
    pub(crate) async fn sped_up(&self) -> &MiniStack {
        or_panic(self.sped_up.get_or_init(|| MiniStack::start_sped_up("operate-sped-up", 60)).await)
    }

    pub(crate) async fn built(&self) {
        let shell = self.ministack().await.shell();
        or_panic(self.built.get_or_init(async || build(&shell, "target/end-to-end/operate-build")).await);
    }

    /// Deploys the shipped template as a stack that a single trial may change or break.
    pub(crate) async fn deploy(&self, name: &str, parameters: &str) -> Stack {
        self.built().await;
        let stack = self.ministack().await.deploy(name, parameters).await;
        stack.unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) async fn deploy_sped_up(&self, name: &str, parameters: &str) -> Stack {
        self.built().await;
        let stack = self.sped_up().await.deploy(name, parameters).await;
        stack.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The stack to which tests attach functions, with backoffs of one second.
    pub(crate) async fn attaching(&self) -> &Stack {
        self.attaching.get_or_init(|| self.deploy("attaching", "BaseBackoff=1 MaxBackoff=1")).await
    }

    /// The stack for the tests that pause functions, with a handler that may invoke any function.
    pub(crate) async fn pausing(&self) -> &Stack {
        let any = format!("TargetFunctions={}", MiniStack::function_arn("*"));
        self.pausing.get_or_init(|| async move { self.deploy("pausing", &any).await }).await
    }

    /// A separate server for the stack deployed by hand, so that its log group cannot clash with another stack's.
    pub(crate) async fn by_hand(&self) -> &MiniStack {
        self.built().await;
        or_panic(self.by_hand.get_or_init(|| MiniStack::start("operate-by-hand")).await)
    }

    pub(crate) fn log(&self) -> String {
        let started = [&self.ministack, &self.sped_up, &self.by_hand].into_iter().filter_map(OnceCell::get);
        started.flatten().map(MiniStack::log).collect()
    }
}

fn or_panic<T>(result: &Result<T, String>) -> &T {
    result.as_ref().unwrap_or_else(|error| panic!("{error}"))
}
