use std::error::Error;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use comeback_delivery::{ErrorKind, classify};

/// Why a command did not do its work; one variant for each exit code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It could not run: something is missing, denied or out of reach (1).
    #[error("{0}")]
    CouldNot(String),
    /// Its arguments were refused (2).
    #[error("{0}")]
    Refused(String),
    /// It ran, and something is broken or left undone (3). Its report says what.
    #[error("{0}")]
    Undone(String),
    /// The operator did not confirm it (4). Nothing was changed.
    #[error("{0}")]
    NotConfirmed(String),
    /// The operator stopped it (130), with what was done so far.
    #[error("interrupted: {0}")]
    Interrupted(String),
}

impl Failure {
    /// A call to AWS that did not work. `action` is its IAM action, such as `sqs:GetQueueAttributes`; `of` is what it was
    /// about.
    pub fn of_call<E>(action: &str, of: &str, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let error = classify(error);
        let remedy = match error.kind {
            ErrorKind::Denied => "; docs/operate.md lists the permissions of each command",
            _ => "",
        };
        Self::CouldNot(format!("{action} of {of}: {error}{remedy}"))
    }

    /// The command's exit code.
    #[must_use]
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
