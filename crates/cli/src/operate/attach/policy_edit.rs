//! The edit of a function's entries in `POLICIES`.

use comeback_engine::{with_policy, without_policies, without_policy};

use crate::operate::attach::handler_setting::SettingPlace;

/// The change of a function's entries. Those of others stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyEdit {
    pub(crate) place: SettingPlace,
    /// How its entries name the function.
    pub(crate) name: String,
    /// Whether entries of its versions and aliases go too.
    pub(crate) with_qualifiers: bool,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
}

impl PolicyEdit {
    /// The text after the change.
    pub(crate) fn of(&self, text: &str, invoked_arn: &str) -> String {
        match &self.to {
            Some(entry) => with_policy(text, invoked_arn, entry),
            None if self.with_qualifiers => without_policies(text, &self.name),
            None => without_policy(text, &self.name),
        }
    }
}
