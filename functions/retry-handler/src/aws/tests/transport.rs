//! Tests for the handler's own HTTP client: connections, errors, TLS and credentials.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use aws_credential_types::credential_fn::provide_credentials_fn;
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_lambda::error::{DisplayErrorContext, SdkError};
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::http::{HttpConnectorSettings, SharedHttpConnector, http_client_fn};
use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::*;
use crate::aws::transport::{CONNECT_TIMEOUT, IDLE_TIMEOUT, LARGEST_ANSWER, http_client, trusted};

const FAILED: &str =
    "HTTP/1.1 500 Internal Server Error\r\nx-amzn-errortype: ServiceException\r\ncontent-length: 0\r\n\r\n";
const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";

/// Starts a local server, and returns clients that call it. `connections` holds the responses on each connection, one
/// per request.
async fn serving(connections: &'static [&'static [&'static str]]) -> AwsClients {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for answers in connections {
            let (mut connection, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                for answer in *answers {
                    read_request(&mut connection).await;
                    connection.write_all(answer.as_bytes()).await.unwrap();
                }
                read_request(&mut connection).await;
            });
        }
    });
    calling(&endpoint, connecting())
}

/// Reads and discards a request, which is small enough for a single read.
async fn read_request(connection: &mut (impl AsyncRead + Unpin)) {
    let mut request = [0; 8_192];
    let _ = connection.read(&mut request).await;
}

fn connecting() -> SharedHttpClient {
    http_client(trusted(&[]).unwrap())
}

async fn invoke(aws: &AwsClients) -> Result<Option<String>, InvokeFailure> {
    account(aws).invoke(&MESSAGE, FUNCTION, "7".into()).await
}

/// Starts a server with a full backlog, so attempts to connect hang until the second return value is dropped.
fn taking_no_connections() -> (SocketAddr, impl Sized) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting: Vec<_> = (0..8).map(|_| Box::pin(TcpStream::connect(address))).collect();
    let begun = waiting.iter_mut().map(|connection| connection.as_mut().now_or_never());
    assert_eq!(begun.count(), 8);
    (address, (listener, waiting))
}

#[tokio::test]
async fn without_credentials_nothing_is_sent() {
    let missing = provide_credentials_fn(|| async { Err(CredentialsError::not_loaded("none here")) });
    let shared = signed().into_builder().credentials_provider(SharedCredentialsProvider::new(missing));
    let answer = invoke(&AwsClients::new(&shared.http_client(connecting()).build(), None)).await;
    let Err(InvokeFailure::NotSent(failure)) = answer else { panic!("{answer:?}") };
    assert!(failure.remedy.as_ref().is_some_and(|remedy| remedy.contains("credentials")), "{failure:?}");
}

/// The second `Invoke` uses a new connection, because the first has been idle for too long.
#[tokio::test]
async fn long_idle_connection_is_not_reused() {
    let aws = serving(&[&[ACCEPTED], &[ACCEPTED]]).await;
    assert_eq!(invoke(&aws).await, Ok(None));
    tokio::time::pause();
    tokio::time::advance(IDLE_TIMEOUT + Duration::from_millis(1)).await;
    tokio::time::resume();
    assert_eq!(invoke(&aws).await, Ok(None));
}

#[tokio::test]
async fn briefly_idle_connection_is_reused() {
    let aws = serving(&[&[ACCEPTED, ACCEPTED]]).await;
    assert_eq!(invoke(&aws).await, Ok(None));
    assert_eq!(invoke(&aws).await, Ok(None));
}

#[tokio::test]
async fn failed_servers_connection_is_not_reused() {
    let aws = serving(&[&[FAILED], &[ACCEPTED]]).await;
    let failed = invoke(&aws).await;
    assert!(matches!(failed, Err(InvokeFailure::Later(_))), "{failed:?}");
    assert_eq!(invoke(&aws).await, Ok(None));
}

fn of_the_sdk() -> SharedHttpClient {
    let settings = HttpConnectorSettings::builder().connect_timeout(CONNECT_TIMEOUT).build();
    let connector = Connector::builder()
        .connector_settings(settings)
        .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
        .build();
    let connector = SharedHttpConnector::new(connector);
    http_client_fn(move |_, _| connector.clone())
}

fn calling(endpoint: &str, http_client: SharedHttpClient) -> AwsClients {
    AwsClients::new(&signed().into_builder().endpoint_url(endpoint).http_client(http_client).build(), None)
}

async fn outcome_of(http_client: SharedHttpClient, endpoint: &str) -> String {
    let aws = calling(endpoint, http_client);
    let failed = aws.lambda.invoke().function_name(FUNCTION).send().await.unwrap_err();
    match &failed {
        SdkError::DispatchFailure(failure) if failure.is_timeout() => "timeout".into(),
        SdkError::DispatchFailure(failure) if failure.is_io() => "io".into(),
        SdkError::DispatchFailure(failure) if failure.is_user() => "user".into(),
        SdkError::DispatchFailure(failure) => format!("other, {:?}", failure.as_other()),
        _ => panic!("{}", DisplayErrorContext(&failed)),
    }
}

/// Starts a server that answers every request with these bytes and then closes the connection.
async fn ending_with(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            read_request(&mut connection).await;
            // The client may stop reading before the end.
            let _ = connection.write_all(bytes.as_ref()).await;
        }
    });
    address.to_string()
}

#[tokio::test]
async fn huge_answer_is_not_read() {
    for (bytes, is_read) in [(LARGEST_ANSWER, true), (LARGEST_ANSWER + 1, false)] {
        let endpoint = ending_with(format!("HTTP/1.1 202 Accepted\r\n\r\n{}", "x".repeat(bytes))).await;
        let answer = invoke(&calling(&format!("http://{endpoint}"), connecting())).await;
        assert_eq!(answer.is_ok(), is_read, "{answer:?}");
        assert_eq!(matches!(answer, Err(InvokeFailure::Unanswered(_))), !is_read, "{answer:?}");
    }
}

#[tokio::test]
async fn dead_letter_over_queue_limit_has_a_remedy() {
    let of_entry = |reason: &str| {
        let failed =
            json!([{"Id": "0", "Code": "InvalidParameterValue", "SenderFault": true, "Message": reason}]);
        format!("HTTP/1.1 200 OK\r\n\r\n{}", json!({"Successful": [], "Failed": failed}))
    };
    let of_call = |code: &str, reason: &str| {
        let body = json!({"__type": "com.amazonaws.sqs#Error", "message": reason});
        format!("HTTP/1.1 400 Bad Request\r\nx-amzn-query-error: {code};Sender\r\n\r\n{body}")
    };
    let too_long = "One or more parameters are invalid. Reason: Message must be shorter than 262144 bytes.";
    let batch = "Batch requests cannot be longer than 262144 bytes. You have sent 300000 bytes.";
    for (answer, has_remedy) in [
        (of_entry(too_long), true),
        (of_call("InvalidParameterValue", too_long), true),
        (of_call("AWS.SimpleQueueService.BatchRequestTooLong", batch), true),
        (of_entry("Value 901 for parameter DelaySeconds is invalid."), false),
    ] {
        let endpoint = ending_with(answer.clone()).await;
        let aws = calling(&format!("http://{endpoint}"), connecting());
        let sent =
            account(&aws).send_dead_letters(&[dead_lettered(&dead_letter("{}"))], IN_TIME).await.remove(0);
        let CallFailure { cause, remedy } = sent.unwrap_err();
        let command = format!(
            "aws sqs set-queue-attributes --queue-url {DEAD_LETTERS} --attributes MaximumMessageSize=1048576"
        );
        assert!(cause.starts_with("refused: "), "{answer}: {cause}");
        assert_eq!(
            remedy.as_ref().is_some_and(|remedy| remedy.ends_with(&command)),
            has_remedy,
            "{answer}: {remedy:?}"
        );
    }
}

#[tokio::test]
async fn failed_connection_is_reported_like_the_sdk() {
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let closing = ending_with(b"").await;
    let garbled = ending_with(b"no HTTP\r\n\r\n").await;
    let broken_off = ending_with(b"HTTP/1.1 202 Acc").await;
    for (endpoint, expected, was_sent) in [
        (format!("http://{unused}"), "io", false),
        (format!("https://{closing}"), "io", false),
        (format!("https://{garbled}"), "io", false),
        (format!("http://{closing}"), "other, Some(TransientError)", true),
        (format!("http://{broken_off}"), "other, Some(TransientError)", true),
        (format!("http://{garbled}"), "other, None", true),
    ] {
        let answer = invoke(&calling(&endpoint, connecting())).await;
        assert_eq!(matches!(answer, Err(InvokeFailure::Unanswered(_))), was_sent, "{endpoint}: {answer:?}");
        assert_eq!(matches!(answer, Err(InvokeFailure::NotSent(_))), !was_sent, "{endpoint}: {answer:?}");
        assert_eq!(outcome_of(of_the_sdk(), &endpoint).await, expected, "the SDK, {endpoint}");
        assert_eq!(outcome_of(connecting(), &endpoint).await, expected, "{endpoint}");
    }
}

#[tokio::test]
async fn slow_connection_is_reported_like_the_sdk() {
    let (address, _waiting) = taking_no_connections();
    let endpoint = format!("http://{address}");
    tokio::time::pause();
    assert_eq!(outcome_of(of_the_sdk(), &endpoint).await, "timeout");
    assert_eq!(outcome_of(connecting(), &endpoint).await, "timeout");
    let start = Instant::now();
    let answer = invoke(&calling(&endpoint, connecting())).await;
    assert!(matches!(answer, Err(InvokeFailure::NotSent(_))), "{answer:?}");
    assert!(start.elapsed() < 2 * CONNECT_TIMEOUT, "{:?}", start.elapsed());
}

/// Starts a server that uses TLS, and returns its URL and its self-signed certificate.
async fn serving_tls() -> (String, String) {
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
            // A client that does not trust the certificate breaks off the handshake.
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

fn environment(variables: &[(&str, &str)]) -> SdkSettings {
    let value =
        |name: &str| variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| *value);
    SdkSettings::read(|name| value(name).map(Into::into)).unwrap()
}

async fn invoke_trusting(
    variables: &[(&str, &str)],
    endpoint: &str,
) -> Result<Option<String>, InvokeFailure> {
    let http_client = http_client(trusted(&environment(variables).trusted).unwrap());
    invoke(&calling(endpoint, http_client)).await
}

fn written(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn untrusted_server_gets_nothing() {
    let (endpoint, _) = serving_tls().await;
    let answer = invoke_trusting(&[], &endpoint).await;
    let Err(InvokeFailure::NotSent(failure)) = answer else { panic!("{answer:?}") };
    assert!(failure.cause.contains("UnknownIssuer"), "{failure:?}");
}

#[tokio::test]
async fn named_certificate_is_trusted() {
    let (endpoint, certificate) = serving_tls().await;
    let folder = tempfile::tempdir().unwrap();
    let file = written(&folder, "ca.pem", &format!("# a comment\n{certificate}"));
    let folders = folder.path().to_str().unwrap();
    for variables in [("AWS_CA_BUNDLE", file.as_str()), ("SSL_CERT_FILE", &file), ("SSL_CERT_DIR", folders)] {
        assert_eq!(invoke_trusting(&[variables], &endpoint).await, Ok(None), "{variables:?}");
    }
    let (elsewhere, _) = serving_tls().await;
    let answer = invoke_trusting(&[("AWS_CA_BUNDLE", &file)], &elsewhere).await;
    assert!(matches!(answer, Err(InvokeFailure::NotSent(_))), "{answer:?}");
}

#[test]
fn named_certificates_replace_built_in_ones() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap().cert.pem();
    let file = written(&folder, "ca.pem", &made);
    let trusted = |variables: &[_]| trusted(&environment(variables).trusted).unwrap().len();
    assert!(trusted(&[]) > 100);
    assert_eq!(trusted(&[("AWS_CA_BUNDLE", &file)]), 1);
}

#[test]
fn variable_without_certificate_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let garbled = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let (empty, garbled) = (written(&folder, "empty", ""), written(&folder, "garbled", garbled));
    for (variable, path) in
        [("AWS_CA_BUNDLE", "/no/such/file"), ("SSL_CERT_FILE", &empty), ("SSL_CERT_FILE", &garbled)]
    {
        let refused = trusted(&environment(&[(variable, path)]).trusted).unwrap_err().to_string();
        let start = format!("{variable} is {path:?}, which has no readable certificate (");
        assert!(refused.starts_with(&start), "{refused}");
        assert!(refused.ends_with("); it must be a PEM file"), "{refused}");
    }
}

#[test]
fn variables_set_the_endpoints() {
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
    let refused = SdkSettings::read(|name| (name == "AWS_USE_FIPS_ENDPOINT").then(|| "yes".into()));
    let refused = refused.unwrap_err().to_string();
    assert_eq!(refused, r#"AWS_USE_FIPS_ENDPOINT is "yes"; it must be true or false"#);
}

/// A client uses the endpoint of its own service if one is set; otherwise, it uses the endpoint for all services.
#[tokio::test]
async fn service_may_have_its_own_endpoint() {
    let (endpoint, certificate) = serving_tls().await;
    let folder = tempfile::tempdir().unwrap();
    let bundle = written(&folder, "ca.pem", &certificate);
    for name in ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_LAMBDA"] {
        let others = [("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:9"), (name, endpoint.as_str())];
        let environment = environment(&[&others[..], &[("AWS_CA_BUNDLE", &bundle)]].concat());
        let http_client = http_client(trusted(&environment.trusted).unwrap());
        let sdk = environment.sdk_config(http_client).into_builder().region(Region::new("eu-west-1"));
        let credentials = SharedCredentialsProvider::new(Credentials::new("id", "key", None, None, "test"));
        let aws = AwsClients::new(&sdk.credentials_provider(credentials).build(), None);
        assert_eq!(invoke(&aws).await, Ok(None), "{name}");
    }
}

const KEYS: &str = r#"{"AccessKeyId":"ID","SecretAccessKey":"secret","Token":"session","Expiration":"2099-01-01T00:00:00Z"}"#;

/// Starts a server that provides credentials, and returns its URL and the requests that it receives.
async fn serving_credentials() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::<Mutex<Vec<String>>>::default();
    let seen = requests.clone();
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 8_192];
            let bytes = connection.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..bytes]).into_owned();
            let (status, body) = if request.starts_with("GET ") { (200, KEYS) } else { (202, "") };
            seen.lock().unwrap().push(request);
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status} OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            );
            connection.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (url, requests)
}

/// Each case runs in its own process, because the SDK reads the URL and the token from environment variables.
#[tokio::test]
async fn container_credentials_use_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "a-token").unwrap();
    let file = file.to_str().unwrap();
    for token in
        [("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a-token"), ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file)]
    {
        let (url, requests) = serving_credentials().await;
        let mut process = Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", "--ignored", "aws::tests::transport::an_invoke_in_a_container"]);
        process.env_clear().envs([token, ("AWS_REGION", "eu-west-1"), ("AWS_ENDPOINT_URL", &url)]);
        process.env("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{url}/role"));
        let output = tokio::task::spawn_blocking(move || process.output().unwrap()).await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        let requests = requests.lock().unwrap();
        let [of_credentials, invoke] = requests.as_slice() else { panic!("{requests:?}") };
        assert!(of_credentials.starts_with("GET /role HTTP/1.1\r\n"), "{of_credentials}");
        assert!(of_credentials.contains("\r\nauthorization: a-token\r\n"), "{token:?}: {of_credentials}");
        assert!(invoke.contains("\r\nx-amz-security-token: session\r\n"), "{invoke}");
        assert!(invoke.contains(" Credential=ID/"), "{invoke}");
    }
}

#[tokio::test]
#[ignore = "run by the test above, with a container's variables"]
async fn an_invoke_in_a_container() {
    let environment = SdkSettings::read(|name| std::env::var(name).ok()).unwrap();
    assert_eq!(invoke(&AwsClients::new(&environment.sdk_config(connecting()), None)).await, Ok(None));
}

#[test]
fn profile_without_keys_is_refused() {
    let read = |variables: &[&str]| {
        SdkSettings::read(|name| variables.contains(&name).then(|| "given".to_owned())).map(drop)
    };
    for variable in ["AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"] {
        let refused = read(&[variable]).unwrap_err().to_string();
        let start = format!("{variable} is set, but the handler reads no profiles; set ");
        assert!(refused.starts_with(&start), "{refused}");
        assert_eq!(read(&[variable, "AWS_ACCESS_KEY_ID"]), Ok(()));
        assert_eq!(read(&[variable, "AWS_CONTAINER_CREDENTIALS_FULL_URI"]), Ok(()));
    }
    assert_eq!(read(&[]), Ok(()));
}
