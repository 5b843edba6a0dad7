//! Runs the commands in docs/settings.md that set `POLICIES`, and checks that a fake AWS receives the right value.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use comeback_tests::{pages, root, scratch};

const VALUE: &str = "orders MAX_AGE=2h; export-* MAX_AGE=14d NON_RETRYABLE_ERRORS=A,B";
const TEMPLATE: &str = r#"{"Parameters":{"FunctionPolicies":{"Type":"String"}},"Resources":{"Queue":{"Type":"AWS::SQS::Queue"}}}"#;
const SAMCONFIG: &str = "version = 0.1\n[default.global.parameters]\nstack_name = \"comeback\"\n";
/// A shell function that replaces `cargo`. It makes the documented `cargo lambda deploy` accept a file that cargo has
/// not built.
const CARGO: &str = r#"cargo() { shift; cargo-lambda lambda "${@/#--binary-name/--binary-path}" --iam-role arn:aws:iam::123456789012:role/r; }"#;

#[test]
fn each_tool_reads_what_the_page_quotes() {
    let blocks = pages::blocks("docs/settings.md", "How to write it");
    let [sam, aws, cargo] =
        <[String; 3]>::try_from(blocks).unwrap_or_else(|blocks| panic!("not three blocks: {blocks:#?}"));
    let folder = scratch("quoting");
    let page = pages::read("docs/settings.md");
    let (_, toml) = page.split_once("```toml\n").expect("a block of TOML");
    let (toml, _) = toml.split_once("```").expect("its end");
    let sent = format!("ParameterValue={}", form_encoded(VALUE));
    let of_file = "sam deploy".to_owned();
    for (command, samconfig) in [(sam, ""), (of_file, toml), (aws, "")] {
        fs::write(folder.join("samconfig.toml"), format!("{SAMCONFIG}{samconfig}")).expect("written");
        for template in ["template.yaml", "comeback.cfn.json"] {
            fs::write(folder.join(template), TEMPLATE).expect("written");
        }
        let requests = run(&folder, &command);
        assert!(requests.iter().any(|request| request.contains(&sent)), "{command}: {requests:#?}");
    }

    fs::create_dir_all(folder.join("src")).expect("made");
    fs::write(folder.join("src/main.rs"), "fn main() {}\n").expect("written");
    fs::write(folder.join("Cargo.toml"), "[package]\nname = \"any\"\nversion = \"0.1.0\"\n[workspace]\n")
        .expect("written");
    fs::copy("/bin/true", folder.join("retry-handler")).expect("copied");
    let requests = run(&folder, &format!("{CARGO}\n{cargo}"));
    let sent = format!(r#""Environment":{{"Variables":{{"POLICIES":"{VALUE}"}}}}"#);
    assert!(requests.iter().any(|request| request.contains(&sent)), "{requests:#?}");
}

/// Runs a script with a fake AWS that refuses every request, and returns the bodies of the requests.
fn run(folder: &Path, script: &str) -> Vec<String> {
    let (endpoint, requests) = refusing_aws();
    let tools = [".tools/sam/bin", ".tools/aws/bin"].map(|tools| root().join(tools).display().to_string());
    let path = format!("{}:{}", tools.join(":"), std::env::var("PATH").expect("a path"));
    let mut bash = Command::new("bash");
    for (name, value) in [
        ("PATH", path.as_str()),
        ("AWS_ENDPOINT_URL", &endpoint),
        ("AWS_DEFAULT_REGION", "eu-west-1"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("SAM_CLI_TELEMETRY", "0"),
    ] {
        bash.env(name, value);
    }
    let output = bash.args(["-c", script]).current_dir(folder).output().expect("bash runs");
    println!("{}", String::from_utf8_lossy(&output.stderr));
    requests.try_iter().collect()
}

fn refusing_aws() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, requests) = channel();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            refuse(connection, &sender);
        }
    });
    (endpoint, requests)
}

/// Sends a request's body to `bodies`, and then responds "not found". The command may exit once it has the response.
fn refuse(mut connection: TcpStream, bodies: &Sender<String>) {
    let mut request = Vec::new();
    let mut buffer = [0; 65_536];
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            if body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0) {
                break;
            }
        }
        match connection.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(read) => request.extend(&buffer[..read]),
        }
    }
    let text = String::from_utf8_lossy(&request).into_owned();
    let sent = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    bodies.send(sent.unwrap_or_default()).unwrap_or_default();
    // CloudFormation responds in XML, and Lambda in JSON.
    let body = if text.starts_with("POST / ") {
        "<ErrorResponse><Error><Code>ValidationError</Code>\
         <Message>Stack with id comeback does not exist</Message></Error></ErrorResponse>"
    } else {
        "{}"
    };
    let status = if text.starts_with("GET ") { "404 Not Found" } else { "400 Bad Request" };
    let answer = format!(
        "HTTP/1.1 {status}\r\nx-amzn-errortype: ResourceNotFoundException\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(answer.as_bytes()).unwrap_or_default();
}

fn form_encoded(text: &str) -> String {
    let encoded = |byte: u8| match byte {
        b' ' => "+".to_owned(),
        b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}
