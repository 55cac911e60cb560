//! Test harness: a server made of a plan, on one core together with its clients and upstream servers; runs a test on
//! every driver. It does not check responses.

mod script;
#[path = "../../../../tests/seeds.rs"]
mod seeds;
mod undisturbed;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::Protocol;
use onrush_engine::{
    Address, Claim, Core, DatagramClaim, Error, Input, Io, Listener, Simulation, Stream,
};

use crate::observe::trace::Tracing;
use crate::proxy::Group;
use crate::server;
use crate::server::listener_claims::ListenerClaims;
use crate::site::service::Service;
use crate::site::{Resources, Site};
use crate::worker::connection_budget::ConnectionBudget;
use crate::worker::descriptor_shares::Shares;
use crate::worker::time_slice::{TimeSlice, run_unsliced};

use seeds::seeds;
pub(crate) use undisturbed::on_undisturbed_cores;

pub(crate) use script::{
    Outcome, Step, Upstream, forward, forward_undisturbed, forward_undisturbed_with, forward_with,
    send,
};

/// Number of simulated networks; each has its own short reads, delays and reordering.
const SEEDS: u64 = 16;

/// A client that waits longer than this fails its test. Virtual on simulated cores.
pub(crate) const PATIENCE: Duration = Duration::from_secs(200);

/// Sends `request` to a server made of `plan`, on every driver, and returns all bytes until the connection ends. The
/// client closes its side after the request. Each `Date` is masked with dashes, and then all drivers must have produced
/// the same response.
pub(crate) fn exchange(plan: &Plan, request: &[u8]) -> Vec<u8> {
    let response: Rc<Cell<Option<Vec<u8>>>> = Rc::default();
    on_every_driver(|site| {
        let (plan, request, response) = (plan.clone(), request.to_vec(), Rc::clone(&response));
        async move {
            let address = site.serve(&plan);
            let received = without_dates(site.connect(&address).await.exchange(&request).await);
            if let Some(before) = response.take() {
                assert!(
                    before == received,
                    "drivers respond differently:\n{}\n-- and --\n{}",
                    before.escape_ascii(),
                    received.escape_ascii()
                );
            }
            response.set(Some(received));
        }
    });
    response.take().expect("the simulated driver exists")
}

pub(crate) fn exchange_text(plan: &Plan, request: &str) -> String {
    String::from_utf8(exchange(plan, request.as_bytes())).expect("a response in UTF-8")
}

/// Runs `test` on a core of every driver: epoll, io_uring if the kernel has it, and simulated networks.
pub(crate) fn on_every_driver<F, T>(test: F)
where
    F: Fn(TestCore) -> T,
    T: Future<Output = ()> + 'static,
{
    cores().for_each(|ground| run(ground, &test));
}

/// [`on_every_driver`] for a test that stops its core early. Returns how many tasks were cut off on each.
pub(crate) fn cut_off_on_every_driver<F, T>(test: F) -> Vec<usize>
where
    F: Fn(TestCore) -> T,
    T: Future<Output = ()> + 'static,
{
    cores().map(|ground| run_cut_off(ground, &test)).collect()
}

struct TestDriver {
    core: Core,
    /// Maximum number of buffers that the kernel holds while the core lives; tasks must have returned all others.
    lent_max: usize,
}

impl TestDriver {
    fn simulated(simulation: Simulation) -> Self {
        Self {
            core: Core::simulated(simulation),
            lent_max: 0,
        }
    }
}

fn cores() -> impl Iterator<Item = TestDriver> {
    kernel_cores().chain(simulated_cores())
}

fn kernel_cores() -> impl Iterator<Item = TestDriver> {
    [Io::Epoll, Io::IoUring].into_iter().filter_map(|io| {
        let refused = onrush_engine::choose(io).err();
        match &refused {
            Some(reason) => eprintln!("{io:?} is skipped: {reason}"),
            None => eprintln!("{io:?}"),
        }
        refused.is_none().then(|| TestDriver {
            core: Core::new(0, io).expect("chosen"),
            lent_max: if io == Io::IoUring { 256 } else { 0 },
        })
    })
}

fn simulated_cores() -> impl Iterator<Item = TestDriver> {
    seeds(SEEDS).map(|seed| {
        eprintln!("simulated, seed {seed}");
        TestDriver::simulated(Simulation::with_seed(seed))
    })
}

/// Runs `test` on simulated networks only, for tests in which time passes.
pub(crate) fn on_simulated_cores<F, T>(test: F)
where
    F: Fn(TestCore) -> T,
    T: Future<Output = ()> + 'static,
{
    simulated_cores().for_each(|ground| run(ground, &test));
}

/// Runs `test` on the kernel's drivers.
pub(crate) fn on_kernel_cores<F, T>(test: F)
where
    F: Fn(TestCore) -> T,
    T: Future<Output = ()> + 'static,
{
    kernel_cores().for_each(|ground| run(ground, &test));
}

/// Runs `test` on one simulated network that also resets `reset` of a thousand sends.
pub(crate) fn on_resetting_core<F, T>(seed: u64, reset: u32, test: F)
where
    F: Fn(TestCore) -> T,
    T: Future<Output = ()> + 'static,
{
    let simulation = Simulation {
        reset,
        ..Simulation::with_seed(seed)
    };
    run(TestDriver::simulated(simulation), &test);
}

/// [`on_resetting_core`] for a test that stops its core early. Returns how many tasks were cut off.
pub(crate) fn cut_off_on_resetting_core<F, T>(seed: u64, reset: u32, test: F) -> usize
where
    F: Fn(TestCore) -> T,
    T: Future<Output = ()> + 'static,
{
    let simulation = Simulation {
        reset,
        ..Simulation::with_seed(seed)
    };
    run_cut_off(TestDriver::simulated(simulation), &test)
}

/// Runs `test` on one simulated network.
pub(crate) fn on_simulated_core<F, T>(seed: u64, test: F)
where
    F: Fn(TestCore) -> T,
    T: Future<Output = ()> + 'static,
{
    run(TestDriver::simulated(Simulation::with_seed(seed)), &test);
}

fn run<F, T>(ground: TestDriver, test: &F)
where
    F: Fn(TestCore) -> T,
    T: Future<Output = ()> + 'static,
{
    assert_eq!(run_cut_off(ground, test), 0, "all tasks came to their end");
}

/// Runs `test` and all tasks of its core until they end or time out. Returns how many tasks were cut off.
fn run_cut_off<F, T>(ground: TestDriver, test: &F) -> usize
where
    F: Fn(TestCore) -> T,
    T: Future<Output = ()> + 'static,
{
    let TestDriver { core, lent_max } = ground;
    let finished = Rc::new(Cell::new(false));
    let seen = Rc::clone(&finished);
    let body = test(TestCore {
        core: core.clone(),
        claims: Rc::default(),
    });
    let stopping = core.clone();
    core.spawn(async move {
        body.await;
        seen.set(true);
        stopping.stop(PATIENCE);
    });
    let cut_off = core.run();
    assert!(finished.get(), "the test came to its end");
    let lent = core.pool().in_use();
    assert!(
        lent <= lent_max,
        "{lent} buffers were not returned (limit {lent_max})"
    );
    cut_off
}

/// One core and everything a test runs on it.
#[derive(Clone)]
pub(crate) struct TestCore {
    pub(crate) core: Core,
    /// Held so that the next claim does not get the same port.
    claims: Rc<RefCell<Vec<Arc<Claim>>>>,
}

impl TestCore {
    /// Serves `plan` on a free port, ignoring its address; returns the address.
    pub(crate) fn serve(&self, plan: &Plan) -> Address {
        self.serve_worker(plan).0
    }

    /// [`TestCore::serve`] that also returns the service.
    pub(crate) fn serve_worker(&self, plan: &Plan) -> (Address, Rc<Service>) {
        self.serve_within(plan, Shares::UNLIMITED)
    }

    /// [`TestCore::serve_worker`] with these shares of the limit on open files.
    pub(crate) fn serve_within(&self, plan: &Plan, shares: Shares) -> (Address, Rc<Service>) {
        let resources = resources(plan, shares, None);
        self.prepared(&resources)
    }

    /// Serves `plan`; also returns the values needed to [`TestCore::apply`] another one.
    pub(crate) fn serve_to_change(&self, plan: &Plan) -> (Address, Rc<Service>, Resources) {
        let resources = resources(plan, Shares::UNLIMITED, None);
        let (address, service) = self.prepared(&resources);
        (address, service, resources)
    }

    pub(crate) fn serve_all(&self, plan: &Plan) -> Vec<Address> {
        let resources = resources(plan, Shares::UNLIMITED, None);
        self.prepared_at(plan.listen.len(), &resources).0
    }

    fn prepared(&self, resources: &Resources) -> (Address, Rc<Service>) {
        let (mut addresses, service) = self.prepared_at(1, resources);
        (addresses.remove(0), service)
    }

    /// Serves the first `listeners` of the configuration.
    fn prepared_at(&self, listeners: usize, resources: &Resources) -> (Vec<Address>, Rc<Service>) {
        let listen = resources.plan.listen.iter().take(listeners);
        let holds: Vec<_> = listen.map(|listen| hold(&listen.protocol)).collect();
        let addresses = holds.iter().map(ListenerClaims::address).collect();
        let crowd = ConnectionBudget::new(resources.shares);
        let prepared = server::prepare(&self.core, resources, &crowd, &holds);
        let claims = holds.into_iter().filter_map(|hold| hold.streams);
        self.claims.borrow_mut().extend(claims);
        (addresses, prepared.expect("the plan can be served").0)
    }

    pub(crate) fn apply(&self, service: &Service, before: &Resources, plan: &Plan) -> Resources {
        run_unsliced(async |slice| self.apply_in_slices(service, before, plan, slice).await)
    }

    /// [`TestCore::apply`], with pauses between the slices.
    pub(crate) async fn apply_in_slices(
        &self,
        service: &Service,
        before: &Resources,
        plan: &Plan,
        slice: &mut TimeSlice,
    ) -> Resources {
        let resources = resources(plan, before.shares, Some(before));
        let before = service.site();
        match Site::new(&service.worker, &resources, Some(&before), slice).await {
            Ok(site) => drop(service.take_over(&site)),
            Err((path, error)) => panic!("{path}: {error}"),
        }
        service.change_upkeep(before, slice).await;
        resources
    }

    /// A listener of a server played by the test.
    pub(crate) fn listen(&self) -> (Listener, SocketAddr) {
        let claim = claim();
        let Address::Tcp(address) = *claim.address() else {
            unreachable!("claims here are of TCP")
        };
        let listener = Listener::new(&self.core, &claim).expect("a free port");
        self.claims.borrow_mut().push(Arc::new(claim));
        (listener, address)
    }

    pub(crate) fn listen_again(&self, address: SocketAddr) -> Listener {
        let claims = self.claims.borrow();
        let mut claims = claims.iter();
        let claim = claims.find(|claim| *claim.address() == Address::Tcp(address));
        Listener::new(&self.core, claim.expect("claimed before")).expect("its port is still ours")
    }

    pub(crate) async fn connect(&self, address: &Address) -> Peer {
        let stream = Stream::connect(&self.core, address, None).await;
        Peer::new(stream.expect("somebody listens"))
    }
}

pub(crate) fn configured(text: &str) -> Plan {
    match onrush_config::parse(text, std::path::Path::new("onrush.toml")) {
        Ok(parsed) => parsed.plan,
        Err(errors) => panic!("{text}\nis refused:\n{errors}"),
    }
}

impl Service {
    /// The group with this index in the configuration in force.
    pub(crate) fn group(&self, index: usize) -> Rc<Group> {
        Rc::clone(&self.site().groups[index])
    }
}

pub(crate) fn resources(plan: &Plan, shares: Shares, before: Option<&Resources>) -> Resources {
    let found = crate::site::check::read(plan).expect("a test has the files of its plan");
    let tracing = plan
        .tracing
        .as_ref()
        .map(|plan| Tracing::without_exporter(plan, 1));
    Resources::new(plan.clone(), found, (shares, None, tracing), before)
        .expect("a thread for passwords")
}

/// Claims a free port, ignoring the plan's address.
fn hold(protocol: &Protocol) -> ListenerClaims {
    let transport = protocol.transport();
    loop {
        let streams = transport.has_tcp().then(|| Arc::new(claim()));
        let address = match streams.as_ref().map(|claim| claim.address()) {
            Some(Address::Tcp(address)) => *address,
            Some(Address::Unix(_)) | None => ([127, 0, 0, 1], 0).into(),
        };
        let datagrams = match transport.has_udp() {
            false => None,
            true => match DatagramClaim::new(address, 1, None) {
                Ok(claim) => Some(Arc::new(claim)),
                Err(error) if error.is_address_in_use() => continue,
                Err(error) => panic!("{error}"),
            },
        };
        return ListenerClaims { streams, datagrams };
    }
}

fn claim() -> Claim {
    Claim::new(&Address::Tcp(([127, 0, 0, 1], 0).into())).expect("a free port")
}

/// The test's end of a connection, as client or server.
pub(crate) struct Peer {
    pub(crate) stream: Rc<Stream>,
    input: Input,
}

impl Peer {
    pub(crate) fn new(stream: Stream) -> Self {
        stream.set_deadline(Some(stream.core().now_exact() + PATIENCE));
        Self {
            stream: Rc::new(stream),
            input: Input::default(),
        }
    }

    /// Sends `bytes`, closes its side and returns all received bytes.
    pub(crate) async fn exchange(&mut self, bytes: &[u8]) -> Vec<u8> {
        let (stream, bytes) = (Rc::clone(&self.stream), bytes.to_vec());
        self.stream.core().spawn(async move {
            // The peer may close the connection first.
            if send_bytes(&stream, &bytes).await.is_ok() {
                let _ = stream.shutdown().await;
            }
        });
        self.receive_all().await
    }

    pub(crate) async fn send(&self, bytes: &[u8]) {
        send_bytes(&self.stream, bytes)
            .await
            .expect("the other side takes it");
    }

    /// Sends `bytes` in the background; the peer may close the connection first.
    pub(crate) fn send_in_background(&self, bytes: &[u8]) {
        let (stream, bytes) = (Rc::clone(&self.stream), bytes.to_vec());
        self.stream.core().spawn(async move {
            let _ = send_bytes(&stream, &bytes).await;
        });
    }

    /// Closes this side.
    pub(crate) async fn finish(&self) {
        self.stream
            .shutdown()
            .await
            .expect("the other side takes it");
    }

    /// Receives until the peer closes or resets the connection.
    pub(crate) async fn receive_all(&mut self) -> Vec<u8> {
        let mut received = self.take();
        while let Ok(1..) = self.receive().await {
            received.extend(self.take());
        }
        received
    }

    /// Receives the rest after its core has ended; returns whether it ends with a reset.
    pub(crate) fn rest(mut self) -> (Vec<u8>, bool) {
        let core = self.stream.core().clone();
        let rest: Rc<Cell<Option<_>>> = Rc::default();
        let seen = Rc::clone(&rest);
        core.spawn(async move { seen.set(Some(self.receive_all_or_reset().await)) });
        core.run();
        rest.take().expect("it comes to an end")
    }

    /// Receives until the connection ends; returns whether that is a reset.
    pub(crate) async fn receive_all_or_reset(&mut self) -> (Vec<u8>, bool) {
        let mut received = self.take();
        loop {
            match self.receive().await {
                Ok(0) => return (received, false),
                Ok(_) => received.extend(self.take()),
                Err(error) => {
                    assert!(error.is_reset(), "{error}");
                    return (received, true);
                }
            }
        }
    }

    /// Receives up to the first `end`. Returns false if the connection ends first.
    pub(crate) async fn receive_until_or_end(&mut self, end: &[u8]) -> bool {
        let mut received = self.take();
        while memchr::memmem::find(&received, end).is_none() {
            match self.receive().await {
                Ok(1..) => received.extend(self.take()),
                Ok(_) | Err(_) => return false,
            }
        }
        true
    }

    /// Waits for more bytes or the end. Returns whether it is the end.
    pub(crate) async fn is_over(&mut self) -> bool {
        self.input.is_empty() && !matches!(self.receive().await, Ok(1..))
    }

    /// Receives up to and including the first `end`.
    pub(crate) async fn receive_until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut received = Vec::new();
        loop {
            let from = received.len().saturating_sub(end.len() - 1);
            received.extend_from_slice(self.input.bytes());
            if let Some(at) = memchr::memmem::find(&received[from..], end) {
                let surplus = received.len() - (from + at + end.len());
                received.truncate(received.len() - surplus);
                self.input.consume(self.input.bytes().len() - surplus);
                return received;
            }
            self.take();
            let count = self.receive().await;
            assert!(
                matches!(count, Ok(1..)),
                "{count:?} instead of {:?} after {:?}",
                end.escape_ascii().to_string(),
                received.escape_ascii().to_string()
            );
        }
    }

    pub(crate) async fn receive_exactly(&mut self, count: usize) -> Vec<u8> {
        let mut received = Vec::new();
        loop {
            let taken = self.input.bytes().len().min(count - received.len());
            received.extend_from_slice(&self.input.bytes()[..taken]);
            self.input.consume(taken);
            if received.len() == count {
                return received;
            }
            let more = self.receive().await;
            assert!(matches!(more, Ok(1..)), "{more:?} instead of more bytes");
        }
    }

    /// Receives one message with `Content-Length`, head and body, the date masked.
    pub(crate) async fn receive_message(&mut self) -> String {
        let mut message = self.receive_until(b"\r\n\r\n").await;
        let head = String::from_utf8_lossy(&message).to_ascii_lowercase();
        let length = head
            .split("\r\n")
            .find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |digits| digits.parse().expect("a number"));
        message.extend(self.receive_exactly(length).await);
        String::from_utf8(without_dates(message)).expect("a message in UTF-8")
    }

    fn take(&mut self) -> Vec<u8> {
        let bytes = self.input.bytes().to_vec();
        self.input.consume(bytes.len());
        bytes
    }

    async fn receive(&mut self) -> Result<usize, Error> {
        self.stream.recv(&mut self.input).await
    }
}

pub(crate) async fn send_bytes(stream: &Stream, bytes: &[u8]) -> Result<(), Error> {
    for piece in bytes.chunks(onrush_engine::BUFFER_BYTES) {
        let mut buffer = stream.core().buffer()?;
        let fits = buffer.put(piece);
        assert!(fits, "a piece is as large as a buffer at most");
        stream.queue(buffer);
        stream.flush().await?;
    }
    Ok(())
}

/// Masks the value of each `Date` with dashes.
fn without_dates(mut bytes: Vec<u8>) -> Vec<u8> {
    const FIELD: &[u8] = b"\r\nDate: ";
    let found: Vec<usize> = memchr::memmem::find_iter(&bytes, FIELD).collect();
    for at in found {
        let start = at + FIELD.len();
        let end = (start + onrush_http::date::DATE_BYTES).min(bytes.len());
        bytes[start..end].fill(b'-');
    }
    bytes
}

mod tests {
    use onrush_config::plan::OneLiner;

    use super::*;

    #[test]
    fn fixed_response_is_equal_on_all_drivers() {
        let what = OneLiner::Respond {
            status: 200,
            body: b"ok".to_vec(),
        };
        let plan = Plan::one_liner(what, Vec::new());
        let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let response = exchange_text(&plan, &request.repeat(3));
        assert_eq!(response.matches("\r\n\r\nok").count(), 3, "{response}");
    }
}
