//! The search in the header of every page, which finds keys, request ids, functions and errors.

use axum::response::Response;
use comeback_engine::FunctionArn;
use comeback_operate::function::{FunctionName, command_name};
use comeback_operate::waiting::reading::Reading;

use crate::console::Console;
use crate::page::{Problem, Visit};
use crate::response::{encoded, go_to};

pub(super) async fn search(visit: Visit) -> Result<Response, Problem> {
    let fields = visit.query();
    let Some(text) = fields.get("q").map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(go_to("/waiting"));
    };
    Ok(go_to(&match searched(&visit.console, text).await {
        Searched::Function(name) => format!("/function?name={}", encoded(&name)),
        Searched::Error(error) => format!("/waiting?error={}", encoded(&error)),
        // The text may be a request id, or the key of an event that has stopped waiting. If the text is neither, the
        // page shows an error.
        Searched::WaitingKey | Searched::Unknown => format!("/event?id={}", encoded(text)),
    }))
}

pub(super) enum Searched {
    /// The name of a function, in the form that commands accept.
    Function(String),
    /// The error type of some waiting events, or a glob for error types.
    Error(String),
    WaitingKey,
    Unknown,
}

/// Returns what a search text stands for: a function, an error type (ignoring case), or a waiting event's key.
pub(super) async fn searched(console: &Console, text: &str) -> Searched {
    if text.contains('*') {
        return Searched::Error(text.to_owned());
    }
    let named = text.parse::<FunctionName>().ok();
    let look = |reading: &Reading, _| {
        let is_named = |target: &str| named.as_ref().is_some_and(|name| name.names(target));
        let is_function = reading.waits.targets().into_iter().any(is_named);
        let groups = reading.waits.all_groups();
        let mut errors = groups.iter().filter_map(|group| group.error_type);
        let error = errors.find(|error| error.eq_ignore_ascii_case(text)).map(ToOwned::to_owned);
        (is_function, error, reading.waits.all().any(|event| event.key == text))
    };
    let (is_logged, error, is_key) = console.waiting(look).await.known().unwrap_or_default();
    if is_key {
        return Searched::WaitingKey;
    }
    if let Some(error) = error {
        return Searched::Error(error);
    }
    let function = match &named {
        Some(name) => function(console, name, is_logged).await,
        None => None,
    };
    function.map_or(Searched::Unknown, Searched::Function)
}

/// Returns the function's name as used in commands, or `None` if neither the log nor the allow-list names it. Patterns
/// on the allow-list do not count, because a pattern may match any word.
async fn function(console: &Console, name: &FunctionName, is_logged: bool) -> Option<String> {
    let deployment = console.deployment().await.value.ok()?;
    let arn = deployment.arn_of(name);
    let is_listed = |entry: &str| entry.parse::<FunctionArn>().is_ok_and(|listed| listed.name == arn.name);
    let is_known = is_logged || deployment.target_functions().any(is_listed);
    is_known.then(|| command_name(&arn.to_string(), &deployment.handler_arn))
}
