//! The pauses of a deployment: a text in an SSM parameter, which is edited so that no other operator's edit is lost.

pub(crate) mod concurrency;
pub(crate) mod history;
pub(crate) mod in_force;
pub(crate) mod orders;

use std::time::Duration;

use aws_sdk_ssm::types::ParameterType;
use comeback_engine::{
    Concurrency, EditError, FunctionPattern, GarbledPauses, Pause, PauseTarget, Pauses, Timestamp,
    longest_between_reads, qualifier_after,
};
use serde::Serialize;

use crate::account::{Account, Failure, Or as _};
use crate::operate::deployment::Deployment;
use crate::operate::function::{FunctionName, short_name};
use crate::operate::session::{Interrupt, Session};

/// What was due in a pause comes back over this time after its end, unless the operator says otherwise.
pub(crate) const DEFAULT_SPREAD: Duration = Duration::from_secs(1_800);

/// Reads the pauses as the handler does: without a parameter nothing is paused. `None` if the handler reads no pauses.
pub(crate) async fn read(account: &Account, deployment: &Deployment) -> Result<Option<Pauses>, Failure> {
    let Some(name) = deployment.pauses() else { return Ok(None) };
    Ok(Some(read_parameter(account, name).await?.0))
}

/// The pauses in a parameter, and its version; 0 if there is no parameter.
async fn read_parameter(account: &Account, name: &str) -> Result<(Pauses, i64), Failure> {
    match account.ssm.get_parameter().name(name).send().await {
        Err(error) if error.as_service_error().is_some_and(|error| error.is_parameter_not_found()) => {
            Ok((Pauses::default(), 0))
        }
        answer => {
            let answer = answer.or_failure("ssm:GetParameter", name)?;
            let parameter = answer.parameter();
            let text = parameter.and_then(|parameter| parameter.value()).unwrap_or_default();
            match Pauses::read(text) {
                Ok(pauses) => Ok((pauses, parameter.map_or(0, |parameter| parameter.version()))),
                Err(garbled) => Err(unreadable(account, name, &garbled).await),
            }
        }
    }
}

/// Names the way out, too: the version to put back.
async fn unreadable(account: &Account, name: &str, garbled: &GarbledPauses) -> Failure {
    let fix = match history::last_readable(account, name).await {
        Ok(Some(version)) => {
            let put = put_back(name, Some(version), &account.place.flags);
            format!("put back version {version}, the last that can be read: {put}")
        }
        Ok(None) => "none of its versions can be read: delete it, and pause again what must be paused".into(),
        Err(failure) => format!("the version to put back is not known: {failure}"),
    };
    Failure::CouldNot(format!("parameter {name}: {garbled}; {fix}"))
}

/// The command that writes a version of the pauses again, or none. `flags` lead to its account and region.
pub(crate) fn put_back(parameter: &str, version: Option<i64>, flags: &str) -> String {
    let value = match version {
        Some(version) => format!(
            "\"$(aws ssm get-parameter --name {parameter}:{version} --query Parameter.Value --output text{flags})\""
        ),
        None => format!("'{}'", Pauses::default().write()),
    };
    format!("aws ssm put-parameter --name {parameter} --type String --overwrite --value {value}{flags}")
}

fn parsed(name: &str, text: &str) -> Result<Pauses, Failure> {
    Pauses::read(text).map_err(|garbled| Failure::CouldNot(format!("parameter {name}: {garbled}")))
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        let text = error.to_string();
        // Whether a pause is open does not depend on the arguments. The text begins with its target.
        let target = match &error {
            EditError::AlreadyPaused(pause) => pause.target.to_string(),
            EditError::NotPaused(target) => target.to_string(),
            _ => return Self::Refused(text),
        };
        Self::Undone(text.replacen(&target, target_name(&target), 1))
    }
}

/// `name`, `name:qualifier` or `every function`, by the target of a pause or an order.
pub(crate) fn target_name(target: &str) -> &str {
    if target == "*" { "every function" } else { short_name(target) }
}

/// A pause that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct OpenPause {
    /// The ARN of its function, or `*` for every function.
    pub(crate) target: String,
    pub(crate) from: Timestamp,
    pub(crate) until: Option<Timestamp>,
    pub(crate) open_seconds: u64,
    /// What became due in it comes back over this time after its end.
    pub(crate) spread_seconds: u64,
    pub(crate) by: Option<String>,
    pub(crate) why: Option<String>,
    /// Its function's reserved concurrency is 0 meanwhile.
    pub(crate) is_hard: bool,
}

impl OpenPause {
    /// The pauses that are not over; `None` if the handler reads no pauses.
    pub(crate) async fn all(
        account: &Account,
        deployment: &Deployment,
        now: Timestamp,
    ) -> Result<Option<Vec<Self>>, Failure> {
        Ok(read(account, deployment).await?.map(|pauses| Self::all_of(&pauses, now)))
    }

    pub(crate) fn all_of(pauses: &Pauses, now: Timestamp) -> Vec<Self> {
        pauses.iter().filter(|pause| !pause.is_over(now)).map(|pause| Self::of(pause, now)).collect()
    }

    pub(crate) fn of(pause: &Pause, now: Timestamp) -> Self {
        Self {
            target: pause.target.to_string(),
            from: pause.from,
            until: pause.until,
            open_seconds: now.since(pause.from).as_secs(),
            spread_seconds: pause.spread.as_secs(),
            by: pause.by.clone(),
            why: pause.why.clone(),
            is_hard: pause.concurrency != Concurrency::Untouched,
        }
    }

    /// `name`, `name:qualifier` or `every function`.
    pub(crate) fn name(&self) -> &str {
        target_name(&self.target)
    }
}

#[cfg(test)]
impl OpenPause {
    pub(crate) fn sample(target: &str) -> Self {
        Self {
            target: target.into(),
            from: Timestamp::from_secs(0),
            until: None,
            open_seconds: 0,
            spread_seconds: 0,
            by: None,
            why: None,
            is_hard: false,
        }
    }
}

/// The functions of a pause, for people.
pub(crate) fn named(function: Option<&FunctionName>) -> String {
    function.map_or_else(|| "every function".to_owned(), ToString::to_string)
}

/// How long until the handler notices a change, in whole seconds; `None` if it does not start for its settings.
pub(crate) fn noticed_within(deployment: &Deployment) -> Option<Duration> {
    let policies = deployment.policies().ok()?;
    let longest = longest_between_reads(policies.stack().maximum_concurrency());
    Some(Duration::from_secs(longest.as_millis().div_ceil(1_000) as u64))
}

/// The target of a pause of one function, or of every function.
pub(crate) fn target(
    deployment: &Deployment,
    function: Option<&FunctionName>,
) -> Result<PauseTarget, Failure> {
    let Some(function) = function else { return Ok(PauseTarget::All) };
    let arn = deployment.arn_of(function).to_string();
    arn.parse().map_err(|problem| Failure::Refused(format!("{arn} {problem}")))
}

/// The same for a new pause or order. Fails if the handler does not retry the function: a pause of it would hold nothing.
pub(crate) fn retried_target(
    deployment: &Deployment,
    function: Option<&FunctionName>,
) -> Result<PauseTarget, Failure> {
    let target = target(deployment, function)?;
    let Some(function) = function else { return Ok(target) };
    let arn = target.to_string();
    let is_allowed = deployment.target_functions().any(|entry| {
        // An entry with a qualifier is about a part of the function.
        function.qualifier.is_none() && qualifier_after(entry, &arn).is_some()
            || entry.parse::<FunctionPattern>().is_ok_and(|entry| entry.allows(&arn))
    });
    if is_allowed {
        return Ok(target);
    }
    Err(Failure::CouldNot(format!(
        "no entry of TARGET_FUNCTIONS allows {arn}, so the handler does not retry it; check its name, or attach it"
    )))
}

/// How long after a write to check whether another write replaced it.
const SETTLE: Duration = Duration::from_secs(2);
/// Writes of an edit before it is given up.
const WRITES: u32 = 8;

/// Where the pauses are stored. It cannot compare and set, but it can create without overwriting.
pub(crate) trait Parameter {
    /// The pauses, and their version; 0 if there is no parameter.
    async fn read(&self) -> Result<(Pauses, i64), Failure>;

    async fn read_version(&self, version: i64) -> Result<Pauses, Failure>;

    /// Gives the version that was written; `None` if the parameter was created meanwhile, or somebody else is writing it.
    async fn write(&self, pauses: &Pauses, is_new: bool) -> Result<Option<i64>, Failure>;

    async fn settle(&self) -> Result<(), Failure>;
}

pub(crate) struct SsmParameter<'a> {
    pub(crate) account: &'a Account,
    name: &'a str,
    interrupt: &'a Interrupt,
}

impl<'a> SsmParameter<'a> {
    /// The parameter that the handler reads.
    pub(crate) fn of(session: &'a Session, deployment: &'a Deployment) -> Result<Self, Failure> {
        let name = deployment.pauses().ok_or_else(|| {
            Failure::Undone(format!(
                "the handler {} reads no pauses: deploy the current template, or set its variable PAUSES to the name of an \
                 SSM parameter and allow its role ssm:GetParameter on it",
                deployment.handler
            ))
        })?;
        Ok(Self { account: &session.account, name, interrupt: &session.interrupt })
    }
}

impl Parameter for SsmParameter<'_> {
    async fn read(&self) -> Result<(Pauses, i64), Failure> {
        read_parameter(self.account, self.name).await
    }

    /// SSM keeps a hundred.
    async fn read_version(&self, version: i64) -> Result<Pauses, Failure> {
        let name = self.name;
        let mut pages = self.account.ssm.get_parameter_history().name(name).into_paginator().send();
        while let Some(page) = pages.next().await {
            let page = page.or_failure("ssm:GetParameterHistory", name)?;
            if let Some(earlier) = page.parameters().iter().find(|earlier| earlier.version() == version) {
                return parsed(name, earlier.value().unwrap_or_default());
            }
        }
        Err(Failure::CouldNot(format!(
            "parameter {name} has lost its version {version}, which another operator wrote: see pause --list, and ask them"
        )))
    }

    async fn write(&self, pauses: &Pauses, is_new: bool) -> Result<Option<i64>, Failure> {
        let call = self.account.ssm.put_parameter().name(self.name).r#type(ParameterType::String);
        match call.value(pauses.write()).overwrite(!is_new).send().await {
            Err(error)
                if error.as_service_error().is_some_and(|error| {
                    error.is_too_many_updates() || (is_new && error.is_parameter_already_exists())
                }) =>
            {
                Ok(None)
            }
            answer => Ok(Some(answer.or_failure("ssm:PutParameter", self.name)?.version())),
        }
    }

    async fn settle(&self) -> Result<(), Failure> {
        tokio::select! {
            () = tokio::time::sleep(SETTLE) => Ok(()),
            () = self.interrupt.raised() => {
                let what = "the pauses were written, but the check that they stayed failed; see pause --list";
                Err(Failure::Interrupted(what.into()))
            }
        }
    }
}

/// Makes an edit, so that neither it nor another operator's is lost. `is_in` says whether pauses hold it.
///
/// Every write replaces the whole text and has the next version. So a write whose version is not the one after what was
/// read has replaced somebody's: the replaced version is read, and written again with our edit. A write that replaced ours
/// is repaired by its writer in the same way, and by us, who look again after a while. Two operators at once so lose
/// neither's edit, however their calls interleave. More than two may have to try again.
pub(crate) async fn edit(
    parameter: &impl Parameter,
    now: Timestamp,
    make: impl Fn(&Pauses) -> Result<Pauses, EditError>,
    is_in: impl Fn(&Pauses) -> bool,
) -> Result<(), Failure> {
    let make = |pauses: &Pauses| {
        let made = make(pauses)?.tidied(now);
        made.check_size().map(|()| made)
    };
    let mut writes = 0;
    // Our edit came too late: what it replaced is being restored.
    let mut refused = None;
    loop {
        let (pauses, mut version) = parameter.read().await?;
        if writes > 0 && is_in(&pauses) {
            return Ok(());
        }
        let mut edited = make(&pauses)?;
        loop {
            if writes == WRITES {
                return Err(Failure::CouldNot(format!(
                    "other operators keep writing the pauses, and {WRITES} writes of ours did not stay: see pause --list, and try again"
                )));
            }
            can_be_read_back(&edited)?;
            writes += 1;
            let Some(written) = parameter.write(&edited, version == 0).await? else { break };
            // A parameter that somebody has deleted begins anew, with a lower version.
            if written <= version + 1 {
                if let Some(refused) = refused.take() {
                    return Err(Failure::from(refused));
                }
                parameter.settle().await?;
                break;
            }
            version = written;
            let replaced = parameter.read_version(written - 1).await?;
            edited = if refused.is_some() || is_in(&replaced) {
                replaced
            } else {
                make(&replaced).unwrap_or_else(|error| {
                    refused = Some(error);
                    replaced
                })
            };
        }
    }
}

/// A text that the handler does not understand would end every pause.
fn can_be_read_back(pauses: &Pauses) -> Result<(), Failure> {
    let text = pauses.write();
    if Pauses::read(&text).as_ref() == Ok(pauses) {
        return Ok(());
    }
    Err(Failure::CouldNot(format!(
        "nothing was written: the handler would read other pauses, or none, in {text}"
    )))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::task::{Context, Waker};

    use futures_util::future::maybe_done;
    use proptest::prelude::*;
    use tokio::task::yield_now;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

    #[test]
    fn pauses_are_put_back_in_the_same_account() {
        let flags = " --region eu-west-1 --profile prod";
        for (version, calls) in [(Some(3), 2), (None, 1)] {
            let put = put_back("/comeback/pauses", version, flags);
            assert_eq!(put.matches("aws ssm ").count(), calls, "{put}");
            assert_eq!(put.matches(flags).count(), calls, "{put}");
        }
    }

    /// Pauses a function, or resumes it.
    struct Of {
        target: PauseTarget,
        opens: bool,
    }

    impl Of {
        fn function(name: &str, opens: bool) -> Self {
            let arn = format!("arn:aws:lambda:eu-west-1:123456789012:function:{name}");
            Self { target: arn.parse().unwrap(), opens }
        }
    }

    impl Of {
        fn make(&self, pauses: &Pauses) -> Result<Pauses, EditError> {
            if self.opens {
                let pause = Pause {
                    target: self.target.clone(),
                    from: NOW,
                    until: None,
                    spread: Duration::ZERO,
                    by: None,
                    why: None,
                    concurrency: Concurrency::Untouched,
                };
                pauses.open(pause, NOW)
            } else {
                pauses
                    .close(&self.target, Duration::ZERO, NOW.saturating_add(Duration::from_secs(60)))
                    .map(|it| it.0)
            }
        }

        fn is_in(&self, pauses: &Pauses) -> bool {
            pauses.iter().any(|pause| pause.target == self.target && pause.until.is_none()) == self.opens
        }
    }

    /// SSM's parameter: its versions, of which the last is the text, and the calls that were made. Each call waits for its
    /// turn.
    #[derive(Default)]
    struct Versions(RefCell<Vec<Pauses>>, RefCell<Vec<&'static str>>);

    impl Versions {
        fn last(&self) -> Pauses {
            self.0.borrow().last().cloned().unwrap_or_default()
        }

        async fn turn(&self, call: &'static str) -> i64 {
            yield_now().await;
            self.1.borrow_mut().push(call);
            i64::try_from(self.0.borrow().len()).unwrap()
        }
    }

    impl Parameter for Versions {
        async fn read(&self) -> Result<(Pauses, i64), Failure> {
            let version = self.turn("read").await;
            Ok((self.last(), version))
        }

        async fn read_version(&self, version: i64) -> Result<Pauses, Failure> {
            self.turn("read_version").await;
            Ok(self.0.borrow()[usize::try_from(version).unwrap() - 1].clone())
        }

        async fn write(&self, pauses: &Pauses, is_new: bool) -> Result<Option<i64>, Failure> {
            let version = self.turn(if is_new { "create" } else { "write" }).await;
            if is_new && version > 0 {
                return Ok(None);
            }
            self.0.borrow_mut().push(pauses.clone());
            Ok(Some(version + 1))
        }

        async fn settle(&self) -> Result<(), Failure> {
            self.turn("settle").await;
            Ok(())
        }
    }

    /// Lets each writer make one call in turn, as `turns` says, and then all of them to their ends.
    fn run(parameter: &Versions, edits: &[Of], turns: &[usize]) -> Vec<Option<Failure>> {
        let writers = edits.iter().map(|of| {
            let (make, is_in) =
                (move |pauses: &Pauses| of.make(pauses), move |pauses: &Pauses| of.is_in(pauses));
            Box::pin(maybe_done(edit(parameter, NOW, make, is_in)))
        });
        let mut writers: Vec<_> = writers.collect();
        let at_first = 0..edits.len();
        let to_the_end = (0..1_000).map(|turn| turn % edits.len());
        for turn in at_first.chain(turns.iter().copied()).chain(to_the_end) {
            let _ = writers[turn].as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        writers.iter_mut().map(|writer| writer.as_mut().take_output().expect("it ended").err()).collect()
    }

    #[test]
    fn an_edit_alone_is_read_written_and_looked_at() {
        let parameter = Versions::default();
        assert_eq!(run(&parameter, &[Of::function("orders", true)], &[]), [None]);
        assert_eq!(*parameter.1.borrow(), ["read", "create", "settle", "read"]);
        assert_eq!(parameter.0.borrow().len(), 1);
    }

    #[test]
    fn a_refused_edit_writes_nothing() {
        let parameter = Versions::default();
        let twice = [Of::function("orders", true), Of::function("orders", true)];
        let ended = run(&parameter, &twice, &[0; 10]);
        let paused = "orders has been paused since 2023-11-14T22:13:20.000Z: change that pause with pause --change, or end it with resume";
        assert_eq!(ended, [None, Some(Failure::Undone(paused.into()))]);
        assert_eq!(
            Failure::from(EditError::NotPaused(Box::new(PauseTarget::All))).to_string(),
            "every function is not paused: pauses are listed by pause --list"
        );
        assert_eq!(parameter.0.borrow().len(), 1);
    }

    #[tokio::test]
    async fn what_would_not_be_read_back_is_not_written() {
        let half_a_second = |pauses: &Pauses| {
            let opened = Of::function("orders", true).make(pauses)?;
            let pause = opened.iter().next().unwrap().clone();
            let from = Timestamp::from_millis(NOW.as_millis() + 500);
            pauses.open(Pause { from, ..pause }, NOW)
        };
        let refused = edit(&Versions::default(), NOW, half_a_second, |_| false).await.unwrap_err();
        assert!(
            refused.to_string().starts_with("nothing was written: the handler would read other"),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn an_edit_that_never_stays_is_given_up() {
        struct Forgetful(Cell<u32>);
        impl Parameter for Forgetful {
            async fn read(&self) -> Result<(Pauses, i64), Failure> {
                Ok((Pauses::default(), 1))
            }

            async fn read_version(&self, _: i64) -> Result<Pauses, Failure> {
                Ok(Pauses::default())
            }

            async fn write(&self, _: &Pauses, _: bool) -> Result<Option<i64>, Failure> {
                self.0.set(self.0.get() + 1);
                Ok(Some(2))
            }

            async fn settle(&self) -> Result<(), Failure> {
                Ok(())
            }
        }
        let (parameter, of) = (Forgetful(Cell::new(0)), Of::function("orders", true));
        edit(&parameter, NOW, |pauses| of.make(pauses), |pauses| of.is_in(pauses)).await.unwrap_err();
        assert_eq!(parameter.0.get(), WRITES);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn two_operators_at_once_lose_neithers_edit(
            turns in proptest::collection::vec(0_usize..2, 0..24), exists in any::<bool>(), resumes in any::<bool>(),
        ) {
            let parameter = Versions::default();
            if exists || resumes {
                parameter.0.borrow_mut().push(Of::function("refunds", true).make(&Pauses::default()).unwrap());
            }
            let second = if resumes { Of::function("refunds", false) } else { Of::function("invoices", true) };
            let edits = [Of::function("orders", true), second];
            prop_assert_eq!(run(&parameter, &edits, &turns), [None, None]);
            prop_assert!(edits.iter().all(|edit| edit.is_in(&parameter.last())), "{:?}", parameter.last());
        }

        /// Of two pauses of one function the first counts, and the other operator is told.
        #[test]
        fn two_operators_who_pause_one_function_leave_one_pause(turns in proptest::collection::vec(0_usize..2, 0..24)) {
            let parameter = Versions::default();
            parameter.0.borrow_mut().push(Pauses::default());
            let edits = [Of::function("orders", true), Of::function("orders", true)];
            run(&parameter, &edits, &turns);
            prop_assert_eq!(parameter.last().iter().count(), 1);
        }
    }
}
