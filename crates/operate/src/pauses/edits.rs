//! Edits the pauses for `comeback pause` and `comeback resume`.

use std::time::Duration;

use comeback_engine::{LONGEST_PAUSE, LONGEST_SPREAD, Pause, PauseTarget, Pauses, Timestamp};

use crate::durations;
use crate::failure::Failure;
use crate::operator_line::flag;
use crate::pauses::{DEFAULT_SPREAD, read_text, target_name};

/// An operator's settings for a pause. `None` keeps an open pause's value, or gives a new pause the default.
#[derive(Clone, Debug, Default)]
pub struct PauseTerms {
    /// When the pause is to end. By default, a new pause lasts until an operator resumes the retries.
    pub end: Option<PauseEnd>,
    /// The time over which the held events are retried after the pause.
    pub spread: Option<Duration>,
    /// The reason for the pause, required for a new pause.
    pub why: Option<String>,
}

/// When a pause ends, unless an operator ends it earlier.
#[derive(Clone, Copy, Debug)]
pub enum PauseEnd {
    /// The pause ends at this time.
    At(Timestamp),
    /// The pause ends this long after the operator's confirmation.
    After(Duration),
}

impl PauseTerms {
    /// The flags to pass to `comeback pause` to set the end and the spread.
    pub fn flags(&self) -> Vec<String> {
        let end = self.end.map(|end| match end {
            PauseEnd::At(until) => flag("until", &until.to_string()),
            PauseEnd::After(length) => flag("for", &durations::flag(length)),
        });
        let spread = self.spread.map(|spread| flag("spread", &durations::flag(spread)));
        end.into_iter().chain(spread).collect()
    }

    /// Returns a copy of `open` with these terms. If `open` is `None`, returns a new pause, made by the operator `by`.
    pub fn pause(
        &self,
        target: &PauseTarget,
        open: Option<&Pause>,
        by: &str,
        now: Timestamp,
    ) -> Result<Pause, Failure> {
        let end = self.end.map(|end| match end {
            PauseEnd::At(end) => end.rounded_up_to_secs(),
            PauseEnd::After(length) => now.saturating_add(length).rounded_up_to_secs(),
        });
        let chosen = self.spread.map(|spread| Duration::from_secs(spread.as_secs()));
        let pause = match open {
            Some(open) => Pause {
                until: end.or(open.until),
                why: self.why.clone().or_else(|| open.why.clone()),
                ..open.clone()
            },
            None if self.why.is_none() => {
                let name = target.to_string();
                let name = target_name(&name);
                return Err(Failure::refused(format!("{name} is not paused; a new pause needs --reason")));
            }
            None => Pause {
                target: target.clone(),
                from: Timestamp::from_secs(now.as_secs()),
                until: end,
                spread: DEFAULT_SPREAD,
                by: Some(by.to_owned()),
                why: self.why.clone(),
            },
        };
        let chosen = chosen.or_else(|| open.and_then(chosen_spread));
        let spread = chosen.unwrap_or_else(|| default_spread(&pause, pause.until));
        let pause = Pause { spread, ..pause };
        check(&pause, now)?;
        Ok(pause)
    }
}

/// The length of the pause, but at most [`DEFAULT_SPREAD`].
fn default_spread(pause: &Pause, end: Option<Timestamp>) -> Duration {
    end.map_or(DEFAULT_SPREAD, |end| Duration::from_secs(end.since(pause.from).as_secs()).min(DEFAULT_SPREAD))
}

/// The pause's spread; `None` if it is the default.
fn chosen_spread(pause: &Pause) -> Option<Duration> {
    (pause.spread != default_spread(pause, pause.until)).then_some(pause.spread)
}

/// Returns the spread of a pause that an operator ends at `end` without giving a new spread.
pub(crate) fn spread_ended(pause: &Pause, end: Timestamp) -> Duration {
    chosen_spread(pause).unwrap_or_else(|| default_spread(pause, Some(end)))
}

/// Validates the reason for a pause.
///
/// # Errors
///
/// Fails if the text is empty or contains `{{`, which SSM refuses.
pub fn read_reason(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("must not be empty".into()) } else { read_text(text) }
}

/// Parses the length of a pause.
///
/// # Errors
///
/// Fails if the text is not a duration, or if the duration is 0.
pub fn read_length(text: &str) -> Result<Duration, String> {
    match durations::read(text)? {
        Duration::ZERO => Err("must be longer than 0".into()),
        length => Ok(length),
    }
}

/// Fails if the pause would end in the past, or not after its start. Also fails if the pause or its spread is longer
/// than 14 days.
fn check(pause: &Pause, now: Timestamp) -> Result<(), Failure> {
    check_spread(pause.spread)?;
    let from = pause.from.max(now);
    match pause.until {
        Some(until) if until <= from => Err(Failure::refused(format!(
            "the pause would end at {until}, not after its start at {from}; choose a later end"
        ))),
        // `from` is rounded up too, because an end relative to `now` was rounded up.
        Some(until) if until.since(from.rounded_up_to_secs()) > LONGEST_PAUSE => {
            Err(Failure::refused(format!(
                "the pause would end at {until}, more than 14 days after {from}, and SQS keeps no message \
                 longer; choose an earlier end"
            )))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_spread(spread: Duration) -> Result<(), Failure> {
    if spread <= LONGEST_SPREAD {
        return Ok(());
    }
    let seconds = spread.as_secs();
    Err(Failure::refused(format!("the spread is {seconds} s; it must be at most 1209600 s (14 days)")))
}

/// Returns the open pauses for a target. `comeback` creates at most one for each target.
pub(crate) fn open_of<'p>(
    pauses: &'p Pauses,
    target: &'p PauseTarget,
    now: Timestamp,
) -> impl Iterator<Item = &'p Pause> {
    pauses.iter().filter(move |pause| pause.target == *target && !pause.is_over(now))
}

/// Returns the pauses with `pause` in place of any open pause for the same target.
pub(crate) fn with(pauses: &Pauses, pause: &Pause, now: Timestamp) -> Pauses {
    let others = pauses.iter().filter(|other| other.target != pause.target || other.is_over(now));
    pauses.with(others.chain([pause]).cloned())
}

/// Ends the open pauses for `target` at `now`, rounded up to a second, or removes them if they have not started.
/// Returns the new pauses. A pause that has already ended keeps its own end and spread, because another operator may
/// have just ended it.
pub(crate) fn closed(pauses: &Pauses, target: &PauseTarget, spread: Duration, now: Timestamp) -> Pauses {
    // Rounded down, `end` could lie before the time when the pause last held an event.
    let end = now.rounded_up_to_secs();
    let close = |pause: &Pause| match pause {
        pause if pause.target != *target || pause.is_over(end) => Some(pause.clone()),
        pause => (pause.from < end).then(|| pause.ended(end, spread)),
    };
    pauses.with(pauses.iter().filter_map(close))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";

    fn at(second: u64) -> Timestamp {
        Timestamp::from_secs(1_700_000_000 + second)
    }

    fn pause(target: &str, from: u64, until: Option<u64>) -> Pause {
        Pause {
            target: target.parse().unwrap(),
            from: at(from),
            until: until.map(at),
            spread: DEFAULT_SPREAD,
            by: Some("ops".into()),
            why: Some("a bad deploy".into()),
        }
    }

    fn wanted(end: Option<PauseEnd>) -> PauseTerms {
        PauseTerms { end, why: Some("a bad deploy".into()), ..PauseTerms::default() }
    }

    fn orders() -> PauseTarget {
        ORDERS.parse().unwrap()
    }

    #[test]
    fn pause_that_another_operator_has_just_ended_keeps_its_spread() {
        let pauses = Pauses::default().with([pause(ORDERS, 0, Some(40))]);
        let half_a_second = Duration::from_millis(500);
        let closed = |second: u64| {
            let now = at(second).saturating_add(half_a_second);
            closed(&pauses, &orders(), Duration::from_secs(9), now).iter().next().unwrap().clone()
        };
        assert_eq!((closed(39).until, closed(39).spread), (Some(at(40)), DEFAULT_SPREAD));
        assert_eq!((closed(38).until, closed(38).spread), (Some(at(39)), Duration::from_secs(9)));
    }

    #[test]
    fn a_pause_that_makes_no_sense_is_refused() {
        let refused =
            |end, now| wanted(Some(end)).pause(&orders(), None, "ops", at(now)).unwrap_err().to_string();
        let ended = "the pause would end at 2023-11-14T22:13:30.000Z, not after its start at \
                     2023-11-14T22:13:30.000Z; choose a later end";
        assert_eq!(refused(PauseEnd::At(at(10)), 10), ended, "it has passed by the time of the answer");
        let fortnight = Duration::from_secs(14 * 86_400);
        assert!(wanted(Some(PauseEnd::After(fortnight))).pause(&orders(), None, "ops", at(10)).is_ok());
        let long = refused(PauseEnd::After(fortnight + Duration::from_secs(1)), 10);
        assert!(long.contains("more than 14 days after 2023-11-14T22:13:30.000Z"), "{long}");
        let spread = Some(Duration::from_secs(1_209_601));
        let wide = PauseTerms { spread, ..wanted(None) }.pause(&orders(), None, "ops", at(10)).unwrap_err();
        assert_eq!(wide.to_string(), "the spread is 1209601 s; it must be at most 1209600 s (14 days)");
        let unsaid = PauseTerms::default().pause(&orders(), None, "ops", at(10)).unwrap_err().to_string();
        assert_eq!(unsaid, "orders is not paused; a new pause needs --reason");
    }

    #[test]
    fn an_end_counts_from_the_answer() {
        let end = Some(PauseEnd::After(Duration::from_secs(60)));
        let until = |now| wanted(end).pause(&orders(), None, "ops", at(now)).unwrap().until;
        assert_eq!([until(10), until(70)], [Some(at(70)), Some(at(130))]);
    }

    #[test]
    fn an_open_pause_is_changed_and_keeps_the_rest() {
        let open = pause(ORDERS, 10, Some(50));
        let change = PauseTerms {
            end: Some(PauseEnd::At(at(90))),
            spread: Some(Duration::from_secs(7)),
            why: Some("late".into()),
        };
        let changed = change.pause(&orders(), Some(&open), "ben", at(30)).unwrap();
        let spread = Duration::from_secs(7);
        assert_eq!(changed, Pause { spread, why: Some("late".into()), ..pause(ORDERS, 10, Some(90)) });
        assert_eq!(PauseTerms::default().pause(&orders(), Some(&open), "ben", at(30)).unwrap(), open);
        let pauses = Pauses::default().with([pause("*", 5, None), pause(ORDERS, 0, Some(5)), open]);
        let expected =
            Pauses::default().with([pause("*", 5, None), pause(ORDERS, 0, Some(5)), changed.clone()]);
        assert_eq!(with(&pauses, &changed, at(30)), expected);
    }

    #[test]
    fn closed_pause_keeps_its_times() {
        let spread = Duration::from_secs(60);
        let open = Pauses::default().with([pause(ORDERS, 10, None), pause("*", 5, None)]);
        let now = Timestamp::from_millis(at(20).as_millis() + 1);
        let ended = Pause { spread, by: None, why: None, ..pause(ORDERS, 10, Some(21)) };
        let expected = Pauses::default().with([pause("*", 5, None), ended]);
        assert_eq!(closed(&open, &orders(), spread, now), expected, "rounded up, and the other goes on");
        let later = Pauses::default().with([pause(ORDERS, 60, None)]);
        assert_eq!(closed(&later, &orders(), spread, now), Pauses::default(), "it has not begun");
        let planned = Pauses::default().with([pause(ORDERS, 10, Some(1_000))]);
        let earlier = closed(&planned, &orders(), spread, at(30));
        assert_eq!(earlier.iter().next().unwrap().until, Some(at(30)), "before its planned end");
    }
}
