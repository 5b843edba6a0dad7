//! Where the allow-list stands, and its change there.

pub(crate) mod parameter;
mod variable;

use std::time::Duration;

use crate::attach::allow_list;
use crate::attach::change::ListPlace;
use crate::{Account, Failure, Interrupt};

/// How often it is looked whether an update has ended, and how many times: half an hour.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const LOOKS: usize = 900;

/// Puts a function on the allow-list, or takes it off, and waits until that is in force. The list is read anew just
/// before, so that nobody else's entry is lost.
pub(crate) async fn edit(
    account: &Account,
    place: &ListPlace,
    arn: &str,
    listed: bool,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let edit = |list: &str| if listed { allow_list::with(list, arn) } else { allow_list::without(list, arn) };
    match place {
        ListPlace::Stack(stack) => parameter::edit(account, stack, &edit, interrupt).await,
        ListPlace::Function(name) => variable::edit(account, name, &edit, interrupt).await,
    }
}

async fn pause(interrupt: &Interrupt, what: &str) -> Result<(), Failure> {
    tokio::select! {
        () = tokio::time::sleep(LOOK_EVERY) => Ok(()),
        () = interrupt.raised() => {
            Err(Failure::Interrupted(format!("{what} goes on; repeat the command when it has ended")))
        }
    }
}
