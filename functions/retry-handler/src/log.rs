use comeback_engine::Outcome;
use tracing::Level;

/// JSON lines on standard output, with a timestamp, whatever the function's log format says.
/// lambda_runtime's own subscriber follows that setting and leaves the timestamp to it.
pub(crate) fn init() {
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_target(false)
        .with_current_span(false)
        .with_span_list(false)
        .with_max_level(Level::INFO)
        .init();
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
}

/// One line for what was decided for a message and whether it worked. Never the payload.
pub(crate) fn outcome(outcome: &Outcome<'_>) {
    let reason = outcome.reason.as_ref();
    let problem = outcome.problem.as_ref();
    macro_rules! line {
        ($level:expr) => {
            tracing::event!(
                $level,
                message_id = outcome.message_id,
                target = outcome.function_arn,
                retry = outcome.retry,
                action = outcome.step.map(|step| step.name()),
                delay = outcome.delay.map(|delay| delay.as_secs()),
                due = outcome.due.map(tracing::field::display),
                reason = reason.map(|reason| reason.code.name()),
                detail = reason.map(|reason| reason.detail.as_str()),
                problem = problem.map(|problem| problem.cause.as_str()),
                remedy = problem.and_then(|problem| problem.remedy),
            )
        };
    }
    // An event takes its level as a constant, hence a line for each.
    match problem {
        Some(problem) if problem.remedy.is_some() => line!(Level::ERROR),
        Some(_) => line!(Level::WARN),
        None if reason.is_some() => line!(Level::WARN),
        None => line!(Level::INFO),
    }
}
