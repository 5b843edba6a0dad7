//! Writing an edit of the pauses so that no other operator's edit is lost.

use std::time::Duration;

use aws_sdk_ssm::types::ParameterType;
use comeback_engine::{EditError, Pauses};

use crate::operate::account::{Account, Failure, Or as _};
use crate::operate::pauses::{parsed, read_parameter};
use crate::operate::session::Interrupt;

/// How long after a write to check whether another write replaced it.
const SETTLE: Duration = Duration::from_secs(2);

/// The text of an earlier version. SSM keeps a hundred.
async fn read_version(account: &Account, name: &str, version: i64) -> Result<String, Failure> {
    let mut pages = account.ssm.get_parameter_history().name(name).into_paginator().send();
    while let Some(page) = pages.next().await {
        let page = page.or_failure("ssm:GetParameterHistory", name)?;
        if let Some(earlier) = page.parameters().iter().find(|earlier| earlier.version() == version) {
            return Ok(earlier.value().unwrap_or_default().to_owned());
        }
    }
    Err(Failure::CouldNot(format!(
        "parameter {name} has lost its version {version}, which another operator wrote: see pause --list, and ask them"
    )))
}

/// Makes an edit, and checks that it stays. Gives the pauses that hold it.
pub(crate) async fn edit(
    account: &Account,
    name: &str,
    edit: &dyn Edit,
    interrupt: &Interrupt,
) -> Result<Pauses, Failure> {
    let mut writing = Writing::new(edit);
    let mut request = Request::Read;
    loop {
        let answer = match request {
            Request::Done(pauses) => return Ok(pauses),
            Request::Read => {
                let (pauses, version) = read_parameter(account, name).await?;
                Answer::Read(pauses, version)
            }
            Request::ReadVersion(version) => {
                Answer::ReadVersion(parsed(name, &read_version(account, name, version).await?)?)
            }
            Request::Write { pauses, is_new } => write(account, name, &pauses, is_new).await?,
            Request::Settle => {
                tokio::select! {
                    () = tokio::time::sleep(SETTLE) => Answer::Settled,
                    () = interrupt.raised() => {
                        let what = "the pauses were written, and nobody has looked whether they stay; see pause --list";
                        return Err(Failure::Interrupted(what.into()));
                    }
                }
            }
        };
        request = writing.next(answer)?;
    }
}

/// SSM cannot compare before it sets, but it does not create what is there.
async fn write(account: &Account, name: &str, pauses: &Pauses, is_new: bool) -> Result<Answer, Failure> {
    let call = account.ssm.put_parameter().name(name).r#type(ParameterType::String).value(pauses.write());
    match call.overwrite(!is_new).send().await {
        Err(error)
            if error.as_service_error().is_some_and(|error| {
                error.is_too_many_updates() || (is_new && error.is_parameter_already_exists())
            }) =>
        {
            Ok(Answer::NotWritten)
        }
        answer => Ok(Answer::Written(answer.or_failure("ssm:PutParameter", name)?.version())),
    }
}

/// Writes of an edit before it is given up.
const WRITES: u32 = 8;

pub(crate) trait Edit {
    /// The pauses with the change made.
    fn make(&self, pauses: &Pauses) -> Result<Pauses, EditError>;
    fn is_in(&self, pauses: &Pauses) -> bool;
}

/// Writes an edit so that neither it nor another operator's is lost.
///
/// Every write of SSM's replaces the whole text and has the next version. So a write whose version is not the one after
/// what was read has replaced somebody's: the replaced version is read, and written again with our edit. A write that
/// replaced ours is repaired by its writer in the same way, and by us, who look again after a while. Two operators at once
/// so lose neither's edit, however their calls interleave. More than two may have to try again.
pub(crate) struct Writing<'e> {
    edit: &'e dyn Edit,
    /// The version that the next write follows, as far as we know.
    version: i64,
    writes: u32,
    /// Our edit came too late: what it replaced is being restored.
    refused: Option<EditError>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    Read,
    ReadVersion(i64),
    /// Write the text; create the parameter if it is new.
    Write {
        pauses: Pauses,
        is_new: bool,
    },
    Settle,
    /// The edit is there.
    Done(Pauses),
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The text, and its version; 0 if there is no parameter.
    Read(Pauses, i64),
    ReadVersion(Pauses),
    Written(i64),
    /// The parameter was created meanwhile, or somebody else is writing it.
    NotWritten,
    Settled,
}

impl<'e> Writing<'e> {
    /// The first request is [`Request::Read`].
    pub(crate) fn new(edit: &'e dyn Edit) -> Self {
        Self { edit, version: 0, writes: 0, refused: None }
    }

    pub(crate) fn next(&mut self, answer: Answer) -> Result<Request, Failure> {
        match answer {
            Answer::Read(pauses, version) => {
                if self.writes > 0 && self.edit.is_in(&pauses) {
                    return Ok(Request::Done(pauses));
                }
                self.version = version;
                let edited = self.edit.make(&pauses)?;
                self.write(edited)
            }
            Answer::ReadVersion(replaced) => {
                let edited = if self.refused.is_some() || self.edit.is_in(&replaced) {
                    replaced
                } else {
                    self.edit.make(&replaced).unwrap_or_else(|refused| {
                        self.refused = Some(refused);
                        replaced
                    })
                };
                self.write(edited)
            }
            // A parameter that somebody has deleted begins anew.
            Answer::Written(version) if version == self.version + 1 || version <= self.version => {
                match self.refused.take() {
                    Some(refused) => Err(refused.into()),
                    None => Ok(Request::Settle),
                }
            }
            Answer::Written(version) => {
                self.version = version;
                Ok(Request::ReadVersion(version - 1))
            }
            Answer::NotWritten | Answer::Settled => Ok(Request::Read),
        }
    }

    fn write(&mut self, pauses: Pauses) -> Result<Request, Failure> {
        if self.writes == WRITES {
            return Err(Failure::CouldNot(format!(
                "other operators keep writing the pauses, and {WRITES} writes of ours did not stay: see pause --list, and try again"
            )));
        }
        can_be_read_back(&pauses)?;
        self.writes += 1;
        Ok(Request::Write { pauses, is_new: self.version == 0 })
    }
}

/// A text that the handler does not understand would end every pause.
fn can_be_read_back(pauses: &Pauses) -> Result<(), Failure> {
    let text = pauses.write();
    match Pauses::read(&text) {
        Ok(read) if read == *pauses => Ok(()),
        Ok(_) => Err(Failure::CouldNot(format!(
            "nothing was written: the handler would read other pauses in {text}"
        ))),
        Err(garbled) => Err(Failure::CouldNot(format!("nothing was written: in {text}, {garbled}"))),
    }
}

#[cfg(test)]
mod tests {
    use comeback_engine::{Concurrency, Pause, PauseTarget, Timestamp};
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);

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

    impl Edit for Of {
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

    /// SSM's parameter: its versions, of which the last is the text.
    #[derive(Default)]
    struct Parameter(Vec<Pauses>);

    impl Parameter {
        fn last(&self) -> Pauses {
            self.0.last().cloned().unwrap_or_default()
        }

        fn version(&self) -> i64 {
            i64::try_from(self.0.len()).unwrap()
        }

        fn answer(&mut self, request: Request) -> Answer {
            match request {
                Request::Read => Answer::Read(self.last(), self.version()),
                Request::ReadVersion(version) => {
                    Answer::ReadVersion(self.0[usize::try_from(version).unwrap() - 1].clone())
                }
                Request::Write { is_new: true, .. } if !self.0.is_empty() => Answer::NotWritten,
                Request::Write { pauses, .. } => {
                    self.0.push(pauses);
                    Answer::Written(self.version())
                }
                Request::Settle => Answer::Settled,
                Request::Done(_) => unreachable!("nothing is asked any more"),
            }
        }
    }

    /// Lets each writer make one request in turn, as `turns` says, and then all of them to their ends.
    fn run(parameter: &mut Parameter, edits: &[Of], turns: &[usize]) -> Vec<Option<Failure>> {
        let mut writers: Vec<_> = edits.iter().map(|edit| (Writing::new(edit), Ok(Request::Read))).collect();
        let to_the_end = (0..1_000).map(|turn| turn % edits.len());
        for turn in turns.iter().copied().chain(to_the_end) {
            let (writing, request) = &mut writers[turn];
            match request.clone() {
                Err(_) | Ok(Request::Done(_)) => {}
                Ok(asked) => *request = writing.next(parameter.answer(asked)),
            }
        }
        writers.into_iter().map(|(_, ended)| ended.err()).collect()
    }

    #[test]
    fn an_edit_alone_is_read_written_and_looked_at() {
        let (mut parameter, edit) = (Parameter::default(), Of::function("orders", true));
        let mut writing = Writing::new(&edit);
        let (mut request, mut asked) = (Request::Read, Vec::new());
        while !matches!(request, Request::Done(_)) {
            asked.push(request.clone());
            request = writing.next(parameter.answer(request)).unwrap();
        }
        let written = Request::Write { pauses: parameter.last(), is_new: true };
        assert_eq!(asked, [Request::Read, written, Request::Settle, Request::Read]);
        assert_eq!(parameter.0.len(), 1);
    }

    #[test]
    fn a_refused_edit_writes_nothing() {
        let mut parameter = Parameter::default();
        let twice = [Of::function("orders", true), Of::function("orders", true)];
        let ended = run(&mut parameter, &twice, &[0; 10]);
        assert!(ended[0].is_none() && matches!(ended[1], Some(Failure::Refused(_))), "{ended:?}");
        assert_eq!(parameter.0.len(), 1);
    }

    #[test]
    fn what_would_not_be_read_back_is_not_written() {
        struct HalfASecond;
        impl Edit for HalfASecond {
            fn make(&self, _: &Pauses) -> Result<Pauses, EditError> {
                let opened = Of::function("orders", true).make(&Pauses::default())?;
                let pause = opened.iter().next().unwrap().clone();
                let from = Timestamp::from_millis(NOW.as_millis() + 500);
                Pauses::default().open(Pause { from, ..pause }, NOW)
            }

            fn is_in(&self, _: &Pauses) -> bool {
                false
            }
        }
        let refused = Writing::new(&HalfASecond).next(Answer::Read(Pauses::default(), 1)).unwrap_err();
        assert!(
            refused.to_string().starts_with("nothing was written: the handler would read other"),
            "{refused}"
        );
    }

    #[test]
    fn an_edit_that_never_stays_is_given_up() {
        let (edit, mut writes) = (Of::function("orders", true), 0);
        let mut writing = Writing::new(&edit);
        let mut request = Ok(Request::Read);
        while let Ok(asked) = request {
            writes += u32::from(matches!(asked, Request::Write { .. }));
            request = writing.next(match asked {
                Request::Read | Request::ReadVersion(_) => Answer::Read(Pauses::default(), 1),
                Request::Write { .. } => Answer::Written(2),
                _ => Answer::Settled,
            });
        }
        assert_eq!(writes, WRITES);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn two_operators_at_once_lose_neithers_edit(
            turns in proptest::collection::vec(0_usize..2, 0..24), exists in any::<bool>(), resumes in any::<bool>(),
        ) {
            let mut parameter = Parameter::default();
            if exists || resumes {
                parameter.0.push(Of::function("refunds", true).make(&Pauses::default()).unwrap());
            }
            let second = if resumes { Of::function("refunds", false) } else { Of::function("invoices", true) };
            let edits = [Of::function("orders", true), second];
            prop_assert_eq!(run(&mut parameter, &edits, &turns), [None, None]);
            prop_assert!(edits.iter().all(|edit| edit.is_in(&parameter.last())), "{:?}", parameter.last());
        }

        /// Of two pauses of one function the first counts, and the other operator is told.
        #[test]
        fn two_operators_who_pause_one_function_leave_one_pause(turns in proptest::collection::vec(0_usize..2, 0..24)) {
            let mut parameter = Parameter::default();
            parameter.0.push(Pauses::default());
            let edits = [Of::function("orders", true), Of::function("orders", true)];
            run(&mut parameter, &edits, &turns);
            prop_assert_eq!(parameter.last().iter().count(), 1);
        }
    }
}
