//! The contention study: N clients update one row under optimistic concurrency, each backing off
//! after a refused write. What do the jitters cost, and what do they save?
//!
//! The experiment is that of "Exponential Backoff And Jitter" (AWS Architecture Blog). A client
//! reads the row's version and writes it back; the write is refused if somebody else's came in
//! between, and after its backoff the client reads again. Each of the four hops takes
//! |Normal(10 ms, 2 ms)|. A run ends when the last client has its answer; its calls are the writes.
//!
//! ```
//! use comeback_timelapse::contention::{Point, Strategy, Study};
//!
//! let points = Strategy::ALL.map(|strategy| Point { clients: 20, strategy, runs: 50 });
//! let report = Study::new(points.to_vec(), 42, false).unwrap().run(&|_| {});
//! let [none, _, _, full, _] = report.cells[..] else { panic!() };
//! assert!(full.calls < none.calls, "jitter saves calls");
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `strategy` | [`Strategy`]: the wait after each refused write |
//! | `study` | [`Study`]: points checked, run on every core, averaged into a [`Report`] |
//! | `error` | [`StudyError`]: why a point cannot be run |
//! | `race` | one run, an event for each call: what a study runs |
//! | `reference` | the same run, an event for each message and its draws in the published order |
//! | `tournament` | who is next: each client has one thing under way |
//! | `draws` | where randomness comes from: a fast stream for each run |
//! | `cpython` | CPython's `random`, to the last digit |
//! | `growth` | [`growth_exponent`]: how calls grow with clients |

mod cpython;
mod draws;
mod error;
mod growth;
mod race;
mod reference;
mod strategy;
mod study;
mod tournament;

pub use error::StudyError;
pub use growth::growth_exponent;
pub use race::{Race, Write};
pub use strategy::{Strategy, UnknownStrategy};
pub use study::{Cell, MAX_CLIENTS, MAX_CLIENTS_WITHOUT_BACKOFF, Point, Report, Study, writes};

/// Half the ceiling of the first wait, in ms: the study's attempts count from 1, as the published
/// program's do.
const BASE_MS: f64 = 5.0;
/// No wait is longer, in ms.
const CAP_MS: f64 = 2_000.0;
/// A hop takes |Normal(mean, deviation)|, in ms.
const HOP_MEAN_MS: f64 = 10.0;
const HOP_DEVIATION_MS: f64 = 2.0;
