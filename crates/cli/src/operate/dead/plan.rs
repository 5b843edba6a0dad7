//! The plan of a redrive or discard: which dead-letters, and what becomes of them.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use comeback_engine::Reason;
use indicatif::HumanCount;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::account::Failure;
use crate::failure::CommandFailure;
use crate::operate::dead::dead_letters::DeadLetters;
use crate::operate::dead::filter::Filter;
use crate::operate::dead::queue::{QueueCalls, Received, SqsQueues};
use crate::operate::dead::scan::{End, Read};
use crate::operate::dead::snapshot::Selected;
use crate::operate::dead::survey::Survey;
use crate::operate::dead::work::{DeadLetterAction, Done, Pace, Work};
use crate::text::durations;
use crate::text::numbers::counted;
use crate::text::terminal::shown;

/// What the operator asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) verb: Verb<'a>,
    /// They say so where they want every dead-letter.
    pub(crate) all: bool,
    pub(crate) dry_run: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Verb<'a> {
    Redrive,
    /// With the file that the dead-letters are written to.
    Discard(&'a Path),
}

/// A survey, and how its dead-letters are acted on.
pub(crate) struct Plan<'a, Q = SqsQueues> {
    pub(crate) dead_letters: &'a DeadLetters<Q>,
    pub(crate) asked: Asked<'a>,
    work: Work,
    pub(crate) survey: Survey,
    /// Ids of the chosen dead-letters: nothing else is acted on. 110,000 take about 10 MB.
    pub(crate) ids: HashSet<String>,
    pub(crate) read: Read,
}

impl<'a, Q: QueueCalls> Plan<'a, Q> {
    /// Reads the dead-letters, and prints what would be done, unless JSON is printed. `judge` says whether a
    /// dead-letter can be acted on. Too many dead-letters to read them all still make a plan. Without a filter, and
    /// without `all`, the plan is shown and refused.
    pub(crate) async fn make(
        asked: Asked<'a>,
        work: Work,
        judge: impl Fn(&Received) -> Result<(), Reason>,
        dead_letters: &'a DeadLetters<Q>,
    ) -> Result<Self, CommandFailure> {
        let (mut survey, mut ids) = (Survey::default(), HashSet::new());
        let filter = work.filter.clone().unwrap_or_default();
        let show = |received: &Received| {
            if survey.count(received, &filter, &judge, work.now) {
                ids.insert(received.record.message_id.clone());
            }
            false
        };
        let read = dead_letters.show_each(work.now, show).await?;
        match &read.end {
            End::Interrupted => read.result("nothing was changed")?,
            End::Failed(failure) => return Err(failure.clone().into()),
            End::All | End::Enough | End::TooManyHidden => {}
        }
        let until = survey.newest.unwrap_or(work.until);
        let plan = Self { dead_letters, asked, work: Work { until, ..work }, survey, ids, read };
        plan.answer(None);
        dead_letters.check_target(&plan.survey, &filter, &plan.read)?;
        dead_letters.session.say(&plan.text())?;
        if !asked.all && filter.takes_everything() {
            let filters = Filter::flags().join(", ");
            let what = format!("which dead-letters? Choose with {filters}, or all with --all");
            return Err(Failure::Refused(what).into());
        }
        Ok(plan)
    }

    /// The plan that is asked for dead-letters of a snapshot, which are not read again for it. Prints it.
    pub(crate) fn of_snapshot(
        asked: Asked<'a>,
        pace: Pace,
        selected: &Selected<'_>,
        dead_letters: &'a DeadLetters<Q>,
    ) -> Result<Self, CommandFailure> {
        let (survey, ids, read) = (selected.survey(), selected.ids(), selected.snapshot.read.clone());
        let (now, until) = (selected.snapshot.at, selected.snapshot.newest);
        let work = Work { filter: None, now, until, pace, limit: Some(ids.len() as u64) };
        let plan = Self { dead_letters, asked, work, survey, ids, read };
        dead_letters.session.say(&plan.text())?;
        Ok(plan)
    }

    /// What a question about it is about: the same as long as it is the same dead-letters, whenever it is made.
    pub(crate) fn identity(&self) -> Value {
        let mut ids: Vec<_> = self.ids.iter().collect();
        ids.sort_unstable();
        let mut digest = Sha256::new();
        for id in ids {
            digest.update(id.len().to_le_bytes());
            digest.update(id);
        }
        let digest: Vec<_> = digest.finalize().into_iter().collect();
        json!({"dead_letters": self.dead_letters(), "ids": digest, "pace": self.work.pace.0})
    }

    pub(crate) async fn carry_out(&self, action: &impl DeadLetterAction) -> Result<(Done, Read), Failure> {
        self.work.run(&self.dead_letters.reader(self.dead_letters()), &self.ids, action).await
    }

    /// Notes dead-letters of a snapshot that were not found again.
    pub(crate) fn note_missing(&self, done: &Done, read: &Read) {
        let not_deleted = done.not_deleted.as_ref().map_or(0, |(count, _)| *count);
        let met = done.dead_letters + not_deleted + done.left.values().sum::<u64>();
        let missing = self.dead_letters().saturating_sub(met);
        if self.work.filter.is_none() && read.end == End::All && missing > 0 {
            let count = counted(missing, "dead-letter was", "dead-letters were");
            self.dead_letters.session.note(&format!(
                "{count} not found again: sent back, discarded or hidden by somebody else since the scan"
            ));
        }
    }

    /// Dead-letters to act on.
    pub(crate) fn dead_letters(&self) -> u64 {
        self.survey.chosen.min(self.work.limit.unwrap_or(u64::MAX))
    }

    fn text(&self) -> String {
        let Self { work, survey, read, .. } = self;
        let verb = match self.asked.verb {
            Verb::Redrive => "redrive",
            Verb::Discard(_) => "discard",
        };
        let dead_letters = self.dead_letters();
        let mut text =
            headline(verb, dead_letters, read.dead_letters, work.pace.time_for(dead_letters)) + "\n";
        if dead_letters < survey.chosen {
            text += &format!("(--limit; the filters match {})\n", HumanCount(survey.chosen));
        }
        if survey.chosen > 0 {
            text += &format!("{}\n", survey.groups_table(work.now));
        }
        for (reason, count) in &survey.left {
            text +=
                &format!("skipped: {}, which would be dead-lettered again as {reason}\n", HumanCount(*count));
        }
        if let Some(why) = read.incomplete() {
            text += &format!("incomplete: {why}\n");
        }
        text
    }

    fn json(&self) -> Value {
        let Survey { chosen, left, not_allowed, .. } = &self.survey;
        let (groups, incomplete) = (self.survey.groups(), self.read.incomplete());
        json!({
            "dead_letters": self.dead_letters(), "chosen": chosen, "read": self.read.dead_letters, "groups": groups, "left": left,
            "not_allowed": not_allowed, "locked": self.read.locked, "incomplete": incomplete,
        })
    }

    /// Has the session answer with the plan, and with its outcome once it is carried out.
    pub(crate) fn answer(&self, outcome: Option<(&Done, &Read)>) {
        let done = outcome.map_or(0, |(done, _)| done.dead_letters);
        let outcome = outcome.map(|(done, read)| done.json(read));
        let mut report = json!({"plan": self.json(), "dry_run": self.asked.dry_run, "outcome": outcome});
        match self.asked.verb {
            Verb::Redrive => report["redriven"] = done.into(),
            Verb::Discard(export) => {
                report["discarded"] = done.into();
                report["export"] = export.display().to_string().into();
            }
        }
        self.dead_letters.session.answer(&report);
    }

    /// How the command ends: badly if something was left that the plan did not say.
    pub(crate) fn result(&self, done: &Done, read: &Read, summary: &str) -> Result<(), Failure> {
        read.result(summary)?;
        if self.work.limit.is_none_or(|limit| done.dead_letters < limit) {
            // What was locked while the plan was made may still be.
            self.read.result(summary)?;
        }
        let surprises = done.left.keys().any(|why| !self.survey.left.contains_key(why.as_str()));
        if surprises || done.not_deleted.is_some() { Err(left_over(summary)) } else { Ok(()) }
    }
}

fn headline(verb: &str, dead_letters: u64, all: u64, time: Duration) -> String {
    if dead_letters == 0 {
        return format!("nothing to {verb}");
    }
    let (count, all) = (counted(dead_letters, "dead-letter", "dead-letters"), HumanCount(all));
    format!("to {verb}: about {count} of {all}, in about {}", durations::short(time.as_secs_f64()))
}

/// Why a command ends that left what it should have done.
pub(crate) fn left_over(summary: &str) -> Failure {
    Failure::Undone(format!("{summary}; run the command again for the rest"))
}

impl Done {
    /// `redrove 812 dead-dead_letters; …`
    pub(crate) fn summary(&self, did: &str) -> String {
        let mut parts = vec![format!("{did} {}", counted(self.dead_letters, "dead-letter", "dead-letters"))];
        if let Some((count, why)) = &self.not_deleted {
            let dead_letters = counted(*count, "dead-letter was", "dead-letters were");
            parts.push(format!("{dead_letters} not deleted, so the next run will process them again: {why}"));
        }
        parts.extend(self.left.iter().map(|(why, count)| format!("left {}: {why}", HumanCount(*count))));
        shown(&parts.join("; ")).into_owned()
    }

    fn json(&self, read: &Read) -> Value {
        let not_deleted = self.not_deleted.as_ref().map(|(count, why)| json!({"count": count, "why": why}));
        let (left, incomplete) = (&self.left, read.incomplete());
        json!({"done": self.dead_letters, "left": left, "not_deleted": not_deleted, "incomplete": incomplete})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    #[test]
    fn a_plan_without_dead_letters_has_nothing_to_do() {
        let two_seconds = Duration::from_secs(2);
        assert_eq!(headline("redrive", 0, 2, Duration::ZERO), "nothing to redrive");
        assert_eq!(
            headline("redrive", 1, 66, two_seconds),
            "to redrive: about 1 dead-letter of 66, in about 2s"
        );
    }

    #[test]
    fn a_reason_cannot_command_the_terminal() {
        let (left, not_deleted) = ([(HOSTILE.to_owned(), 1)].into(), Some((1, HOSTILE.to_owned())));
        let summary = Done { dead_letters: 0, left, not_deleted }.summary("imported");
        assert!(summary.matches("\\u{9b}2J").count() == 2 && !is_obeyed_anywhere(&summary), "{summary}");
    }
}
