use std::time::Duration;

use comeback_engine::{EditError, PauseTarget, Pauses, Timestamp};

use crate::pauses::target::pause_target;
use crate::pauses::writing::Edit;
use crate::pauses::{concurrency, parameter, parameter_of};
use crate::{Account, Deployment, Failure, FunctionName, Interrupt, OpenPause};

/// A pause that is to be ended.
#[derive(Clone, Debug)]
pub struct ResumeOrder {
    /// The function of the pause; every function if there is none.
    pub function: Option<FunctionName>,
    /// What was due in the pause comes back over this time.
    pub spread: Duration,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resumed {
    /// The pauses that were ended. None, if none was open.
    pub ended: Vec<OpenPause>,
    /// The reserved concurrency that somebody else has set meanwhile, and that stays.
    pub other_concurrency: Option<u32>,
    /// Other open pauses that hold the function still.
    pub still: Vec<OpenPause>,
}

/// The end of a target's pauses.
struct Close(PauseTarget, Duration, Timestamp);

impl Edit for Close {
    fn make(&self, pauses: &Pauses) -> Result<Pauses, EditError> {
        let closed = pauses.close(&self.0, self.1, self.2)?.0.tidied(self.2);
        closed.check_size().map(|()| closed)
    }

    fn is_in(&self, pauses: &Pauses) -> bool {
        // The end is rounded up to a second.
        let ended = self.2.saturating_add(Duration::from_secs(1));
        pauses.iter().all(|pause| pause.target != self.0 || pause.is_over(ended))
    }
}

impl ResumeOrder {
    /// Ends the pause. The concurrency of before is restored first, so that a run that was killed in between is resumed by
    /// repeating it.
    ///
    /// # Errors
    ///
    /// The handler reads no pauses, or does not retry the function; too long a spread; a call that does not work.
    pub async fn carry_out(
        &self,
        account: &Account,
        deployment: &Deployment,
        now: Timestamp,
        interrupt: &Interrupt,
    ) -> Result<Resumed, Failure> {
        let name = parameter_of(deployment)?;
        let target = pause_target(deployment, self.function.as_ref())?;
        let pauses = crate::pauses::read(account, deployment).await?.unwrap_or_default();
        let mut resumed = Resumed {
            still: pauses
                .iter()
                .filter(|pause| {
                    pause.is_active(now) && pause.target != target && overlaps(&pause.target, &target)
                })
                .map(|pause| OpenPause::of(pause, now))
                .collect(),
            ..Resumed::default()
        };
        let ended = match pauses.close(&target, self.spread, now) {
            Ok((_, ended)) => ended,
            Err(EditError::NotPaused(_)) => return Ok(resumed),
            Err(error) => return Err(error.into()),
        };
        for pause in &ended {
            if let (Some(function), true) = (&self.function, OpenPause::of(pause, now).is_hard) {
                resumed.other_concurrency =
                    concurrency::restore(account, function, pause.concurrency).await?;
            }
        }
        parameter::edit(account, name, &Close(target, self.spread, now), interrupt).await?;
        resumed.ended = ended.iter().map(|pause| OpenPause::of(pause, now)).collect();
        Ok(resumed)
    }
}

/// Whether a pause of the one target holds events of the other.
fn overlaps(pause: &PauseTarget, other: &PauseTarget) -> bool {
    match other {
        PauseTarget::All => false,
        PauseTarget::Functions(pattern) => pause.covers(&pattern.to_string()),
    }
}
