//! An SQS queue.

use std::str::FromStr;

use aws_sdk_sqs::operation::get_queue_attributes::GetQueueAttributesError;
use aws_sdk_sqs::types::QueueAttributeName;
use comeback_engine::{NotAnArn, QueueArn};

use crate::account::{Account, Failure, Or as _};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) url: String,
    pub(crate) arn: String,
    pub(super) parsed_arn: QueueArn,
}

impl Queue {
    fn new(url: &str, arn: &str) -> Result<Self, Failure> {
        Ok(Self { url: url.to_owned(), arn: arn.to_owned(), parsed_arn: parsed(arn)? })
    }

    pub(crate) async fn of_url(account: &Account, url: &str) -> Result<Self, Failure> {
        Self::find_url(account, url).await?.ok_or_else(|| no_queue(url))
    }

    pub(crate) async fn of_arn(account: &Account, arn: &str) -> Result<Self, Failure> {
        Self::find_arn(account, arn).await?.ok_or_else(|| no_queue(arn))
    }

    /// `None` if SQS has no such queue.
    pub(crate) async fn find_url(account: &Account, url: &str) -> Result<Option<Self>, Failure> {
        let call = account.sqs.get_queue_attributes().queue_url(url);
        let answer = call.attribute_names(QueueAttributeName::QueueArn).send().await;
        let gone = |it: &GetQueueAttributesError| it.is_queue_does_not_exist() || it.is_invalid_address();
        let Some(answer) = answer.unless(gone, "sqs:GetQueueAttributes", url)? else { return Ok(None) };
        let arn = answer.attributes().and_then(|it| it.get(&QueueAttributeName::QueueArn));
        let arn = arn.ok_or_else(|| Failure::CouldNot(format!("SQS returned no ARN for {url}")))?;
        Self::new(url, arn).map(Some)
    }

    /// `None` if SQS has no such queue.
    pub(crate) async fn find_arn(account: &Account, arn: &str) -> Result<Option<Self>, Failure> {
        let QueueArn { name, account: owner, .. } = parsed(arn)?;
        let call = account.sqs.get_queue_url().queue_name(name).queue_owner_aws_account_id(owner);
        let answer = call.send().await;
        let answer = answer.unless(|it| it.is_queue_does_not_exist(), "sqs:GetQueueUrl", arn)?;
        answer.map(|answer| Self::new(answer.queue_url().unwrap_or_default(), arn)).transpose()
    }

    pub(crate) fn name(&self) -> &str {
        &self.parsed_arn.name
    }
}

fn no_queue(name: &str) -> Failure {
    let how = "create it again, or name another where the deployment is defined";
    Failure::CouldNot(format!("queue {name} does not exist: {how}"))
}

/// Parses an ARN that AWS returned.
pub(super) fn parsed<T: FromStr<Err = NotAnArn>>(arn: &str) -> Result<T, Failure> {
    arn.parse().map_err(|problem| Failure::CouldNot(format!("{arn} {problem}")))
}

#[cfg(test)]
impl Queue {
    pub(crate) fn sample(name: &str) -> Self {
        let url = format!("https://sqs.eu-west-1.amazonaws.com/123456789012/{name}");
        Self::new(&url, &format!("arn:aws:sqs:eu-west-1:123456789012:{name}")).unwrap()
    }
}
