//! A group of servers, seen from one core: who may get requests, who gets the next, and a pool of connections for each.

mod choice;
mod evidence;
mod server;
mod takeover;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use onrush_config::plan::{Balance, HashKey, ProxyVersion, Timeouts, Upstream};
use onrush_engine::random::Random;
use onrush_engine::{Address, Core, Errno, Error, Instant, Kind, Op, Stream};
use onrush_http::forwarded::Scheme;
use onrush_http::proxy_protocol::{self, Origin};
use onrush_http::request::RequestHead;
use onrush_http::{cookie, header_is};
use onrush_tls::{Connector, Transport};

use super::balance::{Balancer, Member, Policy, hash};
use super::budget::Budget;
use super::ewma::Decay;
use super::kept::Kept;
use super::queue::Queue;
use super::retirement::Retirement;
use super::roster::{At, Presence, Roster, Seat, Standing};
use super::slow_start::SlowStart;
use super::suspects::Suspects;
use crate::asker::Asker;
use crate::limits::{LATENCY_MEMORY, POOL_SWEEP};
use crate::tls;
use crate::worker::Worker;

pub(crate) use choice::{Errand, Place, Reach};
pub(crate) use server::Server;

use evidence::Ejection;
use server::identity;
use takeover::Unchanged;

#[derive(Debug)]
pub(crate) struct Group {
    myself: Weak<Group>,
    /// As it was configured.
    pub(crate) plan: Upstream,
    pub(crate) timeouts: Timeouts,
    pub(crate) queue: Queue,
    roster: Arc<Roster>,
    /// What speaks TLS with its servers, if they do.
    connector: Option<Arc<Connector>>,
    /// The version of the roster that `balancer` knows.
    seen: Cell<u64>,
    /// A server that is the same in the next configuration serves its group, too.
    servers: Vec<Rc<Server>>,
    /// What the configuration makes of each of them; `None` for one without an address.
    shares: Vec<Cell<Option<Share>>>,
    balancer: RefCell<Balancer>,
    /// Whether a server that may get requests does not have its full weight yet.
    is_starting: Cell<bool>,
    /// Whether any server has a bound on its connections.
    is_limited: bool,
    /// Requests of this core, be they of this configuration or one before.
    in_flight: Rc<Cell<u32>>,
    /// How fast latencies are forgotten.
    decay: Decay,
    budget: RefCell<Budget>,
    chance: Random,
    ejection: Option<Ejection>,
    suspects: Suspects,
    pub(crate) retirement: Retirement,
    /// Whether anybody wants to know how answers come.
    measures: Cell<bool>,
    /// A server on trial, or [`NOBODY`].
    on_trial: Cell<u32>,
    /// Whether those that get requests are servers which were taken out, for want of others.
    is_desperate: Cell<bool>,
}

/// What a server takes by the configuration.
#[derive(Clone, Copy, Debug)]
struct Share {
    weight: u32,
    /// Whether it gets requests only when no other server can take them.
    backup: bool,
}

/// Later than everything.
pub(crate) const FOREVER: Instant = Instant::from_nanoseconds(u64::MAX);

/// No server's index.
pub(crate) const NOBODY: u32 = u32::MAX;

impl Group {
    /// `seed` tells the cores apart. What this core knows of servers that did not change, and their connections, come from
    /// `before`, the same group in the configuration before, on whose roster `roster` is built.
    pub(crate) fn new(
        upstream: &Upstream,
        timeouts: Timeouts,
        roster: &Arc<Roster>,
        connector: &Option<Arc<Connector>>,
        (seed, now): (u64, Instant),
        before: Option<&Group>,
    ) -> Rc<Self> {
        let everybody: Vec<Member> = roster
            .seats()
            .iter()
            .enumerate()
            .filter_map(|(index, seat)| {
                let at = seat.at()?;
                let weight = FULL.weight(at.weight, None, Instant::default());
                Some(member(index, seat, &at.address, weight))
            })
            .collect();
        let balancer = Balancer::new(Policy::from(&upstream.balance), &everybody, seed);
        let unchanged = Unchanged::new(upstream, timeouts, roster, connector, before);
        let servers = unchanged.servers(upstream, roster);
        let group = Rc::new_cyclic(|myself| Self {
            myself: Weak::clone(myself),
            plan: upstream.clone(),
            timeouts,
            queue: Queue::new(upstream.queue_max, roster, before.map(|group| &group.queue)),
            seen: Cell::new(0),
            shares: servers.iter().map(|_| Cell::default()).collect(),
            servers,
            balancer: RefCell::new(balancer),
            is_starting: Cell::new(false),
            is_limited: roster
                .seats()
                .iter()
                .any(|seat| seat.connections_max < u32::MAX),
            in_flight: before.map_or_else(Rc::default, |group| Rc::clone(&group.in_flight)),
            decay: Decay::new(LATENCY_MEMORY),
            budget: RefCell::new(budget(upstream, before)),
            chance: Random::stream(seed, 1),
            ejection: Ejection::of(upstream, roster.seats(), &unchanged),
            suspects: unchanged.suspects(),
            retirement: Retirement::default(),
            measures: Cell::new(false),
            on_trial: Cell::new(NOBODY),
            is_desperate: Cell::new(false),
            roster: Arc::clone(roster),
            connector: connector.clone(),
        });
        group.look(now);
        group
    }

    /// A server by its index.
    pub(crate) fn server(&self, index: u32) -> &Server {
        &self.servers[index as usize]
    }

    pub(crate) fn servers(&self) -> &[Rc<Server>] {
        &self.servers
    }

    pub(crate) fn roster(&self) -> &Arc<Roster> {
        &self.roster
    }

    /// The server that the client's cookie names; [`NOBODY`] when it names none.
    pub(crate) fn sticks_to(&self, head: &RequestHead<'_, '_>) -> u32 {
        let named = self.plan.sticky.as_ref().and_then(|sticky| {
            let value = cookie::find(head.headers, &sticky.cookie)?;
            let identity = u64::from_str_radix(str::from_utf8(value).ok()?, 16).ok()?;
            self.servers
                .iter()
                .position(|server| server.identity.get() == identity)
        });
        named.map_or(NOBODY, |index| index as u32)
    }

    /// The cookie that makes a client, which asks by `scheme`, come back to this server, in groups that want that. What came
    /// over TLS is never to travel without (RFC 6265 5.4).
    pub(crate) fn cookie(&self, server: u32, scheme: Scheme) -> Option<String> {
        let sticky = self.plan.sticky.as_ref()?;
        let age_max = match sticky.age_max {
            Some(age_max) => format!("; Max-Age={}", age_max.as_secs()),
            None => String::new(),
        };
        let secure = match scheme {
            Scheme::Https => "; Secure",
            Scheme::Http => "",
        };
        let identity = self.server(server).identity.get();
        Some(format!(
            "{}={identity:016x}; Path=/; HttpOnly; SameSite=Lax{age_max}{secure}",
            sticky.cookie
        ))
    }

    /// What the group chooses a server by.
    #[inline]
    pub(crate) fn key(&self, head: &RequestHead<'_, '_>, asker: Asker<'_>) -> u64 {
        match &self.plan.balance {
            Balance::Hash(by) => key(by, head, asker),
            _ => 0,
        }
    }

    /// A request goes to the group for the first time.
    pub(crate) fn count_request(&self, now: Instant) {
        if self.plan.retries.count > 0 {
            self.budget.borrow_mut().count_request(now);
        }
    }

    /// Takes another attempt from what the group may spend on them.
    pub(crate) fn may_retry(&self, now: Instant) -> bool {
        self.budget.borrow_mut().try_retry(now)
    }

    /// Requests a server has in flight: of all cores, when there is a bound on them.
    fn load(&self, server: u32) -> u32 {
        if self.is_limited {
            return self.roster.seats()[server as usize].in_flight();
        }
        self.server(server).in_flight.get()
    }

    /// Takes over what has changed in the roster.
    fn look(&self, now: Instant) {
        self.seen.set(self.roster.version());
        self.is_starting.set(false);
        for (index, (seat, server)) in (0..).zip(self.roster.seats().iter().zip(&self.servers)) {
            let at = seat.at();
            self.shares[index as usize].set(at.as_ref().map(At::share));
            server.move_to(at.map(|at| at.address));
            if seat.presence() != Presence::In {
                self.forget(index);
            }
        }
        let mut members = self.members_of(false, now);
        if members.is_empty() {
            members = self.members_of(true, now);
        }
        let is_desperate = members.is_empty();
        if is_desperate {
            members = self.members_out();
        }
        self.is_desperate.set(is_desperate);
        let mut seated = self.seated();
        let on_trial = seated.find(|(_, presence)| *presence == Presence::OnTrial);
        self.on_trial
            .set(on_trial.map_or(NOBODY, |(index, _)| index));
        self.balancer.borrow_mut().update(&members);
        self.find_out_who_measures();
    }

    /// Those that were taken out, for when nobody else is left: some server has to be asked, or a group whose servers
    /// were all gone for a moment would stay so.
    fn members_out(&self) -> Vec<Member> {
        let member = |(index, _): (u32, Presence)| {
            let share = self.shares[index as usize].get()?;
            let weight = FULL.weight(share.weight, None, Instant::default());
            self.member(index as usize, weight)
        };
        self.seated().filter_map(member).collect()
    }

    /// Those who may get requests, among the backup servers or among the others.
    fn members_of(&self, backup: bool, now: Instant) -> Vec<Member> {
        let seats = self.roster.seats().iter().zip(&self.shares).enumerate();
        let member_at = |(index, (seat, share)): (usize, (&Seat, &Cell<Option<Share>>))| {
            let Standing::In { since } = seat.standing() else {
                return None;
            };
            let share = share.get().filter(|share| share.backup == backup)?;
            let since = (since > 0).then(|| Instant::from_nanoseconds(since));
            let slow_start = self
                .plan
                .slow_start
                .map_or(FULL, |duration| SlowStart { duration });
            if since.is_some_and(|since| slow_start.next_change(since, now).is_some()) {
                self.is_starting.set(true);
            }
            self.member(index, slow_start.weight(share.weight, since, now))
        };
        seats.filter_map(member_at).collect()
    }

    fn member(&self, index: usize, weight: u32) -> Option<Member> {
        let address = self.servers[index].address.borrow();
        let seat = &self.roster.seats()[index];
        address
            .as_ref()
            .map(|address| member(index, seat, address, weight))
    }

    /// Connects to a server on behalf of `origin`, by `until` and as fast as the configuration asks.
    ///
    /// # Errors
    /// As those of connecting; and when the server's name has lost its address.
    pub(crate) async fn connect(
        &self,
        server: &Server,
        origin: &Origin<'_>,
        worker: &Worker,
        until: Instant,
    ) -> Result<Transport, Error> {
        let Some(address) = server.address() else {
            return Err(Error::new(Op::Connect, Kind::Os(Errno::ADDRNOTAVAIL)));
        };
        let connected_by = until.min(worker.core.now_exact() + self.timeouts.connect);
        self.connect_to(&address, server, origin, worker, connected_by, until)
            .await
    }

    /// Connects to an address as to `server`, by `connected_by`, and is done with all that comes before the first
    /// request by `until`. Where the PROXY protocol is spoken, what says whom it is for leaves with the first bytes that
    /// are sent.
    ///
    /// # Errors
    /// As those of connecting.
    pub(crate) async fn connect_to(
        &self,
        address: &Address,
        server: &Server,
        origin: &Origin<'_>,
        worker: &Worker,
        connected_by: Instant,
        until: Instant,
    ) -> Result<Transport, Error> {
        let stream = match Stream::connect(&worker.core, address, Some(connected_by)).await {
            // Somebody takes more descriptors than are set aside for connections: what is idle gives way.
            Err(error) if error.is_out_of_descriptors() && worker.give_up_kept() => {
                Box::pin(Stream::connect(&worker.core, address, Some(connected_by))).await?
            }
            outcome => outcome?,
        };
        if let Some(version) = self.plan.proxy_protocol {
            stream.queue(introduction(version, origin));
        }
        match &self.connector {
            None => Ok(Transport::plain(stream)),
            // Boxed: requests to servers without TLS need not have room for it.
            Some(connector) => {
                let deadline = until.min(worker.core.now_exact() + self.timeouts.tls_handshake);
                Box::pin(tls::connect(
                    stream,
                    connector,
                    &server.host,
                    deadline,
                    worker,
                ))
                .await
            }
        }
    }

    /// Counts idle connections with those of the core's other groups.
    pub(crate) fn keep_within(&self, kept: &Rc<Kept>) {
        let servers = self.servers.iter();
        servers.for_each(|server| server.pool.keep_within(kept));
    }

    /// Closes the idle connections that there are; how many.
    pub(crate) fn give_up_idle(&self) -> usize {
        let give_up = |server: &Rc<Server>| {
            let count = server.pool.len();
            server.pool.drain();
            count
        };
        self.servers.iter().map(give_up).sum()
    }

    /// Closes all idle connections.
    pub(crate) fn clear(&self) {
        for server in &self.servers {
            server.pool.clear();
            server.trunks.close();
        }
    }

    /// Keeps as many idle connections to each server as are to be ready, until the core stops.
    pub(crate) async fn keep_ready(self: Rc<Self>, worker: Rc<Worker>) {
        let core = &worker.core;
        while !core.is_stopping() {
            for (server, seat) in self.servers.iter().zip(self.roster.seats()) {
                while matches!(seat.standing(), Standing::In { .. })
                    && server.address().is_some()
                    && server.pool.len() < self.plan.connections_ready
                    && worker.kept.has_room()
                {
                    match self.connect(server, &Origin::Local, &worker, FOREVER).await {
                        Ok(transport) => server.pool.put(transport, core.now()),
                        // Requests and checks say what is wrong; here it is tried again in a moment.
                        Err(_) => break,
                    }
                    if core.is_stopping() {
                        return;
                    }
                }
            }
            core.sleep_unless_stopping(POOL_SWEEP).await;
        }
    }

    /// Looks after what changes by itself, until the core stops: closes connections that were idle for longer than
    /// their time, and gives starting servers their growing share.
    pub(crate) async fn look_after(self: Rc<Self>, core: Core) {
        let idle_max = self.timeouts.upstream_idle;
        while !core.is_stopping() {
            self.servers
                .iter()
                .for_each(|server| server.pool.expire(core.now(), idle_max));
            if self.is_starting.get() {
                self.look(core.now());
            }
            core.sleep_unless_stopping(POOL_SWEEP).await;
        }
    }
}

/// No slow start.
const FULL: SlowStart = SlowStart {
    duration: Duration::ZERO,
};

impl At {
    fn share(&self) -> Share {
        Share {
            weight: self.weight,
            backup: self.backup,
        }
    }
}

fn member(index: usize, seat: &Seat, address: &Address, weight: u32) -> Member {
    Member {
        server: index as u32,
        weight,
        load_max: seat.connections_max,
        identity: identity(address),
    }
}

fn budget(upstream: &Upstream, before: Option<&Group>) -> Budget {
    let share = upstream.retries.budget;
    before.map_or_else(
        || Budget::new(share),
        |before| before.budget.borrow().with_share(share),
    )
}

/// A header of the PROXY protocol.
fn introduction(version: ProxyVersion, origin: &Origin<'_>) -> Rc<[u8]> {
    let mut room = [0; INTRODUCTION_BYTES_MAX];
    let bytes = match version {
        ProxyVersion::V1 => proxy_protocol::write_v1(origin, &mut room),
        ProxyVersion::V2 => proxy_protocol::write_v2(origin, None, &mut room),
    };
    room[..bytes.expect("there is room for the longest")].into()
}

/// The longest header that we write: version 2 with the paths of Unix sockets has 232 bytes.
const INTRODUCTION_BYTES_MAX: usize = 256;

fn key(by: &HashKey, head: &RequestHead<'_, '_>, asker: Asker<'_>) -> u64 {
    let field = |name: &str| {
        let header = head
            .headers
            .iter()
            .find(|header| header_is(header.name, name));
        header.map_or(b"".as_slice(), |header| header.value)
    };
    match by {
        HashKey::Address => asker.address(head.headers).map_or(0, hash::address_key),
        HashKey::Path => hash::key(head.path.as_bytes()),
        HashKey::Header(name) => hash::key(field(name)),
        HashKey::Cookie(name) => hash::key(cookie::find(head.headers, name).unwrap_or_default()),
    }
}
