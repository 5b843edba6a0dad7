//! The real stack, end to end: the template and the bootstraps as they ship, against MiniStack over HTTP.
//!
//! All trials share one server and what is deployed there, and are started together: most of their time is waiting.

mod attach;
mod cargo_lambda;
mod cdk;
mod emulator;
mod hours;
mod limits;
mod moves;
mod orders;
mod remove;
mod retries;
mod sam;
mod upgrade;
mod verify_aws;
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
    let mut trials = trials![
        retries::fails_three_times_and_succeeds_on_the_fourth,
        retries::is_not_harmed_by_a_message_that_is_no_json,
        retries::loses_nothing_while_the_handler_is_stopped,
        retries::inline_style_needs_no_change_in_the_target,
        hours::outages_and_restarts_lose_nothing,
        moves::what_may_not_be_hidden_is_delayed_and_not_lost,
        limits::gives_up_after_max_retries_with_all_that_is_known,
        limits::never_invokes_a_function_outside_the_allow_list,
        limits::the_handlers_role_allows_exactly_what_it_does,
        limits::a_refused_parameter_fails_the_deployment,
        remove::a_deleted_stack_leaves_its_queues_and_another_drains_them,
        sam::the_example_can_be_watched_with_the_commands_of_the_pages,
        attach::a_function_is_attached_and_detached_to_a_stack_of_sam,
        attach::functions_are_attached_and_detached_to_a_handler_of_cargo_lambda,
        cargo_lambda::a_sample_is_rehearsed_with_cargo_lambda_watch,
        cdk::the_cdk_example_succeeds_on_the_fourth_invocation,
        cdk::the_cdk_example_gives_up_with_all_that_is_known,
        cdk::the_cdk_example_retries_a_function_that_reads_the_envelope_inline,
        cdk::the_cdk_example_can_be_watched_with_the_commands_of_its_page,
        cdk::the_cdk_example_builds_what_the_template_ships,
        emulator::the_bootstrap_runs_under_the_runtime_interface_emulator,
    ];
    // `make check-dist` asks for them. The first builds two releases.
    let slow = trials![
        upgrade::an_update_of_the_release_before_loses_nothing,
        verify_aws::the_script_asks_and_leaves_nothing,
        verify_aws::an_interrupted_run_leaves_nothing,
        verify_aws::the_script_refuses_to_begin_blindly,
    ];
    trials.extend(slow.into_iter().map(|trial| trial.with_ignored_flag(true)));
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
