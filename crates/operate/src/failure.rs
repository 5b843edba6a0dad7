//! The reasons why a question or a change failed, with one variant for each exit code of the command.

use crate::text::Text;

/// The reason why a question was not answered, or a change was not made.
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
    /// Something is missing, denied or unreachable (1).
    CouldNot(Text),
    /// The request itself was refused (2).
    Refused(Text),
    /// It ran, and something is broken or left undone (3).
    Undone(Text),
    /// The operator did not confirm it (4). Nothing was changed.
    NotConfirmed(Text),
    /// The operator stopped it (130), with what was done so far.
    #[error("interrupted: {0}")]
    Interrupted(Text),
}

impl Failure {
    /// A failure because something is missing, denied or unreachable.
    pub fn could_not(text: impl Into<Text>) -> Self {
        Self::CouldNot(text.into())
    }

    /// A refusal of the request.
    pub fn refused(text: impl Into<Text>) -> Self {
        Self::Refused(text.into())
    }

    /// A failure that leaves something broken or undone.
    pub fn undone(text: impl Into<Text>) -> Self {
        Self::Undone(text.into())
    }

    /// A plan that the operator did not confirm.
    pub fn not_confirmed(text: impl Into<Text>) -> Self {
        Self::NotConfirmed(text.into())
    }

    /// An interruption by the operator.
    pub fn interrupted(text: impl Into<Text>) -> Self {
        Self::Interrupted(text.into())
    }

    /// The text, with suggested commands as values.
    pub fn text(&self) -> Text {
        match self {
            Self::CouldNot(text) | Self::Refused(text) | Self::Undone(text) | Self::NotConfirmed(text) => {
                text.clone()
            }
            Self::Interrupted(text) => Text::from("interrupted: ").and(text.clone()),
        }
    }

    /// The exit code of a command that ends with it.
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
