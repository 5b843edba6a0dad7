//! The types that describe a setting, and the macro that generates the struct `Settings` and its reader from the table
//! of settings.

use std::fmt;
use std::ops::RangeInclusive;

use comeback_backoff::Jitter;
use comeback_envelope::Style;

use crate::time::seconds;

/// The reason for refusing a setting: what is wrong, and what the setting must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingError(pub(crate) String);

/// An environment variable of the retry handler, as described in the table of settings.
#[derive(Debug)]
pub struct Setting {
    /// The variable's name, such as `MAX_AGE`.
    pub name: &'static str,
    /// The purpose of the variable, as a phrase without a full stop.
    pub meaning: &'static str,
    /// The values that the variable accepts.
    pub kind: Kind,
    /// The value that applies if the variable is not set.
    pub default: Unset,
    /// The scope of the setting.
    pub scope: Scope,
}

/// The scope of a [`Setting`]: a function, the whole queue, or a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each function may have its own value, from an entry in `POLICIES`.
    Function,
    /// The setting applies to all events in the queue.
    Stack,
    /// A setting of the deployment rather than of the retry policy, such as the URL of a queue.
    Deployment,
}

/// The value of a [`Setting`] whose variable is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unset {
    /// The variable has this value by default.
    Is(&'static str),
    /// A description of a default that cannot be written as a value.
    Means(&'static str),
}

/// The values that a [`Setting`] accepts.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of seconds, or a duration such as `24h`.
    Seconds {
        /// The accepted range, in seconds.
        range: RangeInclusive<u64>,
        /// The maximum in words, such as `14 days`.
        most: &'static str,
    },
    /// Like `Seconds`, but the maximum is the value of another setting.
    SecondsUpTo {
        /// The accepted range, in seconds.
        range: RangeInclusive<u64>,
        /// The name of the setting whose value is the maximum for this one.
        most: &'static str,
    },
    /// A comma-separated list of durations, none shorter than the one before it.
    SecondsList {
        /// The accepted range of each entry, in seconds.
        range: RangeInclusive<u64>,
        /// The maximum in words, such as `14 days`.
        most: &'static str,
        /// Maximum number of entries in the list.
        entries: usize,
    },
    /// A whole number in this range.
    Number(RangeInclusive<u64>),
    /// A whole number in this range, or the word `always`.
    NumberOrAlways(RangeInclusive<u64>),
    /// One of the listed words.
    Choice(&'static [&'static str]),
    /// A comma-separated list of globs.
    Globs,
    /// A comma-separated list of function ARNs, in which function names may contain `*`.
    Functions,
    /// Entries in the form of `POLICIES`: `PATTERN VARIABLE=VALUE …`.
    Policies,
    /// The URL of an SQS queue.
    Queue,
    /// The name of an SSM parameter.
    Parameter,
}

impl Kind {
    /// Returns the accepted range in words, such as `60 s to 1209600 s (14 days)`. If the values have no range, returns
    /// their form.
    pub fn range(&self) -> String {
        match self {
            Self::Seconds { range, most } | Self::SecondsList { range, most, .. } => {
                format!("{} s to {} s ({most})", range.start(), range.end())
            }
            Self::SecondsUpTo { range, most } => format!("{} s to {most}", range.start()),
            Self::Number(range) => format!("{} to {}", range.start(), range.end()),
            Self::NumberOrAlways(range) => format!("{} to {}, or always", range.start(), range.end()),
            _ => self.form(),
        }
    }

    fn form(&self) -> String {
        match self {
            Self::Seconds { .. } | Self::SecondsUpTo { .. } => {
                "whole seconds, or a duration such as 90s, 24h or 14d"
            }
            Self::SecondsList { .. } => "whole seconds or durations, such as 20s,5m,30m,2h",
            Self::Number(_) => "a whole number",
            Self::NumberOrAlways(_) => return self.range(),
            Self::Choice(words) => return alternatives(words),
            Self::Globs => "comma-separated globs",
            Self::Functions => "comma-separated function ARNs",
            Self::Policies => "entries separated by ;",
            Self::Queue => "a queue's URL (https://sqs.REGION.amazonaws.com/ACCOUNT/NAME)",
            Self::Parameter => "the name of an SSM parameter: letters, digits and _ . - /, 1011 at most",
        }
        .to_owned()
    }
}

/// Joins words as alternatives, as in `full, equal, decorrelated or none`.
pub(crate) fn alternatives(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

impl Setting {
    /// The error for a value that the setting does not accept.
    pub fn unreadable(&self, value: &str) -> SettingError {
        SettingError(format!("{} is {value:?}; it must be {}", self.name, self.kind.form()))
    }

    pub(crate) fn default_value<T: SettingValue>(&self) -> T {
        let value = match self.default {
            Unset::Is(text) => T::read(text, &self.kind),
            Unset::Means(_) => T::NOTHING,
        };
        value.expect("BUG: a default that its kind refuses")
    }

    /// Returns the variable's value or its default. If the value is unreadable, adds an error and returns
    /// the default.
    pub(crate) fn read<T: SettingValue>(
        &self,
        lookup: impl Fn(&str) -> Option<String>,
        errors: &mut Vec<SettingError>,
    ) -> T {
        let Some(text) = lookup(self.name) else { return self.default_value() };
        T::read(text.trim(), &self.kind).unwrap_or_else(|| {
            errors.push(self.unreadable(&text));
            self.default_value()
        })
    }

    pub(crate) fn out_of_range(&self, value: &impl SettingValue) -> Option<SettingError> {
        let (range, unit) = match &self.kind {
            Kind::Number(range) | Kind::NumberOrAlways(range) => (range, ""),
            Kind::Seconds { range, .. } => (range, " s"),
            // `SecondsUpTo` is checked with the setting that gives its maximum.
            _ => return None,
        };
        let number = value.number().filter(|number| !range.contains(number))?;
        Some(SettingError(format!("{} is {number}{unit}; it must be {}", self.name, self.kind.range())))
    }
}

pub(crate) trait SettingValue: Sized {
    /// The value of an unset setting that uses [`Unset::Means`]. `None` if no setting of this type uses it.
    const NOTHING: Option<Self> = None;

    /// Parses the value from a trimmed string; `None` if the string is not of this kind.
    fn read(text: &str, kind: &Kind) -> Option<Self>;

    /// The value to compare with the setting's range; `None` if it is not a single number.
    fn number(&self) -> Option<u64> {
        None
    }
}

impl SettingValue for u64 {
    fn read(text: &str, kind: &Kind) -> Option<Self> {
        if matches!(kind, Kind::Number(_)) { text.parse().ok() } else { seconds(text).ok() }
    }

    fn number(&self) -> Option<u64> {
        Some(*self)
    }
}

/// A list of numbers separated by commas.
impl SettingValue for Vec<u64> {
    const NOTHING: Option<Self> = Some(Self::new());

    fn read(text: &str, _: &Kind) -> Option<Self> {
        text.split(',').map(|entry| seconds(entry.trim()).ok()).collect()
    }
}

impl SettingValue for Vec<String> {
    const NOTHING: Option<Self> = Some(Self::new());

    fn read(text: &str, _: &Kind) -> Option<Self> {
        Some(text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(Into::into).collect())
    }
}

impl SettingValue for Jitter {
    fn read(text: &str, _: &Kind) -> Option<Self> {
        text.parse().ok()
    }
}

impl SettingValue for Style {
    fn read(text: &str, _: &Kind) -> Option<Self> {
        text.parse().ok()
    }
}

impl SettingValue for bool {
    fn read(text: &str, _: &Kind) -> Option<Self> {
        match text {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        }
    }
}

/// The value of `HIDE_UP_TO`: the number of messages that may be hidden at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HideUpTo {
    /// Every message is hidden, however many there are.
    Always,
    /// About this many messages are hidden at once, and all others are moved.
    UpTo(u64),
}

impl SettingValue for HideUpTo {
    fn read(text: &str, _: &Kind) -> Option<Self> {
        if text == "always" { Some(Self::Always) } else { text.parse().ok().map(Self::UpTo) }
    }

    fn number(&self) -> Option<u64> {
        match self {
            Self::Always => None,
            Self::UpTo(messages) => Some(*messages),
        }
    }
}

impl fmt::Display for HideUpTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::UpTo(messages) => messages.fmt(f),
        }
    }
}

/// Generates the constant `SETTINGS` (the table of all settings), the struct [`Settings`](crate::Settings), and the
/// function that reads the settings.
macro_rules! settings {
    ($($name:literal $(=> $field:ident: $type:ty)? {
        meaning: $meaning:literal,
        $($column:ident: $value:expr,)*
    })*) => {
        /// Every environment variable of the retry handler, in the same order as in docs/settings.md.
        pub const SETTINGS: &[Setting] = &[$(Setting { name: $name, meaning: $meaning, $($column: $value),* }),*];

        /// Unchecked settings of a policy, with durations in seconds.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Settings {
            $($(#[doc = concat!("`", $name, "`: ", $meaning, ".")] pub $field: $type,)?)*
            /// The handler's own name and region; `None` if the program does not run as a Lambda function.
            pub handler: Option<HandlerFunction>,
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($($field: Setting::named($name).default_value(),)?)* handler: None }
            }
        }

        impl Settings {
            pub(crate) fn read(lookup: impl Fn(&str) -> Option<String>) -> (Self, Vec<SettingError>) {
                let mut errors = Vec::new();
                let settings = Self {
                    $($($field: Setting::named($name).read(&lookup, &mut errors),)?)*
                    handler: HandlerFunction::read(&lookup),
                };
                (settings, errors)
            }

            /// The error for each setting that is out of range, with the setting's name.
            pub(crate) fn out_of_range(&self) -> impl Iterator<Item = (&'static str, SettingError)> {
                let all = [$($(($name, Setting::named($name).out_of_range(&self.$field)),)?)*];
                all.into_iter().filter_map(|(name, error)| Some((name, error?)))
            }
        }
    };
}
pub(crate) use settings;
