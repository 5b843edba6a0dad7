//! Tests that the parts of the repository agree: samples, golden outputs, documentation and versions. These tests
//! need no server.
//!
//! | file | tests that |
//! |---|---|
//! | `arrows` | crates that operate a deployment have only allowed dependencies; only certain files name an AWS SDK |
//! | `events` | each file in `events/` does what its README says |
//! | `golden` | the output of a few simulations and studies is unchanged, byte for byte |
//! | `infrastructure` | docs/attach-with-your-tool.md names attributes that Terraform and similar tools have |
//! | `imports` | each import inside a crate names the defining module, and no imports form a cycle |
//! | `pages` | each command in the documentation is run by a test, and each link leads to a file |
//! | `tools` | the dependencies of the Python tools are pinned by hash |
//! | `versions` | every package, lock file and page has the same version |

mod arrows;
mod events;
mod golden;
mod imports;
mod infrastructure;
mod pages;
mod tools;
mod versions;

use std::process::Command;

use comeback_tests::root;

/// Builds a crate that uses the libraries as another project would: outside the workspace, and without its settings.
#[test]
fn another_project_can_use_the_libraries() {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), Into::into);
    let ended = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--locked"])
        .current_dir(root().join("tests/outside"))
        .env("CARGO_TARGET_DIR", target.join("outside"))
        .output()
        .expect("cargo runs");
    let printed = String::from_utf8_lossy(&ended.stdout);
    let failed = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{printed}{failed}");
    // There are five tests of comeback-backoff, and five of comeback-delivery.
    assert_eq!(printed.matches("5 passed").count(), 2, "{printed}");
}
