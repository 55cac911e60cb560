//! A place to accept connections.

use std::rc::Rc;
use std::sync::Arc;

use onrush_config::plan::{self, Networks};
use onrush_engine::Stream;
use onrush_tls::Acceptor;

use crate::admit::connections::Bounds;
use crate::observe::registry::Registry;

/// One place to accept connections.
pub(crate) struct Place {
    pub(crate) acceptor: Option<Arc<Acceptor>>,
    /// Its number in the core's registry.
    pub(crate) listener: u16,
    /// What routes call it.
    pub(crate) name: String,
    /// Who begins with the PROXY protocol.
    introducers: Option<Networks>,
    /// How many connections clients may have, here and elsewhere.
    pub(crate) bounds: Option<Rc<Bounds>>,
}

impl Place {
    /// `occurrence` places before it have the same address, with port 0.
    pub(crate) fn new(
        (plan, occurrence): (&plan::Listen, usize),
        acceptor: Option<&Arc<Acceptor>>,
        bounds: Option<Rc<Bounds>>,
        registry: &Registry,
    ) -> Rc<Self> {
        let address = match occurrence {
            0 => plan.address.to_string(),
            before => format!("{} #{before}", plan.address),
        };
        Rc::new(Self {
            listener: registry.place(&address, &plan.name),
            name: plan.name.clone(),
            acceptor: acceptor.map(Arc::clone),
            introducers: plan.proxy_protocol.clone(),
            bounds,
        })
    }

    /// Whether a connection must begin with the PROXY protocol. Whoever comes by a Unix socket has no address, and is
    /// among everybody.
    pub(crate) fn expects_introduction(&self, stream: &Stream) -> bool {
        let Some(introducers) = &self.introducers else {
            return false;
        };
        match stream.peer() {
            Some(peer) => introducers.contain(peer.ip()),
            None => introducers.cover(&Networks::everybody()),
        }
    }
}
