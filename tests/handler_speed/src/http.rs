//! As much of HTTP/1.1 as two clients need: requests with a `Content-Length`, over connections that are kept.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

pub(crate) struct Request {
    pub(crate) path: String,
    /// The operation that a call to AWS asks for, from `X-Amz-Target`.
    pub(crate) target: String,
    pub(crate) body: String,
}

/// The next request of a connection. `None` once its other end has closed it.
pub(crate) fn next(connection: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
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

/// Answers it, with further header lines that each end with `\r\n`.
pub(crate) fn answer(mut connection: &TcpStream, status: &str, headers: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
    connection.write_all(answer.as_bytes())
}
