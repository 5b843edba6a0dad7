//! Reads and edits the SSM parameter that holds the pauses and requests, without losing another operator's edit.

use std::time::Duration;

use comeback_engine::{GarbledPauses, LONGEST_PAUSES, Pause, Pauses, Timestamp, TooLarge};

use crate::account::Account;
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::pauses::repair::{Repair, unreadable};
use crate::text;

/// Reads the deployment's SSM parameter: the pauses, or what is wrong with its text. Returns `None` if the handler
/// reads no pauses.
pub(crate) async fn read_parameter(
    account: &Account,
    deployment: &Deployment,
) -> Result<Option<Result<Pauses, GarbledPauses>>, Failure> {
    match deployment.pauses() {
        Some(name) => Ok(Some(read_current(account, name).await?.0)),
        None => Ok(None),
    }
}

/// Reads the pauses from the deployment's SSM parameter, or returns `None` if the handler reads no pauses.
pub(crate) async fn read_pauses(
    account: &Account,
    deployment: &Deployment,
) -> Result<Option<Pauses>, Failure> {
    let read = read_parameter(account, deployment).await?.transpose();
    read.map_err(|garbled| unreadable(deployment, &garbled))
}

/// Reads the pauses and the parameter's version, which is 0 if the parameter does not exist.
async fn read_current(
    account: &Account,
    name: &str,
) -> Result<(Result<Pauses, GarbledPauses>, i64), Failure> {
    Ok(match account.aws.parameter(name).await? {
        Some(version) => (Pauses::read(&version.text), version.number),
        None => (Ok(Pauses::default()), 0),
    })
}

/// The size of the parameter's text, in bytes, at which `status` and `doctor` warn that it is nearly full.
const NEARLY_FULL: usize = LONGEST_PAUSES / 4 * 3;

pub(crate) fn nearly_full(pauses: &Pauses) -> Option<String> {
    let bytes = pauses.write().len();
    (bytes >= NEARLY_FULL).then(|| format!("the parameter has {bytes} of at most {LONGEST_PAUSES} bytes"))
}

impl From<TooLarge> for Failure {
    fn from(error: TooLarge) -> Self {
        Self::undone(format!("{error}: shorten the reasons, resume functions, or wait until requests end"))
    }
}

/// The wait between a write and the check that no other write has replaced it.
const SETTLE: Duration = Duration::from_secs(2);
/// The maximum number of writes for one edit.
const WRITES: u32 = 8;
/// Says of an edit that is in force what it has cost another operator.
const NOT_RESTORED: &str = "replaced another operator's edit, which could not be restored";

/// An edit of the pauses that was written.
#[derive(Debug)]
pub(crate) struct WrittenEdit {
    /// The past pauses that were dropped because the parameter was full.
    pub(crate) forgotten: Vec<Pause>,
    /// Fails if the edit may have been overwritten since, or if it replaced another operator's edit for good.
    pub(crate) checked: Result<(), Failure>,
}

impl WrittenEdit {
    fn failed(forgotten: Vec<Pause>, what: &str, failure: &Failure) -> Self {
        let failure = text![format!("this is written, but {what}: "), failure.text()];
        Self { forgotten, checked: Err(Failure::could_not(failure)) }
    }
}

/// The SSM parameter with the pauses and requests. SSM offers no conditional write, except for creating a parameter
/// that does not exist yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PausesParameter<'a> {
    account: &'a Account,
    deployment: &'a Deployment,
    name: &'a str,
    /// True if the last readable version is to replace an unreadable text.
    repairs: bool,
}

impl<'a> PausesParameter<'a> {
    /// Returns the SSM parameter that holds the deployment's pauses, or fails if the handler does not read one.
    pub(crate) fn of(account: &'a Account, deployment: &'a Deployment) -> Result<Self, Failure> {
        let name = deployment.pauses().ok_or_else(|| {
            Failure::undone(format!(
                "handler {} reads no pauses; deploy the current template, or set its variable PAUSES to an \
                 SSM parameter's name and allow its role ssm:GetParameter on it",
                deployment.handler
            ))
        })?;
        Ok(Self { account, deployment, name, repairs: false })
    }

    /// The same parameter. If `repairs` is true, an unreadable text is read as the last readable version.
    pub(crate) fn repairing(self, repairs: bool) -> Self {
        Self { repairs, ..self }
    }

    pub(crate) async fn read(&self) -> Result<Pauses, Failure> {
        Ok(self.read_or_repair().await?.0)
    }

    /// Reads the pauses, with the repair that is necessary before they are in force, and the parameter's version.
    pub(crate) async fn read_or_repair(&self) -> Result<(Pauses, Option<Repair>, i64), Failure> {
        match read_current(self.account, self.name).await? {
            (Ok(pauses), version) => Ok((pauses, None, version)),
            (Err(garbled), version) if self.repairs => {
                let (pauses, repair) = Repair::find(self.account, self.deployment, &garbled, version).await?;
                Ok((pauses, Some(repair), version))
            }
            (Err(garbled), _) => Err(unreadable(self.deployment, &garbled)),
        }
    }

    /// Reads a version of the parameter. SSM keeps the last hundred.
    async fn read_version(&self, version: i64) -> Result<Pauses, Failure> {
        let name = self.name;
        let versions = self.account.aws.parameter_history(name).await?;
        let found = versions.iter().find(|earlier| earlier.number == version).ok_or_else(|| {
            Failure::could_not(format!(
                "version {version} of parameter {name}, which another operator wrote, is gone; see pause --list, \
                 and ask them"
            ))
        })?;
        Pauses::read(&found.text)
            .map_err(|garbled| Failure::could_not(format!("parameter {name}: {garbled}")))
    }

    /// Writes the text. Returns the new version's number, or `None` if SSM refused the write for now.
    async fn put(&self, text: &str, version: i64) -> Result<Option<i64>, Failure> {
        match self.account.aws.put_parameter(self.name, text, version == 0).await {
            Err(failure) => self.written_despite(failure, text, version).await.map(Some),
            written => written,
        }
    }

    /// After a failed write, checks whether SSM wrote the text and only its response was lost. If so, returns the new
    /// version's number. Otherwise fails with `failure`, the error of the write.
    async fn written_despite(&self, failure: Failure, text: &str, version: i64) -> Result<i64, Failure> {
        let Ok(versions) = self.account.aws.parameter_history(self.name).await else {
            let unknown = "; if it was not answered, it may have been written all the same: see pause --list";
            return Err(Failure::could_not(failure.text().and(unknown)));
        };
        let written = versions.iter().find(|it| it.number > version && it.text == text);
        written.map(|it| it.number).ok_or(failure)
    }

    /// Edits the pauses with `make`, and writes the result to the parameter. `is_in` returns true for pauses that
    /// already contain the edit. Fails unless the edit is known to be written.
    ///
    /// Each write replaces the whole text and creates a new version. If there is a version between ours and the one
    /// that we read, we have overwritten another operator's edit. We then apply our edit to that version, and write
    /// again. Two seconds after a write, we check that our edit is still there.
    ///
    /// If two operators edit concurrently, neither edit is lost. With more operators, some edits may fail and must be
    /// repeated.
    pub(crate) async fn edit(
        &self,
        now: Timestamp,
        make: impl Fn(&Pauses) -> Result<Pauses, Failure>,
        is_in: impl Fn(&Pauses) -> bool,
    ) -> Result<WrittenEdit, Failure> {
        let make = |pauses: &Pauses| -> Result<_, Failure> { Ok(make(pauses)?.fitted(now)?) };
        let mut writes = 0;
        // The error if our edit is invalid for the version that it replaced. That version is then restored.
        let mut refused = None;
        let (mut forgotten, mut is_written) = (Vec::new(), false);
        loop {
            // A text that became unreadable after our write is not ours to replace.
            let parameter = self.repairing(self.repairs && writes == 0);
            let (pauses, _, mut version) = match parameter.read_or_repair().await {
                Err(failure) if is_written => {
                    return Ok(WrittenEdit::failed(forgotten, "could not be checked", &failure));
                }
                read => read?,
            };
            if writes > 0 && is_in(&pauses) {
                return Ok(WrittenEdit { forgotten, checked: Ok(()) });
            }
            is_written = false;
            let (mut edited, left) = make(&pauses)?;
            forgotten.extend(left);
            // True once our edit is in force in place of another operator's, which the next write restores.
            let mut restores = false;
            loop {
                if writes == WRITES {
                    return out_of_writes(forgotten, restores);
                }
                can_be_read_back(&edited)?;
                writes += 1;
                let written = match self.put(&edited.write(), version).await {
                    Ok(Some(written)) => written,
                    // Without this write, the other operator's edit would be lost.
                    Ok(None) if restores => {
                        self.account.aws.sleep(SETTLE).await;
                        continue;
                    }
                    Ok(None) => break,
                    Err(failure) if restores => {
                        return Ok(WrittenEdit::failed(forgotten, NOT_RESTORED, &failure));
                    }
                    Err(failure) => return Err(failure),
                };
                // If the parameter was deleted in between, its versions start again at 1.
                if written <= version + 1 {
                    if let Some(refused) = refused.take() {
                        return Err(refused);
                    }
                    // Not interruptible: a written edit must be checked, and recorded as a change.
                    self.account.aws.sleep(SETTLE).await;
                    is_written = true;
                    break;
                }
                // If our edit was refused, we have just written another operator's.
                (version, restores) = (written, refused.is_none());
                let replaced = match self.read_version(written - 1).await {
                    Err(failure) if refused.is_none() => {
                        return Ok(WrittenEdit::failed(forgotten, NOT_RESTORED, &failure));
                    }
                    replaced => replaced?,
                };
                edited = if refused.is_some() || is_in(&replaced) {
                    replaced
                } else {
                    make(&replaced).map_or_else(
                        |error| {
                            refused = Some(error);
                            replaced.clone()
                        },
                        |(edited, _)| edited,
                    )
                };
            }
        }
    }
}

/// The result of an edit that took too many writes. If `restores` is true, the edit is in force.
fn out_of_writes(forgotten: Vec<Pause>, restores: bool) -> Result<WrittenEdit, Failure> {
    if restores {
        let why = Failure::could_not(format!("{WRITES} writes were not enough; see pause --list --history"));
        return Ok(WrittenEdit::failed(forgotten, NOT_RESTORED, &why));
    }
    Err(Failure::could_not(format!(
        "other operators keep changing the pauses, and overwrote ours {WRITES} times; see pause --list, and try again"
    )))
}

/// Fails if the handler would misread these pauses in the parameter.
fn can_be_read_back(pauses: &Pauses) -> Result<(), Failure> {
    let text = pauses.write();
    if Pauses::read(&text).as_ref() == Ok(pauses) {
        return Ok(());
    }
    Err(Failure::could_not(format!("nothing was written, because the handler would misread {text}")))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use serde_json::{Value, json};

    use super::*;
    use crate::aws::simulated::{Call, Fault, Sample, SimulatedAws, function_arn};
    use crate::aws::{NewMessage, ParameterVersion};
    use crate::change::{Change, Performed, Plan as _};
    use crate::operator::Operator;
    use crate::pause::PauseRetries;
    use crate::pauses::listing::pauses;
    use crate::request::RequestEvents;
    use crate::request::tests::{request, sample};
    use crate::resume::ResumeRetries;

    pub(crate) fn pause(function: &str) -> PauseRetries {
        let function = Some(function.parse().unwrap());
        PauseRetries { function, end: None, spread: None, why: Some("a bad deploy".into()) }
    }

    fn resume(function: &str) -> ResumeRetries {
        ResumeRetries { function: Some(function.parse().unwrap()), spread: None }
    }

    fn another(aws: &SimulatedAws, operator: &Operator) -> Operator {
        let account = aws.called_by("arn:aws:iam::123456789012:user/other").account();
        Operator { account, ..operator.clone() }
    }

    fn publish(aws: &SimulatedAws, alias: &str) -> String {
        aws.function_named(Sample::ORDERS).publish(alias);
        format!("{}:{alias}", Sample::ORDERS)
    }

    pub(crate) async fn done<C: Change>(operator: &Operator, change: &C) -> C::Done {
        let plan = change.plan(operator).await.unwrap();
        match change.perform(operator, &plan).await {
            Ok(Performed::Done(done, Ok(()))) => done,
            _ => panic!("not done"),
        }
    }

    /// The numbers of pauses and requests that `comeback pause --list` shows.
    pub(crate) async fn listed(operator: &Operator) -> [usize; 2] {
        let listed = serde_json::to_value(pauses(operator, false).await.unwrap()).unwrap();
        ["pauses", "requests"].map(|kind| listed[kind].as_array().map_or(0, Vec::len))
    }

    #[tokio::test]
    async fn an_edit_whose_answer_is_lost_is_found() {
        let fault_of = |faults: Vec<(&'static str, Fault)>| {
            move |call: Call<'_>| faults.iter().find(|(of, _)| *of == call.action).map(|(_, it)| it.clone())
        };
        let (put, history) = ("ssm:PutParameter", "ssm:GetParameterHistory");
        let (aws, operator) = sample();
        aws.on_call(fault_of(vec![(put, Fault::AnswerLost)]));
        drop(done(&operator, &pause(Sample::ORDERS)).await);
        assert_eq!(listed(&operator).await, [1, 0]);
        assert_eq!(operator.account.aws.parameter_history(Sample::PAUSES).await.unwrap().len(), 1);

        let failed = async |faults: Vec<(&'static str, Fault)>| {
            let (aws, operator) = sample();
            let pause = pause(Sample::ORDERS);
            let plan = pause.plan(&operator).await.unwrap();
            aws.on_call(fault_of(faults));
            let Err(failure) = pause.perform(&operator, &plan).await else { panic!("not failed") };
            failure.to_string()
        };
        let refused = failed(vec![(put, Fault::CallFails)]).await;
        assert!(refused.ends_with("Service is unable to handle request."), "{refused}");
        let unknown = failed(vec![(put, Fault::AnswerLost), (history, Fault::CallFails)]).await;
        assert!(unknown.ends_with("it may have been written all the same: see pause --list"), "{unknown}");
    }

    #[tokio::test]
    async fn an_edit_that_cannot_be_checked_is_made() {
        let (aws, operator) = sample();
        let pause = pause(Sample::ORDERS);
        let plan = pause.plan(&operator).await.unwrap();
        let is_written = Cell::new(false);
        aws.on_call(move |call: Call<'_>| {
            is_written.set(is_written.get() || call.action == "ssm:PutParameter");
            (is_written.get() && call.action == "ssm:GetParameter").then_some(Fault::CallFails)
        });
        let Ok(Performed::Done(_, Err(failure))) = pause.perform(&operator, &plan).await else {
            panic!("the pause is written")
        };
        let failure = failure.to_string();
        assert!(failure.starts_with("this is written, but could not be checked: "), "{failure}");
        assert_eq!(operator.account.aws.parameter_history(Sample::PAUSES).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn an_edit_that_replaces_another_for_good_is_made() {
        let (aws, operator) = sample();
        let other = another(&aws, &operator);
        let [first, second] = ["first", "second"].map(|alias| publish(&aws, alias));
        let fails = |call: Call<'_>| (call.action == "ssm:GetParameterHistory").then_some(Fault::CallFails);
        let performed = async |operator: &Operator, alias: &str| {
            let pause = pause(alias);
            let plan = pause.plan(operator).await.unwrap();
            match pause.perform(operator, &plan).await {
                Ok(Performed::Done(_, checked)) => checked.err().map(|failure| failure.to_string()),
                _ => panic!("the pause is written"),
            }
        };
        drop(done(&operator, &pause(Sample::ORDERS)).await);
        aws.on_call(fails);
        let failures: [Option<String>; 2] =
            tokio::join!(performed(&operator, &first), performed(&other, &second)).into();
        let words = "this is written, but replaced another operator's edit, which could not be restored: ";
        let said = failures.iter().flatten().filter(|failure| failure.starts_with(words));
        assert_eq!(said.count(), 1, "{failures:?}");
    }

    #[tokio::test]
    async fn an_edit_stands_even_if_the_edit_that_it_replaced_cannot_be_written_again() {
        let (aws, operator) = sample();
        let pause = pause(Sample::ORDERS);
        let plan = pause.plan(&operator).await.unwrap();
        let text = r#"{"v":1,"pauses":[]}"#;
        assert!(operator.account.aws.put_parameter(Sample::PAUSES, text, true).await.unwrap().is_some());
        let (account, mut writes) = (aws.clone(), 0);
        aws.on_call(move |call: Call<'_>| {
            writes += u32::from(call.action == "ssm:PutParameter");
            match (call.action, writes) {
                // Another operator writes between our read and our write.
                ("ssm:PutParameter", 1) => {
                    let state = &mut *account.state();
                    let versions = &mut state.parameters.get_mut(Sample::PAUSES).unwrap().versions;
                    let last = versions.last().unwrap().clone();
                    versions.push(ParameterVersion { number: last.number + 1, ..last });
                    None
                }
                ("ssm:PutParameter", _) => Some(Fault::CallFails),
                _ => None,
            }
        });
        let Ok(Performed::Done(_, Err(failure))) = pause.perform(&operator, &plan).await else {
            panic!("the pause is written")
        };
        let failure = failure.to_string();
        assert!(failure.starts_with(&format!("this is written, but {NOT_RESTORED}: ssm:Put")), "{failure}");
        assert_eq!(listed(&operator).await, [1, 0]);
    }

    #[tokio::test]
    async fn replaced_edit_is_restored_even_if_ssm_refuses_to_write_it_at_first() {
        let (aws, operator) = sample();
        let pause = pause(Sample::ORDERS);
        let plan = pause.plan(&operator).await.unwrap();
        let text = r#"{"v":1,"pauses":[]}"#;
        assert!(operator.account.aws.put_parameter(Sample::PAUSES, text, true).await.unwrap().is_some());
        let (account, mut writes, from) = (aws.clone(), 0, aws.time().as_secs());
        let other = json!({"target": function_arn("x"), "from": from, "until": null, "spread": 1_800});
        let other = json!({"v": 1, "pauses": [other]}).to_string();
        aws.on_call(move |call: Call<'_>| {
            let state = &mut *account.state();
            let parameter = state.parameters.get_mut(Sample::PAUSES).unwrap();
            writes += u32::from(call.action == "ssm:PutParameter");
            match (call.action, writes) {
                ("ssm:PutParameter", 1) => {
                    let last = parameter.versions.last().unwrap().clone();
                    let number = last.number + 1;
                    parameter.versions.push(ParameterVersion { number, text: other.clone(), ..last });
                }
                ("ssm:PutParameter", 2) => parameter.refuses = 1,
                _ => {}
            }
            None
        });
        let Ok(Performed::Done(_, Ok(()))) = pause.perform(&operator, &plan).await else {
            panic!("the pause is not written")
        };
        assert_eq!(listed(&operator).await, [2, 0]);
    }

    /// In a full parameter, each new entry replaces the oldest past pauses.
    #[tokio::test]
    async fn full_history_leaves_room_for_pauses_and_requests() {
        const SEVEN: usize = 7;
        let (aws, operator) = sample();
        let now = aws.time().as_secs();
        let ended = |n: u64| {
            let from = now - 6_000 * (n + 1);
            json!({"target": function_arn("x"), "from": from, "until": from + 3_600, "spread": 1_800})
                .to_string()
        };
        let mut left: Vec<String> = (0..200).map(ended).collect();
        while left.iter().map(|pause| pause.len() + 1).sum::<usize>() > 4_060 {
            left.pop();
        }
        let text = format!(r#"{{"v":1,"pauses":[{}]}}"#, left.join(","));
        assert!(operator.account.aws.put_parameter(Sample::PAUSES, &text, true).await.unwrap().is_some());
        let full = Pauses::read(&text).unwrap();
        assert!(nearly_full(&full).is_some(), "{text}");

        // With a message that the handler has not received, the plan for a request is not empty.
        aws.queue(Sample::RETRY_QUEUE).send(aws.time(), Duration::ZERO, NewMessage::default());
        let paused = serde_json::to_value(done(&operator, &pause(Sample::ORDERS)).await).unwrap();
        assert_ne!(paused["forgotten"], Value::Array(Vec::new()));
        for n in 0..SEVEN {
            let function = Some(publish(&aws, &format!("retry-{n}")).parse().unwrap());
            drop(done(&operator, &RequestEvents { function, ..request() }).await);
        }
        assert_eq!(listed(&operator).await, [1, SEVEN]);
    }

    /// If two operators resume a function at the same time, at most one of them succeeds.
    #[tokio::test]
    async fn one_of_two_operators_resumes_a_function() {
        let (aws, operator) = sample();
        let other = another(&aws, &operator);
        let has_resumed = async |operator: &Operator, spread: u64| {
            let spread = Some(Duration::from_secs(spread));
            let resume = ResumeRetries { spread, ..resume(Sample::ORDERS) };
            let Ok(plan) = resume.plan(operator).await else { panic!("the pause is readable") };
            plan.question().is_some()
                && matches!(resume.perform(operator, &plan).await, Ok(Performed::Done(..)))
        };
        let mut resumed = 0;
        for calls in 0..30 {
            drop(done(&operator, &pause(Sample::ORDERS)).await);
            let (first, second) = tokio::join!(has_resumed(&operator, 60), async {
                for _ in 0..calls {
                    tokio::task::yield_now().await;
                }
                has_resumed(&other, 120).await
            });
            assert!(!(first && second), "{calls} calls later");
            assert_eq!(listed(&operator).await, [0, 0], "{calls} calls later");
            resumed += u32::from(first || second);
            aws.advance(Duration::from_secs(60));
        }
        // If the second operator overwrites the first one's edit, and restores it only after the first one has
        // checked, both edits are refused.
        assert!(resumed >= 29, "{resumed}");
    }

    /// Two operators concurrently pause, and then resume, different aliases of one function.
    #[tokio::test]
    async fn pauses_of_two_operators_at_once_are_both_kept() {
        let (aws, operator) = sample();
        let other = another(&aws, &operator);
        let [first, second] = ["first", "second"].map(|alias| publish(&aws, alias));
        for calls in 0..30 {
            let later = async || {
                for _ in 0..calls {
                    tokio::task::yield_now().await;
                }
            };
            tokio::join!(async { drop(done(&operator, &pause(&first)).await) }, async {
                later().await;
                drop(done(&other, &pause(&second)).await);
            });
            assert_eq!(listed(&operator).await, [2, 0], "{calls} calls later");
            tokio::join!(async { drop(done(&operator, &resume(&first)).await) }, async {
                later().await;
                drop(done(&other, &resume(&second)).await);
            });
            assert_eq!(listed(&operator).await, [0, 0], "{calls} calls later");
        }
    }
}
