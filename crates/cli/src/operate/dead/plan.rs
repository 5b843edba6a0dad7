//! The plan of a redrive or discard: which letters, and what becomes of them.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use comeback_engine::Reason;
use indicatif::HumanCount;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::account::Failure;
use crate::failure::CommandFailure;
use crate::operate::dead::filter::Filter;
use crate::operate::dead::letters::DeadLetters;
use crate::operate::dead::queue::{LetterQueue, Received, SqsQueues};
use crate::operate::dead::scan::{End, Read};
use crate::operate::dead::snapshot::Selected;
use crate::operate::dead::survey::Survey;
use crate::operate::dead::work::{Done, LetterAction, Pace, Work};
use crate::text::durations;
use crate::text::numbers::counted;
use crate::text::terminal::shown;

/// What the operator asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order<'a> {
    pub(crate) verb: Verb<'a>,
    /// They say so where they want every letter.
    pub(crate) all: bool,
    pub(crate) dry_run: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Verb<'a> {
    Redrive,
    /// With the file that the letters are written to.
    Discard(&'a Path),
}

/// A survey, and how its letters are acted on.
pub(crate) struct Plan<'a, Q = SqsQueues> {
    pub(crate) letters: &'a DeadLetters<Q>,
    pub(crate) order: Order<'a>,
    work: Work,
    pub(crate) survey: Survey,
    /// Ids of the chosen letters: nothing else is acted on. 110,000 take about 10 MB.
    pub(crate) ids: HashSet<String>,
    pub(crate) read: Read,
}

impl<'a, Q: LetterQueue> Plan<'a, Q> {
    /// Reads the letters, and prints what would be done, unless JSON is printed. `judge` says whether a letter can be acted
    /// on. Too many letters to read them all still make a plan. Without a filter, and without `all`, the plan is shown and
    /// refused.
    pub(crate) async fn make(
        order: Order<'a>,
        work: Work,
        judge: impl Fn(&Received) -> Result<(), Reason>,
        letters: &'a DeadLetters<Q>,
    ) -> Result<Self, CommandFailure> {
        let (mut survey, mut ids) = (Survey::default(), HashSet::new());
        let filter = work.filter.clone().unwrap_or_default();
        let look = |received: &Received| {
            if survey.count(received, &filter, &judge, 0, work.now) {
                ids.insert(received.record.message_id.clone());
            }
            false
        };
        let read = letters.look(work.now, look).await?;
        match &read.end {
            End::Interrupted => read.result("nothing was changed")?,
            End::Failed(failure) => return Err(failure.clone().into()),
            End::All | End::Enough | End::TooManyHidden => {}
        }
        let until = survey.newest.unwrap_or(work.until);
        let plan = Self { letters, order, work: Work { until, ..work }, survey, ids, read };
        plan.answer(None);
        letters.check_target(&plan.survey, &filter, &plan.read)?;
        letters.session.say(&plan.text())?;
        if !order.all && filter.takes_everything() {
            let filters = Filter::flags().join(", ");
            let what = format!("which dead-letters? Choose with {filters}, or all with --all");
            return Err(Failure::Refused(what).into());
        }
        Ok(plan)
    }

    /// The plan of an order for letters of a snapshot, which are not read again for it. Prints it.
    pub(crate) fn of_snapshot(
        order: Order<'a>,
        pace: Pace,
        selected: &Selected<'_>,
        letters: &'a DeadLetters<Q>,
    ) -> Result<Self, CommandFailure> {
        let (survey, ids, read) = (selected.survey(), selected.ids(), selected.snapshot.read.clone());
        let (now, until) = (selected.snapshot.at, selected.snapshot.newest);
        let work = Work { filter: None, now, until, pace, limit: Some(ids.len() as u64) };
        let plan = Self { letters, order, work, survey, ids, read };
        letters.session.say(&plan.text())?;
        Ok(plan)
    }

    /// What a question about it is about: the same as long as it is the same letters, whenever it is made.
    pub(crate) fn identity(&self) -> Value {
        let mut ids: Vec<_> = self.ids.iter().collect();
        ids.sort_unstable();
        let mut digest = Sha256::new();
        for id in ids {
            digest.update(id.len().to_le_bytes());
            digest.update(id);
        }
        let digest: Vec<_> = digest.finalize().into_iter().collect();
        json!({"letters": self.letters(), "ids": digest, "pace": self.work.pace.0})
    }

    pub(crate) async fn carry_out(&self, action: &impl LetterAction) -> Result<(Done, Read), Failure> {
        self.work.run(&self.letters.reader(self.letters()), &self.ids, action).await
    }

    /// Notes letters of a snapshot that were not found again.
    pub(crate) fn note_missing(&self, done: &Done, read: &Read) {
        let not_deleted = done.not_deleted.as_ref().map_or(0, |(count, _)| *count);
        let met = done.letters + not_deleted + done.left.values().sum::<u64>();
        let missing = self.letters().saturating_sub(met);
        if self.work.filter.is_none() && read.end == End::All && missing > 0 {
            let count = counted(missing, "dead-letter was", "dead-letters were");
            self.letters.session.note(&format!(
                "{count} not found again: sent back, discarded or hidden by somebody else since the scan"
            ));
        }
    }

    /// Letters to act on.
    pub(crate) fn letters(&self) -> u64 {
        self.survey.chosen.min(self.work.limit.unwrap_or(u64::MAX))
    }

    fn text(&self) -> String {
        let Self { work, survey, read, .. } = self;
        let verb = match self.order.verb {
            Verb::Redrive => "redrive",
            Verb::Discard(_) => "discard",
        };
        let letters = self.letters();
        let mut text = headline(verb, letters, read.letters, work.pace.time_for(letters)) + "\n";
        if letters < survey.chosen {
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
            "letters": self.letters(), "chosen": chosen, "read": self.read.letters, "groups": groups, "left": left,
            "not_allowed": not_allowed, "locked": self.read.locked, "incomplete": incomplete,
        })
    }

    /// Has the session answer with the plan, and with its outcome once it is carried out.
    pub(crate) fn answer(&self, outcome: Option<(&Done, &Read)>) {
        let done = outcome.map_or(0, |(done, _)| done.letters);
        let outcome = outcome.map(|(done, read)| done.json(read));
        let mut report = json!({"plan": self.json(), "dry_run": self.order.dry_run, "outcome": outcome});
        match self.order.verb {
            Verb::Redrive => report["redriven"] = done.into(),
            Verb::Discard(export) => {
                report["discarded"] = done.into();
                report["export"] = export.display().to_string().into();
            }
        }
        self.letters.session.answer(&report);
    }

    /// How the command ends: badly if something was left that the plan did not say.
    pub(crate) fn result(&self, done: &Done, read: &Read, summary: &str) -> Result<(), Failure> {
        read.result(summary)?;
        if self.work.limit.is_none_or(|limit| done.letters < limit) {
            // What was locked while the plan was made may still be.
            self.read.result(summary)?;
        }
        let surprises = done.left.keys().any(|why| !self.survey.left.contains_key(why.as_str()));
        if surprises || done.not_deleted.is_some() { Err(left_over(summary)) } else { Ok(()) }
    }
}

fn headline(verb: &str, letters: u64, all: u64, time: Duration) -> String {
    if letters == 0 {
        return format!("nothing to {verb}");
    }
    let (count, all) = (counted(letters, "dead-letter", "dead-letters"), HumanCount(all));
    format!("to {verb}: about {count} of {all}, in about {}", durations::short(time.as_secs_f64()))
}

/// Why a command ends that left what it should have done.
pub(crate) fn left_over(summary: &str) -> Failure {
    Failure::Undone(format!("{summary}; run the command again for the rest"))
}

impl Done {
    /// `redrove 812 dead-letters; …`
    pub(crate) fn summary(&self, did: &str) -> String {
        let mut parts = vec![format!("{did} {}", counted(self.letters, "dead-letter", "dead-letters"))];
        if let Some((count, why)) = &self.not_deleted {
            let letters = counted(*count, "dead-letter was", "dead-letters were");
            parts.push(format!("{letters} not deleted, so the next run will process them again: {why}"));
        }
        parts.extend(self.left.iter().map(|(why, count)| format!("left {}: {why}", HumanCount(*count))));
        shown(&parts.join("; ")).into_owned()
    }

    fn json(&self, read: &Read) -> Value {
        let not_deleted = self.not_deleted.as_ref().map(|(count, why)| json!({"count": count, "why": why}));
        let (left, incomplete) = (&self.left, read.incomplete());
        json!({"done": self.letters, "left": left, "not_deleted": not_deleted, "incomplete": incomplete})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    #[test]
    fn a_plan_without_letters_has_nothing_to_do() {
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
        let summary = Done { letters: 0, left, not_deleted }.summary("imported");
        assert!(summary.matches("\\u{9b}2J").count() == 2 && !is_obeyed_anywhere(&summary), "{summary}");
    }
}
