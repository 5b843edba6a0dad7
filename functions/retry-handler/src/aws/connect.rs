//! A new connection: TCP, and TLS if the endpoint's URL says so.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use aws_smithy_runtime_api::box_error::BoxError;
use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

/// Of every connection: looking its host up, TCP and TLS.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Makes connections.
#[derive(Clone, Debug)]
pub(super) struct Connect(HttpsConnector<HttpConnector>);

/// A connection that was not made in time.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {CONNECT_TIMEOUT:?}")]
pub(super) struct TookTooLong;

impl Connect {
    pub(super) fn trusting(authorities: RootCertStore) -> Self {
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
