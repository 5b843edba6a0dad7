//! The HTTP client of all of the handler's clients: HTTP/1.1, which every service takes. The SDK's own brings HTTP/2 with
//! it, and takes trusted certificates as text only, each of which it reads at the start.

use std::error::Error;
use std::time::Duration;

use aws_sdk_sqs::config::{HttpClient, RuntimeComponents, SharedHttpClient};
use aws_smithy_runtime_api::client::connection::{CaptureSmithyConnection, ConnectionMetadata};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::ErrorKind;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::client::legacy::{Client, Error as HttpError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::RootCertStore;

use super::connect::{Connect, TookTooLong};

/// A connection that was idle for longer is not used again. Its other end may have closed it while the
/// function's environment was frozen, and an `Invoke` sent on it would count as unanswered.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// One connector for every client. The SDK would ask for one for each timeout, and one more for each client.
#[derive(Debug)]
struct OneConnector(SharedHttpConnector);

impl HttpClient for OneConnector {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        self.0.clone()
    }
}

pub(super) fn http_client(trusted: RootCertStore) -> SharedHttpClient {
    let connections = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .build(Connect::trusting(trusted));
    SharedHttpClient::new(OneConnector(SharedHttpConnector::new(Connections(connections))))
}

/// Connections, of which idle ones are used again.
#[derive(Debug)]
struct Connections(Client<Connect, SdkBody>);

impl HttpConnector for Connections {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let mut request = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into()))),
        };
        let used = capture_connection(&mut request);
        if let Some(capture) = request.extensions().get::<CaptureSmithyConnection>() {
            capture.set_connection_retriever(move || of_sdk(&used));
        }
        let answer = self.0.request(request);
        HttpConnectorFuture::new(async move {
            let answer = answer.await.map_err(failure)?;
            HttpResponse::try_from(answer.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// The connection that carried a request, for the SDK, which has it closed after an answer that says to try again.
fn of_sdk(used: &CaptureConnection) -> Option<ConnectionMetadata> {
    used.connection_metadata().as_ref()?;
    let used = used.clone();
    let close = move || used.connection_metadata().iter().for_each(|connection| connection.poison());
    Some(ConnectionMetadata::builder().proxied(false).poison_fn(close).build())
}

/// A request without an answer, as the SDK's own HTTP client would report it.
fn failure(error: HttpError) -> ConnectorError {
    let in_time = cause::<TookTooLong>(&error).is_none();
    let of_connection = error.is_connect() || cause::<std::io::Error>(&error).is_some();
    let said = cause::<hyper::Error>(&error);
    let is = |what: fn(&hyper::Error) -> bool| said.is_some_and(what);
    if !in_time || is(hyper::Error::is_timeout) {
        ConnectorError::timeout(error.into())
    } else if is(hyper::Error::is_user) {
        ConnectorError::user(error.into())
    } else if of_connection || is(hyper::Error::is_closed) || is(hyper::Error::is_canceled) {
        ConnectorError::io(error.into())
    } else if is(hyper::Error::is_incomplete_message) {
        ConnectorError::other(error.into(), Some(ErrorKind::TransientError))
    } else {
        ConnectorError::other(error.into(), None)
    }
}

/// The first such error among the causes.
fn cause<E: Error + 'static>(error: &HttpError) -> Option<&E> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |error| (*error).source())
        .find_map(|error| error.downcast_ref())
}
