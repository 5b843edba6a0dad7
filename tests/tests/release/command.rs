use comeback_tests::{MiniStack, pages};
use tokio::runtime::Runtime;

use crate::outside::Outside;

/// `packaging/tests` has what the installer refuses.
#[test]
fn the_installer_installs_the_command_of_the_release() {
    Runtime::new().expect("the operating system gives us threads").block_on(async {
        let ministack = MiniStack::start("release-command").await.unwrap_or_else(|error| panic!("{error}"));
        let outside = Outside::new(&ministack.shell(), "release-command-outside").await;
        let blocks = pages::blocks("docs/operate.md", "Install the command");
        let [install] = <[String; 1]>::try_from(blocks).unwrap_or_else(|blocks| panic!("{blocks:#?}"));
        let installed = outside.run_block(&install).unwrap_or_else(|error| panic!("{error}"));
        let version = concat!("comeback ", env!("CARGO_PKG_VERSION"));
        assert!(installed.starts_with(&format!("installed {version} to ")), "{installed}");
        let simulated = "~/.local/bin/comeback simulate --events 10";
        let simulated = outside.run(simulated).unwrap_or_else(|error| panic!("{error}"));
        assert!(simulated.contains("delivered"), "{simulated}");
    });
}
