//! What received bytes come to, whatever the protocol: a part of a response, a whole one, or something else.

/// What the bytes come to so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// More must be received.
    Partial(Stage),
    /// The response is complete.
    Done(Response),
    /// It is no response to the request, for this reason.
    Refused(&'static str),
}

/// How far a response has come that is not complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// It is not known yet what it says.
    Head,
    /// That is known, and its content is still on its way.
    Body,
}

/// A complete response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Response {
    pub(crate) outcome: Outcome,
    /// Whether the connection can carry another request.
    pub(crate) keep_alive: bool,
    /// Whether it is as expected.
    pub(crate) met: Met,
}

/// Complete responses that say the same, one behind the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Alike {
    pub(crate) response: Response,
    /// At least one.
    pub(crate) count: u64,
    /// Bytes of all of them.
    pub(crate) bytes: usize,
}

/// What a response says, as its protocol numbers it; see [`Outcomes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    /// Its number, less than [`Outcomes::count`].
    pub(crate) number: u16,
    /// The number of its class among [`Outcomes::classes`]; beyond them for one that has no class.
    pub(crate) class: u8,
}

/// Whether a response is as expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Met {
    Yes,
    /// It says something else.
    OtherOutcome,
    /// Its body does not have what it should.
    OtherBody,
}

/// All that responses of a protocol can say.
#[derive(Debug)]
pub(crate) struct Outcomes {
    /// How many they are.
    pub(crate) count: u16,
    /// The names of their classes, which are counted each second.
    pub(crate) classes: [&'static str; 5],
    /// What stands before the name of one in a sentence, with a space behind it.
    pub(crate) noun: &'static str,
    /// The name of one: its key in results.
    pub(crate) name: fn(u16) -> String,
    /// Whether the server did not do what it was asked for.
    pub(crate) is_refusal: fn(u16) -> bool,
    /// What is said of responses with which that is so: "3 of 7 responses ...".
    pub(crate) refusals: &'static str,
    /// Whether the outcome counts against the run if the request lists no expected outcomes.
    pub(crate) is_unaccepted: fn(u16) -> bool,
    /// Whether a server that is well says it to no request of the run: many of them speak against what was measured.
    pub(crate) is_failure: fn(u16) -> bool,
    /// Whether it is known to be another request's, or nobody's: one of them speaks against what was measured.
    pub(crate) is_false: fn(u16) -> bool,
}

impl Outcomes {
    /// An outcome in a sentence.
    pub(crate) fn phrase(&self, outcome: Outcome) -> String {
        format!("{}{}", self.noun, (self.name)(outcome.number))
    }
}
