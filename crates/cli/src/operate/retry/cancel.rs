//! `comeback retry --cancel`: take back requests.

use comeback_engine::{Pauses, RetryNow};
use serde_json::json;

use comeback_operate::Failure;
use comeback_operate::deployment::Deployment;
use comeback_operate::function::FunctionName;
use comeback_operate::pauses::parameter::Parameter;
use comeback_operate::pauses::requests::RetryRequest;
use comeback_operate::pauses::{self, forgotten_note, named, noticed_within};

use crate::clock::now;
use crate::failure;
use crate::operate::session::{Session, confirm};
use crate::text::durations;
use crate::text::numbers::counted;
use crate::text::terminal::shown;

/// Takes back the requests for this target alone: like a pause, a request for every function is another one.
pub(super) async fn cancel(
    function: Option<&FunctionName>,
    session: &Session,
    deployment: &Deployment,
) -> Result<(), failure::CommandFailure> {
    let operator = session.operator();
    let parameter = Parameter::of(&operator.account, &operator.interrupt, deployment)?;
    let name = named(function);
    let target = pauses::target(deployment, function)?;
    confirm(&format!("cancel the retry requests for {name}?"), session).await?;
    let now = now();
    let pauses = parameter.read().await?.0;
    let requests = RetryRequest::in_force(&pauses, now);
    let (cancelled, others): (Vec<_>, Vec<_>) =
        requests.into_iter().partition(|request| request.target == target.to_string());
    let mut forgotten = Vec::new();
    if !cancelled.is_empty() {
        let all: Vec<RetryNow> =
            pauses.retries().filter(|request| request.target == target).cloned().collect();
        let is_gone = |pauses: &Pauses| pauses.retries().all(|request| !all.contains(request));
        forgotten = parameter.edit(now, |pauses| Ok(pauses.without_retries(&all)), is_gone).await?;
    }
    forgotten_note(&forgotten).iter().for_each(|note| session.note(note));
    let noticed = noticed_within(deployment);
    session.answer(&json!({
        "cancelled": cancelled, "noticed_within_seconds": noticed.map(|noticed| noticed.as_secs()),
    }));
    if cancelled.is_empty() {
        let place = session.common.place_flags();
        let what = format!(
            "no retry request for {name} is in force; `comeback pause --list{place}` shows the others"
        );
        return Err(Failure::undone(what).into());
    }
    let requests = counted(cancelled.len() as u64, "retry request was", "retry requests were");
    session
        .say(&format!("{name}: {requests} cancelled; events not yet retried keep their own due times\n"))?;
    if let Some(noticed) = noticed.map(durations::text) {
        session.say(&format!("Takes effect within {noticed}; until then, the handler may still retry.\n"))?;
    }
    for other in others {
        session.say(&format!("Still in force: {}\n", shown(&other.line())))?;
    }
    Ok(())
}
