//! One answer from a stream: received, understood, counted and forgotten; bodies are not kept.

use std::cell::RefCell;

use onrush_engine::{Input, Instant};
use onrush_http::body::BodyReader;
use onrush_http::{Framing, HeaderSlots, Limits, Method, Parsed, Refusal, header_is, response};
use onrush_tls::Transport;

use crate::client::Client;
use crate::failure::Lost;
use crate::requests::cookies::{Cookie, Jar};
use crate::requests::expect::{Expected, Met};
use crate::work::Work;

/// What matters of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Whether the connection can carry another request.
    pub(crate) keep_alive: bool,
    /// When its head was there.
    pub(crate) first_byte: Instant,
    /// Whether it is as expected.
    pub(crate) met: Met,
    /// Whether it is its connection's first.
    pub(crate) is_first: bool,
}

/// Takes one whole answer from `stream`, to the first request of `work`. `now` is the time of the last receive, here and afterwards: the answer was
/// complete then, whatever else waits in `input`.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn holds its arguments twice, in every connection"
)]
pub(crate) fn receive(
    client: &Client,
    stream: &Transport,
    input: &mut Input,
    work: &Work,
    now: &mut Instant,
) -> impl Future<Output = Result<Answer, Lost>> {
    async move {
        let recipe = client.recipe_of(work);
        let mut begun = false;
        let head = loop {
            match client.heads.read(input.bytes(), recipe.method)? {
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
                    let received = client.receive_more(stream, input, now).await;
                    let lost = |error| match begun {
                        true => Lost::Broken(error),
                        false => Lost::Failed(error),
                    };
                    match received.map_err(lost)? {
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
            met: Met::Yes,
            is_first: false,
        };
        if let Some(jar) = client.jar_of(work) {
            client.heads.put_cookies(&mut jar.borrow_mut());
        }
        input.consume(head.bytes);
        let mut body = BodyReader::of_response(head.framing);
        let mut search = recipe.expected.as_ref().and_then(Expected::search);
        while !body.is_complete() {
            let consumed = match &mut search {
                None => body.skip(input.bytes(), &Limits::DEFAULT)?,
                Some(search) => search.skip(&mut body, input.bytes())?,
            };
            input.consume(consumed);
            if body.is_complete() {
                break;
            }
            let received = client.receive_more(stream, input, now).await;
            if received.map_err(Lost::Broken)? == 0 {
                body.end_of_input().map_err(|_| Lost::Cut)?;
                answer.keep_alive = false;
                break;
            }
        }
        if let Some(expected) = &recipe.expected {
            answer.met = expected.judge(answer.status, search.as_deref());
        }
        Ok(answer)
    }
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
    /// Whether the cookies in them matter.
    has_cookies: bool,
    last: RefCell<Seen>,
}

/// A head that was read.
#[derive(Default)]
struct Seen {
    bytes: Vec<u8>,
    /// What it answered: an answer to HEAD has no body.
    method: Option<Method>,
    head: Option<Head>,
    cookies: Vec<Cookie>,
}

impl Heads {
    pub(crate) fn new(has_cookies: bool) -> Heads {
        Heads {
            has_cookies,
            last: RefCell::default(),
        }
    }

    /// Puts the cookies of the head that was read last into `jar`.
    fn put_cookies(&self, jar: &mut Jar) {
        let last = self.last.borrow();
        last.cookies.iter().for_each(|cookie| jar.take(cookie));
    }

    /// The head at the start of `input`, an answer to a request with `method`; `None` when it is not all there.
    fn read(&self, input: &[u8], method: Method) -> Result<Option<Head>, Refusal> {
        if input.is_empty() {
            return Ok(None);
        }
        let last = &mut *self.last.borrow_mut();
        if last.head.is_some() && last.method == Some(method) && input.starts_with(&last.bytes) {
            return Ok(last.head);
        }
        let mut slots = HeaderSlots::new();
        match response::parse(input, &mut slots, method, &Limits::DEFAULT) {
            Parsed::Complete(parsed) => {
                last.bytes.clear();
                last.bytes.extend_from_slice(&input[..parsed.bytes]);
                last.method = Some(method);
                last.cookies.clear();
                if self.has_cookies {
                    let fields = parsed.headers.iter();
                    let cookies = fields.filter(|field| header_is(field.name, "set-cookie"));
                    last.cookies
                        .extend(cookies.filter_map(|field| Cookie::parse(field.value)));
                }
                last.head = Some(Head {
                    status: parsed.status,
                    keep_alive: parsed.keep_alive,
                    framing: parsed.framing,
                    bytes: parsed.bytes,
                });
                Ok(last.head)
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
        let heads = Heads::new(false);
        let first = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
        let other = b"HTTP/1.1 404 Not Found\r\nContent-Length: 30\r\n\r\n";
        let parsed = heads.read(first, Method::Get).unwrap().unwrap();
        assert_eq!((parsed.status, parsed.framing), (200, Framing::Length(2)));
        assert_eq!(heads.read(first, Method::Get), Ok(Some(parsed)));
        assert_eq!(heads.read(other, Method::Get).unwrap().unwrap().status, 404);
        assert_eq!(heads.read(first, Method::Get), Ok(Some(parsed)));
    }

    #[test]
    fn every_prefix_of_a_remembered_head_wants_more() {
        let heads = Heads::new(false);
        let whole = b"HTTP/1.1 204 No Content\r\nServer: a\r\n\r\n";
        heads.read(whole, Method::Get).unwrap().unwrap();
        for end in 0..whole.len() {
            assert_eq!(
                heads.read(&whole[..end], Method::Get),
                Ok(None),
                "of {end} bytes"
            );
        }
    }
}
