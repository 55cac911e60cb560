//! A lower bound for clients: an epoll loop that requests values from memcached and counts the bytes of the answers,
//! without measuring latencies, parsing answers, tasks or timers.
//!
//! `bare_memcached 127.0.0.1:11211 get|mg CONNECTIONS PIPELINE SECONDS FILE` stores 10,000 values of 100 bytes,
//! requests random ones, PIPELINE at once on each of CONNECTIONS connections, and writes the number of answers to FILE.
//! It is not a client: it derives the number of answers from the number of bytes.

use std::error::Error;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use onrush_engine::random::Random;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::set_tcp_nodelay;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};

const KEYS: u64 = 10_000;
const VALUE_BYTES: usize = 100;

/// The request, and the length of its answer.
#[derive(Clone, Copy)]
struct Asked {
    before: &'static [u8],
    behind: &'static [u8],
    answer_bytes: usize,
    pipeline: usize,
}

impl Asked {
    fn new(command: &str, pipeline: usize) -> Result<Asked, String> {
        let (before, behind, rest): (&[u8], &[u8], usize) = match command {
            "get" => (
                b"get ",
                b"\r\n",
                "VALUE k000000000000000 0 100\r\n\r\nEND\r\n".len(),
            ),
            "mg" => (b"mg ", b" v\r\n", "VA 100\r\n\r\n".len()),
            _ => return Err(format!("{command:?} is not asked here: get or mg")),
        };
        Ok(Asked {
            before,
            behind,
            answer_bytes: rest + VALUE_BYTES,
            pipeline,
        })
    }

    /// Sends a batch of requests and returns the total length of their answers.
    fn send(&self, socket: &OwnedFd, random: &Random, text: &mut Vec<u8>) -> Result<usize, Errno> {
        text.clear();
        for _ in 0..self.pipeline {
            text.extend_from_slice(self.before);
            write_key(random.below(KEYS), text);
            text.extend_from_slice(self.behind);
        }
        send(socket, text, SendFlags::NOSIGNAL)?;
        Ok(self.answer_bytes * self.pipeline)
    }
}

/// A letter and fifteen digits.
fn write_key(mut number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"k000000000000000");
    let mut at = out.len();
    while number > 0 {
        at -= 1;
        out[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// A connection, and the bytes of answers still expected.
struct Connection {
    socket: OwnedFd,
    left: usize,
}

fn open(address: &SocketAddr) -> Result<OwnedFd, Errno> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_tcp_nodelay(&socket, true)?;
    connect(&socket, address)?;
    Ok(socket)
}

/// Stores all values in large batches, which takes a thousandth of the measurement.
fn store(address: &SocketAddr) -> Result<(), Box<dyn Error>> {
    const BATCH: u64 = 100;
    let socket = open(address)?;
    let mut buffer = [0; 4096];
    let mut text = Vec::new();
    for first in (0..KEYS).step_by(BATCH as usize) {
        text.clear();
        for key in first..first + BATCH {
            text.extend_from_slice(b"set ");
            write_key(key, &mut text);
            text.extend_from_slice(format!(" 0 0 {VALUE_BYTES}\r\n").as_bytes());
            text.resize(text.len() + VALUE_BYTES, b'v');
            text.extend_from_slice(b"\r\n");
        }
        send(&socket, &text, SendFlags::NOSIGNAL)?;
        let mut answers = Vec::new();
        while answers.len() < BATCH as usize * b"STORED\r\n".len() {
            match recv(&socket, &mut buffer[..], RecvFlags::empty())? {
                (_, 0) => return Err("the server has closed".into()),
                (_, count) => answers.extend_from_slice(&buffer[..count]),
            }
        }
        if answers != b"STORED\r\n".repeat(BATCH as usize) {
            return Err("a value was not stored".into());
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, command, connections, pipeline, seconds, file] = &words[..] else {
        return Err(
            "usage: bare_memcached ADDRESS:PORT get|mg CONNECTIONS PIPELINE SECONDS FILE".into(),
        );
    };
    let address: SocketAddr = address.parse()?;
    let asked = Asked::new(command, pipeline.parse()?)?;
    store(&address)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut connections: Vec<Connection> = (0..connections.parse::<u64>()?)
        .map(|number| {
            let socket = open(&address)?;
            ioctl_fionbio(&socket, true)?;
            let interest = EventFlags::IN | EventFlags::ET;
            epoll::add(&epoll, &socket, EventData::new_u64(number), interest)?;
            Ok(Connection { socket, left: 0 })
        })
        .collect::<Result<_, Errno>>()?;
    let begin = Instant::now();
    let (answers, bytes) = ask(
        &epoll,
        &mut connections,
        asked,
        begin + Duration::from_secs(seconds.parse()?),
    )?;
    let seconds = begin.elapsed().as_secs_f64();
    let per_second = |count: usize| count as f64 / seconds;
    let text = format!(
        r#"{{"requests":{answers},"errors":0,"duration_s":{seconds},"rps":{},"bytes_per_s":{},"latency_us":null}}"#,
        per_second(answers),
        per_second(bytes),
    );
    Ok(std::fs::write(file, text)?)
}

/// Sends requests until `end`; returns the numbers of answers and bytes.
fn ask(
    epoll: &OwnedFd,
    connections: &mut [Connection],
    asked: Asked,
    end: Instant,
) -> Result<(usize, usize), Box<dyn Error>> {
    let random = Random::new(0);
    let (mut text, mut buffer) = (Vec::new(), vec![0; 16 * 1024]);
    let (mut answers, mut bytes) = (0, 0);
    let mut list = [MaybeUninit::<epoll::Event>::uninit(); 256];
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    for Connection { socket, left } in &mut *connections {
        *left = asked.send(socket, &random, &mut text)?;
    }
    while Instant::now() < end {
        let ready = match epoll::wait(epoll, &mut list[..], Some(&patience)) {
            Ok((ready, _)) => ready,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        for event in ready {
            let Connection { socket, left } = &mut connections[event.data.u64() as usize];
            let count = match recv(&*socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((_, count)) => count,
                Err(Errno::AGAIN) => continue,
                Err(errno) => return Err(errno.into()),
            };
            if count == 0 || count > *left {
                return Err("an answer is not the hit that it should be".into());
            }
            bytes += count;
            *left -= count;
            if *left == 0 {
                answers += asked.pipeline;
                *left = asked.send(socket, &random, &mut text)?;
            }
        }
    }
    Ok((answers, bytes))
}
