//! The output of `comeback pause --list`.

use std::time::Duration;

use comeback_engine::{LONG_PAUSE, Pause};
use serde::Serialize;

use crate::change::Answer;
use crate::durations;
use crate::failure::Failure;
use crate::layout::{Block, Layout, Table};
use crate::operator::Operator;
use crate::pauses::OpenPause;
use crate::pauses::history::{self, PauseChange};
use crate::pauses::parameter::read_pauses;
use crate::pauses::requests::RequestInForce;
use crate::text;
use crate::text::Text;

/// The open pauses and the requests in force.
#[derive(Debug, Serialize)]
pub struct PauseListing {
    /// The open pauses. `None` if they could not be read, or if the handler does not read pauses.
    pauses: Option<Vec<OpenPause>>,
    requests: Option<Vec<RequestInForce>>,
    /// The changes that operators have made to the pauses, if requested.
    history: Option<Vec<PauseChange>>,
    #[serde(skip)]
    handler: String,
    #[serde(skip)]
    unreadable: Option<Failure>,
}

/// Lists the open pauses and the requests in force. If `with_history` is true, also lists the history of the pauses.
///
/// # Errors
///
/// Fails if the deployment or the history cannot be read.
pub async fn pauses(operator: &Operator, with_history: bool) -> Result<PauseListing, Failure> {
    let deployment = operator.deployment().await?;
    let account = &operator.account;
    let work = async {
        let history = match deployment.pauses().filter(|_| with_history) {
            Some(name) => Some(history::read(account, name).await?),
            None => None,
        };
        Ok::<_, Failure>((read_pauses(account, &deployment).await, history))
    };
    let (read, history) = operator.interrupt.or(work).await?;
    let (read, unreadable) = match read {
        Ok(read) => (read, None),
        Err(failure) => (None, Some(failure)),
    };
    let now = operator.now();
    let of = |read| (OpenPause::all_of(read, now), RequestInForce::all_of(read, now));
    let (pauses, requests) = read.as_ref().map(of).unzip();
    Ok(PauseListing { pauses, requests, history, handler: deployment.handler, unreadable })
}

impl Answer for PauseListing {
    fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        let history = self.history.as_ref().map(|history| history::layout(history));
        let Some(pauses) = &self.pauses else {
            match self.unreadable {
                Some(_) => history.into_iter().for_each(|history| layout.and(history)),
                None => layout.note(format!(
                    "handler {} reads no pauses, because its variable PAUSES is not set",
                    self.handler
                )),
            }
            return layout;
        };
        match pauses.is_empty() {
            true => layout.line("nothing is paused"),
            false => layout.table(table(pauses)),
        }
        for request in self.requests.iter().flatten() {
            layout.line(text![format!("{}: ", request.title()), request.line()]);
        }
        if let Some(history) = history {
            layout.line("");
            layout.and(history);
        }
        for pause in pauses.iter().filter(|pause| Duration::from_secs(pause.open_seconds) > LONG_PAUSE) {
            let (name, open) = (pause.name(), durations::short(pause.open_seconds as f64));
            layout.0.push(Block::Warning(format!("{name} has been paused for {open}: forgotten?").into()));
        }
        layout
    }

    fn end(&self) -> Result<(), Failure> {
        self.unreadable.clone().map_or(Ok(()), Err)
    }
}

fn table(pauses: &[OpenPause]) -> Table {
    let mut table = Table::new(["function", "since", "until", "spread", "by", "why"]);
    for open in pauses {
        let Pause { from, until, spread, by, why, .. } = &open.pause;
        let text = |text: &Option<String>| Text::from(text.as_deref().unwrap_or_default());
        table.row([
            open.name().into(),
            (*from).into(),
            until.map_or_else(|| "resume".into(), Text::from),
            durations::text(*spread).into(),
            text(by),
            text(why),
        ]);
    }
    table
}
