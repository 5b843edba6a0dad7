//! Lambda functions: the names that operators type, and the descriptions that Lambda returns.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use comeback_engine::{FunctionArn, short_name};

use crate::account::Account;
use crate::aws::{Configuration, Function, InvokeSettings, qualified};
use crate::deployment::queue::parsed;
use crate::failure::Failure;
use crate::rights::role_name;

/// A function's name as an operator types it: `NAME`, `NAME:QUALIFIER`, or an ARN with or without a qualifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionName {
    /// The function's ARN without a qualifier, or `None` if the operator typed only a name.
    pub place: Option<FunctionArn>,
    /// The function's name, without the account, region or qualifier.
    pub name: String,
    /// The alias or version, or `None` for the unqualified function.
    pub qualifier: Option<String>,
    /// True if the name ends with `:$LATEST`, and therefore matches no alias or published version.
    pub is_latest: bool,
}

impl FunctionName {
    /// The name or ARN without a qualifier, for the `FunctionName` parameter of Lambda's API.
    pub fn unqualified(&self) -> String {
        self.place.as_ref().map_or_else(|| self.name.clone(), ToString::to_string)
    }

    /// Returns the name without its qualifier, to match every version and alias.
    pub fn any_version(&self) -> Self {
        Self { qualifier: None, is_latest: false, ..self.clone() }
    }

    /// Returns true if this name matches the function `arn`. A name without a qualifier matches every version and
    /// alias.
    pub fn names(&self, arn: &str) -> bool {
        arn.parse().is_ok_and(|other: Self| {
            self.name == other.name
                && (self.place.is_none() || self.place == other.place)
                && match &self.qualifier {
                    Some(qualifier) => other.qualifier.as_ref() == Some(qualifier),
                    None => !self.is_latest || other.qualifier.is_none(),
                }
        })
    }
}

impl FromStr for FunctionName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let arn = text.parse::<FunctionArn>().ok();
        let (name, qualifier) = match &arn {
            Some(arn) => (&*arn.name, arn.qualifier.as_deref()),
            None => text.split_once(':').map_or((text, None), |(name, after)| (name, Some(after))),
        };
        let is_name = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let is_latest = qualifier == Some("$LATEST");
        if arn.is_none() && !(is_name(name) && (is_latest || qualifier.is_none_or(is_name))) {
            let how = "use NAME, NAME:ALIAS, NAME:VERSION or a function's ARN";
            return Err(format!("{text:?} is not a function; {how}"));
        }
        let qualifier = qualifier.filter(|_| !is_latest).map(ToOwned::to_owned);
        let place = arn.as_ref().map(FunctionArn::unqualified);
        Ok(Self { name: name.to_owned(), place, qualifier, is_latest })
    }
}

/// Returns true if `text` is the unqualified ARN `arn` itself, or `arn` with a qualifier.
pub fn is_same_function(text: &str, arn: &str) -> bool {
    text.strip_prefix(arn).is_some_and(|after| after.is_empty() || after.starts_with(':'))
}

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.qualifier.iter().try_for_each(|qualifier| write!(f, ":{qualifier}"))
    }
}

/// Returns the function's name for a suggested command. If the name looks like a flag, or if the function's account or
/// region is not that of `home`, returns the ARN.
pub fn command_name(arn: &str, home: &FunctionArn) -> String {
    let Ok(function) = arn.parse::<FunctionName>() else { return "FUNCTION".into() };
    let is_home = function.place.as_ref().is_some_and(|place| is_beside(place, home));
    if is_home && !function.name.starts_with('-') { function.to_string() } else { arn.to_owned() }
}

/// A function's name with its alias or version, but without `:$LATEST`, for display.
pub fn shown_name(arn: &str) -> &str {
    let name = short_name(arn);
    name.strip_suffix(":$LATEST").unwrap_or(name)
}

/// Returns true if a function is not in the account and region of the handler `home`, and so cannot be attached.
pub fn is_far(arn: &str, home: &FunctionArn) -> bool {
    arn.parse::<FunctionArn>().is_ok_and(|arn| !is_beside(&arn, home))
}

/// Advice about a function that is outside the handler's account or region.
pub fn deployment_of_its_own(arn: &str) -> String {
    format!("use a deployment in the account and region of {arn}")
}

fn is_beside(one: &FunctionArn, other: &FunctionArn) -> bool {
    (&one.region, &one.account) == (&other.region, &other.account)
}

/// The tag that CloudFormation sets to the name of a function's stack.
pub const STACK_TAG: &str = "aws:cloudformation:stack-name";

/// A Lambda function whose failed events Comeback retries or could retry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The function's name, without a qualifier.
    pub name: String,
    /// The alias or version, or `None` for the unqualified function.
    pub qualifier: Option<String>,
    /// True if Lambda no longer has this alias or version. The fields below then describe the unqualified function.
    pub is_qualifier_gone: bool,
    /// The function's ARN, without a qualifier.
    pub arn: String,
    /// The ARN of the function's execution role.
    pub role_arn: String,
    /// The runtime, such as `python3.12`, or `None` for a container image.
    pub runtime: Option<String>,
    /// The function's timeout.
    pub timeout: Duration,
    /// The settings for asynchronous invocations, keyed by qualifier (`None` for the unqualified function).
    pub invoke_settings: BTreeMap<Option<String>, InvokeSettings>,
    /// The reason why Comeback cannot retry this kind of function, and what to do instead.
    pub unfit: Option<&'static str>,
    /// True if Lambda allows recursive loops for this function.
    pub recursion_allowed: bool,
    /// The name of the function's log group.
    pub log_group: String,
    /// The function's reserved concurrency, if any.
    pub reserved_concurrency: Option<u32>,
    /// The ARN of the queue or topic in the function's own `DeadLetterConfig`.
    pub dead_letter: Option<String>,
    /// The function's tags, by key.
    pub tags: BTreeMap<String, String>,
}

impl Target {
    /// Reads a function, or returns `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the function cannot be read.
    pub async fn find(account: &Account, function: &FunctionName) -> Result<Option<Self>, Failure> {
        match account.aws.function(&function.unqualified(), None).await? {
            Some(own) => Self::of(account, function, own).await.map(Some),
            None => Ok(None),
        }
    }

    /// Reads the settings of the alias or version that `function` names, and the tags from `own`, the unqualified
    /// function.
    pub(crate) async fn of(
        account: &Account,
        function: &FunctionName,
        own: Function,
    ) -> Result<Self, Failure> {
        let name = function.unqualified();
        if let Some(error) = own.tags_error {
            return Err(Failure::could_not(format!("lambda:ListTags of {function}: {error}")));
        }
        let (configuration, is_qualifier_gone) = match &function.qualifier {
            None => (own.configuration, false),
            qualifier => match account.aws.function(&name, qualifier.as_deref()).await? {
                Some(qualified) => (qualified.configuration, false),
                None => (own.configuration, true),
            },
        };
        let invoke_settings = account.aws.invoke_settings(&name).await?;
        let recursion_allowed = account.aws.recursion_allowed(&name).await?;
        let named = |value: &str, what: &str| match value {
            "" => Err(Failure::could_not(format!("Lambda returned no {what} for {function}"))),
            value => Ok(value.to_owned()),
        };
        let arn = named(&configuration.arn, "ARN")?;
        Ok(Self {
            name: named(&configuration.name, "name")?,
            qualifier: function.qualifier.clone(),
            is_qualifier_gone,
            role_arn: named(&configuration.role_arn, "role")?,
            unfit: unfit(&configuration),
            log_group: log_group(&configuration),
            runtime: configuration.runtime,
            timeout: configuration.timeout,
            invoke_settings,
            recursion_allowed,
            reserved_concurrency: own.reserved_concurrency,
            dead_letter: configuration.dead_letter,
            tags: own.tags,
            arn: parsed::<FunctionArn>(&arn)?.unqualified().to_string(),
        })
    }

    /// The function's ARN as in invocation records, with its qualifier or `:$LATEST`.
    pub fn invoked_arn(&self) -> String {
        format!("{}:{}", self.arn, self.qualifier.as_deref().unwrap_or("$LATEST"))
    }

    /// The function's name and, after a `:`, the qualifier.
    pub fn named(&self, qualifier: Option<&str>) -> String {
        qualified(&self.name, qualifier)
    }

    /// The settings that apply to asynchronous invocations of this alias or version, or of the unqualified function.
    pub fn settings(&self) -> InvokeSettings {
        self.invoke_settings.get(&self.qualifier).cloned().unwrap_or_default()
    }

    /// The name of the execution role.
    pub fn role(&self) -> &str {
        role_name(&self.role_arn)
    }

    /// The name of the CloudFormation stack that owns the function, if any.
    pub fn stack(&self) -> Option<&str> {
        self.tags.get(STACK_TAG).map(String::as_str)
    }
}

fn unfit(configuration: &Configuration) -> Option<&'static str> {
    if configuration.has_tenants {
        Some(
            "is in tenant isolation mode: each invocation needs a tenant id, and a retry has none; attach a \
             function that invokes this one with the tenant id and fails when it fails",
        )
    } else if configuration.is_durable {
        Some(
            "is a durable function: AWS documents a dead-letter queue for its failed events, and no destination \
             (https://docs.aws.amazon.com/lambda/latest/dg/durable-best-practices.html); let its steps retry, and set its \
             DeadLetterConfig",
        )
    } else {
        None
    }
}

/// The function's CloudWatch log group, `/aws/lambda/NAME` by default.
pub fn log_group(configuration: &Configuration) -> String {
    configuration.log_group.clone().unwrap_or_else(|| format!("/aws/lambda/{}", configuration.name))
}

/// The last part of the error message for a missing deployment or function. It names the flags that select another
/// stack, region or account.
pub const ELSEWHERE: &str = "name the stack with --stack, its region with --region and its account \
                                    with --profile, or the handler with --handler";

/// Reads Lambda's description of a function that must exist.
///
/// # Errors
///
/// Fails if the function does not exist or cannot be read.
pub async fn get_function(account: &Account, name: &str) -> Result<Function, Failure> {
    let found = account.aws.function(name, None).await?;
    let (name, place) = (short_name(name), &account.place);
    found.ok_or_else(|| Failure::could_not(format!("Lambda has no function {name} in {place}; {ELSEWHERE}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Target {
        /// An unattached function.
        pub(crate) fn sample() -> Self {
            Self {
                name: "orders".into(),
                arn: "arn:aws:lambda:eu-west-1:123456789012:function:orders".into(),
                role_arn: "arn:aws:iam::123456789012:role/orders-role".into(),
                runtime: Some("python3.12".into()),
                timeout: Duration::from_secs(3),
                ..Self::default()
            }
        }
    }

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

    #[test]
    fn latest_is_left_out_of_a_name() {
        let arn = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
        let names =
            ["", ":$LATEST", ":live"].map(|qualifier| shown_name(&format!("{arn}{qualifier}")).to_owned());
        assert_eq!(names, ["orders", "orders", "orders:live"]);
    }

    #[test]
    fn versions_and_aliases_are_the_same_function() {
        let arn = "arn:aws:lambda:eu-west-1:123456789012:function:orders";
        let is_same = |after: &str| is_same_function(&format!("{arn}{after}"), arn);
        assert_eq!(["", ":live", ":7", "-eu", "*"].map(is_same), [true, true, true, false, false]);
        assert!(!is_same_function("orders", arn));
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

    #[test]
    fn tenants_and_durable_executions_cannot_be_retried() {
        assert_eq!(unfit(&Configuration::default()), None);
        let durable = Configuration { is_durable: true, ..Configuration::default() };
        let why = unfit(&durable).unwrap();
        assert!(
            why.starts_with("is a durable function: AWS documents") && why.contains("durable-best-practices"),
            "{why}"
        );
        let of_tenants = Configuration { has_tenants: true, ..Configuration::default() };
        assert!(unfit(&of_tenants).is_some_and(|why| why.starts_with("is in tenant isolation mode")));
    }
}
