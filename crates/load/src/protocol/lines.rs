//! A protocol of lines, to see that what stands under a protocol knows none: the response to `get N` is `VALUE BYTES`
//! and so many bytes of content, `MISS`, or `ERROR`. Responses come in the order of the requests.

use std::rc::Rc;
use std::sync::Arc;

use memchr::memmem;
use onrush_tls::Transport;

use super::request::RequestKind;
use super::response::{Met, Outcome, Outcomes, Response, Stage, Step};

const NAMES: [&str; 3] = ["hit", "miss", "error"];

pub(crate) static OUTCOMES: Outcomes = Outcomes {
    count: NAMES.len() as u16,
    classes: ["hits", "misses", "errors", "", ""],
    noun: "",
    name: |number| NAMES[usize::from(number)].to_owned(),
    is_refusal: |number| number == 2,
    refusals: "were errors of the server",
    is_unaccepted: |_| false,
    is_failure: |_| false,
    is_false: |_| false,
};

/// `get`, a number, and the end of the line.
pub(crate) const REQUEST_BYTES_MAX: usize = 32;

/// What a run asks for: as many values as there are requests.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    kind: Arc<RequestKind>,
}

impl Lines {
    pub(crate) fn new() -> Lines {
        Lines {
            kind: Arc::new(RequestKind {
                name: "get N".to_owned(),
                is_repeatable: true,
                lists_outcomes: false,
            }),
        }
    }

    pub(super) fn kind(&self) -> &RequestKind {
        &self.kind
    }
}

/// See [`super::Codec::queue`].
pub(super) fn queue(stream: &Transport, (number, count): (u64, u64)) -> u64 {
    let lines = (number..number + count).map(|number| format!("get {number}\r\n"));
    let text: String = lines.collect();
    stream.queue(Rc::<[u8]>::from(text.as_bytes()));
    text.len() as u64
}

/// The response to one request, as far as it has come.
#[derive(Default)]
pub(crate) enum Incoming {
    #[default]
    ExpectLine,
    /// So many bytes, the end of their line among them.
    ExpectContent(usize),
}

impl Incoming {
    /// See [`super::Incoming::step`].
    pub(super) fn step(&mut self, input: &[u8]) -> (usize, Step) {
        let mut at = 0;
        if let Incoming::ExpectLine = self {
            let Some(length) = memmem::find(input, b"\r\n") else {
                return (0, Step::Partial(Stage::Head));
            };
            at = length + 2;
            match (&input[..length], value_bytes(&input[..length])) {
                (b"MISS", _) => return (at, Step::Done(response(1))),
                (b"ERROR", _) => return (at, Step::Done(response(2))),
                (_, Some(bytes)) => *self = Incoming::ExpectContent(bytes + 2),
                (_, None) => return (at, Step::Refused("an unknown line")),
            }
        }
        let Incoming::ExpectContent(left) = self else {
            return (at, Step::Partial(Stage::Head));
        };
        let here = (input.len() - at).min(*left);
        *left -= here;
        let step = match left {
            0 => Step::Done(response(0)),
            _ => Step::Partial(Stage::Body),
        };
        (at + here, step)
    }
}

/// The length of the content that a line announces.
fn value_bytes(line: &[u8]) -> Option<usize> {
    let digits = line.strip_prefix(b"VALUE ")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn response(number: u16) -> Response {
    Response {
        outcome: Outcome {
            number,
            class: number as u8,
        },
        keep_alive: true,
        met: Met::Yes,
    }
}
