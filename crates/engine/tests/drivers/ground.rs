//! Test helpers: a core of every driver, with a listener on every kind of address.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use onrush_engine::{
    Address, BUFFER_BYTES, Claim, Core, Error, Input, Io, Listener, Simulation, Stream,
};

pub(crate) use crate::seeds::seeds;

pub(crate) const SEEDS: u64 = 40;

/// The addresses on which a kernel driver is tested.
pub(crate) fn addresses(directory: &std::path::Path) -> Vec<Address> {
    vec![
        Address::Tcp("127.0.0.1:0".parse().unwrap()),
        Address::Tcp("[::1]:0".parse().unwrap()),
        Address::Unix(directory.join("socket")),
    ]
}

/// Runs `test` on a core of every driver, with a listener on every kind of address.
pub(crate) fn on_every_driver<F, T>(test: F)
where
    F: Fn(Core, Listener, Address) -> T,
    T: Future<Output = ()> + 'static,
{
    let directory = tempfile::tempdir().unwrap();
    for io in [Io::Epoll, Io::IoUring] {
        if onrush_engine::choose(io).is_err() {
            eprintln!("skipped: this kernel has no {io:?}");
            continue;
        }
        for address in addresses(directory.path()) {
            eprintln!("{io:?} on {address}");
            run_one(Core::new(0, io).unwrap(), &address, &test);
        }
    }
    for seed in seeds(SEEDS) {
        eprintln!("simulated, seed {seed}");
        let core = Core::simulated(Simulation::with_seed(seed));
        run_one(core, &Address::Tcp("127.0.0.1:0".parse().unwrap()), &test);
    }
}

fn run_one<F, T>(core: Core, address: &Address, test: &F)
where
    F: Fn(Core, Listener, Address) -> T,
    T: Future<Output = ()> + 'static,
{
    let claim = Claim::new(address).unwrap();
    let listener = Listener::new(&core, &claim).unwrap();
    let body = test(core.clone(), listener, claim.address().clone());
    run(&core, body);
    // Tasks have returned their buffers by now; with io_uring the kernel holds some while the core exists.
    drop(claim);
}

/// Runs the core until `body` and all tasks that it has spawned have ended.
pub(crate) fn run(core: &Core, body: impl Future<Output = ()> + 'static) {
    let finished = Rc::new(Cell::new(false));
    let seen = Rc::clone(&finished);
    core.spawn(async move {
        body.await;
        seen.set(true);
    });
    let cut_off = core.run();
    assert!(finished.get(), "the test's task ended");
    assert_eq!(cut_off, 0, "all tasks ended");
}

pub(crate) fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 31 % 251) as u8).collect()
}

pub(crate) async fn send(stream: &Stream, bytes: &[u8]) -> Result<(), Error> {
    for piece in bytes.chunks(BUFFER_BYTES) {
        let mut buffer = stream.core().buffer()?;
        assert!(buffer.put(piece));
        stream.queue(buffer);
        stream.flush().await?;
    }
    Ok(())
}

pub(crate) async fn receive_all(stream: &Stream) -> Result<Vec<u8>, Error> {
    let mut input = Input::default();
    let mut all = Vec::new();
    while stream.recv(&mut input).await? > 0 {
        all.extend_from_slice(input.bytes());
        input.consume(input.bytes().len());
    }
    Ok(all)
}

/// Echoes all bytes, buffer by buffer, without a copy.
pub(crate) async fn echo(stream: Stream) {
    let mut input = Input::default();
    while stream.recv(&mut input).await.unwrap() > 0 {
        stream.queue(input.take().unwrap());
        stream.flush().await.unwrap();
    }
    stream.shutdown().await.unwrap();
}

/// Waits until the number of buffers in use is stable, and returns its maximum.
pub(crate) async fn peak_buffers_in_use(core: &Core) -> usize {
    let (mut most, mut last, mut calm) = (0, 0, 0);
    while calm < 20 {
        core.sleep(Duration::from_millis(1)).await;
        let now = core.pool().in_use();
        calm = if now == last { calm + 1 } else { 0 };
        (most, last) = (most.max(now), now);
    }
    most
}

pub(crate) async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
}
