//! HTTP version towards servers. HAProxy has one setting per server, Onrush one per group.

/// Transport towards a server: `ssl` or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Transport {
    #[default]
    Clear,
    Tls,
}

/// Protocols offered to a TLS server: `alpn`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AlpnOffer {
    #[default]
    Http1,
    Http1First,
    Http2First,
    Http2,
}

impl AlpnOffer {
    /// Parses a list such as `h2,http/1.1`.
    pub(super) fn of(list: &str) -> AlpnOffer {
        let is_http2 = |name: &str| name == "h2";
        let mut names = list.split(',');
        match names.next().is_some_and(is_http2) {
            true if names.all(is_http2) => AlpnOffer::Http2,
            true => AlpnOffer::Http2First,
            false if names.any(is_http2) => AlpnOffer::Http1First,
            false => AlpnOffer::Http1,
        }
    }
}

/// Protocol that is used without negotiation: `proto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForcedProtocol {
    Http1,
    Http2,
    /// FastCGI and others.
    Other,
}

impl ForcedProtocol {
    pub(super) fn of(name: &str) -> ForcedProtocol {
        match name {
            "h1" => ForcedProtocol::Http1,
            "h2" => ForcedProtocol::Http2,
            _ => ForcedProtocol::Other,
        }
    }
}

/// Protocol that HAProxy uses towards a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerProtocol {
    Http1,
    /// The server chooses; HTTP/1.1 is offered first.
    Http1First,
    /// The server chooses; HTTP/2 is offered first.
    Http2First,
    Http2,
    /// Over TLS, without ALPN.
    Http2Unasked,
    Http2Clear,
    Other,
}

impl ServerProtocol {
    pub(super) fn of(
        transport: Transport,
        forced: Option<ForcedProtocol>,
        offer: AlpnOffer,
    ) -> ServerProtocol {
        match (forced, transport, offer) {
            (Some(ForcedProtocol::Other), _, _) => ServerProtocol::Other,
            (Some(ForcedProtocol::Http1), _, _) | (None, Transport::Clear, _) => {
                ServerProtocol::Http1
            }
            (Some(ForcedProtocol::Http2), Transport::Clear, _) => ServerProtocol::Http2Clear,
            (Some(ForcedProtocol::Http2), Transport::Tls, AlpnOffer::Http1) => {
                ServerProtocol::Http2Unasked
            }
            (Some(ForcedProtocol::Http2), Transport::Tls, _) => ServerProtocol::Http2,
            (None, Transport::Tls, AlpnOffer::Http1) => ServerProtocol::Http1,
            (None, Transport::Tls, AlpnOffer::Http1First) => ServerProtocol::Http1First,
            (None, Transport::Tls, AlpnOffer::Http2First) => ServerProtocol::Http2First,
            (None, Transport::Tls, AlpnOffer::Http2) => ServerProtocol::Http2,
        }
    }
}

/// Protocol of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// Treatment of a server in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerFit {
    /// It gets the same protocol as from HAProxy.
    Same,
    /// The protocol or its negotiation differs, with the difference.
    Near(&'static str),
    /// It gets another protocol, which it may not support, with the reason.
    Apart(&'static str),
    /// It cannot support the protocol of the group, so it is left out, with the reason.
    Out(&'static str),
}

impl Protocol {
    /// The protocol for a group of these servers: HTTP/2 if all may speak it, or if one is configured for cleartext
    /// HTTP/2, which cannot be assumed to speak HTTP/1.1. TLS servers are assumed to support HTTP/1.1 as well.
    pub(super) fn of_all(servers: &[ServerProtocol]) -> Protocol {
        let is_http1 = |spoken: &ServerProtocol| {
            matches!(spoken, ServerProtocol::Http1 | ServerProtocol::Http1First)
        };
        let is_http2 = |spoken: &ServerProtocol| {
            matches!(
                spoken,
                ServerProtocol::Http2First | ServerProtocol::Http2 | ServerProtocol::Http2Unasked
            )
        };
        let may_all = servers.iter().any(is_http2) && !servers.iter().any(is_http1);
        match may_all || servers.contains(&ServerProtocol::Http2Clear) {
            true => Protocol::Http2,
            false => Protocol::Http1,
        }
    }

    /// Treatment of a server to which HAProxy speaks `spoken`.
    pub(super) fn fit(self, spoken: ServerProtocol) -> ServerFit {
        const NOT_ALL: &str = "its group uses HTTP/1.1, because not all servers of the group are configured for HTTP/2";
        match (self, spoken) {
            (_, ServerProtocol::Other) => ServerFit::Out(
                "not in the group: Onrush only supports HTTP/1.1 and HTTP/2 towards servers",
            ),
            (Protocol::Http1, ServerProtocol::Http1) => ServerFit::Same,
            (Protocol::Http1, ServerProtocol::Http1First) => {
                ServerFit::Near("it gets HTTP/1.1; HAProxy also offers HTTP/2")
            }
            (Protocol::Http1, ServerProtocol::Http2First) => ServerFit::Near(NOT_ALL),
            (
                Protocol::Http1,
                ServerProtocol::Http2 | ServerProtocol::Http2Unasked | ServerProtocol::Http2Clear,
            ) => ServerFit::Apart(NOT_ALL),
            (Protocol::Http2, ServerProtocol::Http2 | ServerProtocol::Http2Clear) => {
                ServerFit::Same
            }
            (Protocol::Http2, ServerProtocol::Http2First) => ServerFit::Near(
                "it must support HTTP/2: Onrush does not fall back to HTTP/1.1, not even for WebSockets, which get 501 unless the server accepts them over HTTP/2 (RFC 8441)",
            ),
            (Protocol::Http2, ServerProtocol::Http2Unasked) => ServerFit::Near(
                "it must negotiate HTTP/2 with ALPN, which HAProxy does not require without alpn h2",
            ),
            (Protocol::Http2, ServerProtocol::Http1First) => ServerFit::Near(
                "its group uses HTTP/2, because another server of the group has proto h2 without ssl",
            ),
            (Protocol::Http2, ServerProtocol::Http1) => ServerFit::Out(
                "not in the group, which uses HTTP/2 because another server has proto h2 without ssl",
            ),
        }
    }
}
