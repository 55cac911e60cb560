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
pub(super) enum Offer {
    #[default]
    Http1,
    Http1First,
    Http2First,
    Http2,
}

impl Offer {
    /// Parses a list such as `h2,http/1.1`.
    pub(super) fn of(list: &str) -> Offer {
        let is_http2 = |name: &str| name == "h2";
        let mut names = list.split(',');
        match names.next().is_some_and(is_http2) {
            true if names.all(is_http2) => Offer::Http2,
            true => Offer::Http2First,
            false if names.any(is_http2) => Offer::Http1First,
            false => Offer::Http1,
        }
    }
}

/// Protocol that is used without negotiation: `proto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forced {
    Http1,
    Http2,
    /// FastCGI and others.
    Other,
}

impl Forced {
    pub(super) fn of(name: &str) -> Forced {
        match name {
            "h1" => Forced::Http1,
            "h2" => Forced::Http2,
            _ => Forced::Other,
        }
    }
}

/// Protocol that HAProxy uses towards a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
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

impl Spoken {
    pub(super) fn of(transport: Transport, forced: Option<Forced>, offer: Offer) -> Spoken {
        match (forced, transport, offer) {
            (Some(Forced::Other), _, _) => Spoken::Other,
            (Some(Forced::Http1), _, _) | (None, Transport::Clear, _) => Spoken::Http1,
            (Some(Forced::Http2), Transport::Clear, _) => Spoken::Http2Clear,
            (Some(Forced::Http2), Transport::Tls, Offer::Http1) => Spoken::Http2Unasked,
            (Some(Forced::Http2), Transport::Tls, _) => Spoken::Http2,
            (None, Transport::Tls, Offer::Http1) => Spoken::Http1,
            (None, Transport::Tls, Offer::Http1First) => Spoken::Http1First,
            (None, Transport::Tls, Offer::Http2First) => Spoken::Http2First,
            (None, Transport::Tls, Offer::Http2) => Spoken::Http2,
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
pub(super) enum Fit {
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
    pub(super) fn of_all(servers: &[Spoken]) -> Protocol {
        let is_http1 = |spoken: &Spoken| matches!(spoken, Spoken::Http1 | Spoken::Http1First);
        let is_http2 = |spoken: &Spoken| {
            matches!(
                spoken,
                Spoken::Http2First | Spoken::Http2 | Spoken::Http2Unasked
            )
        };
        let may_all = servers.iter().any(is_http2) && !servers.iter().any(is_http1);
        match may_all || servers.contains(&Spoken::Http2Clear) {
            true => Protocol::Http2,
            false => Protocol::Http1,
        }
    }

    /// Treatment of a server to which HAProxy speaks `spoken`.
    pub(super) fn fit(self, spoken: Spoken) -> Fit {
        const NOT_ALL: &str = "its group uses HTTP/1.1, because not all servers of the group are configured for HTTP/2";
        match (self, spoken) {
            (_, Spoken::Other) => Fit::Out(
                "not in the group: Onrush only supports HTTP/1.1 and HTTP/2 towards servers",
            ),
            (Protocol::Http1, Spoken::Http1) => Fit::Same,
            (Protocol::Http1, Spoken::Http1First) => {
                Fit::Near("it gets HTTP/1.1; HAProxy also offers HTTP/2")
            }
            (Protocol::Http1, Spoken::Http2First) => Fit::Near(NOT_ALL),
            (Protocol::Http1, Spoken::Http2 | Spoken::Http2Unasked | Spoken::Http2Clear) => {
                Fit::Apart(NOT_ALL)
            }
            (Protocol::Http2, Spoken::Http2 | Spoken::Http2Clear) => Fit::Same,
            (Protocol::Http2, Spoken::Http2First) => Fit::Near(
                "it must support HTTP/2: Onrush does not fall back to HTTP/1.1, not even for WebSockets, which get 501 unless the server accepts them over HTTP/2 (RFC 8441)",
            ),
            (Protocol::Http2, Spoken::Http2Unasked) => Fit::Near(
                "it must negotiate HTTP/2 with ALPN, which HAProxy does not require without alpn h2",
            ),
            (Protocol::Http2, Spoken::Http1First) => Fit::Near(
                "its group uses HTTP/2, because another server of the group has proto h2 without ssl",
            ),
            (Protocol::Http2, Spoken::Http1) => Fit::Out(
                "not in the group, which uses HTTP/2 because another server has proto h2 without ssl",
            ),
        }
    }
}
