//! Converts responses from CloudWatch Logs to our own types.

use std::time::Duration;

use aws_sdk_cloudwatchlogs::operation::filter_log_events::FilterLogEventsOutput;
use aws_sdk_cloudwatchlogs::operation::filter_log_events::builders::FilterLogEventsFluentBuilder;
use aws_sdk_cloudwatchlogs::types::InputLogEvent;
use comeback_engine::Timestamp;

use crate::aws::{LogEvent, LogFilter, LogGroup, LogPage};

pub(super) fn call(
    call: FilterLogEventsFluentBuilder,
    filter: &LogFilter<'_>,
) -> FilterLogEventsFluentBuilder {
    let time = |time: Timestamp| time.as_millis() as i64;
    call.log_group_name(filter.group)
        .set_log_stream_names(filter.stream.map(|stream| vec![stream.to_owned()]))
        .start_time(time(filter.since))
        .set_end_time(filter.until.map(time))
        .set_filter_pattern(filter.pattern.clone())
}

pub(super) fn page(answer: FilterLogEventsOutput) -> LogPage {
    let events = answer.events.unwrap_or_default().into_iter().filter_map(|event| {
        let at = Timestamp::from_millis(u64::try_from(event.timestamp?).ok()?);
        Some(LogEvent { at, stream: event.log_stream_name?, message: event.message? })
    });
    LogPage { events: events.collect(), next: answer.next_token.filter(|token| !token.is_empty()) }
}

pub(super) fn line(at: Timestamp, line: &str) -> InputLogEvent {
    let event = InputLogEvent::builder().timestamp(at.as_millis() as i64).message(line);
    event.build().expect("BUG: a line has a time and a message")
}

pub(super) fn group(group: &aws_sdk_cloudwatchlogs::types::LogGroup) -> LogGroup {
    let days = group.retention_in_days().map(|days| u64::from(days.unsigned_abs()));
    LogGroup {
        retention: days.map(|days| Duration::from_secs(days * 86_400)),
        class: group.log_group_class().map(|class| class.as_str().to_owned()),
    }
}
