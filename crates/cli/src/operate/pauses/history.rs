//! The versions of the pauses' parameter. SSM keeps the last hundred.

use comeback_engine::Pauses;

use crate::account::{Account, Failure, Or as _};

/// A version of the parameter.
pub(crate) struct Version {
    pub(crate) number: i64,
    pub(crate) text: String,
}

/// The number of the newest version that is readable.
pub(crate) async fn last_readable(account: &Account, name: &str) -> Result<Option<i64>, Failure> {
    Ok(newest_readable(&versions(account, name).await?))
}

/// The number of the newest version that is readable.
pub(crate) fn newest_readable(versions: &[Version]) -> Option<i64> {
    let readable = |version: &&Version| Pauses::read(&version.text).is_ok();
    versions.iter().rev().find(readable).map(|version| version.number)
}

/// The oldest first. Empty while there is no parameter.
pub(crate) async fn versions(account: &Account, name: &str) -> Result<Vec<Version>, Failure> {
    let history = account.ssm.get_parameter_history().name(name).into_paginator();
    let answer: Result<Vec<_>, _> = history.send().try_collect().await;
    let pages = answer.unless(|error| error.is_parameter_not_found(), "ssm:GetParameterHistory", name)?;
    let versions = pages.into_iter().flatten().filter_map(|page| page.parameters).flatten();
    let version = |it: aws_sdk_ssm::types::ParameterHistory| Version {
        number: it.version,
        text: it.value.unwrap_or_default(),
    };
    let mut versions: Vec<Version> = versions.map(version).collect();
    versions.sort_by_key(|version| version.number);
    Ok(versions)
}

/// The last part of the ARN of a user or of a role's session.
pub(crate) fn user_name(arn: &str) -> &str {
    arn.rsplit(['/', ':']).next().unwrap_or(arn)
}
