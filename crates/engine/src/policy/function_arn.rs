use std::fmt;
use std::str::FromStr;

use wildmatch::WildMatch;

/// A function ARN's fields: `arn:partition:lambda:region:account:function:name[:qualifier]`.
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
}

/// One entry of `TARGET_FUNCTIONS`: a function ARN whose name may hold `*`.
///
/// Compared field by field, so that `*` never crosses a `:`. Without a qualifier it allows any
/// version or alias of the function; with one, only that one.
///
/// ```
/// use comeback_engine::FunctionPattern;
///
/// let pattern: FunctionPattern = "arn:aws:lambda:eu-west-1:123456789012:function:orders-*".parse()?;
/// assert!(pattern.allows("arn:aws:lambda:eu-west-1:123456789012:function:orders-eu:$LATEST"));
/// assert!(!pattern.allows("arn:aws:lambda:eu-west-1:999999999999:function:orders-eu"));
/// # Ok::<(), comeback_engine::BadPattern>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionPattern {
    partition: String,
    region: String,
    account: String,
    name: WildMatch,
    qualifier: Option<String>,
}

/// Why an entry of `TARGET_FUNCTIONS` was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// Not `arn:…:lambda:region:account:function:name[:qualifier]`.
    #[error(
        "is not a function ARN (arn:aws:lambda:REGION:ACCOUNT:function:NAME, with or without :QUALIFIER)"
    )]
    NotAFunctionArn,
    /// `*` outside the name.
    #[error("has a * outside the function's name")]
    WildcardOutsideName,
    /// A character that no name, version or alias has.
    #[error("has a character that no function's name or qualifier has")]
    BadCharacter,
}

impl FromStr for FunctionPattern {
    type Err = BadPattern;

    fn from_str(arn: &str) -> Result<Self, BadPattern> {
        let fields = Fields::of(arn).ok_or(BadPattern::NotAFunctionArn)?;
        let Fields { partition, region, account, name, qualifier } = fields;
        if [partition, region, account].into_iter().chain(qualifier).any(|field| field.contains('*')) {
            return Err(BadPattern::WildcardOutsideName);
        }
        if !is_name(&name.replace('*', "")) || !qualifier.is_none_or(is_qualifier) {
            return Err(BadPattern::BadCharacter);
        }
        let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
        if !is_account || ![partition, region].into_iter().all(is_place) {
            return Err(BadPattern::NotAFunctionArn);
        }
        Ok(Self {
            partition: partition.into(),
            region: region.into(),
            account: account.into(),
            name: WildMatch::new(name),
            qualifier: qualifier.map(Into::into),
        })
    }
}

impl FunctionPattern {
    /// Whether the function may be re-invoked. A string that is no function ARN never may.
    pub fn allows(&self, arn: &str) -> bool {
        Fields::of(arn).is_some_and(|fields| {
            self.partition == fields.partition
                && self.region == fields.region
                && self.account == fields.account
                && is_name(fields.name)
                && self.name.matches(fields.name)
                && fields.qualifier.is_none_or(is_qualifier)
                && self.qualifier.as_deref().is_none_or(|only| fields.qualifier == Some(only))
        })
    }

    /// Whether this entry, taken literally, names that function.
    pub(crate) fn is(&self, function: &HandlerFunction) -> bool {
        self.region == function.region && self.name.pattern() == function.name
    }
}

/// The retry handler's own name, from its runtime. It is never a target, whatever the patterns say:
/// it would retry its own batches. The runtime does not give its account, so a function of the same
/// name and region in another account is refused as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerFunction {
    /// `AWS_LAMBDA_FUNCTION_NAME`.
    pub name: String,
    /// `AWS_REGION`.
    pub region: String,
}

impl HandlerFunction {
    pub(crate) fn is(&self, arn: &str) -> bool {
        Fields::of(arn).is_some_and(|fields| fields.region == self.region && fields.name == self.name)
    }
}

/// Letters, digits, `-` and `_`: AWS's own pattern for function names.
fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Lowercase letters, digits and `-`, as in every partition and region.
fn is_place(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// A version or an alias, or one of the two with a `$`: the second is what Lambda Managed Instances run.
fn is_qualifier(qualifier: &str) -> bool {
    is_name(qualifier) || matches!(qualifier, "$LATEST" | "$LATEST.PUBLISHED")
}

impl fmt::Display for FunctionPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, region, account, name, qualifier } = self;
        write!(f, "arn:{partition}:lambda:{region}:{account}:function:{}", name.pattern())?;
        qualifier.iter().try_for_each(|qualifier| write!(f, ":{qualifier}"))
    }
}
