use std::time::Duration;

use aws_sdk_ssm::types::ParameterType;
use comeback_engine::Pauses;

use crate::pauses::understood;
use crate::pauses::writing::{Answer, Edit, Request, Writing};
use crate::{Account, Failure, Interrupt};

/// After a write, before it is looked whether another one came on top of it.
const SETTLE: Duration = Duration::from_secs(2);

/// A parameter's text and its version; `None` and 0 if there is no parameter.
pub(crate) async fn read(account: &Account, name: &str) -> Result<(Option<String>, i64), Failure> {
    match account.ssm.get_parameter().name(name).send().await {
        Ok(answer) => {
            let parameter = answer.parameter();
            let text = parameter.and_then(|parameter| parameter.value()).unwrap_or_default();
            Ok((Some(text.to_owned()), parameter.map_or(0, |parameter| parameter.version())))
        }
        Err(error) if error.as_service_error().is_some_and(|error| error.is_parameter_not_found()) => {
            Ok((None, 0))
        }
        Err(error) => Err(Failure::of_call("ssm:GetParameter", name, &error)),
    }
}

/// The text of an earlier version. SSM keeps a hundred.
async fn read_version(account: &Account, name: &str, version: i64) -> Result<String, Failure> {
    let mut pages = account.ssm.get_parameter_history().name(name).into_paginator().send();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| Failure::of_call("ssm:GetParameterHistory", name, &error))?;
        if let Some(earlier) = page.parameters().iter().find(|earlier| earlier.version() == version) {
            return Ok(earlier.value().unwrap_or_default().to_owned());
        }
    }
    Err(Failure::CouldNot(format!(
        "parameter {name} has lost its version {version}, which another operator wrote: see pause --list, and ask them"
    )))
}

/// Makes an edit, and looks that it is there. Gives the pauses that hold it.
///
/// # Errors
///
/// The edit is refused, a call does not work, or others write so often that ours does not stay.
pub(crate) async fn edit(
    account: &Account,
    name: &str,
    edit: &dyn Edit,
    interrupt: &Interrupt,
) -> Result<Pauses, Failure> {
    let mut writing = Writing::new(edit);
    let mut request = Request::Read;
    loop {
        let answer = match request {
            Request::Done(pauses) => return Ok(pauses),
            Request::Read => {
                let (text, version) = read(account, name).await?;
                Answer::Read(understood(name, text.as_deref())?, version)
            }
            Request::ReadVersion(version) => {
                let text = read_version(account, name, version).await?;
                Answer::ReadVersion(understood(name, Some(&text))?)
            }
            Request::Write { pauses, is_new } => write(account, name, &pauses, is_new).await?,
            Request::Settle => {
                tokio::select! {
                    () = tokio::time::sleep(SETTLE) => Answer::Settled,
                    () = interrupt.raised() => {
                        let what = "the pauses were written, and nobody has looked whether they stay; see pause --list";
                        return Err(Failure::Interrupted(what.into()));
                    }
                }
            }
        };
        request = writing.next(answer)?;
    }
}

/// SSM cannot compare before it sets, but it does not create what is there.
async fn write(account: &Account, name: &str, pauses: &Pauses, is_new: bool) -> Result<Answer, Failure> {
    let call = account.ssm.put_parameter().name(name).r#type(ParameterType::String).value(pauses.write());
    match call.overwrite(!is_new).send().await {
        Ok(answer) => Ok(Answer::Written(answer.version())),
        Err(error)
            if error.as_service_error().is_some_and(|error| {
                error.is_too_many_updates() || (is_new && error.is_parameter_already_exists())
            }) =>
        {
            Ok(Answer::NotWritten)
        }
        Err(error) => Err(Failure::of_call("ssm:PutParameter", name, &error)),
    }
}
