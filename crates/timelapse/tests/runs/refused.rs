//! Scenarios that make no sense.

use std::time::Duration;

use comeback_engine::Settings;
use comeback_timelapse::{Fault, Faults, OperatorPause, RunError, Scenario, Strikes, run};

use super::{hours, policy};

#[test]
fn refused_scenarios_say_all_that_is_wrong() {
    let scenario = Scenario {
        events: 0,
        failure_rate: f64::NAN,
        handler_run_time: Duration::from_secs(61),
        batch_size: 11,
        faults: Faults::default().with(Fault::ClockSkew, Strikes::always(2.0)),
        ..Scenario::default()
    };
    let error = run(&scenario, &policy(Settings::default()), &mut ()).unwrap_err();
    let RunError::Refused(errors) = error else { panic!("{error}") };
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "events is 0; it must be 1 to 10000000",
            "failure-rate is NaN; it must be 0 to 1",
            "batch-size is 11; it must be 1 to 10",
            "handler-run-time is 61s; it must be at most 60 s, the handler's timeout",
            "fault is clock_skew=2; it must be a rate of 0 to 1, within a window that is not empty",
        ]
    );
}

#[test]
fn pauses_that_make_no_sense_are_refused() {
    let pause = OperatorPause::of_all(hours(1), hours(1), hours(1));
    let later = OperatorPause { at: hours(2), ..pause.clone() };
    let check = |pauses| Scenario { pauses, ..Scenario::default() }.check();
    assert_eq!(check(vec![later.clone(), pause.clone()]), Ok(()), "one after the other");
    for refused in [
        vec![OperatorPause { at: hours(1) + Duration::from_millis(1), ..pause.clone() }],
        vec![OperatorPause { length: Some(Duration::ZERO), ..pause.clone() }],
        vec![OperatorPause { spread: hours(14 * 24 + 1), ..pause.clone() }],
        vec![OperatorPause { length: None, ..pause.clone() }, later],
        vec![pause.clone(), pause],
    ] {
        let errors = check(refused.clone()).unwrap_err();
        assert_eq!(errors.iter().map(|error| error.setting).collect::<Vec<_>>(), ["pauses"], "{refused:?}");
    }
}
