//! Checks before a run that a memcached server responds over UDP, which has no connect that could fail.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};

use onrush_packet::memcached::{FRAME_BYTES, Frame};

use crate::limits::ERROR_BYTES_MAX;
use crate::limits::socket::{PROBE_TIMEOUT, PROBES_MAX};
use crate::pace::error::Error;
use crate::pace::target::lookup::Lookup;
use crate::plan::Plan;
use crate::protocol::memcached::line;

const QUESTION: &[u8] = b"version\r\n";
const ANSWER: &[u8] = b"VERSION ";

/// Returns the first address of the target that answers over UDP.
///
/// # Errors
/// [`Error::Unreachable`] with the reason of the last address if none answers.
pub(crate) fn find(plan: &Plan) -> Result<(SocketAddr, Option<Lookup>), Error> {
    let (addresses, lookup) = plan.options.reach.resolve_datagrams(&plan.options.target)?;
    let mut why = String::new();
    for address in addresses {
        match probe(plan, address) {
            Ok(()) => return Ok((address, lookup)),
            Err(reason) => why = reason,
        }
    }
    Err(Error::Unreachable(why))
}

fn probe(plan: &Plan, address: SocketAddr) -> Result<(), String> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::ConnectionRefused => format!(
            "{address} refused the UDP datagram (port unreachable): memcached serves UDP only with -U PORT"
        ),
        _ => format!("cannot send to {address} over UDP: {error}"),
    };
    let from = plan
        .options
        .reach
        .source_of_datagrams(&address, plan.options.shard);
    let socket = UdpSocket::bind(from).map_err(failed)?;
    socket.connect(address).map_err(failed)?;
    let patience = PROBE_TIMEOUT.min(plan.options.timeout);
    socket.set_read_timeout(Some(patience)).map_err(failed)?;
    let mut answer = [0; FRAME_BYTES + ERROR_BYTES_MAX];
    for id in 0..PROBES_MAX {
        let question = [&Frame::only(id as u16).bytes()[..], QUESTION].concat();
        socket.send(&question).map_err(failed)?;
        match receive(&socket, &mut answer) {
            Ok(bytes) => return judge(address, &answer[..bytes]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Err(format!(
        "{address} did not respond over UDP to {PROBES_MAX} version requests: memcached serves UDP only with -U PORT, \
         or a packet filter drops the datagrams"
    ))
}

/// Receives a datagram; repeats the call after a signal (EINTR).
fn receive(socket: &UdpSocket, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.recv(room) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            received => return received,
        }
    }
}

fn judge(address: SocketAddr, answer: &[u8]) -> Result<(), String> {
    let payload = Frame::read(answer).map(|(_, payload)| payload);
    match payload {
        Ok(payload) if payload.starts_with(ANSWER) => Ok(()),
        Ok(payload) => Err(format!(
            "the server at {address} over UDP is not memcached: its response to a version request is {:?}",
            line::printable(payload, ERROR_BYTES_MAX)
        )),
        Err(_) => Err(format!(
            "the server at {address} over UDP is not memcached: its datagrams lack the frame header of 8 bytes"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn udp_probe_recognizes_other_servers() {
        let address = ([127, 0, 0, 1], 1).into();
        let judge = |payload: &[u8]| {
            let datagram = [&Frame::only(0).bytes()[..], payload].concat();
            judge(address, &datagram)
        };
        assert_eq!(judge(b"VERSION 1.6.18\r\n"), Ok(()));
        // From an echo server.
        let error = judge(QUESTION).unwrap_err();
        assert!(
            error.contains("its response to a version request is \"version??\""),
            "{error}"
        );
        let error = super::judge(address, b"hello").unwrap_err();
        assert!(error.contains("frame header of 8 bytes"), "{error}");
    }
}
