//! A client of the admin interface: one request, one response. The listener has to identify itself before it gets a token or a
//! command.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use onrush_http::response::ResponseHead;
use onrush_http::{Framing, Header, HeaderSlots, Limits, Method, Parsed, response};
use serde_json::Value;

use crate::authority::Token;
use crate::feed;
use crate::response::IDENTITY;

/// Bytes of a response at most: metrics of thousands of servers.
const RESPONSE_MAX: u64 = 256 * 1024 * 1024;

/// How long an interface may be silent: a question waits 5 s for a core that does not answer, and events have a sign of life
/// each 15 s.
const PATIENCE: Duration = Duration::from_secs(20);

/// The same behind an order: an upgrade takes a minute at most, and reads a long configuration first.
const ORDER_PATIENCE: Duration = Duration::from_secs(90);

/// Where an interface is.
#[derive(Clone, Debug)]
pub enum Place {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP address, and what it wants to see.
    Tcp(SocketAddr, Option<Token>),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
            Place::Tcp(address, _) => address.fmt(f),
        }
    }
}

/// What comes back.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status of HTTP.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as JSON; null for what is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Asks the interface at `place` for `path`: with a `body` by POST, otherwise by GET. It may be empty.
///
/// # Errors
/// When nothing listens there, the listener is not an admin interface, or its response is incomplete.
pub fn ask(place: &Place, path: &str, body: Option<&str>) -> io::Result<Response> {
    identify(place)?;
    let request = request(place, path, (body, "application/json"));
    let mut bytes = Vec::new();
    let patience = match body {
        Some(_) => ORDER_PATIENCE,
        None => PATIENCE,
    };
    let mut stream = connect(place, patience)?;
    stream.write_all(request.as_bytes())?;
    let read = stream.take(RESPONSE_MAX).read_to_end(&mut bytes);
    read.map_err(|error| silent(error, patience))?;
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
            "what is there speaks no HTTP, or has ended before it had said all",
        )),
    }
}

/// Hears of events at `path` as they happen, each as JSON, until the server ends in good order.
///
/// # Errors
/// The errors of [`ask`] and of `each`; also when the server refuses events, or the connection ends before the events do.
pub fn follow(
    place: &Place,
    path: &str,
    mut each: impl FnMut(&Value) -> io::Result<()>,
) -> io::Result<()> {
    identify(place)?;
    let request = request(place, path, (None, feed::CONTENT_TYPE));
    let mut stream = connect(place, PATIENCE)?;
    stream.write_all(request.as_bytes())?;
    let mut lines = BufReader::new(stream).lines();
    let status = lines.next().transpose()?.unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        return Err(io::Error::other(format!(
            "the server responded with {status:?} where events were expected"
        )));
    }
    for line in lines {
        let line = line.map_err(|error| silent(error, PATIENCE))?;
        if line == feed::END {
            return Ok(());
        }
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        each(&serde_json::from_str(data)?)?;
    }
    Err(io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the server is gone, without a word",
    ))
}

/// Makes sure that an admin interface listens at `place`, by a request without a token that changes nothing.
fn identify(place: &Place) -> io::Result<()> {
    let place = match place {
        Place::Unix(path) => Place::Unix(path.clone()),
        Place::Tcp(address, _) => Place::Tcp(*address, None),
    };
    let mut stream = connect(&place, PATIENCE)?;
    stream.write_all(request(&place, "/ready", (None, "application/json")).as_bytes())?;
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece);
        let read = read.map_err(|error| silent(error, PATIENCE))?;
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
    let (name, value) = IDENTITY;
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
        "what listens there is not an admin interface of Onrush, or is one of another version: its response has no field Onrush-Admin: 1",
    )
}

/// Either kind of a connection.
trait Connection: Read + Write {}

impl Connection for UnixStream {}
impl Connection for TcpStream {}

/// What a timeout of the socket means.
fn silent(error: io::Error, patience: Duration) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
            io::ErrorKind::TimedOut,
            format!(
                "the server has said nothing for {} s: it is stopped, or has no CPU",
                patience.as_secs()
            ),
        ),
        _ => error,
    }
}

fn connect(place: &Place, patience: Duration) -> io::Result<Box<dyn Connection>> {
    Ok(match place {
        Place::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(patience))?;
            Box::new(stream)
        }
        Place::Tcp(address, _) => {
            let stream = TcpStream::connect_timeout(address, PATIENCE)?;
            stream.set_read_timeout(Some(patience))?;
            Box::new(stream)
        }
    })
}

fn request(place: &Place, path: &str, (body, accept): (Option<&str>, &str)) -> String {
    let (host, token) = match place {
        Place::Unix(_) => ("localhost".to_owned(), None),
        Place::Tcp(address, token) => (address.to_string(), token.as_ref()),
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
