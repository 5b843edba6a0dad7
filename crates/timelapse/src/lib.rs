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
//! | `scenario` | [`Scenario`]: what happens in a run, validated |
//! | `simulation` | [`run`]: the loop over the agenda, and one batch through the handler |
//! | `rehearsal` | [`rehearse`]: one batch on AWS that always works |
//! | `operators` | [`OperatorPause`]: what operators do during a run |
//! | `event` | [`EventNumber`]: which event; and the payload that it carries |
//! | `aws` | SQS, the event source mapping and Lambda |
//! | `world` | the simulated account: its parts, how one leads to another, and the calls it takes |
//! | `faults` | [`Fault`]: what goes wrong, how often and when |
//! | `check` | [`Invariant`]: what must hold of every run; [`Violation`]: one that did not |
//! | `figures` | [`Summary`]: the figures of a run |
//! | `watch` | [`Watcher`]: sees a run as it goes; [`Trace`]: writes it down |
//! | `plan` | [`Plan`]: from a goal to a policy, by rehearsing a grid of them
//! | `schedule` | [`Schedule`]: what a policy means, by following events that fail every time |

mod aws;
mod check;
mod event;
mod faults;
mod figures;
mod operators;
mod plan;
mod rehearsal;
mod scenario;
mod schedule;
mod simulation;
mod watch;
mod world;

#[doc(hidden)]
pub use aws::contract::QueueUnderContract;
pub use aws::failure_record::TargetError;
pub use aws::queue::IN_FLIGHT_LIMIT;
#[doc(hidden)]
pub use aws::queue::{Attributes, Depth};
pub use aws::target::TARGET_ARN;
pub use check::invariants::Invariant;
pub use check::violation::Violation;
pub use event::EventNumber;
pub use faults::fault::{Fault, UnknownFault};
pub use faults::mix::{Faults, Strikes};
pub use faults::records::UNLISTED_ARN;
pub use figures::calls::{ApiCall, CallCounts};
pub use figures::percentiles::Percentiles;
pub use figures::prices;
pub use figures::summary::{FaultCounts, Summary};
pub use operators::OperatorPause;
pub use plan::{Candidate, EVENTS as EVENTS_OF_A_PLAN, Goal, Limit, Plan, PlanError};
pub use rehearsal::{Call, Rehearsal, rehearse};
pub use scenario::{START, Scenario, ScenarioError};
pub use schedule::in_flight::InFlight;
pub use schedule::moves::Moves;
pub use schedule::{MAX_EVENTS, RetriesMade, Schedule, ScheduledRetry, Spread};
pub use simulation::{RunError, run};
pub use watch::trace::Trace;
pub use watch::watcher::Watcher;
pub use world::minutes::Minute;
