//! Which version of HTTP is spoken with servers: HAProxy is told so for each of them, Onrush for a group.

/// What a connection begins with: whether `ssl` is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Transport {
    #[default]
    Clear,
    Tls,
}

/// What is offered to a server that speaks TLS: `alpn`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Offer {
    #[default]
    Http1,
    Http1First,
    Http2First,
    Http2,
}

impl Offer {
    /// Of a list such as `h2,http/1.1`.
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

/// What is spoken whatever the server agrees on: `proto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forced {
    Http1,
    Http2,
    /// FastCGI and such.
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

/// What HAProxy speaks with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    Http1,
    /// Either, as the server chooses.
    Http1First,
    /// The same.
    Http2First,
    Http2,
    /// By TLS, without asking the server whether it does.
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

/// What a group speaks with all of its servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// What becomes of a server in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// The same is spoken with it.
    Same,
    /// Something is different: what.
    Near(&'static str),
    /// It is spoken to in another way, which it need not understand.
    Apart(&'static str),
    /// It would not understand, so it is not in the group.
    Out(&'static str),
}

impl Protocol {
    /// Of a group with these servers: HTTP/2 where all may speak it, or one has nothing else. A server that speaks TLS is
    /// taken to understand HTTP/1.1 as well, since those that do not are few; without TLS HTTP/2 is the only word that is
    /// said of it.
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

    /// What becomes of a server with which that is spoken by HAProxy.
    pub(super) fn fit(self, spoken: Spoken) -> Fit {
        const NOT_ALL: &str =
            "its group speaks HTTP/1.1, since not all servers of it are said to speak HTTP/2";
        match (self, spoken) {
            (_, Spoken::Other) => Fit::Out(
                "Onrush speaks HTTP/1.1 and HTTP/2 with servers and nothing else: it is not in the group",
            ),
            (Protocol::Http1, Spoken::Http1) => Fit::Same,
            (Protocol::Http1, Spoken::Http1First) => {
                Fit::Near("it is asked by HTTP/1.1; HAProxy offers HTTP/2 as well")
            }
            (Protocol::Http1, Spoken::Http2First) => Fit::Near(NOT_ALL),
            (Protocol::Http1, Spoken::Http2 | Spoken::Http2Unasked | Spoken::Http2Clear) => {
                Fit::Apart(NOT_ALL)
            }
            (Protocol::Http2, Spoken::Http2 | Spoken::Http2Clear) => Fit::Same,
            (Protocol::Http2, Spoken::Http2First) => Fit::Near(
                "it has to speak HTTP/2: Onrush does not fall back to HTTP/1.1, also not for WebSockets, which get 501 unless it takes them over HTTP/2 (RFC 8441)",
            ),
            (Protocol::Http2, Spoken::Http2Unasked) => Fit::Near(
                "it has to agree on HTTP/2 by ALPN, which HAProxy does not ask for without alpn h2",
            ),
            (Protocol::Http2, Spoken::Http1First) => Fit::Near(
                "its group speaks HTTP/2, since another server of it says proto h2 without ssl",
            ),
            (Protocol::Http2, Spoken::Http1) => Fit::Out(
                "its group speaks HTTP/2, since another server of it says proto h2 without ssl: it is not in the group",
            ),
        }
    }
}
