//! A client of the admin interface. The server has to identify itself before it gets a token or a command.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use onrush_engine::clock::{self, Instant};
use onrush_http::response::ResponseHead;
use onrush_http::{Framing, Header, HeaderSlots, Limits, Method, Parsed, response};
use serde_json::Value;

use crate::authority::Token;
use crate::feed;
use crate::response::IDENTITY_FIELD;

/// Maximum size of a response in bytes: the metrics of thousands of servers.
const RESPONSE_MAX: u64 = 256 * 1024 * 1024;

/// Time limit of a query, including its response: the server waits 5 s for a core that does not answer. An event stream
/// sends a line at least every 15 s; the limit applies to each line.
const QUERY_TIMEOUT: Duration = Duration::from_secs(20);

/// Time limit of a command: an upgrade takes up to a minute after reading the configuration, which may be long.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(90);

/// Location of an admin interface.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP address, and the token if it needs one.
    Tcp(SocketAddr, Option<Token>),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
            Endpoint::Tcp(address, _) => address.fmt(f),
        }
    }
}

/// Response of the interface.
#[derive(Clone, Debug)]
pub struct Response {
    /// HTTP status code.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Sends a request for `path`: POST with `body`, which may be empty, or GET without.
///
/// # Errors
/// If nothing listens there, the listener is not an admin interface, or its response is incomplete.
pub fn request(place: &Endpoint, path: &str, body: Option<&str>) -> io::Result<Response> {
    let patience = match body {
        Some(_) => COMMAND_TIMEOUT,
        None => QUERY_TIMEOUT,
    };
    request_with_deadline(place, path, body, Deadline::after(patience))
}

fn request_with_deadline(
    place: &Endpoint,
    path: &str,
    body: Option<&str>,
    deadline: Deadline,
) -> io::Result<Response> {
    identify(place, deadline)?;
    let request = encode_request(place, path, (body, "application/json"));
    let mut bytes = Vec::new();
    let mut stream = Stream::connect(place, deadline)?;
    stream.write_all(request.as_bytes())?;
    stream.take(RESPONSE_MAX).read_to_end(&mut bytes)?;
    let mut slots = HeaderSlots::new();
    match response::parse(&bytes, &mut slots, Method::Get, &Limits::DEFAULT) {
        Parsed::Complete(head)
            if head.framing == Framing::Length((bytes.len() - head.bytes) as u64)
                || head.framing == Framing::None =>
        {
            check_identity(&head)?;
            Ok(Response {
                status: head.status,
                body: bytes[head.bytes..].to_vec(),
            })
        }
        _ => Err(io::Error::other(
            "the peer does not use HTTP, or closed the connection before its response was complete",
        )),
    }
}

/// Streams events from `path` and passes each one, as JSON, to `each`, until the server ends the stream.
///
/// # Errors
/// The errors of [`request`] and of `each`; also if the server refuses the stream, or the connection closes before the
/// stream ends.
pub fn stream_events(
    place: &Endpoint,
    path: &str,
    mut each: impl FnMut(&Value) -> io::Result<()>,
) -> io::Result<()> {
    let deadline = Deadline::after(QUERY_TIMEOUT);
    identify(place, deadline)?;
    let request = encode_request(place, path, (None, feed::CONTENT_TYPE));
    let mut stream = Stream::connect(place, deadline)?;
    stream.write_all(request.as_bytes())?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    if line.split(' ').nth(1) != Some("200") {
        let status = line.trim_end();
        return Err(io::Error::other(format!(
            "expected a stream of events, but the server responded with {status:?}"
        )));
    }
    loop {
        line.clear();
        reader.get_mut().deadline = Deadline::after(QUERY_TIMEOUT);
        if reader.read_line(&mut line)? == 0 {
            break;
        }
        let line = line.trim_end_matches(['\r', '\n']);
        if line == feed::END_COMMENT {
            return Ok(());
        }
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        each(&serde_json::from_str(data)?)?;
    }
    Err(io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the connection closed before the server ended the stream",
    ))
}

/// Checks that an admin interface listens at `place`: a request without a token that changes nothing.
fn identify(place: &Endpoint, deadline: Deadline) -> io::Result<()> {
    let place = match place {
        Endpoint::Unix(path) => Endpoint::Unix(path.clone()),
        Endpoint::Tcp(address, _) => Endpoint::Tcp(*address, None),
    };
    let mut stream = Stream::connect(&place, deadline)?;
    stream.write_all(encode_request(&place, "/ready", (None, "application/json")).as_bytes())?;
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..read]);
        let mut slots = HeaderSlots::new();
        match response::parse(&bytes, &mut slots, Method::Get, &Limits::DEFAULT) {
            Parsed::Complete(head) => return check_identity(&head),
            Parsed::Partial if read > 0 => {}
            Parsed::Partial | Parsed::Refused(_) => return Err(no_interface()),
        }
    }
}

fn check_identity(head: &ResponseHead<'_, '_>) -> io::Result<()> {
    let (name, value) = IDENTITY_FIELD;
    let is_identity = |header: &Header<'_>| {
        header.name.eq_ignore_ascii_case(name) && header.value == value.as_bytes()
    };
    match head.headers.iter().any(is_identity) {
        true => Ok(()),
        false => Err(no_interface()),
    }
}

fn no_interface() -> io::Error {
    io::Error::other(
        "not an admin interface of this version of Onrush: the response lacks the field Onrush-Admin: 1",
    )
}

/// Deadline of an exchange, and the time limit it was computed from.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    patience: Duration,
}

impl Deadline {
    fn after(patience: Duration) -> Deadline {
        let at = clock::now() + patience;
        Deadline { at, patience }
    }

    /// Returns the time left, or an error if the deadline has passed.
    fn remaining(self) -> io::Result<Duration> {
        let rest = self.at.since(clock::now());
        match rest.is_zero() {
            true => Err(self.timeout_error()),
            false => Ok(rest),
        }
    }

    fn timeout_error(self) -> io::Error {
        io::Error::new(
            io::ErrorKind::TimedOut,
            format!(
                "no complete response within {} s: the server is stopped, has no CPU, or sends too slowly",
                self.patience.as_secs_f64()
            ),
        )
    }

    /// Replaces a timeout of the socket by the error for a passed deadline.
    fn map_timeout(self, error: io::Error) -> io::Error {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.timeout_error(),
            _ => error,
        }
    }
}

/// A connection to an admin interface, with one deadline for everything sent and received.
struct Stream {
    socket: Socket,
    deadline: Deadline,
}

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn connect(place: &Endpoint, deadline: Deadline) -> io::Result<Stream> {
        let socket = match place {
            Endpoint::Unix(path) => Socket::Unix(UnixStream::connect(path)?),
            Endpoint::Tcp(address, _) => {
                let stream = TcpStream::connect_timeout(address, deadline.remaining()?);
                Socket::Tcp(stream.map_err(|error| deadline.map_timeout(error))?)
            }
        };
        Ok(Stream { socket, deadline })
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = Some(self.deadline.remaining()?);
        let read = match &mut self.socket {
            Socket::Unix(stream) => {
                stream.set_read_timeout(rest)?;
                stream.read(buffer)
            }
            Socket::Tcp(stream) => {
                stream.set_read_timeout(rest)?;
                stream.read(buffer)
            }
        };
        read.map_err(|error| self.deadline.map_timeout(error))
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let rest = Some(self.deadline.remaining()?);
        let written = match &mut self.socket {
            Socket::Unix(stream) => {
                stream.set_write_timeout(rest)?;
                stream.write(buffer)
            }
            Socket::Tcp(stream) => {
                stream.set_write_timeout(rest)?;
                stream.write(buffer)
            }
        };
        written.map_err(|error| self.deadline.map_timeout(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn encode_request(place: &Endpoint, path: &str, (body, accept): (Option<&str>, &str)) -> String {
    let (host, token) = match place {
        Endpoint::Unix(_) => ("localhost".to_owned(), None),
        Endpoint::Tcp(address, token) => (address.to_string(), token.as_ref()),
    };
    let authorization = token.map_or(String::new(), |token| {
        format!("Authorization: Bearer {}\r\n", token.text())
    });
    let line = match body {
        None => format!("GET {path} HTTP/1.1\r\n"),
        Some(body) => format!("POST {path} HTTP/1.1\r\nContent-Length: {}\r\n", body.len()),
    };
    let body = body.unwrap_or("");
    format!(
        "{line}Host: {host}\r\nAccept: {accept}\r\n{authorization}Connection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc::{self, RecvTimeoutError};
    use std::thread;

    use super::*;

    #[test]
    fn slow_response_exceeds_deadline() {
        for identified in [0, 1] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let place = Endpoint::Tcp(listener.local_addr().unwrap(), None);
            let (end, ended) = mpsc::channel::<()>();
            let server = thread::spawn(move || {
                let (name, value) = IDENTITY_FIELD;
                for _ in 0..identified {
                    let (mut stream, _) = listener.accept().unwrap();
                    let head =
                        format!("HTTP/1.1 200 OK\r\n{name}: {value}\r\nContent-Length: 0\r\n\r\n");
                    stream.write_all(head.as_bytes()).unwrap();
                }
                let (mut stream, _) = listener.accept().unwrap();
                let head = format!("HTTP/1.1 200 OK\r\n{name}: {value}\r\nX: ");
                stream.write_all(head.as_bytes()).unwrap();
                let pause = Duration::from_millis(5);
                while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                    // The client may have closed the connection.
                    let _ = stream.write_all(b"x");
                }
            });
            let deadline = Deadline::after(Duration::from_millis(200));
            let error = request_with_deadline(&place, "/v1/status", None, deadline).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(error.to_string().contains("within 0.2 s"), "{error}");
            drop(end);
            server.join().unwrap();
        }
    }
}
