//! The dead-letters that a change acts on, and their outcome.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use comeback_engine::ReasonCode;
use serde::{Serialize, Serializer};

use crate::dead::filter::Filter;
use crate::dead::groups::{Group, groups_table};
use crate::dead::pace::Pace;
use crate::dead::rules::RedriveRules;
use crate::dead::scan::{End, Locked, Read, counted_dead_letters};
use crate::dead::snapshot::{Row, Selection, Snapshot};
use crate::deployment::Deployment;
use crate::durations;
use crate::failure::Failure;
use crate::layout::Layout;
use crate::numbers::{counted, grouped};
use crate::operator::Operator;
use crate::shown::shown;

/// Functions named one by one.
const MOST_NAMED: usize = 20;

/// The dead-letters that an operator chooses.
#[derive(Clone, Debug)]
pub enum Chosen {
    /// Those that match a filter. The queue is scanned for the plan.
    Matching(Box<Filter>),
    /// Those of a snapshot.
    Selected(Rc<Snapshot>, Selection),
}

impl Chosen {
    /// Every dead-letter, and every message that is not Comeback's.
    pub fn all() -> Self {
        Self::matching(Filter::default())
    }

    /// Those that match a filter.
    pub fn matching(filter: Filter) -> Self {
        Self::Matching(Box::new(filter))
    }

    /// The snapshot to plan from. `rules` judge which dead-letters could be redriven.
    pub(super) async fn snapshot(
        &self,
        operator: &Operator,
        deployment: &Deployment,
        rules: Option<&RedriveRules>,
    ) -> Result<Rc<Snapshot>, Failure> {
        match self {
            Self::Selected(snapshot, _) => Ok(Rc::clone(snapshot)),
            Self::Matching(filter) => {
                let snapshot = Snapshot::take(operator, deployment, (**filter).clone(), rules, 0).await?;
                snapshot.is_whole_enough()?;
                Ok(Rc::new(snapshot))
            }
        }
    }
}

/// Dead-letters of a snapshot to act on, and those that are skipped.
#[derive(Clone, Debug)]
pub struct Picked {
    pub(super) snapshot: Rc<Snapshot>,
    /// The groups of those to act on, the largest first.
    groups: Vec<Group>,
    /// Message ids of those to act on: nothing else is. 110,000 take about 10 MB.
    pub(super) ids: Rc<HashSet<Box<str>>>,
    /// Those that would be dead-lettered again at once, by reason.
    pub(super) skipped: BTreeMap<&'static str, u64>,
    /// Functions of such dead-letters that `TARGET_FUNCTIONS` does not allow; the first twenty.
    pub(super) not_allowed: BTreeSet<String>,
    /// Dead-letters to act on at most.
    pub(super) limit: Option<u64>,
    pub(super) pace: Pace,
    note: Option<String>,
}

impl Picked {
    /// Picks dead-letters. `skip` gives the reason if one would be dead-lettered again at once.
    pub(super) fn of(
        chosen: &Chosen,
        snapshot: Rc<Snapshot>,
        skip: impl Fn(&Row) -> Option<ReasonCode>,
        (pace, limit): (Pace, Option<u64>),
    ) -> Result<Self, Failure> {
        let note = snapshot.unknown_target()?;
        let (mut skipped, mut not_allowed) = (BTreeMap::new(), BTreeSet::new());
        let selection = match chosen {
            Chosen::Matching(_) => &Selection::All,
            Chosen::Selected(_, selection) => selection,
        };
        let mut rows = snapshot.rows(selection);
        rows.retain(|row| {
            let Some(code) = skip(row) else { return true };
            *skipped.entry(code.name()).or_default() += 1;
            if code == ReasonCode::TargetNotAllowed && not_allowed.len() < MOST_NAMED {
                not_allowed.extend(snapshot.alike(row).target.clone());
            }
            false
        });
        let mut groups: Vec<Group> = snapshot.groups_of(&rows).into_iter().map(|(_, group)| group).collect();
        // A group has the message of its first dead-letter, which may be another one.
        if let (Selection::DeadLetter(_), [row], [group]) = (selection, &*rows, &mut *groups) {
            group.error_message = row.message.as_ref().map(ToString::to_string);
        }
        let ids = Rc::new(rows.into_iter().map(|row| row.message_id.clone()).collect());
        Ok(Self { groups, ids, skipped, not_allowed, limit, pace, note, snapshot })
    }

    /// The number of dead-letters to act on.
    pub fn count(&self) -> u64 {
        self.matching().min(self.limit.unwrap_or(u64::MAX))
    }

    fn matching(&self) -> u64 {
        self.ids.len() as u64
    }

    pub(super) fn deployment(&self) -> &Deployment {
        &self.snapshot.deployment
    }

    /// The identity of a plan: the same dead-letters have the same one, at any time.
    pub(super) fn identity(&self) -> String {
        let mut ids: Vec<&str> = self.ids.iter().map(AsRef::as_ref).collect();
        ids.sort_unstable();
        format!("{} at {} a second: {}", self.count(), self.pace.0, ids.join(" "))
    }

    pub(super) fn layout(&self, verb: &str) -> Layout {
        let (snapshot, count) = (&self.snapshot, self.count());
        let mut layout = Layout::default();
        layout.line(match count {
            0 => format!("nothing to {verb}"),
            _ => {
                let (all, time) = (grouped(snapshot.read.dead_letters), self.pace.time_for(count));
                let (count, time) = (counted_dead_letters(count), durations::short(time.as_secs_f64()));
                format!("to {verb}: about {count} of {all}, in about {time}")
            }
        });
        if count < self.matching() {
            layout.line(format!("(--limit; the filters match {})", grouped(self.matching())));
        }
        if count > 0 {
            layout.table(groups_table(&self.groups, self.deployment(), snapshot.at));
        }
        for (reason, count) in &self.skipped {
            let count = grouped(*count);
            layout.line(format!("skipped: {count}, which would be dead-lettered again as {reason}"));
        }
        if let Some(why) = snapshot.read.incomplete() {
            layout.line(format!("incomplete: {why}"));
        }
        self.note.iter().for_each(|note| layout.note(note));
        layout
    }
}

impl Serialize for Picked {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Plan<'a> {
            dead_letters: u64,
            chosen: u64,
            read: u64,
            groups: &'a [Group],
            left: &'a BTreeMap<&'static str, u64>,
            not_allowed: &'a BTreeSet<String>,
            locked: Option<Locked>,
            incomplete: Option<String>,
        }
        let read = &self.snapshot.read;
        let plan = Plan {
            dead_letters: self.count(),
            chosen: self.matching(),
            read: read.dead_letters,
            groups: &self.groups,
            left: &self.skipped,
            not_allowed: &self.not_allowed,
            locked: read.locked,
            incomplete: read.incomplete(),
        };
        plan.serialize(serializer)
    }
}

/// The outcome of a plan's dead-letters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Dead-letters that are safe elsewhere, and deleted.
    pub done: u64,
    /// Dead-letters that were left, by problem.
    pub left: BTreeMap<String, u64>,
    /// Dead-letters that are, or may be, elsewhere and were not deleted: a repeated command acts on them again.
    pub not_deleted: Option<NotDeleted>,
    /// The reason why not all of the plan's dead-letters were received.
    pub incomplete: Option<String>,
}

/// Dead-letters that are, or may be, elsewhere and were not deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotDeleted {
    /// Their number.
    pub count: u64,
    /// The reason.
    pub why: String,
}

impl Outcome {
    /// Counts a dead-letter that is, or may be, elsewhere and was not deleted.
    pub(super) fn not_delete(&mut self, why: &str) {
        self.not_deleted.get_or_insert_with(|| NotDeleted { count: 0, why: why.to_owned() }).count += 1;
    }

    /// Counts a dead-letter that was left.
    pub(super) fn leave(&mut self, why: &str) {
        *self.left.entry(why.to_owned()).or_default() += 1;
    }

    /// `redrove 812 dead-letters; …`
    pub(super) fn summary(&self, did: &str) -> String {
        let mut parts = vec![format!("{did} {}", counted_dead_letters(self.done))];
        if let Some(NotDeleted { count, why }) = &self.not_deleted {
            let dead_letters = counted(*count, "dead-letter was", "dead-letters were");
            parts.push(format!("{dead_letters} not deleted, so the next run will process them again: {why}"));
        }
        parts.extend(self.left.iter().map(|(why, count)| format!("left {}: {why}", grouped(*count))));
        shown(&parts.join("; ")).into_owned()
    }

    /// A remark on dead-letters of the plan that were not found again.
    pub(super) fn missing(&self, picked: &Picked, read: &Read) -> Option<String> {
        let not_deleted = self.not_deleted.as_ref().map_or(0, |it| it.count);
        let met = self.done + not_deleted + self.left.values().sum::<u64>();
        let missing = picked.count().saturating_sub(met);
        (read.end == End::All && missing > 0).then(|| {
            let count = counted(missing, "dead-letter was", "dead-letters were");
            format!("{count} not found again: sent back, discarded or hidden by somebody else since the scan")
        })
    }

    /// The result of a command: a failure if it left dead-letters that the plan did not skip.
    pub(super) fn result(&self, picked: &Picked, read: &Read, summary: &str) -> Result<(), Failure> {
        read.result(summary)?;
        if picked.limit.is_none_or(|limit| self.done < limit) {
            // Dead-letters that were locked during planning may still be.
            picked.snapshot.read.result(summary)?;
        }
        if self.left.is_empty() && self.not_deleted.is_none() { Ok(()) } else { Err(left_over(summary)) }
    }
}

/// The failure of a command that did not finish.
pub(super) fn left_over(summary: &str) -> Failure {
    Failure::undone(format!("{summary}; run the command again for the rest"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::tests::plain;
    use crate::change::{Change as _, Plan as _};
    use crate::dead::redrive::Redrive;
    use crate::dead::samples::{Dead, event, malformed};
    use crate::shown::tests::HOSTILE;

    #[tokio::test]
    async fn plan_names_groups_and_skipped_dead_letters() {
        let dead = Dead::with([event("Timeout"), event("Timeout"), malformed()]);
        let redrive = Redrive { limit: Some(1), ..Redrive::new(dead.operator(), Chosen::all()) };
        let plan = redrive.plan().await.unwrap();
        let expected = "\
to redrive: about 1 dead-letter of 3, in about 0s
(--limit; the filters match 2)
dead-letters | reason | function | error | message | oldest | newest
2 | max_age | orders | Timeout | m | 11574d 2h | 11574d 2h
skipped: 1, which would be dead-lettered again as malformed_record
";
        assert_eq!(plain(&plan), expected);
        assert_eq!(plan.question().unwrap().text, "send 1 dead-letter to retries?");
    }

    #[tokio::test]
    async fn a_plan_without_dead_letters_has_nothing_to_do() {
        let dead = Dead::with([malformed()]);
        let plan = Redrive::new(dead.operator(), Chosen::all()).plan().await.unwrap();
        assert_eq!((plain(&plan).lines().next(), plan.question()), (Some("nothing to redrive"), None));
    }

    #[test]
    fn a_reason_cannot_command_the_terminal() {
        let outcome = Outcome {
            left: [(HOSTILE.to_owned(), 1)].into(),
            not_deleted: Some(NotDeleted { count: 1, why: HOSTILE.to_owned() }),
            ..Outcome::default()
        };
        let summary = outcome.summary("imported");
        assert_eq!(summary.matches("\\u{9b}2J").count(), 2, "{summary}");
    }
}
