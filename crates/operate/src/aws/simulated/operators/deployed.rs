//! The account that the simulated operators use during a run.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use async_trait::async_trait;
use comeback_engine::{Policies, Settings, Timestamp};
use comeback_timelapse::OperatedDeployment;

use super::super::{Clock, Sample, SimulatedAws};

pub(super) fn account(run: &Rc<dyn OperatedDeployment>, clock: &Rc<RunClock>) -> SimulatedAws {
    let aws = Sample::new(run.now()).build();
    aws.runs_by(Rc::<RunClock>::clone(clock));
    let state = &mut *aws.state();
    let retries = state.queues.get_mut(Sample::RETRY_QUEUE).expect("BUG: no retry queue");
    retries.run = Some(Rc::clone(run));
    aws.clone()
}

/// Sets the handler's environment variables for these policies, and checks that they parse to the same policies.
pub(super) fn deploy(aws: &SimulatedAws, policies: &Arc<Policies>) {
    let state = &mut *aws.state();
    let handler = state.functions.get_mut(Sample::HANDLER).expect("BUG: no handler");
    let given = variables(policies);
    // An earlier policy may have set other backoff variables.
    for name in ["BASE_BACKOFF", "MAX_BACKOFF", "BACKOFFS"] {
        handler.configuration.variables.remove(name);
    }
    for (name, value) in &given {
        handler.configuration.variables.insert((*name).to_owned(), value.clone());
    }
    let read = Policies::from_variables(|name| handler.configuration.variables.get(name).cloned());
    assert!(
        read.is_ok_and(|read| variables(&read) == given),
        "BUG: the account has other policies: {given:?}"
    );
    for mapping in &mut state.mappings {
        mapping.maximum_concurrency = i32::try_from(policies.stack().settings().maximum_concurrency).ok();
    }
}

fn variables(policies: &Policies) -> Vec<(&'static str, String)> {
    let Settings {
        handler: _,
        target_functions,
        max_age,
        max_retries,
        base_backoff,
        max_backoff,
        backoffs,
        jitter,
        envelope,
        directives,
        hide_up_to,
        maximum_concurrency,
        non_retryable_errors,
    } = policies.stack().settings();
    let entries: Vec<String> = policies.entries().iter().map(ToString::to_string).collect();
    let mut variables = vec![
        ("TARGET_FUNCTIONS", target_functions.join(",")),
        ("MAX_AGE", max_age.to_string()),
        ("MAX_RETRIES", max_retries.to_string()),
        ("JITTER", jitter.name().to_owned()),
        ("ENVELOPE", envelope.name().to_owned()),
        ("DIRECTIVES", if *directives { "on" } else { "off" }.to_owned()),
        ("HIDE_UP_TO", hide_up_to.to_string()),
        ("MAXIMUM_CONCURRENCY", maximum_concurrency.to_string()),
        ("NON_RETRYABLE_ERRORS", non_retryable_errors.join(",")),
        ("POLICIES", entries.join("; ")),
    ];
    if backoffs.is_empty() {
        variables.push(("BASE_BACKOFF", base_backoff.to_string()));
        variables.push(("MAX_BACKOFF", max_backoff.to_string()));
    } else {
        let seconds: Vec<String> = backoffs.iter().map(ToString::to_string).collect();
        variables.push(("BACKOFFS", seconds.join(",")));
    }
    variables
}

/// The clock of a run, which stands still while the operators' commands run.
#[derive(Debug)]
pub(super) struct RunClock {
    run: Rc<dyn OperatedDeployment>,
    /// The sleeping commands, each with the time at which it continues.
    sleepers: RefCell<Vec<(Timestamp, Waker)>>,
}

impl RunClock {
    pub(super) fn new(run: Rc<dyn OperatedDeployment>) -> Self {
        Self { run, sleepers: RefCell::default() }
    }

    pub(super) fn wake(&self) {
        let now = self.run.now();
        self.sleepers
            .borrow_mut()
            .extract_if(.., |(time, _)| *time <= now)
            .for_each(|(_, waker)| waker.wake());
    }

    /// Returns the earliest time at which a sleeping command continues, or `None` if no command is sleeping.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.sleepers.borrow().iter().map(|(time, _)| *time).min()
    }
}

#[async_trait(?Send)]
impl Clock for RunClock {
    fn now(&self) -> Timestamp {
        self.run.now()
    }

    async fn sleep_until(&self, time: Timestamp) {
        std::future::poll_fn(|context| {
            if self.now() >= time {
                return Poll::Ready(());
            }
            self.sleepers.borrow_mut().push((time, context.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}
