use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How the metadata travels with the payload. [`open`](crate::open) always understands both.
///
/// ```
/// use comeback_envelope::Style;
///
/// assert_eq!("inline".parse(), Ok(Style::Inline));
/// assert_eq!(Style::default().name(), "wrap");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", try_from = "String")]
pub enum Style {
    /// `{"_retry_metadata": …, "_original_payload": …}`: any payload, and the target unwraps it.
    #[default]
    Wrap,
    /// `_retry_metadata` as one more key of the payload, for targets that ignore unknown keys.
    /// A payload that is not an object is wrapped even then.
    Inline,
}

impl Style {
    /// Every style, in the order of the documentation.
    pub const ALL: [Self; 2] = [Self::Wrap, Self::Inline];

    /// `wrap` or `inline`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wrap => "wrap",
            Self::Inline => "inline",
        }
    }
}

/// There is no style of this name. Names are lower case, and nothing is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownStyle;

impl FromStr for Style {
    type Err = UnknownStyle;

    fn from_str(name: &str) -> Result<Self, UnknownStyle> {
        Self::ALL.into_iter().find(|style| style.name() == name).ok_or(UnknownStyle)
    }
}

/// A style is read by its name, since serde's own reader of an enum accepts `{"inline":null}` as well.
impl TryFrom<String> for Style {
    type Error = UnknownStyle;

    fn try_from(name: String) -> Result<Self, UnknownStyle> {
        name.parse()
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for UnknownStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be wrap or inline")
    }
}

impl std::error::Error for UnknownStyle {}
