//! One answer from a stream: received, understood, counted and forgotten; bodies are not kept.

use std::cell::RefCell;

use onrush_engine::{Error, Input, Instant};
use onrush_http::body::BodyReader;
use onrush_http::{Framing, HeaderSlots, Limits, Method, Parsed, Refusal, response};
use onrush_tls::Transport;

use crate::client::Client;

/// What matters of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Whether the connection can carry another request.
    pub(crate) keep_alive: bool,
    /// When its head was there.
    pub(crate) first_byte: Instant,
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lost {
    /// The kernel said no, or nothing came in time.
    Failed(Error),
    /// The peer ended the connection before the answer's first byte.
    Ended,
    /// The peer ended the connection within the answer.
    Cut,
    /// It is no answer to the request.
    Refused(&'static str),
}

impl From<Error> for Lost {
    fn from(error: Error) -> Lost {
        Lost::Failed(error)
    }
}

impl From<Refusal> for Lost {
    fn from(refusal: Refusal) -> Lost {
        Lost::Refused(refusal.reason)
    }
}

/// Takes one whole answer from `stream`. `now` is the time of the last receive, here and afterwards: the answer was
/// complete then, whatever else waits in `input`.
pub(crate) async fn receive(
    client: &Client,
    stream: &Transport,
    input: &mut Input,
    now: &mut Instant,
) -> Result<Answer, Lost> {
    let mut begun = false;
    let head = loop {
        match client.heads.read(input.bytes())? {
            // 1xx is not the answer yet (RFC 9110 15.2).
            Some(head) if head.status < 200 => {
                begun = true;
                input.consume(head.bytes);
                if head.status == 101 {
                    return Err(Lost::Refused(
                        "switched to a protocol that was not asked for",
                    ));
                }
            }
            Some(head) => break head,
            None => {
                begun |= !input.is_empty();
                match client.receive_more(stream, input, now).await? {
                    0 if begun => return Err(Lost::Cut),
                    0 => return Err(Lost::Ended),
                    _ => {}
                }
            }
        }
    };
    let mut answer = Answer {
        status: head.status,
        keep_alive: head.keep_alive,
        first_byte: *now,
    };
    input.consume(head.bytes);
    let mut body = BodyReader::new(head.framing);
    while !body.is_complete() {
        let consumed = body.skip(input.bytes(), &Limits::DEFAULT)?;
        input.consume(consumed);
        if body.is_complete() {
            break;
        }
        if client.receive_more(stream, input, now).await? == 0 {
            body.end_of_input().map_err(|_| Lost::Cut)?;
            answer.keep_alive = false;
            break;
        }
    }
    Ok(answer)
}

/// What matters of a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    status: u16,
    keep_alive: bool,
    framing: Framing,
    /// Its length in the input.
    bytes: usize,
}

/// Reads heads, and remembers the last one: a server under load sends the same bytes until the second in its `Date`
/// changes, and the same bytes mean the same.
pub(crate) struct Heads {
    method: Method,
    last: RefCell<(Vec<u8>, Option<Head>)>,
}

impl Heads {
    pub(crate) fn new(method: Method) -> Heads {
        Heads {
            method,
            last: RefCell::new((Vec::new(), None)),
        }
    }

    /// The head at the start of `input`; `None` when it is not all there.
    fn read(&self, input: &[u8]) -> Result<Option<Head>, Refusal> {
        if input.is_empty() {
            return Ok(None);
        }
        let (bytes, head) = &mut *self.last.borrow_mut();
        if head.is_some() && input.starts_with(bytes) {
            return Ok(*head);
        }
        let mut slots = HeaderSlots::new();
        match response::parse(input, &mut slots, self.method, &Limits::DEFAULT) {
            Parsed::Complete(parsed) => {
                bytes.clear();
                bytes.extend_from_slice(&input[..parsed.bytes]);
                *head = Some(Head {
                    status: parsed.status,
                    keep_alive: parsed.keep_alive,
                    framing: parsed.framing,
                    bytes: parsed.bytes,
                });
                Ok(*head)
            }
            Parsed::Partial => Ok(None),
            Parsed::Refused(refusal) => Err(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_head_is_read_as_it_was_parsed() {
        let heads = Heads::new(Method::Get);
        let first = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
        let other = b"HTTP/1.1 404 Not Found\r\nContent-Length: 30\r\n\r\n";
        let parsed = heads.read(first).unwrap().unwrap();
        assert_eq!((parsed.status, parsed.framing), (200, Framing::Length(2)));
        assert_eq!(heads.read(first), Ok(Some(parsed)));
        assert_eq!(heads.read(other).unwrap().unwrap().status, 404);
        assert_eq!(heads.read(first), Ok(Some(parsed)));
    }

    #[test]
    fn every_prefix_of_a_remembered_head_wants_more() {
        let heads = Heads::new(Method::Get);
        let whole = b"HTTP/1.1 204 No Content\r\nServer: a\r\n\r\n";
        heads.read(whole).unwrap().unwrap();
        for end in 0..whole.len() {
            assert_eq!(heads.read(&whole[..end]), Ok(None), "of {end} bytes");
        }
    }
}
