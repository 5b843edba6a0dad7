//! Tests a release as its users see it, for `make check-dist`. The tests use the files in `dist/`, without Rust, on
//! MiniStack.
//!
//! | file | what it does |
//! |---|---|
//! | `outside` | provides a shell without Rust, and an empty folder for the downloaded release |
//! | `sam` | deploys with the SAM CLI and the AWS CLI; runs the installer; runs the handler under the emulator |
//! | `packages` | deploys the apps from docs/deploy-cdk.md with the packages for npm and PyPI |

mod outside;
mod packages;
mod sam;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Runtime;

use packages::World;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let runtime = Arc::new(Runtime::new().expect("the operating system gives us threads"));
    let world = Arc::new(World::default());
    macro_rules! trials {
        ($($module:ident::$name:ident),* $(,)?) => {
            vec![$({
                let (runtime, world) = (Arc::clone(&runtime), Arc::clone(&world));
                Trial::test(concat!(stringify!($module), "::", stringify!($name)), move || {
                    runtime.block_on($module::$name(&world));
                    Ok(())
                })
            }),*]
        };
    }
    let trials = trials![
        sam::sam_cli_deploys_the_release_and_a_function_is_retried,
        sam::aws_cli_deploys_the_release_and_its_output_attaches_a_function,
        sam::aws_cli_deploys_the_template_for_cloudformation,
        sam::installer_installs_the_command,
        sam::handler_runs_under_the_runtime_interface_emulator,
        packages::typescript_app_retries_until_success,
        packages::python_app_retries_until_success,
        packages::python_package_is_typed,
        packages::both_languages_synthesize_the_same,
    ];
    // One trial runs at a time, because each keeps a processor busy, and its server needs that processor too.
    arguments.test_threads = arguments.test_threads.or(Some(1));
    let conclusion = libtest_mimic::run(&arguments, trials);
    // Dropping the world ends the servers.
    drop(world);
    conclusion.exit_code()
}
