//! The contention study: N clients update one row under optimistic concurrency, and each client backs off after a
//! refused write. The study measures what each kind of jitter costs and saves.
//!
//! The experiment comes from "Exponential Backoff And Jitter" (AWS Architecture Blog). A client reads the row's
//! version, and includes this version in its write. The server refuses the write if another client has written since
//! the read. A refused client backs off, and then reads again.
//!
//! Each of the four messages (read, version, write, answer) takes |Normal(10 ms, 2 ms)| to arrive. A run ends when
//! every client has the answer to an accepted write. Only writes count as calls.
//!
//! The study is independent of the rest of Comeback: it uses neither the retry handler nor the handler's policy.
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
//! | `study` | [`Study`], which runs its [`Point`]s on every core and averages the runs into a [`Report`]; [`growth_exponent`] |
//! | `strategy` | [`Strategy`]: the wait after each refused write |
//! | `race` | one run of a study, with one event per call, and the random numbers of the run |
//! | `reference` | the same run, with one event per message, and with CPython's `random` in the article's order of draws |

mod race;
mod reference;
mod strategy;
mod study;

pub use race::Write;
pub use strategy::Strategy;
pub use study::{Cell, MAX_CLIENTS_WITHOUT_BACKOFF, Point, Report, Study, growth_exponent, writes};
