//! Retries in fast motion: SQS, Lambda and the event source mapping on a virtual clock, driving
//! `comeback_engine::handle_batch` itself. What is rehearsed here is the code that ships; nothing
//! in this crate decides about a retry.
//!
//! ```
//! use comeback_engine::{Policy, Settings};
//! use comeback_timelapse::{Scenario, TARGET_ARN, run};
//!
//! let policy = Policy::new(Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() }).unwrap();
//! let summary = run(&Scenario { events: 50, ..Scenario::default() }, &policy, &mut ()).unwrap();
//! assert_eq!(summary.delivered, 50);
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `scenario` | [`Scenario`]: what happens in a run, checked |
//! | `simulation` | [`run`]: the loop over the agenda, and one batch through the handler |
//! | `agenda` | what happens when, ordered by (time, sequence) |
//! | `world` | the simulated account: its parts, how one leads to another, and the calls it takes |
//! | `queue` | an SQS standard queue |
//! | `target`, `failure_record`, `payload` | asynchronous invocations, the records of failed ones, what they carry |
//! | `mapping` | the event source mapping: pollers, batches, partial responses |
//! | `handling`, `ports` | the batch in the handler's hands; the handler's ports on this world |
//! | `faults` | [`Fault`]: what goes wrong, how often and when |
//! | `invariants`, `violation` | [`Invariant`]: what must hold of every run; [`Violation`]: one that did not |
//! | `ledger`, `copies` | what became of each event, and of each message |
//! | `summary`, `calls`, `prices`, `percentiles` | the figures of a run |
//! | `watcher`, `trace` | [`Watcher`]: sees a run as it goes; [`Trace`]: writes it down |
//! | `rehearsal` | [`rehearse`]: one batch on AWS that always works |
//! | `schedule` | [`Schedule`]: what a policy means, by following events that fail every time |
//! | `bench` | the queue and the mapping alone, for the contract they keep with the real ones |
//! | `id` | request and message ids |

mod agenda;
mod bench;
mod calls;
mod copies;
mod failure_record;
mod faults;
mod handling;
mod id;
mod invariants;
mod ledger;
mod mapping;
mod payload;
mod percentiles;
mod ports;
pub mod prices;
mod queue;
mod rehearsal;
mod scenario;
mod schedule;
mod simulation;
mod summary;
mod target;
mod trace;
mod violation;
mod watcher;
mod world;

#[doc(hidden)]
pub use bench::Bench;
pub use calls::{Calls, Operation};
pub use failure_record::TargetError;
pub use faults::{Fault, Faults, Strikes, UnknownFault};
pub use invariants::Invariant;
pub use percentiles::Percentiles;
pub use rehearsal::{Call, Rehearsal, rehearse};
pub use scenario::{
    HANDLER_TIMEOUT, IN_FLIGHT_LIMIT, START, Scenario, ScenarioError, TARGET_ARN, UNLISTED_ARN,
};
pub use schedule::{InFlight, MAX_EVENTS, RetriesMade, Retry, Schedule, Spread};
pub use simulation::{RunError, run};
pub use summary::{FaultCounts, Minute, Summary};
pub use trace::Trace;
pub use violation::Violation;
pub use watcher::Watcher;
