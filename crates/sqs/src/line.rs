//! The consumer's log: a JSON line for each failed record, without the message's body.

use comeback_engine::{DueBy, LOG_VERSION, LogLevel, ReasonCode, Timestamp};
use serde::Serialize;

/// A line in the consumer's log. Fields shared with the engine's `LogLine` have the same names, types and meanings.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ConsumerLine<'a> {
    pub(crate) timestamp: Timestamp,
    pub(crate) level: LogLevel,
    pub(crate) v: u64,
    pub(crate) action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) due: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) due_by: Option<DueBy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_ignored: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<ReasonCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

impl ConsumerLine<'_> {
    pub(crate) fn new(timestamp: Timestamp, level: LogLevel, action: &'static str) -> Self {
        Self {
            timestamp,
            level,
            v: LOG_VERSION,
            action,
            message_id: None,
            target: None,
            retry: None,
            due: None,
            due_by: None,
            error_type: None,
            error_message: None,
            retry_after_ignored: None,
            reason: None,
            detail: None,
            problem: None,
            remedy: None,
        }
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).expect("BUG: strings and numbers are JSON")
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::LogLine;
    use serde_json::{Value, json};

    use super::*;

    /// Checks that the parser of the retry handler's log accepts a consumer's line. `besides` holds fields that only
    /// the handler writes.
    fn read_by_the_handlers_reader(
        action: &'static str,
        change: impl FnOnce(&mut ConsumerLine<'_>),
        besides: Value,
    ) {
        let now = Timestamp::from_millis(1_795_694_400_145);
        let mut line = ConsumerLine {
            message_id: Some("m-0"),
            target: Some("arn:aws:lambda:eu-west-1:123456789012:function:orders"),
            retry: Some(3),
            error_type: Some("RetryAfter"),
            error_message: Some("soon"),
            retry_after_ignored: Some("\"soon\": why".into()),
            ..ConsumerLine::new(now, LogLevel::Warn, action)
        };
        change(&mut line);
        let Value::Object(ours) = serde_json::from_str(&line.json()).unwrap() else { panic!("an object") };
        let mut whole = ours.clone();
        whole.extend(json!({"key": "m-0", "first_failure": now}).as_object().unwrap().clone());
        whole.extend(besides.as_object().unwrap().clone());
        let text = Value::Object(whole).to_string();
        let read = LogLine::read(&text).unwrap_or_else(|why| panic!("{why:?}: {text}"));
        let again = serde_json::to_value(read).unwrap();
        for (name, value) in ours.iter().filter(|(name, _)| *name != "error_message") {
            assert_eq!(again.get(name), Some(value), "{name} of {action}");
        }
    }

    #[test]
    fn shared_fields_match_the_handlers_line() {
        let due = Some(Timestamp::from_secs(1_795_694_500));
        let failed = |line: &mut ConsumerLine<'_>| {
            line.problem = Some("sqs:SendMessage on dead: AccessDenied".into());
            line.remedy = Some("allow it".into());
        };
        let ended = |line: &mut ConsumerLine<'_>| {
            line.reason = Some(ReasonCode::MaxAge);
            line.detail = Some("sent at".into());
        };
        let waits = |line: &mut ConsumerLine<'_>| (line.due, line.due_by) = (due, Some(DueBy::RetryAfter));
        read_by_the_handlers_reader("defer", waits, json!({"delay": 100}));
        read_by_the_handlers_reader("dead_letter", ended, json!({}));
        read_by_the_handlers_reader("keep", failed, json!({"cause": "undecided"}));
    }
}
