//! Journeys as they are walked: checked, and with their requests in a mix.

use std::time::Duration;

use super::check::Check;
use super::take::{Take, Value};
use crate::requests::mix::choose;

/// What users do.
#[derive(Clone, Debug)]
pub struct Journeys {
    /// What each user does once, before it begins.
    pub(crate) setup: Box<[Step]>,
    /// What it then does, again and again, or once for each arrival.
    pub(crate) journeys: Box<[Journey]>,
    /// For how long a user keeps its connection.
    pub(crate) lifetime: Lifetime,
    /// The values that steps take.
    pub(crate) values: Box<[Value]>,
    /// The sums of the journeys' weights up to and with each.
    pub(crate) weights: Box<[u64]>,
}

/// One of several journeys.
#[derive(Clone, Debug)]
pub(crate) struct Journey {
    pub(crate) name: String,
    /// At least one.
    pub(crate) steps: Box<[Step]>,
}

/// One request of a journey, and what becomes of its response.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    /// The place of its recipe in the mix.
    pub(crate) recipe: usize,
    /// The pause before it.
    pub(crate) think: Think,
    /// Whether it goes over a connection of its own.
    pub(crate) connection: Connection,
    /// How many redirects are followed.
    pub(crate) redirects: u8,
    pub(crate) takes: Box<[Take]>,
    pub(crate) checks: Box<[Check]>,
}

/// A pause: anywhere from the shortest to the longest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Think {
    pub(crate) shortest: Duration,
    pub(crate) longest: Duration,
}

/// Over which connection a step goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Connection {
    /// The user's, where it is still there.
    #[default]
    Kept,
    /// A new one, which is the user's from then on.
    New,
}

/// For how long a user keeps its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Lifetime {
    /// From one journey to the next.
    #[default]
    Kept,
    /// To the end of the journey.
    PerJourney,
}

impl Journeys {
    /// Which journey is number `number` of the run.
    pub(crate) fn choose(&self, seed: u64, number: u64) -> usize {
        choose(&self.weights, seed, number)
    }

    /// The names of the values that steps take, for [`RequestOptions::taken`](crate::requests::RequestOptions::taken).
    pub fn taken(&self) -> Vec<String> {
        self.values.iter().map(|value| value.name.clone()).collect()
    }

    /// What users do before they begin, where that is something, and the journeys: as a result lists them.
    pub(crate) fn all(&self) -> Vec<(&str, &[Step])> {
        let setup = self.has_setup().then_some(("setup", &self.setup[..]));
        let journeys = self.journeys.iter();
        let journeys = journeys.map(|journey| (journey.name.as_str(), &journey.steps[..]));
        setup.into_iter().chain(journeys).collect()
    }

    /// Whether users do something before they begin.
    pub(crate) fn has_setup(&self) -> bool {
        !self.setup.is_empty()
    }
}
