//! Discards dead-letters: writes them to a file, and deletes them from the queue.

use std::path::PathBuf;

use serde::Serialize;

use crate::change::{Answer, Change, Performed, Plan, Question};
use crate::command::CommandName;
use crate::dead::file::NewFile;
use crate::dead::pace::Pace;
use crate::dead::plan::{Acted, Chosen, DeadLetterOutcome, Picked};
use crate::dead::scan::counted_dead_letters;
use crate::dead::work::act;
use crate::failure::Failure;
use crate::layout::Layout;
use crate::operator::Operator;
use crate::operator_line::Activity;
use crate::shown::shown;
use crate::text;
use crate::text::{Text, quoted};

/// A change that writes dead-letters to a new file, and deletes each from the queue once its line is on disk.
#[derive(Clone, Debug)]
pub struct Discard {
    /// The dead-letters to discard.
    pub chosen: Chosen,
    /// The path to the file to create, which must not exist yet.
    pub export: PathBuf,
    /// The maximum rate at which dead-letters are discarded.
    pub pace: Pace,
    /// The maximum number of dead-letters to discard; `None` means no limit.
    pub limit: Option<u64>,
}

/// The plan for a discard.
#[derive(Clone, Debug, Serialize)]
pub struct DiscardPlan {
    plan: Picked,
    outcome: Option<DeadLetterOutcome>,
    discarded: u64,
    export: String,
}

/// The result of a discard: how many dead-letters were discarded, and why the rest were not.
#[derive(Debug, Serialize)]
pub struct Discarded {
    #[serde(flatten)]
    acted: Acted,
    discarded: u64,
    export: String,
    #[serde(skip)]
    is_empty: bool,
}

impl Change for Discard {
    type Plan = DiscardPlan;
    type Done = Discarded;

    async fn plan(&self, operator: &Operator) -> Result<DiscardPlan, Failure> {
        let export = self.export.display().to_string();
        if self.export.exists() {
            return Err(Failure::refused(format!(
                "--export {}: the file exists and is not overwritten; choose another name",
                shown(&export)
            )));
        }
        let deployment = operator.deployment().await?;
        let snapshot = self.chosen.snapshot(operator, &deployment, None).await?;
        let picked = Picked::of(&self.chosen, snapshot, |_, _| None, (self.pace, self.limit))?;
        Ok(DiscardPlan { plan: picked, outcome: None, discarded: 0, export })
    }

    async fn perform(&self, operator: &Operator, plan: &DiscardPlan) -> Result<Performed<Self>, Failure> {
        if !plan.plan.is_current(operator).await? {
            return Ok(Performed::Outdated(self.plan(operator).await?));
        }
        let file = NewFile::create(&self.export)?;
        let acted = act(operator, &plan.plan, &file, "discarded").await?;
        let result = acted.result();
        let (discarded, export, is_empty) = (acted.outcome.done, plan.export.clone(), file.is_empty());
        Ok(Performed::Done(Discarded { acted, discarded, export, is_empty }, result))
    }

    fn activity(&self, done: &Discarded) -> Option<Activity> {
        done.acted.activity(CommandName::Discard, &self.chosen)
    }
}

impl Plan for DiscardPlan {
    fn identity(&self) -> String {
        self.plan.identity()
    }

    fn question(&self) -> Option<Question> {
        let count = self.plan.dead_letters;
        let (dead_letters, export) = (counted_dead_letters(count), shown(&self.export));
        let question = format!("write {dead_letters} to {export} and delete them from the queue?");
        (count > 0).then(|| Question::new(question))
    }

    fn log_group(&self) -> &str {
        &self.plan.deployment().log_group
    }
}

impl Answer for DiscardPlan {
    fn layout(&self) -> Layout {
        self.plan.layout("discard")
    }

    fn end(&self) -> Result<(), Failure> {
        self.plan.snapshot.read.result("nothing was changed")
    }
}

impl Discarded {
    /// Returns the command that imports the exported dead-letters, or a warning about duplicates; `None` if nothing was
    /// exported.
    fn back(&self) -> Option<Text> {
        let export = shown(&self.export);
        match &self.acted.outcome.not_deleted {
            _ if self.is_empty => None,
            None => {
                let import = self.acted.plan.deployment().command(CommandName::Import, [&*export]);
                Some(text![quoted(import), " brings them back"])
            }
            Some(not_deleted) => Some(
                format!(
                    "{} may be both in {export} and in the queue, so an import could duplicate them",
                    counted_dead_letters(not_deleted.count)
                )
                .into(),
            ),
        }
    }
}

impl Answer for Discarded {
    fn layout(&self) -> Layout {
        self.acted.layout(self.back())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::aws::simulated::{Fault, Sample, queue_url};
    use crate::change::tests::plain;
    use crate::dead::filter::Filter;
    use crate::dead::testing::{Dead, event, unknown};

    fn discard(export: &Path) -> Discard {
        let export = export.to_owned();
        Discard { chosen: Chosen::matching(Filter::default()), export, pace: Pace(500.0), limit: None }
    }

    async fn run(operator: &Operator, discard: &Discard) -> (Discarded, Result<(), Failure>) {
        match discard.perform(operator, &discard.plan(operator).await.unwrap()).await {
            Ok(Performed::Done(done, result)) => (done, result),
            other => panic!("{other:?}"),
        }
    }

    fn lines(path: &Path) -> u64 {
        std::fs::read_to_string(path).unwrap().lines().count() as u64
    }

    #[tokio::test]
    async fn discarded_dead_letters_are_in_the_file_and_gone() {
        let dead = Dead::with([event("Timeout"), unknown()]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.jsonl");
        let discard = discard(&path);
        let plan = discard.plan(&dead.operator()).await.unwrap();
        let question = format!("write 2 dead-letters to {} and delete them from the queue?", path.display());
        assert_eq!(plan.question(), Some(Question::new(question)));
        assert!(!path.exists());
        let (done, result) = run(&dead.operator(), &discard).await;
        let said =
            format!("discarded 2 dead-letters; `comeback dead import {}` brings them back\n", path.display());
        assert_eq!((plain(&done), result, dead.depth().total(), lines(&path)), (said, Ok(()), 0, 2));
        let json = serde_json::to_value(&done).unwrap();
        assert_eq!((&json["discarded"], &json["export"]), (&2.into(), &path.display().to_string().into()));
    }

    #[tokio::test]
    async fn nothing_is_discarded_after_the_queue_changed() {
        let dead = Dead::with([event("Timeout")]);
        let folder = tempfile::tempdir().unwrap();
        let discard = discard(&folder.path().join("dead-letters.jsonl"));
        let plan = discard.plan(&dead.operator()).await.unwrap();
        dead.set("DEAD_LETTER_QUEUE_URL", &queue_url(Sample::RETRY_QUEUE));
        let Ok(Performed::Outdated(new)) = discard.perform(&dead.operator(), &plan).await else { panic!() };
        assert_eq!((new.question(), dead.depth().visible, discard.export.exists()), (None, 1, false));
    }

    #[tokio::test]
    async fn a_file_that_exists_is_refused_before_anything_is_read() {
        let dead = Dead::with([event("Timeout")]);
        let file = tempfile::NamedTempFile::new().unwrap();
        let failure = discard(file.path()).plan(&dead.operator()).await.unwrap_err();
        assert!(
            failure.to_string().ends_with(": the file exists and is not overwritten; choose another name")
        );
        assert_eq!((failure.exit_code(), dead.aws.calls()), (2, 0));
    }

    #[tokio::test]
    async fn file_lacks_dead_letters_known_to_stay() {
        // Every deletion after the first is denied, or deletions succeed but their answers are lost.
        for (is_denied, in_file) in [(true, 1), (false, 51)] {
            let dead = Dead::with((0..90).map(|_| event("Timeout")));
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("dead-letters.jsonl");
            let mut deletions = 0;
            dead.aws.on_call(move |call| {
                deletions += u32::from(call.action == "sqs:DeleteMessage");
                (!is_denied && call.action == "sqs:DeleteMessage" && deletions > 1)
                    .then_some(Fault::AnswerLost)
            });
            let aws = dead.aws.clone();
            // The fourth progress report comes after the first batch, which has only one dead-letter.
            let operator = dead.following(move |told| {
                if is_denied && told == 4 {
                    aws.deny("sqs:DeleteMessage");
                }
            });
            let discard = Discard { pace: Pace(50.0), ..discard(&path) };
            let (done, _) = run(&operator, &discard).await;
            let not_deleted = done.acted.outcome.not_deleted.as_ref().map_or(0, |it| it.count);
            let left: u64 = done.acted.outcome.left.values().sum();
            assert_eq!((done.discarded, not_deleted, left), (1, in_file - 1, 51 - in_file));
            assert_eq!(lines(&path), in_file);
        }
    }

    #[tokio::test]
    async fn an_export_without_a_dead_letter_is_removed() {
        let dead = Dead::with([event("Timeout")]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead-letters.jsonl");
        dead.aws.deny("sqs:DeleteMessage");
        let discard = discard(&path);
        let plan = discard.plan(&dead.operator()).await.unwrap();
        assert!(discard.perform(&dead.operator(), &plan).await.is_err());
        assert!(!path.exists());
        dead.aws.allow("sqs:DeleteMessage");
        assert_eq!(run(&dead.operator(), &discard).await.0.discarded, 1);
        assert!(path.exists());
    }
}
