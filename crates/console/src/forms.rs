//! The forms for pausing, resuming, attaching and detaching functions, and for retrying or cancelling waiting events.

use std::time::Duration;

use comeback_engine::RequestKind;
use comeback_operate::attach::{Route, RouteFailures};
use comeback_operate::function::FunctionName;
use comeback_operate::pause::{PauseEnd, PauseRetries};
use comeback_operate::pauses::edits::{read_length, read_reason};
use comeback_operate::pauses::read_text;
use comeback_operate::request::{DEFAULT_WITHIN, RequestEvents, read_error, read_key, read_within};
use comeback_operate::resume::ResumeRetries;
use comeback_operate::{CommandName, durations};

use crate::change::{Argument, Asked, ChangeForm, Input, function};
use crate::page::Fields;

pub(super) static FORMS: [&ChangeForm; 6] = [&PAUSE, &RESUME, &RETRY, &CANCEL, &ATTACH, &DETACH];

const FUNCTION: Input = Input {
    argument: Argument::FunctionOrAll,
    ..Input::new("function", "Function", "NAME, NAME:ALIAS or ARN; * for every function")
};
const REASON: Input = Input::new("reason", "Reason", "Shown with the pause; required for a new pause");
const FOR: Input = Input {
    choices: &[("15m", "15m"), ("1h", "1h"), ("", "until I resume")],
    ..Input::new("for", "For", "Such as 2h; empty: until it is resumed")
};
const SPREAD: Input = Input::new(
    "spread",
    "Spread",
    "Spread the retries over this time once the pause ends; empty: as long as the pause, at most 30m",
);
const RESUME_SPREAD: Input =
    Input { hint: "Empty: the pause's own; by default as long as the pause, at most 30m", ..SPREAD };
const ERROR: Input = Input::new("error", "Error", "Such as Timeout*; empty: every error");
const KEY: Input = Input {
    argument: Argument::Each,
    ..Input::new("key", "Key", "Only the events with these keys, at most 20; empty: every event")
};
const WITHIN: Input = Input {
    choices: &[("0s", "at once"), ("1m", "1m"), ("10m", "10m")],
    ..Input::new("within", "Within", "Spread the retries over this time; empty: 10m")
};
const WHY: Input = Input::new("why", "Reason", "Stored with the request");
const ATTACHED: Input = Input {
    argument: Argument::Operand,
    ..Input::new("function", "Function", "NAME, NAME:ALIAS or ARN; the alias or version that callers invoke")
};

static PAUSE: ChangeForm = ChangeForm {
    path: "/pause",
    title: "Pause",
    about: "Hold the retries of a function. New events still run, and are held if they fail. The pause uses up no retries and \
            does not count towards MAX_AGE.",
    command: CommandName::Pause,
    inputs: &[FUNCTION, REASON, FOR, SPREAD],
    read: |form, visit, fields| form.parsed(visit, fields, pause),
    back: "/waiting",
    reads_dead_letters: false,
};

fn pause(fields: &Fields) -> Result<Box<dyn Asked>, String> {
    let function = function(fields)?;
    let end = FOR.read(fields, read_length)?.map(PauseEnd::After);
    let spread = SPREAD.read(fields, durations::read)?;
    let why = REASON.read(fields, read_reason)?;
    Ok(Box::new(PauseRetries { function, end, spread, why }))
}

static RESUME: ChangeForm = ChangeForm {
    path: "/resume",
    title: "Resume",
    about: "Resume retries of a paused function, spread over time. What the pause held is recalled, so that it comes back within \
            that time.",
    command: CommandName::Resume,
    inputs: &[FUNCTION, RESUME_SPREAD],
    read: |form, visit, fields| form.parsed(visit, fields, resume),
    back: "/waiting",
    reads_dead_letters: false,
};

fn resume(fields: &Fields) -> Result<Box<dyn Asked>, String> {
    let function = function(fields)?;
    let spread = RESUME_SPREAD.read(fields, durations::read)?;
    Ok(Box::new(ResumeRetries { function, spread }))
}

static RETRY: ChangeForm = ChangeForm {
    path: "/retry",
    title: "Retry now",
    about: "Retry waiting events after a fix, without waiting for the end of their backoff. Hidden messages are recalled once \
            the handler has read the request, which takes about a minute.",
    command: CommandName::Retry,
    inputs: &[FUNCTION, ERROR, KEY, WITHIN, WHY],
    read: |form, visit, fields| form.parsed(visit, fields, retry),
    back: "/waiting",
    reads_dead_letters: false,
};

fn retry(fields: &Fields) -> Result<Box<dyn Asked>, String> {
    let within = WITHIN.read(fields, read_within)?.unwrap_or(DEFAULT_WITHIN);
    request(fields, RequestKind::Retry, within)
}

static CANCEL: ChangeForm = ChangeForm {
    path: "/cancel",
    title: "Cancel events",
    about: "Dead-letter waiting events instead of retrying them. Nothing is deleted: redrive them, or discard them, as any \
            dead-letter. Hidden messages are recalled once the handler has read the request, which takes about a minute.",
    command: CommandName::Cancel,
    inputs: &[FUNCTION, ERROR, KEY, WHY],
    read: |form, visit, fields| form.parsed(visit, fields, cancel),
    back: "/waiting",
    reads_dead_letters: false,
};

fn cancel(fields: &Fields) -> Result<Box<dyn Asked>, String> {
    request(fields, RequestKind::Cancel, Duration::ZERO)
}

fn request(fields: &Fields, kind: RequestKind, within: Duration) -> Result<Box<dyn Asked>, String> {
    let function = function(fields)?;
    let error = ERROR.read(fields, read_error)?;
    let keys: Result<Vec<String>, String> = fields.all("key").map(read_key).collect();
    let keys = keys.map_err(|why| format!("Key: {why}"))?;
    let why = WHY.read(fields, read_text)?;
    Ok(Box::new(RequestEvents { kind, within, function, error, keys, why }))
}

static ATTACH: ChangeForm = ChangeForm {
    path: "/attach",
    title: "Attach",
    about: "Send a function's failed events to the retry queue, and allow the handler to re-invoke it.",
    command: CommandName::Attach,
    inputs: &[ATTACHED],
    read: |form, visit, fields| {
        form.parsed(visit, fields, |fields| route(fields, Route::Attach { may_move: false }))
    },
    back: "/function",
    reads_dead_letters: false,
};

static DETACH: ChangeForm = ChangeForm {
    path: "/detach",
    title: "Detach",
    about: "Return a function's failed events to Lambda's own handling. The handler retries those that wait until they are \
            done.",
    command: CommandName::Detach,
    inputs: &[ATTACHED],
    read: |form, visit, fields| {
        form.parsed(visit, fields, |fields| route(fields, Route::Detach { at_once: false }))
    },
    back: "/function",
    reads_dead_letters: false,
};

fn route(fields: &Fields, route: Route) -> Result<Box<dyn Asked>, String> {
    let function = ATTACHED.read(fields, str::parse::<FunctionName>)?;
    let functions = vec![function.ok_or("Function: name one")?];
    Ok(Box::new(RouteFailures { functions, route }))
}

#[cfg(test)]
mod tests {
    use comeback_operate::pauses::DEFAULT_SPREAD;

    use super::*;

    #[test]
    fn a_hint_names_the_default() {
        let hint = |form: &ChangeForm, name: &str| {
            form.inputs.iter().find(|input| input.name == name).expect("a field").hint
        };
        let (spread, within) = (durations::text(DEFAULT_SPREAD), durations::text(DEFAULT_WITHIN));
        for (form, name, default) in [
            (&PAUSE, "spread", format!("at most {spread}")),
            (&RESUME, "spread", format!("at most {spread}")),
            (&RETRY, "within", format!("empty: {within}")),
        ] {
            assert!(hint(form, name).ends_with(&default), "{}", hint(form, name));
        }
    }
}
