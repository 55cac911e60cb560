//! A lower bound for sending datagrams: a loop that sends the same bytes repeatedly and counts only the calls.
//!
//! `bare_datagrams ADDRESS:PORT single|offload BYTES SECONDS [JSON]` sends one datagram per call of send(2), or 64 in a
//! message that the kernel segments (UDP_SEGMENT, udp(7)), and prints the thread's CPU time for each. It is not a load
//! generator: its datagrams are indistinguishable, and their reception is not checked.

use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Number of datagrams of one message.
const SEGMENTS: usize = 64;

/// Number of messages between two reads of the clock.
const MESSAGES: u64 = 64;

const USAGE: &str = "usage: bare_datagrams ADDRESS:PORT single|offload BYTES SECONDS [JSON]";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, how, bytes, seconds, json @ ..] = &arguments[..] else {
        return Err(USAGE.into());
    };
    let target: SocketAddr = target.parse()?;
    let (bytes, seconds): (u16, f64) = (bytes.parse()?, seconds.parse()?);
    let unspecified = if target.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(unspecified)?;
    socket.connect(target)?;
    let segments = match how.as_str() {
        "single" => 1,
        "offload" => {
            part(&socket, bytes)?;
            SEGMENTS
        }
        _ => return Err(USAGE.into()),
    };
    let message = vec![7; usize::from(bytes) * segments];
    let (mut sent, mut refused) = (0, 0);
    let cpu = onrush_engine::clock::thread_cpu();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs_f64(seconds) {
        for _ in 0..MESSAGES {
            match socket.send(&message) {
                Ok(_) => sent += segments as u64,
                Err(_) => refused += 1,
            }
        }
    }
    let elapsed = begin.elapsed().as_secs_f64();
    let cpu = (onrush_engine::clock::thread_cpu() - cpu).as_secs_f64() * 1e6 / sent.max(1) as f64;
    let rate = sent as f64 / elapsed;
    println!(
        "{sent} datagrams in {elapsed:.2} s: {rate:.0}/s, {cpu:.4} us each, {refused} messages not taken"
    );
    if let [json, ..] = json {
        let text = format!(
            "{{\"sent\": {sent}, \"sent_per_s\": {rate:.1}, \"cpu_us_per_datagram\": {cpu:.5}}}\n"
        );
        std::fs::write(json, text)?;
    }
    Ok(())
}

/// Makes the kernel segment each message into datagrams of this size.
fn part(socket: &UdpSocket, bytes: u16) -> Result<(), std::io::Error> {
    let value = libc::c_int::from(bytes);
    // SAFETY: the option is an int, which outlives the call, and its size is passed.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
