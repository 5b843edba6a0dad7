//! The pauses that one handler environment has read, and the time of its next read.

use std::time::Duration;

use rand::RngExt;

use crate::account::CallFailure;
use crate::pauses::{GarbledPauses, Pause, Pauses};
use crate::policy::Policy;
use crate::report::PausesRead;
use crate::seed::generator;
use crate::time::Timestamp;
use crate::timing::{BETWEEN_READS_AT_MOST, between_reads};

/// Once a pause has been in effect for longer than this, the handler warns that it may have been forgotten.
pub const LONG_PAUSE: Duration = Duration::from_secs(86_400);

/// The pauses that a handler environment knows, and the time at which it reads them next.
#[derive(Clone, Debug)]
pub(crate) struct KnownPauses {
    /// Minimum time from a successful read of the pauses to the next read; `None` if `PAUSES` is not set.
    between_reads: Option<Duration>,
    known: Option<Pauses>,
    next_read: Option<Timestamp>,
    /// The number of failed reads since the last successful read.
    failures: u32,
}

impl KnownPauses {
    pub(crate) fn of(policy: &Policy) -> Self {
        let between_reads = Some(between_reads(policy.settings().maximum_concurrency));
        Self { between_reads, known: None, next_read: None, failures: 0 }
    }

    /// The state of a handler without `PAUSES`.
    pub(crate) fn none() -> Self {
        Self { between_reads: None, known: Some(Pauses::default()), next_read: None, failures: 0 }
    }

    /// The pauses as last read; `None` if no read has succeeded yet.
    pub(crate) const fn known(&self) -> Option<&Pauses> {
        self.known.as_ref()
    }

    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.between_reads.is_some() && self.next_read.is_none_or(|next| next <= now)
    }

    /// Records the result of reading the pauses; `answer` is `None` if the parameter does not exist.
    pub(crate) fn read(
        &mut self,
        answer: Result<Option<String>, CallFailure>,
        now: Timestamp,
        message_id: &str,
    ) -> PausesRead {
        let answer = answer.and_then(parsed);
        self.failures = if answer.is_ok() { 0 } else { self.failures.saturating_add(1) };
        let read = match answer {
            Ok(pauses) => {
                let is_long = |pause: &&Pause| pause.is_active(now) && now.since(pause.from) > LONG_PAUSE;
                let long = pauses.iter().filter(is_long).cloned().collect();
                let unreadable_requests = pauses.unreadable_requests(now).map(Into::into).collect();
                self.known = Some(pauses);
                PausesRead::Known { long, unreadable_requests }
            }
            Err(problem) if self.known.is_some() => PausesRead::AsBefore(problem),
            Err(problem) => PausesRead::Unknown(problem),
        };
        if self.known.is_some() {
            let wait = wait_after(self.failures, self.between_reads.unwrap_or_default());
            let more: f64 = generator(message_id, now.as_millis()).random_range(1.0..BETWEEN_READS_AT_MOST);
            self.next_read = Some(now.saturating_add(wait.mul_f64(more)));
        }
        read
    }
}

/// Returns the time until the next read of the pauses, given the number of failed reads in a row.
///
/// It is zero after the first failure. Otherwise, the environment would go on using old pauses, and could hide
/// messages that an operator has just made visible.
fn wait_after(failures: u32, between_reads: Duration) -> Duration {
    match failures {
        0 => between_reads,
        1 => Duration::ZERO,
        _ => between_reads / (1 << 7_u32.saturating_sub(failures)),
    }
}

fn parsed(text: Option<String>) -> Result<Pauses, CallFailure> {
    let Some(text) = text else { return Ok(Pauses::default()) };
    Pauses::read(&text).map_err(|garbled| {
        let remedy = match &garbled {
            GarbledPauses::Malformed(_) => {
                "run `comeback resume --all`, which puts back the last readable version"
            }
            GarbledPauses::Newer(_) => "deploy the version of Comeback that wrote them",
        };
        CallFailure { cause: garbled.to_string(), remedy: Some(remedy.into()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pauses::Pause;
    use crate::pauses::tests::{ORDERS, PAYMENTS, at, pause};
    use crate::settings::Settings;

    fn of(maximum_concurrency: u64) -> KnownPauses {
        KnownPauses::of(&Policy::new(Settings { maximum_concurrency, ..Settings::default() }).unwrap())
    }

    fn failure() -> CallFailure {
        CallFailure { cause: "throttled".into(), remedy: None }
    }

    fn text(pauses: &[Pause]) -> Option<String> {
        Some(Pauses::default().with(pauses.to_vec()).write())
    }

    /// Tenths of a second from `at(0)`, the time of the last read, until the next read is due.
    fn next_read(known: &KnownPauses) -> u64 {
        let tenth = |tenth| Timestamp::from_millis(at(0).as_millis() + 100 * tenth);
        (0..10_000).find(|&tenths| known.is_due(tenth(tenths))).expect("it reads again")
    }

    #[test]
    fn without_a_parameter_nothing_is_read_or_paused() {
        let none = KnownPauses::none();
        assert!(!none.is_due(at(0)) && none.known() == Some(&Pauses::default()));
    }

    #[test]
    fn reads_are_an_interval_or_a_quarter_more_apart() {
        for (environments, interval) in [(2, 300), (100, 300), (101, 303), (1_000, 3_000)] {
            let next: Vec<u64> = (0..200)
                .map(|message| {
                    let mut known = of(environments);
                    known.read(Ok(None), at(0), &format!("m-{message}"));
                    next_read(&known)
                })
                .collect();
            let (first, last) = (next.iter().min().unwrap(), next.iter().max().unwrap());
            assert!(*first >= interval && *last <= interval + interval / 4 + 1, "{first} to {last}");
            assert!(last - first > interval / 5, "environments drift apart: {first} to {last}");
        }
    }

    #[test]
    fn a_failure_leaves_what_is_known() {
        let mut known = of(10);
        known.read(Ok(text(&[pause(ORDERS, 0, None)])), at(0), "m-1");
        for answer in [Err(failure()), Ok(Some("garbage".into()))] {
            let PausesRead::AsBefore(problem) = known.read(answer.clone(), at(0), "m-1") else {
                panic!("{answer:?}")
            };
            assert_eq!(
                problem.remedy.is_some(),
                answer.is_ok(),
                "an operator can repair a garbled one: {problem:?}"
            );
            assert!(known.known().unwrap().of_function(ORDERS).next().is_some());
        }
        known.read(Ok(None), at(0), "m-1");
        assert_eq!(known.known(), Some(&Pauses::default()), "the parameter was deleted");
    }

    #[test]
    fn an_unreadable_text_names_its_remedy() {
        let remedy = |text: &str| parsed(Some(text.into())).unwrap_err().remedy.unwrap();
        assert!(remedy("garbage").contains("`comeback resume --all`"));
        assert_eq!(remedy(r#"{"v":2}"#), "deploy the version of Comeback that wrote them");
    }

    #[test]
    fn failed_reads_are_repeated_ever_later() {
        let mut known = of(10);
        known.read(Ok(None), at(0), "m-1");
        for least in [0, 9, 18, 37, 75, 150, 300, 300] {
            known.read(Err(failure()), at(0), "m-1");
            let next = next_read(&known);
            assert!((least..=least + least / 4 + 2).contains(&next), "{next} instead of {least} tenths");
        }
        known.read(Ok(None), at(0), "m-1");
        assert!(next_read(&known) >= 300);
        known.read(Err(failure()), at(0), "m-1");
        assert_eq!(next_read(&known), 0, "the failures before do not count");
    }

    #[test]
    fn each_batch_reads_until_one_read_succeeds() {
        let mut known = of(10);
        for answer in [Err(failure()), Ok(Some("{}".into()))] {
            assert!(matches!(known.read(answer, at(0), "m-1"), PausesRead::Unknown(_)));
            assert!(known.is_due(at(0)) && known.known().is_none());
        }
    }

    #[test]
    fn a_pause_that_is_open_for_over_a_day_is_named() {
        let day = 86_400;
        let all = [pause(ORDERS, 0, None), pause("*", 1, None), pause(PAYMENTS, 0, Some(day))];
        let long = |now| match of(10).read(Ok(text(&all)), at(now), "m-1") {
            PausesRead::Known { long, .. } => long,
            other => panic!("{other:?}"),
        };
        assert_eq!((long(day), long(day + 1)), (vec![], vec![all[0].clone()]));
    }
}
