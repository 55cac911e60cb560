//! Round trips over the engine alone: the baseline for `onrush load` and `onrush serve --echo`. Both ends busy-poll.
//!
//! ```text
//! bare_round_trips echo udp|tcp epoll|io_uring CPU ADDRESS
//! bare_round_trips ask  udp|tcp epoll|io_uring CPU ADDRESS BYTES SECONDS     prints percentiles in us
//! ```

use std::env;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{
    Address, Claim, Core, Datagram, Input, Io, Listener, Message, ReceiveBatch, SendBatch, Setup,
    Stream, start,
};

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let io = match &*words[2] {
        "epoll" => Io::Epoll,
        "io_uring" => Io::IoUring,
        other => panic!("{other} is not a driver"),
    };
    let setup = Setup {
        io,
        cpus: vec![Some(words[3].parse().expect("the number of a CPU"))],
    };
    let cores = start(&setup, move |core| {
        core.busy_poll();
        let task = core.clone();
        core.spawn(run(task, words.clone()));
        core.run();
    });
    cores.expect("a core").join();
}

async fn run(core: Core, words: Vec<String>) {
    let [role, protocol, _, _, address, ..] = &*words else {
        panic!("see the first lines of the source");
    };
    let address: std::net::SocketAddr = address.parse().expect("an address");
    match (&**role, &**protocol) {
        ("echo", "udp") => echo_datagrams(&core, address).await,
        ("echo", "tcp") => echo_bytes(&core, address).await,
        _ => {
            let size = words[5].parse().expect("bytes");
            let seconds = words[6].parse().expect("seconds");
            let end = core.now_exact() + Duration::from_secs_f64(seconds);
            let mut times = match &**protocol {
                "udp" => ask_datagrams(&core, address, size, end).await,
                _ => ask_bytes(&core, address, size, end).await,
            };
            times.sort_unstable();
            let at = |share: usize| times[times.len() * share / 100] as f64 / 1000.0;
            println!("p25 {:.3} p50 {:.3}", at(25), at(50));
        }
    }
}

async fn echo_datagrams(core: &Core, address: std::net::SocketAddr) {
    let socket = Datagram::bind(core, address).expect("an address");
    let (mut received, mut sent) = (ReceiveBatch::new(16, 65_535), SendBatch::default());
    loop {
        socket.recv(&mut received).await.expect("a datagram");
        for one in received.iter() {
            let mut buffer = core.buffer().expect("a buffer");
            assert!(buffer.put(one.bytes), "no datagram here is longer");
            let message = Message {
                to: Some(one.from),
                ..Message::new(buffer)
            };
            sent.push(message).expect("there is room");
        }
        while !sent.is_empty() {
            let _ = socket.send(&mut sent).await;
        }
    }
}

async fn ask_datagrams(
    core: &Core,
    address: std::net::SocketAddr,
    size: usize,
    end: onrush_engine::Instant,
) -> Vec<u64> {
    let socket = Datagram::bind(core, "127.0.0.1:0".parse().expect("one")).expect("a socket");
    socket.connect(address).expect("it is there");
    let (mut received, mut sent) = (ReceiveBatch::new(16, 65_535), SendBatch::default());
    let bytes: Rc<[u8]> = vec![7; size].into();
    let mut times = Vec::with_capacity(1 << 22);
    loop {
        let begun = core.now_exact();
        if begun >= end {
            return times;
        }
        sent.push(Message::new(Rc::clone(&bytes))).expect("room");
        socket.send(&mut sent).await.expect("it leaves");
        socket.recv(&mut received).await.expect("an echo");
        times.push(core.now_exact().nanoseconds_since(begun));
    }
}

async fn echo_bytes(core: &Core, address: std::net::SocketAddr) {
    let claim = Claim::new(&Address::Tcp(address)).expect("an address");
    let listener = Listener::new(core, &claim).expect("it listens");
    loop {
        let stream = listener.accept().await.expect("a client");
        let mut input = Input::default();
        while stream.recv(&mut input).await.is_ok_and(|count| count > 0) {
            stream.queue(input.take().expect("something has come"));
            stream.flush().await.expect("it is taken");
        }
    }
}

async fn ask_bytes(
    core: &Core,
    address: std::net::SocketAddr,
    size: usize,
    end: onrush_engine::Instant,
) -> Vec<u64> {
    let address = Address::Tcp(address);
    let stream = Stream::connect(core, &address, None);
    let stream = stream.await.expect("it is there");
    let bytes: Rc<[u8]> = vec![7; size].into();
    let mut times = Vec::with_capacity(1 << 22);
    let mut input = Input::default();
    loop {
        let begun = core.now_exact();
        if begun >= end {
            return times;
        }
        stream.queue(Rc::clone(&bytes));
        stream.flush().await.expect("it is taken");
        while input.bytes().len() < size {
            stream.recv(&mut input).await.expect("an echo");
        }
        input.consume(size);
        times.push(core.now_exact().nanoseconds_since(begun));
    }
}
