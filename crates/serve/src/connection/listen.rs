//! A connection before its first request: the PROXY protocol header, if configured, and the TLS handshake.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use onrush_engine::{Core, Error, Input, Stream};
use onrush_http::Parsed;
use onrush_http::forwarded::Scheme;
use onrush_http::proxy_protocol::{self, ProxyHeader};
use onrush_tls::{Acceptor, HandshakeError, Transport};

use crate::connection;
use crate::connection::target_client::TargetClient;
use crate::observe::work::{CLIENT, HANDSHAKE, PROXY_HEADER};
use crate::routing::client::{Client, PeerAddress};
use crate::site::listener_settings::{ListenerProtocol, ListenerSettings};
use crate::site::service::Service;
use crate::worker::Worker;
use crate::worker::admit::connections::Counted;
use crate::worker::connections::{ConnectionState, note};

/// Starts a task for an accepted connection, unless a connection limit is reached.
pub(crate) fn start_connection(
    stream: Stream,
    place: &Rc<ListenerSettings>,
    service: &Rc<Service>,
) {
    let worker = &service.worker;
    let note = |state| stream.change_note(|_| note::new_note(place.listener, state));
    if place.expects_proxy_header(&stream) {
        note(ConnectionState::Introduction);
        let greeting = start_with_proxy_header(stream, Rc::clone(place), Rc::clone(service));
        worker.core.spawn_as(PROXY_HEADER, greeting);
        return;
    }
    let counted = match &place.bounds {
        None => None,
        Some(bounds) => match bounds.enter(&stream, worker) {
            None => return,
            counted => counted,
        },
    };
    let service = Rc::clone(service);
    match &place.acceptor {
        None => {
            let client = Client::new(Scheme::Http, PeerAddress::OfSocket);
            let stream = Transport::plain(stream);
            spawn_connection(stream, Input::default(), client, (place, service), counted);
        }
        Some(acceptor) => {
            note(ConnectionState::Handshake);
            let client = Client::new(Scheme::Https, PeerAddress::OfSocket);
            let acceptor = Arc::clone(acceptor);
            let core = service.worker.core.clone();
            let connection = (stream, Input::default(), counted);
            let way = (Rc::clone(place), service);
            core.spawn_as(HANDSHAKE, accept_tls(connection, acceptor, client, way));
        }
    }
}

/// Makes the TLS handshake with a client and serves it; `received` has already been received.
async fn accept_tls(
    (stream, mut received, counted): (Stream, Input, Option<Counted>),
    acceptor: Arc<Acceptor>,
    client: Client,
    (place, service): (Rc<ListenerSettings>, Rc<Service>),
) {
    let worker = &service.worker;
    let patience = service.site().settings.timeouts.tls_handshake;
    let deadline = worker.core.now() + patience;
    if received.is_empty()
        && let Ok(0) = worker.first_bytes(&stream, &mut received, patience).await
        && worker.is_ending()
    {
        // The handshake has not started, and will not.
        worker.identities.forget(stream.slot_index());
        return;
    }
    let slot = stream.slot_index();
    // Read now: after a failed handshake the address is not available any more.
    let peer = client.peer_by(|| stream.peer());
    let accepted = Transport::accept(stream, received, &acceptor, deadline).await;
    drop(acceptor);
    match accepted {
        Ok(transport) => {
            transport.with_info(|info| worker.registry.handshakes.complete(info));
            let way = (&place, service);
            spawn_connection(transport, Input::default(), client, way, counted);
        }
        Err(error) => {
            worker.meter.handshake_failed();
            worker.registry.handshakes.failed(&error);
            worker.identities.forget(slot);
            // Disconnects and timeouts are not logged: port scanners cause many of them.
            if !matches!(error, HandshakeError::Connection(_) | HandshakeError::Ended) {
                let from = shown_peer(peer.map(|(address, _)| address));
                let listener = &place.name;
                worker.log.failure(
                    &worker.core,
                    format_args!(
                        "the client {from} of listener {listener} was not served: {error}"
                    ),
                );
            }
        }
    }
}

/// Starts a connection with a PROXY protocol header.
async fn start_with_proxy_header(
    stream: Stream,
    place: Rc<ListenerSettings>,
    service: Rc<Service>,
) {
    let mut counted = match &place.bounds {
        None => None,
        Some(bounds) => match bounds.enter_all(&stream, &service.worker) {
            None => return,
            counted => counted,
        },
    };
    let introduction = match read_proxy_header(&stream, &service).await {
        Ok(introduction) => introduction,
        Err(why) => return why.account(&stream, &service.worker),
    };
    let ParsedProxyHeader {
        origin,
        spoke_tls,
        rest,
    } = introduction;
    let scheme = if spoke_tls || place.acceptor.is_some() {
        Scheme::Https
    } else {
        Scheme::Http
    };
    if let (Some(bounds), Some(counted)) = (&place.bounds, &mut counted) {
        let address = match origin {
            PeerAddress::Address(address, _) => Some(address),
            PeerAddress::OfSocket => stream.peer().map(|peer| peer.ip()),
            PeerAddress::Nowhere => None,
        };
        if bounds
            .enter_from(address, counted, &service.worker)
            .is_none()
        {
            return;
        }
    }
    if let PeerAddress::Address(address, port) = origin {
        let client = (address, port).into();
        service
            .worker
            .identities
            .set_proxy_client(stream.slot_index(), client);
    }
    let client = Client::new(scheme, origin);
    let Some(acceptor) = place.acceptor.clone() else {
        let transport = Transport::plain(stream);
        return spawn_connection(transport, rest, client, (&place, service), counted);
    };
    stream.core().set_work(HANDSHAKE);
    stream.change_note(|note| note::with_state(note, ConnectionState::Handshake));
    let connection = (stream, rest, counted);
    accept_tls(connection, acceptor, client, (place, service)).await;
}

/// Serves a connection in a new task, which frees the memory of the handshake.
fn spawn_connection(
    transport: Transport,
    received: Input,
    client: Client,
    (place, service): (&Rc<ListenerSettings>, Rc<Service>),
    counted: Option<Counted>,
) {
    let core = transport.core().clone();
    let way = (place.listener, service);
    match &place.spoken {
        ListenerProtocol::Http(versions) => {
            let connection = (transport, *versions);
            match counted {
                None => {
                    let served = connection::serve(connection, received, client, way, ());
                    core.spawn_as(CLIENT, served);
                }
                Some(counted) => {
                    let served = connection::serve(connection, received, client, way, counted);
                    core.spawn_as(CLIENT, served);
                }
            }
        }
        ListenerProtocol::Target(target) => {
            let client = TargetClient::begin(transport, received, way);
            spawn_counted(&core, target.clone().serve(client), counted);
        }
    }
}

fn spawn_counted(
    core: &Core,
    served: impl Future<Output = ()> + 'static,
    counted: Option<Counted>,
) {
    match counted {
        None => core.spawn_as(CLIENT, served),
        // In a surrounding task, so that connections without limits need no space for the counter.
        Some(counted) => core.spawn_as(CLIENT, async move {
            served.await;
            drop(counted);
        }),
    }
}

/// Contents of a PROXY protocol header.
struct ParsedProxyHeader {
    origin: PeerAddress,
    /// Whether the client used TLS to the load balancer.
    spoke_tls: bool,
    /// Bytes received after the header.
    rest: Input,
}

/// Why a connection has no header.
enum ProxyHeaderError {
    /// The connection ended before sending anything, as those of health checks do, or this server stops.
    Silent,
    Connection(Error),
    Refused(&'static str),
}

/// Reads the header, with the timeout of a TLS handshake.
async fn read_proxy_header(
    stream: &Stream,
    service: &Service,
) -> Result<ParsedProxyHeader, ProxyHeaderError> {
    let worker = &service.worker;
    let patience = service.site().settings.timeouts.tls_handshake;
    let deadline = worker.core.now() + patience;
    let mut input = Input::default();
    loop {
        match proxy_protocol::parse(input.bytes()) {
            Parsed::Complete(header) => {
                let (origin, spoke_tls, bytes) =
                    (origin(&header), spoke_tls(&header), header.bytes);
                input.consume(bytes);
                stream.set_deadline(None);
                return Ok(ParsedProxyHeader {
                    origin,
                    spoke_tls,
                    rest: input,
                });
            }
            Parsed::Partial => {}
            Parsed::Refused(refusal) => return Err(ProxyHeaderError::Refused(refusal.reason)),
        }
        let is_silent = input.is_empty();
        let received = if is_silent {
            worker.first_bytes(stream, &mut input, patience).await
        } else {
            stream.set_deadline(Some(deadline));
            stream.recv(&mut input).await
        };
        match received {
            Ok(0) if is_silent => return Err(ProxyHeaderError::Silent),
            Ok(0) => {
                return Err(ProxyHeaderError::Refused("it ended within its header"));
            }
            Ok(_) => {}
            Err(error) => return Err(ProxyHeaderError::Connection(error)),
        }
    }
}

fn shown_peer(address: Option<IpAddr>) -> String {
    address.map_or("a Unix socket".to_owned(), |address| address.to_string())
}

fn origin(header: &ProxyHeader<'_>) -> PeerAddress {
    match header.origin {
        proxy_protocol::Origin::Local | proxy_protocol::Origin::Unknown => PeerAddress::OfSocket,
        proxy_protocol::Origin::Ip { source, .. } => {
            PeerAddress::Address(source.ip().to_canonical(), source.port())
        }
        proxy_protocol::Origin::Unix { .. } => PeerAddress::Nowhere,
    }
}

fn spoke_tls(header: &ProxyHeader<'_>) -> bool {
    header.origin != proxy_protocol::Origin::Local && header.tls.is_some_and(|tls| tls.over_tls)
}

impl ProxyHeaderError {
    /// Updates the metrics and the log. No response is sent, because the peer is a proxy.
    fn account(self, stream: &Stream, worker: &Worker) {
        worker.meter.connection();
        let why = match &self {
            ProxyHeaderError::Silent => return,
            ProxyHeaderError::Connection(error) => error.to_string(),
            ProxyHeaderError::Refused(why) => (*why).to_owned(),
        };
        worker.meter.invalid_input();
        let peer = stream.peer().map(|peer| peer.ip().to_canonical());
        let peer = shown_peer(peer);
        worker.log.failure(
            &worker.core,
            format_args!("a connection from {peer} did not begin with the PROXY protocol: {why}"),
        );
    }
}
