//! Simulates retries on a virtual clock, with the retry handler's own code, `comeback_engine::Environment`.
//!
//! ```
//! use comeback_engine::{Policies, Policy, Settings};
//! use comeback_timelapse::{Scenario, TARGET_ARN, run};
//!
//! let policy = Policy::new(Settings { target_functions: vec![TARGET_ARN.into()], ..Settings::default() }).unwrap();
//! let policies = Policies::from(policy);
//! let summary = run(&Scenario { events: 50, ..Scenario::default() }, &policies, &mut ()).unwrap();
//! assert_eq!(summary.delivered, 50);
//! ```
//!
//! [`run`] takes a [`Scenario`] and policies, and returns a [`Summary`]. If the run breaks an [`Invariant`], the error
//! contains a [`Violation`]. [`Schedule`] follows events that fail at every attempt. [`PolicyPlan`] finds the
//! cheapest policy that meets a goal.
//!
//! | file | holds |
//! |---|---|
//! | `simulation` | [`run`]: the main loop, which passes each batch to the handler |
//! | `world` | the simulated account, and how scheduled events, the handler's calls and faults change it |
//! | `aws` | SQS, the event source mapping and Lambda |
//! | `check` | the [`Invariant`]s of every run; the oracle that checks them |
//! | `faults` | [`Fault`]s, their rates and their windows |
//! | `account`, `rehearsal` | the handler's access to AWS; [`rehearse`]: one batch, with every AWS call accepted |
//! | `scenario`, `targets`, `operators`, `event` | the input to a run: its settings, functions, operators and events |
//! | `figures`, `watch` | the output of a run: [`Summary`] and prices; [`Watcher`], [`Trace`], [`Violation`] |
//! | `schedule`, `plan` | [`Schedule`]; [`PolicyPlan`] |
//! | `live` | [`Live`]: a deployment that keeps running while somebody acts on it |

/// Defines an enum with a string for each variant.
macro_rules! texts {
    (
        $(#[doc = $of_enum:literal])* pub enum $name:ident;
        $(#[doc = $of_text:literal])* pub fn $text:ident;
        $($(#[doc = $doc:literal])* $variant:ident = $value:literal,)*
    ) => {
        $(#[doc = $of_enum])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $doc])* #[doc = ""] #[doc = $value] $variant,)*
        }

        impl $name {
            /// All variants, in declaration order.
            pub const ALL: [Self; [$($value),*].len()] = [$(Self::$variant),*];

            $(#[doc = $of_text])*
            pub const fn $text(self) -> &'static str {
                match self {
                    $(Self::$variant => $value,)*
                }
            }
        }
    };
}

mod account;
mod aws;
mod check;
mod event;
mod faults;
mod figures;
mod live;
mod operators;
mod plan;
mod rehearsal;
mod scenario;
mod schedule;
mod simulation;
mod targets;
mod watch;
mod world;

pub use aws::agenda::START;
pub use aws::queue::{Depth, IN_FLIGHT_LIMIT};
pub use aws::target::{TARGET_ARN, TargetError};
pub use check::Invariant;
pub use check::ledger::FaultCounts;
pub use event::EventNumber;
pub use faults::fault::Fault;
pub use faults::mix::{Faults, Strikes};
pub use faults::records::UNLISTED_ARN;
pub use figures::prices::{self, ApiCall, CallCounts};
pub use figures::{Minute, Percentiles, Summary, TargetFigures};
pub use live::{Defect, Live, LiveFunction, Surroundings};
pub use operators::{MakeOperators, OperatedDeployment, Operators};
pub use plan::{Candidate, Goal, Limit, LimitedBy, PolicyPlan, REHEARSED};
pub use rehearsal::{Call, Hidden, Rehearsal, SentAgain, SentMessage, rehearse};
pub use scenario::{PolicyChange, Scenario, ScenarioError};
pub use schedule::in_flight::{InFlight, MoveCosts};
pub use schedule::{MAX_EVENTS, RetriesMade, Schedule, ScheduledRetry, Spread};
pub use simulation::{RunError, run};
pub use targets::SimulatedTarget;
pub use watch::{Trace, Violation, Watcher};
