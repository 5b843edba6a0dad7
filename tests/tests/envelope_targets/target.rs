use comeback_envelope::{NonRetryable, RetryAfter, diagnostic, open};
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Order {
    order: u64,
    status: String,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    run(service_fn(async |event| handler(event).await.map_err(diagnostic))).await
}

async fn handler(event: LambdaEvent<Box<RawValue>>) -> Result<(), Error> {
    let opened = open(&event.payload)?;
    let key = opened.idempotency_key(&event.context.request_id);
    let Order { order, status } = serde_json::from_str(opened.payload.get())?;
    match status.as_str() {
        "cancelled" => Err(NonRetryable::new(format!("order {order} was cancelled")).into()),
        "held" => Err(RetryAfter::seconds(900).because(format!("order {order} is held")).into()),
        _ => ship(order, opened.attempt(), key).await,
    }
}

async fn ship(order: u64, attempt: u64, key: &str) -> Result<(), Error> {
    println!("ships order {order}, attempt {attempt}, unless {key} is done");
    Ok(())
}
