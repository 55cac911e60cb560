//! Results of parsing received bytes, independent of the protocol.

/// Result of a parser.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Partial(Stage),
    Done(Response),
    /// Not a valid response, for this reason.
    Refused(&'static str),
}

/// Progress of an incomplete response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Its outcome is unknown.
    Head,
    /// Its outcome is known; content is missing.
    Body,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Response {
    pub(crate) outcome: Outcome,
    /// Whether the connection can be reused.
    pub(crate) keep_alive: bool,
    pub(crate) expectation: ExpectationResult,
}

/// Consecutive complete responses with the same outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IdenticalResponses {
    pub(crate) response: Response,
    /// At least one.
    pub(crate) count: u64,
    pub(crate) bytes: usize,
}

/// Outcome of a response, numbered by its protocol; see [`Outcomes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    /// Less than [`Outcomes::count`].
    pub(crate) number: u16,
    /// Index in [`Outcomes::classes`]; out of range for an outcome without a class.
    pub(crate) class: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExpectationResult {
    Yes,
    /// The outcome differs.
    OtherOutcome,
    /// The body lacks the expected bytes.
    OtherBody,
}

/// Possible outcomes of a protocol.
#[derive(Debug)]
pub(crate) struct Outcomes {
    pub(crate) count: u16,
    /// Names of the classes, which are counted each second.
    pub(crate) classes: [&'static str; 5],
    /// Noun before an outcome's name in a sentence, with a space after it.
    pub(crate) noun: &'static str,
    /// Name of an outcome, which is its key in results.
    pub(crate) name: fn(u16) -> String,
    /// Whether the server refused the request or failed.
    pub(crate) is_refusal: fn(u16) -> bool,
    /// End of a sentence about such responses: "3 of 7 responses ...".
    pub(crate) refusal_phrase: &'static str,
    /// Whether the outcome counts against the run if the request lists no expected outcomes.
    pub(crate) is_unexpected: fn(u16) -> bool,
    /// Whether a healthy server never sends it: a large share makes the run invalid.
    pub(crate) is_failure: fn(u16) -> bool,
    /// Whether it belongs to another request, or to none: a single one makes the run invalid.
    pub(crate) is_mismatched: fn(u16) -> bool,
}

impl Outcomes {
    /// Returns an outcome for a sentence.
    pub(crate) fn phrase(&self, outcome: Outcome) -> String {
        format!("{}{}", self.noun, (self.name)(outcome.number))
    }
}
