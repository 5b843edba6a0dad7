//! The current state of a function's pauses, which the handler's log does not show.

use std::time::Duration;

use comeback_engine::{HOLD, Pause, Pauses, Timestamp};
use serde::Serialize;

/// The current state of a function's pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum InForce {
    /// The function is paused.
    Paused {
        /// The planned end, or `None` if the pause lasts until an operator resumes the function.
        until: Option<Timestamp>,
    },
    /// The function is not paused.
    NotPaused {
        /// The time by which all events held by known pauses are due again, or `None` if no known pause has an end.
        back_by: Option<Timestamp>,
    },
}

impl InForce {
    /// The state of a function's pauses at `now`. The handler can take up to `noticed` to notice the end of a pause.
    pub fn of(pauses: &Pauses, function_arn: &str, noticed: Duration, now: Timestamp) -> Self {
        let all = || pauses.of_function(function_arn);
        // A pause without a planned end outlasts all others.
        let last = all()
            .filter(|pause| pause.is_active(now))
            .max_by_key(|pause| (pause.until.is_none(), pause.until));
        let back_by = |pause: &Pause| Some(pause.until?.saturating_add(pause.spread.max(noticed + HOLD)));
        match last {
            Some(pause) => Self::Paused { until: pause.until },
            None => Self::NotPaused { back_by: all().filter_map(back_by).max() },
        }
    }

    /// Returns true if a pause holds a retry that is due at `due` (`None` if unknown).
    pub fn holds(self, due: Option<Timestamp>) -> bool {
        match self {
            Self::Paused { until } => due.zip(until).is_none_or(|(due, until)| due < until),
            Self::NotPaused { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_holds_until_it_ends_and_brings_back_over_its_spread() {
        let at = Timestamp::from_secs;
        let orders = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
        let pauses = |all: &[(&str, u64, Option<u64>, u64)]| {
            let pause = |(target, from, until, spread): &(&str, u64, Option<u64>, u64)| {
                let until = until.map_or_else(|| "null".to_owned(), |until| until.to_string());
                format!(r#"{{"target":"{target}","from":{from},"until":{until},"spread":{spread}}}"#)
            };
            let all: Vec<String> = all.iter().map(pause).collect();
            Pauses::read(&format!(r#"{{"v":1,"pauses":[{}]}}"#, all.join(","))).unwrap()
        };
        let in_force = |all: &[(&str, u64, Option<u64>, u64)]| {
            InForce::of(&pauses(all), &format!("{orders}:live"), Duration::from_secs(38), at(1_000))
        };
        let until = |until: Option<u64>| InForce::Paused { until: until.map(at) };
        let back_by = |back_by: Option<u64>| InForce::NotPaused { back_by: back_by.map(at) };
        assert_eq!(in_force(&[]), back_by(None));
        assert_eq!(
            in_force(&[(orders, 900, Some(2_000), 0), ("*", 950, Some(1_500), 0)]),
            until(Some(2_000))
        );
        assert_eq!(in_force(&[(orders, 900, Some(2_000), 0), ("*", 950, None, 0)]), until(None));
        // The handler checks a held event every 1,344 s.
        assert_eq!(in_force(&[(orders, 500, Some(900), 60)]), back_by(Some(900 + 38 + 1_344)));
        assert_eq!(in_force(&[(orders, 500, Some(900), 3_600)]), back_by(Some(4_500)));
        let holds =
            |in_force: InForce| [Some(1_999), Some(2_000), None].map(|due| in_force.holds(due.map(at)));
        assert_eq!(holds(until(Some(2_000))), [true, false, true]);
        assert_eq!((holds(until(None)), holds(back_by(None))), ([true; 3], [false; 3]));
    }
}
