use std::time::Duration;

use comeback_backoff::retry;

async fn fill(buffer: &mut Vec<u8>) -> Result<usize, String> {
    let read = async || {
        buffer.push(7);
        Ok(buffer.len())
    };
    retry(read, [Duration::from_millis(50)]).sleep(|_| std::future::ready(())).await
}

fn main() {
    let _ = fill(&mut Vec::new());
}
