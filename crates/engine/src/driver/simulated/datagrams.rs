//! Datagrams on a simulated network: they are lost, duplicated and reordered.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;

use super::{Simulated, SimulatedEvent};
use crate::driver::event::{Event, Readiness};
use crate::limits::{DATAGRAM_BYTES_MAX, SIMULATED_DATAGRAMS_MAX};
use crate::socket::batch::{ReceiveBatch, Segmentation, SendBatch};
use crate::socket::control::Ecn;
use crate::socket::key::Key;
use crate::socket::{Ended, Socket, Sockets};

#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InTransit {
    from: SocketAddr,
    to: SocketAddr,
    ecn: Ecn,
    bytes: Vec<u8>,
    /// Index and ID of the sending socket, for a refusal.
    sender: (u32, u64),
}

struct Endpoint {
    /// Distinguishes it from an earlier socket in the same slot.
    id: u64,
    address: SocketAddr,
    peer: Option<SocketAddr>,
    /// Arrived and not yet received; at most [`SIMULATED_DATAGRAMS_MAX`].
    inbox: VecDeque<InTransit>,
    /// A datagram was refused, and no operation has reported it yet.
    is_refused: bool,
}

#[derive(Default)]
pub(super) struct Datagrams {
    endpoints: HashMap<u32, Endpoint>,
    by_address: HashMap<SocketAddr, Key>,
}

/// The first port assigned to a socket that requests none: the start of the dynamic ports (RFC 6335 6).
const PORTS_FROM: u16 = 49_152;

impl Datagrams {
    /// Removes a datagram socket; returns whether the socket was one.
    pub(super) fn close(&mut self, key: Key) -> bool {
        let Some(endpoint) = self.endpoints.remove(&key.0) else {
            return false;
        };
        self.by_address.remove(&endpoint.address);
        true
    }

    /// Handles an event of a datagram socket; returns whether the socket still exists.
    pub(super) fn happen(&mut self, key: Key, id: u64, what: &SimulatedEvent) -> bool {
        let endpoint = self.endpoints.get_mut(&key.0);
        let Some(endpoint) = endpoint.filter(|endpoint| endpoint.id == id) else {
            return false;
        };
        endpoint.is_refused |= *what == SimulatedEvent::Refused;
        true
    }

    /// The socket that receives datagrams to an address: one bound to it, or one bound to all addresses with its port.
    fn find(&self, to: SocketAddr) -> Option<Key> {
        let unspecified = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let any = SocketAddr::new(unspecified, to.port());
        let found = self.by_address.get(&to).or(self.by_address.get(&any));
        found.copied()
    }

    fn endpoint(&mut self, key: Key) -> &mut Endpoint {
        self.endpoints
            .get_mut(&key.0)
            .expect("a datagram socket of a simulated core is simulated")
    }
}

impl Simulated {
    pub(super) fn bind_endpoint(
        &mut self,
        address: SocketAddr,
        sockets: &mut Sockets,
    ) -> Result<(Key, SocketAddr), Errno> {
        let datagrams = &mut self.datagrams;
        let mut address = address;
        if address.port() == 0 {
            let is_free = |port: &u16| {
                let taken = SocketAddr::new(address.ip(), *port);
                !datagrams.by_address.contains_key(&taken)
            };
            let port = (PORTS_FROM..=u16::MAX).find(is_free);
            address.set_port(port.ok_or(Errno::ADDRINUSE)?);
        }
        if datagrams.by_address.contains_key(&address) {
            return Err(Errno::ADDRINUSE);
        }
        let mut socket = Socket::new(None);
        socket.writable = true;
        let key = sockets.insert(socket);
        // IDs are unique across connections and datagram sockets, so no two sockets of a slot share one.
        self.connections += 1;
        let endpoint = Endpoint {
            id: self.connections,
            address,
            peer: None,
            inbox: VecDeque::new(),
            is_refused: false,
        };
        datagrams.endpoints.insert(key.0, endpoint);
        datagrams.by_address.insert(address, key);
        Ok((key, address))
    }

    pub(super) fn connect_endpoint(
        &mut self,
        key: Key,
        peer: SocketAddr,
    ) -> Result<SocketAddr, Errno> {
        let endpoint = self.datagrams.endpoint(key);
        if endpoint.address.is_ipv4() != peer.is_ipv4() {
            return Err(Errno::AFNOSUPPORT);
        }
        endpoint.peer = Some(peer);
        Ok(source(endpoint.address, peer))
    }

    /// Sends some of the batch, each segment as a datagram.
    pub(super) fn send_batch(&mut self, key: Key, batch: &mut SendBatch) -> Result<usize, Errno> {
        let id = self.take_refusal(key)?;
        if self.injects_again(key, id) {
            return Err(Errno::AGAIN);
        }
        let mut count = 0;
        while let Some((message, bytes)) = batch.first() {
            let endpoint = self.datagrams.endpoint(key);
            let Some(to) = message.to.or(endpoint.peer) else {
                return sent(count, Errno::DESTADDRREQ);
            };
            if bytes.len() > DATAGRAM_BYTES_MAX {
                return sent(count, Errno::MSGSIZE);
            }
            let mut from = source(endpoint.address, to);
            from.set_ip(message.from.unwrap_or(from.ip()));
            let (ecn, bytes) = (message.ecn, bytes.to_vec());
            let copies = if self.occurs_randomly(self.options.lost) {
                0
            } else {
                1 + u32::from(self.occurs_randomly(self.options.duplicated))
            };
            for _ in 0..copies {
                // Scheduled independently of earlier datagrams, so it may overtake them.
                let flight = InTransit {
                    from,
                    to,
                    ecn,
                    bytes: bytes.clone(),
                    sender: (key.0, id),
                };
                self.schedule(key, id, SimulatedEvent::Datagram(Box::new(flight)));
            }
            batch.consume(Segmentation::Engine);
            count += 1;
            if self.occurs_randomly(self.options.short) {
                break;
            }
        }
        Ok(count)
    }

    pub(super) fn recv_batch(
        &mut self,
        key: Key,
        batch: &mut ReceiveBatch,
    ) -> Result<usize, Errno> {
        batch.clear();
        let id = self.take_refusal(key)?;
        if self.datagrams.endpoint(key).inbox.is_empty() || self.injects_again(key, id) {
            return Err(Errno::AGAIN);
        }
        let mut count = 0;
        while batch.has_room() {
            let Some(flight) = self.datagrams.endpoint(key).inbox.pop_front() else {
                break;
            };
            batch.put(&flight.bytes, flight.from, flight.to.ip(), flight.ecn);
            count += 1;
            if self.occurs_randomly(self.options.short) {
                break;
            }
        }
        Ok(count)
    }

    /// The socket's ID, or `ECONNREFUSED` once after a datagram was refused.
    fn take_refusal(&mut self, key: Key) -> Result<u64, Errno> {
        let endpoint = self.datagrams.endpoint(key);
        match std::mem::take(&mut endpoint.is_refused) {
            true => Err(Errno::CONNREFUSED),
            false => Ok(endpoint.id),
        }
    }

    pub(super) fn arrive(&mut self, flight: InTransit, events: &mut Vec<Event>) {
        let Some(key) = self.datagrams.find(flight.to) else {
            return self.refuse(&flight);
        };
        let endpoint = self.datagrams.endpoint(key);
        let is_wanted = endpoint.peer.is_none_or(|peer| peer == flight.from);
        if !is_wanted || endpoint.inbox.len() == SIMULATED_DATAGRAMS_MAX {
            return;
        }
        endpoint.inbox.push_back(flight);
        events.push(Event::Ready(Readiness {
            key,
            readable: true,
            writable: true,
            ended: Ended::No,
            urgent: false,
        }));
    }

    /// No socket has the address: a connected sender gets an error, as by ICMP (udp(7)).
    fn refuse(&mut self, flight: &InTransit) {
        let (index, id) = flight.sender;
        let sender = self.datagrams.endpoints.get(&index);
        let is_connected = |sender: &&Endpoint| sender.id == id && sender.peer == Some(flight.to);
        if sender.filter(is_connected).is_some() {
            self.schedule(Key(index), id, SimulatedEvent::Refused);
        }
    }
}

/// Result of a call that failed after `count` datagrams: the next call reports the error.
fn sent(count: usize, errno: Errno) -> Result<usize, Errno> {
    match count {
        0 => Err(errno),
        count => Ok(count),
    }
}

/// Source address of datagrams from a socket on `address` to `to`: a simulated network is one machine.
fn source(address: SocketAddr, to: SocketAddr) -> SocketAddr {
    match address.ip() {
        ip if !ip.is_unspecified() => address,
        IpAddr::V4(_) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        IpAddr::V6(_) => SocketAddr::new(to.ip(), address.port()),
    }
}
