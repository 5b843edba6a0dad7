//! What the `dead` commands share: finding and reading the letters, and the plan of a redrive or discard.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use comeback_engine::{Reason, Timestamp};
use indicatif::HumanCount;
use serde_json::{Value, json};

use crate::account::Failure;
use crate::failure;
use crate::operate::dead::filter::Filter;
use crate::operate::dead::queue::{HIDDEN_FOR, Received, SqsQueues};
use crate::operate::dead::scan::{End, Read, Reader, Scan};
use crate::operate::dead::survey::Survey;
use crate::operate::dead::work::{Done, LetterAction, Work};
use crate::operate::deployment::{Deployment, Depth};
use crate::operate::session::Session;
use crate::text::durations;
use crate::text::numbers::counted;
use crate::text::terminal::{Progress, shown};

/// The two queues of a deployment, and the command that works on them.
pub(crate) struct DeadLetters {
    pub(crate) session: Session,
    pub(crate) deployment: Deployment,
    queues: SqsQueues,
}

impl DeadLetters {
    pub(crate) async fn find(session: Session) -> Result<Self, Failure> {
        let deployment = session.interrupt.or(session.deployment()).await?;
        let queues = SqsQueues::new(&session.account, &deployment);
        Ok(Self { session, deployment, queues })
    }

    /// How many letters there are. SQS's counts are right only a minute after the last change.
    pub(crate) async fn depth(&self) -> Result<Depth, Failure> {
        let session = &self.session;
        session.interrupt.or(Depth::read(&session.account, &self.deployment.dead_letter_queue)).await
    }

    /// Shows every letter that was sent until `now` to `look`, until that returns `true`. Says what reading the letters does
    /// to the queue, unless JSON is printed.
    pub(crate) async fn look(
        &self,
        now: Timestamp,
        look: impl FnMut(&Received) -> bool,
    ) -> Result<Read, Failure> {
        let depth = self.depth().await?;
        if !self.session.common.json && depth.visible > 0 {
            let count = counted(depth.visible, "dead-letter", "dead-letters");
            let minutes = HIDDEN_FOR.as_secs() / 60;
            anstream::eprintln!(
                "Reading {count}. Nobody else sees them until this ends (if it is killed, for up to {minutes} \
                 minutes)."
            );
        }
        let read = Scan::new(&self.reader(depth.visible), now).look(look).await?;
        Ok(read.beside_locked(depth, now))
    }

    /// [`Survey::check_target`], and prints its note.
    pub(crate) fn check_target(&self, survey: &Survey, filter: &Filter, read: &Read) -> Result<(), Failure> {
        let note = survey.check_target(filter, read, &self.deployment)?;
        note.iter().for_each(|note| anstream::eprintln!("note: {note}"));
        Ok(())
    }

    /// A reader whose bar counts to `letters`.
    pub(crate) fn reader(&self, letters: u64) -> Reader<'_, SqsQueues> {
        let bar = Progress::new(letters, "{pos}/{len} dead-letters");
        let progress = Box::new(move |letters| bar.set(letters));
        Reader { queue: &self.queues, interrupt: &self.session.interrupt, progress }
    }
}

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
pub(crate) struct Plan<'a> {
    letters: &'a DeadLetters,
    order: Order<'a>,
    work: Work,
    pub(crate) survey: Survey,
    /// Ids of the chosen letters: nothing else is acted on. 110,000 take about 10 MB.
    ids: HashSet<String>,
    pub(crate) read: Read,
}

impl<'a> Plan<'a> {
    /// Reads the letters, and prints what would be done, unless JSON is printed. `judge` says whether a letter can be acted
    /// on. Too many letters to read them all still make a plan. Without a filter, and without `all`, the plan is shown and
    /// refused.
    pub(crate) async fn make(
        order: Order<'a>,
        work: Work,
        judge: impl Fn(&Received) -> Result<(), Reason>,
        letters: &'a DeadLetters,
    ) -> Result<Self, failure::CommandFailure> {
        let (mut survey, mut ids) = (Survey::default(), HashSet::new());
        let look = |received: &Received| {
            if survey.count(received, &work.filter, &judge, 0, work.now) {
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
        letters.check_target(&plan.survey, &plan.work.filter, &plan.read)?;
        if !letters.session.common.json {
            plan.print(&mut anstream::stdout())?;
        }
        if !order.all && plan.work.filter.takes_everything() {
            let filters = Filter::flags().join(", ");
            let what = format!("which dead-letters? Choose with {filters}, or all with --all");
            return Err(Failure::Refused(what).into());
        }
        Ok(plan)
    }

    pub(crate) async fn carry_out(&self, action: &impl LetterAction) -> Result<(Done, Read), Failure> {
        self.work.run(&self.letters.reader(self.letters()), &self.ids, action).await
    }

    /// Letters to act on.
    pub(crate) fn letters(&self) -> u64 {
        self.survey.chosen.min(self.work.limit.unwrap_or(u64::MAX))
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { work, survey, read, .. } = self;
        let verb = match self.order.verb {
            Verb::Redrive => "redrive",
            Verb::Discard(_) => "discard",
        };
        let letters = self.letters();
        writeln!(out, "{}", headline(verb, letters, read.letters, work.pace.time_for(letters)))?;
        if letters < survey.chosen {
            writeln!(out, "(--limit; the filters match {})", HumanCount(survey.chosen))?;
        }
        if survey.chosen > 0 {
            writeln!(out, "{}", survey.groups_table(work.now))?;
        }
        for (reason, count) in &survey.left {
            writeln!(out, "skipped: {}, which would be dead-lettered again as {reason}", HumanCount(*count))?;
        }
        match read.incomplete() {
            Some(why) => writeln!(out, "incomplete: {why}"),
            None => Ok(()),
        }
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
    use crate::account::Account;
    use crate::operate::session::Common;
    use crate::text::terminal::tests::{HOSTILE, is_obeyed_anywhere};

    impl DeadLetters {
        pub(crate) fn sample(account: Account, common: &Common) -> Self {
            let (session, deployment) = (Session::sample(account, common), Deployment::sample());
            let queues = SqsQueues::new(&session.account, &deployment);
            Self { session, deployment, queues }
        }
    }

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
