//! An OTLP/HTTP client: sends one message at a time on a persistent connection.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_config::plan::ServerAddress;
use onrush_engine::clock::unix_time;
use onrush_engine::{Address, Core, Error, Input, Instant, Kind, Stream};
use onrush_http::body::BodyReader;
use onrush_http::{Framing, Header, HeaderSlots, Limits, Method, Parsed, header_is, response};
use onrush_tls::Transport;

use super::otlp;
use super::sink::Sink;
use crate::observe::trace::limits::COLLECTOR_RESPONSE_BYTES_MAX;

/// Maximum number of characters of a collector's message that are logged.
const WORDS_SHOWN: usize = 200;

/// Resolves a host name within a time limit. The error is the reason for the log.
pub(crate) type Lookup = fn(&str, Duration) -> Result<Vec<IpAddr>, String>;

pub(super) struct Collector {
    core: Core,
    sink: Arc<Sink>,
    lookup: Lookup,
    /// The connection of the previous message.
    connection: Option<Transport>,
}

/// Why the collector did not accept a message.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) why: String,
    pub(super) again: Again,
}

/// Whether the same message may be accepted later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Again {
    Never,
    /// Not before this time, if the collector sent `Retry-After`.
    After(Option<Duration>),
}

impl Refusal {
    fn later(why: String) -> Self {
        Self {
            why,
            again: Again::After(None),
        }
    }
}

/// Outcome of an attempt on one connection.
enum Outcome {
    /// A response; the connection, if it can be reused.
    Responded(Result<(u64, String), Refusal>, Option<Transport>),
    /// The connection ended before any byte of a response.
    Closed(String),
}

/// The relevant fields of the final response.
struct Head {
    status: u16,
    framing: Framing,
    keep_alive: bool,
    retry_after: Option<Duration>,
    is_protobuf: bool,
}

impl Collector {
    pub(super) fn new(core: &Core, sink: &Arc<Sink>, lookup: Lookup) -> Self {
        Self {
            core: core.clone(),
            sink: Arc::clone(sink),
            lookup,
            connection: None,
        }
    }

    /// A POST request with this body.
    pub(super) fn message(&self, body: &[u8]) -> Rc<[u8]> {
        let collector = &self.sink.plan.collector;
        let mut message = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: onrush/{}\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n",
            collector.target,
            collector.address,
            env!("CARGO_PKG_VERSION"),
            body.len(),
        );
        for (name, value) in &self.sink.headers {
            message += &format!("{name}: {value}\r\n");
        }
        message += "\r\n";
        [message.as_bytes(), body].concat().into()
    }

    /// Sends a message. Returns how many spans the collector refused, and why.
    pub(super) async fn send(&mut self, message: &Rc<[u8]>) -> Result<(u64, String), Refusal> {
        let until = self.core.now_exact() + self.sink.plan.timeout;
        if let Some(transport) = self.connection.take()
            && let Outcome::Responded(response, kept) =
                self.attempt(transport, message, until).await
        {
            self.connection = kept;
            return response;
        }
        let transport = self.connect(until).await.map_err(Refusal::later)?;
        match self.attempt(transport, message, until).await {
            Outcome::Responded(response, kept) => {
                self.connection = kept;
                response
            }
            Outcome::Closed(why) => Err(Refusal::later(why)),
        }
    }

    async fn connect(&self, until: Instant) -> Result<Transport, String> {
        let collector = &self.sink.plan.collector;
        let (addresses, host) = match &collector.address {
            ServerAddress::Ip(address) => (vec![*address], address.ip().to_string()),
            ServerAddress::Name { host, port } => {
                let left = until.since(self.core.now_exact());
                let found = (self.lookup)(host, left)?;
                let addresses = found.into_iter().map(|address| (address, *port).into());
                (addresses.collect(), host.clone())
            }
            ServerAddress::Srv(_) | ServerAddress::Unix(_) => {
                return Err("not a host name or IP address".to_owned());
            }
        };
        let mut why = "its host name has no address".to_owned();
        for address in addresses {
            let stream = Stream::connect(&self.core, &Address::Tcp(address), Some(until)).await;
            let stream = match stream {
                Ok(stream) => stream,
                Err(error) => {
                    why = error.to_string();
                    continue;
                }
            };
            let Some(connector) = &self.sink.connector else {
                return Ok(Transport::plain(stream));
            };
            match Transport::connect(stream, connector, &host, until).await {
                Ok(transport) => return Ok(transport),
                Err(error) => why = format!("no TLS: {error}"),
            }
        }
        Err(why)
    }

    async fn attempt(&self, transport: Transport, message: &Rc<[u8]>, until: Instant) -> Outcome {
        let late = |error: Error| match error.kind {
            Kind::TimedOut => format!("no response within {:?}", self.sink.plan.timeout),
            _ => error.to_string(),
        };
        transport.set_send_patience(until.since(self.core.now_exact()));
        transport.queue(Rc::clone(message));
        if let Err(error) = transport.flush().await {
            return Outcome::Closed(late(error));
        }
        transport.set_deadline(Some(until));
        let mut input = Input::default();
        let head = loop {
            match read_head(&mut input) {
                Ok(Some(head)) => break head,
                Ok(None) => {}
                Err(why) => return Outcome::Responded(Err(Refusal::later(why)), None),
            }
            match transport.recv(&mut input).await {
                Ok(0) => {
                    return Outcome::Closed("it closed the connection without a response".into());
                }
                Ok(_) => {}
                // Only on a reused connection may the peer have closed it meanwhile.
                Err(error) if error.kind == Kind::TimedOut => {
                    return Outcome::Responded(Err(Refusal::later(late(error))), None);
                }
                Err(error) => return Outcome::Closed(late(error)),
            }
        };
        let (body, is_whole) = read_body(&transport, &mut input, head.framing).await;
        let is_kept = is_whole && head.keep_alive && input.is_empty();
        Outcome::Responded(judge(&head, &body), is_kept.then_some(transport))
    }
}

/// Parses heads up to that of the final response; `None` if it is incomplete.
fn read_head(input: &mut Input) -> Result<Option<Head>, String> {
    loop {
        let mut slots = HeaderSlots::new();
        let head = match response::parse(input.bytes(), &mut slots, Method::Post, &Limits::DEFAULT)
        {
            Parsed::Complete(head) => head,
            Parsed::Partial => return Ok(None),
            Parsed::Refused(why) => {
                return Err(format!("it sent an invalid response: {}", why.reason));
            }
        };
        let bytes = head.bytes;
        let field = |name: &str| {
            let mut fields = head.headers.iter();
            let field: Option<&Header<'_>> = fields.find(|field| header_is(field.name, name));
            field.map(|field| field.value)
        };
        let read = Head {
            status: head.status,
            framing: head.framing,
            keep_alive: head.keep_alive,
            retry_after: field("retry-after").and_then(retry_after),
            is_protobuf: field("content-type")
                .is_some_and(|it| it.starts_with(b"application/x-protobuf")),
        };
        input.consume(bytes);
        if read.status >= 200 {
            return Ok(Some(read));
        }
        if read.status == 101 {
            return Err("it switched protocols although the request did not ask for it".to_owned());
        }
    }
}

/// The delay of a `Retry-After` value, in seconds or as a date (RFC 9110 10.2.3).
fn retry_after(value: &[u8]) -> Option<Duration> {
    let text = str::from_utf8(value).ok()?;
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let date = date.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(date.saturating_sub(unix_time()))
}

/// Reads a body up to a limit. Returns it and whether it is complete and well-formed; the status counts even if it is
/// not.
async fn read_body(transport: &Transport, input: &mut Input, framing: Framing) -> (Vec<u8>, bool) {
    let mut reader = BodyReader::of_response(framing);
    let mut body = Vec::new();
    loop {
        while !reader.is_complete() {
            let Ok(step) = reader.advance(input.bytes(), &Limits::DEFAULT) else {
                return (body, false);
            };
            body.extend_from_slice(&input.bytes()[step.payload.clone()]);
            input.consume(step.consumed);
            if body.len() > COLLECTOR_RESPONSE_BYTES_MAX {
                return (body, false);
            }
            if step.consumed == 0 {
                break;
            }
        }
        if reader.is_complete() {
            return (body, true);
        }
        if !matches!(transport.recv(input).await, Ok(1..)) {
            return (body, false);
        }
    }
}

/// Interprets a response (OTLP, "OTLP/HTTP response").
fn judge(head: &Head, body: &[u8]) -> Result<(u64, String), Refusal> {
    let status = head.status;
    if (200..300).contains(&status) {
        return Ok(match head.is_protobuf {
            true => {
                let (refused, why) = otlp::refused(body);
                (refused, shown(why.as_bytes()))
            }
            false => (0, String::new()),
        });
    }
    let words = match head.is_protobuf {
        true => shown(otlp::error_message(body).as_bytes()),
        false => shown(body),
    };
    let why = match words.is_empty() {
        true => format!("it responded with {status}"),
        false => format!("it responded with {status}: {words}"),
    };
    Err(Refusal {
        why,
        again: match status {
            429 | 502..=504 => Again::After(head.retry_after),
            _ => Again::Never,
        },
    })
}

/// The start of a collector's message, on one line.
fn shown(words: &[u8]) -> String {
    let words = String::from_utf8_lossy(&words[..words.len().min(4 * WORDS_SHOWN)]);
    let plain = words.chars().map(|letter| match letter.is_control() {
        true => ' ',
        false => letter,
    });
    let plain: String = plain.take(WORDS_SHOWN).collect();
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16) -> Head {
        Head {
            status,
            framing: Framing::None,
            keep_alive: true,
            retry_after: Some(Duration::from_secs(7)),
            is_protobuf: true,
        }
    }

    #[test]
    fn only_retryable_statuses_are_retried() {
        for status in [300, 301, 400, 401, 404, 408, 413, 500, 501, 505] {
            let refusal = judge(&head(status), b"").expect_err("no success");
            assert_eq!(refusal.again, Again::Never, "{status}");
        }
        for status in [429, 502, 503, 504] {
            let refusal = judge(&head(status), b"").expect_err("no success");
            let wait = Some(Duration::from_secs(7));
            assert_eq!(refusal.again, Again::After(wait), "{status}");
        }
    }

    #[test]
    fn partial_success_has_count_and_reason() {
        // partial_success { rejected_spans: 3, error_message: "too\nold" }
        let body = b"\x0a\x0b\x08\x03\x12\x07too\nold";
        let taken = judge(&head(200), body).expect("a success");
        assert_eq!(taken, (3, "too old".to_owned()));
        assert_eq!(judge(&head(200), b"").expect("a success").0, 0);
        // rejected_spans: -1
        let negative = b"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(judge(&head(200), negative).expect("a success").0, 0);
        assert_eq!(judge(&head(200), b"\xff\xff").expect("a success").0, 0);
        // google.rpc.Status { code: 3, message: "no" }
        let refusal = judge(&head(400), b"\x08\x03\x12\x02no").expect_err("an error");
        assert_eq!(refusal.why, "it responded with 400: no");
        let long = vec![b'x'; 100_000];
        let plain = Head {
            is_protobuf: false,
            ..head(413)
        };
        let refusal = judge(&plain, &long).expect_err("an error");
        assert!(refusal.why.len() < WORDS_SHOWN + 50);
    }

    #[test]
    fn retry_after_accepts_seconds_or_date() {
        assert_eq!(retry_after(b"120"), Some(Duration::from_secs(120)));
        let past = retry_after(b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(past, Some(Duration::ZERO));
        for none in [&b"soon"[..], b"-1", b"", b"\xff"] {
            assert_eq!(retry_after(none), None);
        }
    }
}
