//! The contention study: how much time and how many calls each kind of jitter saves when clients update one row.
//!
//! The experiment comes from "Exponential Backoff And Jitter" (AWS Architecture Blog). A client reads the row's
//! version, and includes the version in its write. The server refuses the write if another client has written since the
//! read. A refused client backs off, and then reads again.
//!
//! Each message (read, version, write or answer) takes |Normal(10 ms, 2 ms)| to arrive. A run ends when every client
//! has the answer to an accepted write. Only writes count as calls.
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
//! | `study` | [`Study`], which runs its [`Point`]s on every core and averages the runs into a [`StudyReport`]; [`growth_exponent`] |
//! | `strategy` | [`Strategy`]: the wait after each refused write |
//! | `race` | one run of a study, with one event per call, and the random numbers of the run |
//! | `reference` | the same run, with one event per message; its random numbers are drawn as in the article's program |

mod race;
mod reference;
mod strategy;
mod study;

pub use race::Write;
pub use strategy::Strategy;
pub use study::{Cell, MAX_CLIENTS_WITHOUT_BACKOFF, Point, Study, StudyReport, growth_exponent, writes};
