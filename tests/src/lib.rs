//! The real stack on one machine: MiniStack in place of AWS, the template and the bootstraps as they ship.
//!
//! | file | holds |
//! |---|---|
//! | `repository` | where things are: the repository, the tools `make` installed |
//! | `pages` | the documentation pages and their shell blocks, to be run as they are written |
//! | `shell` | [`Shell`]: commands in a fixed environment; [`Background`]: a server that ends with us |
//! | `poll` | [`eventually`]: waiting with a bounded deadline |
//! | `http` | a request on a plain socket |
//! | `ministack` | [`MiniStack`]: the server, and a shell and clients that talk to it |
//! | `stack` | [`Stack`]: `sam build`, `sam deploy`, and what came of it |
//! | `by_hand` | the same without CloudFormation: the commands of docs/deploy-cargo-lambda.md |
//! | `cdk` | the same of the CDK: the example app of `infra/` |
//! | `operator` | [`Operator`]: somebody who runs the `comeback` command, with or without all permissions |
//! | `target` | functions to be retried |
//! | `watch` | what functions logged, and what the dead-letter queue holds |
//! | `emulator` | the retry handler under AWS's Runtime Interface Emulator, and what it answers to a sample |
//! | `chromium` | [`Chromium`]: a browser without a window, to look at pages |

mod by_hand;
mod cdk;
mod chromium;
mod emulator;
mod http;
mod ministack;
mod operator;
pub mod pages;
mod poll;
mod repository;
mod shell;
mod stack;
mod target;
mod watch;

pub use by_hand::deploy_by_hand;
pub use cdk::deploy_example;
pub use chromium::{Chromium, Look};
pub use emulator::{assert_kept, assert_runs_under_the_emulator};
pub use http::{free_port, request};
pub use ministack::MiniStack;
pub use operator::{Operator, Ran};
pub use poll::eventually;
pub use repository::{built_command, root, scratch, template};
pub use shell::{Background, Shell};
pub use stack::{ARCHITECTURE, Stack, build, deploy, hide_briefly};
pub use target::{
    LONGEST_TIMEOUT, answering_target, enveloped_target, example_target, failing_target, kill, outage_target,
    plain_target,
};
pub use watch::{DeadLetter, dead_letter, log_lines};
