//! A function's execution environment: its process, and simulated services on the loopback interface.
//!
//! SQS, Lambda and SSM take 10 ms for each call.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::events::{TARGET, headers};

/// Maximum time that an environment may take to request an event, or to respond to one.
const PATIENCE: Duration = Duration::from_secs(30);

struct Services {
    events: Mutex<Receiver<String>>,
    asked: Sender<Instant>,
    given: Sender<Instant>,
    answered: Sender<(Instant, String)>,
    calls: Mutex<Vec<Duration>>,
}

pub(crate) struct Environment {
    process: Child,
    started: Instant,
    /// Time of the environment's first request for an event.
    ready: Instant,
    events: Sender<String>,
    asked: Receiver<Instant>,
    given: Receiver<Instant>,
    answered: Receiver<(Instant, String)>,
    services: Arc<Services>,
}

impl Environment {
    /// Starts a bootstrap, and waits until it asks for an event.
    pub(crate) fn start(bootstrap: &Path, variables: &[(&str, &str)]) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?.to_string();
        let ((events, next), (ask, asked)) = (channel(), channel());
        let ((give, given), (answer, answered)) = (channel(), channel());
        let (next, calls) = (Mutex::new(next), Mutex::default());
        let services = Arc::new(Services { events: next, asked: ask, given: give, answered: answer, calls });
        let server = services.clone();
        thread::spawn(move || listen(&listener, &server));
        let mut command = Command::new(bootstrap);
        command.env_clear().envs(variables.iter().copied()).envs([
            ("AWS_LAMBDA_RUNTIME_API", address.as_str()),
            ("AWS_ENDPOINT_URL", &format!("http://{address}")),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_DEFAULT_REGION", "eu-west-1"),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "key"),
            ("AWS_SESSION_TOKEN", "token"),
            ("AWS_LAMBDA_FUNCTION_NAME", "retry-handler"),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
            ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
            ("DEAD_LETTER_QUEUE_URL", &format!("http://{address}/123456789012/dead-letters")),
            ("RETRY_QUEUE_URL", &format!("http://{address}/123456789012/retries")),
            ("TARGET_FUNCTIONS", TARGET),
        ]);
        let started = now();
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let ready = asked.recv_timeout(PATIENCE).map_err(|_| {
            io::Error::other(format!("{} did not ask for an event: see what it logs", bootstrap.display()))
        })?;
        Ok(Self { process, started, ready, events, asked, given, answered, services })
    }

    /// Time from the environment's start to its first request for an event.
    pub(crate) fn until_ready(&self) -> Duration {
        self.ready - self.started
    }

    /// Time from the environment's start to `answered`, the time of its response.
    pub(crate) fn since_start(&self, answered: Instant) -> Duration {
        answered - self.started
    }

    /// Passes an event to the environment. Returns the time that the environment took to respond, the moment of the
    /// response, and the response's text.
    pub(crate) fn handle(&self, event: String) -> io::Result<(Duration, Instant, String)> {
        self.events.send(event).map_err(io::Error::other)?;
        let given = self.given.recv_timeout(PATIENCE).map_err(io::Error::other)?;
        let (at, answer) = self.answered.recv_timeout(PATIENCE).map_err(io::Error::other)?;
        self.asked.recv_timeout(PATIENCE).map_err(io::Error::other)?;
        Ok((at - given, at, answer))
    }

    pub(crate) fn calls(&self) -> Vec<Duration> {
        self.services.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the process's memory use, in KiB: the current use (`VmRSS`) or the peak (`VmHWM`).
    pub(crate) fn memory(&self, name: &str) -> io::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let figure = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        figure.ok_or_else(|| io::Error::other(format!("no {name} in {status}")))
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn listen(listener: &TcpListener, services: &Arc<Services>) {
    for connection in listener.incoming().map_while(Result::ok) {
        let services = services.clone();
        thread::spawn(move || {
            if let Err(error) = serve(connection, &services) {
                // Stopping an environment breaks its connections.
                let is_gone =
                    [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset].contains(&error.kind());
                assert!(is_gone, "{error}");
            }
        });
    }
}

fn serve(connection: TcpStream, services: &Services) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut connection = BufReader::new(connection);
    while let Some(request) = next_request(&mut connection)? {
        if request.path.starts_with("/2018-06-01/runtime/") {
            of_the_runtime(&connection, request, services)?;
        } else {
            let took = serve_aws(&connection, &request)?;
            services.calls.lock().unwrap_or_else(PoisonError::into_inner).push(took);
        }
    }
    Ok(())
}

/// Hands out the next event, or takes the response to the previous one.
fn of_the_runtime(
    connection: &BufReader<TcpStream>,
    request: Request,
    services: &Services,
) -> io::Result<()> {
    // Sends may fail, because the receivers are gone once the environment has been dropped.
    if request.path.ends_with("/next") {
        let _ = services.asked.send(now());
        let events = services.events.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(event) = events.recv() else { return Ok(()) };
        let _ = services.given.send(now());
        return answer(connection.get_ref(), "200 OK", &headers(), &event);
    }
    let _ = services.answered.send((now(), request.body));
    answer(connection.get_ref(), "202 Accepted", "", "")
}

const CALL: Duration = Duration::from_millis(10);

fn serve_aws(connection: &BufReader<TcpStream>, call: &Request) -> io::Result<Duration> {
    let start = now();
    wait();
    let (status, headers, body) = answer_to(call)?;
    answer(connection.get_ref(), status, headers, &body)?;
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
        // The article's handler, which `bench.sh` may compare, hides one message at a time.
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

// The simulated services must take time to respond.
#[expect(clippy::disallowed_methods)]
fn wait() {
    thread::sleep(CALL);
}

// Reads the real clock, because this program measures time.
#[expect(clippy::disallowed_methods)]
fn now() -> Instant {
    Instant::now()
}

// The rest of this file is the subset of HTTP/1.1 that the runtime and the AWS SDK need: requests with a
// `Content-Length`, over persistent connections.

struct Request {
    path: String,
    /// The operation of a call to AWS, taken from the header `X-Amz-Target`.
    target: String,
    body: String,
}

/// The next request on a connection, or `None` once the other end has closed it.
fn next_request(connection: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if connection.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut length, mut target) = (0, String::new());
    loop {
        line.clear();
        connection.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        } else if name.eq_ignore_ascii_case("x-amz-target") {
            value.trim().clone_into(&mut target);
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    Ok(Some(Request { path, target, body: String::from_utf8(body).map_err(io::Error::other)? }))
}

/// Responds to a request. Each line of `headers` ends with `\r\n`.
fn answer(mut connection: &TcpStream, status: &str, headers: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
    connection.write_all(answer.as_bytes())
}
