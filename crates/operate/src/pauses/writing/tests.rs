use std::time::Duration;

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

    /// One of two pauses of one function counts, whichever came first, and the other operator hears so.
    #[test]
    fn two_operators_who_pause_one_function_leave_one_pause(turns in proptest::collection::vec(0_usize..2, 0..24)) {
        let mut parameter = Parameter::default();
        parameter.0.push(Pauses::default());
        let edits = [Of::function("orders", true), Of::function("orders", true)];
        run(&mut parameter, &edits, &turns);
        prop_assert_eq!(parameter.last().iter().count(), 1);
    }
}
