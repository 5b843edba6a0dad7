use std::time::Duration;

use comeback_backoff::retry_mut;

async fn fill(buffer: &mut Vec<u8>) -> Result<usize, String> {
    let read = async || {
        buffer.push(7);
        Ok(buffer.len())
    };
    retry_mut(read, [Duration::from_millis(50)]).await
}

fn main() {
    let _ = fill(&mut Vec::new());
}
