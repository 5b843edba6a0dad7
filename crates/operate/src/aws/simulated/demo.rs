//! The deployment that `comeback ui --demo` shows: four functions, each with a defect, after three days of traffic.

use std::rc::Rc;
use std::time::Duration;

use comeback_timelapse::{Defect, Live, LiveFunction, TargetError};

use super::clock::Clock;
use super::running::Running;
use super::{Sample, SimulatedAws, function_arn};
use crate::account::Account;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
/// The age of the deployment when the demonstration starts.
const RUNS_SINCE: Duration = Duration::from_secs(3 * 24 * 3_600);

/// A demo function, its traffic, and a defect that can be switched on and off.
struct Player {
    name: &'static str,
    defect: Defect,
    /// A short description of the defect, such as `throttled`, for the bar at the top of each page.
    words: &'static str,
    /// Age of the function's defect when the demonstration starts.
    broken_for: Duration,
    events_per_hour: f64,
    payload: fn(u64) -> String,
}

const PLAYERS: [Player; 4] = [
    Player {
        name: Sample::ORDERS,
        defect: Defect::Down(TargetError::new("ConnectTimeout", "payments.internal:443 does not answer")),
        words: "down",
        broken_for: HOUR,
        events_per_hour: 120.0,
        payload: |n| format!(r#"{{"order":{n},"total":{}.50}}"#, 10 + n % 90),
    },
    Player {
        name: "thumbnails",
        defect: Defect::Throttled(2, Duration::from_secs(40)),
        words: "throttled",
        broken_for: HOUR.saturating_mul(3),
        events_per_hour: 150.0,
        payload: |n| format!(r#"{{"image":"uploads/{n}.png","width":320}}"#),
    },
    Player {
        name: "invoices",
        defect: Defect::Down(TargetError {
            error_type: "RetryAfter",
            error_message: "the ledger is closed",
            retry_after: Some(MINUTE.saturating_mul(45)),
        }),
        words: "asks for RetryAfter",
        broken_for: HOUR.saturating_mul(5),
        events_per_hour: 20.0,
        payload: |n| format!(r#"{{"invoice":"2026-{n:05}"}}"#),
    },
    Player {
        name: "emails",
        defect: Defect::Bug(NO_RECIPIENT, TargetError::new("ValidationError", "'to' must be a string")),
        words: "has a bug",
        broken_for: RUNS_SINCE,
        events_per_hour: 100.0,
        payload: |n| match n % 40 {
            13 => format!(r#"{{"mail":{n},{NO_RECIPIENT}}}"#),
            _ => format!(r#"{{"mail":{n},"to":"customer-{}@example.com"}}"#, n % 1_000),
        },
    },
];

const NO_RECIPIENT: &str = r#""to":null"#;
const POLICIES: &str = "emails NON_RETRYABLE_ERRORS=ValidationError";

/// A demo function and its current defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoFunction {
    /// The function's name.
    pub name: &'static str,
    /// The function's defect in a few words; `None` if the defect is fixed.
    pub defect: Option<&'static str>,
}

/// An account with the demo's deployment.
#[derive(Clone, Debug)]
pub struct Demo {
    aws: SimulatedAws,
    running: Rc<Running>,
}

impl Demo {
    /// Creates a simulated account on this clock. The same seed, initial time and calls always produce the same
    /// account.
    pub fn new(seed: u64, clock: Rc<dyn Clock>) -> Self {
        let now = clock.now();
        let began = now.before(RUNS_SINCE);
        let aws = Sample { is_attached: true, ..Sample::new(began) }.build();
        furnish(&aws);
        let functions = PLAYERS.iter().map(|player| LiveFunction {
            arn: function_arn(player.name),
            events_per_hour: player.events_per_hour,
            payload: player.payload,
            run_time: Duration::from_millis(200),
            defect: None,
        });
        let running = Rc::new(Running::new(Live::new(seed, began, functions.collect())));
        let mut breaks: Vec<_> =
            PLAYERS.iter().enumerate().map(|(position, it)| (now.before(it.broken_for), position)).collect();
        breaks.sort_unstable();
        for (at, position) in breaks {
            running.run(&mut aws.state(), at);
            running.live().borrow_mut().set_defect(position, Some(PLAYERS[position].defect));
        }
        aws.runs(Rc::clone(&running), clock);
        Self { aws, running }
    }

    /// A connection to the simulated account, for commands.
    pub fn account(&self) -> Account {
        self.aws.account()
    }

    /// The simulated account, whose state a test can read and change.
    pub fn aws(&self) -> &SimulatedAws {
        &self.aws
    }

    /// The demo's functions, always in the same order.
    pub fn functions(&self) -> Vec<DemoFunction> {
        let live = self.running.live().borrow();
        let functions = live.functions().zip(&PLAYERS);
        let functions = functions.map(|(function, Player { name, words, .. })| DemoFunction {
            name,
            defect: function.defect.is_some().then_some(*words),
        });
        functions.collect()
    }

    /// Breaks a function if `is_broken` is true, otherwise fixes it; returns false if no function has this name.
    pub fn set_broken(&self, name: &str, is_broken: bool) -> bool {
        let Some(position) = PLAYERS.iter().position(|player| player.name == name) else { return false };
        // Runs the deployment up to the current time first, so that the change does not affect earlier events.
        drop(self.aws.state());
        self.running.live().borrow_mut().set_defect(position, is_broken.then_some(PLAYERS[position].defect));
        true
    }
}

/// Adds the demonstration's functions and policies, and removes one alarm's actions so that `doctor` finds a problem.
fn furnish(aws: &SimulatedAws) {
    let state = &mut *aws.state();
    for Player { name, .. } in &PLAYERS[1..] {
        Sample::add_attached(state, name);
    }
    Sample::redeploy(state, "FunctionPolicies", |_| POLICIES.to_owned());
    for function in state.functions.values_mut().filter(|it| it.configuration.name != Sample::HANDLER) {
        function.configuration.runtime = Some("python3.13".into());
    }
    if let Some(alarm) = state.alarms.get_mut("dead-letters") {
        alarm.actions.clear();
    }
}

#[cfg(test)]
mod tests;
