//! A place to accept connections.

use std::rc::Rc;
use std::sync::Arc;

use onrush_config::plan::{self, Networks};
use onrush_engine::Stream;
use onrush_tls::Acceptor;

/// One place to accept connections.
pub(crate) struct Place {
    pub(crate) acceptor: Option<Arc<Acceptor>>,
    /// Who begins with the PROXY protocol.
    introducers: Option<Networks>,
}

impl Place {
    pub(crate) fn new(plan: &plan::Listen, acceptor: Option<&Arc<Acceptor>>) -> Rc<Self> {
        Rc::new(Self {
            acceptor: acceptor.map(Arc::clone),
            introducers: plan.proxy_protocol.clone(),
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
