//! The parameter that holds the pauses.

use comeback_engine::Pauses;

use crate::{Account, Deployment, Failure};

/// Reads the pauses as the handler does: without a parameter there are none. `None` if the handler reads none.
///
/// # Errors
///
/// The parameter cannot be read, or its text is no list of pauses.
pub(crate) async fn read(account: &Account, deployment: &Deployment) -> Result<Option<Pauses>, Failure> {
    let Some(name) = deployment.pauses() else { return Ok(None) };
    let text = match account.ssm.get_parameter().name(name).send().await {
        Ok(answer) => answer.parameter().and_then(|parameter| parameter.value()).map(ToOwned::to_owned),
        Err(error) if error.as_service_error().is_some_and(|error| error.is_parameter_not_found()) => None,
        Err(error) => return Err(Failure::of_call("ssm:GetParameter", name, &error)),
    };
    let pauses = text.map_or(Ok(Pauses::default()), |text| Pauses::read(&text));
    pauses.map(Some).map_err(|garbled| Failure::CouldNot(format!("parameter {name}: {garbled}")))
}
