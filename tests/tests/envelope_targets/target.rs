use comeback_envelope::open;
use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Order {
    order: u64,
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    run(service_fn(handler)).await
}

async fn handler(event: LambdaEvent<Box<RawValue>>) -> Result<(), Error> {
    let opened = open(&event.payload)?;
    let key = opened.idempotency_key(&event.context.request_id);
    let order: Order = serde_json::from_str(opened.payload.get())?;
    ship(order, opened.attempt(), key).await
}

async fn ship(order: Order, attempt: u64, key: &str) -> Result<(), Error> {
    println!("ships order {}, attempt {attempt}, unless {key} is done", order.order);
    Ok(())
}
