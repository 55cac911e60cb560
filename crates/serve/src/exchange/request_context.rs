//! The client and route of a request, including what trusted proxies report about the client.

use std::cell::OnceCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use onrush_http::Header;
use onrush_http::forwarded::Scheme;
use onrush_http::proxy_protocol::Origin;
use onrush_tls::{Info, Transport};

use crate::exchange::Exchange;
use crate::exchange::settings::{RouteOptions, Settings};
use crate::routing::client::{Client, ClientOrigin};
use crate::routing::variables::RequestFacts;
use crate::worker::Worker;

/// The client of a request, before the exchange is known.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) client: &'a Client,
    /// The client's connection.
    pub(crate) stream: &'a Transport,
    /// Cache of [`RequestContext::origin`].
    pub(crate) origin: &'a OnceCell<ClientOrigin>,
}

#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) client: &'a Client,
    pub(crate) stream: &'a Transport,
    pub(crate) exchange: &'a Exchange,
    origin: &'a OnceCell<ClientOrigin>,
}

impl<'a> Source<'a> {
    #[inline]
    pub(crate) fn of(self, exchange: &'a Exchange) -> RequestContext<'a> {
        RequestContext {
            worker: self.worker,
            client: self.client,
            stream: self.stream,
            exchange,
            origin: self.origin,
        }
    }
}

impl<'a> RequestContext<'a> {
    pub(crate) fn settings(&self) -> &'a Settings {
        self.exchange.settings()
    }

    /// Address of the connection's peer.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        self.client.peer(self.stream).map(|(address, _)| address)
    }

    /// Whether the peer is a trusted proxy.
    #[inline]
    pub(crate) fn is_trusted(&self) -> bool {
        self.client.is_trusted(&self.settings().trust, self.stream)
    }

    /// Address and scheme of the client: from trusted proxies, or else from the connection. Computed once per request.
    pub(crate) fn origin(&self, headers: &[Header<'_>]) -> ClientOrigin {
        *self
            .origin
            .get_or_init(|| match self.reported_client(headers) {
                Some(told) => ClientOrigin {
                    address: Some(told.address),
                    scheme: told.scheme.unwrap_or(self.client.scheme),
                },
                None => ClientOrigin {
                    address: self.peer(),
                    scheme: self.client.scheme,
                },
            })
    }

    /// The client's address: reported by trusted proxies, or else the peer's.
    pub(crate) fn address(&self, headers: &[Header<'_>]) -> Option<IpAddr> {
        self.origin(headers).address
    }

    /// The client's port; `None` if a proxy reported the address.
    pub(crate) fn port(&self, headers: &[Header<'_>]) -> Option<u16> {
        let (peer, port) = self.client.peer(self.stream)?;
        (self.address(headers) == Some(peer)).then_some(port)
    }

    /// Addresses for a PROXY protocol header to the server.
    pub(crate) fn proxy_header_origin(&self, headers: &[Header<'_>]) -> Origin<'static> {
        let Some(address) = self.address(headers) else {
            return Origin::Unix {
                source: b"",
                destination: b"",
            };
        };
        let nowhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        Origin::Ip {
            source: SocketAddr::new(address, self.port(headers).unwrap_or(0)),
            destination: self.stream.local().unwrap_or(nowhere),
        }
    }

    /// The client's scheme.
    pub(crate) fn scheme(&self, headers: &[Header<'_>]) -> Scheme {
        self.origin(headers).scheme
    }

    /// The client that a trusted proxy reports.
    pub(crate) fn reported_client<'b>(
        &self,
        headers: &[Header<'b>],
    ) -> Option<onrush_http::forwarded::Client<'b>> {
        if !self.is_trusted() {
            return None;
        }
        Some(self.settings().trust.client(self.peer()?, headers))
    }

    /// Options of the request's route.
    pub(crate) fn matched_route_options(&self) -> Option<&'a RouteOptions> {
        self.exchange.route_options()
    }
}

impl RequestFacts for RequestContext<'_> {
    fn address(&self, headers: &[Header<'_>]) -> Option<IpAddr> {
        RequestContext::address(self, headers)
    }

    fn port(&self, headers: &[Header<'_>]) -> Option<u16> {
        RequestContext::port(self, headers)
    }

    fn scheme(&self, headers: &[Header<'_>]) -> Scheme {
        RequestContext::scheme(self, headers)
    }

    fn prefix(&self) -> &str {
        self.matched_route_options()
            .map_or("", |treatment| &treatment.prefix)
    }

    fn group_name(&self) -> &str {
        self.exchange.group_name()
    }

    fn request_id(&self) -> &[u8] {
        self.exchange.request_id()
    }

    fn with_tls(&self, take: &mut dyn FnMut(&Info)) {
        self.stream.with_info(take);
    }
}
