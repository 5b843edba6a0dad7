//! The parameter that holds the pauses, and what operators do to it.
//!
//! | file | holds |
//! |---|---|
//! | `parameter` | the parameter's calls |
//! | `writing` | how an edit is written so that no other operator's is lost: pure |
//! | `target` | which functions a pause is about |
//! | `pause` | [`PauseOrder`]: opening a pause |
//! | `resume` | [`ResumeOrder`]: closing it |
//! | `concurrency` | the reserved concurrency of a function that is paused hard |

mod concurrency;
mod parameter;
pub(crate) mod pause;
pub(crate) mod resume;
pub(crate) mod target;
mod writing;

use comeback_engine::{EditError, Pauses};

use crate::{Account, Deployment, Failure};

/// Reads the pauses as the handler does: without a parameter there are none. `None` if the handler reads none.
///
/// # Errors
///
/// The parameter cannot be read, or its text is no list of pauses.
pub(crate) async fn read(account: &Account, deployment: &Deployment) -> Result<Option<Pauses>, Failure> {
    let Some(name) = deployment.pauses() else { return Ok(None) };
    let (text, _) = parameter::read(account, name).await?;
    understood(name, text.as_deref()).map(Some)
}

/// The name of the parameter.
fn parameter_of(deployment: &Deployment) -> Result<&str, Failure> {
    deployment.pauses().ok_or_else(|| {
        Failure::Undone(format!(
            "the handler {} reads no pauses: deploy the current template, or set its variable PAUSES to the name of an SSM \
             parameter and allow its role ssm:GetParameter on it",
            deployment.handler
        ))
    })
}

fn understood(name: &str, text: Option<&str>) -> Result<Pauses, Failure> {
    let pauses = text.map_or(Ok(Pauses::default()), Pauses::read);
    pauses.map_err(|garbled| Failure::CouldNot(format!("parameter {name}: {garbled}")))
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        Self::Refused(error.to_string())
    }
}
