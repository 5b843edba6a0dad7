use std::time::Duration;

const DELAYS: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(100)];

fn main() {
    let _ = comeback_backoff::retry_blocking(|| Err::<(), _>("busy"), &DELAYS).sleep_blocking(|_| ());
}
