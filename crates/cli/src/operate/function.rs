//! A function, as an operator names it and as Lambda describes it.

<<<<<<< HEAD
use std::collections::{BTreeMap, BTreeSet};
=======
use std::collections::BTreeMap;
use std::time::Duration;
>>>>>>> a5204a9a (cli: dead-letters are arguments, and pages of values of comeback-operate)

use aws_sdk_lambda::operation::get_function::GetFunctionOutput;
use aws_sdk_lambda::types::{FunctionConfiguration, LoggingConfig};
use comeback_engine::{FunctionArn, short_name};
pub(crate) use comeback_operate::function::FunctionName;

use crate::account::{Account, Failure, Or as _};
use crate::text::terminal::command_line;

/// A function as a suggested command names it, so that it can be read back: by its ARN if it is not in the account and
/// region of `home`, or if its name would be taken for an option.
pub(crate) fn command_name(arn: &str, home: &FunctionArn) -> String {
    let Ok(function) = arn.parse::<FunctionName>() else { return "FUNCTION".into() };
    let is_home = function.place.as_ref().is_some_and(|place| is_beside(place, home));
    if is_home && !function.name.starts_with('-') { function.to_string() } else { command_line([arn]) }
}

/// Whether a function is in another account or region than `home`: it cannot be attached there.
pub(crate) fn is_far(arn: &str, home: &FunctionArn) -> bool {
    arn.parse::<FunctionArn>().is_ok_and(|arn| !is_beside(&arn, home))
}

/// What to do instead of attaching a far function.
pub(crate) fn deployment_of_its_own(arn: &str) -> String {
    format!("use a deployment in the account and region of {arn}")
}

fn is_beside(one: &FunctionArn, other: &FunctionArn) -> bool {
    (&one.region, &one.account) == (&other.region, &other.account)
}

/// The tag with which CloudFormation names a function's stack.
pub(crate) const STACK_TAG: &str = "aws:cloudformation:stack-name";

/// Describes a function. A published version keeps the role, timeout and runtime that it was published with. `None` if
/// Lambda has no such function, alias or version.
pub(crate) async fn find_function(
    account: &Account,
    name: &str,
    qualifier: Option<&str>,
) -> Result<Option<GetFunctionOutput>, Failure> {
    let call = account.lambda.get_function().function_name(name).set_qualifier(qualifier.map(Into::into));
    let of = qualifier.map_or_else(|| name.to_owned(), |qualifier| format!("{name}:{qualifier}"));
    call.send().await.unless(|it| it.is_resource_not_found_exception(), "lambda:GetFunction", &of)
}

/// A function's environment variables.
pub(crate) fn variables(function: &FunctionConfiguration) -> BTreeMap<String, String> {
    let variables = function.environment().and_then(|environment| environment.variables());
    variables.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The log group of the function with this name.
pub(crate) fn log_group(logging: Option<&LoggingConfig>, name: &str) -> String {
    let set = logging.and_then(|logging| logging.log_group());
    set.map_or_else(|| format!("/aws/lambda/{name}"), ToOwned::to_owned)
}

pub(crate) const ELSEWHERE: &str = "name the stack with --stack, its region with --region and its account \
                                    with --profile, or the handler with --handler";

/// Describes a function that must exist.
pub(crate) async fn get_function(account: &Account, name: &str) -> Result<GetFunctionOutput, Failure> {
    let found = find_function(account, name, None).await?;
    let (name, place) = (short_name(name), &account.place);
    found.ok_or_else(|| Failure::CouldNot(format!("Lambda has no function {name} in {place}; {ELSEWHERE}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggested_name_can_be_read_back() {
        let arn = |place: &str, name: &str| format!("arn:aws:lambda:{place}:function:{name}");
        let home = arn("eu-west-1:123456789012", "handler").parse().unwrap();
        let name = |place: &str, name: &str| command_name(&arn(place, name), &home);
        assert_eq!(name("eu-west-1:123456789012", "orders:live"), "orders:live");
        assert_eq!(name("eu-west-1:123456789012", "orders:$LATEST"), "orders");
        for (place, function) in [
            ("eu-west-2:123456789012", "orders"),
            ("eu-west-1:999999999999", "orders"),
            ("eu-west-1:123456789012", "-orders"),
        ] {
            assert_eq!(name(place, function), arn(place, function));
        }
    }
}
