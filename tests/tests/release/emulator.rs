use comeback_tests::{ARCHITECTURE, MiniStack, assert_runs_under_the_emulator, scratch};
use tokio::runtime::Runtime;

use crate::outside::dist;

#[test]
fn the_released_handler_runs_under_the_runtime_interface_emulator() {
    Runtime::new().expect("the operating system gives us threads").block_on(async {
        let ministack = MiniStack::start("release-emulator").await.unwrap_or_else(|error| panic!("{error}"));
        let folder = scratch("release-emulator-code");
        let shell = ministack.shell();
        shell
            .clone()
            .with("ARCHIVE", dist().join(format!("retry-handler-{ARCHITECTURE}.zip")))
            .with("FOLDER", &folder)
            // Python gives no file the mode that the archive names; packaging/tests looks at that.
            .run("python3 -m zipfile -e \"$ARCHIVE\" \"$FOLDER\" && chmod 755 \"$FOLDER/bootstrap\"")
            .unwrap_or_else(|error| panic!("{error}"));
        assert_runs_under_the_emulator(&shell, &folder.join("bootstrap"), "release-rie").await;
    });
}
