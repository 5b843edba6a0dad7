//! The dead-letters that a change acts on, and the outcome of the change.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use comeback_engine::ReasonCode;
use serde::Serialize;

use crate::command::CommandName;
use crate::dead::filter::Filter;
use crate::dead::groups::{Alike, Group, groups_table};
use crate::dead::pace::Pace;
use crate::dead::rules::RedriveRules;
use crate::dead::scan::{Locked, ScanEnd, ScanResult, counted_dead_letters};
use crate::dead::snapshot::{MOST_NAMED, Row, Selection, Snapshot};
use crate::deployment::Deployment;
use crate::durations;
use crate::failure::Failure;
use crate::layout::Layout;
use crate::numbers::{counted, grouped};
use crate::operator::Operator;
use crate::operator_line::{Activity, flag};
use crate::shown::shown;
use crate::text::Text;

/// The dead-letters that an operator chose for a change.
#[derive(Clone, Debug)]
pub enum Chosen {
    /// The dead-letters that match a filter, found by a scan of the queue.
    Matching(Box<Filter>),
    /// Dead-letters selected from an earlier scan.
    Selected(Rc<Snapshot>, Selection),
}

impl Chosen {
    /// Chooses the dead-letters that match a filter.
    pub fn matching(filter: Filter) -> Self {
        Self::Matching(Box::new(filter))
    }

    /// The filter's flags for an [`Activity`], without keys and without the private values of `--payload`.
    fn flags(&self) -> Vec<String> {
        let Self::Matching(filter) = self else { return Vec::new() };
        let flags = filter.flags().into_iter().filter(|flag| !flag.starts_with("--key="));
        let shown = flags.map(|flag| match flag.split_once('=') {
            Some(("--payload", _)) => "--payload".to_owned(),
            _ => flag,
        });
        shown.collect()
    }

    /// The snapshot to plan from: an earlier one, or a new scan with these redrive `rules`. Fails if the deployment has
    /// changed since the earlier scan.
    pub(super) async fn snapshot(
        &self,
        operator: &Operator,
        deployment: &Deployment,
        rules: Option<&RedriveRules>,
    ) -> Result<Rc<Snapshot>, Failure> {
        match self {
            Self::Selected(snapshot, _) if snapshot.is_of(deployment) => Ok(Rc::clone(snapshot)),
            Self::Selected(..) => Err(Failure::undone(
                "the deployment's settings or queues have changed since this scan; scan again",
            )),
            Self::Matching(filter) => {
                let snapshot = Snapshot::take(operator, deployment, (**filter).clone(), rules, 0).await?;
                snapshot.is_whole_enough()?;
                Ok(Rc::new(snapshot))
            }
        }
    }
}

/// The dead-letters that a change acts on, and those that it skips.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Picked {
    pub(super) dead_letters: u64,
    /// The number of dead-letters that the change would act on if there were no limit.
    chosen: u64,
    read: u64,
    groups: Vec<Group>,
    /// The number of skipped dead-letters, by the reason why the handler would dead-letter them again immediately.
    #[serde(rename = "left")]
    pub(super) skipped: BTreeMap<&'static str, u64>,
    /// Functions that `TARGET_FUNCTIONS` does not allow, at most twenty. Their dead-letters are skipped.
    pub(super) not_allowed: BTreeSet<String>,
    locked: Option<Locked>,
    /// The reason why the scan may have missed dead-letters.
    incomplete: Option<String>,
    #[serde(skip)]
    pub(super) snapshot: Rc<Snapshot>,
    /// The message ids to act on; 110,000 ids take about 10 MB.
    #[serde(skip)]
    pub(super) ids: Rc<HashSet<Box<str>>>,
    /// True if the plan's dead-letters were selected from an earlier scan. The plan does not include dead-letters that
    /// the scan missed.
    #[serde(skip)]
    is_selected: bool,
    #[serde(skip)]
    limit: Option<u64>,
    #[serde(skip)]
    pub(super) pace: Pace,
    #[serde(skip)]
    note: Option<String>,
    /// The event key of the plan's only dead-letter, possibly truncated. `None` if the plan has several dead-letters,
    /// or if the key is unknown.
    #[serde(skip)]
    key: Option<String>,
}

impl Picked {
    /// Picks dead-letters from a snapshot, except those for which `skip` returns a reason.
    pub(super) fn of(
        chosen_by: &Chosen,
        snapshot: Rc<Snapshot>,
        skip: impl Fn(&Row, &Alike) -> Option<ReasonCode>,
        (pace, limit): (Pace, Option<u64>),
    ) -> Result<Self, Failure> {
        let note = snapshot.unknown_target()?;
        let (mut skipped, mut not_allowed) = (BTreeMap::new(), BTreeSet::new());
        let selection = match chosen_by {
            Chosen::Matching(_) => &Selection::All,
            Chosen::Selected(_, selection) => selection,
        };
        let mut rows = snapshot.rows(selection);
        rows.retain(|row| {
            let Some(code) = skip(row, snapshot.alike(row)) else { return true };
            *skipped.entry(code.name()).or_default() += 1;
            if code == ReasonCode::TargetNotAllowed && not_allowed.len() < MOST_NAMED {
                not_allowed.extend(snapshot.alike(row).target.clone());
            }
            false
        });
        let mut groups: Vec<Group> = snapshot.groups_of(&rows).into_iter().map(|(_, group)| group).collect();
        // The group's message comes from the group's first dead-letter, which may not be the selected one.
        if let (Selection::DeadLetters(_), [row], [group]) = (selection, &*rows, &mut *groups) {
            group.alike.error_message = row.message.as_ref().map(ToString::to_string);
        }
        let key = match &*rows {
            [row] => row.key.as_ref().map(ToString::to_string),
            _ => None,
        };
        let chosen = rows.len() as u64;
        Ok(Self {
            dead_letters: chosen.min(limit.unwrap_or(u64::MAX)),
            chosen,
            read: snapshot.read.dead_letters,
            groups,
            skipped,
            not_allowed,
            locked: snapshot.read.locked,
            incomplete: snapshot.read.incomplete(),
            ids: Rc::new(rows.into_iter().map(|row| row.message_id.clone()).collect()),
            is_selected: matches!(chosen_by, Chosen::Selected(..)),
            limit,
            pace,
            note,
            key,
            snapshot,
        })
    }

    pub(super) fn deployment(&self) -> &Deployment {
        &self.snapshot.deployment
    }

    /// Returns true if the deployment has not changed since the scan, so that the plan still holds.
    pub(super) async fn is_current(&self, operator: &Operator) -> Result<bool, Failure> {
        Ok(self.snapshot.is_of(&operator.deployment().await?))
    }

    /// The plan's identity, which does not depend on the time when the plan was made.
    pub(super) fn identity(&self) -> String {
        let mut ids: Vec<&str> = self.ids.iter().map(AsRef::as_ref).collect();
        ids.sort_unstable();
        format!("{} at {} a second: {}", self.dead_letters, self.pace.0, ids.join(" "))
    }

    pub(super) fn layout(&self, verb: &str) -> Layout {
        let count = self.dead_letters;
        let mut layout = Layout::default();
        layout.line(match count {
            0 => format!("nothing to {verb}"),
            _ => {
                let (all, time) = (grouped(self.read), self.pace.time_for(count));
                let (count, time) = (counted_dead_letters(count), durations::short(time.as_secs_f64()));
                format!("to {verb}: about {count} of {all}, in about {time}")
            }
        });
        if count < self.chosen {
            layout.line(format!("(--limit; the filters match {})", grouped(self.chosen)));
        }
        if count > 0 {
            layout.table(groups_table(&self.groups, self.deployment(), self.snapshot.at));
        }
        for (reason, count) in &self.skipped {
            let count = grouped(*count);
            layout.line(format!("skipped: {count}, which would be dead-lettered again as {reason}"));
        }
        if let Some(why) = &self.incomplete {
            layout.line(format!("incomplete: {why}"));
        }
        self.note.iter().for_each(|note| layout.note(note));
        layout
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct DeadLetterOutcome {
    /// The number of dead-letters that were redriven, discarded or imported.
    pub(super) done: u64,
    /// The number of dead-letters that were left unchanged, for each reason.
    pub(super) left: BTreeMap<String, u64>,
    pub(super) not_deleted: Option<NotDeleted>,
    /// The reason why some of the plan's dead-letters might not have been received.
    pub(super) incomplete: Option<String>,
}

/// Dead-letters that were not deleted, although copies of them may exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct NotDeleted {
    pub(super) count: u64,
    /// The reason why the first of the counted dead-letters was not deleted.
    pub(super) why: String,
}

impl DeadLetterOutcome {
    pub(super) fn not_delete(&mut self, why: &str) {
        self.not_deleted.get_or_insert_with(|| NotDeleted { count: 0, why: why.to_owned() }).count += 1;
    }

    pub(super) fn leave(&mut self, why: &str) {
        *self.left.entry(why.to_owned()).or_default() += 1;
    }

    /// Returns a summary such as `redrove 812 dead-letters; …`, where `did` is `redrove`.
    pub(super) fn summary(&self, did: &str) -> String {
        let mut parts = vec![format!("{did} {}", counted_dead_letters(self.done))];
        if let Some(NotDeleted { count, why }) = &self.not_deleted {
            let dead_letters = counted(*count, "dead-letter was", "dead-letters were");
            parts.push(format!("{dead_letters} not deleted, so the next run will process them again: {why}"));
        }
        parts.extend(self.left.iter().map(|(why, count)| format!("left {}: {why}", grouped(*count))));
        shown(&parts.join("; ")).into_owned()
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Acted {
    pub(super) plan: Picked,
    pub(super) outcome: DeadLetterOutcome,
    #[serde(skip)]
    pub(super) read: ScanResult,
    /// The action as a verb in the past tense, such as `redrove`.
    #[serde(skip)]
    pub(super) did: &'static str,
}

impl Acted {
    /// The record of the change; `None` if the change did not act on any dead-letter.
    pub(super) fn activity(&self, command: CommandName, chosen: &Chosen) -> Option<Activity> {
        let Self { plan: Picked { limit, groups, key, .. }, outcome, .. } = self;
        let limit = limit.map(|limit| flag("limit", &limit.to_string()));
        let functions: BTreeSet<_> = groups.iter().filter_map(|group| group.alike.target.clone()).collect();
        (outcome.done > 0 || outcome.not_deleted.is_some()).then(|| Activity {
            what: command.words().into(),
            flags: chosen.flags().into_iter().chain(limit).collect(),
            functions: functions.into_iter().collect(),
            keys: key.iter().cloned().collect(),
            count: Some(outcome.done),
            why: None,
        })
    }

    /// Lays out the summary and `more` on one line, and then a note about missing dead-letters.
    pub(super) fn layout(&self, more: Option<Text>) -> Layout {
        let mut layout = Layout::default();
        // The text of a failure already contains the summary.
        let summary = self.result().is_ok().then(|| self.outcome.summary(self.did).into());
        let line = Text::joined(summary.into_iter().chain(more), "; ");
        if !line.is_empty() {
            layout.line(line);
        }
        self.missing().iter().for_each(|note| layout.note(note));
        layout
    }

    /// A note about dead-letters that the plan counted but the change did not find.
    fn missing(&self) -> Option<String> {
        let DeadLetterOutcome { done, left, not_deleted, .. } = &self.outcome;
        let met = done + not_deleted.as_ref().map_or(0, |it| it.count) + left.values().sum::<u64>();
        let missing = self.plan.dead_letters.saturating_sub(met);
        (self.read.end == ScanEnd::All && missing > 0).then(|| {
            let count = counted(missing, "dead-letter was", "dead-letters were");
            format!("{count} not found again: sent back, discarded or hidden by somebody else since the scan")
        })
    }

    /// Fails if some of the plan's dead-letters were not processed, or if the scan was incomplete.
    pub(super) fn result(&self) -> Result<(), Failure> {
        let summary = self.outcome.summary(self.did);
        self.read.result(&summary)?;
        if !self.plan.is_selected && self.plan.limit.is_none_or(|limit| self.outcome.done < limit) {
            // Dead-letters that another reader hid during planning may still be hidden.
            self.plan.snapshot.read.result(&summary)?;
        }
        let nothing_left = self.outcome.left.is_empty() && self.outcome.not_deleted.is_none();
        if nothing_left { Ok(()) } else { Err(left_over(&summary)) }
    }
}

/// The error for a command that left some dead-letters unchanged.
pub(super) fn left_over(summary: &str) -> Failure {
    Failure::undone(format!("{summary}; run the command again for the rest"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::tests::plain;
    use crate::change::{Change as _, Plan as _};
    use crate::dead::redrive::Redrive;
    use crate::dead::testing::{Dead, event, malformed};
    use crate::shown::tests::HOSTILE;

    #[tokio::test]
    async fn plan_names_groups_and_skipped_dead_letters() {
        let dead = Dead::with([event("Timeout"), event("Timeout"), malformed()]);
        let redrive = Redrive { limit: Some(1), ..Redrive::new(Chosen::matching(Filter::default())) };
        let plan = redrive.plan(&dead.operator()).await.unwrap();
        let expected = "\
to redrive: about 1 dead-letter of 3, in about 0s
(--limit; the filters match 2)
dead-letters | reason | function | error | message | oldest | newest | SQS deletes the first
2 | max_age | orders | Timeout | m | 11574d 2h | 11574d 2h | in 14d
skipped: 1, which would be dead-lettered again as malformed_record
";
        assert_eq!(plain(&plan), expected);
        assert_eq!(plan.question().unwrap().text, "send 1 dead-letter to retries?");
    }

    #[tokio::test]
    async fn a_plan_without_dead_letters_has_nothing_to_do() {
        let dead = Dead::with([malformed()]);
        let plan = Redrive::new(Chosen::matching(Filter::default())).plan(&dead.operator()).await.unwrap();
        assert_eq!((plain(&plan).lines().next(), plan.question()), (Some("nothing to redrive"), None));
    }

    #[test]
    fn a_reason_cannot_command_the_terminal() {
        let outcome = DeadLetterOutcome {
            left: [(HOSTILE.to_owned(), 1)].into(),
            not_deleted: Some(NotDeleted { count: 1, why: HOSTILE.to_owned() }),
            ..DeadLetterOutcome::default()
        };
        let summary = outcome.summary("imported");
        assert_eq!(summary.matches("\\u{9b}2J").count(), 2, "{summary}");
    }
}
