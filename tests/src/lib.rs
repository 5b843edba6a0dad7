//! Runs the shipped stack on this machine for tests. MiniStack, a local server, stands in for AWS.
//!
//! A test starts a [`MiniStack`], deploys a [`Stack`] to it, and creates and attaches functions. It then invokes the
//! functions and waits ([`eventually`]) for the expected result. A [`Shell`] runs the commands in the documentation,
//! and an [`Operator`] runs the `comeback` command.
//!
//! | file | purpose |
//! |---|---|
//! | `repository` | paths, scratch folders, the built command and the tools; `template.yaml` as JSON |
//! | `pages` | the documentation pages and their code blocks |
//! | `shell` | [`Shell`] for commands; [`Background`], a running server; [`eventually`], which waits for a result |
//! | `ministack` | [`MiniStack`]: the server, a shell and clients that use it, its logs and dead-letters |
//! | `stack` | [`Stack`]: the shipped stack, built and deployed with the SAM CLI, with the CDK, or by hand |
//! | `target` | creation of functions for the retry handler to re-invoke |
//! | `operator` | [`Operator`]: runs `comeback` with all permissions, or only with those in `docs/operate.md` |
//! | `emulator` | the retry handler under AWS's Runtime Interface Emulator |
//! | `chromium` | [`Chromium`]: a headless browser |

mod chromium;
mod emulator;
mod ministack;
mod operator;
pub mod pages;
mod repository;
mod shell;
mod stack;
mod target;

pub use chromium::{Chromium, Look, Tab};
pub use emulator::{assert_kept, assert_runs_under_the_emulator};
pub use ministack::{DeadLetter, MiniStack, dead_letter, dead_letters, log_lines, on_fast_clock};
pub use operator::{Operator, Ran};
pub use repository::{built_command, root, scratch, template};
pub use shell::{Background, PATIENCE, Shell, eventually, free_port, request, until};
pub use stack::{ARCHITECTURE, SAMS_OWN, Stack, build, deploy_by_hand, deploy_example};
pub use target::{
    Consumer, answering_target, consumer_target, enveloped_target, example_target, failing_target, kill,
    outage_target, plain_target,
};
