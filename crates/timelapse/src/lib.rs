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
//! | `world` | the simulated account: its parts, and how one leads to another |
//! | `queue` | an SQS standard queue |
//! | `target`, `failure_record`, `payload` | asynchronous invocations, the records of failed ones, what they carry |
//! | `mapping` | the event source mapping: pollers, batches, partial responses |
//! | `ports` | the handler's ports on this world: where faults will strike |
//! | `ledger` | what became of each event; stops the run if one vanishes |
//! | `summary`, `calls`, `prices`, `percentiles` | the figures of a run |
//! | `watcher`, `trace` | [`Watcher`]: sees a run as it goes; [`Trace`]: writes it down |
//! | `rehearsal` | [`rehearse`]: one batch on AWS that always works |
//! | `schedule` | [`Schedule`]: what a policy means, by following events that fail every time |
//! | `id` | request and message ids |
//! | [`contention`] | another study altogether: clients that compete for one row, on AWS's published model |

mod agenda;
mod calls;
pub mod contention;
mod failure_record;
mod id;
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
mod watcher;
mod world;

pub use calls::{Calls, Operation};
pub use failure_record::TargetError;
pub use percentiles::Percentiles;
pub use rehearsal::{Call, Rehearsal, rehearse};
pub use scenario::{HANDLER_TIMEOUT, IN_FLIGHT_LIMIT, START, Scenario, ScenarioError, TARGET_ARN};
pub use schedule::{InFlight, MAX_EVENTS, RetriesMade, Retry, Schedule, Spread};
pub use simulation::run;
pub use summary::{Minute, Summary};
pub use trace::Trace;
pub use watcher::Watcher;
