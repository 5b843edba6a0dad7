//! Of a request without an answer, the handler's own HTTP client tells the SDK the same as the SDK's does.

use aws_sdk_lambda::error::{DisplayErrorContext, SdkError};
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::http::{HttpConnectorSettings, SharedHttpConnector, http_client_fn};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::connections::{connecting, read_request, taking_no_connections};
use super::*;
use crate::aws::connect::CONNECT_TIMEOUT;

fn of_the_sdk() -> SharedHttpClient {
    let settings = HttpConnectorSettings::builder().connect_timeout(CONNECT_TIMEOUT).build();
    let connector = Connector::builder()
        .connector_settings(settings)
        .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
        .build();
    let connector = SharedHttpConnector::new(connector);
    http_client_fn(move |_, _| connector.clone())
}

/// How an `Invoke` at that endpoint ends, as a client reports it.
async fn outcome_of(http_client: SharedHttpClient, endpoint: &str) -> String {
    let aws =
        Aws::new(&signed().into_builder().endpoint_url(endpoint).http_client(http_client).build(), None);
    let failed = aws.lambda.invoke().function_name(FUNCTION).send().await.unwrap_err();
    match &failed {
        SdkError::DispatchFailure(failure) if failure.is_timeout() => "timeout".into(),
        SdkError::DispatchFailure(failure) if failure.is_io() => "io".into(),
        SdkError::DispatchFailure(failure) if failure.is_user() => "user".into(),
        SdkError::DispatchFailure(failure) => format!("other, {:?}", failure.as_other()),
        _ => panic!("{}", DisplayErrorContext(&failed)),
    }
}

/// A server that ends every connection with this, after a request.
async fn ending_with(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            read_request(&mut connection).await;
            connection.write_all(bytes).await.unwrap();
        }
    });
    address.to_string()
}

#[tokio::test]
async fn a_connection_that_fails_is_reported_as_by_the_sdk() {
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let closing = ending_with(b"").await;
    let garbled = ending_with(b"no HTTP\r\n\r\n").await;
    let broken_off = ending_with(b"HTTP/1.1 202 Acc").await;
    for (endpoint, expected) in [
        (format!("http://{unused}"), "io"),
        (format!("https://{closing}"), "io"),
        (format!("https://{garbled}"), "io"),
        (format!("http://{closing}"), "other, Some(TransientError)"),
        (format!("http://{broken_off}"), "other, Some(TransientError)"),
        (format!("http://{garbled}"), "other, None"),
    ] {
        assert_eq!(outcome_of(of_the_sdk(), &endpoint).await, expected, "the SDK, {endpoint}");
        assert_eq!(outcome_of(connecting(), &endpoint).await, expected, "{endpoint}");
    }
}

#[tokio::test]
async fn a_connection_that_takes_too_long_is_reported_as_by_the_sdk() {
    let (address, _waiting) = taking_no_connections();
    let endpoint = format!("http://{address}");
    tokio::time::pause();
    assert_eq!(outcome_of(of_the_sdk(), &endpoint).await, "timeout");
    assert_eq!(outcome_of(connecting(), &endpoint).await, "timeout");
}
