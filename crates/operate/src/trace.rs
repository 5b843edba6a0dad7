//! One event's life, read from the log of the handler: the log is the only index there is.
//!
//! | file | holds |
//! |---|---|
//! | `line` | [`HandlerLine`](line::HandlerLine): a line that the handler writes about a message |
//! | `search` | the lines that name an id |
//! | `story` | [`Story`]: the lines of one event, in order, as what happened to it |
//! | `invocation` | [`Invocation`]: what the target's own log has of one request |

pub(crate) mod invocation;
pub(crate) mod line;
pub(crate) mod search;
pub(crate) mod story;

use std::collections::BTreeSet;

use comeback_engine::Timestamp;
use serde::Serialize;

use crate::{Account, Deployment, Failure};
use invocation::Invocation;
use line::HandlerLine;
use search::Search;
use story::{End, Story};

/// One event's life, as far as the logs tell it.
#[derive(Clone, Debug, Serialize)]
pub struct Trace {
    /// What the handler's log says.
    #[serde(flatten)]
    pub story: Story,
    /// What the target's log has of its invocations, in their order: of the last one, or of all with `logs`.
    pub invocations: Vec<Invocation>,
}

impl Trace {
    /// Finds an event by its key, or by the request id of one of its invocations, in what was logged since then.
    /// `progress` hears how many lines were found so far.
    ///
    /// # Errors
    ///
    /// A call that did not work, an id that no log can hold, and an id that no line names.
    pub async fn find(
        account: &Account,
        deployment: &Deployment,
        id: &str,
        since: Timestamp,
        logs: bool,
        progress: &dyn Fn(usize),
    ) -> Result<Self, Failure> {
        let story = story(account, deployment, id, since, progress).await?;
        let story = story.ok_or_else(|| unknown(deployment, id, since))?;
        let asked: Vec<String> = match (&story.end, logs) {
            (_, true) => story.request_ids().map(ToOwned::to_owned).collect(),
            (End::Invoked { request_id: Some(id), .. }, false) => vec![id.clone()],
            (_, false) => Vec::new(),
        };
        let mut invocations = Vec::new();
        for request_id in asked {
            invocations.push(Invocation::read(account, &story.target, &request_id, since, logs).await?);
        }
        Ok(Self { story, invocations })
    }
}

/// What the handler's log says of the event that an id belongs to; `None` if no line names the id.
pub(crate) async fn story(
    account: &Account,
    deployment: &Deployment,
    id: &str,
    since: Timestamp,
    progress: &dyn Fn(usize),
) -> Result<Option<Story>, Failure> {
    Ok(Story::of(lines_of(account, deployment, id, since, progress).await?))
}

/// The lines of the event that an id belongs to. A key is one of the request ids, or the id of a message.
async fn lines_of(
    account: &Account,
    deployment: &Deployment,
    id: &str,
    since: Timestamp,
    progress: &dyn Fn(usize),
) -> Result<Vec<HandlerLine>, Failure> {
    let search = async |term: &str| {
        let found = Search { group: &deployment.log_group, term, since, stream: None };
        let events = found.run(account, progress).await?;
        let lines = events.iter().filter_map(|event| HandlerLine::read(&event.message));
        Ok::<_, Failure>(lines.collect::<Vec<_>>())
    };
    let named: Vec<HandlerLine> = search(id).await?.into_iter().filter(|line| line.names(id)).collect();
    let keys: BTreeSet<&str> = named.iter().map(|line| line.key.as_str()).collect();
    match keys.into_iter().collect::<Vec<_>>().as_slice() {
        [] => Ok(Vec::new()),
        [key] if *key == id => Ok(named),
        [key] => Ok(search(key).await?.into_iter().filter(|line| line.key == *key).collect()),
        several => Err(Failure::CouldNot(format!("{id} names several events: {}", several.join(", ")))),
    }
}

fn unknown(deployment: &Deployment, id: &str, since: Timestamp) -> Failure {
    Failure::CouldNot(format!(
        "no line of {} names {id} since {since}: an event is logged when its first failure reaches the retry queue, which \
         takes some seconds, or a minute if its function is throttled",
        deployment.log_group
    ))
}
