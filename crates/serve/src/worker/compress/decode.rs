//! Decoding of responses in tests.

use std::io::{Error, Read};

use onrush_http::body::BodyReader;
use onrush_http::encoding::Coding;
use onrush_http::{Framing, HeaderSlots, Limits, Method, Parsed, response};

/// One parsed response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Received {
    /// Head, with `\n` as line ends.
    pub(crate) head: String,
    /// Body as sent, without chunk framing.
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<u8>,
    /// Whether the body is complete.
    pub(crate) is_whole: bool,
}

impl Received {
    /// Parses consecutive responses to requests of `method`.
    pub(crate) fn all(mut bytes: &[u8], method: Method) -> Vec<Received> {
        let mut responses = Vec::new();
        while !bytes.is_empty() {
            let (response, length) = Self::first(bytes, method);
            responses.push(response);
            bytes = &bytes[length..];
        }
        responses
    }

    /// Parses the first response; returns it and its length.
    pub(crate) fn first(bytes: &[u8], method: Method) -> (Received, usize) {
        let limits = Limits::DEFAULT;
        let mut slots = HeaderSlots::new();
        let Parsed::Complete(head) = response::parse(bytes, &mut slots, method, &limits) else {
            panic!("no response's head: {}", bytes.escape_ascii());
        };
        let mut reader = BodyReader::of_response(head.framing);
        let (mut body, mut trailers) = (Vec::new(), Vec::new());
        let mut at = head.bytes;
        loop {
            let in_trailers = reader.is_in_trailers();
            let step = reader.advance(&bytes[at..], &limits);
            let step = step.expect("a well-formed body");
            if step.consumed == 0 {
                break;
            }
            let consumed = &bytes[at..at + step.consumed];
            body.extend_from_slice(&consumed[step.payload]);
            if in_trailers {
                trailers.extend_from_slice(consumed);
            }
            at += step.consumed;
        }
        let response = Received {
            head: String::from_utf8_lossy(&bytes[..head.bytes]).replace("\r\n", "\n"),
            body,
            trailers,
            is_whole: reader.is_complete() || head.framing == Framing::UntilClose,
        };
        (response, at)
    }

    pub(crate) fn field(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect()
    }

    pub(crate) fn coding(&self) -> Option<Coding> {
        let tokens = self.field("content-encoding");
        assert!(tokens.len() <= 1, "{}", self.head);
        let known = [Coding::Zstd, Coding::Brotli, Coding::Gzip];
        tokens.first().map(|token| {
            let found = known.into_iter().find(|coding| coding.token() == *token);
            found.expect("one of ours")
        })
    }

    /// The decoded content.
    pub(crate) fn content(&self) -> Vec<u8> {
        assert!(self.is_whole, "{}", self.head);
        self.try_content().expect("a whole content")
    }

    /// The decoded content; `None` if it cannot be decoded.
    pub(crate) fn try_content(&self) -> Option<Vec<u8>> {
        let Some(coding) = self.coding() else {
            return Some(self.body.clone());
        };
        let mut decoded = Vec::new();
        decode_prefix(coding, &self.body, &mut decoded).ok()?;
        Some(decoded)
    }
}

pub(crate) fn decode(coding: Coding, encoded: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    decode_prefix(coding, encoded, &mut decoded).expect("a whole content");
    decoded
}

/// Decodes as much as possible. Fails if the input is incomplete.
pub(crate) fn decode_prefix(
    coding: Coding,
    encoded: &[u8],
    decoded: &mut Vec<u8>,
) -> Result<usize, Error> {
    match coding {
        Coding::Gzip => flate2::read::GzDecoder::new(encoded).read_to_end(decoded),
        Coding::Brotli => brotli::Decompressor::new(encoded, 4096).read_to_end(decoded),
        Coding::Zstd => zstd::Decoder::new(encoded)?.read_to_end(decoded),
    }
}
