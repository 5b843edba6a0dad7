//! Simulated SSM parameters.

use comeback_engine::Timestamp;

use crate::aws::ParameterVersion;

/// The number of versions that SSM keeps.
const KEPT: usize = 100;
/// The maximum length of a standard parameter's value, in bytes.
const LONGEST: usize = 4_096;

/// An SSM parameter and its versions.
#[derive(Clone, Debug, Default)]
pub struct Parameter {
    /// The versions, oldest first. Every parameter in an account has at least one.
    pub versions: Vec<ParameterVersion>,
    /// The number of writes that SSM will refuse because another is under way (`TooManyUpdates`).
    pub refuses: u32,
}

impl Parameter {
    /// Writes the parameter's next version. Returns its number, or fails with SSM's error code and message.
    pub(super) fn put(&mut self, at: Timestamp, by: &str, text: &str) -> Result<i64, String> {
        if text.is_empty() || text.len() > LONGEST {
            return Err(
                "ValidationException: Standard tier parameters support a value of 1 to 4096 characters"
                    .into(),
            );
        }
        let number = self.versions.last().map_or(0, |version| version.number) + 1;
        self.versions.push(ParameterVersion {
            number,
            text: text.to_owned(),
            at: Some(at),
            by: Some(by.to_owned()),
        });
        let superfluous = self.versions.len().saturating_sub(KEPT);
        self.versions.drain(..superfluous);
        Ok(number)
    }
}
