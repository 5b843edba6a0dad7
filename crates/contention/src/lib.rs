//! The contention study: N clients update one row under optimistic concurrency, and each backs off
//! after a refused write. What does each jitter cost, and what does it save?
//!
//! The experiment is that of "Exponential Backoff And Jitter" (AWS Architecture Blog). A client
//! reads the row's version and writes it back; the write is refused if another client's came in
//! between, and after its backoff the client reads again. Each of the four hops takes
//! |Normal(10 ms, 2 ms)|. A run ends when the last client has its answer; its calls are the writes.
//!
//! It knows nothing of the rest of Comeback: neither the retry handler nor its policy takes part.
//!
//! ```
//! use comeback_contention::{Point, Strategy, Study};
//!
//! let points = Strategy::ALL.map(|strategy| Point { clients: 20, strategy, runs: 50 });
//! let report = Study::new(points.to_vec(), 42, false).unwrap().run(&|_| {});
//! let [none, _, _, full, _] = report.cells[..] else { panic!() };
//! assert!(full.calls < none.calls, "jitter saves calls");
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `study` | [`Study`]: points checked, run on every core, averaged into a [`Report`] |
//! | `point` | [`Point`]: what is run for one cell of the report, and the limits |
//! | `error` | [`StudyError`]: why a point cannot be run |
//! | `strategy` | [`Strategy`]: the wait after each refused write |
//! | `model` | the published figures: backoff and hops |
//! | `race` | one run, an event for each call: what a study runs |
//! | `reference` | the same run, an event for each message, its draws in the published order |
//! | `tournament` | who is next: each client has one thing under way |
//! | `draws` | where randomness comes from: a fast stream for each run |
//! | `cpython` | CPython's `random`, to the last digit |
//! | `growth` | [`growth_exponent`]: how calls grow with clients |

mod cpython;
mod draws;
mod error;
mod growth;
mod model;
mod point;
mod race;
mod reference;
mod strategy;
mod study;
mod tournament;

pub use error::StudyError;
pub use growth::growth_exponent;
pub use point::{MAX_CLIENTS, MAX_CLIENTS_WITHOUT_BACKOFF, Point};
pub use race::{Race, Write};
pub use strategy::{Strategy, UnknownStrategy};
pub use study::{Cell, Report, Study, writes};
