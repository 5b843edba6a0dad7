//! Pause, resume and retry now, as forms.

use axum::Router;

use crate::ui::action::{Action, Argument, Input};
use crate::ui::console::Console;

pub(super) fn routes() -> Router<Console> {
    [&PAUSE, &RESUME, &RETRY].into_iter().fold(Router::new(), |routes, action| routes.merge(action.routes()))
}

const FUNCTION: Input = Input {
    name: "function",
    label: "Function",
    hint: "NAME, NAME:ALIAS or ARN; * for every function",
    argument: Argument::FunctionOrAll,
};

static PAUSE: Action = Action {
    path: "/pause",
    title: "Pause",
    about: "Hold the retries of a function. New events still run, and are held if they fail. The pause uses up no retry and \
            does not count towards MAX_AGE.",
    command: &["pause"],
    inputs: &[
        FUNCTION,
        Input {
            name: "reason",
            label: "Reason",
            hint: "Shown with the pause; required for a new pause",
            argument: Argument::Flag("--reason"),
        },
        Input {
            name: "for",
            label: "For",
            hint: "Such as 2h; empty: until it is resumed",
            argument: Argument::Flag("--for"),
        },
        Input {
            name: "spread",
            label: "Spread",
            hint: "Spread the retries over this time once the pause ends; empty: 30m",
            argument: Argument::Flag("--spread"),
        },
    ],
    is_about_held: false,
    back: "/waiting",
};

static RESUME: Action = Action {
    path: "/resume",
    title: "Resume",
    about: "Resume retries of a paused function, spread over time.",
    command: &["resume"],
    inputs: &[
        FUNCTION,
        Input {
            name: "spread",
            label: "Spread",
            hint: "Empty: the pause's spread",
            argument: Argument::Flag("--spread"),
        },
    ],
    is_about_held: true,
    back: "/waiting",
};

static RETRY: Action = Action {
    path: "/retry",
    title: "Retry now",
    about: "Retry waiting events after a fix, without waiting for the end of their backoff. The handler finds the request \
            when it next checks a message: within 15 minutes if it moves messages (above HIDE_UP_TO), but a hidden message \
            only when its hiding ends, which is mostly when its retry is due anyway.",
    command: &["retry"],
    inputs: &[
        FUNCTION,
        Input {
            name: "error",
            label: "Error",
            hint: "Such as Timeout*; empty: every error",
            argument: Argument::Flag("--error"),
        },
        Input {
            name: "within",
            label: "Within",
            hint: "Spread the retries over this time; empty: 10m",
            argument: Argument::Flag("--within"),
        },
        Input {
            name: "why",
            label: "Reason",
            hint: "Stored with the request",
            argument: Argument::Flag("--why"),
        },
    ],
    is_about_held: false,
    back: "/waiting",
};
