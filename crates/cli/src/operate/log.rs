//! Lines of the handler's log, for tests.

#[cfg(test)]
pub(crate) mod tests {
    use comeback_engine::LogLine;
    use serde_json::{Value, json};

    const NOW: &str = "2026-09-14T15:46:54.145Z";

    /// A line about the first message of event `k-1`, with these fields besides or instead.
    pub(crate) fn test_line(fields: Value) -> LogLine<'static> {
        let mut line = json!({
            "timestamp": NOW, "level": "INFO", "v": 1, "message_id": "m-1", "key": "k-1", "target": "arn:orders",
            "retry": 1, "request_id": "r-0", "error_type": "TargetDown", "first_failure": "1970-01-01T00:01:40Z",
        });
        let known = line.as_object_mut().unwrap();
        known.extend(fields.as_object().unwrap().clone());
        known.retain(|_, value| !value.is_null());
        LogLine::read(&line.to_string()).unwrap_or_else(|why| panic!("{why:?}: {line}"))
    }
}
