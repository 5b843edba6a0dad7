//! List prices in full batches of small messages, as a real rate of events fills them: those of the few that are
//! rehearsed are nearly empty.

use crate::figures::calls::ApiCall;
use crate::figures::prices;
use crate::scenario::Scenario;

/// The list price of a retry in a full batch, in US dollars: its record is sent, and received twice, once to be
/// hidden and once to be re-invoked and deleted.
pub(super) fn usd_a_retry() -> f64 {
    // So many that no part of a cent is lost.
    const BATCHES: u64 = 100_000;
    let Scenario { handler_run_time, run_time, batch_size, .. } = Scenario::default();
    let retries = BATCHES * batch_size as u64;
    let calls = [
        (ApiCall::SendMessage, retries),
        (ApiCall::InvokeTarget, retries),
        (ApiCall::ReceiveMessage, 2 * BATCHES),
        (ApiCall::InvokeHandler, 2 * BATCHES),
        (ApiCall::ChangeMessageVisibilityBatch, BATCHES),
        (ApiCall::DeleteMessageBatch, BATCHES),
    ];
    let requests: f64 = calls.into_iter().map(|(call, calls)| prices::requests(call, calls)).sum();
    let compute = prices::gb_seconds(2 * BATCHES, handler_run_time, prices::HANDLER_MEMORY_GB)
        + prices::gb_seconds(retries, run_time, prices::TARGET_MEMORY_GB);
    let logs = prices::logs(prices::log_bytes(2 * retries, 2 * BATCHES + retries));
    (requests + prices::compute(compute) + logs) / retries as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comeback_engine::{HideUpTo, Policy, Settings};

    use super::*;
    use crate::aws::target::TARGET_ARN;
    use crate::simulation::run;

    /// The simulation counts call by call, and also the polls that find nothing and the batches that are not quite full.
    #[test]
    fn a_retry_costs_what_it_does_in_a_run_with_full_batches() {
        let settings = Settings {
            target_functions: vec![TARGET_ARN.into()],
            max_backoff: 60,
            base_backoff: 60,
            hide_up_to: HideUpTo::Always,
            ..Settings::default()
        };
        // So long a wait for a poller that each batch is full.
        let scenario = Scenario {
            events: 2_000,
            arrival_spread: Duration::from_secs(60),
            outage: Duration::from_secs(3_600),
            duration: Duration::from_secs(2 * 3_600),
            poll_delay: Duration::from_secs(20),
            ..Scenario::default()
        };
        let summary = run(&scenario, &Policy::new(settings).unwrap(), &mut ()).unwrap();
        let measured = summary.cost_usd / summary.retries as f64;
        let ratio = usd_a_retry() / measured;
        assert!((0.94..=1.0).contains(&ratio), "{} beside {measured}", usd_a_retry());
    }
}
