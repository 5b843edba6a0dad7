//! Signs browsers in to the console with one-time codes, and keeps track of their sessions.
//!
//! A session has a cookie and a form secret. Browsers send the cookie to every port of a host, so a POST also needs
//! the secret, which is a hidden field in each form.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::Request;
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use comeback_engine::Timestamp;
use subtle::ConstantTimeEq as _;
use tokio::sync::Notify;

use crate::response::{html, refused};

/// Path of the request that exchanges a one-time code for a session cookie. The code is in the URL's query.
const ENTER: &str = "/enter";
const CODE_FOR: Duration = Duration::from_secs(60);
/// Maximum number of sessions. A further sign-in ends the oldest.
const SESSIONS: usize = 16;

const WITHOUT_SESSION: &str =
    "This browser is not signed in. Press Enter where comeback ui runs, and open the address that it prints.";
const BAD_CODE: &str = "This code is invalid, used, or more than a minute old. For another, press Enter where \
                        comeback ui runs.";

/// 256 random bits, in hexadecimal.
pub(super) fn token() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("BUG: the system has no randomness");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares two strings in constant time.
fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

#[derive(Debug)]
pub(super) struct BrowserSession {
    cookie: String,
    /// The secret in a hidden field of every form that is shown in this session.
    pub(super) form_secret: String,
}

impl BrowserSession {
    pub(super) fn has_secret(&self, given: &str) -> bool {
        is_same(given, &self.form_secret)
    }
}

pub(super) struct Access {
    cookie_name: String,
    codes: RefCell<Vec<(String, Timestamp)>>,
    sessions: RefCell<Vec<Arc<BrowserSession>>>,
    /// Notified when a browser signs in with a code.
    used: Rc<Notify>,
}

#[derive(Template)]
#[template(path = "enter.html")]
struct Entered;

impl Access {
    /// Creates the access control for a console that listens on this port.
    pub(super) fn new(port: u16) -> Self {
        let cookie_name = format!("comeback-{port}");
        Self { cookie_name, codes: RefCell::default(), sessions: RefCell::default(), used: Rc::default() }
    }

    /// Creates a code that is valid for a minute and for one browser, and returns a path that contains the code.
    pub(super) fn way_in(&self, now: Timestamp) -> String {
        let code = token();
        let path = format!("{ENTER}?code={code}");
        let mut codes = self.codes.borrow_mut();
        codes.retain(|(_, made)| is_fresh(*made, now));
        codes.push((code, now));
        path
    }

    /// Waits until a browser has signed in.
    pub(super) fn code_used(&self) -> impl Future<Output = ()> + use<> {
        let used = Rc::clone(&self.used);
        async move { used.notified().await }
    }

    #[cfg(test)]
    pub(super) fn last_secret(&self) -> String {
        self.sessions.borrow().last().expect("a browser is in").form_secret.clone()
    }

    /// Lets a request with a valid session continue to its page, and responds to any other request itself.
    pub(super) fn admit(&self, mut request: Request, now: Timestamp) -> ControlFlow<Response, Request> {
        if request.uri().path() == ENTER {
            let code = request.uri().query().and_then(|query| query.strip_prefix("code="));
            return ControlFlow::Break(self.exchange(code.unwrap_or_default(), now));
        }
        let Some(session) = self.session(request.headers()) else {
            return ControlFlow::Break(refused(StatusCode::FORBIDDEN, WITHOUT_SESSION));
        };
        request.extensions_mut().insert(session);
        ControlFlow::Continue(request)
    }

    fn session(&self, headers: &HeaderMap) -> Option<Arc<BrowserSession>> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let ours = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == self.cookie_name).then_some(value)
        });
        let sessions = self.sessions.borrow();
        let mut found =
            ours.filter_map(|value| sessions.iter().find(|session| is_same(value, &session.cookie)));
        found.next().cloned()
    }

    /// Responds to a valid code with a page that sets the session cookie and then opens the console. A redirect would
    /// lose the `SameSite=Strict` cookie if the operator came from another site.
    fn exchange(&self, code: &str, now: Timestamp) -> Response {
        let mut codes = self.codes.borrow_mut();
        let Some(position) = codes.iter().position(|(known, _)| is_same(code, known)) else {
            return refused(StatusCode::FORBIDDEN, BAD_CODE);
        };
        let (_, made) = codes.remove(position);
        if !is_fresh(made, now) {
            return refused(StatusCode::FORBIDDEN, BAD_CODE);
        }
        let session = Arc::new(BrowserSession { cookie: token(), form_secret: token() });
        let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name, session.cookie);
        let mut sessions = self.sessions.borrow_mut();
        if sessions.len() == SESSIONS {
            sessions.remove(0);
        }
        sessions.push(session);
        self.used.notify_one();
        let mut response = html(StatusCode::OK, &Entered);
        let cookie = HeaderValue::from_str(&cookie).expect("BUG: a cookie is not a header value");
        response.headers_mut().insert(SET_COOKIE, cookie);
        response
    }
}

fn is_fresh(made: Timestamp, now: Timestamp) -> bool {
    now.since(made) < CODE_FOR && now >= made
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_789_400_000);

    fn get(path: &str, cookies: &[&str]) -> Request {
        let mut request = Request::get(path);
        for cookie in cookies {
            request = request.header(COOKIE, *cookie);
        }
        request.body(Body::empty()).unwrap()
    }

    fn after(seconds: u64) -> Timestamp {
        NOW.saturating_add(Duration::from_secs(seconds))
    }

    /// Signs in with the one-time code in the path, and returns the session cookie, or `None` if the code is refused.
    fn cookie(access: &Access, path: &str, now: Timestamp) -> Option<String> {
        let ControlFlow::Break(response) = access.admit(get(path, &[]), now) else {
            panic!("a code is exchanged, and leads nowhere else")
        };
        let cookie = response.headers().get(SET_COOKIE)?.to_str().unwrap().to_owned();
        assert_eq!(response.status(), StatusCode::OK, "a redirect would lose the cookie");
        Some(cookie)
    }

    fn is_in(access: &Access, cookies: &[&str]) -> bool {
        access.admit(get("/", cookies), after(3_600)).is_continue()
    }

    #[test]
    fn a_code_signs_in_once() {
        let access = Access::new(7070);
        let path = access.way_in(NOW);
        let set = cookie(&access, &path, after(59)).unwrap();
        let (cookie_pair, attributes) = set.split_once("; ").unwrap();
        assert!(cookie_pair.starts_with("comeback-7070="), "{cookie_pair}");
        assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict");
        assert!(is_in(&access, &[cookie_pair]));
        assert_eq!(cookie(&access, &path, after(59)), None);
    }

    #[test]
    fn a_code_is_valid_for_a_minute() {
        let access = Access::new(7070);
        let path = access.way_in(NOW);
        assert_eq!(cookie(&access, &path, after(60)), None);
        assert_eq!(cookie(&access, &path, after(1)), None, "it was offered, and is gone");
        let (one, other) = (access.way_in(NOW), access.way_in(after(30)));
        assert!(cookie(&access, &other, after(70)).is_some() && cookie(&access, &one, after(59)).is_some());
    }

    #[test]
    fn a_guess_is_not_a_code() {
        let access = Access::new(7070);
        let path = access.way_in(NOW);
        let shorter = &path[..path.len() - 1];
        for guess in ["/enter", "/enter?code=", "/enter?code=0", shorter, &format!("{path}0")] {
            assert_eq!(cookie(&access, guess, NOW), None, "{guess}");
        }
        assert!(cookie(&access, &path, NOW).is_some(), "guesses spoil nothing");
    }

    #[test]
    fn only_our_cookie_gives_access() {
        let access = Access::new(7070);
        let cookie = cookie(&access, &access.way_in(NOW), NOW).unwrap();
        let (cookie, _) = cookie.split_once(';').unwrap();
        let (_, value) = cookie.split_once('=').unwrap();
        // Another server on this machine may set cookies for this host, even a cookie with the session cookie's name.
        assert!(is_in(&access, &["a=b; comeback-7070=x", &format!("c=d; {cookie}")]));
        let other_port = format!("comeback-7071={value}");
        for cookies in [&[][..], &["comeback-7070="], &["comeback-7070=x"], &[&other_port], &[value]] {
            assert!(!is_in(&access, cookies), "{cookies:?}");
        }
    }

    #[test]
    fn too_many_sessions_end_the_oldest() {
        let access = Access::new(7070);
        let enter = || cookie(&access, &access.way_in(NOW), NOW).unwrap();
        let cookies: Vec<_> = (0..=SESSIONS).map(|_| enter()).collect();
        let are_in: Vec<_> =
            cookies.iter().map(|cookie| is_in(&access, &[cookie.split(';').next().unwrap()])).collect();
        assert_eq!(are_in.iter().position(|is_in| *is_in), Some(1));
    }

    #[test]
    fn tokens_are_256_bits_and_differ() {
        let (one, other) = (token(), token());
        assert!(one.len() == 64 && one != other);
    }
}
