//! The packages of `dist/` from the outside: in empty folders and without a Rust toolchain, against MiniStack.
//!
//! `make dist` builds them. The commands and the apps are those of `docs/deploy-cdk.md`.

mod app;
mod cdk;
mod installed;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

use cdk::World;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let runtime = Arc::new(Runtime::new().expect("the operating system gives us threads"));
    let world = Arc::new(World::default());
    macro_rules! trials {
        ($($module:ident::$name:ident),* $(,)?) => {
            vec![$({
                let (runtime, world) = (Arc::clone(&runtime), Arc::clone(&world));
                Trial::test(stringify!($name), move || run(&runtime, &world, $module::$name))
            }),*]
        };
    }
    let trials = trials![
        cdk::an_app_in_typescript_retries_until_it_succeeds,
        cdk::an_app_in_python_retries_until_it_succeeds,
        cdk::the_python_package_is_typed,
        cdk::both_languages_synthesize_the_same,
    ];
    // Each app's tools keep a processor busy, and its server waits for them.
    arguments.test_threads = arguments.test_threads.or(Some(1));
    let conclusion = libtest_mimic::run(&arguments, trials);
    // The servers end with it.
    drop(world);
    conclusion.exit_code()
}

fn run(runtime: &Runtime, world: &World, test: impl AsyncFnOnce(&World)) -> Result<(), Failed> {
    runtime.block_on(test(world));
    Ok(())
}
