use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use comeback_tests::PATIENCE;
use serde_json::Value;

/// Runs a Lambda runtime for one invocation and returns the failure that it posts (a record's `responsePayload`).
pub(crate) fn failure_in(mut runtime: Command, request_id: &str, event: &str, log: &Path) -> Value {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback interface has a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    let (posted, failure) = channel();
    let next = invocation(request_id, event);
    thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let (next, posted) = (next.clone(), posted.clone());
            thread::spawn(move || serve(&connection, &next, &posted));
        }
    });
    let output = File::create(log).expect("a log can be written");
    runtime.env("AWS_LAMBDA_RUNTIME_API", address.to_string()).stdin(Stdio::null());
    runtime.stdout(output.try_clone().expect("a file can be shared")).stderr(output);
    let process = Running(runtime.spawn().unwrap_or_else(|error| panic!("{runtime:?}: {error}")));
    let Ok((path, body)) = failure.recv_timeout(PATIENCE) else {
        panic!("{runtime:?} posted nothing: {}", std::fs::read_to_string(log).unwrap_or_default());
    };
    drop(process);
    assert_eq!(path, format!("/2018-06-01/runtime/invocation/{request_id}/error"), "{body}");
    serde_json::from_str(&body).expect("JSON")
}

/// A runtime's process, killed when this value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The HTTP response that hands a runtime its next invocation.
fn invocation(request_id: &str, event: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\n\
         Content-Type: application/json\r\n\
         Content-Length: {}\r\n\
         Lambda-Runtime-Aws-Request-Id: {request_id}\r\n\
         Lambda-Runtime-Deadline-Ms: 4102444800000\r\n\
         Lambda-Runtime-Invoked-Function-Arn: arn:aws:lambda:eu-west-1:123456789012:function:orders\r\n\
         \r\n{event}",
        event.len()
    )
}

/// Answers requests for the next invocation with `next`. Sends other requests' paths and bodies to `posted`.
fn serve(connection: &TcpStream, next: &str, posted: &Sender<(String, String)>) {
    let mut requests = BufReader::new(connection);
    while let Ok(Some((path, body))) = request(&mut requests) {
        let answer =
            if path.ends_with("/next") { next } else { "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n" };
        let mut connection = connection;
        // It does not matter if a write or send fails: the runtime may have ended, or the test may already have its
        // result.
        let _ = connection.write_all(answer.as_bytes());
        if !path.ends_with("/next") {
            let _ = posted.send((path, body));
        }
    }
}

/// The path and body of the next HTTP request, or `None` at the end of the connection.
fn request(requests: &mut BufReader<&TcpStream>) -> io::Result<Option<(String, String)>> {
    let mut line = String::new();
    if requests.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        requests.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    requests.read_exact(&mut body)?;
    Ok(Some((path, String::from_utf8(body).map_err(io::Error::other)?)))
}
