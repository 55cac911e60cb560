//! The load target of a listener.

use std::rc::Rc;

use onrush_config::plan::{self, Protocol};
use onrush_engine::Core;

use crate::client::Client;
use crate::memcached::{self, server::Server};
use crate::{echo, responder, sink};

/// A load target of one listener, on one core.
#[derive(Clone)]
pub enum Target {
    /// memcached's text protocol.
    Memcached(Rc<Server>),
    /// RFC 862.
    Echo,
    /// RFC 863.
    Sink,
    /// Requests and responses of fixed sizes.
    Responder(plan::Responder),
}

impl Target {
    /// Returns the target for a listener's protocol, or `None` for HTTP. Items stored in `before`, the target of the
    /// same listener in the former configuration, are kept if the limits are the same.
    pub fn new(protocol: &Protocol, before: Option<&Target>, core: &Core) -> Option<Target> {
        Some(match (protocol, before) {
            (Protocol::Http(_), _) => return None,
            (Protocol::Memcached(plan, _), Some(Target::Memcached(server)))
                if server.plan() == *plan =>
            {
                Target::Memcached(Rc::clone(server))
            }
            (Protocol::Memcached(plan, _), _) => {
                Target::Memcached(Rc::new(Server::new(*plan, memcached::server::now(core))))
            }
            (Protocol::Echo(_), _) => Target::Echo,
            (Protocol::Sink(_), _) => Target::Sink,
            (Protocol::Responder(sizes), _) => Target::Responder(*sizes),
        })
    }

    /// Serves a client until either side closes. Errors are dropped: a client whose connection failed cannot receive them.
    pub async fn serve(self, client: impl Client) {
        let _ = match self {
            Target::Memcached(server) => memcached::connection::serve(client, &server).await,
            Target::Echo => echo::serve(client).await,
            Target::Sink => sink::serve(client).await,
            Target::Responder(sizes) => responder::serve(client, sizes).await,
        };
    }
}
