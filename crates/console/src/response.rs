//! HTTP responses: pages in which text is escaped, and redirects with encoded URLs.

use askama::Template;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};

use comeback_operate::shown::shown_lines;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Renders a page as a response, with control and bidirectional characters made visible.
pub(super) fn html(status: StatusCode, page: &impl Template) -> Response {
    let page = page.render().expect("BUG: writing to a String");
    with_type(status, "text/html; charset=utf-8", shown_lines(&page).into_owned())
}

pub(super) fn with_type(status: StatusCode, kind: &'static str, body: String) -> Response {
    (status, [(CONTENT_TYPE, HeaderValue::from_static(kind))], body).into_response()
}

pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Redirects the browser to `path`.
pub(super) fn go_to(path: &str) -> Response {
    let path = HeaderValue::from_str(path).expect("BUG: a path is not a header value");
    (StatusCode::SEE_OTHER, [(LOCATION, path)]).into_response()
}

/// The page for a refused request, which must not reveal anything about the deployment.
#[derive(Template)]
#[template(path = "refused.html")]
struct RefusedPage {
    why: &'static str,
}

pub(super) fn refused(status: StatusCode, why: &'static str) -> Response {
    html(status, &RefusedPage { why })
}
