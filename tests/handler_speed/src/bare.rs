//! An empty function on the handler's runtime, as the baseline for the handler's figures.

use lambda_runtime::{Error, LambdaEvent, run, service_fn};
use serde_json::value::RawValue;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    run(service_fn(async |_: LambdaEvent<Box<RawValue>>| Ok::<(), Error>(()))).await
}
