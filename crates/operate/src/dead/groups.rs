use std::collections::BTreeMap;

use comeback_engine::{Letter, Timestamp};
use serde::Serialize;

use super::described::moment;
use super::filter::ReasonName;

/// A function may write anything into an error's type; beyond these, letters are counted together.
const MOST_GROUPS: usize = 1_000;
const LONGEST_ERROR_TYPE: usize = 256;

/// Letters alike in reason, target and error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The reason's name; `unknown` of messages that are none of Comeback's.
    pub reason: String,
    /// The function's ARN, with its qualifier.
    pub target: Option<String>,
    /// The last error's type, or its first 256 characters.
    pub error_type: Option<String>,
    /// How many letters.
    pub count: u64,
    /// When the first of them was given up.
    #[serde(serialize_with = "moment")]
    pub oldest: Timestamp,
    /// When the last of them was given up.
    #[serde(serialize_with = "moment")]
    pub newest: Timestamp,
}

type Alike = (&'static str, Option<String>, Option<String>);

/// Letters counted by group.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<Alike, (u64, Timestamp, Timestamp)>);

impl Groups {
    pub(super) fn count(&mut self, letter: &Letter<'_>) {
        let reason = ReasonName::of(letter).name();
        let target = letter.function_arn.as_deref().map(ToOwned::to_owned);
        let error = letter.error_type.as_ref().map(|text| text.chars().take(LONGEST_ERROR_TYPE).collect());
        let mut alike = (reason, target, error);
        if self.0.len() >= MOST_GROUPS && !self.0.contains_key(&alike) {
            alike = ("other", None, None);
        }
        let moment = letter.given_up;
        let (count, oldest, newest) = self.0.entry(alike).or_insert((0, moment, moment));
        *count += 1;
        *oldest = moment.min(*oldest);
        *newest = moment.max(*newest);
    }

    /// The largest first.
    pub(super) fn into_groups(self) -> Vec<Group> {
        let group = |((reason, target, error_type), (count, oldest, newest)): (Alike, _)| Group {
            reason: reason.to_owned(),
            target,
            error_type,
            count,
            oldest,
            newest,
        };
        let mut groups: Vec<_> = self.0.into_iter().map(group).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        groups
    }
}
