//! A group of servers, seen from one core: who may get requests, who gets the next, and a pool of connections for each.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_config::plan::{self, Balance, HashKey, ProxyVersion, ServerAddress, Upstream};
use onrush_engine::{Address, Core, Errno, Error, Instant, Kind, Op, Stream};
use onrush_http::forwarded::Scheme;
use onrush_http::proxy_protocol::{self, Origin};
use onrush_http::request::RequestHead;
use onrush_http::write::HeadWriter;
use onrush_http::{cookie, header_is};
use onrush_tls::{Connector, Transport};

use super::balance::{Balancer, Member, Policy, Question, hash};
use super::budget::Budget;
use super::eject::{self, Ejector};
use super::ewma::{Decay, Ewma};
use super::failure::Failure;
use super::pool::Pool;
use super::queue::{Queue, Ticket};
use super::roster::{At, Roster, Seat, Standing};
use super::slow_start::SlowStart;
use super::trunk::Trunks;
use crate::limits::{LATENCY_MEMORY, POOL_SWEEP};
use crate::passage::Asker;
use crate::tls;
use crate::worker::Worker;

/// One server of a group, or the place for one.
#[derive(Debug)]
pub(crate) struct Server {
    /// As it was written, for people.
    pub(crate) name: String,
    /// Its Host for requests that have none (HTTP/1.0).
    pub(crate) authority: String,
    /// The name that its certificate is for.
    host: String,
    pub(crate) pool: Pool,
    pub(crate) trunks: Trunks,
    at: RefCell<Option<At>>,
    /// What a sticky cookie says for it: it changes when the address does.
    identity: Cell<u64>,
    in_flight: Cell<u32>,
    /// How fast it has answered; kept only where somebody wants to know.
    latency: RefCell<Ewma>,
}

#[derive(Debug)]
pub(crate) struct Group {
    /// As it was configured.
    pub(crate) plan: Upstream,
    pub(crate) queue: Queue,
    roster: Arc<Roster>,
    /// What speaks TLS with its servers, if they do.
    connector: Option<Arc<Connector>>,
    /// The version of the roster that `balancer` knows.
    seen: Cell<u64>,
    servers: Vec<Server>,
    balancer: RefCell<Balancer>,
    /// Whether a server that may get requests does not have its full weight yet.
    is_starting: Cell<bool>,
    /// Whether any server has a bound on its connections.
    is_limited: bool,
    in_flight: Cell<u32>,
    /// How fast latencies are forgotten.
    decay: Decay,
    budget: RefCell<Budget>,
    ejector: Option<RefCell<Ejector>>,
}

/// Later than everything.
pub(crate) const FOREVER: Instant = Instant::from_nanoseconds(u64::MAX);

/// No server's index.
pub(crate) const NOBODY: u32 = u32::MAX;

/// Why no server takes a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unplaced {
    /// All are down, or none has an address.
    NoServer,
    /// All have as many connections as they may have.
    Full,
    /// And as many requests as may wait for them do.
    QueueFull,
    /// And that did not change in time.
    QueuedTooLong,
}

impl Group {
    /// `seed` tells the cores apart.
    pub(crate) fn new(
        upstream: &Upstream,
        roster: &Arc<Roster>,
        connector: &Option<Arc<Connector>>,
        seed: u64,
        now: Instant,
    ) -> Self {
        let mut servers = Vec::new();
        for (index, server) in upstream.servers.iter().enumerate() {
            let (_, seats) = roster.seats_of(index);
            servers.extend(seats.iter().map(|_| Server::new(server, upstream)));
        }
        let everybody: Vec<Member> = roster
            .seats()
            .iter()
            .enumerate()
            .filter_map(|(index, seat)| {
                let at = seat.at()?;
                Some(member(
                    index,
                    seat,
                    &at,
                    FULL.weight(at.weight, None, Instant::default()),
                ))
            })
            .collect();
        let balancer = Balancer::new(Policy::from(&upstream.balance), &everybody, seed);
        let group = Self {
            plan: upstream.clone(),
            queue: Queue::new(upstream.queue_max),
            seen: Cell::new(0),
            servers,
            balancer: RefCell::new(balancer),
            is_starting: Cell::new(false),
            is_limited: roster
                .seats()
                .iter()
                .any(|seat| seat.connections_max < u32::MAX),
            in_flight: Cell::new(0),
            decay: Decay::new(LATENCY_MEMORY),
            budget: RefCell::new(Budget::new(upstream.retries.budget)),
            ejector: upstream
                .eject
                .as_ref()
                .map(|written| RefCell::new(Ejector::new(written.into(), roster.seats().len()))),
            roster: Arc::clone(roster),
            connector: connector.clone(),
        };
        group.look(now);
        group
    }

    /// A server by its index.
    pub(crate) fn server(&self, index: u32) -> &Server {
        &self.servers[index as usize]
    }

    pub(crate) fn servers(&self) -> &[Server] {
        &self.servers
    }

    pub(crate) fn roster(&self) -> &Arc<Roster> {
        &self.roster
    }

    /// How many servers may get requests.
    pub(crate) fn members(&self) -> usize {
        self.balancer.borrow().len()
    }

    /// Chooses a server by `key`, another than those of `avoid` if there is one.
    ///
    /// # Errors
    /// [`Unplaced::NoServer`] or [`Unplaced::Full`].
    #[inline]
    pub(crate) fn place(
        self: &Rc<Self>,
        key: u64,
        avoid: &[u32],
        now: Instant,
    ) -> Result<Place, Unplaced> {
        if self.roster.version() != self.seen.get() {
            self.look(now);
        }
        let question = Question {
            key,
            load: &|server| self.load(server),
            load_sum: self.in_flight.get(),
            latency: &|server| self.server(server).latency.borrow().value(now, self.decay),
            avoid,
        };
        loop {
            let mut balancer = self.balancer.borrow_mut();
            let Some(server) = balancer.choose(&question) else {
                return Err(match balancer.len() {
                    0 => Unplaced::NoServer,
                    _ => Unplaced::Full,
                });
            };
            // Another core may have taken the last connection since it was looked at.
            if let Some(place) = self.take(server) {
                return Ok(place);
            }
        }
    }

    /// A place on this server and no other.
    pub(crate) fn place_on(self: &Rc<Self>, server: u32, now: Instant) -> Option<Place> {
        let seat = self.roster.seats().get(server as usize)?;
        let is_in = matches!(seat.standing(now), Standing::In { .. });
        if !is_in || self.server(server).at.borrow().is_none() {
            return None;
        }
        self.take(server)
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

    /// Writes the cookie that makes a client, which asks by `scheme`, come back to this server. What came over TLS is never
    /// to travel without (RFC 6265 5.4).
    pub(crate) fn write_cookie(&self, server: u32, scheme: Scheme, writer: &mut HeadWriter<'_>) {
        let Some(sticky) = &self.plan.sticky else {
            return;
        };
        let identity = self.server(server).identity.get();
        writer
            .raw(b"Set-Cookie: ")
            .raw(sticky.cookie.as_bytes())
            .raw(b"=")
            .display(format_args!("{identity:016x}"))
            .raw(b"; Path=/; HttpOnly; SameSite=Lax");
        if let Some(age_max) = sticky.age_max {
            writer.raw(b"; Max-Age=").display(age_max.as_secs());
        }
        if scheme == Scheme::Https {
            writer.raw(b"; Secure");
        }
        writer.raw(b"\r\n");
    }

    fn take(self: &Rc<Self>, server: u32) -> Option<Place> {
        if self.is_limited && !self.roster.seats()[server as usize].acquire() {
            return None;
        }
        let counter = &self.server(server).in_flight;
        counter.set(counter.get() + 1);
        self.in_flight.set(self.in_flight.get() + 1);
        Some(Place {
            group: Rc::clone(self),
            server,
        })
    }

    /// [`Group::place`], waiting for room until `until`.
    pub(crate) async fn place_patiently(
        self: &Rc<Self>,
        key: u64,
        avoid: &[u32],
        core: &Core,
        until: Instant,
    ) -> Result<Place, Unplaced> {
        let mut ticket: Option<Ticket<'_>> = None;
        loop {
            // Who waits already has the right of way.
            let is_next = ticket
                .as_ref()
                .map_or(self.queue.is_empty(), Ticket::is_first);
            let placed = if is_next {
                self.place(key, avoid, core.now())
            } else {
                Err(Unplaced::Full)
            };
            match placed {
                Err(Unplaced::Full) => {}
                placed => return placed,
            }
            if core.now() >= until {
                return Err(Unplaced::QueuedTooLong);
            }
            match &ticket {
                Some(ticket) => ticket.turn(core, until).await,
                None => ticket = Some(self.queue.join().await.ok_or(Unplaced::QueueFull)?),
            }
        }
    }

    /// What the group chooses a server by.
    #[inline]
    pub(crate) fn key(&self, head: &RequestHead<'_, '_>, asker: Asker<'_>) -> u64 {
        match &self.plan.balance {
            Balance::Hash(by) => key(by, head, asker),
            _ => 0,
        }
    }

    /// Whether anybody wants to know how long answers take.
    pub(crate) fn measures(&self) -> bool {
        self.plan.balance == Balance::PeakEwma || self.ejector.is_some()
    }

    /// A server has begun to answer with `status`, `latency` after the request.
    pub(crate) fn answered(&self, server: u32, status: u16, latency: Duration, now: Instant) {
        let its = &self.server(server).latency;
        its.borrow_mut().observe(latency, now, self.decay);
        let outcome = if status < 500 {
            eject::Outcome::Answered(latency)
        } else {
            eject::Outcome::Failed
        };
        self.observe(server, outcome, now);
    }

    /// A server has not answered, or not to the end.
    pub(crate) fn failed(&self, server: u32, failure: &Failure, now: Instant) {
        if failure.is_the_servers() {
            self.observe(server, eject::Outcome::Failed, now);
        }
    }

    fn observe(&self, server: u32, outcome: eject::Outcome, now: Instant) {
        let Some(ejector) = &self.ejector else {
            return;
        };
        let in_service = self.members();
        let ejected = ejector
            .borrow_mut()
            .observe(server, outcome, in_service, now);
        let Some(ejected) = ejected else { return };
        let share_max = self.plan.eject.map_or(100, |eject| eject.share_max);
        let (seated, out) = self.roster.ejected(now);
        // Other cores take servers out, too. The first may always go.
        if out > 0 && (out + 1) * 100 > seated * usize::from(share_max) {
            return;
        }
        self.roster.eject(server, ejected.until);
        let name = &self.server(server).name;
        let seconds = ejected.until.since(now).as_secs_f64();
        tracing::warn!(
            "server {name} of {} is out for {seconds:.0} s: {}",
            self.plan.name,
            ejected.reason
        );
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
        let mut members = self.members_of(false, now);
        if members.is_empty() {
            members = self.members_of(true, now);
        }
        self.balancer.borrow_mut().update(&members);
    }

    /// Those who may get requests, among the backup servers or among the others.
    fn members_of(&self, backup: bool, now: Instant) -> Vec<Member> {
        let seats = self.roster.seats().iter().zip(&self.servers).enumerate();
        let member_at = |(index, (seat, server)): (usize, (&Seat, &Server))| {
            let at = seat.at();
            server.move_to(at.clone());
            let Standing::In { since } = seat.standing(now) else {
                return None;
            };
            let at = at.filter(|at| at.backup == backup)?;
            let since = (since > 0).then(|| Instant::from_nanoseconds(since));
            let slow_start = self
                .plan
                .slow_start
                .map_or(FULL, |duration| SlowStart { duration });
            if since.is_some_and(|since| slow_start.next_change(since, now).is_some()) {
                self.is_starting.set(true);
            }
            let weight = slow_start.weight(at.weight, since, now);
            Some(member(index, seat, &at, weight))
        };
        seats.filter_map(member_at).collect()
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
        let connected_by = until.min(worker.core.now_exact() + worker.timeouts.connect);
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
        let stream = Stream::connect(&worker.core, address, Some(connected_by)).await?;
        if let Some(version) = self.plan.proxy_protocol {
            stream.queue(introduction(version, origin));
        }
        match &self.connector {
            None => Ok(Transport::plain(stream)),
            // Boxed: requests to servers without TLS need not have room for it.
            Some(connector) => {
                Box::pin(tls::connect(stream, connector, &server.host, until, worker)).await
            }
        }
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
                while matches!(seat.standing(core.now()), Standing::In { .. })
                    && server.address().is_some()
                    && server.pool.len() < self.plan.connections_ready
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
    /// `idle_max`, and gives starting servers their growing share.
    pub(crate) async fn look_after(self: Rc<Self>, core: Core, idle_max: Duration) {
        while !core.is_stopping() {
            self.servers
                .iter()
                .for_each(|server| server.pool.expire(core.now(), idle_max));
            let seats = self.roster.seats();
            // Who was out is in again by the clock alone.
            let has_returned = seats.iter().any(|seat| seat.has_returned(core.now()));
            if has_returned {
                self.roster.changed();
            }
            if self.is_starting.get() || has_returned {
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

fn member(index: usize, seat: &Seat, at: &At, weight: u32) -> Member {
    Member {
        server: index as u32,
        weight,
        load_max: seat.connections_max,
        identity: identity(&at.address),
    }
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

/// The same on every core and after every restart.
fn identity(address: &Address) -> u64 {
    hash::key(address.to_string().as_bytes())
}

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

impl Server {
    fn new(server: &plan::Server, upstream: &Upstream) -> Self {
        Self {
            name: server.address.to_string(),
            authority: match &server.address {
                // A path is no host.
                ServerAddress::Unix(_) => "localhost".to_owned(),
                address => address.to_string(),
            },
            host: match &server.address {
                ServerAddress::Ip(address) => address.ip().to_string(),
                ServerAddress::Name { host, .. } => host.clone(),
                // Not the target, which whoever forges the record chooses: the domain behind `_service._proto.` (RFC 6125).
                ServerAddress::Srv(name) => {
                    let labels = name.split('.');
                    let domain: Vec<&str> =
                        labels.skip_while(|label| label.starts_with('_')).collect();
                    domain.join(".")
                }
                ServerAddress::Unix(_) => "localhost".to_owned(),
            },
            pool: Pool::new(upstream.connections_idle_max),
            trunks: Trunks::default(),
            at: RefCell::default(),
            identity: Cell::new(0),
            in_flight: Cell::new(0),
            latency: RefCell::new(Ewma::default()),
        }
    }

    /// Where it is now; `None` when the place is vacant.
    pub(crate) fn address(&self) -> Option<Address> {
        self.at.borrow().as_ref().map(|at| at.address.clone())
    }

    /// What used to be here is somewhere else, or nowhere.
    fn move_to(&self, at: Option<At>) {
        let address = at.as_ref().map(|at| &at.address);
        if self.at.borrow().as_ref().map(|at| &at.address) != address {
            self.pool.drain();
            self.trunks.close();
            self.identity.set(address.map_or(0, identity));
            self.latency.take();
        }
        self.at.replace(at);
    }
}

/// A request's place on a server: it counts there until this is dropped.
pub(crate) struct Place {
    group: Rc<Group>,
    server: u32,
}

impl Place {
    /// The server's index in its group.
    pub(crate) fn index(&self) -> u32 {
        self.server
    }

    pub(crate) fn server(&self) -> &Server {
        self.group.server(self.server)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let counter = &self.server().in_flight;
        counter.set(counter.get() - 1);
        self.group.in_flight.set(self.group.in_flight.get() - 1);
        if self.group.is_limited {
            self.group.roster.seats()[self.server as usize].release();
            self.group.queue.call();
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({} of {})", self.server, self.group.plan.name)
    }
}
