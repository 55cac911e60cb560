//! The kernel's statistics of a TCP connection (TCP_INFO, tcp(7)).

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Statistics of a TCP connection since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo {
    /// Smoothed round-trip time.
    pub round_trip: Duration,
    /// Number of retransmitted segments.
    pub retransmits: u32,
    /// Number of segments sent, including retransmitted ones and ones without data.
    pub segments_out: u32,
    /// Number of bytes that the peer has acknowledged, plus one for the SYN on the side that connected (RFC 4898,
    /// tcpEStatsAppHCThruOctetsAcked). Includes bytes acknowledged together with the peer's end of the stream.
    pub bytes_acknowledged: u64,
    /// Number of bytes received (tcpEStatsAppHCThruOctetsReceived).
    pub bytes_received: u64,
    /// Time since either side last sent data, in milliseconds of the kernel's tick.
    pub idle: Duration,
}

/// Bytes of `struct tcp_info` up to and including `tcpi_segs_out` (linux/tcp.h), which came with Linux 4.2.
const INFO_BYTES: usize = 140;
/// Offset of `tcpi_unacked`, which is the length of the accept queue for a listener.
const UNACKNOWLEDGED_AT: usize = 24;
/// Offsets of `tcpi_last_data_sent` and `tcpi_last_data_recv` (milliseconds ago).
const LAST_SENT_AT: usize = 44;
const LAST_RECEIVED_AT: usize = 52;
/// Offset of `tcpi_bytes_received`.
const BYTES_RECEIVED_AT: usize = 128;
/// Offsets of `tcpi_rtt` (microseconds), `tcpi_total_retrans`, `tcpi_bytes_acked` and `tcpi_segs_out`.
const ROUND_TRIP_AT: usize = 68;
const RETRANSMITS_AT: usize = 100;
const BYTES_ACKNOWLEDGED_AT: usize = 120;
const SEGMENTS_OUT_AT: usize = 136;

impl TcpInfo {
    /// `None` if it is not a TCP socket.
    pub(crate) fn of(descriptor: &OwnedFd) -> Option<TcpInfo> {
        let bytes = read(descriptor.as_raw_fd())?;
        let number = |at| number(&bytes, at);
        let long = |at: usize| {
            let number = bytes[at..at + 8].try_into().expect("eight bytes");
            u64::from_ne_bytes(number)
        };
        Some(TcpInfo {
            round_trip: Duration::from_micros(number(ROUND_TRIP_AT).into()),
            retransmits: number(RETRANSMITS_AT),
            segments_out: number(SEGMENTS_OUT_AT),
            bytes_acknowledged: long(BYTES_ACKNOWLEDGED_AT),
            bytes_received: long(BYTES_RECEIVED_AT),
            idle: Duration::from_millis(number(LAST_SENT_AT).min(number(LAST_RECEIVED_AT)).into()),
        })
    }
}

/// Number of connections in the accept queue; 0 if it is not a listener.
pub(crate) fn waiting(listener: RawFd) -> usize {
    let waiting = read(listener).map(|bytes| number(&bytes, UNACKNOWLEDGED_AT));
    waiting.unwrap_or(0) as usize
}

fn read(descriptor: RawFd) -> Option<[u8; INFO_BYTES]> {
    let mut bytes = [0u8; INFO_BYTES];
    let mut length = INFO_BYTES as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `bytes`, which is that long, and their number to `length`;
    // both outlive the call. It does not change the socket.
    let outcome = unsafe {
        libc::getsockopt(
            descriptor,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (outcome == 0 && length as usize >= INFO_BYTES).then_some(bytes)
}

fn number(bytes: &[u8; INFO_BYTES], at: usize) -> u32 {
    let number = bytes[at..at + 4].try_into().expect("four bytes");
    u32::from_ne_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    #[test]
    fn sent_segments_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let before = TcpInfo::of(&OwnedFd::from(client.try_clone().unwrap())).unwrap();
        for _ in 0..10 {
            client.write_all(b"a").unwrap();
            server.read_exact(&mut [0]).unwrap();
        }
        let after = TcpInfo::of(&OwnedFd::from(client)).unwrap();
        assert!(after.segments_out >= before.segments_out + 10, "{after:?}");
        assert!(after.round_trip > Duration::ZERO);
    }

    #[test]
    fn acknowledged_bytes_exclude_data_after_close() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let pair = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let acknowledged = |client: TcpStream| {
            TcpInfo::of(&OwnedFd::from(client))
                .unwrap()
                .bytes_acknowledged
        };
        let (mut client, mut server) = pair();
        client.write_all(b"abc").unwrap();
        server.read_exact(&mut [0; 3]).unwrap();
        drop(server);
        assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
        assert_eq!(acknowledged(client), 4);
        let (mut client, server) = pair();
        drop(server);
        client.write_all(b"abc").unwrap();
        assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
        assert_eq!(acknowledged(client), 1);
    }

    #[test]
    fn accept_queue_length() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _clients: Vec<_> = (0..3).map(|_| TcpStream::connect(address)).collect();
        assert_eq!(waiting(listener.as_raw_fd()), 3);
        let _server = listener.accept().unwrap();
        assert_eq!(waiting(listener.as_raw_fd()), 2);
        let (socket, _peer) = UnixStream::pair().unwrap();
        assert_eq!(waiting(socket.as_raw_fd()), 0);
    }

    #[test]
    fn unix_socket_has_no_tcp_info() {
        let (socket, _peer) = UnixStream::pair().unwrap();
        assert_eq!(TcpInfo::of(&OwnedFd::from(socket)), None);
    }
}
