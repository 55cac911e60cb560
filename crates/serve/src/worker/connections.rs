//! The connections of clients that a core has open: what is known of each, and how those that somebody asks for are found
//! among many. What the engine and the kernel know of them anyway (peer, bytes, when something last happened) is asked of
//! them when a connection is listed, so that an idle one keeps no more than its number, its age and a note.

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
use crate::observe::live::RequestView;
use crate::worker::Worker;

/// A connection of a client.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    /// The number of its core.
    pub core: usize,
    /// Its number among those that the core has accepted.
    pub number: u32,
    /// Where it has come by.
    pub listener: Option<String>,
    /// What it is busy with.
    pub state: ConnectionState,
    /// What is spoken on it, as far as it is known.
    pub protocol: Option<&'static str>,
    /// The other end of its socket; `None` for Unix sockets.
    pub peer: Option<SocketAddr>,
    /// Whom that speaks for, by the PROXY protocol.
    pub introduced: Option<SocketAddr>,
    /// What its handshake agreed on.
    pub tls: Option<TlsView>,
    /// For how long it had been accepted when somebody asked, to 17 ms.
    pub age: Duration,
    /// How long neither side has sent anything, where the kernel says so: over TCP.
    pub idle: Option<Duration>,
    /// Requests whose head has come.
    pub requests: u32,
    /// Bytes received and sent, as far as the client has acknowledged them, TLS included, where the kernel says so.
    pub bytes: Option<(u64, u64)>,
    /// Its request that is under way, unless that began in this turn.
    pub request: Option<RequestView>,
}

/// What a handshake has agreed on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsView {
    /// The version.
    pub version: &'static str,
    /// The cipher suite, as IANA calls it.
    pub cipher: &'static str,
    /// The name that the client asked for (SNI).
    pub name: Option<String>,
}

/// Those that were asked for.
#[derive(Clone, Debug, Default)]
pub struct ConnectionsView {
    /// How many connections were open.
    pub open: u64,
    /// How many of them were asked for.
    pub matching: u64,
    /// The first of those, in no order; as many as were asked for at most.
    pub listed: Vec<ConnectionView>,
}

/// One that may be listed.
struct Candidate {
    place: u32,
    number: u32,
    state: ConnectionState,
    /// What comes first is less.
    rank: Reverse<u64>,
}

/// One begins to serve requests, which has come by the listener with this number.
pub(crate) fn begin(stream: &Transport, listener: u16, worker: &Worker) {
    stream.change_note(|_| note::begun(listener, ConnectionState::Idle));
    if let Some(info) = stream.info() {
        worker.identities.agree(stream.place(), info);
    }
}

/// Finds the connections of a core that `query` asks for, a portion in each turn. One that comes or goes meanwhile may be
/// among them or not. A core may come to it late, so ages are those at the moment when somebody `asked`.
pub(crate) async fn look(
    worker: Rc<Worker>,
    (query, asked): (ConnectionQuery, Instant),
    promise: Promise<ConnectionsView>,
) {
    let core = &worker.core;
    let (mut candidates, mut found) = (Vec::new(), ConnectionsView::default());
    let mut from = Some(0);
    while let Some(place) = from {
        let now = core.now();
        from = core.look_at_accepted(place, CONNECTIONS_PER_TURN, |accepted| {
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
    promise.keep(found);
}

fn keep_first(candidates: &mut Vec<Candidate>, limit: usize) {
    if candidates.len() > limit {
        candidates.select_nth_unstable_by_key(limit, |candidate| candidate.rank);
        candidates.truncate(limit);
    }
}

fn state(accepted: &Accepted<'_>) -> ConnectionState {
    match note::state(accepted.note()) {
        // Bytes that the client does not take are what it waits for, whatever comes next.
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

/// What comes first has more of it.
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

/// The requests of these connections that are under way, by the numbers of the connections.
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

/// `None` when it has gone meanwhile.
fn view(
    candidate: &Candidate,
    requests: &mut HashMap<u32, RequestView>,
    asked: Instant,
    worker: &Worker,
) -> Option<ConnectionView> {
    let (core, place) = (&worker.core, candidate.place);
    let view = core.look_at_place(place, |accepted| {
        if accepted.number() != candidate.number {
            return None;
        }
        let listener = worker.registry.listener_at(accepted.note().kind);
        let info = accepted.tcp_info();
        let now = core.now_exact();
        // One that came behind the question has no age.
        let age = accepted.age(now).saturating_sub(now.since(asked));
        Some(ConnectionView {
            core: core.id(),
            number: candidate.number,
            listener: listener.map(|listener| listener.name().to_owned()),
            state: candidate.state,
            protocol: note::protocol(accepted.note()),
            peer: accepted.peer(),
            introduced: worker.identities.introduced(place),
            tls: worker.identities.tls(place).as_deref().map(TlsView::of),
            age,
            // The kernel counts from the last packet, which for a new one is that of its handshake; both are rounded.
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
