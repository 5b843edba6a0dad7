//! The error type of this crate.

use crate::text::Text;

/// The reason why a command failed, with the command's exit code.
///
/// ```
/// use comeback_operate::Failure;
///
/// let failure = Failure::could_not("Lambda has no function orders");
/// assert_eq!(failure.exit_code(), 1);
/// assert_eq!(failure.to_string(), "Lambda has no function orders");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub enum Failure {
    /// Something is missing, denied or unreachable. Exit code 1.
    CouldNot(Text),
    /// The request itself is invalid. Exit code 2.
    Refused(Text),
    /// The command ran, but it found something broken or left something undone. Exit code 3.
    Undone(Text),
    /// The operator did not confirm the plan, so nothing was changed. Exit code 4.
    NotConfirmed(Text),
    /// The operator stopped the command. The text says what had already been done. Exit code 130.
    #[error("interrupted: {0}")]
    Interrupted(Text),
}

impl Failure {
    /// A [`Failure::CouldNot`] with this text.
    pub fn could_not(text: impl Into<Text>) -> Self {
        Self::CouldNot(text.into())
    }

    /// A [`Failure::Refused`] with this text.
    pub fn refused(text: impl Into<Text>) -> Self {
        Self::Refused(text.into())
    }

    /// A [`Failure::Undone`] with this text.
    pub fn undone(text: impl Into<Text>) -> Self {
        Self::Undone(text.into())
    }

    /// A [`Failure::NotConfirmed`] with this text.
    pub fn not_confirmed(text: impl Into<Text>) -> Self {
        Self::NotConfirmed(text.into())
    }

    /// A [`Failure::Interrupted`] with this text.
    pub fn interrupted(text: impl Into<Text>) -> Self {
        Self::Interrupted(text.into())
    }

    /// The message for the operator.
    pub fn text(&self) -> Text {
        match self {
            Self::CouldNot(text) | Self::Refused(text) | Self::Undone(text) | Self::NotConfirmed(text) => {
                text.clone()
            }
            Self::Interrupted(text) => Text::from("interrupted: ").and(text.clone()),
        }
    }

    /// The exit code of a command that ends with this failure.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::CouldNot(_) => 1,
            Self::Refused(_) => 2,
            Self::Undone(_) => 3,
            Self::NotConfirmed(_) => 4,
            Self::Interrupted(_) => 130,
        }
    }
}

pub(crate) fn seen<T>(fact: &Result<T, Failure>) -> Result<&T, Failure> {
    fact.as_ref().map_err(Clone::clone)
}
