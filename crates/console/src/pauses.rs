//! The pages that pause and resume functions, retry waiting events now, and cancel them.

use axum::Router;

use comeback_operate::pause::PauseRetries;
use comeback_operate::pauses::edits::{End, Wanted, read_length, read_reason};
use comeback_operate::pauses::read_text;
use comeback_operate::request::{Ask, DEFAULT_WITHIN, RequestEvents, read_error, read_key, read_within};
use comeback_operate::resume::ResumeRetries;
use comeback_operate::{CommandName, durations};

use crate::change::{Argument, Asked, ChangeForm, Input, function, value};
use crate::console::Console;
use crate::page::Fields;

pub(super) fn routes() -> Router<Console> {
    [&PAUSE, &RESUME, &RETRY, &CANCEL].into_iter().fold(Router::new(), |all, form| all.merge(form.routes()))
}

const FUNCTION: Input = Input {
    name: "function",
    label: "Function",
    hint: "NAME, NAME:ALIAS or ARN; * for every function",
    argument: Argument::FunctionOrAll,
    choices: &[],
};

const ERROR: Input = Input {
    name: "error",
    label: "Error",
    hint: "Such as Timeout*; empty: every error",
    argument: Argument::Flag("--error"),
    choices: &[],
};

const KEY: Input = Input {
    name: "key",
    label: "Key",
    hint: "Only the events with these keys, at most 20; empty: every event",
    argument: Argument::Each("--key"),
    choices: &[],
};

const WHY: Input = Input {
    name: "why",
    label: "Reason",
    hint: "Stored with the request",
    argument: Argument::Flag("--why"),
    choices: &[],
};

static PAUSE: ChangeForm = ChangeForm {
    path: "/pause",
    title: "Pause",
    about: "Hold the retries of a function. New events still run, and are held if they fail. The pause uses up no retry and \
            does not count towards MAX_AGE.",
    command: CommandName::Pause,
    inputs: &[
        FUNCTION,
        Input {
            name: "reason",
            label: "Reason",
            hint: "Shown with the pause; required for a new pause",
            argument: Argument::Flag("--reason"),
            choices: &[],
        },
        Input {
            name: "for",
            label: "For",
            hint: "Such as 2h; empty: until it is resumed",
            argument: Argument::Flag("--for"),
            choices: &[("15m", "15m"), ("1h", "1h"), ("", "until I resume")],
        },
        Input {
            name: "spread",
            label: "Spread",
            hint: "Spread the retries over this time once the pause ends; empty: as long as the pause, at most 30m",
            argument: Argument::Flag("--spread"),
            choices: &[],
        },
    ],
    asked: pause,
    is_about_held: false,
    back: "/waiting",
};

fn pause(fields: &Fields) -> Result<Asked, String> {
    let function = function(fields)?;
    let wanted = Wanted {
        end: value(fields, "for", "For", read_length)?.map(End::After),
        spread: value(fields, "spread", "Spread", durations::read)?,
        why: value(fields, "reason", "Reason", read_reason)?,
    };
    Ok(Asked::new(|operator| PauseRetries { operator, function, wanted }))
}

static RESUME: ChangeForm = ChangeForm {
    path: "/resume",
    title: "Resume",
    about: "Resume retries of a paused function, spread over time. What the pause held is recalled, so that it comes back within \
            that time.",
    command: CommandName::Resume,
    inputs: &[
        FUNCTION,
        Input {
            name: "spread",
            label: "Spread",
            hint: "Empty: the pause's own; by default as long as the pause, at most 30m",
            argument: Argument::Flag("--spread"),
            choices: &[],
        },
    ],
    asked: resume,
    is_about_held: true,
    back: "/waiting",
};

fn resume(fields: &Fields) -> Result<Asked, String> {
    let function = function(fields)?;
    let spread = value(fields, "spread", "Spread", durations::read)?;
    Ok(Asked::new(move |operator| ResumeRetries { operator, function, spread }))
}

static RETRY: ChangeForm = ChangeForm {
    path: "/retry",
    title: "Retry now",
    about: "Retry waiting events after a fix, without waiting for the end of their backoff. Hidden messages are recalled once \
            the handler has read the request, which takes about a minute.",
    command: CommandName::Retry,
    inputs: &[
        FUNCTION,
        ERROR,
        KEY,
        Input {
            name: "within",
            label: "Within",
            hint: "Spread the retries over this time; empty: 10m",
            argument: Argument::Flag("--within"),
            choices: &[("0s", "at once"), ("1m", "1m"), ("10m", "10m")],
        },
        WHY,
    ],
    asked: retry,
    is_about_held: false,
    back: "/waiting",
};

fn retry(fields: &Fields) -> Result<Asked, String> {
    let within = value(fields, "within", "Within", read_within)?.unwrap_or(DEFAULT_WITHIN);
    request(fields, Ask::Retry { within })
}

static CANCEL: ChangeForm = ChangeForm {
    path: "/cancel",
    title: "Cancel events",
    about: "Dead-letter waiting events instead of retrying them. Nothing is deleted: redrive them, or discard them, as any \
            dead-letter. Hidden messages are recalled once the handler has read the request, which takes about a minute.",
    command: CommandName::Cancel,
    inputs: &[FUNCTION, ERROR, KEY, WHY],
    asked: |fields| request(fields, Ask::Cancel),
    is_about_held: false,
    back: "/waiting",
};

fn request(fields: &Fields, ask: Ask) -> Result<Asked, String> {
    let function = function(fields)?;
    let error = value(fields, "error", "Error", read_error)?;
    let keys: Result<Vec<String>, String> = fields.all("key").map(read_key).collect();
    let keys = keys.map_err(|why| format!("Key: {why}"))?;
    let why = value(fields, "why", "Reason", read_text)?;
    Ok(Asked::new(move |operator| RequestEvents { operator, ask, function, error, keys, why }))
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
