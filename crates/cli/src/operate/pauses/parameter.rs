//! The SSM parameter that holds the pauses, which is edited so that no other operator's edit is lost.

use std::time::Duration;

use aws_sdk_ssm::types::ParameterType;
use comeback_engine::{GarbledPauses, LONGEST_PAUSES, Pause, Pauses, Timestamp, TooLarge};

use crate::account::{Account, Failure, Or as _};
use crate::operate::deployment::{Deployment, aws};
use crate::operate::pauses::history;
use crate::operate::session::{Interrupt, Session};

/// Reads the pauses as the handler does: without a parameter nothing is paused. `None` if the handler reads no pauses.
pub(crate) async fn read_pauses(
    account: &Account,
    deployment: &Deployment,
) -> Result<Option<Pauses>, Failure> {
    let Some(name) = deployment.pauses() else { return Ok(None) };
    Ok(Some(read_parameter(account, name).await?.0))
}

/// The pauses in a parameter, and its version: 0 before the parameter exists.
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

/// Why the pauses are unreadable, and the fix: the version to put back. What a later version of Comeback wrote must not be
/// lost.
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
        Some(version) => {
            let get = format!(
                "ssm get-parameter --name {parameter}:{version} --query Parameter.Value --output text"
            );
            format!("\"$({})\"", aws(flags, get))
        }
        None => format!("'{}'", Pauses::default().write()),
    };
    aws(flags, format!("ssm put-parameter --name {parameter} --type String --overwrite --value {value}"))
}

fn parsed(name: &str, text: &str) -> Result<Pauses, Failure> {
    Pauses::read(text).map_err(|garbled| Failure::CouldNot(format!("parameter {name}: {garbled}")))
}

/// Size in bytes at which `status` and `doctor` begin to warn.
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

/// How long after a write to check whether another write replaced it.
const SETTLE: Duration = Duration::from_secs(2);
/// Writes of an edit at most.
const WRITES: u32 = 8;

/// Where the pauses are stored. It cannot compare and set, but it can create without overwriting.
pub(crate) trait Parameter {
    /// The pauses, and their version: 0 before the parameter exists.
    async fn read(&self) -> Result<(Pauses, i64), Failure>;

    async fn read_version(&self, version: i64) -> Result<Pauses, Failure>;

    /// Returns the version that was written; `None` if the parameter was created meanwhile, or somebody else is writing it.
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
/// Each write replaces the whole text and takes the next version. If that is not the version after the one read, the write
/// has replaced somebody's: the replaced version is read, and written again with our edit. A write that replaced ours
/// is repaired by its writer in the same way, and by us, who check again after a while. Two operators at once so lose
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

    use comeback_engine::PauseTarget;
    use futures_util::future::maybe_done;
    use proptest::prelude::*;
    use serde_json::json;
    use tokio::task::yield_now;

    use super::*;
    use crate::operate::pauses::{edits, forgotten_note};

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
    struct Edit {
        target: PauseTarget,
        opens: bool,
    }

    impl Edit {
        fn of(name: &str, opens: bool) -> Self {
            let arn = format!("arn:aws:lambda:eu-west-1:123456789012:function:{name}");
            Self { target: arn.parse().unwrap(), opens }
        }
    }

    impl Edit {
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

    /// A parameter of SSM's: its versions, the last of which counts, and the calls made. Each call waits for its turn.
    #[derive(Default)]
    struct Versions {
        texts: RefCell<Vec<Pauses>>,
        calls: RefCell<Vec<&'static str>>,
    }

    impl Versions {
        fn last(&self) -> Pauses {
            self.texts.borrow().last().cloned().unwrap_or_default()
        }

        async fn turn(&self, call: &'static str) -> i64 {
            yield_now().await;
            self.calls.borrow_mut().push(call);
            i64::try_from(self.texts.borrow().len()).unwrap()
        }
    }

    impl Parameter for Versions {
        async fn read(&self) -> Result<(Pauses, i64), Failure> {
            let version = self.turn("read").await;
            Ok((self.last(), version))
        }

        async fn read_version(&self, version: i64) -> Result<Pauses, Failure> {
            self.turn("read_version").await;
            Ok(self.texts.borrow()[usize::try_from(version).unwrap() - 1].clone())
        }

        async fn write(&self, pauses: &Pauses, is_new: bool) -> Result<Option<i64>, Failure> {
            let version = self.turn(if is_new { "create" } else { "write" }).await;
            if is_new && version > 0 {
                return Ok(None);
            }
            self.texts.borrow_mut().push(pauses.clone());
            Ok(Some(version + 1))
        }

        async fn settle(&self) -> Result<(), Failure> {
            self.turn("settle").await;
            Ok(())
        }
    }

    /// Lets each writer make one call in turn, as `turns` says, and then all of them to their ends.
    fn run(parameter: &Versions, edits: &[Edit], turns: &[usize]) -> Vec<Option<Failure>> {
        let writers = edits.iter().map(|edit| {
            let (make, is_in) =
                (move |pauses: &Pauses| edit.make(pauses), move |pauses: &Pauses| edit.is_in(pauses));
            Box::pin(maybe_done(super::edit(parameter, NOW, make, is_in)))
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
    fn an_edit_alone_is_written_once_and_checked() {
        let parameter = Versions::default();
        assert_eq!(run(&parameter, &[Edit::of("orders", true)], &[]), [None]);
        assert_eq!(*parameter.calls.borrow(), ["read", "create", "settle", "read"]);
        assert_eq!(parameter.texts.borrow().len(), 1);
    }

    #[tokio::test]
    async fn what_left_a_full_parameter_is_told() {
        let ended = (0..200).map(|n| {
            let (from, until) = (n * 6_000, n * 6_000 + 3_600);
            format!(r#"{{"target":"*","from":{from},"until":{until},"spread":60}}"#)
        });
        let text = format!(r#"{{"v":1,"pauses":[{}]}}"#, ended.collect::<Vec<_>>().join(","));
        let parameter = Versions::default();
        parameter.texts.borrow_mut().push(Pauses::read(&text).unwrap());
        let now = Timestamp::from_secs(1_200_000);
        let pausing = Edit::of("orders", true);
        let forgotten = edit(&parameter, now, |pauses| pausing.make(pauses), |pauses| pausing.is_in(pauses))
            .await
            .unwrap();
        let note = forgotten_note(&forgotten).unwrap();
        assert!(
            note.contains(
                " ended pauses of every function were dropped, the last of which ended at 1970-01-"
            ),
            "{note}"
        );
        assert!(pausing.is_in(&parameter.last()) && parameter.last().write().len() <= LONGEST_PAUSES);
        assert!(nearly_full(&parameter.last()).is_some() && nearly_full(&Pauses::default()).is_none());
        assert_eq!(forgotten_note(&[]), None);
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
        let twice = [Edit::of("orders", true), Edit::of("orders", true)];
        let ended = run(&parameter, &twice, &[0; 10]);
        assert_eq!(ended, [None, Some(Failure::Undone("it is paused".into()))]);
        assert_eq!(parameter.texts.borrow().len(), 1);
    }

    #[tokio::test]
    async fn what_would_not_be_read_back_is_not_written() {
        let half_a_second = |pauses: &Pauses| {
            let opened = Edit::of("orders", true).make(pauses)?;
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
    async fn an_edit_that_never_stays_fails() {
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
        let (parameter, pausing) = (Forgetful(Cell::new(0)), Edit::of("orders", true));
        edit(&parameter, NOW, |pauses| pausing.make(pauses), |pauses| pausing.is_in(pauses))
            .await
            .unwrap_err();
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
                parameter.texts.borrow_mut().push(Edit::of("refunds", true).make(&Pauses::default()).unwrap());
            }
            let second = if resumes { Edit::of("refunds", false) } else { Edit::of("invoices", true) };
            let edits = [Edit::of("orders", true), second];
            prop_assert_eq!(run(&parameter, &edits, &turns), [None, None]);
            prop_assert!(edits.iter().all(|edit| edit.is_in(&parameter.last())), "{:?}", parameter.last());
        }

        /// Of two pauses of one function the first counts, and the other operator is told.
        #[test]
        fn two_operators_who_pause_one_function_leave_one_pause(turns in proptest::collection::vec(0_usize..2, 0..24)) {
            let parameter = Versions::default();
            parameter.texts.borrow_mut().push(Pauses::default());
            let edits = [Edit::of("orders", true), Edit::of("orders", true)];
            run(&parameter, &edits, &turns);
            prop_assert_eq!(parameter.last().iter().count(), 1);
        }
    }
}
