use std::fmt;
use std::str::FromStr;

/// A function as an operator names it: `NAME`, `NAME:QUALIFIER`, or either as an ARN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionName {
    /// All of the ARN before the name, without its last colon, if an ARN was given.
    pub(crate) place: Option<String>,
    /// The name.
    pub name: String,
    /// The alias or version, if one was given. `$LATEST` counts as none: it is the function itself.
    pub qualifier: Option<String>,
    /// Whether it was named as `$LATEST`, and so without its aliases and versions.
    pub is_latest: bool,
}

/// What cannot name a function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no function; give NAME, NAME:ALIAS, NAME:VERSION or a function's ARN")]
pub struct BadFunctionName(String);

impl FunctionName {
    /// What Lambda's API takes as `FunctionName`.
    #[must_use]
    pub fn unqualified(&self) -> String {
        match &self.place {
            Some(place) => format!("{place}:{}", self.name),
            None => self.name.clone(),
        }
    }

    /// Whether it names the function of this ARN: without a qualifier of its own, whatever version or alias that is.
    #[must_use]
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
    type Err = BadFunctionName;

    fn from_str(text: &str) -> Result<Self, BadFunctionName> {
        let bad = || BadFunctionName(text.to_owned());
        let fields: Vec<&str> = text.split(':').collect();
        let (place, rest) = match fields.as_slice() {
            ["arn", _, "lambda", _, _, "function", rest @ ..] => (Some(fields[..6].join(":")), rest),
            rest => (None, rest),
        };
        let (name, qualifier) = match rest {
            [name] => (*name, None),
            [name, qualifier] => (*name, Some(*qualifier)),
            _ => return Err(bad()),
        };
        let is_name = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        if !is_name(name) || !qualifier.is_none_or(|it| is_name(it) || it == "$LATEST") {
            return Err(bad());
        }
        let is_latest = qualifier == Some("$LATEST");
        let qualifier = qualifier.filter(|_| !is_latest).map(Into::into);
        Ok(Self { place, name: name.to_owned(), qualifier, is_latest })
    }
}

/// As it would be typed.
impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.qualifier.iter().try_for_each(|qualifier| write!(f, ":{qualifier}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let expected = format!(
                "{text:?} names no function; give NAME, NAME:ALIAS, NAME:VERSION or a function's ARN"
            );
            assert_eq!(refused.to_string(), expected);
        }
    }
}
