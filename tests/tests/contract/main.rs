//! The contracts of SQS, the event source mapping and asynchronous invocations. The model that simulations
//! run on and MiniStack both fulfil them: each contract is run against both, so that neither can drift from
//! the other unseen.
//!
//! | file | holds |
//! |---|---|
//! | `stand` | what a contract asks of a queue and its mapping; where MiniStack is known to differ |
//! | `queue`, `mapping`, `invocation` | the contracts |
//! | `model`, `real` | the two that fulfil them |

mod invocation;
mod mapping;
mod model;
mod queue;
mod real;
mod stand;

use std::process::ExitCode;
use std::sync::Arc;

use comeback_tests::MiniStack;
use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use model::Model;
use real::Real;

/// Of queues whose own visibility timeout must not run out during a contract.
const LONG: u64 = 600;

/// The server that all trials share, started for the first that asks.
struct Server {
    runtime: Runtime,
    ministack: OnceCell<Result<MiniStack, String>>,
}

impl Server {
    async fn ministack(&self) -> &MiniStack {
        let started = self.ministack.get_or_init(|| MiniStack::start("contract")).await;
        started.as_ref().unwrap_or_else(|error| panic!("{error}"))
    }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let runtime = Runtime::new().expect("the operating system gives us threads");
    let server = Arc::new(Server { runtime, ministack: OnceCell::new() });
    macro_rules! trials {
        ($(($module:ident::$name:ident, $visibility_timeout:expr)),* $(,)?) => {
            vec![$({
                let server = Arc::clone(&server);
                Trial::test(concat!("model::", stringify!($name)), move || {
                    server.runtime.block_on($module::$name(&Model::new($visibility_timeout)));
                    Ok(())
                })
            }, {
                let server = Arc::clone(&server);
                Trial::test(concat!("ministack::", stringify!($name)), move || {
                    server.runtime.block_on(async {
                        let ministack = server.ministack().await;
                        let real = Real::new(ministack, stringify!($name), $visibility_timeout).await;
                        $module::$name(&real).await;
                    });
                    Ok(())
                })
            }),*]
        };
    }
    let trials = trials![
        (queue::a_message_is_received_as_it_was_sent, LONG),
        (queue::a_received_message_is_hidden, LONG),
        (queue::it_returns_after_the_queues_own_timeout, 1),
        (queue::each_receive_is_counted_and_the_first_is_remembered, LONG),
        (queue::a_hidden_message_returns_when_its_time_has_come, LONG),
        (queue::a_timeout_replaces_the_one_before, LONG),
        (queue::a_timeout_is_forgotten_on_the_next_receive, LONG),
        (queue::a_later_receive_makes_a_handle_stale, LONG),
        (queue::a_batch_of_timeouts_is_answered_entry_by_entry, LONG),
        (queue::a_deleted_message_is_gone, LONG),
        (queue::ten_messages_are_received_at_most, LONG),
        (queue::nothing_is_hidden_for_over_twelve_hours, LONG),
        (queue::what_is_visible_again_cannot_be_hidden, LONG),
        (queue::a_delayed_message_is_not_received_early, LONG),
        (queue::a_delayed_message_is_not_in_flight, LONG),
        (queue::a_delayed_message_keeps_its_body_and_its_attributes, LONG),
        (queue::nothing_is_delayed_for_over_fifteen_minutes, LONG),
        (queue::a_batch_is_sent_entry_by_entry, LONG),
        (mapping::a_record_holds_what_sqs_says, LONG),
        (mapping::a_delayed_message_is_delivered_with_its_attributes, LONG),
        (mapping::an_empty_answer_deletes_the_batch, LONG),
        (mapping::what_an_answer_names_is_kept_and_the_rest_deleted, LONG),
        (mapping::what_is_kept_keeps_the_visibility_that_was_set, LONG),
        (mapping::an_unknown_id_keeps_the_whole_batch, LONG),
        (mapping::an_empty_id_keeps_the_whole_batch, LONG),
        (invocation::its_failure_is_recorded_with_its_payload, LONG),
        (invocation::its_record_has_these_members, LONG),
    ];
    arguments.test_threads = arguments.test_threads.or(Some(trials.len()));
    let conclusion = libtest_mimic::run(&arguments, trials);
    if conclusion.has_failed() {
        let started = server.ministack.get().and_then(|started| started.as_ref().ok());
        eprintln!("{}", started.map(MiniStack::log).unwrap_or_default());
    }
    drop(server);
    conclusion.exit_code()
}
