//! A function, as an operator names it and as Lambda describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_lambda::operation::get_function::GetFunctionOutput;
use aws_sdk_lambda::types::{FunctionConfiguration, FunctionEventInvokeConfig, LoggingConfig, RecursiveLoop};
use comeback_engine::{FunctionArn, short_name};
pub(crate) use comeback_operate::function::FunctionName;
use serde::Serialize;

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

/// The commands that attach the functions of these ARNs to the deployment of the handler `home`, each once, and what else to
/// do for one that moved. `place` are their flags.
pub(crate) fn attach_commands<'a>(
    arns: impl IntoIterator<Item = &'a str>,
    home: &FunctionArn,
    place: &str,
) -> String {
    let (far, near): (BTreeSet<&str>, BTreeSet<&str>) = arns.into_iter().partition(|arn| is_far(arn, home));
    let near: BTreeSet<String> = near.into_iter().map(|arn| command_name(arn, home)).collect();
    let attach = near.iter().map(|name| format!("`comeback attach {name}{place}`"));
    let commands = attach.chain(far.into_iter().map(deployment_of_its_own)).collect::<Vec<_>>().join(", ");
    if near.is_empty() {
        return commands;
    }
    format!("{commands} (if the function moved to another stack, see docs/attach.md)")
}

/// The tag with which CloudFormation names a function's stack.
pub(crate) const STACK_TAG: &str = "aws:cloudformation:stack-name";

/// A function as Lambda describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// The alias or version that was named; `None` is the function itself, `$LATEST`.
    pub(crate) qualifier: Option<String>,
    /// Lambda has no such alias or version any more. What follows is then the function's own.
    pub(crate) is_qualifier_gone: bool,
    pub(crate) arn: String,
    pub(crate) role_arn: String,
    /// Such as `python3.12`; `None` for a container image.
    pub(crate) runtime: Option<String>,
    pub(crate) timeout: Duration,
    /// By qualifier; `None` is the function itself.
    pub(crate) invoke_settings: BTreeMap<Option<String>, InvokeSettings>,
    /// Why Comeback cannot retry a function of its kind, and what to do instead.
    pub(crate) unfit: Option<&'static str>,
    pub(crate) recursion_allowed: bool,
    pub(crate) reserved_concurrency: Option<u32>,
    /// The queue or topic of its own `DeadLetterConfig`.
    pub(crate) dead_letter: Option<String>,
    pub(crate) tags: BTreeMap<String, String>,
}

impl Target {
    pub(crate) async fn read(account: &Account, function: &FunctionName) -> Result<Self, Failure> {
        let own = get_function(account, &function.unqualified()).await?;
        Self::of(account, function, own).await
    }

    /// The same; `None` if Lambda has no function of this name.
    pub(crate) async fn find(account: &Account, function: &FunctionName) -> Result<Option<Self>, Failure> {
        match find_function(account, &function.unqualified(), None).await? {
            Some(own) => Self::of(account, function, own).await.map(Some),
            None => Ok(None),
        }
    }

    /// Tags and concurrency are the function's `own`, whatever its qualifier.
    async fn of(account: &Account, function: &FunctionName, own: GetFunctionOutput) -> Result<Self, Failure> {
        let name = function.unqualified();
        if let Some(error) = own.tags_error() {
            let of = format!("lambda:ListTags of {function}");
            return Err(Failure::CouldNot(format!("{of}: {}: {}", error.error_code, error.message)));
        }
        let reserved = own.concurrency().and_then(|it| it.reserved_concurrent_executions());
        let (configuration, is_qualifier_gone) = match &function.qualifier {
            None => (own.configuration, false),
            qualifier => match find_function(account, &name, qualifier.as_deref()).await? {
                Some(qualified) => (qualified.configuration, false),
                None => (own.configuration, true),
            },
        };
        let invoke_settings = InvokeSettings::all(account, &name).await?;
        let recursion = account.lambda.get_function_recursion_config().function_name(&name).send().await;
        let recursion = recursion.or_failure("lambda:GetFunctionRecursionConfig", &name)?;
        let lacks = |what: &str| Failure::CouldNot(format!("Lambda returned no {what} for {function}"));
        let configuration = configuration.ok_or_else(|| lacks("configuration"))?;
        let unfit = unfit(&configuration);
        let dead_letter = configuration.dead_letter_config.and_then(|config| config.target_arn);
        let arn = configuration.function_arn.ok_or_else(|| lacks("ARN"))?;
        let unqualified = arn.parse::<FunctionArn>().map(|arn| arn.unqualified().to_string());
        Ok(Self {
            name: configuration.function_name.ok_or_else(|| lacks("name"))?,
            qualifier: function.qualifier.clone(),
            is_qualifier_gone,
            role_arn: configuration.role.ok_or_else(|| lacks("role"))?,
            runtime: configuration.runtime.map(|runtime| runtime.as_str().to_owned()),
            timeout: Duration::from_secs(configuration.timeout.unwrap_or_default().unsigned_abs().into()),
            unfit,
            invoke_settings,
            recursion_allowed: recursion.recursive_loop == Some(RecursiveLoop::Allow),
            reserved_concurrency: reserved.map(i32::unsigned_abs),
            dead_letter: dead_letter.filter(|arn| !arn.is_empty()),
            tags: own.tags.into_iter().flatten().collect(),
            arn: unqualified.map_err(|problem| Failure::CouldNot(format!("{arn} {problem}")))?,
        })
    }

    pub(crate) fn named(&self, qualifier: Option<&str>) -> String {
        qualifier.iter().fold(self.name.clone(), |name, qualifier| format!("{name}:{qualifier}"))
    }

    #[cfg(test)]
    pub(crate) fn settings(&self) -> InvokeSettings {
        self.invoke_settings.get(&self.qualifier).cloned().unwrap_or_default()
    }
}

fn unfit(configuration: &FunctionConfiguration) -> Option<&'static str> {
    if configuration.tenancy_config.is_some() {
        Some(
            "is in tenant isolation mode: each invocation needs a tenant id, and a retry has none; attach a \
             function that invokes this one with the tenant id and fails when it fails",
        )
    } else if configuration.durable_config.is_some() {
        Some(
            "is a durable function: AWS documents a dead-letter queue for its failed events, and no destination \
             (https://docs.aws.amazon.com/lambda/latest/dg/durable-best-practices.html); let its steps retry, and set its \
             DeadLetterConfig",
        )
    } else {
        None
    }
}

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

/// What Lambda does with the asynchronous invocations of one qualifier; `None` is Lambda's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct InvokeSettings {
    /// `MaximumRetryAttempts`; Lambda's default is 2.
    pub(crate) retries: Option<i32>,
    /// `MaximumEventAgeInSeconds`; Lambda's default is 21,600.
    pub(crate) event_age: Option<i32>,
    pub(crate) on_failure: Option<String>,
    pub(crate) on_success: Option<String>,
}

impl InvokeSettings {
    /// The settings of each qualifier that has any; the key of the function itself is `None`.
    pub(crate) async fn all(
        account: &Account,
        name: &str,
    ) -> Result<BTreeMap<Option<String>, Self>, Failure> {
        let call = account.lambda.list_function_event_invoke_configs().function_name(name);
        let configs = call.into_paginator().items().send().try_collect().await;
        let configs = configs.or_failure("lambda:ListFunctionEventInvokeConfigs", name)?;
        Ok(configs.iter().map(Self::read).collect())
    }

    /// Lambda gives an empty ARN for a destination that is not set.
    fn read(config: &FunctionEventInvokeConfig) -> (Option<String>, Self) {
        let qualifier = config.function_arn().and_then(|arn| arn.parse::<FunctionArn>().ok()?.qualifier);
        let destinations = config.destination_config();
        let arn = |arn: Option<&str>| arn.filter(|arn| !arn.is_empty()).map(ToOwned::to_owned);
        let settings = Self {
            retries: config.maximum_retry_attempts(),
            event_age: config.maximum_event_age_in_seconds(),
            on_failure: arn(destinations.and_then(|it| it.on_failure()?.destination())),
            on_success: arn(destinations.and_then(|it| it.on_success()?.destination())),
        };
        (qualifier.filter(|qualifier| qualifier != "$LATEST"), settings)
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_lambda::types::{
        DestinationConfig, DurableConfig, OnFailure, OnSuccess, TenancyConfig, TenantIsolationMode,
    };

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
        let both = [arn("eu-west-1:123456789012", "orders"), arn("eu-west-2:123456789012", "orders")];
        let commands = attach_commands(both.iter().map(String::as_str), &home, " --stack shop");
        let expected = "`comeback attach orders --stack shop`, use a deployment in the account and region of \
                        arn:aws:lambda:eu-west-2:123456789012:function:orders (if";
        assert!(commands.starts_with(expected), "{commands}");
    }

    #[test]
    fn a_function_is_named_as_lambda_names_it() {
        let read = |text: &str| {
            let function: FunctionName = text.parse().unwrap();
            (function.unqualified(), function.qualifier, text.to_owned())
        };
        let arn = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
        for (text, unqualified, qualifier) in [
            ("orders", "orders", None),
            ("orders:live", "orders", Some("live")),
            ("orders:$LATEST", "orders", None),
            (arn, arn, None),
            (&format!("{arn}:7"), arn, Some("7")),
        ] {
            let expected = (unqualified.to_owned(), qualifier.map(ToOwned::to_owned), text.to_owned());
            assert_eq!(read(text), expected);
        }
    }

    #[test]
    fn a_name_names_the_functions_it_could_mean() {
        let arn = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
        let names = |text: &str, qualifier: &str| {
            text.parse::<FunctionName>().unwrap().names(&format!("{arn}{qualifier}"))
        };
        for any_version in ["orders", arn] {
            assert!(["", ":$LATEST", ":live"].iter().all(|it| names(any_version, it)), "{any_version}");
        }
        for latest in ["orders:$LATEST", &format!("{arn}:$LATEST")] {
            assert_eq!(["", ":$LATEST", ":live"].map(|it| names(latest, it)), [true, true, false]);
        }
        for live in ["orders:live", &format!("{arn}:live")] {
            assert_eq!(
                ["", ":$LATEST", ":live", ":7"].map(|it| names(live, it)),
                [false, false, true, false]
            );
        }
        for other in ["order", "arn:aws:lambda:eu-west-2:123456789012:function:orders"] {
            assert!(!names(other, ""), "{other}");
        }
    }

    #[test]
    fn nothing_else_is_a_function() {
        for text in
            ["", ":", "orders:", ":live", "a:b:c", "or ders", "orders-*", "arn:aws:sqs:eu-west-1:1:orders"]
        {
            let refused = text.parse::<FunctionName>().unwrap_err();
            let expected =
                format!("{text:?} is not a function; use NAME, NAME:ALIAS, NAME:VERSION or a function's ARN");
            assert_eq!(refused, expected);
        }
    }

    const ARN: &str = "arn:aws:lambda:eu-west-1:123456789012:function:orders";

    #[test]
    fn tenants_and_durable_executions_cannot_be_retried() {
        let ordinary = FunctionConfiguration::builder();
        assert_eq!(unfit(&ordinary.clone().build()), None);
        let durable = ordinary.clone().durable_config(DurableConfig::builder().execution_timeout(60).build());
        let why = unfit(&durable.build()).unwrap();
        assert!(
            why.starts_with("is a durable function: AWS documents") && why.contains("durable-best-practices"),
            "{why}"
        );
        let tenancy = TenancyConfig::builder().tenant_isolation_mode(TenantIsolationMode::PerTenant);
        let of_tenants = ordinary.tenancy_config(tenancy.build().unwrap()).build();
        assert!(unfit(&of_tenants).is_some_and(|why| why.starts_with("is in tenant isolation mode")));
    }

    #[test]
    fn latest_is_the_function_itself() {
        let read = |arn: String| {
            InvokeSettings::read(&FunctionEventInvokeConfig::builder().function_arn(arn).build())
        };
        let none = InvokeSettings::default();
        assert_eq!(read(ARN.to_owned()), (None, none.clone()));
        assert_eq!(read(format!("{ARN}:$LATEST")), (None, none.clone()));
        assert_eq!(read(format!("{ARN}:live")), (Some("live".to_owned()), none));
    }

    #[test]
    fn an_empty_destination_is_none() {
        let destinations = DestinationConfig::builder()
            .on_failure(OnFailure::builder().destination("").build())
            .on_success(OnSuccess::builder().destination("arn:queue").build());
        let config = FunctionEventInvokeConfig::builder()
            .function_arn(ARN)
            .maximum_retry_attempts(0)
            .maximum_event_age_in_seconds(60)
            .destination_config(destinations.build());
        let expected = InvokeSettings {
            retries: Some(0),
            event_age: Some(60),
            on_failure: None,
            on_success: Some("arn:queue".into()),
        };
        assert_eq!(InvokeSettings::read(&config.build()), (None, expected));
    }
}
