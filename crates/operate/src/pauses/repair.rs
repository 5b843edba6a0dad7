//! Replaces an unreadable text in the pauses parameter, such as one edited by hand, by the last readable version.

use comeback_engine::{GarbledPauses, Pauses};
use serde::Serialize;

use crate::account::Account;
use crate::command::{Command, CommandName};
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::text;
use crate::text::quoted;

/// Describes what is wrong with the parameter's text.
pub(crate) fn problem(deployment: &Deployment, garbled: &GarbledPauses) -> String {
    format!("parameter {}: {garbled}", deployment.pauses().unwrap_or_default())
}

/// The command that replaces an unreadable text, or an instruction if a newer version of Comeback wrote the text.
pub(crate) fn remedy(deployment: &Deployment, garbled: &GarbledPauses) -> Result<Command, &'static str> {
    match garbled {
        GarbledPauses::Malformed(_) => Ok(deployment.command(CommandName::Resume, ["--all"])),
        GarbledPauses::Newer(_) => Err("a newer version of Comeback wrote it; use that version's command"),
    }
}

/// The error for a parameter that cannot be parsed.
pub(crate) fn unreadable(deployment: &Deployment, garbled: &GarbledPauses) -> Failure {
    let remedy = match remedy(deployment, garbled) {
        Ok(command) => text![quoted(command), " puts back the last readable version"],
        Err(instruction) => instruction.into(),
    };
    Failure::could_not(text![problem(deployment, garbled), "; ", remedy])
}

/// The replacement of an unreadable text by the last readable version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Repair {
    /// What is wrong with the text.
    problem: String,
    /// The number of the version with the unreadable text.
    unreadable: i64,
    /// The number of the version that is put back. `None` if no version is readable, and an empty list is written.
    restored: Option<i64>,
}

impl Repair {
    /// Finds the pauses that replace the unreadable text of a version. Fails if the newest text that Comeback wrote has a
    /// newer format.
    pub(crate) async fn find(
        account: &Account,
        deployment: &Deployment,
        garbled: &GarbledPauses,
        unreadable: i64,
    ) -> Result<(Pauses, Self), Failure> {
        let versions = account.aws.parameter_history(deployment.pauses().unwrap_or_default()).await?;
        let mut texts = versions.iter().rev().map(|version| (Pauses::read(&version.text), version.number));
        let written = texts.find(|(read, _)| !matches!(read, Err(GarbledPauses::Malformed(_))));
        let (pauses, restored) = match written {
            Some((Ok(pauses), number)) => (pauses, Some(number)),
            Some((Err(newer), _)) => return Err(self::unreadable(deployment, &newer)),
            None => (Pauses::default(), None),
        };
        Ok((pauses, Self { problem: problem(deployment, garbled), unreadable, restored }))
    }

    /// Describes the repair, after which the functions with these names are paused.
    pub(crate) fn lines(&self, paused: &[String]) -> [String; 3] {
        let after = match (self.restored, paused) {
            (None, _) => "  replaced by an empty list, because no version is readable".to_owned(),
            (Some(version), []) => format!("  replaced by version {version}, in which nothing is paused"),
            (Some(version), paused) => {
                format!("  replaced by version {version}, in which these are paused: {}", paused.join(", "))
            }
        };
        let lost = format!(
            "  every pause and request in the unreadable text ends; AWS keeps the text as version {} in the \
             parameter's history",
            self.unreadable
        );
        [self.problem.clone(), after, lost]
    }

    /// Describes the repair once it is done.
    pub(crate) fn done(&self) -> String {
        let by =
            self.restored.map_or_else(|| "an empty list".to_owned(), |version| format!("version {version}"));
        format!("the unreadable pauses were replaced by {by}")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::aws::simulated::{Sample, SimulatedAws};
    use crate::aws::{Aws as _, ParameterVersion};
    use crate::change::tests::plain;
    use crate::change::{Change as _, Performed, Plan as _};
    use crate::operator::Operator;
    use crate::pause::PauseRetries;
    use crate::pauses::parameter::tests::{done, listed, pause};
    use crate::request::tests::sample;
    use crate::resume::ResumeRetries;

    async fn put(aws: &SimulatedAws, text: &str) {
        assert!(aws.put_parameter(Sample::PAUSES, text, false).await.unwrap().is_some());
    }

    async fn current(aws: &SimulatedAws) -> ParameterVersion {
        aws.parameter(Sample::PAUSES).await.unwrap().unwrap()
    }

    /// An account whose parameter has these versions.
    async fn written(texts: &[&str]) -> (SimulatedAws, Operator) {
        let (aws, operator) = sample();
        for text in texts {
            put(&aws, text).await;
        }
        (aws, operator)
    }

    const RESUME_ALL: ResumeRetries = ResumeRetries { function: None, spread: None };
    const NEWER: &str = r#"{"v":2,"holds":[]}"#;

    #[tokio::test]
    async fn an_unreadable_text_is_replaced_by_the_last_readable_one() {
        let (aws, operator) = sample();
        drop(done(&operator, &pause(Sample::ORDERS)).await);
        let readable = current(&aws).await.text;
        put(&aws, "by hand").await;
        let refused = pause(Sample::ORDERS).plan(&operator).await.unwrap_err().to_string();
        assert!(
            refused.ends_with("; `comeback resume --all` puts back the last readable version"),
            "{refused}"
        );
        let plan = RESUME_ALL.plan(&operator).await.unwrap();
        let expected = "\
parameter /comeback/comeback/pauses: the pauses are unreadable: not a JSON object
  replaced by version 1, in which these are paused: orders
  every pause and request in the unreadable text ends; AWS keeps the text as version 2 in the parameter's history
";
        assert_eq!(plain(&plan), expected);
        assert_eq!(plan.question().unwrap().text, "replace the unreadable pauses?");
        let resumed = done(&operator, &RESUME_ALL).await;
        assert_eq!(plain(&resumed), "the unreadable pauses were replaced by version 1\n");
        assert_eq!(current(&aws).await.text, readable);
    }

    #[tokio::test]
    async fn a_text_without_a_readable_version_becomes_an_empty_list() {
        let (aws, operator) = written(&["by hand", "{}"]).await;
        let resumed = done(&operator, &RESUME_ALL).await;
        assert_eq!(plain(&resumed), "the unreadable pauses were replaced by an empty list\n");
        let text = current(&aws).await.text;
        assert_eq!(text, Pauses::default().write());
    }

    #[tokio::test]
    async fn a_repair_also_ends_the_pause_of_every_function() {
        let (aws, operator) = sample();
        let all = PauseRetries { function: None, ..pause(Sample::ORDERS) };
        drop(done(&operator, &all).await);
        put(&aws, "by hand").await;
        let plan = RESUME_ALL.plan(&operator).await.unwrap();
        let question = "replace the unreadable pauses, and resume every function?";
        assert_eq!(plan.question().unwrap().text, question);
        aws.advance(Duration::from_secs(60));
        drop(done(&operator, &RESUME_ALL).await);
        assert_eq!(listed(&operator).await, [0, 0]);
    }

    #[tokio::test]
    async fn a_text_that_is_readable_again_is_not_replaced() {
        let (aws, operator) = written(&["by hand"]).await;
        let plan = RESUME_ALL.plan(&operator).await.unwrap();
        put(&aws, r#"{"v":1,"pauses":[]}"#).await;
        let Ok(Performed::Outdated(new)) = RESUME_ALL.perform(&operator, &plan).await else { panic!() };
        assert_eq!((new.question(), current(&aws).await.number), (None, 2));
    }

    #[tokio::test]
    async fn a_newer_versions_text_is_never_replaced() {
        for texts in [&[r#"{"v":1,"pauses":[]}"#, NEWER][..], &[NEWER, "by hand"]] {
            let (_, operator) = written(texts).await;
            let refused = RESUME_ALL.plan(&operator).await.unwrap_err().to_string();
            assert!(
                refused.ends_with("v is 2, but this version reads only 1; a newer version of Comeback wrote it; use that version's command"),
                "{refused}"
            );
        }
    }
}
