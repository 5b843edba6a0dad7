use std::time::Duration;

use comeback_engine::{Concurrency, EditError, Pause, Pauses, Timestamp};

use crate::pauses::target::{check_exists, pause_target};
use crate::pauses::writing::Edit;
use crate::pauses::{concurrency, parameter, parameter_of};
use crate::{Account, Deployment, Failure, FunctionName, Interrupt, OpenPause};

/// A pause that is to be opened.
#[derive(Clone, Debug)]
pub struct PauseOrder {
    /// The function; every function if there is none.
    pub function: Option<FunctionName>,
    /// Its end, in whole seconds; `None` if `resume` ends it.
    pub until: Option<Timestamp>,
    /// What is due in it comes back over this time after that end.
    pub spread: Duration,
    /// The reason.
    pub why: String,
    /// Whether new events stop too.
    pub hard: bool,
}

/// What came of a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Paused {
    /// It is open now.
    Opened(OpenPause),
    /// Such a pause was open already.
    WasOpen(OpenPause),
}

/// A pause that is written by an operator.
struct Open(Pause, Timestamp);

impl Edit for Open {
    fn make(&self, pauses: &Pauses) -> Result<Pauses, EditError> {
        let opened = pauses.open(self.0.clone(), self.1)?.tidied(self.1);
        opened.check_size().map(|()| opened)
    }

    fn is_in(&self, pauses: &Pauses) -> bool {
        pauses.iter().any(|pause| *pause == self.0)
    }
}

impl PauseOrder {
    /// Checks that the order can be carried out, without looking at the pauses.
    ///
    /// # Errors
    ///
    /// The handler reads no pauses, or does not retry the function; a hard pause of more or less than one function.
    pub fn check(&self, deployment: &Deployment) -> Result<(), Failure> {
        parameter_of(deployment)?;
        pause_target(deployment, self.function.as_ref())?;
        match &self.function {
            None if self.hard => Err(Failure::Refused(
                "--hard sets the reserved concurrency of one function: name it instead of --all".into(),
            )),
            Some(FunctionName { name, qualifier: Some(_), .. }) if self.hard => {
                Err(Failure::Refused(format!(
                    "reserved concurrency is the whole function's: give {name} without a qualifier, or leave out --hard"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Opens the pause. The concurrency of before is written first and set to 0 afterwards, so that a run that was killed
    /// in between is resumed by repeating it.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check), no such function, another open pause of the same functions, too long a list of
    /// pauses, and a call that does not work. A hard pause of a function some of whose new events would be lost.
    pub async fn carry_out(
        &self,
        account: &Account,
        deployment: &Deployment,
        now: Timestamp,
        interrupt: &Interrupt,
    ) -> Result<Paused, Failure> {
        self.check(deployment)?;
        let name = parameter_of(deployment)?;
        let target = pause_target(deployment, self.function.as_ref())?;
        if let Some(function) = &self.function {
            check_exists(account, deployment, function).await?;
        }
        let hard = self.function.as_ref().filter(|_| self.hard);
        if let Some(function) = hard {
            concurrency::check_nothing_is_lost(account, function, &deployment.retry_queue.arn).await?;
        }
        let pauses = crate::pauses::read(account, deployment).await?.unwrap_or_default();
        if let Some(open) = pauses.iter().find(|pause| pause.target == target && self.is_met_by(pause, now)) {
            if let Some(function) = hard {
                concurrency::stop(account, function).await?;
            }
            return Ok(Paused::WasOpen(OpenPause::of(open, now)));
        }
        let pause = Pause {
            target,
            from: Timestamp::from_secs(now.as_secs()),
            until: self.until,
            spread: self.spread,
            by: Some(caller(account).await?),
            why: Some(self.why.clone()),
            concurrency: if hard.is_some() { Concurrency::WasUnreserved } else { Concurrency::Untouched },
        };
        // What would be refused is refused before anything else is asked.
        Open(pause.clone(), now).make(&pauses)?;
        let concurrency = match hard {
            Some(function) => concurrency::of_before(account, function).await?,
            None => Concurrency::Untouched,
        };
        let pause = Pause { concurrency, ..pause };
        parameter::edit(account, name, &Open(pause.clone(), now), interrupt).await?;
        if let Some(function) = hard {
            concurrency::stop(account, function).await?;
        }
        Ok(Paused::Opened(OpenPause::of(&pause, now)))
    }

    /// Whether an open pause does all that this one would do.
    fn is_met_by(&self, pause: &Pause, now: Timestamp) -> bool {
        let is_hard = pause.concurrency != Concurrency::Untouched;
        pause.is_active(now) && pause.until == self.until && is_hard == self.hard
    }
}

/// Who the credentials belong to: the last part of their ARN.
async fn caller(account: &Account) -> Result<String, Failure> {
    let answer = account.sts.get_caller_identity().send().await;
    let answer = answer.map_err(|error| Failure::of_call("sts:GetCallerIdentity", "the caller", &error))?;
    let arn = answer.arn().unwrap_or_default();
    Ok(arn.rsplit(['/', ':']).next().unwrap_or(arn).to_owned())
}
