//! Bytes that an echo sends back (RFC 862): each request is as many bytes as all others, and its response is the same bytes.
//! To somebody who discards them (RFC 863), the same bytes go without a response.

use std::rc::Rc;
use std::sync::Arc;

use onrush_tls::Transport;

use super::request::RequestKind;
use super::response::{Met, Outcome, Outcomes, Response, Stage, Step};

/// There is one thing that an echo says.
pub(crate) static OUTCOMES: Outcomes = Outcomes {
    count: 1,
    classes: ["echoes", "", "", "", ""],
    noun: "",
    name: |_| "echo".to_owned(),
    is_refusal: |_| false,
    is_failure: |_| false,
    is_false: |_| false,
    refusals: "were refused",
};

/// There is one thing that becomes of bytes nobody answers: the kernel has taken them.
pub(crate) static OUTCOMES_OF_STREAM: Outcomes = Outcomes {
    classes: ["taken", "", "", "", ""],
    name: |_| "taken".to_owned(),
    ..OUTCOMES
};

/// All bytes are back, or nobody answers them and the kernel has taken them.
pub(crate) const DONE: Response = Response {
    outcome: Outcome {
        number: 0,
        class: 0,
    },
    keep_alive: true,
    met: Met::Yes,
};

/// What a run sends.
#[derive(Debug)]
pub(crate) struct Bytes {
    kind: RequestKind,
    bytes: Arc<[u8]>,
}

impl Bytes {
    /// So many bytes, at least one, for which there is this `verb`.
    pub(crate) fn new(verb: &str, count: usize) -> Bytes {
        Bytes {
            kind: RequestKind {
                name: format!("{verb} {count} bytes"),
                // Nobody minds what is sent back twice.
                is_repeatable: true,
            },
            // No short piece of it is the same as the one behind it.
            bytes: (0..count).map(|at| (at % 251) as u8).collect(),
        }
    }

    pub(super) fn kind(&self) -> &RequestKind {
        &self.kind
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// One core's copy of what it sends.
pub(crate) struct Codec(Rc<[u8]>);

impl Codec {
    pub(super) fn new(bytes: &Bytes) -> Codec {
        Codec(Rc::from(&bytes.bytes[..]))
    }

    /// See [`super::Codec::queue`].
    #[inline]
    pub(super) fn queue(&self, stream: &Transport, count: u64) -> u64 {
        for _ in 0..count {
            stream.queue(Rc::clone(&self.0));
        }
        count * self.0.len() as u64
    }

    /// See [`super::Codec::incoming`].
    pub(super) fn incoming(&self) -> Incoming<'_> {
        Incoming { left: &self.0 }
    }
}

/// What has not come back of a request.
pub(crate) struct Incoming<'c> {
    left: &'c [u8],
}

impl Incoming<'_> {
    /// See [`super::Incoming::step`].
    pub(super) fn step(&mut self, input: &[u8]) -> (usize, Step) {
        let here = input.len().min(self.left.len());
        let (come, left) = self.left.split_at(here);
        if input[..here] != *come {
            return (0, Step::Refused("other bytes than were sent"));
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
    fn the_same_bytes_are_a_response_in_any_pieces_and_others_are_none() {
        let bytes = Bytes::new("echo", 300);
        let codec = Codec::new(&bytes);
        let sent: Vec<u8> = codec.0.iter().chain(&codec.0[..]).copied().collect();
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
}
