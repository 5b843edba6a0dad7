//! The HTTP client that the handler's SDK clients share. The SDK's own client accepts trusted certificates only as PEM,
//! and parses each of them at startup.

use std::error::Error;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use aws_sdk_sqs::config::SharedHttpClient;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::connection::{CaptureSmithyConnection, ConnectionMetadata};
use aws_smithy_runtime_api::client::http::{
    HttpConnector as SmithyConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::ErrorKind;
use http::Uri;
use http_body_util::Limited;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{CaptureConnection, HttpConnector, capture_connection};
use hyper_util::client::legacy::{Client, Error as HttpError};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};
use rustls_native_certs::load_certs_from_paths;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;
use webpki_roots::TLS_SERVER_ROOTS;

use super::failure::chain;

/// Longest time that a connection may be idle and still be reused. The other end may close it while Lambda keeps the
/// process frozen, and an `Invoke` on a closed connection would count as unanswered.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a response's body; AWS sends the handler no response over 100 KiB.
pub(super) const LARGEST_ANSWER: usize = 1_048_576;

pub(super) fn http_client(trusted: RootCertStore) -> SharedHttpClient {
    let connections = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .build(Connect::trusting(trusted));
    let connector = SharedHttpConnector::new(Connections(connections));
    // All SDK clients share one HTTP client. By default, the SDK would create one for each timeout and each of its
    // clients.
    http_client_fn(move |_, _| connector.clone())
}

#[derive(Debug)]
struct Connections(Client<Connect, SdkBody>);

impl SmithyConnector for Connections {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let mut request = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into()))),
        };
        let used = capture_connection(&mut request);
        if let Some(capture) = request.extensions().get::<CaptureSmithyConnection>() {
            capture.set_connection_retriever(move || metadata(&used));
        }
        let answer = self.0.request(request);
        HttpConnectorFuture::new(async move {
            let answer = answer.await.map_err(failure)?;
            let limited = |body| SdkBody::from_body_1_x(Limited::new(body, LARGEST_ANSWER));
            HttpResponse::try_from(answer.map(limited))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// Describes a request's connection, so that the SDK can close it before a retry. `None` if there is no connection.
fn metadata(used: &CaptureConnection) -> Option<ConnectionMetadata> {
    used.connection_metadata().as_ref()?;
    let used = used.clone();
    let close = move || used.connection_metadata().iter().for_each(|connection| connection.poison());
    Some(ConnectionMetadata::builder().proxied(false).poison_fn(close).build())
}

/// Converts an HTTP error to the SDK's error for a request without a response, as the SDK's own HTTP client does.
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

fn cause<E: Error + 'static>(error: &HttpError) -> Option<&E> {
    chain(error).find_map(|error| error.downcast_ref())
}

/// Timeout for opening a connection, including DNS, TCP and TLS.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);

#[derive(Clone, Debug)]
struct Connect(HttpsConnector<HttpConnector>);

#[derive(Debug, thiserror::Error)]
#[error("no connection within {CONNECT_TIMEOUT:?}")]
struct TookTooLong;

impl Connect {
    fn trusting(authorities: RootCertStore) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let mut tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("BUG: the provider has ciphers for these versions")
            .with_root_certificates(authorities)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".into()];
        Self(HttpsConnector::from((tcp, tls)))
    }
}

impl Service<Uri> for Connect {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, endpoint: Uri) -> Self::Future {
        let connecting = timeout(CONNECT_TIMEOUT, self.0.call(endpoint));
        Box::pin(async { connecting.await.unwrap_or_else(|_| Err(TookTooLong.into())) })
    }
}

/// An environment variable and its value: the path of a file of PEM certificates, or of a folder of such files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustedFile {
    pub(crate) variable: &'static str,
    pub(crate) path: PathBuf,
}

/// Returns the certificate authorities to trust: those in the files or, without files, Mozilla's built-in list.
///
/// # Errors
///
/// Fails if a file contains no usable certificate.
pub(super) fn trusted(files: &[TrustedFile]) -> Result<RootCertStore, String> {
    if files.is_empty() {
        return Ok(RootCertStore { roots: TLS_SERVER_ROOTS.to_vec() });
    }
    let mut store = RootCertStore::empty();
    for TrustedFile { variable, path } in files {
        let (file, folder) = if path.is_dir() { (None, Some(path)) } else { (Some(path), None) };
        let read = load_certs_from_paths(file.map(AsRef::as_ref), folder.map(AsRef::as_ref));
        // A system's bundle may contain certificates that cannot serve as trust anchors. They are skipped.
        let (added, _) = store.add_parsable_certificates(read.certs);
        if added == 0 {
            let problem = read.errors.first().map_or("it holds none".into(), ToString::to_string);
            return Err(format!(
                "{variable} is {path:?}, which has no readable certificate ({problem}); it must be a PEM file"
            ));
        }
    }
    Ok(store)
}
