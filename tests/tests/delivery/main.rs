//! Calls every batch API of `comeback-delivery` and runs its examples, over HTTP, with MiniStack in place of AWS.

#![expect(clippy::unwrap_used, reason = "this crate contains only tests")]

mod dynamodb;
mod eventbridge;
mod firehose;
mod kinesis;
mod sqs;

use std::sync::LazyLock;

use comeback_tests::MiniStack;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// Runs a test on the server and async runtime that all tests share. The server's connections need that runtime.
fn on_ministack(test: impl AsyncFnOnce(&'static MiniStack)) {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));
    static SERVER: OnceCell<MiniStack> = OnceCell::const_new();
    RUNTIME.block_on(async {
        let start = async || MiniStack::start("delivery").await.unwrap_or_else(|error| panic!("{error}"));
        test(SERVER.get_or_init(start).await).await;
    });
}

fn example(server: &MiniStack, name: &str, argument: &str) -> String {
    let tests = std::env::current_exe().expect("the test's own path");
    let examples =
        tests.parent().and_then(|deps| deps.parent()).expect("a target directory").join("examples");
    let program = examples.join(name);
    assert!(program.exists(), "build it: cargo build -p comeback-delivery --all-features --example {name}");
    server.shell().run(&format!("'{}' '{argument}'", program.display())).expect("the example succeeds")
}

/// Asserts the number of calls, unless some calls were retries, which happens on a busy machine.
fn in_calls(expected: u64, calls: u64, retries: u64) {
    assert!(calls == expected || retries > 0, "{calls} calls, not {expected}, without a retry");
}
