//! Failures of a rehearsal, which is a simulation, a schedule or a plan.

use comeback_engine::SettingError;
use comeback_operate::Failure;
use comeback_timelapse::{RunError, ScenarioError, Violation};

/// Returns a failure that lists everything that was refused in a policy and in a scenario.
pub fn refused(policy: Vec<SettingError>, scenario: Vec<ScenarioError>) -> Failure {
    let policy = policy.iter().map(ToString::to_string);
    let scenario = scenario.iter().map(|error| format!("--{error}"));
    Failure::refused(policy.chain(scenario).collect::<Vec<_>>().join("\n       "))
}

/// Returns both values or, if either is an error, a failure that lists all reasons.
pub fn unless_both<P, S>(
    policy: Result<P, Vec<SettingError>>,
    scenario: Result<S, Vec<ScenarioError>>,
) -> Result<(P, S), Failure> {
    match (policy, scenario) {
        (Ok(policy), Ok(scenario)) => Ok((policy, scenario)),
        (policy, scenario) => {
            Err(refused(policy.err().unwrap_or_default(), scenario.err().unwrap_or_default()))
        }
    }
}

/// Converts a run's error into a failure; `repeat` is the command that repeats the run.
pub fn of_run(error: RunError, repeat: &str) -> Failure {
    match error {
        RunError::Refused(scenario) => refused(Vec::new(), scenario),
        RunError::Violated(violation) => violated(&violation, repeat),
        RunError::Multiplied { .. } => Failure::refused(error.to_string()),
    }
}

/// Returns the failure of a run that broke an invariant, which is a bug in Comeback.
pub(crate) fn violated(violation: &Violation, repeat: &str) -> Failure {
    let bug = format!("an invariant was {violation}\nrepeat with: {repeat}\nreport this text as a bug");
    Failure::undone(bug)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comeback_timelapse::Invariant;

    use super::*;

    #[test]
    fn violation_names_the_command_that_repeats_it() {
        let violation = Violation {
            invariant: Invariant::AllowList,
            seed: 7,
            at: Duration::from_secs(3_661),
            event: Some(comeback_timelapse::EventNumber(3)),
            detail: "payroll was invoked".into(),
            history: "+01:01:00.000 event 3 attempt 0 failed: TargetDown\n".into(),
            trace: "+01:01:00.500 event 4 attempt 0 succeeded\n".into(),
        };
        let repeat = "comeback simulate --chaos --seed 7";
        let failure = of_run(RunError::Violated(Box::new(violation)), repeat);
        let expected = "\
an invariant was broken with seed 7 at +01:01:01.000: a function off the list is never invoked
event 3: payroll was invoked
its history:
+01:01:00.000 event 3 attempt 0 failed: TargetDown
the run's last lines:
+01:01:00.500 event 4 attempt 0 succeeded
repeat with: comeback simulate --chaos --seed 7
report this text as a bug";
        assert_eq!((failure.to_string().as_str(), failure.exit_code()), (expected, 3));
    }

    #[test]
    fn a_run_that_would_hardly_end_is_refused() {
        let event = Some(comeback_timelapse::EventNumber(3));
        let error = RunError::Multiplied { event, most: 10_000, at: Duration::from_secs(3_661) };
        let failure = of_run(error, "");
        let expected = "at +01:01:01.000, the faults had given event 3 more than 10000 copies or retries; lower a \
                        fault's rate, or shorten its window or the run";
        assert_eq!((failure.to_string().as_str(), failure.exit_code()), (expected, 2));
    }
}
