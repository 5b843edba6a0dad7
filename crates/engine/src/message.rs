//! What arrives: the event of a batch, its messages, and what each of them says.
//!
//! | file | holds |
//! |---|---|
//! | `batch_event` | [`BatchEvent`](batch_event::BatchEvent): the event's JSON, read message by message |
//! | `record` | [`Record`](record::Record): a message of the retry queue |
//! | `moved` | [`Moved`](moved::Moved): what a message that was sent again was first |
//! | `invocation_record` | [`InvocationRecord`](invocation_record::InvocationRecord): what Lambda wrote into its body |
//! | `event` | [`FailedEvent`](event::FailedEvent): which retry of what comes next |
//! | `trace` | [`TraceHeader`](trace::TraceHeader): the X-Ray trace that a message belongs to |
//! | `json` | reading JSON leniently, part by part |

pub(crate) mod batch_event;
pub(crate) mod event;
pub(crate) mod invocation_record;
pub(crate) mod json;
pub(crate) mod moved;
pub(crate) mod record;
pub(crate) mod trace;
