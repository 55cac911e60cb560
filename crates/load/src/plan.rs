//! Turns the user's options into a plan for the cores. It is checked, divided and rendered once, before anything
//! starts.

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
use crate::plan::reach::ConnectOptions;
use crate::protocol::Protocol;
use crate::protocol::bytes;
use crate::requests::grpc::descriptors::Descriptors;
use crate::requests::memcached::populate_result::PopulateResult;
use crate::requests::memcached::workload::Workload;
use crate::requests::memcached::{self, TransportKind};
use crate::requests::mix::Mix;
use crate::requests::request::RequestKind;
use crate::requests::{Request, RequestOptions, grpc_calls};
use check::{check, check_datagrams};
pub use shard::Shard;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Server and URL of the requests.
    pub target: Target,
    /// Connections of the whole run. Each of several generators makes its share.
    pub connections: usize,
    /// Number of threads, each with its own core.
    pub threads: usize,
    /// CPUs to which the threads are pinned, round robin. Empty leaves them to the kernel.
    pub cpus: Vec<usize>,
    /// Driver: epoll or io_uring.
    pub io: Io,
    /// Whether threads poll the kernel continuously instead of waiting, which keeps wake-ups out of the measured
    /// latency.
    pub busy_poll: bool,
    /// When the run ends.
    pub stop: Stop,
    /// When requests start.
    pub pace: Pace,
    /// How connections are put to use in a closed loop; a rate has its ramp in its profile. Nothing is measured during
    /// the start.
    pub start: Start,
    /// Time after the start during which nothing is measured.
    pub warm_up: Duration,
    /// When connections are made.
    pub connecting: Connecting,
    /// In an open loop, requests that are later than this are skipped and counted.
    pub catch_up: Option<Duration>,
    /// Wall-clock time at which the run starts; `None` starts it as soon as possible.
    pub start_at: Option<WallTime>,
    /// The share of a distributed run that this process makes.
    pub shard: Shard,
    /// Seed of the random numbers; the same seed repeats the pauses of connections.
    pub seed: u64,
    /// Whether the latency of each connection's first response is left out.
    pub skip_first: bool,
    /// Requests after which a connection is closed and replaced.
    pub requests_per_connection: Option<u64>,
    /// Requests pipelined on a connection.
    pub pipeline: u64,
    /// Concurrent requests of each HTTP/2 connection; `None` for HTTP/1.1.
    pub streams: Option<u64>,
    /// Method of requests that are not listed in [`requests`](Self::requests).
    pub method: String,
    /// Fields added to all requests that have no field of that name, in this order. A `Host` field replaces the
    /// target's.
    pub headers: Vec<(String, String)>,
    /// Requests to send, unless the target's URL is the only one.
    pub requests: RequestOptions,
    /// Descriptors of the gRPC messages, if the target uses gRPC.
    pub descriptors: Option<Descriptors>,
    /// Payload over TCP, for targets without HTTP.
    pub bytes: bytes::PayloadOptions,
    /// Commands for a memcached target.
    pub memcached: memcached::MemcachedOptions,
    /// Journeys of the users, if requests are steps of journeys. The steps' requests are in [`requests`](Self::requests), in
    /// the same order.
    pub journeys: Option<Arc<Journeys>>,
    /// Longest time without received bytes while a response is pending.
    pub timeout: Duration,
    /// Addresses, PROXY protocol and TLS of connections.
    pub reach: ConnectOptions,
}

impl Options {
    /// One connection on one thread that sends GET requests to `target` without a pause until it is interrupted.
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
            requests: RequestOptions::default(),
            descriptors: None,
            bytes: bytes::PayloadOptions::default(),
            memcached: memcached::MemcachedOptions::default(),
            journeys: None,
            timeout: TIMEOUT_DEFAULT,
            reach: ConnectOptions::default(),
        }
    }
}

/// When connections are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Connecting {
    /// With their first request: connecting is part of the run.
    #[default]
    AtStart,
    /// Before the run: its clock starts when every connection is established or has failed.
    Before,
}

/// Validated work of the cores.
#[derive(Debug)]
pub struct Plan {
    pub(crate) options: Options,
    pub(crate) protocol: Protocol,
    /// Journeys, and the mix of their steps' requests; `None` if connections send a mix.
    pub(crate) journeys: Option<(Arc<Journeys>, Arc<Mix>)>,
    /// Present for schemes with TLS.
    pub(crate) connector: Option<Connector>,
    /// Values stored before the run.
    pub(crate) filled: Option<PopulateResult>,
}

impl Plan {
    /// Checks `options` and renders the requests.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the reason and a remedy.
    pub fn new(mut options: Options) -> Result<Plan, Error> {
        if options.target.scheme.is_grpc() {
            options.streams.get_or_insert(1);
        }
        check(&options).map_err(Error::Invalid)?;
        if options.journeys.as_ref().is_some_and(|of| of.has_setup()) {
            // Setup steps of users are not part of the run.
            options.connecting = Connecting::Before;
        }
        if options.streams.is_some() {
            options.reach.tls.protocols = vec!["h2"];
        }
        let protocol = protocol(&options).map_err(Error::Invalid)?;
        Plan::of(options, protocol)
    }

    /// Creates a plan from `options` with the requests of `protocol`; the requests in `options` are ignored.
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
        if plan.carrier() == TransportKind::Datagrams {
            check_datagrams(options, bytes).map_err(Error::Invalid)?;
            return Ok(plan);
        }
        if options.pipeline > 1
            && (bytes as u64).saturating_mul(options.pipeline) > BATCH_BYTES_MAX as u64
        {
            let most = (BATCH_BYTES_MAX / bytes).max(1);
            return Err(Error::Invalid(format!(
                "--pipeline {} with requests of {bytes} bytes is more than {BATCH_BYTES_MAX} bytes at once: use {most} \
                 at most",
                options.pipeline,
            )));
        }
        Ok(plan)
    }

    /// Transport of the requests: streams or datagrams.
    pub(crate) fn carrier(&self) -> TransportKind {
        self.protocol.carrier()
    }

    /// Requests that a connection takes at a time, to pipeline them. Datagrams and HTTP/2 streams have no common order,
    /// so over them each request is taken alone.
    pub(crate) fn batch_size(&self) -> u64 {
        let per_connection = self.options.requests_per_connection.unwrap_or(u64::MAX);
        match self.carrier() {
            TransportKind::Streams if self.protocol.is_http2() => 1,
            TransportKind::Streams => self.options.pipeline.min(per_connection),
            TransportKind::Datagrams => 1,
        }
    }

    /// Number of batches of requests that a connection may have in flight: over datagrams and HTTP/2, the number of
    /// concurrent requests.
    pub(crate) fn concurrency(&self) -> usize {
        match self.carrier() {
            TransportKind::Streams => self.options.streams.unwrap_or(1) as usize,
            TransportKind::Datagrams => self.options.pipeline as usize,
        }
    }

    /// Returns the URL for display, with the number of kinds of requests if there are several.
    pub(crate) fn target(&self) -> String {
        let url = &self.options.target.url;
        match self.protocol.kinds() {
            1 => url.clone(),
            kinds => format!("{url} ({} requests)", units::count(kinds as u64)),
        }
    }

    /// Returns the method of all requests, or `mixed`.
    pub(crate) fn method(&self) -> &str {
        let mut methods = self.kinds().map(RequestKind::method);
        let first = methods.next().unwrap_or_default();
        match methods.all(|method| method == first) {
            true => first,
            false => "mixed",
        }
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = &RequestKind> {
        (0..self.protocol.kinds()).map(|place| self.protocol.kind(place))
    }

    /// Whether each request of an open loop has its own connection.
    pub(crate) fn has_connection_per_request(&self) -> bool {
        let is_open = matches!(self.options.pace, Pace::Open(_));
        is_open && self.options.requests_per_connection == Some(1)
    }

    /// Whether connections are replaced repeatedly, each using a local port.
    pub(crate) fn uses_ephemeral_ports(&self, address: &Address) -> bool {
        let is_tcp = matches!(address, Address::Tcp(_));
        is_tcp && self.options.requests_per_connection.is_some()
    }

    pub(crate) fn connections(&self) -> usize {
        let connections = self.options.connections as u64;
        self.options.shard.share().count_of(connections) as usize
    }

    /// Number of requests of this generator, if limited.
    pub fn count(&self) -> Option<u64> {
        let count = self.options.stop.count?;
        Some(self.options.shard.share().count_of(count))
    }

    /// Requests per second of this generator at full load; `None` in a closed loop.
    pub(crate) fn target_rate(&self) -> Option<u64> {
        match self.options.pace {
            Pace::EachConnection(rate) => Some(rate.get() * self.connections() as u64),
            Pace::Closed | Pace::Think(_) | Pace::Open(_) => {
                let rate = self.options.pace.target_rate(0)?;
                // A rate below one per second is rounded up to one; the evidence has the exact rate.
                let rate = rate.round().max(1.0) as u64;
                Some(self.options.shard.share().count_of(rate))
            }
        }
    }

    /// Number of requests of this generator scheduled within `time`; `None` in a closed loop.
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

    /// Returns the run-wide numbers of the connections of core `core`.
    pub(crate) fn connections_of(&self, core: usize) -> impl Iterator<Item = u64> + use<> {
        let Share { first, stride } = self.share_of(core);
        (first..self.options.connections as u64).step_by(stride as usize)
    }

    /// Returns the share of the run's requests that core `core` makes.
    pub(crate) fn share_of(&self, core: usize) -> Share {
        let Options { threads, shard, .. } = &self.options;
        Share::of_core(core as u64, *threads as u64, shard.index, shard.count)
    }

    pub(crate) fn budget_of(&self, core: usize, begin: Instant) -> Budget {
        self.options.stop.of_core(self.share_of(core), begin)
    }

    /// Returns the time at the start during which nothing is measured.
    pub(crate) fn unmeasured(&self) -> Duration {
        self.options.start.duration() + self.options.warm_up
    }

    pub(crate) fn cpu_of(&self, core: usize) -> Option<usize> {
        let cpus = &self.options.cpus;
        (!cpus.is_empty()).then(|| cpus[core % cpus.len()])
    }
}

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
                "{} is a datagram target, which takes no requests: see packets::run",
                options.target.url
            ));
        }
    })
}

/// Creates the mix of requests. Without any, it has one request made from target, method and fields.
fn mix(options: &Options) -> Result<Mix, String> {
    let mut asks = options.requests.clone();
    if asks.requests.is_empty() {
        let mut request = Request::of(&options.target);
        request.method.clone_from(&options.method);
        asks.requests.push(request);
    }
    let scheme = options.target.scheme;
    let checked = |request: &Request| request.expect.check(scheme);
    asks.requests.iter().try_for_each(checked)?;
    if options.pipeline > 1 && matches!(options.pace, Pace::Open(ArrivalPlan::Listed(_))) {
        return Err("a log gives each request its own time: leave --pipeline out".to_owned());
    }
    if !scheme.is_grpc() {
        return Mix::new(&asks, &options.headers, options.seed);
    }
    grpc_calls::prepare(&mut asks.requests, options.descriptors.as_ref())?;
    Mix::new(&asks, &grpc_calls::fields(&options.headers)?, options.seed)
}

#[cfg(test)]
pub(crate) mod tests;
