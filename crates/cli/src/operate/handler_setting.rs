//! Settings of the handler, in a stack's parameters or in the handler's environment.

use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use aws_sdk_cloudformation::types::Stack;
pub(crate) use comeback_operate::handler_setting::{POLICIES, TARGET_FUNCTIONS, list_has, list_with};

use crate::account::{Account, Failure, Or as _};

/// A stack; `None` if it does not exist: a tag may outlive its stack.
pub(crate) async fn find_stack(account: &Account, name: &str) -> Result<Option<Stack>, Failure> {
    let answer = account.cloudformation.describe_stacks().stack_name(name).send().await;
    let answer = answer.unless(is_gone, "cloudformation:DescribeStacks", name)?;
    Ok(answer.and_then(|it| it.stacks?.into_iter().next()))
}

/// Whether CloudFormation says that the stack does not exist. It has no error type for that.
pub(crate) fn is_gone(error: &impl ProvideErrorMetadata) -> bool {
    error.code() == Some("ValidationError")
        && error.message().is_some_and(|message| message.contains("does not exist"))
}

#[cfg(test)]
mod tests {
    use aws_sdk_cloudformation::error::ErrorMetadata;

    use super::*;

    #[test]
    fn a_stack_that_is_gone_is_no_other_error() {
        let is_gone = |code: &str, message: &str| {
            is_gone(&ErrorMetadata::builder().code(code).message(message).build())
        };
        let gone = "Stack with id comeback does not exist";
        assert!(is_gone("ValidationError", gone));
        assert!(!is_gone("ValidationError", "1 validation error detected"));
        assert!(!is_gone("AccessDenied", gone) && !super::is_gone(&ErrorMetadata::builder().build()));
    }
}
