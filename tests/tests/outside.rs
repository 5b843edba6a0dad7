//! The libraries as another project uses them: a crate of its own, outside the workspace and without its settings.

use std::path::Path;
use std::process::Command;

#[test]
fn the_examples_of_another_project_run() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(repository.join("target"), Into::into);
    let ended = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--locked"])
        .current_dir(repository.join("tests/outside"))
        .env("CARGO_TARGET_DIR", target.join("outside"))
        .output()
        .expect("cargo runs");
    let printed = String::from_utf8_lossy(&ended.stdout);
    let failed = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{printed}{failed}");
    // Six uses of comeback-backoff, and four deliveries.
    for passed in ["6 passed", "4 passed"] {
        assert!(printed.contains(passed), "{printed}");
    }
}
