//! The repository against itself, without a server: events, golden outputs, pages and versions.
//!
//! | file | holds |
//! |---|---|
//! | `arrows` | the operator's crates: their dependencies, and the files that name an AWS SDK |
//! | `events` | each file in `events/` does what its README says |
//! | `golden` | a few runs and studies, byte for byte |
//! | `infrastructure` | the page for Terraform and similar tools against the tools' packages |
//! | `imports` | imports inside a crate name the module, and point one way |
//! | `pages` | a test runs every command of the documentation, and every link leads somewhere |
//! | `tools` | the Python tools are locked by hashes |
//! | `versions` | one version everywhere |

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

/// The libraries as another project uses them: a crate outside the workspace, without its settings.
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
    // The five most common uses of comeback-backoff, and those of comeback-delivery.
    assert_eq!(printed.matches("5 passed").count(), 2, "{printed}");
}
