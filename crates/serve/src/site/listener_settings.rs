//! A listener's settings on one core.

use std::rc::Rc;
use std::sync::Arc;

use onrush_config::plan::{self, HttpVersions, Networks, Protocol};
use onrush_engine::Stream;
use onrush_load_targets::Target;
use onrush_tls::Acceptor;

use crate::site::client_rules::ClientRules;
use crate::worker::Worker;
use crate::worker::admit::connections::ConnectionLimits;

pub(crate) enum ListenerProtocol {
    Http(HttpVersions),
    Target(Target),
}

/// A listener's settings on one core.
pub(crate) struct ListenerSettings {
    pub(crate) acceptor: Option<Arc<Acceptor>>,
    /// Client certificate rules, if they differ by name.
    pub(crate) client_rules: Option<ClientRules>,
    /// The listener's number in the core's registry.
    pub(crate) listener: u16,
    /// Name of the listener in routes.
    pub(crate) name: String,
    /// Peers that must send a PROXY protocol header.
    introducers: Option<Networks>,
    /// Limits of client connections, shared by all listeners.
    pub(crate) bounds: Option<Rc<ConnectionLimits>>,
    pub(crate) spoken: ListenerProtocol,
}

impl ListenerProtocol {
    fn new(protocol: &Protocol, before: Option<&ListenerProtocol>, worker: &Worker) -> Self {
        if let Protocol::Http(versions) = protocol {
            return ListenerProtocol::Http(*versions);
        }
        let before = before.and_then(ListenerProtocol::target);
        let target = Target::new(protocol, before, &worker.core);
        ListenerProtocol::Target(target.expect("every protocol except HTTP has a load target"))
    }

    pub(crate) fn target(&self) -> Option<&Target> {
        match self {
            ListenerProtocol::Http(_) => None,
            ListenerProtocol::Target(target) => Some(target),
        }
    }
}

impl ListenerSettings {
    /// `occurrence` counts earlier places with the same address, which has port 0. A memcached target keeps its stored
    /// items from the place in `before` with the same address, if the size of its store is the same.
    pub(crate) fn new(
        (plan, occurrence): (&plan::Listener, usize),
        acceptor: Option<&Arc<Acceptor>>,
        bounds: Option<Rc<ConnectionLimits>>,
        (worker, before): (&Worker, &[Rc<ListenerSettings>]),
    ) -> Rc<Self> {
        let address = match occurrence {
            0 => plan.address.to_string(),
            before => format!("{} #{before}", plan.address),
        };
        let listener = worker.registry.listener_number(&address, &plan.name);
        let before = before.iter().find(|place| place.listener == listener);
        Rc::new(Self {
            spoken: ListenerProtocol::new(
                &plan.protocol,
                before.map(|place| &place.spoken),
                worker,
            ),
            listener,
            name: plan.name.clone(),
            acceptor: acceptor.map(Arc::clone),
            client_rules: plan.tls.as_ref().and_then(ClientRules::new),
            introducers: plan.proxy_protocol.clone(),
            bounds,
        })
    }

    /// Whether a connection must start with a PROXY protocol header. A client of a Unix socket has no address; it must
    /// if all addresses must.
    pub(crate) fn expects_proxy_header(&self, stream: &Stream) -> bool {
        let Some(introducers) = &self.introducers else {
            return false;
        };
        match stream.peer() {
            Some(peer) => introducers.contain(peer.ip()),
            None => introducers.contain_all(&Networks::all()),
        }
    }
}
