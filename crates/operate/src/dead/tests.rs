//! The work on letters over simulated queues, which fulfil the contract of the real ones (`tests/tests/contract`).
//!
//! | file | holds |
//! |---|---|
//! | `simulated` | [`Simulated`](simulated::Simulated): two queues, calls that fail, and a command that is killed at any call |
//! | `letters` | letters of every kind to put there |
//! | `history` | letters, faults and kills drawn from a seed |
//! | `kills` | nothing is lost and nothing doubled without a cause, whenever a command is killed and however often |
//! | `filters` | which letters a filter takes; what is refused |
//! | `scans` | that every letter is read once, and given back |
//! | `works` | pace, limit, and what ends the work |
//! | `move_tasks` | SQS's own redrive: started, followed, cancelled |
//! | `files` | exports: their lines, and their way back |

mod files;
mod filters;
mod history;
mod kills;
pub(super) mod letters;
mod move_tasks;
mod scans;
pub(super) mod simulated;
mod works;
