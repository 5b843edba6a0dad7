use comeback_engine::Timestamp;
use serde::{Deserialize, Deserializer};

/// A line that the handler writes about a message, as far as a trace needs it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct HandlerLine {
    #[serde(deserialize_with = "time")]
    pub(crate) timestamp: Option<Timestamp>,
    pub(crate) key: String,
    pub(crate) target: String,
    pub(crate) retry: u64,
    pub(crate) action: String,
    pub(crate) message_id: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) invoke_request_id: Option<String>,
    #[serde(deserialize_with = "time")]
    pub(crate) first_failure: Option<Timestamp>,
    pub(crate) error_type: Option<String>,
    #[serde(deserialize_with = "time")]
    pub(crate) due: Option<Timestamp>,
    pub(crate) delay: Option<u64>,
    pub(crate) reason: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) problem: Option<String>,
    pub(crate) remedy: Option<String>,
}

impl HandlerLine {
    /// Reads a line; `None` if it is about no event.
    pub(crate) fn read(text: &str) -> Option<Self> {
        Self::read_any(text).filter(|line| !line.key.is_empty())
    }

    /// Reads a line that may have no key, as an older handler's.
    pub(crate) fn read_any(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|line: &Self| line.timestamp.is_some())
    }

    /// Whether one of its ids is this one. CloudWatch's own filter may let other lines pass.
    pub(crate) fn names(&self, id: &str) -> bool {
        let ids = [&self.message_id, &self.request_id, &self.invoke_request_id];
        self.key == id || ids.into_iter().any(|it| it.as_deref() == Some(id))
    }

    pub(crate) fn at(&self) -> Timestamp {
        self.timestamp.expect("BUG: a line without a time was read")
    }
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.as_deref().and_then(Timestamp::from_rfc3339))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_event_is_none() {
        for text in [
            "START RequestId: k-1",
            "{}",
            r#"{"timestamp":"2026-09-14T15:46:54.145Z","level":"INFO","action":"move","moved":3}"#,
            r#"{"key":"k-1"}"#,
            r#"{"timestamp":"yesterday","key":"k-1"}"#,
            r#"["k-1"]"#,
        ] {
            assert_eq!(HandlerLine::read(text), None, "{text}");
        }
        let line = r#"{"timestamp":"2026-09-14T15:46:54.145Z","key":"k-1","request_id":null,"invoke_request_id":"r-2","new":1}"#;
        let line = HandlerLine::read(line).unwrap();
        assert!(line.names("k-1") && line.names("r-2") && !line.names("r-1") && !line.names(""));
    }
}
