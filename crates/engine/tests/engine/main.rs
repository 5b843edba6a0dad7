//! The engine's rules, tested through its public surface.
//!
//! | file | proves |
//! |---|---|
//! | `reasons` | each reason by one case, each limit at its edge, the order of the rules |
//! | `due_time` | when a retry is due, and how long a message is hidden until then |
//! | `directives` | `RetryAfter` and `NonRetryable` |
//! | `draws` | that jitter spreads messages evenly, and always draws the same |
//! | `events` | which retry comes next, since when, of what: envelopes, redriven dead-letters |
//! | `allow_list` | `TARGET_FUNCTIONS`, field by field |
//! | `policy`, `variables` | every refusal with its text, defaults, durations |
//! | `batch_event` | that an event is read as AWS's own crate reads it |
//! | `invocation_record` | what a record may lack, and payload bytes kept to the end |
//! | `dead_letter` | the dead-letter on the wire |
//! | `letters` | a message of the dead-letter queue read back, and how its event starts anew |
//! | `handle_batch` | performing, grouped, in order, concurrently, once a message |
//! | `moves` | waits performed by sending the message again: when, in which order, and that no due time changes |
//! | `kept` | that every message is kept while no function may be re-invoked |
//! | `pauses` | what pauses change: holds, ages, and the spread after them |
//! | `held` | how a batch reads the pauses, and what it keeps while they are unknown |
//! | `port_failures`, `deadline` | what is kept, hidden or dead-lettered when calls fail or must not start |
//! | `batch_invariants` | nothing is lost or done twice, whatever fails when |
//! | `model` | one event's protocol, every order of steps and faults: no loss, bounded retries, an end |
//! | `support`, `fakes` | messages and policies to test with; an account to fail with |

mod allow_list;
mod batch_event;
mod batch_invariants;
mod dead_letter;
mod deadline;
mod directives;
mod draws;
mod due_time;
mod events;
mod fakes;
mod handle_batch;
mod held;
mod invocation_record;
mod kept;
mod letters;
mod model;
mod moves;
mod pauses;
mod policy;
mod port_failures;
mod reasons;
mod support;
mod variables;
