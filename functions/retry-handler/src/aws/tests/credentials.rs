//! Where credentials come from.

use std::process::Command;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::connections::{connecting, invoke};
use super::*;

const KEYS: &str = r#"{"AccessKeyId":"ID","SecretAccessKey":"secret","Token":"session","Expiration":"2099-01-01T00:00:00Z"}"#;

/// A server that gives credentials and accepts invokes, by its URL, and the requests that it had.
async fn serving() -> (String, Arc<Mutex<Vec<String>>>) {
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

/// As with SnapStart. The SDK reads these variables itself, hence a process of its own for each.
#[tokio::test]
async fn credentials_come_from_the_containers_endpoint_with_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "a-token").unwrap();
    let file = file.to_str().unwrap();
    for token in
        [("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a-token"), ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file)]
    {
        let (url, requests) = serving().await;
        let mut process = Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", "--ignored", "aws::tests::credentials::an_invoke_in_a_container"]);
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
#[ignore = "the test before it runs it, with the variables of a container"]
async fn an_invoke_in_a_container() {
    let environment = Environment::read(|name| std::env::var(name).ok()).unwrap();
    assert_eq!(invoke(&Aws::new(&environment.sdk_config(connecting()), None)).await, Ok(None));
}

#[test]
fn a_profile_is_refused_if_nothing_goes_before_it() {
    let read = |variables: &[&str]| {
        Environment::read(|name| variables.contains(&name).then(|| "given".to_owned())).map(drop)
    };
    for variable in ["AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"] {
        let refused = read(&[variable]).unwrap_err().to_string();
        let start = format!(
            "{variable} is set, but the handler reads no profiles, and no other credentials are set; set "
        );
        assert!(refused.starts_with(&start), "{refused}");
        assert_eq!(read(&[variable, "AWS_ACCESS_KEY_ID"]), Ok(()));
        assert_eq!(read(&[variable, "AWS_CONTAINER_CREDENTIALS_FULL_URI"]), Ok(()));
    }
    assert_eq!(read(&[]), Ok(()));
}
