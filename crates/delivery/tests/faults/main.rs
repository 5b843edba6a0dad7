//! Tests of every API against a service that listens on a real socket and fails in every known way.

#![expect(clippy::unwrap_used, reason = "test code only")]

mod apis;
mod entries;
mod failing;
mod service;

/// Runs each generic test for each API.
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
