//! The operator's commands against MiniStack, with the stack as it is deployed: in both output forms, and with no more
//! permissions than `docs/operate.md` lists.

mod dead;
mod status;
mod world;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use world::World;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let world = Arc::new(World::new());
    macro_rules! trials {
        ($($module:ident::$name:ident),* $(,)?) => {
            vec![$({
                let world = Arc::clone(&world);
                Trial::test(stringify!($name), move || run(&world, $module::$name))
            }),*]
        };
    }
    let trials = trials![
        dead::dead_letters_are_listed_shown_and_redriven_to_success,
        dead::discarded_letters_come_back_and_ctrl_c_gives_back,
        status::a_quiet_stack_has_nothing_that_waits,
    ];
    arguments.test_threads = arguments.test_threads.or(Some(trials.len()));
    let conclusion = libtest_mimic::run(&arguments, trials);
    if conclusion.has_failed() {
        eprintln!("{}", world.log());
    }
    drop(world);
    conclusion.exit_code()
}

fn run(world: &World, test: impl AsyncFnOnce(&World)) -> Result<(), Failed> {
    world.runtime.block_on(test(world));
    Ok(())
}
