//! Parses times in flags, and warns about `POLICIES` entries that match nothing.

use comeback_engine::{Policies, Timestamp};

/// Parses an RFC 3339 time, such as `2026-09-14T15:46:54Z`.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    Timestamp::from_rfc3339(text).ok_or_else(|| "must be a time such as 2026-09-14T15:46:54Z".into())
}

/// Warns about each entry in `POLICIES` that matches none of these functions. `what` follows the words
/// "matches no function" in the warning, for example `of these events`.
pub(crate) fn warn_of_unmatched(policies: &Policies, function_arns: &[String], what: &str) {
    for entry in policies.entries() {
        if !function_arns.iter().any(|arn| entry.is_about(arn)) {
            anstream::eprintln!("warning: POLICIES entry {:?} matches no function {what}", entry.to_string());
        }
    }
}
