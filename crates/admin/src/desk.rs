//! What responses are made of.

pub(crate) mod journal;
pub(crate) mod operator;
pub(crate) mod readiness;
pub(crate) mod setup;

use std::cell::Cell;

use onrush_engine::{Claim, Core};
use onrush_serve::Inspector;

use crate::authority::CurrentToken;
use crate::desk::journal::Journal;
use crate::desk::operator::Operator;
use crate::desk::readiness::Readiness;
use crate::desk::setup::{Facts, Setup};

/// What responses need.
pub(crate) struct Desk {
    pub(crate) core: Core,
    pub(crate) connections_max: usize,
    /// Clients that follow something; others keep half of the connections.
    pub(crate) followers: Cell<usize>,
    /// A Unix socket's file is there as long as this is.
    _claim: Claim,
    token: Option<CurrentToken>,
    pub(crate) facts: Facts,
    pub(crate) readiness: Readiness,
    pub(crate) inspector: Inspector,
    pub(crate) operator: Box<dyn Operator>,
    pub(crate) journal: Journal,
}

impl Desk {
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
