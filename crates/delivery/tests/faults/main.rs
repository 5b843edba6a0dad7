//! Every API against a service on a real socket that fails in every way there is. No test sleeps, and
//! every draw has a seed.
//!
//! | file | holds |
//! |---|---|
//! | `service` | the service: HTTP, and what it does with a call |
//! | `wire` | the APIs' requests and answers, and the limits as the services document them |
//! | `apis` | the senders behind one face, and what must hold of every delivery |
//! | `client` | the caller's client: its connections are used, its own retries are not |
//! | `failing` | failures of entries, of calls, of connections |
//! | `ending` | deliveries that end early: cancelled, or at a deadline |
//! | `limits` | entries at, one under and one over each limit |
//! | `order` | FIFO groups and DynamoDB keys |
//! | `tables` | a DynamoDB table that is not there |

#![expect(clippy::unwrap_used, reason = "all that is here is a test's")]

mod apis;
mod client;
mod ending;
mod failing;
mod limits;
mod order;
mod service;
mod tables;
mod wire;

/// Each of these generic tests, for each API.
macro_rules! for_every_api {
    ($($test:ident),+ $(,)?) => {
        $crate::for_every_api!(@api [$($test)+]
            send_messages SendMessages, change_visibility ChangeVisibility, delete_messages DeleteMessages,
            batch_write_item BatchWriteItem, put_records PutRecords, put_record_batch PutRecordBatch,
            put_events PutEvents);
    };
    (@api $tests:tt $($module:ident $api:ident),+) => {
        $(mod $module { $crate::for_every_api!(@tests $api $tests); })+
    };
    (@tests $api:ident [$($test:ident)+]) => {
        $(#[tokio::test] async fn $test() { super::$test::<crate::apis::$api>().await; })+
    };
}
pub(crate) use for_every_api;
