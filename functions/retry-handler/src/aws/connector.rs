//! How the clients connect.

use std::time::Duration;

use aws_sdk_sqs::config::{HttpClient, RuntimeComponents, SharedHttpClient};
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::http::{HttpConnectorSettings, SharedHttpConnector};

/// Of every connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);
/// A connection that was idle for longer is not used again. Its other end may have closed it while the
/// function's environment was frozen, and an `Invoke` sent on it would count as unanswered.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// One connector for every client. The SDK's own HTTP client makes one for each timeout and one more for each client that
/// is built, and reads the trusted certificates for each anew.
#[derive(Debug)]
struct OneConnector(SharedHttpConnector);

impl HttpClient for OneConnector {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        self.0.clone()
    }
}

pub(super) fn http_client(trusted: TrustStore) -> SharedHttpClient {
    let tls = TlsContext::builder().with_trust_store(trusted).build();
    let connector = Connector::builder()
        .connector_settings(HttpConnectorSettings::builder().connect_timeout(CONNECT_TIMEOUT).build())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
        .tls_context(tls.expect("BUG: a context of certificates alone is complete"))
        .build();
    SharedHttpClient::new(OneConnector(SharedHttpConnector::new(connector)))
}
