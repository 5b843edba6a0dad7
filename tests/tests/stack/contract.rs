//! The contracts of SQS, the event source mapping and asynchronous invocations. Each contract runs against MiniStack and
//! against the model that simulations run on, so that neither drifts from the other unseen.

mod mapping;
mod queue;
mod real;
mod stand;

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::world::{RUNTIME, World};
use real::Real;
use stand::Model;

/// A visibility timeout, in seconds, that does not run out during a contract.
const LONG: u64 = 600;

/// Two trials of each contract: `contract::model::…` and `contract::ministack::…`.
pub(crate) fn trials(world: &Arc<World>) -> Vec<Trial> {
    macro_rules! trials {
        ($(($module:ident::$name:ident, $visibility_timeout:expr)),* $(,)?) => {
            vec![$(Trial::test(concat!("contract::model::", stringify!($name)), move || {
                RUNTIME.block_on($module::$name(&Model::new($visibility_timeout)));
                Ok(())
            }), {
                let world = Arc::clone(world);
                Trial::test(concat!("contract::ministack::", stringify!($name)), move || {
                    RUNTIME.block_on(async {
                        let ministack = world.contract().await;
                        let real = Real::new(ministack, stringify!($name), $visibility_timeout).await;
                        $module::$name(&real).await;
                    });
                    Ok(())
                })
            }),*]
        };
    }
    trials![
        (queue::message_is_received_as_sent, LONG),
        (queue::received_message_is_hidden, LONG),
        (queue::message_returns_after_the_queues_timeout, 1),
        (queue::receives_are_counted_and_the_first_remembered, LONG),
        (queue::hidden_message_returns_in_time, LONG),
        (queue::timeout_replaces_the_one_before, LONG),
        (queue::timeout_is_forgotten_on_the_next_receive, LONG),
        (queue::later_receive_makes_a_handle_stale, LONG),
        (queue::timeouts_are_answered_entry_by_entry, LONG),
        (queue::deleted_message_is_gone, LONG),
        (queue::ten_messages_are_received_at_most, LONG),
        (queue::nothing_is_hidden_for_over_twelve_hours, LONG),
        (queue::visible_message_cannot_be_hidden, LONG),
        (queue::delayed_message_is_not_received_early, LONG),
        (queue::delayed_message_is_not_in_flight, LONG),
        (queue::delayed_message_keeps_body_and_attributes, LONG),
        (queue::nothing_is_delayed_for_over_fifteen_minutes, LONG),
        (queue::batch_is_sent_entry_by_entry, LONG),
        (mapping::record_holds_what_sqs_says, LONG),
        (mapping::delayed_message_is_delivered_with_attributes, LONG),
        (mapping::empty_answer_deletes_the_batch, LONG),
        (mapping::named_messages_are_kept_and_the_rest_deleted, LONG),
        (mapping::kept_message_keeps_its_visibility, LONG),
        (mapping::unknown_id_keeps_the_whole_batch, LONG),
        (mapping::empty_id_keeps_the_whole_batch, LONG),
        (mapping::failure_is_recorded_with_its_payload, LONG),
        (mapping::failure_record_has_these_members, LONG),
    ]
}
