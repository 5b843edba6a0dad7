//! The request that a page answers, and the frame around every page, with the title and the navigation.

use std::pin::Pin;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Form, FromRequest as _, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use axum::{Router, body::Body};
use comeback_engine::Timestamp;
use comeback_operate::durations::short;
use comeback_operate::numbers::grouped;
use comeback_operate::{Failure, Place, Text};
use comeback_rehearsal::chart::{Colour, PALETTE};
use comeback_rehearsal::figure;
use percent_encoding::percent_decode_str;
use send_wrapper::SendWrapper;

use crate::access::BrowserSession;
use crate::console::{Console, NavigationCounts};
use crate::demonstration::Bar;
use crate::response::{encoded, go_to, html, with_type};
use crate::work::{ONCE, Toast, page_of};

/// Path, name and letter of each page in the navigation. Typing `g` and the letter opens the page.
pub(super) const NAVIGATION: [(&str, &str, char); 7] = [
    ("/", "Overview", 'o'),
    ("/waiting", "Waiting", 'w'),
    ("/dead", "Dead-letters", 'd'),
    ("/function", "Functions", 'f'),
    ("/doctor", "Doctor", 'c'),
    ("/activity", "Activity", 'a'),
    ("/lab", "Policy lab", 'l'),
];

const SECRET: &str = "secret";

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/style.css", page(style))
        .route(
            "/script.js",
            page(file("text/javascript; charset=utf-8", include_str!("../templates/script.js"))),
        )
        .route("/icon.svg", page(file("image/svg+xml", include_str!("../templates/icon.svg"))))
        .fallback(handler(async |_| Err(Problem::Missing)))
}

/// A GET route for a page that changes nothing.
pub(super) fn page<F>(answer: F) -> MethodRouter<Console>
where
    F: AsyncFn(Visit) -> Result<Response, Problem> + Clone + Send + Sync + 'static,
{
    get(handler(answer))
}

/// A POST route for a form that may change something. Refuses a wrong form secret, and any form if the console is
/// read-only. A form that is sent again is not read again: it leads to the page of its action.
pub(super) fn form<F>(answer: F) -> MethodRouter<Console>
where
    F: AsyncFn(Visit, Fields) -> Result<Response, Problem> + Clone + Send + Sync + 'static,
{
    form_that_reads(async move |visit: Visit, fields: Fields| {
        visit.refuse_if_read_only()?;
        match fields.get(ONCE).filter(|once| visit.console.works.has(once)) {
            Some(once) => Ok(go_to(&page_of(once))),
            None => answer(visit, fields).await,
        }
    })
}

/// A POST route for a form that changes nothing in the account. Such a form also works in a read-only console, but
/// the form secret must be right.
pub(super) fn form_that_reads<F>(answer: F) -> MethodRouter<Console>
where
    F: AsyncFn(Visit, Fields) -> Result<Response, Problem> + Clone + Send + Sync + 'static,
{
    post(handler(async move |mut visit: Visit| {
        let fields = visit.form().await?;
        answer(visit, fields).await
    }))
}

/// A POST route for an upload that changes something. The handler must check the form secret with [`Visit::has_secret`]
/// before it changes anything.
pub(super) fn upload<F>(answer: F) -> MethodRouter<Console>
where
    F: AsyncFn(Visit) -> Result<Response, Problem> + Clone + Send + Sync + 'static,
{
    post(handler(async move |visit: Visit| {
        visit.refuse_if_read_only()?;
        answer(visit).await
    }))
}

type Answering = SendWrapper<Pin<Box<dyn Future<Output = Response>>>>;

/// Adapts a page's handler to axum. Axum requires a future that is `Send`, but the handler's future is not.
fn handler<F>(answer: F) -> impl Fn(State<Console>, Request) -> Answering + Clone + Send + Sync + 'static
where
    F: AsyncFn(Visit) -> Result<Response, Problem> + Clone + Send + Sync + 'static,
{
    move |State(console), request| {
        let visit = Visit::new(console, request);
        let frame = visit.frame("", None);
        let answer = answer.clone();
        SendWrapper::new(Box::pin(async move {
            answer(visit).await.unwrap_or_else(|problem| problem.page(frame))
        }))
    }
}

/// A request from a signed-in browser, as a page's handler receives it.
pub(super) struct Visit {
    pub(super) console: Console,
    session: Arc<BrowserSession>,
    request: Request,
    is_form: bool,
}

impl Visit {
    fn new(console: Console, request: Request) -> Self {
        let session = request.extensions().get().cloned();
        let is_form = request.method() != Method::GET;
        Self { console, session: session.expect("BUG: a request without a session"), request, is_form }
    }

    pub(super) fn query(&self) -> Fields {
        Fields::of_query(self.request.uri().query().unwrap_or_default())
    }

    pub(super) fn path(&self) -> &str {
        self.request.uri().path()
    }

    /// Returns a segment of the request's path, percent-decoded. Segments are numbered from 1.
    pub(super) fn segment(&self, number: usize) -> String {
        let segment = self.path().split('/').nth(number).unwrap_or_default();
        percent_decode_str(segment).decode_utf8_lossy().into_owned()
    }

    /// Takes the HTTP request, so that the page can read an uploaded file from it.
    pub(super) fn take_request(&mut self) -> Request {
        std::mem::replace(&mut self.request, Request::new(Body::empty()))
    }

    pub(super) fn refuse_if_read_only(&self) -> Result<(), Problem> {
        let why = "This console was started with --read-only.";
        let refused = || Problem::Refused(StatusCode::FORBIDDEN, why.into());
        if self.console.read_only { Err(refused()) } else { Ok(()) }
    }

    pub(super) fn has_secret(&self, secret: &str) -> bool {
        self.session.has_secret(secret)
    }

    /// Returns the fields in the request's body, or refuses the request if the form secret is wrong.
    async fn form(&mut self) -> Result<Fields, Problem> {
        let uri = self.request.uri().clone();
        let request = self.take_request();
        *self.request.uri_mut() = uri;
        let Form(fields) = Form::<Vec<(String, String)>>::from_request(request, &())
            .await
            .map_err(|refused| Problem::Refused(refused.status(), refused.body_text()))?;
        let mut fields = Fields(fields);
        if !fields.get(SECRET).is_some_and(|secret| self.has_secret(secret)) {
            return Err(Problem::without_secret());
        }
        fields.0.retain(|(name, _)| name != SECRET);
        Ok(fields)
    }

    /// Creates the frame for a page. For a page that refreshes its figures, `at` is the time when they were read.
    pub(super) fn frame(&self, title: impl Into<String>, at: Option<Timestamp>) -> Frame {
        Frame {
            title: title.into(),
            path: self.request.uri().path().to_owned(),
            deployment: self.console.address.which.to_string(),
            place: self.console.account().map(|account| account.place.clone()),
            // A page that responds to a POST must not refresh, because the browser would send the form again.
            age: at
                .filter(|_| !self.is_form)
                .map(|at| self.console.now().since(at).as_secs())
                .map(|age| (age, short(age as f64))),
            figures_of: None,
            read_only: self.console.read_only,
            secret: self.session.form_secret.clone(),
            refreshes: !self.is_form,
            counts: self.console.counts.get(),
            toasts: self.console.works.toasts(self.path()),
            demo: self.console.demo.as_ref().map(|demo| demo.bar(self.back())),
        }
    }

    /// Path that the demonstration's buttons return to: this page or, after a POST, the first page.
    fn back(&self) -> String {
        let address = self.request.uri().path_and_query().filter(|_| !self.is_form);
        address.map_or_else(|| "/".to_owned(), ToString::to_string)
    }
}

/// Form field that contains other fields, as a query. In plain fields, the page would change their values: it shows some
/// characters as escapes.
pub(super) const FIELDS: &str = "fields";

/// Names and values of the fields in a form or in a query, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(pub(super) Vec<(String, String)>);

impl Fields {
    /// Returns the value of the first field with this name, or `None` if the field is empty or missing. In the
    /// form, a button comes before the text field of the same name, so the value of a pressed button wins.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(other, _)| other == name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns the values of all filled-in fields with this name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str());
        values.filter(|value| !value.is_empty())
    }

    /// Returns the values of these fields, or fails if the form lacks one of them.
    pub(super) fn required<const N: usize>(&self, names: [&str; N]) -> Result<[&str; N], Problem> {
        let values: Vec<&str> = names.iter().filter_map(|name| self.get(name)).collect();
        values.try_into().map_err(|_| Problem::incomplete())
    }

    /// Returns the value of a field, parsed by `read`, or `None` if the field is empty. The error begins with
    /// `label`.
    pub(super) fn read<T>(
        &self,
        name: &str,
        label: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        self.get(name).map(read).transpose().map_err(|why| format!("{label}: {why}"))
    }

    pub(super) fn with(&self, name: &str, value: &str) -> Self {
        let others = self.0.iter().filter(|(other, _)| other != name).cloned();
        Self(others.chain([(name.to_owned(), value.to_owned())]).collect())
    }

    pub(super) fn without(&self, names: &[&str]) -> Self {
        Self(self.0.iter().filter(|(name, _)| !names.contains(&name.as_str())).cloned().collect())
    }

    /// Reads the text that [`to_query`](Self::to_query) returns.
    pub(super) fn of_query(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// Replaces each field [`FIELDS`] with the fields that it contains.
    pub(super) fn unpacked(self) -> Self {
        let unpack = |(name, value): (String, String)| match &*name {
            FIELDS => Self::of_query(&value).0,
            _ => vec![(name, value)],
        };
        Self(self.0.into_iter().flat_map(unpack).collect())
    }

    pub(super) fn to_query(&self) -> String {
        let pairs = self.0.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
        pairs.collect::<Vec<_>>().join("&")
    }
}

/// Data for the frame around every page.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) title: String,
    path: String,
    pub(super) deployment: String,
    /// Account and region of the deployment; `None` until the console has connected to the account.
    pub(super) place: Option<Place>,
    /// Age of the page's figures, in seconds and as text, or `None` on a page that does not refresh them.
    pub(super) age: Option<(u64, String)>,
    /// Time when the figures were read, for a page that does not refresh them; otherwise `None`.
    pub(super) figures_of: Option<Text>,
    pub(super) read_only: bool,
    pub(super) secret: String,
    /// True if the page may reload itself.
    pub(super) refreshes: bool,
    /// The last counts of waiting events and dead-letters; `None` before the first read.
    counts: Option<NavigationCounts>,
    /// Notifications about changes that are in progress or have just ended, except this page's own change.
    pub(super) toasts: Vec<Toast>,
    /// The bar that controls the demonstration, at the top of each page; `None` for a real deployment.
    pub(super) demo: Option<Bar>,
}

impl Frame {
    /// Sets the time when the page's figures were read.
    pub(super) fn of(self, at: Timestamp) -> Self {
        Self { figures_of: Some(at.into()), ..self }
    }

    pub(super) fn is_at(&self, path: &str) -> bool {
        self.path == path
    }

    /// The number in the title of this page, if it is known.
    pub(super) fn count(&self) -> Option<String> {
        self.count_of(&self.path)
    }

    /// The number beside a page's name in the navigation.
    pub(super) fn count_of(&self, path: &str) -> Option<String> {
        let NavigationCounts { waiting, dead_letters } = self.counts?;
        match path {
            "/waiting" => Some(grouped(waiting)),
            "/dead" => Some(grouped(dead_letters)),
            _ => None,
        }
    }
}

pub(super) fn ok(page: &impl Template) -> Result<Response, Problem> {
    Ok(html(StatusCode::OK, page))
}

/// Reason why the response to a request is an error page.
#[derive(Debug)]
pub(super) enum Problem {
    Missing,
    Refused(StatusCode, String),
    /// Reading the account failed, so the page has nothing to show.
    Account(Failure),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self::Account(failure)
    }
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    frame: Frame,
    why: Text,
}

impl Problem {
    pub(super) fn bad_request(why: impl Into<String>) -> Self {
        Self::Refused(StatusCode::BAD_REQUEST, why.into())
    }

    pub(super) fn incomplete() -> Self {
        Self::bad_request("The form is incomplete.")
    }

    pub(super) fn without_secret() -> Self {
        let why = "Nothing was changed: the form lacks this session's secret. Reload its page and try again.";
        Self::Refused(StatusCode::FORBIDDEN, why.into())
    }

    fn page(self, mut frame: Frame) -> Response {
        let (status, title, why) = match self {
            Self::Missing => (StatusCode::NOT_FOUND, "No such page", "The console has no such page.".into()),
            Self::Refused(status, why) => (status, "Refused", why.into()),
            Self::Account(failure) => (StatusCode::BAD_GATEWAY, "Could not be read", failure.text()),
        };
        frame.title = title.into();
        html(status, &ProblemPage { frame, why })
    }
}

#[derive(Template)]
#[template(path = "style.css", escape = "none")]
struct Style {
    palette: [Colour; PALETTE.len()],
    figures: &'static str,
}

async fn style(_: Visit) -> Result<Response, Problem> {
    let style = Style { palette: PALETTE, figures: figure::STYLE.trim_end() }
        .render()
        .expect("BUG: writing to a String");
    Ok(with_type(StatusCode::OK, "text/css; charset=utf-8", style))
}

/// Returns the handler for a file that is part of this program.
fn file(
    kind: &'static str,
    text: &'static str,
) -> impl AsyncFn(Visit) -> Result<Response, Problem> + Clone + Send + Sync + 'static {
    async move |_| Ok(with_type(StatusCode::OK, kind, text.to_owned()))
}
