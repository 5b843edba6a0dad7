//! Contracts for SQS, the event source mapping and asynchronous invocations.
//!
//! Each is checked on MiniStack and on the simulations' model of SQS. Some are also checked on the queue that the
//! engine's tests use.

#[path = "../../../crates/engine/tests/engine/account/queue.rs"]
mod engine;
mod mapping;
mod queue;
mod real;
mod stand;

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::world::{RUNTIME, World};
use real::Real;
use stand::{EngineQueue, Model};

/// A visibility timeout, in seconds, that does not end while a contract is being tested.
const LONG: u64 = 600;

/// Returns the trials of all contracts. Each contract has the trials `contract::model::…` and
/// `contract::ministack::…`; some also have `contract::engine::…`.
pub(crate) fn trials(world: &Arc<World>) -> Vec<Trial> {
    let mut trials = Vec::new();
    macro_rules! trials {
        ($($stand:ident: ($module:ident::$name:ident, $visibility_timeout:expr)),* $(,)?) => {
            $(trials!(@ $stand $module $name $visibility_timeout);)*
        };
        (@ queue $module:ident $name:ident $visibility_timeout:expr) => {
            trials!(@ stand $module $name $visibility_timeout);
            trials.push(Trial::test(concat!("contract::engine::", stringify!($name)), move || {
                RUNTIME.block_on($module::$name(&EngineQueue::new($visibility_timeout)));
                Ok(())
            }));
        };
        (@ stand $module:ident $name:ident $visibility_timeout:expr) => {
            trials.push(Trial::test(concat!("contract::model::", stringify!($name)), move || {
                RUNTIME.block_on($module::$name(&Model::new($visibility_timeout)));
                Ok(())
            }));
            let world = Arc::clone(world);
            trials.push(Trial::test(concat!("contract::ministack::", stringify!($name)), move || {
                RUNTIME.block_on(async {
                    let ministack = world.contract().await;
                    let real = Real::new(ministack, stringify!($name), $visibility_timeout).await;
                    $module::$name(&real).await;
                });
                Ok(())
            }));
        };
    }
    trials![
        queue: (queue::message_is_received_as_sent, LONG),
        queue: (queue::received_message_is_hidden, LONG),
        queue: (queue::message_returns_after_the_queues_timeout, 1),
        queue: (queue::receives_are_counted_and_the_first_remembered, LONG),
        queue: (queue::hidden_message_returns_in_time, LONG),
        queue: (queue::timeout_replaces_the_one_before, LONG),
        queue: (queue::timeout_is_forgotten_on_the_next_receive, LONG),
        queue: (queue::old_handle_hides_but_does_not_delete, LONG),
        queue: (queue::timeouts_are_answered_entry_by_entry, LONG),
        queue: (queue::deleted_message_is_gone, LONG),
        stand: (queue::ten_messages_are_received_at_most, LONG),
        stand: (queue::nothing_is_hidden_for_over_twelve_hours, LONG),
        stand: (queue::visible_message_cannot_be_hidden, LONG),
        stand: (queue::delayed_message_is_not_received_early, LONG),
        stand: (queue::delayed_message_is_not_in_flight, LONG),
        stand: (queue::delayed_message_keeps_body_and_attributes, LONG),
        stand: (queue::nothing_is_delayed_for_over_fifteen_minutes, LONG),
        stand: (queue::batch_is_sent_entry_by_entry, LONG),
        stand: (mapping::record_holds_what_sqs_says, LONG),
        stand: (mapping::delayed_message_is_delivered_with_attributes, LONG),
        stand: (mapping::empty_answer_deletes_the_batch, LONG),
        stand: (mapping::named_messages_are_kept_and_the_rest_deleted, LONG),
        stand: (mapping::kept_message_keeps_its_visibility, LONG),
        stand: (mapping::unknown_id_keeps_the_whole_batch, LONG),
        stand: (mapping::empty_id_keeps_the_whole_batch, LONG),
        stand: (mapping::failure_is_recorded_with_its_payload, LONG),
        stand: (mapping::failure_record_has_these_members, LONG),
    ];
    trials
}
