use std::time::Duration;

use comeback_backoff::{Backoff, retry};

async fn fetch() -> Result<u64, String> {
    let backoff = Backoff::exponential(Duration::from_millis(50), Duration::from_secs(2));
    retry(async || Ok(7), backoff).sleep(|_| std::future::ready(())).await
}

fn main() {
    let _ = fetch();
}
