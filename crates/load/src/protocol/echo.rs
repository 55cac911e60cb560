//! Echo over TCP (RFC 862): all requests are the same bytes, and the response is the same bytes or, from a responder,
//! another number of bytes of the same pattern. For the discard protocol (RFC 863), the bytes are sent without a
//! response.

use std::rc::Rc;
use std::sync::Arc;

use onrush_tls::Transport;

use crate::requests::request::RequestKind;
use crate::requests::response::{ExpectationResult, Outcome, Outcomes, Response, Stage, Step};

pub(crate) static OUTCOMES: Outcomes = Outcomes {
    count: 1,
    classes: ["echoes", "", "", "", ""],
    noun: "",
    name: |_| "echo".to_owned(),
    is_refusal: |_| false,
    is_unexpected: |_| false,
    is_failure: |_| false,
    is_mismatched: |_| false,
    refusal_phrase: "were refused",
};

pub(crate) static OUTCOMES_OF_STREAM: Outcomes = Outcomes {
    classes: ["taken", "", "", "", ""],
    name: |_| "taken".to_owned(),
    ..OUTCOMES
};

/// The response is complete or, without responses, the kernel has accepted all bytes.
pub(crate) const DONE: Response = Response {
    outcome: Outcome {
        number: 0,
        class: 0,
    },
    keep_alive: true,
    expectation: ExpectationResult::Yes,
};

#[derive(Debug)]
pub(crate) struct EchoPayload {
    kind: RequestKind,
    bytes: Arc<[u8]>,
    /// Bytes per response, for an echo as many as were sent.
    response: usize,
}

impl EchoPayload {
    /// `count` bytes, at least one. `verb` is the start of the displayed name.
    pub(crate) fn new(verb: &str, count: usize) -> EchoPayload {
        EchoPayload {
            kind: RequestKind {
                name: format!("{verb} {count} bytes"),
                // Repeating an echo has no side effects.
                is_repeatable: true,
                lists_outcomes: false,
            },
            bytes: pattern(count),
            response: count,
        }
    }

    /// `count` bytes, to which a responder sends `response` bytes.
    pub(crate) fn with_response(count: usize, response: usize) -> EchoPayload {
        EchoPayload {
            response,
            ..EchoPayload::new(&format!("{response} bytes for"), count)
        }
    }

    pub(super) fn kind(&self) -> &RequestKind {
        &self.kind
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Repeats with a prime period, so that shifted bytes never match.
fn pattern(count: usize) -> Arc<[u8]> {
    (0..count).map(|at| (at % PERIOD) as u8).collect()
}

/// Period of the pattern, in bytes.
const PERIOD: usize = 251;

/// One core's copy of the payload and of the expected response.
pub(crate) struct Codec {
    request: Rc<[u8]>,
    /// Bytes of the pattern, at least as many as a response has.
    pattern: Rc<[u8]>,
    response: usize,
}

impl Codec {
    pub(super) fn new(bytes: &EchoPayload) -> Codec {
        let request: Rc<[u8]> = Rc::from(&bytes.bytes[..]);
        let pattern = match bytes.response <= request.len() {
            true => Rc::clone(&request),
            false => Rc::from(&pattern(bytes.response)[..]),
        };
        Codec {
            request,
            pattern,
            response: bytes.response,
        }
    }

    #[inline]
    pub(super) fn queue(&self, stream: &Transport, count: u64) -> u64 {
        for _ in 0..count {
            stream.queue(Rc::clone(&self.request));
        }
        count * self.request.len() as u64
    }

    pub(super) fn incoming(&self) -> Incoming<'_> {
        Incoming {
            left: &self.pattern[..self.response],
        }
    }
}

/// Remainder of a response.
pub(crate) struct Incoming<'c> {
    left: &'c [u8],
}

impl Incoming<'_> {
    pub(super) fn step(&mut self, input: &[u8]) -> (usize, Step) {
        let here = input.len().min(self.left.len());
        let (come, left) = self.left.split_at(here);
        if input[..here] != *come {
            return (0, Step::Refused("other bytes than expected"));
        }
        self.left = left;
        if !left.is_empty() {
            return (here, Step::Partial(Stage::Body));
        }
        (here, Step::Done(DONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echo_must_match_across_reads() {
        let bytes = EchoPayload::new("echo", 300);
        let codec = Codec::new(&bytes);
        let sent: Vec<u8> = codec
            .request
            .iter()
            .chain(&codec.request[..])
            .copied()
            .collect();
        for piece in [1, 7, 299, 300, 600] {
            let mut incoming = codec.incoming();
            let (mut at, mut pieces) = (0, 0);
            let done = loop {
                let end = sent.len().min(at + piece);
                let (count, step) = incoming.step(&sent[at..end]);
                at += count;
                pieces += 1;
                if let Step::Done(_) = step {
                    break at;
                }
                assert_eq!(
                    step,
                    Step::Partial(Stage::Body),
                    "piece {pieces} of {piece}"
                );
            };
            assert_eq!(done, 300, "what is behind it is the next one's");
        }
        let mut incoming = codec.incoming();
        assert_eq!(incoming.step(&sent[..10]).0, 10);
        assert!(matches!(incoming.step(b"HTTP/1.1").1, Step::Refused(_)));
    }
    #[test]
    fn response_size_may_differ_from_request() {
        for (request, response) in [(100, 1), (1, 100), (7, 70_000)] {
            let codec = Codec::new(&EchoPayload::with_response(request, response));
            assert_eq!(codec.request.len(), request);
            let sent = pattern(response);
            assert_eq!(codec.incoming().step(&sent), (response, Step::Done(DONE)));
            let partial = codec.incoming().step(&sent[..response - 1]);
            assert_eq!(partial, (response - 1, Step::Partial(Stage::Body)));
        }
    }
}
