//! The HTTP server and its limits: who may connect, what a request must look like, and how long it may take.
//!
//! Each connection serves only one request, which limits its time and memory.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::TryStreamExt as _;
use futures_util::stream::try_unfold;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

use comeback_operate::Interrupt;

use crate::access::Access;
use crate::response::refused;
use comeback_operate::clock::now;

/// Maximum number of open connections, which is enough for one user.
pub(super) const CONNECTIONS: usize = 32;
/// Longest wait for a request's headers.
pub(super) const HEADERS_WITHIN: Duration = Duration::from_secs(10);
/// Longest time without data while a request's body is being received. An upload through a tunnel may stall for a
/// while.
pub(super) const SILENT_FOR: Duration = Duration::from_secs(30);
/// Longest time for one request and its response; searching a large log or queue can take minutes.
pub(super) const REQUEST_WITHIN: Duration = Duration::from_secs(600);
/// Size, in bytes, of the buffer for a request's headers and for the part of its body that is read ahead.
const BUFFER: usize = 32 << 10;

/// Content security policy: the browser loads nothing from other sites, and ignores inline scripts and styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Serves the console until `stop` is raised, and then returns without waiting for open connections.
pub(super) async fn serve(listener: TcpListener, router: Router, access: Rc<Access>, stop: Interrupt) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let next = async {
            // Further connections wait in the listener's queue until a place is free.
            let place = Arc::clone(&room).acquire_owned().await.expect("BUG: the semaphore is closed");
            (listener.accept().await, place)
        };
        let (stream, place) = tokio::select! {
            next = next => next,
            () = stop.raised() => return,
        };
        let (router, access) = (router.clone(), Rc::clone(&access));
        tokio::task::spawn_local(async move {
            // The place is released even if the page panics.
            let _place = place;
            if let Ok((stream, _)) = stream {
                converse(stream, &router, &access).await;
            } else {
                // Accepting fails, for example, for lack of a free file handle, and may succeed a moment later.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    }
}

async fn converse(stream: TcpStream, router: &Router, access: &Access) {
    let service = service_fn(async |request: hyper::Request<Incoming>| {
        Ok::<_, std::convert::Infallible>(answer(request.map(in_time), router, access).await)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .keep_alive(false)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    // A browser that disconnects or is too slow gets no response.
    let _ = tokio::time::timeout(REQUEST_WITHIN, connection).await;
}

/// Wraps a request's body so that reading it fails if the browser pauses for [`SILENT_FOR`] before the end of the body.
fn in_time(body: Incoming) -> Body {
    Body::from_stream(try_unfold(Body::new(body).into_data_stream(), async |mut pieces| {
        let piece = tokio::time::timeout(SILENT_FOR, pieces.try_next()).await;
        let piece = piece.map_err(|_| axum::Error::new("the rest of it did not arrive"))??;
        Ok::<_, axum::Error>(piece.map(|piece| (piece, pieces)))
    }))
}

pub(super) async fn answer(request: Request, router: &Router, access: &Access) -> Response {
    let mut response = match check(&request) {
        Err((status, why)) => refused(status, why),
        // Browsers request this path if a page names no icon.
        Ok(()) if request.uri().path() == "/favicon.ico" => StatusCode::NO_CONTENT.into_response(),
        Ok(()) => match access.admit(request, now()) {
            ControlFlow::Break(response) => response,
            ControlFlow::Continue(request) => router.clone().oneshot(request).await.into_response(),
        },
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // `no-referrer` would make browsers send `Origin: null` with the console's own forms.
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Checks that the host is local, that the method is GET or POST, and that a POST comes from a page of this server.
fn check(request: &Request) -> Result<(), (StatusCode, &'static str)> {
    let host = host(request.headers()).filter(|_| request.uri().authority().is_none());
    let Some(host) = host.filter(is_loopback) else {
        let why =
            "This server accepts only requests from its own machine: open it as localhost or 127.0.0.1.";
        return Err((StatusCode::FORBIDDEN, why));
    };
    match *request.method() {
        Method::GET => Ok(()),
        Method::POST if is_from(request.headers(), &host) => Ok(()),
        Method::POST => {
            Err((StatusCode::FORBIDDEN, "Nothing was changed: the form is not from a page of this server."))
        }
        _ => Err((StatusCode::METHOD_NOT_ALLOWED, "Only GET and POST are served.")),
    }
}

fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())?.to_str().ok()
}

fn host(headers: &HeaderMap) -> Option<Authority> {
    // A user name in the `Host` header can only be an attack.
    only(headers, &HOST)?.parse().ok().filter(|host: &Authority| !host.as_str().contains('@'))
}

/// Returns true if `host` names this machine; refusing other names prevents DNS rebinding. Any port is accepted,
/// because a tunnel may listen on a different port from the console.
fn is_loopback(host: &Authority) -> bool {
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// Returns true if the `Origin` header says that a form came from a page at `host`.
fn is_from(headers: &HeaderMap, host: &Authority) -> bool {
    only(headers, &ORIGIN).is_some_and(|origin| origin.strip_prefix("http://") == Some(host.as_str()))
}
