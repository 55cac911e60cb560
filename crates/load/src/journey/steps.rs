//! Validated journeys. Their requests are in a mix.

use std::time::Duration;

use super::check::Check;
use super::extract::{Extraction, Value};
use crate::requests::mix::choose;

/// Journeys of the users, and their setup.
#[derive(Clone, Debug)]
pub struct Journeys {
    /// Steps that each user makes once, before its journeys.
    pub(crate) setup: Box<[Step]>,
    /// Journeys that a user then makes: repeatedly in a closed loop, one per arrival in an open loop.
    pub(crate) journeys: Box<[Journey]>,
    /// How long a user keeps its connection.
    pub(crate) lifetime: ConnectionLifetime,
    /// Values that steps extract.
    pub(crate) values: Box<[Value]>,
    /// Cumulative weights of the journeys.
    pub(crate) weights: Box<[u64]>,
}

#[derive(Clone, Debug)]
pub(crate) struct Journey {
    pub(crate) name: String,
    /// Steps; at least one.
    pub(crate) steps: Box<[Step]>,
}

/// One request of a journey, and how its response is processed.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    /// Index of the request in the mix.
    pub(crate) request: usize,
    /// Pause before the request.
    pub(crate) think: PauseRange,
    /// Connection of the request.
    pub(crate) connection: Connection,
    /// Maximum of redirects to follow.
    pub(crate) redirects: u8,
    pub(crate) extractions: Box<[Extraction]>,
    pub(crate) checks: Box<[Check]>,
}

/// Range of a random pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PauseRange {
    pub(crate) shortest: Duration,
    pub(crate) longest: Duration,
}

/// Connection of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Connection {
    /// The user's connection, or a new one if it is closed.
    #[default]
    Kept,
    /// A new connection, which later steps use too.
    New,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ConnectionLifetime {
    /// Across journeys.
    #[default]
    Kept,
    /// Until the journey ends.
    PerJourney,
}

impl Journeys {
    /// Selects the journey with this number in the run; returns its index.
    pub(crate) fn choose(&self, seed: u64, number: u64) -> usize {
        choose(&self.weights, seed, number)
    }

    /// Names of the values that steps extract, for [`RequestOptions::taken`](crate::requests::RequestOptions::taken).
    pub fn value_names(&self) -> Vec<String> {
        self.values.iter().map(|value| value.name.clone()).collect()
    }

    /// Names and steps of the setup, if there is one, and of the journeys, in the order of reports.
    pub(crate) fn all(&self) -> Vec<(&str, &[Step])> {
        let setup = self.has_setup().then_some(("setup", &self.setup[..]));
        let journeys = self.journeys.iter();
        let journeys = journeys.map(|journey| (journey.name.as_str(), &journey.steps[..]));
        setup.into_iter().chain(journeys).collect()
    }

    pub(crate) fn has_setup(&self) -> bool {
        !self.setup.is_empty()
    }
}
