//! SQS, Lambda and SSM as the handler calls them: each call takes as long as any other.

use std::io::{self, BufReader};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::http::{self, Request};

/// How long a call takes.
const CALL: Duration = Duration::from_millis(10);

/// Answers a call, and says how long that took.
pub(crate) fn serve(connection: &BufReader<TcpStream>, call: &Request) -> io::Result<Duration> {
    let start = now();
    wait();
    let (status, headers, body) = answer_to(call)?;
    http::answer(connection.get_ref(), status, headers, &body)?;
    Ok(now() - start)
}

fn answer_to(call: &Request) -> io::Result<(&'static str, &'static str, String)> {
    const JSON: &str = "Content-Type: application/x-amz-json-1.0\r\n";
    let done = |body: String| Ok(("200 OK", JSON, body));
    match call.target.as_str() {
        "AmazonSQS.GetQueueAttributes" => {
            done(r#"{"Attributes":{"ApproximateNumberOfMessagesNotVisible":"0"}}"#.into())
        }
        "AmazonSQS.ChangeMessageVisibilityBatch" => {
            let entries: Vec<String> = (0..10).map(|id| format!(r#"{{"Id":"{id}"}}"#)).collect();
            done(format!(r#"{{"Successful":[{}]}}"#, entries.join(",")))
        }
        // The article's handler hides one message at a time.
        "AmazonSQS.ChangeMessageVisibility" => done("{}".into()),
        "AmazonSSM.GetParameter" => {
            Ok(("400 Bad Request", JSON, r#"{"__type":"ParameterNotFound","message":"none"}"#.into()))
        }
        "" if call.path.ends_with("/invocations") => {
            Ok(("202 Accepted", "X-Amzn-RequestId: i-1\r\n", String::new()))
        }
        other => Err(io::Error::other(format!("no call that is expected: {other:?} {:?}", call.path))),
    }
}

// A service that takes time to answer, which is what this program is about.
#[expect(clippy::disallowed_methods)]
fn wait() {
    thread::sleep(CALL);
}

// Measuring time is what this program is for.
#[expect(clippy::disallowed_methods)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
