//! Invokes over TLS, on the handler's own HTTP client.

use std::path::PathBuf;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::connections::{ACCEPTED, invoke, read_request};
use super::*;

/// A server that accepts every invoke, by its URL, and its own certificate: no authority has signed it.
async fn serving() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        loop {
            let (connection, _) = listener.accept().await.unwrap();
            // A client that does not trust the certificate ends the handshake.
            let Ok(mut connection) = acceptor.accept(connection).await else { continue };
            read_request(&mut connection).await;
            connection.write_all(ACCEPTED.as_bytes()).await.unwrap();
        }
    });
    (endpoint, made.cert.pem())
}

fn crypto() -> tokio_rustls::rustls::crypto::CryptoProvider {
    tokio_rustls::rustls::crypto::aws_lc_rs::default_provider()
}

/// The environment with these variables.
fn environment(variables: &[(&str, &str)]) -> Environment {
    let value =
        |name: &str| variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| *value);
    Environment::read(|name| value(name).map(Into::into)).unwrap()
}

async fn invoke_trusting(
    variables: &[(&str, &str)],
    endpoint: &str,
) -> Result<Option<String>, InvokeFailure> {
    let http_client = connector::http_client(trust::store(&environment(variables).trusted).unwrap());
    invoke(&Aws::new(&signed().into_builder().endpoint_url(endpoint).http_client(http_client).build(), None))
        .await
}

fn written(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_server_that_no_built_in_authority_has_signed_for_gets_nothing() {
    let (endpoint, _) = serving().await;
    let answer = invoke_trusting(&[], &endpoint).await;
    let Err(InvokeFailure::Later(failure)) = answer else { panic!("{answer:?}") };
    assert!(failure.cause.contains("UnknownIssuer"), "{failure:?}");
}

#[tokio::test]
async fn a_certificate_that_a_variable_names_is_trusted() {
    let (endpoint, certificate) = serving().await;
    let folder = tempfile::tempdir().unwrap();
    let file = written(&folder, "ca.pem", &format!("# a comment\n{certificate}"));
    let folders = folder.path().to_str().unwrap();
    for variables in [("AWS_CA_BUNDLE", file.as_str()), ("SSL_CERT_FILE", &file), ("SSL_CERT_DIR", folders)] {
        assert_eq!(invoke_trusting(&[variables], &endpoint).await, Ok(None), "{variables:?}");
    }
    let (elsewhere, _) = serving().await;
    let answer = invoke_trusting(&[("AWS_CA_BUNDLE", &file)], &elsewhere).await;
    assert!(matches!(answer, Err(InvokeFailure::Later(_))), "{answer:?}");
}

#[test]
fn named_certificates_are_trusted_instead_of_those_built_in() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap().cert.pem();
    let file = written(&folder, "ca.pem", &made);
    let trusted = |variables: &[_]| trust::store(&environment(variables).trusted).unwrap().len();
    assert!(trusted(&[]) > 100);
    assert_eq!(trusted(&[("AWS_CA_BUNDLE", &file)]), 1);
}

#[test]
fn a_variable_that_names_no_certificate_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let garbled = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let (empty, garbled) = (written(&folder, "empty", ""), written(&folder, "garbled", garbled));
    for (variable, path) in
        [("AWS_CA_BUNDLE", "/no/such/file"), ("SSL_CERT_FILE", &empty), ("SSL_CERT_FILE", &garbled)]
    {
        let refused = trust::store(&environment(&[(variable, path)]).trusted).unwrap_err().to_string();
        let start = format!("{variable} is {path:?}, from which no certificate could be read (");
        assert!(refused.starts_with(&start), "{refused}");
        assert!(refused.ends_with("); name a file of certificates in PEM"), "{refused}");
    }
}

#[test]
fn variables_say_where_the_services_are() {
    let all = [("AWS_REGION", "cn-north-1"), ("AWS_DEFAULT_REGION", "eu-west-1")];
    let sdk = |variables: &[(&str, &str)]| {
        let http_client = SharedHttpClient::new(NeverClient::new());
        environment(variables).sdk_config(http_client)
    };
    assert_eq!(sdk(&all).region(), Some(&Region::new("cn-north-1")));
    assert_eq!(sdk(&all[1..]).region(), Some(&Region::new("eu-west-1")));
    let fips = sdk(&[("AWS_USE_FIPS_ENDPOINT", "TRUE"), ("AWS_USE_DUALSTACK_ENDPOINT", "false")]);
    assert_eq!((fips.use_fips(), fips.use_dual_stack()), (Some(true), Some(false)));
    assert_eq!((sdk(&[]).use_fips(), sdk(&[("AWS_USE_FIPS_ENDPOINT", "")]).use_fips()), (None, None));
    let refused = Environment::read(|name| (name == "AWS_USE_FIPS_ENDPOINT").then(|| "yes".into()));
    let refused = refused.unwrap_err().to_string();
    assert_eq!(refused, r#"AWS_USE_FIPS_ENDPOINT is "yes"; it must be true or false"#);
}

/// Each client goes to its own service's endpoint, or else to the one of all.
#[tokio::test]
async fn one_service_may_have_an_endpoint_of_its_own() {
    let (endpoint, certificate) = serving().await;
    let folder = tempfile::tempdir().unwrap();
    let bundle = written(&folder, "ca.pem", &certificate);
    for name in ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_LAMBDA"] {
        let others = [("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:9"), (name, endpoint.as_str())];
        let environment = environment(&[&others[..], &[("AWS_CA_BUNDLE", &bundle)]].concat());
        let http_client = connector::http_client(trust::store(&environment.trusted).unwrap());
        let sdk = environment.sdk_config(http_client).into_builder().region(Region::new("eu-west-1"));
        let credentials = SharedCredentialsProvider::new(Credentials::new("id", "key", None, None, "test"));
        let aws = Aws::new(&sdk.credentials_provider(credentials).build(), None);
        assert_eq!(invoke(&aws).await, Ok(None), "{name}");
    }
}
