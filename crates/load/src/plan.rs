//! From what the user asked for to what the cores do: checked, divided and rendered once, before anything starts.

pub mod reach;

mod check;
mod shard;

use std::sync::Arc;
use std::time::Duration;

use onrush_engine::{Address, Instant, Io};
use onrush_measure::units;
use onrush_tls::Connector;

use crate::journey::Journeys;
use crate::limits::{BATCH_BYTES_MAX, TIMEOUT_DEFAULT};
use crate::pace::arrivals::{ArrivalPlan, Share};
use crate::pace::error::Error;
use crate::pace::stop::{Budget, Stop};
use crate::pace::target::{Scheme, Target};
use crate::pace::wall_clock::WallTime;
use crate::pace::{Pace, Start};
use crate::plan::reach::Reach;
use crate::protocol::Protocol;
use crate::protocol::bytes;
use crate::requests::grpc::descriptors::Descriptors;
use crate::requests::memcached::filled::Filled;
use crate::requests::memcached::workload::Workload;
use crate::requests::memcached::{self, Carrier};
use crate::requests::mix::Mix;
use crate::requests::request::RequestKind;
use crate::requests::{Asks, Request, calls};
use check::{check, check_datagrams};
pub use shard::Shard;

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whom to ask for what.
    pub target: Target,
    /// Connections of the whole run; of several generators each makes its part.
    pub connections: usize,
    /// Threads, each with a core of its own.
    pub threads: usize,
    /// The CPUs the threads are pinned to, in turn; empty leaves them to the kernel.
    pub cpus: Vec<usize>,
    /// How to talk to the kernel.
    pub io: Io,
    /// Whether the threads ask the kernel again and again instead of waiting: no wake-up is in what they measure.
    pub busy_poll: bool,
    /// When the run ends.
    pub stop: Stop,
    /// When requests start.
    pub pace: Pace,
    /// How connections come to be used, in a closed loop; a rate has its start in its profile. Nothing is measured while
    /// it lasts.
    pub start: Start,
    /// For how long nothing is measured behind the start.
    pub warm_up: Duration,
    /// When connections are made.
    pub connecting: Connecting,
    /// In an open loop, requests that are further behind than this are left out and counted.
    pub catch_up: Option<Duration>,
    /// The moment at which its clock starts, by the wall clock; none for as soon as it can.
    pub start_at: Option<WallTime>,
    /// Which part of the run this program makes.
    pub shard: Shard,
    /// What makes pauses of connections repeatable.
    pub seed: u64,
    /// Whether the first response of each connection is left out of latencies.
    pub skip_first: bool,
    /// Requests after which a connection is closed and made anew.
    pub requests_per_connection: Option<u64>,
    /// Requests sent at once on a connection.
    pub pipeline: u64,
    /// Requests that each connection has on its way at once, where HTTP/2 is spoken; none for HTTP/1.1.
    pub streams: Option<u64>,
    /// The method's name, of requests that [`asks`](Self::asks) does not list.
    pub method: String,
    /// Fields of all requests that have none of the name, in this order; a `Host` among them replaces the target's.
    pub headers: Vec<(String, String)>,
    /// What is sent, where it is more than the target.
    pub asks: Asks,
    /// What is known of the messages of calls, where the target speaks gRPC.
    pub descriptors: Option<Descriptors>,
    /// What is sent over TCP, where that is not HTTP.
    pub bytes: bytes::Asks,
    /// What is sent to a target that speaks memcached.
    pub memcached: memcached::Asks,
    /// What users do, where requests are steps of journeys; those stand in [`asks`](Self::asks), in their order.
    pub journeys: Option<Arc<Journeys>>,
    /// How long nothing may arrive while a response is due.
    pub timeout: Duration,
    /// How connections reach their server.
    pub reach: Reach,
}

impl Options {
    /// One connection on one thread that asks `target` until somebody ends it, as fast as responses come.
    pub fn new(target: Target) -> Options {
        Options {
            target,
            connections: 1,
            threads: 1,
            cpus: Vec::new(),
            io: Io::Auto,
            busy_poll: false,
            skip_first: false,
            stop: Stop::default(),
            pace: Pace::Closed,
            start: Start::default(),
            warm_up: Duration::ZERO,
            connecting: Connecting::default(),
            catch_up: None,
            start_at: None,
            shard: Shard::default(),
            seed: 0,
            requests_per_connection: None,
            pipeline: 1,
            streams: None,
            method: "GET".to_owned(),
            headers: Vec::new(),
            asks: Asks::default(),
            descriptors: None,
            bytes: bytes::Asks::default(),
            memcached: memcached::Asks::default(),
            journeys: None,
            timeout: TIMEOUT_DEFAULT,
            reach: Reach::default(),
        }
    }
}

/// When connections are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Connecting {
    /// With their first request: making them is a part of the run.
    #[default]
    AtStart,
    /// Before the run: its clock starts when all are made, or have failed to be.
    Before,
}

/// What the cores do. It cannot be wrong.
#[derive(Debug)]
pub struct Plan {
    pub(crate) options: Options,
    pub(crate) protocol: Protocol,
    /// Journeys and the mix that their steps are made after; none where connections send a mix.
    pub(crate) journeys: Option<(Arc<Journeys>, Arc<Mix>)>,
    /// For schemes with TLS.
    pub(crate) connector: Option<Connector>,
    /// What was stored before the run.
    pub(crate) filled: Option<Filled>,
}

impl Plan {
    /// Checks `options` and makes the requests ready.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the reason and what would work.
    pub fn new(mut options: Options) -> Result<Plan, Error> {
        if options.target.scheme.is_grpc() {
            options.streams.get_or_insert(1);
        }
        check(&options).map_err(Error::Invalid)?;
        if options.journeys.as_ref().is_some_and(|of| of.has_setup()) {
            // What users do before they begin is no part of the run.
            options.connecting = Connecting::Before;
        }
        if options.streams.is_some() {
            options.reach.tls.protocols = vec!["h2"];
        }
        let protocol = protocol(&options).map_err(Error::Invalid)?;
        Plan::of(options, protocol)
    }

    /// Those of `options`, whatever they say of what is sent, with the requests of `protocol`.
    pub(crate) fn of(options: Options, protocol: Protocol) -> Result<Plan, Error> {
        let mut journeys = None;
        if let (Some(walked), Protocol::Http1(mix)) = (&options.journeys, &protocol) {
            journeys = Some((Arc::clone(walked), Arc::clone(mix)));
        }
        let plan = Plan {
            connector: options
                .reach
                .connector(&options.target)
                .map_err(Error::Invalid)?,
            options,
            journeys,
            protocol,
            filled: None,
        };
        let options = &plan.options;
        let bytes = plan.protocol.request_bytes();
        if plan.carrier() == Carrier::Datagrams {
            check_datagrams(options, bytes).map_err(Error::Invalid)?;
            return Ok(plan);
        }
        if options.pipeline > 1
            && (bytes as u64).saturating_mul(options.pipeline) > BATCH_BYTES_MAX as u64
        {
            let most = (BATCH_BYTES_MAX / bytes).max(1);
            return Err(Error::Invalid(format!(
                "--pipeline {} with requests of {bytes} bytes is more than {BATCH_BYTES_MAX} bytes at once: use {most} at most",
                options.pipeline,
            )));
        }
        Ok(plan)
    }

    /// What carries requests.
    pub(crate) fn carrier(&self) -> Carrier {
        self.protocol.carrier()
    }

    /// Requests that a connection is given at a time: those that it sends at once. Datagrams have no order that one would be
    /// taken out of, so over them each is given alone.
    pub(crate) fn turn(&self) -> u64 {
        let per_connection = self.options.requests_per_connection.unwrap_or(u64::MAX);
        match self.carrier() {
            Carrier::Streams if self.protocol.is_http2() => 1,
            Carrier::Streams => self.options.pipeline.min(per_connection),
            Carrier::Datagrams => 1,
        }
    }

    /// How many turns of a connection may be under way: over datagrams and HTTP/2 as many requests as are to be on their way
    /// at once.
    pub(crate) fn lanes(&self) -> usize {
        match self.carrier() {
            Carrier::Streams => self.options.streams.unwrap_or(1) as usize,
            Carrier::Datagrams => self.options.pipeline as usize,
        }
    }

    /// The URL, and that there are others.
    pub(crate) fn target(&self) -> String {
        let url = &self.options.target.url;
        match self.protocol.kinds() {
            1 => url.clone(),
            kinds => format!("{url} ({} requests)", units::count(kinds as u64)),
        }
    }

    /// The method of all requests, or that they have several.
    pub(crate) fn method(&self) -> &str {
        let mut methods = self.kinds().map(RequestKind::method);
        let first = methods.next().unwrap_or_default();
        match methods.all(|method| method == first) {
            true => first,
            false => "mixed",
        }
    }

    /// The kinds of requests.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &RequestKind> {
        (0..self.protocol.kinds()).map(|place| self.protocol.kind(place))
    }

    /// Whether each request of an open loop has a connection of its own.
    pub(crate) fn is_of_connections(&self) -> bool {
        let is_open = matches!(self.options.pace, Pace::Open(_));
        is_open && self.options.requests_per_connection == Some(1)
    }

    /// Whether connections are made again and again, each from a local port.
    pub(crate) fn watches_ports(&self, address: &Address) -> bool {
        let is_tcp = matches!(address, Address::Tcp(_));
        is_tcp && self.options.requests_per_connection.is_some()
    }

    /// How many connections this generator makes.
    pub(crate) fn connections(&self) -> usize {
        let connections = self.options.connections as u64;
        self.options.shard.share().count_of(connections) as usize
    }

    /// How many requests it makes, where there is a bound.
    pub fn count(&self) -> Option<u64> {
        let count = self.options.stop.count?;
        Some(self.options.shard.share().count_of(count))
    }

    /// The requests per second that it comes to in the end; `None` in a closed loop.
    pub(crate) fn rate_asked(&self) -> Option<u64> {
        match self.options.pace {
            Pace::EachConnection(rate) => Some(rate.get() * self.connections() as u64),
            Pace::Closed | Pace::Think(_) | Pace::Open(_) => {
                let rate = self.options.pace.rate_asked(0)?;
                // Of one every few seconds it is told as one a second; the evidence has it exactly.
                let rate = rate.round().max(1.0) as u64;
                Some(self.options.shard.share().count_of(rate))
            }
        }
    }

    /// Number of requests scheduled here within `time`; `None` in a closed loop.
    pub(crate) fn due_within(&self, time: Duration) -> Option<f64> {
        // The measured time exceeds the planned time a little, and no request is scheduled after the planned end.
        let time = self.options.stop.after.map_or(time, |end| end.min(time));
        let due = self
            .options
            .pace
            .due_within(time, self.connections() as u64)?;
        Some(match self.options.pace {
            Pace::EachConnection(_) => due,
            Pace::Closed | Pace::Think(_) | Pace::Open(_) => due / self.options.shard.count as f64,
        })
    }

    /// The numbers, in the whole run, of the connections of core `core`.
    pub(crate) fn connections_of(&self, core: usize) -> impl Iterator<Item = u64> + use<> {
        let Share { first, stride } = self.share_of(core);
        (first..self.options.connections as u64).step_by(stride as usize)
    }

    /// Which of the run's requests core `core` makes.
    pub(crate) fn share_of(&self, core: usize) -> Share {
        let Options { threads, shard, .. } = &self.options;
        Share::of_core(core as u64, *threads as u64, shard.index, shard.count)
    }

    /// What core `core` may do, from `begin` on.
    pub(crate) fn budget_of(&self, core: usize, begin: Instant) -> Budget {
        self.options.stop.of_core(self.share_of(core), begin)
    }

    /// For how long nothing is measured.
    pub(crate) fn unmeasured(&self) -> Duration {
        self.options.start.duration() + self.options.warm_up
    }

    /// The CPU that core `core` is pinned to.
    pub(crate) fn cpu_of(&self, core: usize) -> Option<usize> {
        let cpus = &self.options.cpus;
        (!cpus.is_empty()).then(|| cpus[core % cpus.len()])
    }
}

/// What the target speaks, and the requests that are asked for.
fn protocol(options: &Options) -> Result<Protocol, String> {
    Ok(match options.target.scheme {
        Scheme::Http | Scheme::Https | Scheme::Grpc | Scheme::Grpcs => {
            let mix = Arc::new(mix(options)?);
            match options.streams {
                None => Protocol::Http1(mix),
                Some(_) => Protocol::Http2(mix, options.target.scheme),
            }
        }
        Scheme::Memcached | Scheme::Memcacheds => {
            let workload = Workload::new(&options.memcached, options.seed)?;
            Protocol::Memcached(Arc::new(workload))
        }
        Scheme::Tcp => options.bytes.protocol(),
        Scheme::Udp => {
            return Err(format!(
                "{} sends datagrams, which are no requests: see packets::run",
                options.target.url
            ));
        }
    })
}

/// The requests that are asked for; without any the one that target, method and fields make.
fn mix(options: &Options) -> Result<Mix, String> {
    let mut asks = options.asks.clone();
    if asks.requests.is_empty() {
        let mut request = Request::of(&options.target);
        request.method.clone_from(&options.method);
        asks.requests.push(request);
    }
    let scheme = options.target.scheme;
    let checked = |request: &Request| request.expect.check(scheme);
    asks.requests.iter().try_for_each(checked)?;
    if options.pipeline > 1 && matches!(options.pace, Pace::Open(ArrivalPlan::Listed(_))) {
        return Err("each request of a log has its own time: leave --pipeline out".to_owned());
    }
    if !scheme.is_grpc() {
        return Mix::new(&asks, &options.headers, options.seed);
    }
    calls::make(&mut asks.requests, options.descriptors.as_ref())?;
    Mix::new(&asks, &calls::fields(&options.headers)?, options.seed)
}

#[cfg(test)]
pub(crate) mod tests;
