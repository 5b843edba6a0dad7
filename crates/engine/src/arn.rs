//! ARNs of functions and queues, and patterns for function ARNs.

use std::fmt;
use std::str::FromStr;

use wildmatch::WildMatch;

/// The ARN of a function: `arn:PARTITION:lambda:REGION:ACCOUNT:function:NAME`, with or without `:QUALIFIER`.
///
/// ```
/// use comeback_engine::FunctionArn;
///
/// let arn: FunctionArn = "arn:aws:lambda:eu-west-1:123456789012:function:orders:live".parse()?;
/// assert_eq!((arn.name.as_str(), arn.qualifier.as_deref()), ("orders", Some("live")));
/// assert_eq!(arn.unqualified().to_string(), "arn:aws:lambda:eu-west-1:123456789012:function:orders");
/// # Ok::<(), comeback_engine::BadArn>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionArn {
    /// The AWS partition, such as `aws`.
    pub partition: String,
    /// The AWS region, such as `eu-west-1`.
    pub region: String,
    /// The account id: twelve digits.
    pub account: String,
    /// The function's name, such as `orders`.
    pub name: String,
    /// The version or alias, such as `live` or `$LATEST`; `None` if the ARN has neither.
    pub qualifier: Option<String>,
}

/// The ARN of an SQS queue: `arn:PARTITION:sqs:REGION:ACCOUNT:NAME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueArn {
    /// The AWS partition, such as `aws`.
    pub partition: String,
    /// The AWS region, such as `eu-west-1`.
    pub region: String,
    /// The account id: twelve digits.
    pub account: String,
    /// The queue's name; it ends with `.fifo` for a FIFO queue.
    pub name: String,
}

/// The reason for refusing an ARN or a function pattern. Each entry in `TARGET_FUNCTIONS` is such a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadArn(&'static str);

const NOT_A_FUNCTION: BadArn =
    BadArn("is not a function ARN (arn:aws:lambda:REGION:ACCOUNT:function:NAME, with or without :QUALIFIER)");
const NOT_A_QUEUE: BadArn = BadArn("is not a queue ARN (arn:aws:sqs:REGION:ACCOUNT:NAME)");
const NOT_A_NAME: BadArn = BadArn("does not begin with NAME, NAME:QUALIFIER or a function ARN");
const WILDCARD_OUTSIDE_NAME: BadArn = BadArn("has a * outside the function's name");
const BAD_CHARACTER: BadArn = BadArn("has a character that is not allowed in a function's name or qualifier");

impl FunctionArn {
    /// This ARN without its version or alias.
    #[must_use]
    pub fn unqualified(&self) -> Self {
        Self { qualifier: None, ..self.clone() }
    }
}

impl FromStr for FunctionArn {
    type Err = BadArn;

    fn from_str(arn: &str) -> Result<Self, BadArn> {
        let fields = Fields::of(arn).filter(Fields::name_a_function).ok_or(NOT_A_FUNCTION)?;
        Ok(fields.to_arn())
    }
}

impl fmt::Display for FunctionArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, region, account, name, qualifier } = self;
        write!(f, "arn:{partition}:lambda:{region}:{account}:function:{name}")?;
        qualifier.iter().try_for_each(|qualifier| write!(f, ":{qualifier}"))
    }
}

impl QueueArn {
    /// Returns true for a FIFO queue, which cannot be the retry queue.
    pub fn is_fifo(&self) -> bool {
        self.name.ends_with(".fifo")
    }

    /// Returns the queue's URL, in the domain of its partition. Source: `partitions.json` in AWS's SDKs.
    pub fn url(&self) -> String {
        let Self { partition, region, account, name } = self;
        let suffix = match partition.as_str() {
            "aws-cn" => "amazonaws.com.cn",
            "aws-eusc" => "amazonaws.eu",
            "aws-iso" => "c2s.ic.gov",
            "aws-iso-b" => "sc2s.sgov.gov",
            "aws-iso-e" => "cloud.adc-e.uk",
            "aws-iso-f" => "csp.hci.ic.gov",
            _ => "amazonaws.com",
        };
        format!("https://sqs.{region}.{suffix}/{account}/{name}")
    }

    /// Returns true if SQS accepts this account id and this queue name.
    pub fn is_valid(account: &str, name: &str) -> bool {
        let plain = name.strip_suffix(".fifo").unwrap_or(name);
        is_account(account) && (1..=80).contains(&name.len()) && is_name(plain)
    }
}

impl FromStr for QueueArn {
    type Err = BadArn;

    fn from_str(arn: &str) -> Result<Self, BadArn> {
        let fields: Vec<&str> = arn.split(':').collect();
        match fields[..] {
            ["arn", partition, "sqs", region, account, name] if Self::is_valid(account, name) => {
                let [partition, region, account, name] = [partition, region, account, name].map(Into::into);
                Ok(Self { partition, region, account, name })
            }
            _ => Err(NOT_A_QUEUE),
        }
    }
}

impl fmt::Display for QueueArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, region, account, name } = self;
        write!(f, "arn:{partition}:sqs:{region}:{account}:{name}")
    }
}

fn name_and_qualifier(text: &str) -> (&str, Option<&str>) {
    text.split_once(':').map_or((text, None), |(name, qualifier)| (name, Some(qualifier)))
}

/// Shortens a function ARN to `NAME` or `NAME:QUALIFIER`, and returns any other string unchanged.
pub fn short_name(arn: &str) -> &str {
    Fields::of(arn).map_or(arn, |Fields { name, qualifier, .. }| {
        let length = name.len() + qualifier.map_or(0, |qualifier| 1 + qualifier.len());
        &arn[arn.len() - length..]
    })
}

/// One entry in `TARGET_FUNCTIONS`: a function ARN whose name may contain `*`.
///
/// Each field of an ARN is compared separately, so `*` never matches a `:`. A pattern without a qualifier allows every
/// version and alias of the function.
///
/// ```
/// use comeback_engine::FunctionPattern;
///
/// let pattern: FunctionPattern = "arn:aws:lambda:eu-west-1:123456789012:function:orders-*".parse()?;
/// assert!(pattern.allows("arn:aws:lambda:eu-west-1:123456789012:function:orders-eu:$LATEST"));
/// assert!(!pattern.allows("arn:aws:lambda:eu-west-1:999999999999:function:orders-eu"));
/// # Ok::<(), comeback_engine::BadArn>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionPattern {
    arn: FunctionArn,
    name: WildMatch,
}

impl FromStr for FunctionPattern {
    type Err = BadArn;

    fn from_str(arn: &str) -> Result<Self, BadArn> {
        let fields = Fields::of(arn).ok_or(NOT_A_FUNCTION)?;
        let Fields { partition, region, account, name, qualifier } = fields;
        if [partition, region, account].iter().any(|field| field.contains('*')) {
            return Err(WILDCARD_OUTSIDE_NAME);
        }
        let name = name_pattern(name, qualifier)?;
        if !fields.name_a_place() {
            return Err(NOT_A_FUNCTION);
        }
        Ok(Self { arn: fields.to_arn(), name })
    }
}

fn name_pattern(name: &str, qualifier: Option<&str>) -> Result<WildMatch, BadArn> {
    if qualifier.is_some_and(|qualifier| qualifier.contains('*')) {
        return Err(WILDCARD_OUTSIDE_NAME);
    }
    if !is_name(&name.replace('*', "")) || !qualifier.is_none_or(is_qualifier) {
        return Err(BAD_CHARACTER);
    }
    Ok(WildMatch::new(name))
}

impl FunctionPattern {
    /// The only version or alias that the pattern allows; `None` if the pattern allows every version and alias.
    pub fn qualifier(&self) -> Option<&str> {
        self.arn.qualifier.as_deref()
    }

    /// Returns true if `arn` is a function ARN that the pattern matches.
    pub fn allows(&self, arn: &str) -> bool {
        Fields::of(arn).is_some_and(|fields| {
            let FunctionArn { partition, region, account, qualifier, .. } = &self.arn;
            [partition, region, account] == [fields.partition, fields.region, fields.account]
                && is_name(fields.name)
                && self.name.matches(fields.name)
                && fields.qualifier.is_none_or(is_qualifier)
                && qualifier.as_deref().is_none_or(|only| fields.qualifier == Some(only))
        })
    }

    pub(crate) fn is(&self, function: &HandlerFunction) -> bool {
        self.arn.region == function.region && self.arn.name == function.name
    }
}

/// Selects the functions that an entry in `POLICIES` applies to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PolicyPattern {
    Arn(FunctionPattern),
    Name {
        name: WildMatch,
        qualifier: Option<String>,
        /// Account and region in which a bare name matches functions; `None` for any account and region.
        home: Option<(String, String)>,
    },
}

impl FromStr for PolicyPattern {
    type Err = BadArn;

    fn from_str(text: &str) -> Result<Self, BadArn> {
        if text.starts_with("arn:") {
            return text.parse().map(Self::Arn);
        }
        let (name, qualifier) = name_and_qualifier(text);
        if name.is_empty() || qualifier.is_some_and(|it| it.is_empty() || it.contains(':')) {
            return Err(NOT_A_NAME);
        }
        let name = name_pattern(name, qualifier)?;
        Ok(Self::Name { name, qualifier: qualifier.map(Into::into), home: None })
    }
}

impl PolicyPattern {
    pub(crate) fn matches(&self, arn: &str) -> bool {
        match self {
            Self::Arn(pattern) => pattern.allows(arn),
            Self::Name { name, qualifier, home } => Fields::of(arn).is_some_and(|fields| {
                let place = [fields.account, fields.region];
                home.as_ref().is_none_or(|(account, region)| place == [account, region])
                    && name.matches(fields.name)
                    && qualifier.as_deref().is_none_or(|only| fields.qualifier == Some(only))
            }),
        }
    }

    /// Limits a bare name to functions in the retry queue's account and region, where the handler also runs.
    pub(crate) fn set_home(&mut self, queue: &QueueArn) {
        if let Self::Name { home, .. } = self {
            *home = Some((queue.account.clone(), queue.region.clone()));
        }
    }
}

impl fmt::Display for FunctionPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.arn.fmt(f)
    }
}

/// The functions that a pause, a retry request or a cancel request applies to.
#[derive(Clone, Debug, PartialEq)]
pub enum PauseTarget {
    /// Every function, written `*`.
    All,
    /// The functions that the pattern allows.
    Functions(FunctionPattern),
}

impl PauseTarget {
    /// Returns true if the pause or request applies to this function.
    pub fn covers(&self, function_arn: &str) -> bool {
        match self {
            Self::All => true,
            Self::Functions(pattern) => pattern.allows(function_arn),
        }
    }
}

impl FromStr for PauseTarget {
    type Err = BadArn;

    fn from_str(text: &str) -> Result<Self, BadArn> {
        if text == "*" { Ok(Self::All) } else { text.parse().map(Self::Functions) }
    }
}

impl fmt::Display for PauseTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Functions(pattern) => pattern.fmt(f),
        }
    }
}

/// The retry handler's own name and region. A function with the same name and region is never a target, not even in
/// another account, because the Lambda runtime does not provide the handler's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerFunction {
    /// The function's name, from `AWS_LAMBDA_FUNCTION_NAME`.
    pub name: String,
    /// The region, from `AWS_REGION`.
    pub region: String,
}

impl HandlerFunction {
    pub(crate) fn read(lookup: impl Fn(&str) -> Option<String>) -> Option<Self> {
        Some(Self { name: lookup("AWS_LAMBDA_FUNCTION_NAME")?, region: lookup("AWS_REGION")? })
    }

    pub(crate) fn is(&self, arn: &str) -> bool {
        Fields::of(arn).is_some_and(|fields| fields.region == self.region && fields.name == self.name)
    }
}

/// The fields of a function ARN, borrowed to compare ARNs without allocating memory.
#[derive(Clone, Copy)]
struct Fields<'a> {
    partition: &'a str,
    region: &'a str,
    account: &'a str,
    name: &'a str,
    qualifier: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn of(arn: &'a str) -> Option<Self> {
        let mut fields = arn.split(':');
        let mut next = || fields.next().unwrap_or_default();
        let ["arn", partition, "lambda", region, account, "function", name] =
            [next(), next(), next(), next(), next(), next(), next()]
        else {
            return None;
        };
        let qualifier = fields.next();
        let mut all = [partition, region, account, name].into_iter().chain(qualifier);
        let is_whole = all.all(|field| !field.is_empty()) && fields.next().is_none();
        is_whole.then_some(Self { partition, region, account, name, qualifier })
    }

    fn to_arn(self) -> FunctionArn {
        let Self { partition, region, account, name, qualifier } = self;
        let [partition, region, account, name] = [partition, region, account, name].map(Into::into);
        FunctionArn { partition, region, account, name, qualifier: qualifier.map(Into::into) }
    }

    fn name_a_place(&self) -> bool {
        is_account(self.account) && is_place(self.partition) && is_place(self.region)
    }

    fn name_a_function(&self) -> bool {
        self.name_a_place() && is_name(self.name) && self.qualifier.is_none_or(is_qualifier)
    }
}

fn is_account(account: &str) -> bool {
    account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Returns true if `name` could be a partition or a region: only lower-case letters, digits and hyphens.
fn is_place(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Returns true if `qualifier` has the form of a version or an alias, or is `$LATEST` or, for Lambda Managed Instances,
/// `$LATEST.PUBLISHED`.
fn is_qualifier(qualifier: &str) -> bool {
    is_name(qualifier) || matches!(qualifier, "$LATEST" | "$LATEST.PUBLISHED")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_url_has_the_domain_of_its_partition() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/queue-urls.json");
        let urls: BTreeMap<String, String> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let parsed = urls.iter().filter_map(|(arn, url)| Some((arn.parse::<QueueArn>().ok()?, url)));
        let parsed: Vec<_> = parsed.collect();
        assert_eq!(parsed.len(), 8);
        for (arn, url) in parsed {
            assert_eq!(arn.url(), *url);
        }
    }
}
