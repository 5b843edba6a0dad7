//! `comeback ui`: what the commands on a deployment answer, and the changes they make, in a browser.
//!
//! | file | holds |
//! |---|---|
//! | `server` | connections, and the rules for every request and answer |
//! | `access` | codes and sessions: who gets in |
//! | `console` | what the pages share: the account, its reads, the work under way |
//! | `fresh` | how often a source is read, and what is shown meanwhile |
//! | `page` | a request as a page sees it, the frame around every page, failures |
//! | `action` | plan, question and performance of a command that changes something |
//! | `work` | performances under way, each made once |
//! | `progress` | their pages |
//! | `response` | pages as responses, with everything in them shown and nothing obeyed |
//! | `start` | the browser, and Enter for another code |
//! | `overview`, … | a file a page |
//!
//! # A new page
//!
//! `overview` is the example.
//!
//! 1. A file with `pub(super) fn routes() -> Router<Console>`; merge it in [`routes`]. Paths that read are `page(…)`, which
//!    answers GET. A handler is an `async fn(Visit) -> Result<Response, Problem>` and may use everything of `operate`, `Rc`
//!    too: all runs on one thread, so long arithmetic belongs on `tokio::task::spawn_blocking`.
//! 2. A template in `templates/ui/` that extends `base.html`, with a struct that has `frame: Frame` (from `visit.frame(…)`).
//!    Charts and tables are [`figure`](comeback_rehearsal::figure)s, which display themselves (`|safe`). Mark what refreshes every
//!    five seconds with `data-refresh` and an `id`, and keep forms outside of it; a moment is `<time datetime>`, by the
//!    macro `moment` of `ui/parts.html`; what can be copied is a `copy`. Add the page to `NAVIGATION`.
//! 3. Values come from `operate` (make the type that `--json` prints `pub(crate)`), read through a [`Fresh`](fresh::Fresh)
//!    in `Console`, so that all tabs share one read in five seconds. Escaping is automatic: `askama` escapes markup, and
//!    `response::html` makes control characters visible.
//! 4. A change is an [`Action`](action::Action): the words of a command line from the fields of a form. GET shows its plan,
//!    POST performs it. The command must print with `session.say` and `session.note`, show progress with
//!    `session.progress`, and ask with `confirm`, or with `confirm_plan` if its text changes as time passes.

mod access;
mod change;
mod console;
mod dead;
mod doctor;
mod draw;
mod event;
mod fresh;
mod function;
mod history;
mod lab;
mod overview;
mod page;
mod pauses;
mod progress;
mod rehearsal;
mod response;
mod server;
mod start;
#[cfg(test)]
mod tests;
mod waiting;
mod work;

use std::net::Ipv4Addr;
use std::rc::Rc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use clap::Args;
use tokio::net::TcpListener;
use tokio::task::LocalSet;

use crate::account;
use crate::failure::CommandFailure;
use crate::operate::session::{DeploymentFlags, Interrupt, raise_when_stopped};
use crate::ui::access::Access;
use crate::ui::console::Console;

pub(crate) const EXAMPLES: &str = "\
Examples:
  comeback ui
  comeback ui --stack shop --read-only
  comeback ui --no-open --port 7070";

/// Bytes of a form. A page that takes a file has a limit of its own.
const LARGEST_FORM: usize = 64 << 10;

#[derive(Clone, Debug, Args)]
pub(crate) struct UiArguments {
    /// The port to listen on [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Print the address, and do not open a browser
    #[arg(long)]
    no_open: bool,
    /// Leave out everything that changes something or hides dead-letters
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    deployment: DeploymentFlags,
}

pub(crate) fn run(arguments: &UiArguments) -> Result<(), CommandFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = LocalSet::new().block_on(&runtime, serve(arguments));
    // The thread that waits for Enter is still waiting.
    runtime.shutdown_background();
    result
}

async fn serve(arguments: &UiArguments) -> Result<(), CommandFailure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await;
    let listener = listener.map_err(|problem| {
        account::Failure::CouldNot(format!("port {} of 127.0.0.1: {problem}", arguments.port))
    })?;
    let address = listener.local_addr()?;
    let (raise, stop) = Interrupt::new();
    raise_when_stopped(raise);
    let access = Rc::new(Access::new(address.port()));
    let console = Console::new(arguments.deployment.clone(), arguments.read_only);
    let router = routes().with_state(console.clone());
    start::announce(address, arguments.no_open, &access);
    server::serve(listener, router, access, stop).await;
    console.works.stop_all().await;
    console.dead.stop().await;
    Ok(())
}

fn routes() -> Router<Console> {
    Router::new()
        .merge(page::routes())
        .merge(overview::routes())
        .merge(waiting::routes())
        .merge(event::routes())
        .merge(dead::routes())
        .merge(pauses::routes())
        .merge(progress::routes())
        .merge(function::routes())
        .merge(doctor::routes())
        .merge(lab::routes())
        .layer(DefaultBodyLimit::max(LARGEST_FORM))
}
