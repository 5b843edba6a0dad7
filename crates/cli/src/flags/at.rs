use comeback_engine::Timestamp;

/// Reads a moment, RFC 3339.
pub(crate) fn read(text: &str) -> Result<Timestamp, String> {
    Timestamp::from_rfc3339(text).ok_or_else(|| "must be a time such as 2026-09-14T15:46:54Z".into())
}
