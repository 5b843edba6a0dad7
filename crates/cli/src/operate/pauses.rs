//! The pauses of a deployment: a text in an SSM parameter, which is edited so that no other operator's edit is lost.

pub(crate) mod edits;
pub(crate) mod history;
pub(crate) mod in_force;
pub(crate) mod requests;

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_ssm::types::ParameterType;
use comeback_engine::{
    FunctionPattern, GarbledPauses, LONGEST_PAUSES, Pause, PauseTarget, Pauses, Timestamp, TooLarge,
    longest_between_reads, short_name,
};
use serde::Serialize;

use crate::account::{Account, Failure, Or as _};
use crate::operate::deployment::Deployment;
use crate::operate::function::{FunctionName, is_same_function};
use crate::operate::session::{Interrupt, Session};
use crate::text::numbers::counted;

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

/// Names the way out, too: the version to put back. One of a later version of Comeback is not to be lost.
async fn unreadable(account: &Account, name: &str, garbled: &GarbledPauses) -> Failure {
    if let GarbledPauses::Newer(_) = garbled {
        return Failure::CouldNot(format!("parameter {name}: {garbled}; {NEWER_COMMAND}"));
    }
    let fix = match history::last_readable(account, name).await {
        Ok(Some(version)) => {
            let put = put_back(name, Some(version), &account.place.flags);
            format!("restore version {version}, the last readable one: {put}")
        }
        Ok(None) => {
            "none of its versions is readable; delete it, then pause again what must be paused".into()
        }
        Err(failure) => format!("the version to restore is unknown: {failure}"),
    };
    Failure::CouldNot(format!("parameter {name}: {garbled}; {fix}"))
}

pub(crate) const NEWER_COMMAND: &str = "a newer version of Comeback wrote it; use that version's command";

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

/// Bytes of the parameter from which on `status` and `doctor` warn.
const NEARLY_FULL: usize = LONGEST_PAUSES / 4 * 3;

/// How full the parameter is, if it is nearly full.
pub(crate) fn nearly_full(pauses: &Pauses) -> Option<String> {
    let bytes = pauses.write().len();
    (bytes >= NEARLY_FULL).then(|| format!("the parameter has {bytes} of at most {LONGEST_PAUSES} bytes"))
}

impl From<TooLarge> for Failure {
    fn from(error: TooLarge) -> Self {
        Self::Undone(format!("{error}: shorten the reasons, resume functions, or cancel retry requests"))
    }
}

/// What it means that ended pauses had to leave the full parameter; `None` if none had to.
pub(crate) fn forgotten_note(forgotten: &[Pause]) -> Option<String> {
    let last = forgotten.iter().filter_map(|pause| pause.until).max()?;
    let names: BTreeSet<String> =
        forgotten.iter().map(|pause| target_name(&pause.target.to_string()).to_owned()).collect();
    Some(format!(
        "the parameter was full, so {} of {} were dropped, the last of which ended at {last}; their time \
         counts towards MAX_AGE again",
        counted(forgotten.len() as u64, "ended pause", "ended pauses"),
        names.into_iter().collect::<Vec<_>>().join(", "),
    ))
}

/// Refuses what SSM takes for a reference to another parameter.
pub(crate) fn read_text(text: &str) -> Result<String, String> {
    if text.contains("{{") {
        return Err("must not contain {{, which SSM does not store".into());
    }
    Ok(text.to_owned())
}

/// `name`, `name:qualifier` or `every function`, by the target of a pause or a request.
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
    let longest = longest_between_reads(policies.stack().settings().maximum_concurrency);
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

/// The same for a new pause or retry request. Fails if the handler does not retry the function: a pause of it would hold nothing.
pub(crate) fn retried_target(
    deployment: &Deployment,
    function: Option<&FunctionName>,
) -> Result<PauseTarget, Failure> {
    let target = target(deployment, function)?;
    let Some(function) = function else { return Ok(target) };
    let arn = target.to_string();
    let is_allowed = deployment.target_functions().any(|entry| {
        // An entry with a qualifier is about a part of the function.
        function.qualifier.is_none() && is_same_function(entry, &arn)
            || entry.parse::<FunctionPattern>().is_ok_and(|entry| entry.allows(&arn))
    });
    if is_allowed {
        return Ok(target);
    }
    Err(Failure::CouldNot(format!(
        "TARGET_FUNCTIONS does not allow {arn}, so the handler does not retry it; check the name, or attach \
         the function"
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
                "handler {} reads no pauses; deploy the current template, or set its variable PAUSES to an \
                 SSM parameter's name and allow its role ssm:GetParameter on it",
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
            "version {version} of parameter {name}, which another operator wrote, is gone; see pause --list, \
             and ask them"
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
                let what = "the pauses were written, but could not be verified; see pause --list";
                Err(Failure::Interrupted(what.into()))
            }
        }
    }
}

/// Makes an edit, so that neither it nor another operator's is lost. `is_in` says whether pauses hold it. Returns the ended
/// pauses that had to leave the parameter.
///
/// Every write replaces the whole text and has the next version. So a write whose version is not the one after what was
/// read has replaced somebody's: the replaced version is read, and written again with our edit. A write that replaced ours
/// is repaired by its writer in the same way, and by us, who look again after a while. Two operators at once so lose
/// neither's edit, however their calls interleave. More than two may have to try again.
pub(crate) async fn edit(
    parameter: &impl Parameter,
    now: Timestamp,
    make: impl Fn(&Pauses) -> Result<Pauses, Failure>,
    is_in: impl Fn(&Pauses) -> bool,
) -> Result<Vec<Pause>, Failure> {
    let make = |pauses: &Pauses| -> Result<_, Failure> { Ok(make(pauses)?.fitted(now)?) };
    let mut writes = 0;
    // Our edit came too late: what it replaced is being restored.
    let mut refused = None;
    let mut forgotten = Vec::new();
    loop {
        let (pauses, mut version) = parameter.read().await?;
        if writes > 0 && is_in(&pauses) {
            return Ok(forgotten);
        }
        let (mut edited, left) = make(&pauses)?;
        forgotten.extend(left);
        loop {
            if writes == WRITES {
                return Err(Failure::CouldNot(format!(
                    "other operators keep changing the pauses, and overwrote ours {WRITES} times; see pause \
                     --list, and try again"
                )));
            }
            can_be_read_back(&edited)?;
            writes += 1;
            let Some(written) = parameter.write(&edited, version == 0).await? else { break };
            // A parameter that somebody has deleted begins anew, with a lower version.
            if written <= version + 1 {
                if let Some(refused) = refused.take() {
                    return Err(refused);
                }
                parameter.settle().await?;
                break;
            }
            version = written;
            let replaced = parameter.read_version(written - 1).await?;
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

/// A text that the handler does not understand would end every pause.
fn can_be_read_back(pauses: &Pauses) -> Result<(), Failure> {
    let text = pauses.write();
    if Pauses::read(&text).as_ref() == Ok(pauses) {
        return Ok(());
    }
    Err(Failure::CouldNot(format!("nothing was written, because the handler would misread {text}")))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::task::{Context, Waker};

    use futures_util::future::maybe_done;
    use proptest::prelude::*;
    use serde_json::json;
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
        fn make(&self, pauses: &Pauses) -> Result<Pauses, Failure> {
            if !self.opens {
                let later = NOW.saturating_add(Duration::from_secs(60));
                return Ok(edits::closed(pauses, &self.target, Duration::ZERO, later));
            }
            if edits::open_of(pauses, &self.target, NOW).next().is_some() {
                return Err(Failure::Undone("it is paused".into()));
            }
            let pause = Pause {
                target: self.target.clone(),
                from: NOW,
                until: None,
                spread: Duration::ZERO,
                by: None,
                why: None,
            };
            Ok(edits::with(pauses, &pause, NOW))
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

    #[tokio::test]
    async fn what_left_a_full_parameter_is_told() {
        let ended = (0..200).map(|n| {
            let (from, until) = (n * 6_000, n * 6_000 + 3_600);
            format!(r#"{{"target":"*","from":{from},"until":{until},"spread":60}}"#)
        });
        let text = format!(r#"{{"v":1,"pauses":[{}]}}"#, ended.collect::<Vec<_>>().join(","));
        let parameter = Versions::default();
        parameter.0.borrow_mut().push(Pauses::read(&text).unwrap());
        let now = Timestamp::from_secs(1_200_000);
        let of = Of::function("orders", true);
        let forgotten =
            edit(&parameter, now, |pauses| of.make(pauses), |pauses| of.is_in(pauses)).await.unwrap();
        let note = forgotten_note(&forgotten).unwrap();
        assert!(
            note.contains(
                " ended pauses of every function were dropped, the last of which ended at 1970-01-"
            ),
            "{note}"
        );
        assert!(of.is_in(&parameter.last()) && parameter.last().write().len() <= LONGEST_PAUSES);
        assert!(nearly_full(&parameter.last()).is_some() && nearly_full(&Pauses::default()).is_none());
        assert_eq!(forgotten_note(&[]), None);
    }

    #[test]
    fn text_that_ssm_would_not_store_is_refused() {
        assert!(read_text("deploy {{ssm:x}}").is_err() && read_text("deploy {x}").is_ok());
    }

    #[tokio::test]
    async fn a_document_of_a_newer_version_is_not_to_be_deleted() {
        let answer = json!({"Parameter": {"Value": r#"{"v":2,"pauses":[]}"#, "Version": 7}});
        let account = Account::answering(move |_, _| answer.clone()).await;
        assert_eq!(
            read_parameter(&account, "/pauses").await.unwrap_err().to_string(),
            "parameter /pauses: the pauses are unreadable: v is 2, but this version reads only 1; a newer \
             version of Comeback wrote it; use that version's command"
        );
    }

    #[test]
    fn a_refused_edit_writes_nothing() {
        let parameter = Versions::default();
        let twice = [Of::function("orders", true), Of::function("orders", true)];
        let ended = run(&parameter, &twice, &[0; 10]);
        assert_eq!(ended, [None, Some(Failure::Undone("it is paused".into()))]);
        assert_eq!(parameter.0.borrow().len(), 1);
    }

    #[tokio::test]
    async fn what_would_not_be_read_back_is_not_written() {
        let half_a_second = |pauses: &Pauses| {
            let opened = Of::function("orders", true).make(pauses)?;
            let pause = opened.iter().next().unwrap().clone();
            let from = Timestamp::from_millis(NOW.as_millis() + 500);
            Ok(edits::with(pauses, &Pause { from, ..pause }, NOW))
        };
        let refused = edit(&Versions::default(), NOW, half_a_second, |_| false).await.unwrap_err();
        assert!(
            refused.to_string().starts_with("nothing was written, because the handler would misread"),
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
