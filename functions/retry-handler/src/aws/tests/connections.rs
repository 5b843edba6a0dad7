//! Invokes over connections that fail, on the handler's own HTTP client.

use std::net::SocketAddr;

use aws_credential_types::credential_fn::provide_credentials_fn;
use aws_credential_types::provider::error::CredentialsError;
use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::*;
use crate::aws::connect::CONNECT_TIMEOUT;
use crate::aws::connector::IDLE_TIMEOUT;

/// The request did nothing, and may work elsewhere.
const FAILED: &str =
    "HTTP/1.1 500 Internal Server Error\r\nx-amzn-errortype: ServiceException\r\ncontent-length: 0\r\n\r\n";
pub(super) const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";

/// A server that gives each connection the answers to its requests, and closes it instead of one more. An
/// answer that breaks off ends its connection.
async fn serving(connections: &'static [&'static [&'static str]]) -> Aws {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for answers in connections {
            let (mut connection, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                for answer in *answers {
                    read_request(&mut connection).await;
                    connection.write_all(answer.as_bytes()).await.unwrap();
                    if !answer.ends_with("\r\n\r\n") {
                        return;
                    }
                }
                read_request(&mut connection).await;
            });
        }
    });
    Aws::new(&signed().into_builder().endpoint_url(endpoint).http_client(connecting()).build(), None)
}

/// Requests here are small: they come in one piece, or the connection has ended.
pub(super) async fn read_request(connection: &mut (impl AsyncRead + Unpin)) {
    let mut request = [0; 8_192];
    let _ = connection.read(&mut request).await;
}

/// The handler's own HTTP client.
pub(super) fn connecting() -> SharedHttpClient {
    connector::http_client(trust::store(&[]).unwrap())
}

pub(super) async fn invoke(aws: &Aws) -> Result<Option<String>, InvokeFailure> {
    account(aws).invoke(&MESSAGE, FUNCTION, "7".into()).await
}

fn is_unanswered(answer: &Result<Option<String>, InvokeFailure>) -> bool {
    matches!(answer, Err(InvokeFailure::Unanswered(_)))
}

#[tokio::test]
async fn a_connection_that_is_closed_without_an_answer_leaves_the_invoke_unanswered() {
    let answer = invoke(&serving(&[&[]]).await).await;
    assert!(is_unanswered(&answer), "{answer:?}");
}

#[tokio::test]
async fn an_unreadable_answer_leaves_the_invoke_unanswered() {
    let garbage = invoke(&serving(&[&["no HTTP\r\n\r\n"]]).await).await;
    assert!(is_unanswered(&garbage), "{garbage:?}");
    let broken_off = invoke(&serving(&[&["HTTP/1.1 202 Acc"]]).await).await;
    assert!(is_unanswered(&broken_off), "{broken_off:?}");
}

#[tokio::test]
async fn without_a_connection_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let answer = invoke(&Aws::new(
        &signed().into_builder().endpoint_url(endpoint).http_client(connecting()).build(),
        None,
    ))
    .await;
    let Err(InvokeFailure::Later(failure)) = answer else { panic!("{answer:?}") };
    assert!(failure.cause.contains("refused"), "{failure:?}");
}

/// A server as behind a network that drops what it is sent: nobody accepts, and the queue of connections is full. It is
/// one for as long as what comes with its address is kept.
pub(super) fn taking_no_connections() -> (SocketAddr, impl Sized) {
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
async fn a_connection_that_takes_too_long_was_not_made() {
    let (address, _waiting) = taking_no_connections();
    tokio::time::pause();
    let start = Instant::now();
    let shared = signed().into_builder().endpoint_url(format!("http://{address}"));
    let answer = invoke(&Aws::new(&shared.http_client(connecting()).build(), None)).await;
    assert!(matches!(answer, Err(InvokeFailure::Later(_))), "{answer:?}");
    assert!(start.elapsed() < 2 * CONNECT_TIMEOUT, "{:?}", start.elapsed());
}

#[tokio::test]
async fn without_credentials_nothing_was_sent() {
    let missing = provide_credentials_fn(|| async { Err(CredentialsError::not_loaded("none here")) });
    let shared = signed().into_builder().credentials_provider(SharedCredentialsProvider::new(missing));
    let answer = invoke(&Aws::new(&shared.http_client(connecting()).build(), None)).await;
    let Err(InvokeFailure::Later(failure)) = answer else { panic!("{answer:?}") };
    assert!(failure.remedy.is_some_and(|remedy| remedy.contains("credentials")), "{failure:?}");
}

/// The second connection is there for the second invoke: sent on the first, it would be unanswered.
#[tokio::test]
async fn a_connection_that_was_idle_for_long_is_not_used_again() {
    let aws = serving(&[&[ACCEPTED], &[ACCEPTED]]).await;
    assert_eq!(invoke(&aws).await, Ok(None));
    tokio::time::pause();
    tokio::time::advance(IDLE_TIMEOUT + Duration::from_millis(1)).await;
    tokio::time::resume();
    assert_eq!(invoke(&aws).await, Ok(None));
}

#[tokio::test]
async fn a_connection_that_was_idle_for_a_moment_is_used_again() {
    let aws = serving(&[&[ACCEPTED, ACCEPTED]]).await;
    assert_eq!(invoke(&aws).await, Ok(None));
    assert_eq!(invoke(&aws).await, Ok(None));
}

#[tokio::test]
async fn a_connection_whose_server_failed_is_not_used_again() {
    let aws = serving(&[&[FAILED], &[ACCEPTED]]).await;
    let failed = invoke(&aws).await;
    assert!(matches!(failed, Err(InvokeFailure::Later(_))), "{failed:?}");
    assert_eq!(invoke(&aws).await, Ok(None));
}
