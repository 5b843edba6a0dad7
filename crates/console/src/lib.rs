//! The console: everything that [`comeback_operate`] can read and change, as web pages for one user's browser.
//!
//! It calls [`comeback_operate`] and [`comeback_rehearsal`] directly, and runs no commands.
//!
//! | file | purpose |
//! |---|---|
//! | `server` | connections, and the rules for every request and response |
//! | `access` | access control by codes and sessions |
//! | `console` | the state that all pages share: the account, the data read from it, the changes in progress |
//! | `fresh` | caches for data read from the account, so that pages are fast and calls to AWS are rare |
//! | `page` | a request as a page receives it, the frame around every page, failures |
//! | `change` | plans a change, asks the operator to confirm the plan, and performs the change |
//! | `performer` | performs what a form requests, one action at a time on the dead-letter queue |
//! | `forms` | the forms for changes, except changes to dead-letters |
//! | `draw` | helpers for the macros in `templates/layout.html`, which draw the output of commands |
//! | `work` | performs changes in the background, each only once |
//! | `progress` | the page for a change in progress |
//! | `response` | pages as responses, with markup and control characters escaped |
//! | `start` | opens the browser, and prints another sign-in URL when Enter is pressed |
//! | `demonstration` | the demonstration's account and clock |
//! | `demo` | the demonstration's bar, which every page shows |
//! | `search` | the search in the header |
//! | `overview`, … | one file for each page |
//!
//! # A new page
//!
//! `overview` is the example.
//!
//! 1. Add a file with a handler, and a line to `routes`. A handler is an `async fn(Visit) -> Result<Response, Problem>`.
//!    For a page that changes nothing, use the route `page(…)`, which handles GET. A handler may use types that are not
//!    `Send`, because all pages run on one thread. Run a long computation with `tokio::task::spawn_blocking`.
//! 2. Add a template to `templates/` that extends `base.html`, and a struct with a field `frame: Frame`, made by
//!    `visit.frame(…)`. The macros in `layout.html` draw a command's output: `blocks` draws all of it; `block`,
//!    `text`, `facts`, `grid` and `timeline` draw its parts. A `grid` is a table that can begin with a column for links and
//!    checkboxes. The macro `copy` draws text with a Copy button. A chart is a
//!    [`figure`](comeback_rehearsal::figure); output it with `|safe`. An element with `data-refresh` and an `id` is
//!    refreshed every five seconds, so keep forms outside such elements. Add the page to `NAVIGATION`.
//! 3. Read values with `comeback_operate`, through the `Operator` that `console.asking()` returns. If a read is slow,
//!    or if the page refreshes, cache the value in a `fresh::Fresh` in `Console`. Escaping is automatic.
//! 4. A change is a `change::ChangeForm`, as in `forms`. Its page shows the plan, and then performs it.

mod access;
mod activity;
mod change;
mod console;
mod dead;
mod demo;
mod demonstration;
mod doctor;
mod draw;
mod event;
mod forms;
mod fresh;
mod function;
mod history;
mod lab;
mod overview;
mod page;
mod performer;
mod progress;
mod rehearsal;
mod response;
mod search;
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
use comeback_operate::{Address, Failure, Interrupt};
use tokio::net::TcpListener;

use crate::access::Access;
use crate::change::ChangeForm;
use crate::console::Console;
use crate::demonstration::Demonstration;
use crate::forms::FORMS;
use crate::page::{form_that_reads, page};

/// Maximum size of a form, in bytes. A form with a file or an edited payload may be larger.
const LARGEST_FORM: usize = 64 << 10;

/// Options for a console that `comeback ui` starts.
#[derive(Clone, Debug)]
pub struct Options {
    /// The deployment's name, and the AWS region and profile used to reach it.
    pub address: Address,
    /// True to show a demonstration instead of the deployment.
    pub demo: bool,
    /// Port to listen on; 0 means any free port.
    pub port: u16,
    /// True to open the sign-in page in a browser.
    pub opens_browser: bool,
    /// True for a console that can neither change the account nor scan dead-letters.
    pub read_only: bool,
}

/// Serves the console on 127.0.0.1 until `stop` is raised, and prints how to sign in. Must run in a
/// [`LocalSet`](tokio::task::LocalSet).
///
/// # Errors
///
/// Fails if the console cannot listen on the port.
pub async fn serve(options: &Options, stop: Interrupt) -> Result<(), Failure> {
    let Options { address: deployment, demo, port, opens_browser, read_only } = options;
    let taken = |problem| Failure::could_not(format!("port {port} of 127.0.0.1: {problem}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).await.map_err(taken)?;
    let address = listener.local_addr().map_err(taken)?;
    let access = Rc::new(Access::new(address.port()));
    let (deployment, read_only) = (deployment.clone(), *read_only);
    let console = Console::new(deployment, read_only, demo.then(Demonstration::new));
    let router = routes().with_state(console.clone());
    start::announce(address, *opens_browser, &access);
    server::serve(listener, router, access, stop).await;
    console.works.stop_all().await;
    console.dead.stop().await;
    Ok(())
}

/// The routes of all pages.
fn routes() -> Router<Console> {
    let pages = Router::new()
        .route("/", page(overview::overview))
        .route("/search", page(search::search))
        .route("/waiting", page(waiting::waiting))
        .route("/waiting/chosen", page(waiting::chosen))
        .route("/event", page(event::event))
        .route("/progress/{id}", page(progress::show))
        .route("/progress/{id}/stop", form_that_reads(progress::stop))
        .route("/function", page(function::function))
        // The bar changes only the demonstration, never a deployment, so a read-only console has it too.
        .route("/demo", form_that_reads(demo::press))
        .route("/doctor", page(doctor::doctor))
        .route("/activity", page(activity::activity))
        .route("/lab", page(lab::lab));
    let forms = |pages: Router<Console>, form: &&'static ChangeForm| pages.route(form.path, form.route());
    let pages = FORMS.iter().fold(pages, forms);
    pages.merge(page::routes()).merge(dead::routes()).layer(DefaultBodyLimit::max(LARGEST_FORM))
}
