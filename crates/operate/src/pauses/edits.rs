//! Edits the pauses for `comeback pause` and `comeback resume`.

use std::time::Duration;

use comeback_engine::{LONGEST_SPREAD, Pause, PauseTarget, Pauses, Timestamp};

use crate::durations;
use crate::failure::Failure;
use crate::pauses::{DEFAULT_SPREAD, read_text};

/// The length of the pause, but at most [`DEFAULT_SPREAD`].
pub(crate) fn default_spread(pause: &Pause, end: Option<Timestamp>) -> Duration {
    end.map_or(DEFAULT_SPREAD, |end| Duration::from_secs(end.since(pause.from).as_secs()).min(DEFAULT_SPREAD))
}

/// The pause's spread; `None` if it is the default.
pub(crate) fn chosen_spread(pause: &Pause) -> Option<Duration> {
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

/// Fails if the spread is longer than 14 days.
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
    fn changed_pause_replaces_the_open_one() {
        let others = [pause("*", 5, None), pause(ORDERS, 0, Some(5))];
        let changed = pause(ORDERS, 10, Some(90));
        let of = |orders: &Pause| Pauses::default().with(others.iter().chain([orders]).cloned());
        assert_eq!(with(&of(&pause(ORDERS, 10, Some(50))), &changed, at(30)), of(&changed));
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
