//! Seeing a run as it goes: [`Watcher`](watcher::Watcher), and [`Trace`](trace::Trace), which writes it down.

pub(crate) mod trace;
pub(crate) mod watcher;
