//! Waits that nobody seeded.

use std::collections::HashSet;
use std::time::Duration;

use comeback_backoff::{Jitter, Strategy, StrategyError, retry};
use tokio::time::sleep;

fn strategy() -> Strategy {
    Strategy::constant(Duration::from_secs(1_000_000)).retries(4)
}

#[expect(clippy::disallowed_methods, reason = "seeds of the operating system are what is tested")]
#[test]
fn no_two_makers_wait_in_step() {
    let all: HashSet<Vec<Duration>> = (0..1_000)
        .flat_map(|_| {
            let streams = strategy().streams().unwrap();
            [streams.delays(), streams.delays()].map(Iterator::collect)
        })
        .collect();
    assert_eq!(all.len(), 2_000);
}

#[expect(clippy::disallowed_methods, reason = "seeds of the operating system are what is tested")]
#[test]
fn a_wrong_strategy_is_refused_as_with_a_seed() {
    let wrong = Strategy::linear(Duration::from_secs(1), Duration::from_secs(9)).jitter(Jitter::Decorrelated);
    assert_eq!(wrong.streams().unwrap_err(), StrategyError::Decorrelated);
}

#[expect(clippy::disallowed_methods, reason = "a generator of the thread's is what is tested")]
#[tokio::test(start_paused = true)]
async fn a_retry_takes_the_threads_generator() {
    let delays = strategy().with_rng(rand::rng()).unwrap();
    let error = retry(delays, |_| true, async || Err::<(), _>("busy")).sleeping(sleep).await.unwrap_err();
    assert_eq!(error.attempts, 5);
    assert!(error.waited <= Duration::from_secs(4_000_000));
}
