//! Who the client of a connection is: what the connection says, and what proxies that are trusted say of it.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};

use onrush_config::plan;
use onrush_http::Header;
use onrush_http::forwarded::{self, Scheme, ToldBy};
use onrush_tls::Transport;

/// The other end of a client's connection. Small: every idle connection has one.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) scheme: Scheme,
    origin: Cell<Origin>,
    /// Whether what it says of others is believed, once somebody has asked: several look at it for each request.
    is_trusted: Cell<Option<bool>>,
}

/// Where a connection comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// From where its socket says. Nobody has asked it yet: it costs a system call, and most responses do without.
    OfSocket,
    Address(IpAddr, u16),
    /// From this machine, without an address.
    Nowhere,
}

/// Where a request comes from, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientOrigin {
    /// The client's address, if it has one.
    pub(crate) address: Option<IpAddr>,
    pub(crate) scheme: Scheme,
}

impl Client {
    pub(crate) fn new(scheme: Scheme, origin: Origin) -> Self {
        Self {
            scheme,
            origin: Cell::new(origin),
            is_trusted: Cell::new(None),
        }
    }

    /// Whether `trust` includes its address; `stream` is its connection.
    #[inline]
    pub(crate) fn is_trusted(&self, trust: &Trust, stream: &Transport) -> bool {
        self.is_trusted.get().unwrap_or_else(|| {
            let is_trusted = trust.includes(|| self.peer(stream).map(|(address, _)| address));
            self.is_trusted.set(Some(is_trusted));
            is_trusted
        })
    }

    /// The address and port of the client, or of the last proxy before us. `stream` is its connection. `None` for those
    /// that have none: Unix sockets.
    pub(crate) fn peer(&self, stream: &Transport) -> Option<(IpAddr, u16)> {
        self.peer_by(|| stream.peer())
    }

    /// [`Client::peer`] where `peer` asks the socket.
    pub(crate) fn peer_by(
        &self,
        peer: impl FnOnce() -> Option<SocketAddr>,
    ) -> Option<(IpAddr, u16)> {
        if self.origin.get() == Origin::OfSocket {
            self.origin.set(match peer() {
                Some(peer) => Origin::Address(peer.ip().to_canonical(), peer.port()),
                None => Origin::Nowhere,
            });
        }
        match self.origin.get() {
            Origin::Address(address, port) => Some((address, port)),
            Origin::OfSocket | Origin::Nowhere => None,
        }
    }
}

/// Who is believed about clients.
#[derive(Debug)]
pub(crate) struct Trust {
    networks: plan::Networks,
    told_by: ToldBy,
}

impl Trust {
    pub(crate) fn new(plan: &plan::Forwarded) -> Self {
        Self {
            networks: plan.trust.clone(),
            // Fields of the other kind may have passed these proxies unread.
            told_by: match plan.read {
                plan::ForwardingFields::XForwarded => ToldBy::XForwarded,
                plan::ForwardingFields::Forwarded => ToldBy::Forwarded,
            },
        }
    }

    /// Whether what `peer` says of others is believed.
    #[inline]
    pub(crate) fn includes(&self, peer: impl FnOnce() -> Option<IpAddr>) -> bool {
        !self.networks.is_empty() && peer().is_some_and(|peer| self.networks.contain(peer))
    }

    /// The client that `peer` speaks for, itself if it is not believed.
    pub(crate) fn client<'b>(&self, peer: IpAddr, headers: &[Header<'b>]) -> forwarded::Client<'b> {
        let is_trusted = |address| self.networks.contain(address);
        forwarded::client(headers, self.told_by, peer, is_trusted)
    }
}
