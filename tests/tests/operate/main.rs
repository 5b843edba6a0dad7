//! Tests the commands of `comeback` on a stack in MiniStack, with only the permissions that `docs/operate.md` lists.

mod alarms;
mod attach;
mod attach_elsewhere;
mod awkward;
mod clock;
mod console;
mod contract;
mod dead;
mod doctor;
mod failures;
mod local;
mod pause;
mod recall;
mod retry;
mod status;
mod trace;
mod waiting;
mod walk;
mod world;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use console::{dead_letters, hostile, incident, lab, looks, strangers};
use dead::discarding;
use world::World;

/// Number of concurrent trials. With more, some of the handler's calls might take 20 s, and so count as unanswered.
const AT_ONCE: usize = 8;

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
    // The longest trials start first.
    let trials = trials![
        walk::commands_of_the_page_work_from_attach_to_detach,
        doctor::doctor_finds_each_fault_and_none_on_a_healthy_stack,
        retry::waiting_events_are_retried_after_a_fix,
        recall::waiting_events_return_when_an_operator_says_so,
        dead_letters::console_redrives_discards_and_imports_dead_letters,
        incident::console_leads_through_an_incident,
        incident::console_works_by_keyboard_alone,
        looks::console_pages_are_accessible_and_pictured,
        local::local_stack_is_healthy_and_serves_until_stopped,
        pause::a_paused_function_is_held_and_then_retried,
        attach::a_function_is_attached_retried_and_detached,
        dead::dead_letters_are_listed_shown_and_redriven_to_success,
        alarms::alarms_notify_the_topic_and_are_on_the_dashboard,
        attach::an_alias_is_attached_beside_its_function,
        attach::killed_attach_is_resumed_by_repeating_it,
        attach::attach_reports_denied_and_unconfirmed_changes,
        attach::detach_finds_waiting_events_in_the_log,
        attach_elsewhere::a_handler_without_a_stack_is_changed_itself,
        attach_elsewhere::a_stack_without_the_parameter_is_left_alone,
        attach_elsewhere::settings_that_a_stack_owns_are_left_alone,
        contract::ministack_keeps_the_contract_of_the_port,
        awkward::commands_work_at_the_limits_of_names_tags_and_parameters,
        pause::pause_reports_what_it_cannot_do,
        status::status_shows_waiting_events_and_dead_letters,
        waiting::waiting_events_are_found_in_the_log,
        hostile::console_never_runs_what_it_shows,
        lab::console_lab_shows_what_simulate_prints,
        strangers::console_refuses_strangers,
        trace::event_is_traced_from_first_failure_to_success,
        discarding::discarded_dead_letters_come_back_and_ctrl_c_gives_back,
        clock::threads_wait_in_real_time_on_a_fast_clock,
    ];
    arguments.test_threads = arguments.test_threads.or(Some(AT_ONCE));
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
