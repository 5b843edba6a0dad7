//! Tests the shipped stack end to end: the template and the built functions, over HTTP, with MiniStack in place of AWS.
//!
//! The trials share servers and deployments, and all start at the same time.
//!
//! | file | holds |
//! |---|---|
//! | `retries`, `orders` | retries on the real clock, and on a clock 60 times as fast |
//! | `policies` | policies of individual functions, and changes to them while an event is waiting |
//! | `attach` | the documentation's commands for attaching functions and for removing Comeback |
//! | `deploy` | the documentation's commands for deploying with SAM and the CDK, and for `cargo lambda watch` |
//! | `cloudformation`, `encryption` | commands in the documentation for plain CloudFormation and for a KMS key |
//! | `releases` | for `make check-dist`: updating from the previous release, and running `make verify-aws` |
//! | `world` | the shared servers and deployments |
//! | `contract` | MiniStack's SQS, mapping and asynchronous invocations behave as the simulation's |

mod attach;
mod cloudformation;
mod consumers;
mod contract;
mod deploy;
mod encryption;
mod orders;
mod policies;
mod releases;
mod retries;
mod world;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use world::{RUNTIME, World};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let world = Arc::new(World::default());
    macro_rules! trials {
        ($($module:ident::$name:ident),* $(,)?) => {
            vec![$({
                let world = Arc::clone(&world);
                Trial::test(concat!(stringify!($module), "::", stringify!($name)), move || {
                    RUNTIME.block_on($module::$name(&world));
                    Ok(())
                })
            }),*]
        };
    }
    let mut trials = trials![
        retries::succeeds_on_the_fourth_invocation,
        retries::dead_letters_after_max_retries,
        orders::outages_and_restarts_lose_nothing,
        orders::moved_messages_are_not_lost,
        policies::policies_of_the_template_change_while_an_event_waits,
        attach::function_is_attached_to_a_stack_and_detached,
        attach::functions_are_attached_to_a_handler_of_cargo_lambda,
        attach::deleted_stack_leaves_its_queues_to_another,
        deploy::commands_of_the_sam_page_work,
        deploy::commands_of_the_cdk_page_work,
        cloudformation::commands_of_the_cloudformation_page_work,
        encryption::stack_is_given_a_key_and_then_another,
        deploy::sample_is_rehearsed_with_cargo_lambda_watch,
        consumers::python_messages_end_delivered_or_dead_lettered,
        consumers::node_messages_end_delivered_or_dead_lettered,
        consumers::rust_messages_end_delivered_or_dead_lettered,
        consumers::longest_wait_outlasts_the_queues_timeout,
    ];
    let for_check_dist = trials![
        releases::update_of_the_previous_release_loses_nothing,
        releases::verify_aws_asks_everything_and_leaves_nothing,
        releases::interrupted_verify_aws_leaves_nothing,
        releases::verify_aws_refuses_to_begin_blindly,
    ];
    trials.extend(for_check_dist.into_iter().map(|trial| trial.with_ignored_flag(true)));
    trials.extend(contract::trials(&world));
    arguments.test_threads = arguments.test_threads.or(Some(trials.len()));
    let conclusion = libtest_mimic::run(&arguments, trials);
    if conclusion.has_failed() {
        eprintln!("{}", world.log());
    }
    drop(world);
    conclusion.exit_code()
}
