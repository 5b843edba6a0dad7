//! An entry of the table of settings, and the types and readers made from the table.

use std::fmt;
use std::ops::RangeInclusive;

use comeback_backoff::Jitter;
use comeback_envelope::Style;

use crate::setting_error::SettingError;
use crate::time::seconds;

/// A variable of the retry handler.
#[derive(Debug)]
pub struct Setting {
    /// The variable.
    pub name: &'static str,
    /// Its meaning, without a full stop.
    pub meaning: &'static str,
    /// The values that it takes.
    pub kind: Kind,
    /// The value if the variable is not set.
    pub default: Unset,
    /// The events or the deployment that the setting applies to.
    pub scope: Scope,
}

/// The events or the deployment that a [`Setting`] applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The retries of a function's events: an entry of `POLICIES` may set it too.
    Function,
    /// The retries of all events of the queue.
    Stack,
    /// The handler's place in an AWS account. Simulations have their own.
    Deployment,
}

/// The default of a [`Setting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unset {
    /// This value.
    Is(&'static str),
    /// No value; described in words.
    Means(&'static str),
}

/// The values that a [`Setting`] takes.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole seconds, or a duration such as `24h`.
    Seconds {
        /// In seconds.
        range: RangeInclusive<u64>,
        /// The range's end, in words.
        most: &'static str,
    },
    /// Like `Seconds`, and at most the value of another setting.
    SecondsUpTo {
        /// In seconds.
        range: RangeInclusive<u64>,
        /// The other setting.
        most: &'static str,
    },
    /// A comma-separated list of `Seconds`, none shorter than the one before.
    SecondsList {
        /// In seconds, for each entry.
        range: RangeInclusive<u64>,
        /// The range's end, in words.
        most: &'static str,
        /// Maximum number of entries.
        entries: usize,
    },
    /// A whole number.
    Number(RangeInclusive<u64>),
    /// A whole number, or `always`.
    NumberOrAlways(RangeInclusive<u64>),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Comma-separated globs.
    Globs,
    /// Comma-separated patterns of function ARNs.
    Functions,
    /// Entries of `POLICIES`.
    Policies,
    /// The URL of a queue.
    Queue,
    /// The name of an SSM parameter.
    Parameter,
}

impl Kind {
    /// The range, if it has one: `60 s to 1209600 s (14 days)`.
    pub fn range(&self) -> String {
        match self {
            Self::Seconds { range, most } | Self::SecondsList { range, most, .. } => {
                format!("{} s to {} s ({most})", range.start(), range.end())
            }
            Self::SecondsUpTo { range, most } => format!("{} s to {most}", range.start()),
            Self::Number(range) => format!("{} to {}", range.start(), range.end()),
            Self::NumberOrAlways(range) => format!("{} to {}, or always", range.start(), range.end()),
            Self::Choice(_)
            | Self::Globs
            | Self::Functions
            | Self::Policies
            | Self::Queue
            | Self::Parameter => self.form(),
        }
    }

    /// The form of its text.
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

/// `full, equal, decorrelated or none`
pub(crate) fn alternatives(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

impl Setting {
    /// The error for text that is not a value of the setting.
    pub fn unreadable(&self, value: &str) -> SettingError {
        SettingError::Unreadable { name: self.name, value: value.to_owned(), form: self.kind.form() }
    }

    /// The word that a [`Kind::Choice`] is set to, or its default.
    ///
    /// # Errors
    ///
    /// Another word.
    pub fn chosen(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<&'static str, SettingError> {
        match (&self.kind, self.default, lookup(self.name)) {
            (_, Unset::Is(word), None) => Ok(word),
            (Kind::Choice(words), _, Some(text)) => {
                let word = words.iter().find(|word| **word == text.trim());
                word.copied().ok_or_else(|| self.unreadable(&text))
            }
            _ => panic!("BUG: {} is not a choice with a default", self.name),
        }
    }

    pub(crate) fn default_value<T: Value>(&self) -> T {
        let value = match self.default {
            Unset::Is(text) => T::read(text, &self.kind),
            Unset::Means(_) => T::nothing(),
        };
        value.expect("BUG: a default that its kind refuses")
    }

    /// The variable's value. If it cannot be read, an error is noted and the default used, so that the others are still checked.
    pub(crate) fn read<T: Value>(
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

    pub(crate) fn out_of_range(&self, value: &impl Value) -> Option<SettingError> {
        let value = value.outside(&self.kind)?;
        Some(SettingError::OutOfRange { name: self.name, value, range: self.kind.range() })
    }
}

/// The value of a setting.
pub(crate) trait Value: Sized {
    /// Reads it from trimmed text.
    fn read(text: &str, kind: &Kind) -> Option<Self>;

    /// The default of settings that have none in text.
    fn nothing() -> Option<Self> {
        None
    }

    /// The value as text, if it is outside the range of its kind.
    fn outside(&self, _: &Kind) -> Option<String> {
        None
    }
}

impl Value for u64 {
    fn read(text: &str, kind: &Kind) -> Option<Self> {
        if matches!(kind, Kind::Number(_)) { text.parse().ok() } else { seconds(text).ok() }
    }

    fn outside(&self, kind: &Kind) -> Option<String> {
        match kind {
            Kind::Number(range) => (!range.contains(self)).then(|| self.to_string()),
            Kind::Seconds { range, .. } => (!range.contains(self)).then(|| format!("{self} s")),
            // Checked with the other setting.
            _ => None,
        }
    }
}

/// A list of seconds. It is checked as a whole.
impl Value for Vec<u64> {
    fn read(text: &str, _: &Kind) -> Option<Self> {
        text.split(',').map(|entry| seconds(entry.trim()).ok()).collect()
    }

    fn nothing() -> Option<Self> {
        Some(Self::new())
    }
}

/// A comma-separated list, without empty entries and white space around entries.
impl Value for Vec<String> {
    fn read(text: &str, _: &Kind) -> Option<Self> {
        Some(text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(Into::into).collect())
    }

    fn nothing() -> Option<Self> {
        Some(Self::new())
    }
}

impl Value for Jitter {
    fn read(text: &str, _: &Kind) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for Style {
    fn read(text: &str, _: &Kind) -> Option<Self> {
        text.parse().ok()
    }
}

/// `on` or `off`.
impl Value for bool {
    fn read(text: &str, _: &Kind) -> Option<Self> {
        match text {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        }
    }
}

/// `HIDE_UP_TO`: the number of messages that may be hidden at once. Others wait as delayed messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HideUpTo {
    /// Every message is hidden, however many there are.
    Always,
    /// About this many; with 0, every message is sent again.
    UpTo(u64),
}

impl Value for HideUpTo {
    fn read(text: &str, _: &Kind) -> Option<Self> {
        if text == "always" { Some(Self::Always) } else { text.parse().ok().map(Self::UpTo) }
    }

    fn outside(&self, kind: &Kind) -> Option<String> {
        match (self, kind) {
            (Self::UpTo(messages), Kind::NumberOrAlways(range)) if !range.contains(messages) => {
                Some(messages.to_string())
            }
            _ => None,
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

/// Makes the table, [`Settings`](crate::Settings) with a field for each entry that has one, and their reader.
macro_rules! settings {
    ($($name:literal $(=> $field:ident: $type:ty)? {
        meaning: $meaning:literal,
        $($column:ident: $value:expr,)*
    })*) => {
        /// Every variable of the retry handler, in the order of docs/settings.md.
        pub const SETTINGS: &[Setting] = &[$(Setting { name: $name, meaning: $meaning, $($column: $value),* }),*];

        /// The settings of a policy, unchecked. Durations are in seconds.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Settings {
            $($(#[doc = concat!("`", $name, "`: ", $meaning, ".")] pub $field: $type,)?)*
            /// The handler itself, if it runs as a Lambda.
            pub handler: Option<HandlerFunction>,
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($($field: Setting::named($name).default_value(),)?)* handler: None }
            }
        }

        impl Settings {
            /// The settings by `lookup`, and an error for each that cannot be read.
            pub(crate) fn read(lookup: impl Fn(&str) -> Option<String>) -> (Self, Vec<SettingError>) {
                let mut errors = Vec::new();
                let settings = Self {
                    $($($field: Setting::named($name).read(&lookup, &mut errors),)?)*
                    handler: HandlerFunction::read(&lookup),
                };
                (settings, errors)
            }

            /// An error for each setting outside its own range.
            pub(crate) fn out_of_range(&self) -> impl Iterator<Item = SettingError> {
                [$($(Setting::named($name).out_of_range(&self.$field),)?)*].into_iter().flatten()
            }
        }
    };
}
pub(crate) use settings;
