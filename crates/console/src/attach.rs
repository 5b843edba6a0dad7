//! The pages that attach a function to the deployment and detach it.

use axum::Router;
use comeback_operate::CommandName;
use comeback_operate::attach::{Route, RouteFailures};
use comeback_operate::function::FunctionName;

use crate::change::{Argument, Asked, ChangeForm, Input, value};
use crate::console::Console;
use crate::page::Fields;

pub(super) fn routes() -> Router<Console> {
    [&ATTACH, &DETACH].into_iter().fold(Router::new(), |all, form| all.merge(form.routes()))
}

const FUNCTION: Input = Input {
    name: "function",
    label: "Function",
    hint: "NAME, NAME:ALIAS or ARN; the alias or version that callers invoke",
    argument: Argument::Operand,
    choices: &[],
};

static ATTACH: ChangeForm = ChangeForm {
    path: "/attach",
    title: "Attach",
    about: "Send a function's failed events to the retry queue, and allow the handler to re-invoke it.",
    command: CommandName::Attach,
    inputs: &[FUNCTION],
    asked: |fields| asked(fields, Route::Attach { may_move: false }),
    is_about_held: false,
    back: "/function",
};

static DETACH: ChangeForm = ChangeForm {
    path: "/detach",
    title: "Detach",
    about: "Return a function's failed events to Lambda's own handling. The handler retries those that wait until they are \
            done.",
    command: CommandName::Detach,
    inputs: &[FUNCTION],
    asked: |fields| asked(fields, Route::Detach { at_once: false }),
    is_about_held: false,
    back: "/function",
};

fn asked(fields: &Fields, route: Route) -> Result<Asked, String> {
    let function = value(fields, "function", "Function", str::parse::<FunctionName>)?;
    let functions = vec![function.ok_or("Function: name one")?];
    Ok(Asked::new(move |operator| RouteFailures { operator, functions, route }))
}
