use comeback_delivery::{Cause, ErrorKind};
use comeback_engine::Reason;

use super::queue::{LetterQueue, Received};

/// What is done with a letter before it is deleted.
pub(super) trait Deed {
    /// What is kept of it for that.
    type Prepared;

    /// Whether it can be done, and what it takes.
    fn prepare(&self, received: &Received) -> Result<Self::Prepared, Reason>;

    /// Does it. The letters of those that are `Ok` are safe elsewhere, and are deleted.
    async fn perform<Q: LetterQueue>(
        &mut self,
        queue: &Q,
        prepared: Vec<Self::Prepared>,
    ) -> Vec<Result<(), Trouble>>;
}

/// Why something could not be done.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    pub(super) why: String,
    /// It would be the same with every other letter.
    pub(super) of_all: bool,
}

impl Trouble {
    /// `action` is the call's IAM action.
    pub(super) fn of(action: &str, cause: &Cause) -> Self {
        let kind = cause.error().map(|error| error.kind);
        let of_all = matches!(kind, Some(ErrorKind::Denied | ErrorKind::Missing));
        let remedy = match kind {
            Some(ErrorKind::Denied) => "; docs/operate.md lists the permissions of each command",
            _ => "",
        };
        Self { why: format!("{action}: {cause}{remedy}"), of_all }
    }
}
