use std::process::exit;

use comeback_operate::{Account, Deployment, Failure, Interrupt};

use crate::failure;
use crate::operate::common::Common;

/// What one run of a command has.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) account: Account,
    /// Raised by the first Ctrl-C. The second ends the command at once.
    pub(crate) interrupt: Interrupt,
    pub(crate) common: Common,
}

impl Session {
    /// The deployment that the flags name.
    pub(crate) async fn deployment(&self) -> Result<Deployment, Failure> {
        Deployment::find(&self.account, self.common.handler.as_ref(), &self.common.stack).await
    }
}

/// Runs a command that talks to AWS to its end.
pub(crate) fn run_in_session(
    common: &Common,
    command: impl AsyncFnOnce(Session) -> Result<(), failure::Failure>,
) -> Result<(), failure::Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (raise, interrupt) = Interrupt::new();
        tokio::spawn(async move {
            // Where Ctrl-C cannot be listened to, it ends the command as it always does.
            if tokio::signal::ctrl_c().await.is_ok() && raise.send(true).is_ok() {
                anstream::eprintln!("\nstopping; press Ctrl-C again to end at once");
                if tokio::signal::ctrl_c().await.is_ok() {
                    exit(130);
                }
            }
        });
        let account = Account::connect(common.region.clone(), common.profile.as_deref()).await?;
        command(Session { account, interrupt, common: common.clone() }).await
    })
}
