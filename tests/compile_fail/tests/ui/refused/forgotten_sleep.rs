use std::time::Duration;

async fn fetch() -> Result<u64, String> {
    comeback_backoff::retry(async || Ok(7), [Duration::from_millis(50)]).await
}

fn main() {
    let _ = fetch();
}
