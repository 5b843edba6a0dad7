//! Replaces an unreadable text in the pauses parameter, such as one edited by hand, with the last readable version.

use comeback_engine::{GarbledPauses, PauseTarget, Pauses};
use serde::Serialize;

use crate::account::Account;
use crate::command::{Command, CommandName};
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::pauses::OpenPause;
use crate::pauses::requests::RequestInForce;
use crate::text;
use crate::text::{Text, quoted};

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

/// The replacement of an unreadable text with the last readable version.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Repair {
    /// What is wrong with the text.
    problem: String,
    /// The number of the version with the unreadable text.
    unreadable: i64,
    /// The number of the version that is put back. `None` if no version is readable, and an empty list is written.
    restored: Option<i64>,
    /// The open pauses of the version that is put back.
    pauses: Vec<OpenPause>,
    /// The requests of that version that are in force.
    requests: Vec<RequestInForce>,
}

impl Repair {
    /// Finds the pauses that replace the unreadable text of a version. Fails if the newest text that Comeback wrote has
    /// a newer format.
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
            Some((Err(newer), number)) if number == unreadable => {
                return Err(self::unreadable(deployment, &newer));
            }
            Some((Err(_), number)) => {
                let problem = problem(deployment, garbled);
                return Err(Failure::could_not(format!(
                    "{problem}; a newer version of Comeback wrote the last well-formed text, version {number}; use \
                     that version's command"
                )));
            }
            None => (Pauses::default(), None),
        };
        let now = account.now();
        let repair = Self {
            problem: problem(deployment, garbled),
            unreadable,
            restored,
            pauses: OpenPause::all_of(&pauses, now),
            requests: RequestInForce::all_of(&pauses, now),
        };
        Ok((pauses, repair))
    }

    /// The numbers of the version that is replaced and of the one that is put back.
    pub(crate) fn versions(&self) -> (i64, Option<i64>) {
        (self.unreadable, self.restored)
    }

    /// Returns true if every function is paused by the version that is put back.
    pub(crate) fn pauses_every_function(&self) -> bool {
        self.pauses.iter().any(|open| open.pause.target == PauseTarget::All)
    }

    /// Describes the repair, and what is in force after it.
    pub(crate) fn lines(&self) -> Vec<Text> {
        let paused: Vec<String> = self.pauses.iter().map(OpenPause::name).collect();
        let after = match (self.restored, &paused[..]) {
            (None, _) => "  replaced with an empty list, because no version is readable".to_owned(),
            (Some(version), []) => format!("  replaced with version {version}, in which nothing is paused"),
            (Some(version), paused) => {
                format!("  replaced with version {version}, in which these are paused: {}", paused.join(", "))
            }
        };
        let request = |it: &RequestInForce| text![format!("  in force again: {}: ", it.title()), it.line()];
        let lost = format!(
            "  every pause and request in the unreadable text ends; AWS keeps the text as version {} in the \
             parameter's history",
            self.unreadable
        );
        let requests = self.requests.iter().map(request);
        [self.problem.clone().into(), after.into()].into_iter().chain(requests).chain([lost.into()]).collect()
    }

    /// Describes the repair once it is done.
    pub(crate) fn done(&self) -> String {
        let with =
            self.restored.map_or_else(|| "an empty list".to_owned(), |version| format!("version {version}"));
        format!("the unreadable pauses were replaced with {with}")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::aws::simulated::{Sample, SimulatedAws};
    use crate::aws::{Aws as _, ParameterVersion};
    use crate::change::tests::plain;
    use crate::change::{Change as _, Performed, Plan as _};
    use crate::operator::Operator;
    use crate::operator_line::Activity;
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
  replaced with version 1, in which these are paused: orders
  every pause and request in the unreadable text ends; AWS keeps the text as version 2 in the parameter's history
";
        assert_eq!(plain(&plan), expected);
        assert_eq!(plan.question().unwrap().text, "replace the unreadable pauses?");
        let resumed = done(&operator, &RESUME_ALL).await;
        assert_eq!(plain(&resumed), "the unreadable pauses were replaced with version 1\n");
        assert_eq!(current(&aws).await.text, readable);
    }

    #[tokio::test]
    async fn a_text_without_a_readable_version_becomes_an_empty_list() {
        let (aws, operator) = written(&["by hand", "{}"]).await;
        let resumed = done(&operator, &RESUME_ALL).await;
        assert_eq!(plain(&resumed), "the unreadable pauses were replaced with an empty list\n");
        let text = current(&aws).await.text;
        assert_eq!(text, Pauses::default().write());
    }

    #[tokio::test]
    async fn a_repair_leaves_every_function_paused() {
        let (aws, operator) = sample();
        let all = PauseRetries { function: None, ..pause(Sample::ORDERS) };
        drop(done(&operator, &all).await);
        put(&aws, "by hand").await;
        // A fractional time, because the end of a pause is rounded up to a second.
        aws.advance(Duration::from_millis(60_500));
        let plan = RESUME_ALL.plan(&operator).await.unwrap();
        assert_eq!(plan.question().unwrap().text, "replace the unreadable pauses?");
        let again = "The pause of every function goes on; run `comeback resume --all` again to end it.";
        let after = "  replaced with version 1, in which these are paused: every function";
        let text = plain(&plan);
        assert!(text.contains(after) && text.ends_with(&format!("{again}\n")), "{text}");
        let repaired = done(&operator, &RESUME_ALL).await;
        assert_eq!(
            plain(&repaired),
            format!("the unreadable pauses were replaced with version 1\n{again}\n")
        );
        let json = serde_json::to_value(&repaired).unwrap();
        assert_eq!((&json["ended"], &json["repair"]["pauses"][0]["target"]), (&json!([]), &json!("*")));
        assert_eq!(
            RESUME_ALL.activity(&repaired),
            Some(Activity { what: "resume".into(), ..Activity::default() })
        );
        assert_eq!(listed(&operator).await, [1, 0]);
        drop(done(&operator, &RESUME_ALL).await);
        assert_eq!(listed(&operator).await, [0, 0]);
    }

    #[tokio::test]
    async fn a_repair_names_the_requests_that_it_puts_back() {
        let (aws, operator) = sample();
        let at = aws.time().as_secs();
        put(&aws, &format!(r#"{{"v":1,"pauses":[],"cancels":[{{"target":"*","at":{at}}}]}}"#)).await;
        put(&aws, "by hand").await;
        let plan = RESUME_ALL.plan(&operator).await.unwrap();
        let expected = "\n  in force again: cancel: every function, requested at ";
        let said = plain(&plan);
        assert!(said.contains(expected), "{said}");
        let json = serde_json::to_value(&plan).unwrap();
        assert_eq!(json["repair"]["requests"][0]["ask"], "cancel");
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
        let current = "v is 2, but this version reads only 1; a newer version of Comeback wrote it; use";
        let earlier =
            "not a JSON object; a newer version of Comeback wrote the last well-formed text, version 1; use";
        for (texts, expected) in [([r#"{"v":1,"pauses":[]}"#, NEWER], current), ([NEWER, "by hand"], earlier)]
        {
            let (_, operator) = written(&texts).await;
            let refused = RESUME_ALL.plan(&operator).await.unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
            assert!(refused.ends_with("; use that version's command"), "{refused}");
        }
    }
}
