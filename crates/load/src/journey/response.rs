//! A response as a journey receives it: with the fields and the body that its step inspects.

use std::io::Read;

use flate2::read::{GzDecoder, ZlibDecoder};
use onrush_http::body::BodyReader;
use onrush_http::response::ResponseHead;
use onrush_http::{Framing, Method, Parsed, header_is};

use crate::limits::BODY_KEPT_MAX;
use crate::limits::http1::RESPONSE_LIMITS;
use crate::protocol::failure::Failure;
use crate::protocol::http1::held_head::{HeldHead, parse};
use crate::requests::cookies::Cookie;

/// Whether the step inspects the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InspectedParts {
    Body,
    HeadOnly,
}

/// A complete response.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Whether the connection can carry another request.
    pub(crate) keep_alive: bool,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    /// Bytes received of the body; more than `body` holds if the body exceeds [`BODY_KEPT_MAX`].
    body_bytes: u64,
}

impl Response {
    /// Values of the fields with this name, in their order.
    pub(crate) fn fields(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let named = self.fields.iter();
        let named = named.filter(move |(field, _)| field.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_slice())
    }

    /// Cookies that the response sets or deletes.
    pub(crate) fn cookies(&self) -> impl Iterator<Item = Cookie> {
        self.fields("set-cookie").filter_map(Cookie::parse)
    }

    /// The body; content codings are removed only by [`decode`](Self::decode).
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Removes the content codings from the body.
    ///
    /// # Errors
    /// If the body is longer than [`BODY_KEPT_MAX`], or its coding is unknown or invalid.
    pub(crate) fn decode(&mut self) -> Result<(), Failure> {
        if self.body_bytes > self.body.len() as u64 {
            return Err(Failure::BodyTooLong);
        }
        let codings: Vec<String> = self
            .fields("content-encoding")
            .flat_map(|value| value.split(|&byte| byte == b','))
            .map(|coding| String::from_utf8_lossy(coding.trim_ascii()).to_lowercase())
            .filter(|coding| !coding.is_empty() && coding != "identity")
            .collect();
        // An empty body has no coding, even if the field names one.
        if self.body.is_empty() {
            return Ok(());
        }
        // The last coding listed was applied last (RFC 9110 section 8.4).
        for coding in codings.iter().rev() {
            let bounded = BODY_KEPT_MAX as u64 + 1;
            let mut plain = Vec::new();
            let read = match coding.as_str() {
                "gzip" | "x-gzip" => GzDecoder::new(&*self.body)
                    .take(bounded)
                    .read_to_end(&mut plain),
                "deflate" => ZlibDecoder::new(&*self.body)
                    .take(bounded)
                    .read_to_end(&mut plain),
                _ => return Err(Failure::BodyCoded),
            };
            match read {
                Ok(bytes) if bytes > BODY_KEPT_MAX => return Err(Failure::BodyTooLong),
                Ok(_) => self.body = plain,
                Err(_) => return Err(Failure::BodyCoded),
            }
        }
        Ok(())
    }
}

/// Result of parsing received bytes.
#[derive(Debug)]
pub(crate) enum ParseStep {
    /// The head is incomplete.
    ExpectHead,
    /// The body is incomplete.
    ExpectBody,
    Done(Response),
    /// Invalid as a response to the request, for this reason.
    Refused(&'static str),
}

/// State of one response while it arrives.
#[derive(Debug)]
pub(crate) struct ResponseParser {
    method: Method,
    wants: InspectedParts,
    held: HeldHead,
    response: Response,
    /// `None` before the final head.
    body: Option<BodyReader>,
}

impl ResponseParser {
    /// Expects the response to a request with this method.
    pub(crate) fn new(method: Method, wants: InspectedParts) -> ResponseParser {
        ResponseParser {
            method,
            wants,
            held: HeldHead::default(),
            response: Response::default(),
            body: None,
        }
    }

    /// Parses `input` and returns the number of bytes consumed, and the result. The caller passes the remaining bytes
    /// again, followed by those received since.
    pub(crate) fn step(&mut self, input: &[u8]) -> (usize, ParseStep) {
        let mut at = 0;
        let step = self.advance(input, &mut at);
        (at, step.unwrap_or_else(ParseStep::Refused))
    }

    fn advance(&mut self, input: &[u8], at: &mut usize) -> Result<ParseStep, &'static str> {
        while self.body.is_none() {
            if !self.head(input, at)? {
                return Ok(ParseStep::ExpectHead);
            }
        }
        let ResponseParser {
            wants,
            response,
            body: Some(body),
            ..
        } = self
        else {
            return Ok(ParseStep::ExpectHead);
        };
        while *at < input.len() && !body.is_complete() {
            let step = body.advance(&input[*at..], &RESPONSE_LIMITS);
            let step = step.map_err(|refusal| refusal.reason)?;
            if step.consumed == 0 {
                break;
            }
            if *wants == InspectedParts::Body {
                response.append_body(&input[*at..][step.payload]);
            }
            *at += step.consumed;
        }
        match body.is_complete() {
            true => Ok(ParseStep::Done(std::mem::take(response))),
            false => Ok(ParseStep::ExpectBody),
        }
    }

    /// Parses the head at `at` and advances `at`; returns whether the head is complete. A complete interim response is
    /// skipped.
    fn head(&mut self, input: &[u8], at: &mut usize) -> Result<bool, &'static str> {
        if input[*at..].is_empty() {
            return Ok(false);
        }
        let ResponseParser { method, held, .. } = self;
        let found = held.read(&input[*at..], |input| {
            match parse(input, *method, |head| (Head::of(head), head.bytes)) {
                Parsed::Complete(head) => Ok(Some(head)),
                Parsed::Partial => Ok(None),
                Parsed::Refused(refusal) => Err(refusal),
            }
        });
        let (bytes, head) = found.map_err(|refusal| refusal.reason)?;
        *at += bytes;
        let Some(head) = head else {
            return Ok(false);
        };
        match head.status {
            101 => return Err("switched to a protocol that was not requested"),
            // 1xx is an interim response (RFC 9110 section 15.2).
            ..200 => return Ok(true),
            200.. => {}
        }
        self.response.status = head.status;
        self.response.keep_alive = head.keep_alive;
        self.response.fields = head.fields;
        self.body = Some(BodyReader::of_response(head.framing));
        Ok(true)
    }

    /// Returns the response if the end of the connection completes it (RFC 9112 section 6.3).
    pub(crate) fn end(&mut self) -> Option<Response> {
        self.body.as_ref()?.end_of_input().ok()?;
        let mut response = std::mem::take(&mut self.response);
        response.keep_alive = false;
        Some(response)
    }
}

/// Fields of a head that a journey uses.
struct Head {
    status: u16,
    keep_alive: bool,
    framing: Framing,
    fields: Vec<(String, Vec<u8>)>,
}

impl Head {
    fn of(head: &ResponseHead<'_, '_>) -> Head {
        let fields = head.headers.iter();
        let fields = fields.filter(|field| !header_is(field.name, "date"));
        Head {
            status: head.status,
            keep_alive: head.keep_alive,
            framing: head.framing,
            fields: fields
                .map(|field| (field.name.to_owned(), field.value.to_vec()))
                .collect(),
        }
    }
}

impl Response {
    fn append_body(&mut self, payload: &[u8]) {
        self.body_bytes += payload.len() as u64;
        let room = BODY_KEPT_MAX - self.body.len();
        self.body
            .extend_from_slice(&payload[..payload.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;
    use proptest::prelude::*;

    impl Response {
        /// Creates a response with these fields and this body.
        pub(in crate::journey) fn of(
            status: u16,
            fields: &[(&str, &str)],
            body: &[u8],
        ) -> Response {
            Response {
                status,
                fields: fields
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
                    .collect(),
                body: body.to_vec(),
                body_bytes: body.len() as u64,
                ..Response::default()
            }
        }
    }

    /// Parses `bytes` in two pieces, cut at each position in turn; all results must be equal.
    fn read(bytes: &[u8], method: Method) -> Response {
        let mut last = None;
        for cut in 0..=bytes.len() {
            let mut incoming = ResponseParser::new(method, InspectedParts::Body);
            let mut input = bytes[..cut].to_vec();
            let (consumed, step) = incoming.step(&input);
            input.drain(..consumed);
            input.extend_from_slice(&bytes[cut..]);
            let response = match step {
                ParseStep::Done(response) => response,
                ParseStep::ExpectHead | ParseStep::ExpectBody => match incoming.step(&input).1 {
                    ParseStep::Done(response) => response,
                    other => panic!("cut at {cut}: {other:?}"),
                },
                ParseStep::Refused(reason) => panic!("cut at {cut}: {reason}"),
            };
            let seen = (response.status, response.body.clone(), response.keep_alive);
            if let Some(last) = last.replace(seen.clone()) {
                assert_eq!(seen, last, "cut at {cut}");
            }
            if cut == bytes.len() {
                return response;
            }
        }
        unreachable!("the last cut is at the end")
    }

    #[test]
    fn chunked_body_is_decoded() {
        let bytes = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\
            Set-Cookie: a=1\r\nset-cookie: b=2; Path=/\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let response = read(bytes, Method::Get);
        assert_eq!(response.body(), b"abcde");
        assert_eq!(response.cookies().count(), 2);
        assert_eq!(response.fields("link").count(), 0, "of another response");
    }

    #[test]
    fn head_response_has_no_body() {
        let response = read(
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            Method::Head,
        );
        assert_eq!((response.body(), response.keep_alive), (&b""[..], true));
    }

    #[test]
    fn body_without_length_ends_at_close() {
        let mut incoming = ResponseParser::new(Method::Get, InspectedParts::Body);
        let (_, step) = incoming.step(b"HTTP/1.1 200 OK\r\n\r\nabc");
        assert!(matches!(step, ParseStep::ExpectBody), "{step:?}");
        let response = incoming.end().unwrap();
        assert_eq!((response.body(), response.keep_alive), (&b"abc"[..], false));
        let mut cut = ResponseParser::new(Method::Get, InspectedParts::Body);
        cut.step(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
        assert!(cut.end().is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_parse_without_panic(
            rest in proptest::collection::vec(any::<u8>(), 0..200),
            framing in "(Content-Length: [0-9]{1,3}|Transfer-Encoding: chunked|Content-Encoding: gzip)",
            cut in 0usize..200,
        ) {
            let head = format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n");
            let bytes = [head.as_bytes(), &rest].concat();
            let cut = cut.min(bytes.len());
            let mut incoming = ResponseParser::new(Method::Get, InspectedParts::Body);
            let (consumed, step) = incoming.step(&bytes[..cut]);
            prop_assert!(consumed <= cut);
            if let ParseStep::ExpectHead | ParseStep::ExpectBody = step {
                let (more, step) = incoming.step(&bytes[consumed..]);
                prop_assert!(consumed + more <= bytes.len());
                let ended = match step {
                    ParseStep::Done(response) => Some(response),
                    ParseStep::ExpectHead | ParseStep::ExpectBody => incoming.end(),
                    ParseStep::Refused(_) => None,
                };
                if let Some(mut response) = ended {
                    let _ = response.decode();
                    prop_assert!(response.body().len() <= BODY_KEPT_MAX);
                }
            }
        }
    }

    fn coded(coding: &str, body: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut response = Response::of(200, &[("Content-Encoding", coding)], body);
        response.decode().map(|()| response.body)
    }

    #[test]
    fn only_gzip_and_deflate_are_decoded() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(b"hello").unwrap();
        let gzip = gzip.finish().unwrap();
        assert_eq!(coded("gzip", &gzip), Ok(b"hello".to_vec()));
        assert_eq!(coded("X-GZIP", &gzip), Ok(b"hello".to_vec()));
        let mut deflate = ZlibEncoder::new(Vec::new(), Compression::default());
        deflate.write_all(&gzip).unwrap();
        let both = deflate.finish().unwrap();
        assert_eq!(coded("gzip, deflate", &both), Ok(b"hello".to_vec()));
        assert_eq!(coded("identity", b"x"), Ok(b"x".to_vec()));
        assert_eq!(coded("br", b"x"), Err(Failure::BodyCoded));
        assert_eq!(coded("gzip", b"no gzip"), Err(Failure::BodyCoded));
        assert_eq!(coded("br", b""), Ok(Vec::new()));
    }

    #[test]
    fn long_body_is_refused_before_and_after_decoding() {
        let long = vec![b'a'; BODY_KEPT_MAX + 1];
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&long).unwrap();
        let small = gzip.finish().unwrap();
        assert!(small.len() < BODY_KEPT_MAX);
        assert_eq!(coded("gzip", &small), Err(Failure::BodyTooLong));
        let mut incoming = ResponseParser::new(Method::Get, InspectedParts::Body);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", long.len());
        incoming.step(head.as_bytes());
        let (bytes, step) = incoming.step(&long);
        let ParseStep::Done(mut response) = step else {
            panic!("{step:?}");
        };
        assert_eq!((bytes, response.body.len()), (long.len(), BODY_KEPT_MAX));
        assert_eq!(response.decode(), Err(Failure::BodyTooLong));
    }
}
