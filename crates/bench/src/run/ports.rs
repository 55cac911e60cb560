//! Finds free ports for roles that listen.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Lower ports need privileges.
const FIRST_FREE: u16 = 1_024;
/// Usual start of the range of local ports (ip(7)); a listener above it may conflict with an outgoing connection.
const LOCAL_PORTS_USUALLY: u16 = 32_768;

/// A port that is not in use and below the range of local ports. `taken` are ports reserved for other roles.
///
/// Another program may still take it first; the role then fails to start with an error.
pub(super) fn free_port(taken: &[u16]) -> io::Result<u16> {
    let end = local_ports_start().unwrap_or(LOCAL_PORTS_USUALLY);
    let span = u32::from(end.saturating_sub(FIRST_FREE).max(1));
    // Concurrent runs start at different ports. So do successive trials: connections closed by a server stay in
    // TIME_WAIT for a minute and block its port for servers without SO_REUSEADDR, which the check below does not
    // detect.
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let given = GIVEN.fetch_add(1, Ordering::Relaxed);
    let start = std::process::id().wrapping_mul(257).wrapping_add(given) % span;
    for step in 0..span {
        let port = FIRST_FREE + ((start + step) % span) as u16;
        if !taken.contains(&port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

fn local_ports_start() -> Option<u16> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let start: u16 = range.split_ascii_whitespace().next()?.parse().ok()?;
    (start > FIRST_FREE + 1_000).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_port_excludes_taken_ports() {
        let first = free_port(&[]).expect("a port");
        let second = free_port(&[first]).expect("another port");
        assert_ne!(first, second);
        let third = free_port(&[]).expect("a port");
        assert_ne!(first, third, "it may still be kept by closed connections");
    }
}
