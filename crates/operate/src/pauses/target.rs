use comeback_engine::{FunctionPattern, PauseTarget};

use crate::{Account, Deployment, Failure, FunctionName};

/// Which functions a pause is about, by one function's name; every function if there is none.
///
/// # Errors
///
/// The handler does not retry the function, so that a pause of it would hold nothing.
pub(crate) fn pause_target(
    deployment: &Deployment,
    function: Option<&FunctionName>,
) -> Result<PauseTarget, Failure> {
    let Some(function) = function else { return Ok(PauseTarget::All) };
    let arn = function_arn(deployment, function);
    let unqualified = function.qualifier.is_none();
    let entries = deployment.target_functions().filter_map(|entry| entry.parse::<FunctionPattern>().ok());
    // An entry with a qualifier is about a part of the function.
    let is_part =
        |entry: &str| unqualified && entry.strip_prefix(&arn).is_some_and(|rest| rest.starts_with(':'));
    if !entries.into_iter().any(|entry| entry.allows(&arn)) && !deployment.target_functions().any(is_part) {
        return Err(Failure::CouldNot(format!(
            "no entry of TARGET_FUNCTIONS allows {arn}, so the handler does not retry it; see its name, or attach it"
        )));
    }
    arn.parse().map_err(|problem| Failure::Refused(format!("{arn} {problem}")))
}

/// Checks that the function is there. An entry such as `shop-*` allows names that no function has.
///
/// # Errors
///
/// The function or its qualifier does not exist, or the call does not work.
pub(crate) async fn check_exists(
    account: &Account,
    deployment: &Deployment,
    function: &FunctionName,
) -> Result<(), Failure> {
    let arn = function_arn(deployment, &FunctionName { qualifier: None, ..function.clone() });
    let call = account.lambda.get_function_configuration().function_name(arn);
    let answer = call.set_qualifier(function.qualifier.clone()).send().await;
    let what = function.to_string();
    answer.map(drop).map_err(|error| Failure::of_call("lambda:GetFunctionConfiguration", &what, &error))
}

/// The ARN of a function of the handler's account and region, unless it says itself where it is.
fn function_arn(deployment: &Deployment, function: &FunctionName) -> String {
    let name = function.unqualified();
    let arn = match deployment.handler_arn.rsplit_once(':') {
        Some((place, _)) if !name.starts_with("arn:") => format!("{place}:{name}"),
        _ => name,
    };
    function.qualifier.iter().fold(arn, |arn, qualifier| format!("{arn}:{qualifier}"))
}
