//! The edit of a function's entries in `POLICIES`.

use comeback_engine::{with_policy, without_policies};

use crate::operate::attach::handler_setting::SettingPlace;

/// The change of a function's entries. Those of others stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyEdit {
    pub(crate) place: SettingPlace,
    pub(crate) from: Vec<String>,
    pub(crate) to: Option<String>,
}

impl PolicyEdit {
    /// The text after the change.
    pub(crate) fn of(&self, text: &str, invoked_arn: &str) -> String {
        let rest = without_policies(text, &self.from);
        self.to.iter().fold(rest, |rest, entry| with_policy(&rest, invoked_arn, entry))
    }
}
