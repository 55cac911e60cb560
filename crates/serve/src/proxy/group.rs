//! A group of servers, seen from one core: who may get requests, who gets the next, and a pool of connections for each.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_config::plan::{self, Balance, EjectOn, HashKey, ProxyVersion, ServerAddress, Upstream};
use onrush_engine::random::{Random, mix};
use onrush_engine::{Address, Core, Errno, Error, Instant, Kind, Op, Stream};
use onrush_http::forwarded::Scheme;
use onrush_http::proxy_protocol::{self, Origin};
use onrush_http::request::RequestHead;
use onrush_http::write::HeadWriter;
use onrush_http::{Method, cookie, header_is};
use onrush_tls::{Connector, Transport};

use super::absence::{Cause, Terms};
use super::balance::{Balancer, Member, Policy, Question, hash};
use super::budget::Budget;
use super::eject::{self, Ejector};
use super::ewma::{Decay, Ewma};
use super::failure::Failure;
use super::pool::Pool;
use super::queue::{Queue, Ticket};
use super::recheck;
use super::roster::{At, Presence, Roster, Seat, Standing};
use super::slow_start::SlowStart;
use super::trunk::Trunks;
use crate::limits::{LATENCY_MEMORY, POOL_SWEEP, TRIAL_PATIENCE};
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
    chance: Random,
    ejection: Option<Ejection>,
    /// Whether anybody wants to know how answers come.
    measures: Cell<bool>,
    /// A server on trial, or [`NOBODY`].
    on_trial: Cell<u32>,
    /// Whether those that get requests are servers which were taken out, for want of others.
    is_desperate: Cell<bool>,
}

/// What takes servers out, and for how long.
#[derive(Debug)]
struct Ejection {
    ejector: RefCell<Ejector>,
    terms: Terms,
}

/// Why a request goes to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Errand {
    /// It is in service.
    Ordinary,
    /// It is on trial, and this request shows whether it is well again.
    Trial,
    /// It has been taken out, and there is no other.
    LastResort,
}

/// Which servers come into question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// Those that are not known to be out.
    InService,
    /// Those that have been taken out for what requests met there, too.
    LastResort,
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
            chance: Random::stream(seed, 1),
            // One always stays.
            ejection: upstream
                .eject
                .as_ref()
                .filter(|_| roster.seats().len() > 1)
                .map(|written| Ejection {
                    ejector: RefCell::new(Ejector::new(written.into(), roster.seats().len())),
                    terms: written.into(),
                }),
            measures: Cell::new(false),
            on_trial: Cell::new(NOBODY),
            is_desperate: Cell::new(false),
            roster: Arc::clone(roster),
            connector: connector.clone(),
        };
        group.find_out_who_measures();
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

    /// Chooses a server by `key`, none of `avoid`: of those in service, and when a request has failed at all of them, of
    /// the backups and then of those that were taken out.
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
                if avoid.is_empty() {
                    return Err(match balancer.len() {
                        0 => Unplaced::NoServer,
                        _ => Unplaced::Full,
                    });
                }
                if balancer.has_others_than(avoid) {
                    return Err(Unplaced::Full);
                }
                drop(balancer);
                return self.place_beyond(key, avoid);
            };
            let errand = match self.is_desperate.get() {
                false => Errand::Ordinary,
                true => Errand::LastResort,
            };
            // Another core may have taken the last connection since it was looked at.
            if let Some(place) = self.take(server, errand) {
                return Ok(place);
            }
        }
    }

    /// Chooses among the servers that get no requests as long as others take them. O(n), for a request that failed.
    fn place_beyond(self: &Rc<Self>, key: u64, avoid: &[u32]) -> Result<Place, Unplaced> {
        let candidates = self.seated().filter(|(server, _)| !avoid.contains(server));
        let Some((_, _, server)) = candidates
            .map(|(server, presence)| {
                let is_out = presence != Presence::In;
                (is_out, self.rank_beyond(server, key), server)
            })
            .min()
        else {
            return Err(Unplaced::NoServer);
        };
        let errand = match self.roster.seats()[server as usize].presence() {
            Presence::In => Errand::Ordinary,
            Presence::Out | Presence::OnTrial | Presence::Tried => Errand::LastResort,
        };
        self.take(server, errand).ok_or(Unplaced::Full)
    }

    /// The lower, the sooner it is asked where no balancer chooses: equal keys go to the same server (rendezvous hashing),
    /// and others to the one with the fewest requests in flight for its weight.
    fn rank_beyond(&self, server: u32, key: u64) -> (u64, u64) {
        let its = self.server(server);
        match self.plan.balance {
            Balance::Hash(_) => (mix(key ^ its.identity.get()), 0),
            Balance::First => (0, 0),
            _ => {
                let weight = its.at.borrow().as_ref().map_or(1, |at| at.weight);
                let load = (u64::from(self.load(server)) << 16) / u64::from(weight);
                (load, self.chance.bits())
            }
        }
    }

    /// The servers that are somewhere and that checks have nothing against, with whether they were taken out.
    fn seated(&self) -> impl Iterator<Item = (u32, Presence)> {
        let servers = (0..).zip(self.roster.seats().iter().zip(&self.servers));
        servers.filter_map(|(index, (seat, server))| {
            let is_there = seat.is_healthy() && server.at.borrow().is_some();
            is_there.then(|| (index, seat.presence()))
        })
    }

    /// Whether a request that failed at `tried` and at `last` may go to another server. O(n).
    pub(crate) fn has_other(&self, tried: &[u32], last: u32, reach: Reach) -> bool {
        self.seated().any(|(server, presence)| {
            let is_in_reach = reach == Reach::LastResort || presence == Presence::In;
            is_in_reach && server != last && !tried.contains(&server)
        })
    }

    /// A place on a server that is on trial, if there is one and this request may be the one. Those that can be repeated
    /// are taken first; when none has come for a while, any.
    #[inline]
    pub(crate) fn place_on_trial(self: &Rc<Self>, method: Method, now: Instant) -> Option<Place> {
        let server = self.on_trial.get();
        if server == NOBODY {
            return None;
        }
        let since = self.roster.seats()[server as usize].on_trial_since();
        if !method.is_idempotent() && now.since(since) < TRIAL_PATIENCE {
            return None;
        }
        self.on_trial.set(NOBODY);
        if !self.roster.claim_trial(server) {
            return None;
        }
        let place = self.take(server, Errand::Trial);
        if place.is_none() {
            self.roster.give_trial_back(server);
        }
        place
    }

    /// A place on this server and no other.
    pub(crate) fn place_on(self: &Rc<Self>, server: u32) -> Option<Place> {
        let seat = self.roster.seats().get(server as usize)?;
        let is_in = matches!(seat.standing(), Standing::In { .. });
        if !is_in || self.server(server).at.borrow().is_none() {
            return None;
        }
        self.take(server, Errand::Ordinary)
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

    fn take(self: &Rc<Self>, server: u32, errand: Errand) -> Option<Place> {
        if self.is_limited && !self.roster.seats()[server as usize].acquire() {
            return None;
        }
        let counter = &self.server(server).in_flight;
        counter.set(counter.get() + 1);
        self.in_flight.set(self.in_flight.get() + 1);
        Some(Place {
            group: Rc::clone(self),
            server,
            errand,
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

    /// Whether anybody wants to know how an answer comes to a request on this errand.
    #[inline]
    pub(crate) fn measures(&self, errand: Errand) -> bool {
        self.measures.get() || errand != Errand::Ordinary
    }

    fn find_out_who_measures(&self) {
        let wants_answers = |ejection: &Ejection| ejection.ejector.borrow().wants_answers();
        let measures = self.plan.balance == Balance::PeakEwma
            || self.ejection.as_ref().is_some_and(wants_answers);
        self.measures.set(measures);
    }

    /// A server has begun to answer with `status`, `latency` after the request.
    pub(crate) fn answered(
        &self,
        (server, errand): (u32, Errand),
        status: u16,
        latency: Duration,
        worker: &Worker,
    ) {
        if self.plan.balance == Balance::PeakEwma {
            let its = &self.server(server).latency;
            its.borrow_mut()
                .observe(latency, worker.core.now(), self.decay);
        }
        let counts_statuses = self.ejects_on() == Some(EjectOn::Answers);
        let outcome = if counts_statuses && status >= 500 {
            eject::Outcome::Failed
        } else {
            eject::Outcome::Answered(latency)
        };
        self.observe((server, errand), outcome, worker);
    }

    /// A server has not answered, or not to the end.
    pub(crate) fn failed(&self, place: &Place, failure: &Failure, worker: &Worker) {
        if let Some(on) = self.ejects_on()
            && let Some(outcome) = failure.outcome(on)
        {
            self.observe((place.server, place.errand), outcome, worker);
        }
    }

    /// What counts as a failure that may take a server out, if anything does.
    pub(crate) fn ejects_on(&self) -> Option<EjectOn> {
        self.ejection
            .as_ref()
            .and(self.plan.eject)
            .map(|eject| eject.on)
    }

    /// Whether requests have taken this server out.
    pub(crate) fn is_out(&self, server: u32) -> bool {
        self.roster.seats()[server as usize].presence() != Presence::In
    }

    fn observe(&self, (server, errand): (u32, Errand), outcome: eject::Outcome, worker: &Worker) {
        let Some(ejection) = &self.ejection else {
            return;
        };
        let now = worker.core.now();
        let is_answered = matches!(outcome, eject::Outcome::Answered(_));
        match errand {
            Errand::Ordinary if self.is_out(server) => {
                // A request from before. What it met is why the server is out.
            }
            Errand::Ordinary => {
                let mut ejector = ejection.ejector.borrow_mut();
                let reason = ejector.observe(server, outcome, now);
                let may_go = || ejector.rules().may_take_out(self.roster.census());
                let reason = reason.filter(|_| may_go());
                drop(ejector);
                self.find_out_who_measures();
                if let Some(reason) = reason {
                    self.take_out(server, reason.cause(), &reason, worker);
                }
            }
            Errand::Trial | Errand::LastResort if is_answered => {
                if self.roster.bring_back(server, None, now) {
                    self.tell_return(server, "it answers");
                }
            }
            Errand::Trial => {
                let reason = "the request that was to show whether it answers failed";
                self.take_out(server, Cause::Unreliable, &reason, worker);
            }
            // It is out already.
            Errand::LastResort => {}
        }
    }

    fn take_out(&self, server: u32, cause: Cause, why: &dyn fmt::Display, worker: &Worker) {
        let Some(ejection) = &self.ejection else {
            return;
        };
        let now = worker.core.now();
        let Some(out) = self.roster.take_out(server, cause, &ejection.terms, now) else {
            return;
        };
        let name = &self.server(server).name;
        let until = match cause {
            Cause::Unreachable => "until it accepts connections".to_owned(),
            Cause::Unreliable => format!("for {:.0} s", out.wait.as_secs_f64()),
        };
        tracing::warn!("server {name} of {} is out {until}: {why}", self.plan.name);
        let this = worker
            .groups
            .iter()
            .find(|group| std::ptr::eq(&***group, self));
        let group = Rc::clone(this.expect("a group of this core"));
        let core = &worker.core;
        core.spawn(recheck::bring_back(group, server, out, worker.myself()));
    }

    /// Absence `term` of a server that still could not be connected to: how it goes on, unless it has ended.
    pub(crate) fn stays_out(&self, server: u32, term: u32) -> Option<(Cause, Duration)> {
        let terms = &self.ejection.as_ref()?.terms;
        let wait = self.roster.stays_out(server, term, terms)?;
        Some((Cause::Unreachable, wait))
    }

    pub(crate) fn tell_return(&self, server: u32, why: &str) {
        let name = &self.server(server).name;
        tracing::info!("server {name} of {} is back: {why}", self.plan.name);
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
            server.move_to(seat.at());
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
    }

    /// A server has been taken out, here or on another core: its connections are of no more use, and what was known of it
    /// has served its purpose.
    fn forget(&self, server: u32) {
        self.server(server).pool.drain();
        if let Some(ejection) = &self.ejection {
            ejection.ejector.borrow_mut().forget(server);
        }
    }

    /// Those that were taken out, for when nobody else is left: some server has to be asked, or a group whose servers
    /// were all gone for a moment would stay so.
    fn members_out(&self) -> Vec<Member> {
        let member = |(index, _): (u32, Presence)| {
            let at = self.server(index).at.borrow();
            let at = at.as_ref()?;
            let weight = FULL.weight(at.weight, None, Instant::default());
            let seat = &self.roster.seats()[index as usize];
            Some(member(index as usize, seat, at, weight))
        };
        self.seated().filter_map(member).collect()
    }

    /// Those who may get requests, among the backup servers or among the others.
    fn members_of(&self, backup: bool, now: Instant) -> Vec<Member> {
        let seats = self.roster.seats().iter().zip(&self.servers).enumerate();
        let member_at = |(index, (seat, server)): (usize, (&Seat, &Server))| {
            let Standing::In { since } = seat.standing() else {
                return None;
            };
            let at = server.at.borrow().clone();
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
                while matches!(seat.standing(), Standing::In { .. })
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
    errand: Errand,
}

impl Place {
    /// The server's index in its group.
    pub(crate) fn index(&self) -> u32 {
        self.server
    }

    pub(crate) fn errand(&self) -> Errand {
        self.errand
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
        if self.errand == Errand::Trial {
            // Unless it has shown how the server is.
            self.group.roster.give_trial_back(self.server);
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({} of {})", self.server, self.group.plan.name)
    }
}
