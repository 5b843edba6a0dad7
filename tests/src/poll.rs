use std::time::Duration;

/// Asks again and again until there is an answer.
///
/// # Panics
///
/// If there is none within `limit`, with `what` was waited for.
pub async fn eventually<T>(what: &str, limit: Duration, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let answer = tokio::time::timeout(limit, async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    answer.await.unwrap_or_else(|_| panic!("waited {limit:?} in vain for {what}"))
}
