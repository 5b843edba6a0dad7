use comeback_engine::Concurrency;

use crate::{Account, Failure, FunctionName};

/// The reserved concurrency of a function; `None` if none is reserved.
async fn reserved(account: &Account, function: &FunctionName) -> Result<Option<u32>, Failure> {
    let name = function.unqualified();
    let answer = account.lambda.get_function_concurrency().function_name(&name).send().await;
    let answer = answer.map_err(|error| Failure::of_call("lambda:GetFunctionConcurrency", &name, &error))?;
    Ok(answer.reserved_concurrent_executions().map(i32::unsigned_abs))
}

/// What is to be restored later.
pub(crate) async fn of_before(account: &Account, function: &FunctionName) -> Result<Concurrency, Failure> {
    Ok(reserved(account, function).await?.map_or(Concurrency::WasUnreserved, Concurrency::Was))
}

/// Lets Lambda start no invocation of the function: it sends each event to the failure destination at once.
pub(crate) async fn stop(account: &Account, function: &FunctionName) -> Result<(), Failure> {
    put(account, function, 0).await
}

/// Restores what was there before. Gives what is there instead, if somebody else has changed it meanwhile: that stays.
pub(crate) async fn restore(
    account: &Account,
    function: &FunctionName,
    before: Concurrency,
) -> Result<Option<u32>, Failure> {
    match (before, reserved(account, function).await?) {
        (Concurrency::Was(before), Some(0)) => put(account, function, before).await.map(|()| None),
        (Concurrency::WasUnreserved, Some(0)) => {
            let name = function.unqualified();
            let answer = account.lambda.delete_function_concurrency().function_name(&name).send().await;
            answer
                .map(|_| None)
                .map_err(|error| Failure::of_call("lambda:DeleteFunctionConcurrency", &name, &error))
        }
        // Restored already, by a run that was interrupted.
        (Concurrency::Was(before), Some(now)) if before == now => Ok(None),
        (_, now) => Ok(now),
    }
}

async fn put(account: &Account, function: &FunctionName, reserved: u32) -> Result<(), Failure> {
    let name = function.unqualified();
    let reserved = i32::try_from(reserved).unwrap_or(i32::MAX);
    let call = account.lambda.put_function_concurrency().function_name(&name);
    let answer = call.reserved_concurrent_executions(reserved).send().await;
    answer.map(drop).map_err(|error| Failure::of_call("lambda:PutFunctionConcurrency", &name, &error))
}
