//! State shared by all requests to the interface.

pub(crate) mod journal;
pub(crate) mod operator;
pub(crate) mod readiness;
pub(crate) mod setup;

use std::cell::Cell;

use onrush_engine::{Claim, Core};
use onrush_serve::Inspector;

use crate::authority::CurrentToken;
use crate::context::journal::Journal;
use crate::context::operator::Operator;
use crate::context::readiness::Readiness;
use crate::context::setup::{ProcessInfo, Setup};

/// State from which responses are built.
pub(crate) struct Context {
    pub(crate) core: Core,
    pub(crate) connections_max: usize,
    /// Number of clients that stream. They may use half of the connections, see [`crate::feed::has_room`].
    pub(crate) followers: Cell<usize>,
    /// Held to keep the file of a Unix socket.
    _claim: Claim,
    token: Option<CurrentToken>,
    pub(crate) facts: ProcessInfo,
    pub(crate) readiness: Readiness,
    pub(crate) inspector: Inspector,
    pub(crate) operator: Box<dyn Operator>,
    pub(crate) journal: Journal,
}

impl Context {
    pub(crate) fn new(core: Core, setup: Setup) -> Self {
        let Setup {
            claim,
            connections_max,
            token,
            facts,
            readiness,
            inspector,
            journal,
            operator,
        } = setup;
        Self {
            core,
            connections_max,
            followers: Cell::new(0),
            _claim: claim,
            token,
            facts,
            readiness,
            inspector,
            journal,
            operator,
        }
    }

    pub(crate) fn token(&self) -> Option<&CurrentToken> {
        self.token.as_ref()
    }
}
