//! Listing of a core's client connections. Peer, bytes and last activity are read from the engine and the kernel when a
//! connection is listed, so that an idle one stores only its number, its age and a note.

mod identities;
pub(crate) mod note;
mod query;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Accepted, Instant, Promise, TcpInfo};
use onrush_tls::{Info, Transport};

pub(crate) use identities::Identities;
pub use note::ConnectionState;
pub use query::{ConnectionOrder, ConnectionQuery};

use crate::limits::CONNECTIONS_PER_TURN;
use crate::observe::in_flight::RequestView;
use crate::worker::Worker;

/// A client connection.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    /// Number of its core.
    pub core: usize,
    /// Number of the connection among those that the core has accepted.
    pub number: u32,
    /// Name of its listener.
    pub listener: Option<String>,
    /// State of the connection.
    pub state: ConnectionState,
    /// Protocol of the connection, as far as known.
    pub protocol: Option<&'static str>,
    /// Peer address of the socket; `None` for Unix sockets.
    pub peer: Option<SocketAddr>,
    /// Client address from the PROXY protocol.
    pub proxy_client: Option<SocketAddr>,
    /// TLS parameters.
    pub tls: Option<TlsView>,
    /// Time since it was accepted, when the query was made, to 17 ms.
    pub age: Duration,
    /// Time without traffic in either direction, as reported by the kernel; TCP only.
    pub idle: Option<Duration>,
    /// Number of requests whose head has arrived.
    pub requests: u32,
    /// Bytes received, and bytes sent and acknowledged, TLS included, as reported by the kernel.
    pub bytes: Option<(u64, u64)>,
    /// The request in flight, unless it started after the last poll of the kernel; on HTTP/2, one of several.
    pub request: Option<RequestView>,
}

/// Negotiated TLS parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsView {
    /// Protocol version.
    pub version: &'static str,
    /// IANA name of the cipher suite.
    pub cipher: &'static str,
    /// Server name requested by the client (SNI).
    pub name: Option<String>,
}

/// Result of a query.
#[derive(Clone, Debug, Default)]
pub struct ConnectionsView {
    /// Number of open connections.
    pub open: u64,
    /// Number of matching connections.
    pub matching: u64,
    /// The first matching connections, unsorted, up to the requested limit.
    pub listed: Vec<ConnectionView>,
}

/// A connection that may be listed.
struct Candidate {
    place: u32,
    number: u32,
    state: ConnectionState,
    /// Smaller values are listed first.
    rank: Reverse<u64>,
}

/// Starts the note of a connection that serves requests.
pub(crate) fn begin(stream: &Transport, listener: u16, worker: &Worker) {
    stream.change_note(|_| note::new_note(listener, ConnectionState::Idle));
    if let Some(info) = stream.info() {
        worker.identities.set_tls(stream.place(), info);
    }
}

/// Finds the connections of a core that match `query`, a portion in each turn. Connections that open or close meanwhile
/// may be missing. Ages are relative to `asked`, because a core may start late.
pub(crate) async fn query_connections(
    worker: Rc<Worker>,
    (query, asked): (ConnectionQuery, Instant),
    promise: Promise<ConnectionsView>,
) {
    let core = &worker.core;
    let (mut candidates, mut found) = (Vec::new(), ConnectionsView::default());
    let mut from = Some(0);
    while let Some(place) = from {
        let now = core.now();
        from = core.visit_accepted(place, CONNECTIONS_PER_TURN, |accepted| {
            found.open += 1;
            let state = state(accepted);
            if !matches((accepted, state), &query, now, &worker) {
                return;
            }
            found.matching += 1;
            candidates.push(Candidate {
                place: accepted.place(),
                number: accepted.number(),
                state,
                rank: Reverse(rank(accepted, query.order, now)),
            });
        });
        if candidates.len() >= 2 * query.limit {
            keep_first(&mut candidates, query.limit);
        }
        core.yield_now().await;
    }
    keep_first(&mut candidates, query.limit);
    let mut requests = requests(&candidates, &worker);
    found.listed = candidates
        .iter()
        .filter_map(|candidate| view(candidate, &mut requests, asked, &worker))
        .collect();
    promise.fulfil(found);
}

fn keep_first(candidates: &mut Vec<Candidate>, limit: usize) {
    if candidates.len() > limit {
        candidates.select_nth_unstable_by_key(limit, |candidate| candidate.rank);
        candidates.truncate(limit);
    }
}

fn state(accepted: &Accepted<'_>) -> ConnectionState {
    match note::state(accepted.note()) {
        // Unsent bytes take precedence over the noted state.
        ConnectionState::Idle | ConnectionState::Head | ConnectionState::Request
            if accepted.is_blocked() =>
        {
            ConnectionState::Sending
        }
        state => state,
    }
}

fn matches(
    (accepted, state): (&Accepted<'_>, ConnectionState),
    query: &ConnectionQuery,
    now: Instant,
    worker: &Worker,
) -> bool {
    if accepted.age(now) < query.older_than {
        return false;
    }
    if query.state.is_some_and(|wanted| state != wanted) {
        return false;
    }
    if let Some(name) = &query.listener {
        let listener = worker.registry.listener_at(accepted.note().kind);
        if listener.is_none_or(|listener| listener.name() != name) {
            return false;
        }
    }
    let Some(network) = query.client else {
        return true;
    };
    let introduced = worker.identities.introduced(accepted.place());
    let mut addresses = [introduced, accepted.peer()].into_iter().flatten();
    addresses.any(|address| network.contains(address.ip()))
}

/// Sort key; larger values are listed first.
fn rank(accepted: &Accepted<'_>, order: ConnectionOrder, now: Instant) -> u64 {
    let info = || accepted.tcp_info();
    let bytes = |info: TcpInfo| info.bytes_received + info.bytes_acknowledged;
    match order {
        ConnectionOrder::Age => accepted.age(now).as_nanos() as u64,
        ConnectionOrder::Idle => info().map_or(0, |info| info.idle.as_millis() as u64),
        ConnectionOrder::Bytes => info().map_or(0, bytes),
        ConnectionOrder::Requests => accepted.note().count.into(),
    }
}

/// The requests in flight on these connections, by connection number.
fn requests(candidates: &[Candidate], worker: &Worker) -> HashMap<u32, RequestView> {
    let wanted: HashMap<u32, ()> = candidates.iter().map(|one| (one.number, ())).collect();
    let core = &worker.core;
    let is_wanted = |number| wanted.contains_key(&number);
    let views = worker.live.views_of(core.id(), core.now_exact(), is_wanted);
    views
        .into_iter()
        .map(|view| (view.connection, view))
        .collect()
}

/// `None` if the connection has closed meanwhile.
fn view(
    candidate: &Candidate,
    requests: &mut HashMap<u32, RequestView>,
    asked: Instant,
    worker: &Worker,
) -> Option<ConnectionView> {
    let (core, place) = (&worker.core, candidate.place);
    let view = core.with_accepted(place, |accepted| {
        if accepted.number() != candidate.number {
            return None;
        }
        let listener = worker.registry.listener_at(accepted.note().kind);
        let info = accepted.tcp_info();
        let now = core.now_exact();
        // A connection accepted after the query has age 0.
        let age = accepted.age(now).saturating_sub(now.since(asked));
        Some(ConnectionView {
            core: core.id(),
            number: candidate.number,
            listener: listener.map(|listener| listener.name().to_owned()),
            state: candidate.state,
            protocol: note::protocol(accepted.note()),
            peer: accepted.peer(),
            proxy_client: worker.identities.introduced(place),
            tls: worker.identities.tls(place).as_deref().map(TlsView::of),
            age,
            // The kernel counts from the last packet, which for a new connection is part of its handshake; both values
            // are rounded.
            idle: info.map(|info| info.idle.min(age)),
            requests: accepted.note().count,
            bytes: info.map(|info| (info.bytes_received, info.bytes_acknowledged)),
            request: requests.remove(&candidate.number),
        })
    });
    view.flatten()
}

impl TlsView {
    fn of(info: &Info) -> TlsView {
        TlsView {
            version: info.version.name(),
            cipher: info.cipher,
            name: info.name.as_deref().map(str::to_owned),
        }
    }
}
